-- Removals that are held back until somebody decides (docs/decisions/held-removals.md).

-- Whether the job has the document: its last look found one that outputs were told of.
-- leaving is why the job is to lose it, leaving_round in which round of decisions that was
-- marked; both are NULL for nearly all rows.
ALTER TABLE queue ADD COLUMN has_document BIGINT NOT NULL DEFAULT 0;
ALTER TABLE queue ADD COLUMN leaving TEXT;
ALTER TABLE queue ADD COLUMN leaving_round BIGINT;
CREATE INDEX queue_leaving ON queue (part, jobid, leaving_round, id) WHERE leaving IS NOT NULL;

UPDATE queue SET has_document = 1
WHERE done_run IS NOT NULL AND EXISTS (
    SELECT 1 FROM job_definitions j
    JOIN documents d ON d.connectionid = j.connectionid
    WHERE j.id = queue.jobid AND d.part = queue.part AND d.dochash = queue.dochash
      AND d.chunk IS NOT NULL AND d.removed_ms IS NULL);
INSERT INTO counters (part, jobid, name, value)
SELECT part, jobid, 'documents', COUNT(*) FROM queue WHERE has_document = 1 GROUP BY part, jobid;

-- removal_round is the round that new marks get. Marks up to released_round are swept, those up
-- to approved_round because a person said so; marks up to held_round wait for a person since
-- held_ms. removals_only says that a run is over and
-- only what was approved is swept. removal_base is what the job had when its run began, by
-- part: 'part:documents', separated by spaces, noted at removal_base_ms.
ALTER TABLE job_states ADD COLUMN removal_round BIGINT NOT NULL DEFAULT 1;
ALTER TABLE job_states ADD COLUMN released_round BIGINT NOT NULL DEFAULT 0;
ALTER TABLE job_states ADD COLUMN approved_round BIGINT NOT NULL DEFAULT 0;
ALTER TABLE job_states ADD COLUMN held_round BIGINT NOT NULL DEFAULT 0;
ALTER TABLE job_states ADD COLUMN held_ms BIGINT;
ALTER TABLE job_states ADD COLUMN removals_only BIGINT NOT NULL DEFAULT 0;
ALTER TABLE job_states ADD COLUMN removal_base TEXT;
ALTER TABLE job_states ADD COLUMN removal_base_ms BIGINT;

-- How much a job may lose without an approval; NULL is the usual limit.
ALTER TABLE job_definitions ADD COLUMN removal_limit TEXT;
ALTER TABLE job_definitions ADD COLUMN proven_removal_limit TEXT;

-- What a job has lost without an approval, by cause. hour is 0 for a job that scans once, of
-- which a run is counted as a whole.
CREATE TABLE removals (
    part      BIGINT NOT NULL,
    jobid     BIGINT NOT NULL,
    run       BIGINT NOT NULL,
    hour      BIGINT NOT NULL,
    cause     TEXT NOT NULL,
    documents BIGINT NOT NULL,
    PRIMARY KEY (part, jobid, run, hour, cause)
);
