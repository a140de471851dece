-- What review found missing: schedules, sweeps, views, and what cannot be reached.

-- How long after a run's end another one starts in the same window; NULL is one run a
-- window.
ALTER TABLE schedules ADD COLUMN repeat_ms BIGINT;

-- Connections that a process cannot reach just now: since when, why, and how often it was
-- tried. jobid is 0 for an output, which all of its jobs wait for; otherwise it is the job
-- that cannot be started up or seeded. connectionid is 0 where the end of a run cannot be
-- told. A row goes when the connection is reached again, or with its node.
CREATE TABLE outages (
    connectionid BIGINT NOT NULL,
    jobid        BIGINT NOT NULL,
    node         BIGINT NOT NULL,
    since_ms     BIGINT NOT NULL,
    tried_ms     BIGINT NOT NULL,
    attempts     BIGINT NOT NULL,
    why          TEXT NOT NULL,
    PRIMARY KEY (connectionid, jobid, node)
);
