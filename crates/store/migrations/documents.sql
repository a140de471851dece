-- What is known of documents: their content, what each output has of them, and
-- what was done.

-- One row for each document of a repository connection, whatever jobs share it.
-- chunk and ordinal say where its facts are, bodychunk where its bytes are. A
-- removed document keeps its row as a tombstone with the reason. quiet_ms and
-- restless_ms are the time it was watched without and with a change: what a rate of
-- change is estimated from.
CREATE TABLE documents (
    part         BIGINT NOT NULL,
    id           BIGINT NOT NULL,
    connectionid BIGINT NOT NULL,
    dochash      BLOB NOT NULL,
    docid        TEXT NOT NULL,
    outcome      TEXT NOT NULL,
    httpstatus   BIGINT,
    mediatype    TEXT,
    language     TEXT,
    title        TEXT,
    length       BIGINT,
    etag         TEXT,
    lastmodified TEXT,
    version      TEXT,
    contenthash  BLOB,
    texthash     BLOB,
    simhash      BIGINT,
    redirectpart BIGINT,
    redirecthash BLOB,
    duplicatepart BIGINT,
    duplicateof  BLOB,
    first_ms     BIGINT NOT NULL,
    checked_ms   BIGINT NOT NULL,
    fetched_ms   BIGINT,
    changed_ms   BIGINT,
    checks       BIGINT NOT NULL,
    changes      BIGINT NOT NULL,
    quiet_ms     BIGINT NOT NULL,
    restless_ms  BIGINT NOT NULL,
    chunk        BIGINT,
    ordinal      BIGINT,
    bodychunk    BIGINT,
    missing      BIGINT NOT NULL,
    missing_run  BIGINT,
    missing_ms   BIGINT,
    removed_ms   BIGINT,
    reason       TEXT,
    PRIMARY KEY (part, id)
);
CREATE UNIQUE INDEX documents_by_key ON documents (part, dochash, connectionid);
CREATE INDEX documents_by_chunk ON documents (part, chunk) WHERE chunk IS NOT NULL;
-- Only what is no copy of another: a content that a million documents share is here once.
CREATE INDEX documents_by_content ON documents (part, contenthash)
    WHERE contenthash IS NOT NULL AND duplicateof IS NULL;
CREATE INDEX documents_by_body ON documents (part, bodychunk) WHERE bodychunk IS NOT NULL;

-- Table 11.26 is the view ingeststatus. decision is what the output must still hear,
-- and jobid the job that decided it; it is taken when the chunk commits and cleared when
-- it is delivered. One that was given up stays, with a checktime that never comes.
-- staleuris are URIs that the output may still have the document under, one a line.
CREATE TABLE ingests (
    part                      BIGINT NOT NULL,
    id                        BIGINT NOT NULL,
    outputid                  BIGINT NOT NULL,
    connectionid              BIGINT NOT NULL,
    dochash                   BLOB NOT NULL,
    componenthash             BLOB NOT NULL,
    docuri                    TEXT,
    urihash                   BLOB,
    authorityname             TEXT,
    lastversion               TEXT,
    lastoutputversion         TEXT,
    lasttransformationversion TEXT,
    firstingest               BIGINT,
    lastingest                BIGINT,
    lastchange                BIGINT,
    changecount               BIGINT NOT NULL,
    staleuris                 TEXT,
    decision                  TEXT CHECK (decision IN ('add', 'update', 'remove')),
    jobid                     BIGINT,
    decided_seq               BIGINT,
    delivered_seq             BIGINT,
    checktime                 BIGINT,
    failcount                 BIGINT,
    failtime                  BIGINT,
    errortext                 TEXT,
    PRIMARY KEY (part, id)
);
CREATE UNIQUE INDEX ingests_by_key ON ingests (part, outputid, dochash, connectionid, componenthash);
CREATE INDEX ingests_by_uri ON ingests (part, outputid, urihash) WHERE urihash IS NOT NULL;
CREATE INDEX ingests_undelivered ON ingests (part, outputid, decided_seq, id)
    WHERE decision IS NOT NULL AND checktime IS NULL;
CREATE INDEX ingests_retry ON ingests (part, outputid, checktime, id)
    WHERE decision IS NOT NULL AND checktime IS NOT NULL;

-- Table 11.11 is the view repohistory. Reports walk a connection's activities by time,
-- over all parts.
CREATE TABLE history (
    part         BIGINT NOT NULL,
    id           BIGINT NOT NULL,
    connectionid BIGINT NOT NULL,
    jobid        BIGINT,
    activitytype TEXT NOT NULL,
    entityid     TEXT NOT NULL,
    datasize     BIGINT,
    resultcode   TEXT,
    resultdesc   TEXT,
    starttime    BIGINT NOT NULL,
    endtime      BIGINT NOT NULL,
    PRIMARY KEY (part, id)
);
CREATE INDEX history_by_time ON history (connectionid, starttime, id);

-- How many activities there are of each hour, with their bytes, so that nobody has to
-- count them. jobid is 0 and resultcode is empty where an activity has none.
CREATE TABLE history_counts (
    part         BIGINT NOT NULL,
    connectionid BIGINT NOT NULL,
    hour         BIGINT NOT NULL,
    jobid        BIGINT NOT NULL,
    activitytype TEXT NOT NULL,
    resultcode   TEXT NOT NULL,
    activities   BIGINT NOT NULL,
    bytes        BIGINT NOT NULL,
    PRIMARY KEY (part, connectionid, hour, jobid, activitytype, resultcode)
);
CREATE INDEX history_counts_by_hour ON history_counts (connectionid, hour);
