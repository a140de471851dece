-- The chain of the audit log: an event for everything that was written there, with a hash of what
-- it says and of the event before it. The first stands for all that is older than the chain.
CREATE TABLE audit_chain (
    number  BIGINT NOT NULL PRIMARY KEY,
    id      BIGINT NOT NULL,
    event   TEXT NOT NULL,
    content BLOB NOT NULL,
    hash    BLOB NOT NULL
);
CREATE INDEX audit_chain_by_entry ON audit_chain (id);
