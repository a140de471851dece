-- What an administrator defines: connectors, connections, authorities, jobs.
-- Small tables, read whole, never distributed (reference tables on Citus).

CREATE TABLE settings (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

-- Registered connectors of all kinds (tables 11.1, 11.2; one view for each kind).
-- bodies says of an output that it takes the bytes of documents, so jobs keep them.
CREATE TABLE registrations (
    kind          TEXT NOT NULL CHECK (kind IN ('repository', 'output', 'authority',
                                                'mapping', 'transformation', 'notification')),
    classname     TEXT NOT NULL,
    description   TEXT NOT NULL,
    bodies        BIGINT NOT NULL CHECK (bodies IN (0, 1)),
    registered_ms BIGINT NOT NULL,
    PRIMARY KEY (kind, classname)
);

-- Table 11.3.
CREATE TABLE authdomains (
    domainname  TEXT NOT NULL PRIMARY KEY,
    description TEXT NOT NULL
);

-- Table 11.4.
CREATE TABLE authgroups (
    groupname   TEXT NOT NULL PRIMARY KEY,
    description TEXT NOT NULL
);

-- Connection definitions of all kinds (tables 11.5 to 11.9; one view for each kind).
-- prerequisite is the mapping connection that must be asked first. reindexed counts how
-- often everything was to be sent to an output again.
CREATE TABLE connections (
    id             BIGINT NOT NULL PRIMARY KEY,
    kind           TEXT NOT NULL CHECK (kind IN ('repository', 'output', 'authority',
                                                 'mapping', 'transformation', 'notification')),
    connectionname TEXT NOT NULL,
    description    TEXT,
    classname      TEXT NOT NULL,
    config         TEXT NOT NULL,
    maxcount       BIGINT NOT NULL,
    groupname      TEXT,
    authdomainname TEXT,
    prerequisite   TEXT,
    history_ms     BIGINT,
    reindexed      BIGINT NOT NULL,
    version        BIGINT NOT NULL,
    changed_ms     BIGINT NOT NULL
);
CREATE UNIQUE INDEX connections_by_name ON connections (kind, connectionname);
CREATE INDEX connections_by_connector ON connections (kind, classname);
CREATE INDEX connections_by_group ON connections (groupname) WHERE groupname IS NOT NULL;
CREATE INDEX connections_by_domain ON connections (authdomainname) WHERE authdomainname IS NOT NULL;
CREATE INDEX connections_by_prerequisite ON connections (prerequisite) WHERE prerequisite IS NOT NULL;

-- Table 11.10 (throttlespec): documents per millisecond by bin, and the two
-- limits that the web needs beside it.
CREATE TABLE throttles (
    ownerid         BIGINT NOT NULL,
    matchstring     TEXT NOT NULL,
    description     TEXT,
    throttle        DOUBLE PRECISION,
    connections_max BIGINT,
    bytes_per_s_max BIGINT,
    PRIMARY KEY (ownerid, matchstring)
);

-- Table 11.13. Blank intervals are infinite.
CREATE TABLE job_definitions (
    id              BIGINT NOT NULL PRIMARY KEY,
    name            TEXT NOT NULL,
    description     TEXT NOT NULL,
    connectionid    BIGINT NOT NULL,
    docspec         TEXT NOT NULL,
    startmethod     TEXT NOT NULL CHECK (startmethod IN ('manual', 'window begin', 'window inside')),
    priority        BIGINT NOT NULL CHECK (priority BETWEEN 1 AND 10),
    hopcountmode    TEXT NOT NULL CHECK (hopcountmode IN ('accurate', 'no delete', 'never delete')),
    type            TEXT NOT NULL CHECK (type IN ('scan once', 'continuous')),
    intervaltime    BIGINT,
    maxintervaltime BIGINT,
    reseedinterval  BIGINT,
    expirationtime  BIGINT,
    refetch         TEXT NOT NULL CHECK (refetch IN ('estimate', 'formula', 'fixed')),
    fetches_per_day BIGINT,
    onfailure       TEXT NOT NULL CHECK (onfailure IN ('skip', 'abort')),
    version         BIGINT NOT NULL,
    changed_ms      BIGINT NOT NULL
);
CREATE UNIQUE INDEX job_definitions_by_name ON job_definitions (name);
CREATE INDEX job_definitions_by_connection ON job_definitions (connectionid);

-- The pipeline of a job: a tree of transformations and outputs. prerequisite is
-- the ordinal of the stage before it; NULL hears the repository itself.
CREATE TABLE jobpipelines (
    ownerid      BIGINT NOT NULL,
    ordinal      BIGINT NOT NULL,
    prerequisite BIGINT,
    kind         TEXT NOT NULL CHECK (kind IN ('transformation', 'output')),
    connectionid BIGINT NOT NULL,
    description  TEXT,
    spec         TEXT NOT NULL,
    PRIMARY KEY (ownerid, ordinal)
);
CREATE INDEX jobpipelines_by_connection ON jobpipelines (connectionid);

CREATE TABLE jobnotifications (
    ownerid      BIGINT NOT NULL,
    ordinal      BIGINT NOT NULL,
    connectionid BIGINT NOT NULL,
    description  TEXT,
    spec         TEXT NOT NULL,
    PRIMARY KEY (ownerid, ordinal)
);
CREATE INDEX jobnotifications_by_connection ON jobnotifications (connectionid);

-- Table 11.14. A NULL list means what spec 7 says of an unset field.
CREATE TABLE schedules (
    ownerid        BIGINT NOT NULL,
    ordinal        BIGINT NOT NULL,
    yearlist       TEXT,
    monthofyear    TEXT,
    dayofmonth     TEXT,
    dayofweek      TEXT,
    hourofday      TEXT,
    minutesofhour  TEXT,
    timezone       TEXT,
    windowlength   BIGINT,
    requestminimum BIGINT NOT NULL CHECK (requestminimum IN (0, 1)),
    PRIMARY KEY (ownerid, ordinal)
);

-- The second table 11.14.
CREATE TABLE jobhopfilters (
    ownerid  BIGINT NOT NULL,
    linktype TEXT NOT NULL,
    maxhops  BIGINT NOT NULL,
    PRIMARY KEY (ownerid, linktype)
);
