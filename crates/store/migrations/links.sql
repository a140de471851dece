-- The link index where many machines share it: a sorted map. A data directory keeps its
-- link index in files beside the rows, and this table empty.
CREATE TABLE link_rows (
    part  BIGINT NOT NULL,
    key   BLOB NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (part, key)
) /*clustered*/;
