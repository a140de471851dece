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

-- What a document was before a sweep claimed it, so that a sweep that is cut off leaves it as
-- it was; NULL for what is claimed to be looked at.
ALTER TABLE queue ADD COLUMN claimed_state TEXT;
ALTER TABLE queue ADD COLUMN claimed_action TEXT;

-- With queue_done: whether a run has left anything that an older one settled, in one look.
CREATE INDEX queue_settled_apart ON queue (part, jobid, done_run)
    WHERE done_run IS NOT NULL
      AND (state IN ('failed', 'cut') OR (state = 'waiting' AND reason IS NULL));

DROP VIEW jobs;
-- Tables 11.13 and 11.16 together. outputname and outputspec are the first output. A process
-- is named while it brings the job from a transient state to a permanent one.
CREATE VIEW jobs AS
    SELECT d.id, d.description, c.connectionname,
           (SELECT o.connectionname FROM jobpipelines p JOIN connections o ON o.id = p.connectionid
            WHERE p.ownerid = d.id AND p.kind = 'output' ORDER BY p.ordinal LIMIT 1) AS outputname,
           (SELECT p.spec FROM jobpipelines p
            WHERE p.ownerid = d.id AND p.kind = 'output' ORDER BY p.ordinal LIMIT 1) AS outputspec,
           d.docspec, d.startmethod, d.priority, d.hopcountmode, d.type, d.intervaltime,
           d.maxintervaltime, d.reseedinterval, d.expirationtime,
           CASE s.phase
               WHEN 'inactive' THEN 'INACTIVE'
               WHEN 'ready for startup' THEN
                   CASE WHEN s.minimal = 1 THEN 'READYFORSTARTUPMINIMAL' ELSE 'READYFORSTARTUP' END
               WHEN 'starting up' THEN
                   CASE WHEN s.minimal = 1 THEN 'STARTINGUPMINIMAL' ELSE 'STARTINGUP' END
               WHEN 'active' THEN
                   CASE WHEN s.resuming = 1 THEN 'RESUMING'
                        WHEN s.paused = 1 AND s.waiting = 1 AND s.stopping = 1 THEN 'PAUSINGWAITING'
                        WHEN s.paused = 1 AND s.waiting = 1 THEN 'PAUSEDWAIT'
                        WHEN s.paused = 1 AND s.stopping = 1 THEN 'PAUSING'
                        WHEN s.paused = 1 THEN 'PAUSED'
                        WHEN s.waiting = 1 AND s.stopping = 1 THEN 'ACTIVEWAITING'
                        WHEN s.waiting = 1 THEN 'ACTIVEWAIT'
                        ELSE 'ACTIVE' END
                   || CASE WHEN s.seeding = 1 THEN 'SEEDING' ELSE '' END
                   || CASE WHEN s.resuming = 1 OR s.paused = 1 OR s.waiting = 1 THEN ''
                           WHEN s.repository_present = 0 AND s.outputs_present = 0 THEN '_NEITHER'
                           WHEN s.repository_present = 0 THEN '_UNINSTALLED'
                           WHEN s.outputs_present = 0 THEN '_NOOUTPUT'
                           ELSE '' END
               WHEN 'shutting down' THEN 'SHUTTINGDOWN'
               WHEN 'aborting' THEN
                   CASE WHEN s.restart = 'none' AND s.aborting_from = 'shutting down' THEN 'ABORTINGSHUTTINGDOWN'
                        WHEN s.aborting_from = 'starting up' THEN 'ABORTINGSTARTINGUP'
                        ELSE 'ABORTING' END
                   || CASE WHEN s.restart = 'none' THEN '' ELSE 'FORRESTART' END
                   || CASE WHEN s.seeding = 1 AND s.aborting_from IS NULL THEN 'SEEDING' ELSE '' END
                   || CASE WHEN s.restart = 'minimal' THEN 'MINIMAL' ELSE '' END
               WHEN 'ready for notify' THEN 'READYFORNOTIFY'
               WHEN 'notifying' THEN 'NOTIFYINGOFCOMPLETION'
               WHEN 'ready for delete' THEN
                   CASE WHEN s.outputs_present = 0 THEN 'READYFORDELETE_NOOUTPUT' ELSE 'READYFORDELETE' END
               WHEN 'delete starting up' THEN 'DELETESTARTINGUP'
               WHEN 'deleting' THEN
                   CASE WHEN s.outputs_present = 0 THEN 'DELETING_NOOUTPUT' ELSE 'DELETING' END
               WHEN 'ready for delete notify' THEN 'READYFORDELETENOTIFY'
               WHEN 'notifying of deletion' THEN 'NOTIFYINGOFDELETION'
           END AS status,
           CASE WHEN s.phase IN ('starting up', 'notifying', 'delete starting up', 'notifying of deletion')
                     OR s.aborting_from = 'starting up' OR s.seeding = 1 THEN s.node END AS processid,
           s.starttime, s.endtime, s.errortext, s.windowend, s.lastchecktime,
           s.lasttime, s.reseedtime, s.failtime, s.failcount
    FROM job_definitions d
    JOIN connections c ON c.id = d.connectionid
    JOIN job_states s ON s.jobid = d.id;

DROP VIEW jobqueue;
-- Table 11.17 with the states of table 11.25. CUT and FAILED are ours: a document
-- that a scope or limit excludes, and a dead letter. docpriority and priorityset are left out:
-- documents of a bin are taken in the order in which they arrived, which id tells, and no
-- number orders those of all bins.
CREATE VIEW jobqueue AS
    SELECT q.id, q.jobid, q.docid, q.dochash,
           CASE
               WHEN s.phase IN ('ready for delete', 'delete starting up', 'deleting') THEN
                   CASE WHEN q.state = 'active' THEN 'BEINGDELETED' ELSE 'ELIGIBLEFORDELETE' END
               WHEN q.state = 'active' AND q.action = 'clean' THEN 'BEINGCLEANED'
               WHEN q.state = 'active' THEN
                   CASE WHEN q.rescan = 1 THEN 'ACTIVENEEDRESCAN' ELSE 'ACTIVE' END
                   || CASE WHEN q.done_run IS NULL THEN '' ELSE 'PURGATORY' END
               WHEN q.state = 'cut' THEN
                   CASE WHEN q.reason = 'hops' THEN 'HOPCOUNTREMOVED' ELSE 'CUT' END
               WHEN q.state = 'failed' THEN 'FAILED'
               WHEN q.state IN ('ready', 'waiting') THEN
                   CASE WHEN q.done_run IS NULL THEN 'PENDING' ELSE 'PENDINGPURGATORY' END
               WHEN s.phase = 'inactive' OR q.done_run >= s.run OR s.run_kind = 'changes only' THEN 'COMPLETE'
               WHEN s.run_kind = 'incremental' OR q.seen_run >= s.run THEN 'PENDINGPURGATORY'
               WHEN s.run_kind = 'partial' THEN 'UNCHANGED'
               ELSE 'PURGATORY'
           END AS status,
           h.node AS processid,
           CASE WHEN s.seeding = 1 THEN s.node END AS seedingprocessid,
           CASE WHEN q.seed_run IS NULL THEN 'not a seed'
                WHEN q.seed_run >= s.run THEN 'new seed'
                ELSE 'former seed' END AS isseed,
           q.checktime,
           CASE WHEN q.action = 'fetch' THEN 'fetch' ELSE 'expire' END AS checkaction,
           q.failcount, q.failtime
    FROM queue q
    JOIN job_states s ON s.jobid = q.jobid
    LEFT JOIN chunks h ON h.part = q.part AND h.id = q.chunk;
