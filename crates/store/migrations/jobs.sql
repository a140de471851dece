-- The operational status of jobs (table 11.16), in orthogonal fields. The names
-- of table 11.24 are derived from them by the view jobs. judged is what decided
-- about links when the last run began; other settings judge them again.

CREATE TABLE job_states (
    jobid              BIGINT NOT NULL PRIMARY KEY,
    phase              TEXT NOT NULL CHECK (phase IN (
                           'inactive', 'ready for startup', 'starting up', 'active', 'shutting down',
                           'aborting', 'ready for notify', 'notifying', 'ready for delete',
                           'delete starting up', 'deleting', 'ready for delete notify',
                           'notifying of deletion')),
    minimal            BIGINT NOT NULL CHECK (minimal IN (0, 1)),
    paused             BIGINT NOT NULL CHECK (paused IN (0, 1)),
    waiting            BIGINT NOT NULL CHECK (waiting IN (0, 1)),
    stopping           BIGINT NOT NULL CHECK (stopping IN (0, 1)),
    resuming           BIGINT NOT NULL CHECK (resuming IN (0, 1)),
    seeding            BIGINT NOT NULL CHECK (seeding IN (0, 1)),
    aborting_from      TEXT,
    restart            TEXT NOT NULL CHECK (restart IN ('none', 'full', 'minimal')),
    repository_present BIGINT NOT NULL CHECK (repository_present IN (0, 1)),
    outputs_present    BIGINT NOT NULL CHECK (outputs_present IN (0, 1)),
    run                BIGINT NOT NULL,
    run_kind           TEXT NOT NULL CHECK (run_kind IN ('full', 'incremental', 'partial', 'changes only')),
    node               BIGINT,
    starttime          BIGINT,
    endtime            BIGINT,
    errortext          TEXT,
    windowend          BIGINT,
    seedingversion     TEXT,
    lastchecktime      BIGINT NOT NULL,
    lasttime           BIGINT,
    reseedtime         BIGINT,
    failtime           BIGINT,
    failcount          BIGINT,
    judged             TEXT,
    refetch            TEXT,
    changed_ms         BIGINT NOT NULL
);

-- Every run a job has had, for its history and the answer to "what changed".
CREATE TABLE runs (
    jobid      BIGINT NOT NULL,
    run        BIGINT NOT NULL,
    run_kind   TEXT NOT NULL,
    started_ms BIGINT NOT NULL,
    ended_ms   BIGINT,
    outcome    TEXT,
    errortext  TEXT,
    PRIMARY KEY (jobid, run)
);

-- Everything that is counted over all parts is the sum of these rows, each
-- written in the same transaction as its cause.
CREATE TABLE counters (
    part  BIGINT NOT NULL,
    jobid BIGINT NOT NULL,
    name  TEXT NOT NULL,
    value BIGINT NOT NULL,
    PRIMARY KEY (part, jobid, name)
);
