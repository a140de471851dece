-- Files of a shard, which are objects. One that the newest version does not have any more
-- stays for a while, for whoever reads an older one.
CREATE TABLE shard_files (
    part       BIGINT NOT NULL,
    objectid   BIGINT NOT NULL,
    name       TEXT NOT NULL,
    path       TEXT NOT NULL,
    bytes      BIGINT NOT NULL,
    dropped_ms BIGINT,
    PRIMARY KEY (part, objectid)
);
CREATE UNIQUE INDEX shard_files_now ON shard_files (part, name) WHERE dropped_ms IS NULL;
CREATE INDEX shard_files_dropped ON shard_files (part, dropped_ms) WHERE dropped_ms IS NOT NULL;
