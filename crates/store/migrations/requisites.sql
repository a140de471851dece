-- Page requisites: what a browser fetches to show a page, beyond what the job's scope reaches.

-- What a document is to its job: a page (0), or only needed by pages (1). unlinked says of a page
-- that the run, which looks at what it finds again, has so far only named it as a requisite: if
-- that is still so at its end, it becomes one. needed_run is the last run that named it so.
ALTER TABLE queue ADD COLUMN requisite BIGINT NOT NULL DEFAULT 0;
ALTER TABLE queue ADD COLUMN unlinked BIGINT NOT NULL DEFAULT 0;
ALTER TABLE queue ADD COLUMN needed_run BIGINT;
-- Requisites in a row that lead to it: style sheets that import each other, frames in frames.
ALTER TABLE queue ADD COLUMN levels BIGINT NOT NULL DEFAULT 0;
CREATE INDEX queue_unlinked ON queue (part, jobid, id) WHERE unlinked = 1;

-- What outputs have a document as. Its checksum covers it where it is not 0.
ALTER TABLE documents ADD COLUMN requisite BIGINT NOT NULL DEFAULT 0;

-- Whether outputs of a connector take requisites.
ALTER TABLE registrations ADD COLUMN requisites BIGINT NOT NULL DEFAULT 0;
