-- What makes a look at an unchanged document write less, and what budgets count beside documents.

-- The last look at a document that found nothing new: what such looks change of the document's
-- row, which is wider and stays as it is. A look counts while base is the checksum of that row:
-- whoever writes the row anew has taken the look into account, or replaced what it was about.
CREATE TABLE looks (
    part         BIGINT NOT NULL,
    id           BIGINT NOT NULL,
    base         BIGINT NOT NULL,
    outcome      TEXT NOT NULL,
    httpstatus   BIGINT,
    etag         TEXT,
    lastmodified TEXT,
    checked_ms   BIGINT NOT NULL,
    fetched_ms   BIGINT,
    checks       BIGINT NOT NULL,
    quiet_ms     BIGINT NOT NULL,
    restless_ms  BIGINT NOT NULL,
    missing      BIGINT NOT NULL,
    missing_run  BIGINT,
    missing_ms   BIGINT,
    checksum     BIGINT,
    PRIMARY KEY (part, id)
) /*clustered*/;

-- The history lies in the order in which reports walk it and retention forgets it: one tree in
-- place of a table, its key and an index by time.
DROP VIEW repohistory;
CREATE TABLE history_in_order (
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
    PRIMARY KEY (connectionid, starttime, id, part)
) /*clustered*/;
INSERT INTO history_in_order (part, id, connectionid, jobid, activitytype, entityid, datasize,
                              resultcode, resultdesc, starttime, endtime)
SELECT part, id, connectionid, jobid, activitytype, entityid, datasize, resultcode, resultdesc,
       starttime, endtime
FROM history ORDER BY connectionid, starttime, id;
DROP TABLE history;
ALTER TABLE history_in_order RENAME TO history;
CREATE VIEW repohistory AS
    SELECT h.id, c.connectionname AS owner, h.activitytype, h.entityid, h.datasize,
           h.resultcode, h.resultdesc, h.starttime, h.endtime
    FROM history h LEFT JOIN connections c ON c.id = h.connectionid;

-- Which run has seen a document changes with every run: it is looked up in the row by the one
-- report that asks for it, and not kept in order.
DROP INDEX queue_done;
CREATE INDEX queue_done ON queue (part, jobid, done_run) WHERE state = 'done';

-- Of a host: links to it from pages of other hosts, of which each lets it have more pages. Of the
-- sitemaps of a host: bytes that were read.
ALTER TABLE traps ADD COLUMN outside BIGINT NOT NULL DEFAULT 0;
ALTER TABLE traps ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
