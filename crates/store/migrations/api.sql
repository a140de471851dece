-- Tokens of the HTTP API. Only the hash of a token is kept; it is shown once, when it is
-- made. A token that is revoked keeps its row, so that its name tells who it was. Areas are
-- separated by spaces; without them a token is good for all that its role may do.
CREATE TABLE api_tokens (
    id         BIGINT NOT NULL PRIMARY KEY,
    name       TEXT NOT NULL,
    hash       BLOB NOT NULL,
    role       TEXT NOT NULL CHECK (role IN ('viewer', 'operator', 'admin', 'publisher')),
    areas      TEXT,
    created_ms BIGINT NOT NULL,
    expires_ms BIGINT,
    used_ms    BIGINT,
    revoked_ms BIGINT
);
CREATE UNIQUE INDEX api_tokens_by_hash ON api_tokens (hash);
CREATE UNIQUE INDEX api_tokens_by_name ON api_tokens (name) WHERE revoked_ms IS NULL;

-- Who changed what, and when. A row is written before the change, and completed with what came
-- of it: one without an outcome was cut off, and may have happened.
CREATE TABLE audit (
    id      BIGINT NOT NULL PRIMARY KEY,
    at_ms   BIGINT NOT NULL,
    who     TEXT NOT NULL,
    verb    TEXT NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('begun', 'done', 'refused')),
    changes TEXT NOT NULL
);
CREATE INDEX audit_by_time ON audit (at_ms, id);
