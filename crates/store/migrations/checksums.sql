-- Checksums of rows, over the columns that store/src/checksums/declared.rs names. Rows of
-- before get theirs in the transaction that adds the column.
ALTER TABLE documents ADD COLUMN checksum BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ingests ADD COLUMN checksum BIGINT NOT NULL DEFAULT 0;
ALTER TABLE chunks ADD COLUMN checksum BIGINT NOT NULL DEFAULT 0;
ALTER TABLE objects ADD COLUMN checksum BIGINT NOT NULL DEFAULT 0;
ALTER TABLE cursors ADD COLUMN checksum BIGINT NOT NULL DEFAULT 0;
ALTER TABLE settings ADD COLUMN checksum BIGINT NOT NULL DEFAULT 0;
ALTER TABLE connections ADD COLUMN checksum BIGINT NOT NULL DEFAULT 0;
ALTER TABLE throttles ADD COLUMN checksum BIGINT NOT NULL DEFAULT 0;
ALTER TABLE job_definitions ADD COLUMN checksum BIGINT NOT NULL DEFAULT 0;
ALTER TABLE jobpipelines ADD COLUMN checksum BIGINT NOT NULL DEFAULT 0;
ALTER TABLE jobnotifications ADD COLUMN checksum BIGINT NOT NULL DEFAULT 0;
ALTER TABLE schedules ADD COLUMN checksum BIGINT NOT NULL DEFAULT 0;
ALTER TABLE jobhopfilters ADD COLUMN checksum BIGINT NOT NULL DEFAULT 0;
ALTER TABLE job_states ADD COLUMN checksum BIGINT NOT NULL DEFAULT 0;
