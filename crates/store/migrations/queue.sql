-- The document queue and what paces it. part comes first in every key.

-- One row for each document of each job (table 11.17 is the view jobqueue).
-- Rows lie in order of arrival; one narrow unique index finds a document by its
-- 128-bit key; partial indexes hold only what is ready, waiting, active, or settled by a run.
-- redirects is the length of the chain of redirects that led here, 0 for a link.
-- A key of a document in another part goes with that part, which a hash does not
-- tell. reason is a short code, detail what people read.
-- seen_run, done_run and seed_run are run numbers: what a new run means for old
-- documents is found by comparing, never by rewriting. What waits without a reason has been
-- processed and is looked at again, or expires, at its time (continuous jobs).
CREATE TABLE queue (
    part        BIGINT NOT NULL,
    id          BIGINT NOT NULL,
    jobid       BIGINT NOT NULL,
    bin         BIGINT NOT NULL,
    dochash     BLOB NOT NULL,
    docid       TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('ready', 'waiting', 'active', 'done', 'cut', 'failed')),
    action      TEXT NOT NULL CHECK (action IN ('fetch', 'expire', 'clean', 'delete')),
    reason      TEXT,
    docpriority DOUBLE PRECISION NOT NULL,
    hops        BIGINT NOT NULL,
    redirects   BIGINT NOT NULL,
    seen_run    BIGINT NOT NULL,
    done_run    BIGINT,
    seed_run    BIGINT,
    rescan      BIGINT NOT NULL,
    generation  BIGINT NOT NULL,
    checktime   BIGINT,
    failcount   BIGINT,
    failtime    BIGINT,
    chunk       BIGINT,
    parentpart  BIGINT,
    parenthash  BLOB,
    detail      TEXT,
    added_ms    BIGINT NOT NULL,
    PRIMARY KEY (part, id)
);
CREATE UNIQUE INDEX queue_by_key ON queue (part, dochash, jobid);
CREATE INDEX queue_ready ON queue (part, jobid, bin, docpriority, id) WHERE state = 'ready';
CREATE INDEX queue_waiting ON queue (part, jobid, checktime, id) WHERE state = 'waiting';
CREATE INDEX queue_active ON queue (part, chunk, id) WHERE state = 'active';
CREATE INDEX queue_older ON queue (part, jobid, bin, done_run, id)
    WHERE done_run IS NOT NULL
      AND (state IN ('done', 'failed', 'cut') OR (state = 'waiting' AND reason IS NULL));
CREATE INDEX queue_cut ON queue (part, jobid, reason, id) WHERE state = 'cut';
-- What is ready or waits in another way than nearly all do; the rest follows from counters.
CREATE INDEX queue_ready_apart ON queue (part, jobid, action, done_run)
    WHERE state = 'ready' AND (action <> 'fetch' OR done_run IS NOT NULL);
CREATE INDEX queue_waiting_apart ON queue (part, jobid, action, done_run, checktime)
    WHERE state = 'waiting' AND (action <> 'fetch' OR done_run IS NULL);
CREATE INDEX queue_done ON queue (part, jobid, done_run, seen_run) WHERE state = 'done';
CREATE INDEX queue_failed ON queue (part, jobid, id) WHERE state = 'failed';

-- A bin is what politeness counts by: for the web, a host.
CREATE TABLE bins (
    part          BIGINT NOT NULL,
    bin           BIGINT NOT NULL,
    name          TEXT NOT NULL,
    delay_ms      BIGINT,
    next_ms       BIGINT NOT NULL,
    failures      BIGINT NOT NULL,
    blocked_ms    BIGINT,
    blocked_by    TEXT,
    documents     BIGINT NOT NULL,
    fetches       BIGINT NOT NULL,
    errors        BIGINT NOT NULL,
    bytes         BIGINT NOT NULL,
    busy_ms       BIGINT NOT NULL,
    added_ms      BIGINT NOT NULL,
    PRIMARY KEY (part, bin)
);
CREATE INDEX bins_blocked ON bins (part, blocked_ms) WHERE blocked_ms IS NOT NULL;

-- Which bins of a job may have something ready. Whoever queues a document raises
-- the mark in the same transaction; the holder of the part lowers it when it has
-- looked and the mark is still the one it saw.
CREATE TABLE bin_work (
    part  BIGINT NOT NULL,
    jobid BIGINT NOT NULL,
    bin   BIGINT NOT NULL,
    mark  BIGINT NOT NULL,
    PRIMARY KEY (part, jobid, bin)
);
CREATE INDEX bin_work_marked ON bin_work (part, jobid, bin) WHERE mark > 0;

