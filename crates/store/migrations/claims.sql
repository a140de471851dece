-- Which document an output keeps under a URI, and which jobs send it there.

-- A claim says that a document is to be kept in an output under a URI. It lies in the part
-- of the URI, which every claimant computes alike, wherever its document lies (docpart). The
-- claimant with the highest ordinal owns the URI: the output keeps that document under it.
CREATE TABLE claims (
    part         BIGINT NOT NULL,
    outputid     BIGINT NOT NULL,
    urihash      BLOB NOT NULL,
    connectionid BIGINT NOT NULL,
    dochash      BLOB NOT NULL,
    docpart      BIGINT NOT NULL,
    ordinal      BIGINT NOT NULL,
    PRIMARY KEY (part, outputid, urihash, connectionid, dochash)
);

-- ownership says what the last delivery found: the document owns its URI ('owned'), or
-- another one does ('shadowed'), or the output does not want it ('rejected'). 'unclaimed' is
-- one that was delivered before there were claims, and whose claim is to be written. It is
-- NULL before the first delivery. ways are
-- the ids of the jobs that send the document to the output, in the order they are tried.
-- resent tells a decision that is delivered again from its earlier deliveries.
ALTER TABLE ingests ADD COLUMN ownership TEXT;
ALTER TABLE ingests ADD COLUMN ways TEXT;
ALTER TABLE ingests ADD COLUMN resent BIGINT;
-- Claims find who else has a URI.
DROP INDEX ingests_by_uri;

-- Outputs that a job has sent documents to and does not send to any more: what is left of
-- them there goes when the job next looks at them, or lets them go.
CREATE TABLE former_outputs (
    ownerid      BIGINT NOT NULL,
    connectionid BIGINT NOT NULL,
    PRIMARY KEY (ownerid, connectionid)
);
