-- The web connector's own tables: made when it is registered, dropped when it is
-- deregistered.

-- What robots.txt of an origin said, in the part of its domain. body is the last copy
-- from a good answer; without one, closed says whether nothing or everything is
-- allowed.
CREATE TABLE IF NOT EXISTS robots (
    part        BIGINT NOT NULL,
    origin      TEXT NOT NULL,
    status      BIGINT,
    body        BLOB,
    closed      BIGINT NOT NULL CHECK (closed IN (0, 1)),
    asked_ms    BIGINT NOT NULL,
    good_ms     BIGINT,
    failing_ms  BIGINT,
    expires_ms  BIGINT NOT NULL,
    PRIMARY KEY (part, origin)
);

-- Which addresses a host's name led to when it was last asked for. People look at
-- them; nothing connects to them, since a stored address would defeat the guard
-- against names that change their mind (T7).
CREATE TABLE IF NOT EXISTS addresses (
    part     BIGINT NOT NULL,
    host     TEXT NOT NULL,
    address  TEXT NOT NULL,
    found_ms BIGINT NOT NULL,
    PRIMARY KEY (part, host, address)
);

-- The session that a connection has with a site it logs in to. login is a hash of how:
-- a session that was begun in another way is not used. A login that failed says when and
-- why, and leaves the session before it.
CREATE TABLE IF NOT EXISTS sessions (
    connectionid BIGINT NOT NULL,
    login        TEXT NOT NULL,
    number       BIGINT NOT NULL,
    cookies      TEXT NOT NULL,
    since_ms     BIGINT NOT NULL,
    failed_ms    BIGINT,
    failure      TEXT,
    PRIMARY KEY (connectionid)
);