-- What was counted of a pattern of URLs, of a family of patterns, of a host or of a
-- registered domain, so that a restart does not open a trap again (T13): documents
-- fetched; how many of them said nothing new (stale), were far from every seed (deep),
-- or were stale and named by stale ones only (suspects); how many in a million of the
-- recent ones were stale, or stale or nearly like others (alike). rule is the code of
-- what closed it, closed_ms when; both are NULL while it is open. bin is the host's, or
-- that of the domain's name.
CREATE TABLE traps (
    part         BIGINT NOT NULL,
    jobid        BIGINT NOT NULL,
    bin          BIGINT NOT NULL,
    pattern      TEXT NOT NULL,
    documents    BIGINT NOT NULL,
    stale        BIGINT NOT NULL,
    deep         BIGINT NOT NULL,
    suspects     BIGINT NOT NULL,
    recent_stale BIGINT NOT NULL,
    recent_alike BIGINT NOT NULL,
    rule         TEXT,
    closed_ms    BIGINT,
    PRIMARY KEY (part, jobid, bin, pattern)
);
CREATE INDEX traps_closed ON traps (jobid, documents, part, bin, pattern)
    WHERE closed_ms IS NOT NULL;

-- The crawl's graph, of jobs with hop filters: intrinsiclink, hopcount and hopdeletedeps
-- are views of these. Where a document leads, and what the parts of its targets know of it:
-- they were told, they keep the links, or they are being told just now.
CREATE TABLE outlinks (
    part    BIGINT NOT NULL,
    jobid   BIGINT NOT NULL,
    dochash BLOB NOT NULL,
    targets BLOB NOT NULL,
    known   TEXT NOT NULL CHECK (known IN ('told', 'kept', 'telling')),
    PRIMARY KEY (part, jobid, dochash)
);

-- Links to a document, in its own part, for each kind of link that is counted. offer is
-- how far the source is from the seeds, as it said; NULL: it does not know. A seed has a
-- link from nowhere, whose sourcehash is all zeros.
CREATE TABLE edges (
    part       BIGINT NOT NULL,
    jobid      BIGINT NOT NULL,
    targethash BLOB NOT NULL,
    counts     TEXT NOT NULL,
    sourcehash BLOB NOT NULL,
    linktype   TEXT NOT NULL,
    sourcepart BIGINT NOT NULL,
    offer      BIGINT,
    PRIMARY KEY (part, jobid, targethash, counts, sourcehash, linktype)
) /*clustered*/;

-- How far documents are, counting links of a kind. Without a distance a document is lost:
-- its best parent is, and another is not found yet. news is for those it leads to; grown
-- says that what a greater distance means has still to be looked at.
CREATE TABLE distances (
    part       BIGINT NOT NULL,
    jobid      BIGINT NOT NULL,
    dochash    BLOB NOT NULL,
    linktype   TEXT NOT NULL,
    distance   BIGINT,
    parentpart BIGINT,
    parenthash BLOB,
    parentlink TEXT,
    news       BIGINT NOT NULL CHECK (news IN (0, 1)),
    grown      BIGINT NOT NULL CHECK (grown IN (0, 1)),
    PRIMARY KEY (part, jobid, dochash, linktype)
) /*clustered*/;
-- They say all that is asked of them, and name their condition: otherwise SQLite would
-- rather walk all documents of the job.
CREATE INDEX distances_news ON distances (part, jobid, news, dochash, linktype, distance)
    WHERE news = 1;
CREATE INDEX distances_lost ON distances (part, jobid, distance, dochash, linktype, news)
    WHERE distance IS NULL;
CREATE INDEX distances_grown ON distances (part, jobid, grown, dochash, linktype) WHERE grown = 1;

-- Table 11.21 is the view carrydown. Rows live in the child's part.
CREATE TABLE carrydowns (
    part          BIGINT NOT NULL,
    jobid         BIGINT NOT NULL,
    childhash     BLOB NOT NULL,
    parentpart    BIGINT NOT NULL,
    parenthash    BLOB NOT NULL,
    dataname      TEXT NOT NULL,
    datavaluehash BLOB NOT NULL,
    datavalue     TEXT NOT NULL,
    PRIMARY KEY (part, jobid, childhash, parenthash, dataname, datavaluehash)
);

-- Whom a document has handed something, in its own part, each with a hash of it. arrived
-- is 0 while it is being handed over: if that is interrupted, all of it is done again.
CREATE TABLE handed (
    part     BIGINT NOT NULL,
    jobid    BIGINT NOT NULL,
    dochash  BLOB NOT NULL,
    children BLOB NOT NULL,
    arrived  BIGINT NOT NULL CHECK (arrived IN (0, 1)),
    PRIMARY KEY (part, jobid, dochash)
);

-- Table 11.22: owner is the id of a queue row.
CREATE TABLE prereqevents (
    part      BIGINT NOT NULL,
    owner     BIGINT NOT NULL,
    eventname TEXT NOT NULL,
    PRIMARY KEY (part, owner, eventname)
);

-- Table 11.23: events in play. They end with their node.
CREATE TABLE events (
    name     TEXT NOT NULL PRIMARY KEY,
    node     BIGINT NOT NULL,
    begun_ms BIGINT NOT NULL
);
