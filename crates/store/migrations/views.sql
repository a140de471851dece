-- The tables of the seeds under their own names, where ours are built differently.
-- They are for people and reports; no code of the crawl reads them.

CREATE VIEW connectors AS
    SELECT classname, description FROM registrations WHERE kind = 'repository';
CREATE VIEW outputconnectors AS
    SELECT classname, description FROM registrations WHERE kind = 'output';
CREATE VIEW authconnectors AS
    SELECT classname, description FROM registrations WHERE kind = 'authority';
CREATE VIEW mapconnectors AS
    SELECT classname, description FROM registrations WHERE kind = 'mapping';
CREATE VIEW transformationconnectors AS
    SELECT classname, description FROM registrations WHERE kind = 'transformation';
CREATE VIEW notificationconnectors AS
    SELECT classname, description FROM registrations WHERE kind = 'notification';

CREATE VIEW repoconnections AS
    SELECT connectionname, description, classname, config AS configxml, maxcount, groupname
    FROM connections WHERE kind = 'repository';
CREATE VIEW outputconnections AS
    SELECT connectionname, description, classname, config AS configxml, maxcount
    FROM connections WHERE kind = 'output';
CREATE VIEW authconnections AS
    SELECT connectionname AS authorityname, description, classname, config AS configxml,
           prerequisite AS mappingname, authdomainname, groupname, maxcount
    FROM connections WHERE kind = 'authority';
-- Table 11.8 names two columns mappingname; the second is the prerequisite.
CREATE VIEW mapconnections AS
    SELECT connectionname AS mappingname, description, classname, config AS configxml,
           prerequisite AS prerequisitename, maxcount
    FROM connections WHERE kind = 'mapping';
CREATE VIEW transformationconnections AS
    SELECT connectionname, description, classname, config AS configxml, maxcount
    FROM connections WHERE kind = 'transformation';
CREATE VIEW notificationconnections AS
    SELECT connectionname, description, classname, config AS configxml, maxcount
    FROM connections WHERE kind = 'notification';

CREATE VIEW throttlespec AS
    SELECT c.connectionname AS ownername, t.description, t.matchstring, t.throttle
    FROM throttles t JOIN connections c ON c.id = t.ownerid;

CREATE VIEW repohistory AS
    SELECT h.id, c.connectionname AS owner, h.activitytype, h.entityid, h.datasize,
           h.resultcode, h.resultdesc, h.starttime, h.endtime
    FROM history h LEFT JOIN connections c ON c.id = h.connectionid;

-- Tables 11.13 and 11.16 together. outputname and outputspec are the first output.
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
           s.node AS processid, s.starttime, s.endtime, s.errortext, s.windowend, s.lastchecktime,
           s.lasttime, s.reseedtime, s.failtime, s.failcount
    FROM job_definitions d
    JOIN connections c ON c.id = d.connectionid
    JOIN job_states s ON s.jobid = d.id;

-- Table 11.17 with the states of table 11.25. CUT and FAILED are ours: a document
-- that a scope or limit excludes, and a dead letter.
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
           q.docpriority, q.added_ms AS priorityset,
           CASE WHEN q.seed_run IS NULL THEN 'not a seed'
                WHEN q.seed_run >= s.run THEN 'new seed'
                ELSE 'former seed' END AS isseed,
           q.checktime,
           CASE WHEN q.action = 'fetch' THEN 'fetch' ELSE 'expire' END AS checkaction,
           q.failcount, q.failtime
    FROM queue q
    JOIN job_states s ON s.jobid = q.jobid
    LEFT JOIN chunks h ON h.part = q.part AND h.id = q.chunk;

-- Tables 11.18 to 11.20, with parent and child as the chapter defines them: the
-- parent refers, the child is referred to.
CREATE VIEW intrinsiclink AS
    SELECT DISTINCT e.jobid, e.sourcehash AS parentidhash, e.targethash AS childidhash, e.linktype,
           'base' AS isnew
    FROM edges e;
CREATE VIEW hopcount AS
    SELECT q.id, d.jobid, d.dochash AS parentidhash, d.linktype,
           CASE WHEN d.distance IS NULL THEN 'deleting' WHEN d.news = 1 THEN 'queued'
                ELSE 'normal' END AS deathmark,
           COALESCE(d.distance, -1) AS distance
    FROM distances d
    JOIN queue q ON q.part = d.part AND q.dochash = d.dochash AND q.jobid = d.jobid;
-- A distance depends on the one link from its best parent.
CREATE VIEW hopdeletedeps AS
    SELECT q.id AS ownerid, d.jobid, d.linktype, d.parenthash AS parentidhash, d.dochash AS childidhash
    FROM distances d
    JOIN queue q ON q.part = d.part AND q.dochash = d.dochash AND q.jobid = d.jobid
    WHERE d.parenthash IS NOT NULL;

CREATE VIEW carrydown AS
    SELECT c.jobid, c.parenthash AS parentidhash, c.childhash AS childidhash, c.dataname,
           c.datavalue, c.datavaluehash,
           'base' AS isnew
    FROM carrydowns c;

-- Table 11.26. dockey is the connection's id and the document's key together.
CREATE VIEW ingeststatus AS
    SELECT i.id, i.connectionid AS dockeyclass, i.dochash AS dockey, i.componenthash, i.docuri, i.urihash,
           o.connectionname, i.authorityname, i.lastversion, i.lastoutputversion,
           i.lasttransformationversion, i.firstingest, i.lastingest, i.changecount
    FROM ingests i LEFT JOIN connections o ON o.id = i.outputid;

-- Seed 001.
CREATE VIEW link AS
    SELECT q.id AS "index", q.docid AS link, COALESCE(q.chunk, d.chunk) AS chunk_id,
           CASE q.state WHEN 'active' THEN 'crawling' WHEN 'done' THEN 'crawled'
                        WHEN 'failed' THEN 'error' WHEN 'cut' THEN 'cut' ELSE 'pending' END AS state
    FROM queue q
    JOIN job_definitions j ON j.id = q.jobid
    LEFT JOIN documents d ON d.part = q.part AND d.dochash = q.dochash AND d.connectionid = j.connectionid;
CREATE VIEW chunk AS
    SELECT seq AS "index", id, part FROM chunks;
CREATE VIEW host AS
    SELECT id AS "index", COALESCE(address, name) AS host, roles AS type,
           CASE WHEN state IN ('joining', 'ready') THEN 'online' ELSE state END AS state, health
    FROM nodes;
CREATE VIEW crawler AS
    SELECT t.chunk AS "index", t.part, t.chunk AS chunk_id, n.name AS c_host, t.task AS c_task, t.changed_ms
    FROM chunk_tasks t LEFT JOIN nodes n ON n.id = t.node WHERE t.role = 'crawl';
CREATE VIEW index_builder AS
    SELECT t.chunk AS "index", t.part, t.chunk AS chunk_id, n.name AS ib_host, t.task AS ib_task, t.changed_ms
    FROM chunk_tasks t LEFT JOIN nodes n ON n.id = t.node WHERE t.role = 'search';
CREATE VIEW index_server AS
    SELECT p.node AS "index", p.part, p.replica AS "row", h.id AS chunk_id, n.name AS is_host
    FROM placements p
    JOIN shards s ON s.part = p.part AND s.version = p.version
    JOIN chunks h ON h.part = p.part AND h.seq <= s.seq
    LEFT JOIN nodes n ON n.id = p.node;
