-- Who works on what (leases, nodes), and what was committed (chunks, objects).

-- One row for each start of a process; the id also prefixes every id it makes.
CREATE TABLE nodes (
    id           BIGINT NOT NULL PRIMARY KEY,
    name         TEXT NOT NULL,
    roles        TEXT NOT NULL,
    address      TEXT,
    version      TEXT NOT NULL,
    state        TEXT NOT NULL CHECK (state IN ('joining', 'ready', 'draining', 'stopped', 'absent')),
    health       TEXT NOT NULL CHECK (health IN ('healthy', 'failure', 'probation')),
    started_ms   BIGINT NOT NULL,
    heartbeat_ms BIGINT NOT NULL,
    stopped_ms   BIGINT
);

-- Connections that all processes together have open, of kinds whose number is a limit
-- of the cluster; claim is the id of whoever holds one. slot_waits has who waits for
-- one, and for each connection a row of node 0 that those who take lock.
CREATE TABLE slots (
    connectionid BIGINT NOT NULL,
    slot         BIGINT NOT NULL,
    node         BIGINT NOT NULL,
    claim        BIGINT NOT NULL,
    taken_ms     BIGINT NOT NULL,
    PRIMARY KEY (connectionid, slot)
);
CREATE TABLE slot_waits (
    connectionid BIGINT NOT NULL,
    node         BIGINT NOT NULL,
    since_ms     BIGINT NOT NULL,
    asked_ms     BIGINT NOT NULL,
    PRIMARY KEY (connectionid, node)
);

-- The right to work on a part in a role. token fences a stale holder; seq counts
-- the commits and is the order in which outputs read.
CREATE TABLE leases (
    part        BIGINT NOT NULL,
    role        TEXT NOT NULL,
    node        BIGINT NOT NULL,
    node_name   TEXT NOT NULL,
    token       BIGINT NOT NULL,
    deadline_ms BIGINT NOT NULL,
    taken_ms    BIGINT NOT NULL,
    seq         BIGINT NOT NULL,
    PRIMARY KEY (part, role)
);

-- The atom of work. seq is NULL until the commit. Facts of a small chunk live in
-- the row until they are packed into an object.
CREATE TABLE chunks (
    part          BIGINT NOT NULL,
    id            BIGINT NOT NULL,
    jobid         BIGINT NOT NULL,
    run           BIGINT NOT NULL,
    node          BIGINT NOT NULL,
    token         BIGINT NOT NULL,
    seq           BIGINT,
    state         TEXT NOT NULL CHECK (state IN ('crawling', 'crawled', 'abandoned')),
    documents     BIGINT NOT NULL,
    adds          BIGINT NOT NULL,
    updates       BIGINT NOT NULL,
    removes       BIGINT NOT NULL,
    keeps         BIGINT NOT NULL,
    errors        BIGINT NOT NULL,
    bytes         BIGINT NOT NULL,
    claimed_ms    BIGINT NOT NULL,
    committed_ms  BIGINT,
    facts         BLOB,
    facts_object  BIGINT,
    facts_offset  BIGINT,
    facts_len     BIGINT,
    bodies_object BIGINT,
    PRIMARY KEY (part, id)
);
CREATE UNIQUE INDEX chunks_by_seq ON chunks (part, seq) WHERE state = 'crawled';
CREATE INDEX chunks_by_run ON chunks (part, jobid, run, seq) WHERE state = 'crawled';
CREATE INDEX chunks_crawling ON chunks (part, id) WHERE state = 'crawling';
CREATE INDEX chunks_unpacked ON chunks (part, seq) WHERE facts IS NOT NULL;
CREATE INDEX chunks_by_facts ON chunks (part, facts_object) WHERE facts_object IS NOT NULL;
CREATE INDEX chunks_abandoned ON chunks (part, claimed_ms) WHERE state = 'abandoned';

-- What each role did with a chunk: seed 001's crawler and index_builder are views.
CREATE TABLE chunk_tasks (
    part       BIGINT NOT NULL,
    chunk      BIGINT NOT NULL,
    role       TEXT NOT NULL,
    node       BIGINT NOT NULL,
    task       TEXT NOT NULL CHECK (task IN ('crawling', 'crawled', 'building', 'built', 'propagated', 'error')),
    errortext  TEXT,
    changed_ms BIGINT NOT NULL,
    PRIMARY KEY (part, chunk, role)
);

-- How far a consumer of changes has come: written with its effect.
CREATE TABLE cursors (
    part       BIGINT NOT NULL,
    consumer   TEXT NOT NULL,
    seq        BIGINT NOT NULL,
    changed_ms BIGINT NOT NULL,
    PRIMARY KEY (part, consumer)
);

-- Every object has a row before it exists, so orphans are found from here alone.
CREATE TABLE objects (
    part         BIGINT NOT NULL,
    id           BIGINT NOT NULL,
    path         TEXT NOT NULL,
    kind         TEXT NOT NULL CHECK (kind IN ('facts', 'bodies', 'pack', 'shard', 'mirror')),
    state        TEXT NOT NULL CHECK (state IN ('staged', 'published', 'condemned')),
    bytes        BIGINT,
    hash         BLOB,
    staged_ms    BIGINT NOT NULL,
    published_ms BIGINT,
    condemned_ms BIGINT,
    PRIMARY KEY (part, id)
);
CREATE UNIQUE INDEX objects_by_path ON objects (part, path);
CREATE INDEX objects_staged ON objects (part, staged_ms) WHERE state = 'staged';
CREATE INDEX objects_condemned ON objects (part, condemned_ms) WHERE state = 'condemned';

-- Published versions of a part's search shard, and which index server of which
-- row (a row is a whole replica) has acknowledged which version.
CREATE TABLE shards (
    part         BIGINT NOT NULL,
    version      BIGINT NOT NULL,
    state        TEXT NOT NULL CHECK (state IN ('staged', 'published', 'condemned')),
    seq          BIGINT NOT NULL,
    files        TEXT NOT NULL,
    documents    BIGINT NOT NULL,
    bytes        BIGINT NOT NULL,
    node         BIGINT NOT NULL,
    published_ms BIGINT,
    PRIMARY KEY (part, version)
);
CREATE TABLE placements (
    part            BIGINT NOT NULL,
    replica         BIGINT NOT NULL,
    node            BIGINT NOT NULL,
    version         BIGINT,
    acknowledged_ms BIGINT,
    PRIMARY KEY (part, replica, node)
);
