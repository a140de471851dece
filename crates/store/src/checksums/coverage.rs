//! Which rows carry checksums, which of their columns are covered, and why others are not.
//!
//! This is the one place that says it: `verify`, the upgrade of older databases and the
//! functions of the tables work from here. A test holds it against the schema: every column
//! of these tables is covered or left out with a reason, and every other table has a reason.
//! A change of a list here is a new version of the schema (`migrate::CHECKSUMS_VERSION`).

use super::ChecksummedTable;

const RESTORE: &str = "restore from a backup";
const DEFINE_AGAIN: &str =
    "import the definitions again (`driftline import`), or restore from a backup";
const BY_INDEX: &str = "an index holds it too, and the database compares the two";
const SHOWN_ONLY: &str = "it is only shown";
const COUNTS_CHANGES: &str = "it only tells that something has changed";
const CLAIMED_STATE: &str =
    "it changes with each delivery; `verify` compares it with counters and claims";
const CONDUCTED: &str =
    "it is found out again, or written without the rest, by whoever conducts the job";

/// All tables whose rows carry checksums.
pub(crate) static TABLES: &[&ChecksummedTable] = &[
    &DOCUMENTS,
    &INGESTS,
    &CHUNKS,
    &OBJECTS,
    &CURSORS,
    &SETTINGS,
    &CONNECTIONS,
    &THROTTLES,
    &JOB_DEFINITIONS,
    &JOB_PIPELINES,
    &JOB_NOTIFICATIONS,
    &SCHEDULES,
    &JOB_HOP_FILTERS,
    &JOB_STATES,
    &LOOKS,
];

/// Those that there were before checksums, whose rows got theirs with an upgrade.
pub(crate) fn older() -> Vec<&'static ChecksummedTable> {
    let is_older = |it: &&ChecksummedTable| ![LOOKS.table, DOCUMENTS.table].contains(&it.table);
    let others = TABLES.iter().copied().filter(is_older);
    std::iter::once(&OLDER_DOCUMENTS).chain(others).collect()
}

/// The columns of documents that were covered from the beginning.
macro_rules! document_columns {
    () => {
        "part, connectionid, dochash, docid, outcome, httpstatus, mediatype, language, title, \
         length, etag, lastmodified, version, contenthash, texthash, simhash, redirectpart, \
         redirecthash, duplicatepart, duplicateof, first_ms, checked_ms, fetched_ms, changed_ms, \
         checks, changes, quiet_ms, restless_ms, chunk, ordinal, bodychunk, missing, \
         missing_run, missing_ms, removed_ms, reason"
    };
}

pub(crate) static DOCUMENTS: ChecksummedTable = ChecksummedTable {
    table: "documents",
    covered: concat!(document_columns!(), ", requisite"),
    later: Some("requisite"),
    // A document that is written again keeps the id of its row, whatever it was given.
    left_out: &[("id", BY_INDEX)],
    remedy: "the next look at the document fetches all of it and writes the row anew; until then \
             nothing that the row says is used",
};

/// Documents as they were before requisites, none of which counts in a checksum.
static OLDER_DOCUMENTS: ChecksummedTable = ChecksummedTable {
    table: DOCUMENTS.table,
    covered: document_columns!(),
    later: None,
    left_out: DOCUMENTS.left_out,
    remedy: DOCUMENTS.remedy,
};

pub(crate) static LOOKS: ChecksummedTable = ChecksummedTable {
    table: "looks",
    covered: "part, id, base, outcome, httpstatus, etag, lastmodified, checked_ms, fetched_ms, \
              checks, quiet_ms, restless_ms, missing, missing_run, missing_ms",
    later: None,
    left_out: &[],
    remedy: "it is left out of account; the next look at the document writes it anew",
};

pub(crate) static INGESTS: ChecksummedTable = ChecksummedTable {
    table: "ingests",
    covered: "part, outputid, connectionid, dochash, componenthash, docuri, urihash, authorityname, \
              lastversion, lastoutputversion, lasttransformationversion, lastchange, changecount, \
              decided_seq, ways",
    later: None,
    left_out: &[
        ("id", BY_INDEX),
        ("firstingest", SHOWN_ONLY),
        ("lastingest", SHOWN_ONLY),
        ("staleuris", CLAIMED_STATE),
        ("decision", CLAIMED_STATE),
        ("jobid", CLAIMED_STATE),
        ("delivered_seq", CLAIMED_STATE),
        ("checktime", CLAIMED_STATE),
        ("failcount", CLAIMED_STATE),
        ("failtime", CLAIMED_STATE),
        ("errortext", CLAIMED_STATE),
        ("ownership", CLAIMED_STATE),
        ("resent", CLAIMED_STATE),
    ],
    remedy: "the next look at the document sends it to the output again and writes the row anew",
};

pub(crate) static CHUNKS: ChecksummedTable = ChecksummedTable {
    table: "chunks",
    covered: "part, id, jobid, run, seq, documents, adds, updates, removes, keeps, errors, bytes, \
              committed_ms, facts_object, facts_offset, facts_len, bodies_object",
    later: None,
    left_out: &[
        ("node", "it only matters until the commit"),
        ("token", "it only matters until the commit"),
        ("claimed_ms", "it only matters until the commit"),
        ("claim", "it only matters until the commit"),
        ("state", "it has three values, and commit numbers and indexes tell them apart"),
        ("facts", "facts carry checksums of their own"),
    ],
    remedy: RESTORE,
};

pub(crate) static OBJECTS: ChecksummedTable = ChecksummedTable {
    table: "objects",
    covered: "part, id, path, kind, bytes, hash",
    later: None,
    left_out: &[
        ("state", "it has three values, and indexes tell them apart"),
        ("staged_ms", SHOWN_ONLY),
        ("published_ms", SHOWN_ONLY),
        ("condemned_ms", BY_INDEX),
    ],
    remedy: RESTORE,
};

pub(crate) static CURSORS: ChecksummedTable = ChecksummedTable {
    table: "cursors",
    covered: "part, consumer, seq, changed_ms",
    later: None,
    left_out: &[],
    remedy: "make that index anew (`driftline links rebuild`, `driftline search rebuild`), or \
             restore from a backup",
};

pub(crate) static SETTINGS: ChecksummedTable = ChecksummedTable {
    table: "settings",
    covered: "name, value",
    later: None,
    left_out: &[],
    remedy: RESTORE,
};

pub(crate) static CONNECTIONS: ChecksummedTable = ChecksummedTable {
    table: "connections",
    covered: "id, kind, connectionname, description, classname, config, maxcount, groupname, \
              authdomainname, prerequisite, history_ms",
    later: None,
    left_out: &[
        ("reindexed", "another number sends everything to the output once more"),
        ("version", COUNTS_CHANGES),
        ("changed_ms", SHOWN_ONLY),
    ],
    remedy: DEFINE_AGAIN,
};

pub(crate) static THROTTLES: ChecksummedTable = ChecksummedTable {
    table: "throttles",
    covered: "ownerid, matchstring, description, throttle, connections_max, bytes_per_s_max",
    later: None,
    left_out: &[],
    remedy: DEFINE_AGAIN,
};

pub(crate) static JOB_DEFINITIONS: ChecksummedTable = ChecksummedTable {
    table: "job_definitions",
    covered: "id, name, description, connectionid, docspec, priority, type, intervaltime, \
              maxintervaltime, reseedinterval, expirationtime, startmethod, hopcountmode, refetch, \
              fetches_per_day, onfailure, removal_limit, proven_removal_limit",
    later: None,
    left_out: &[("version", COUNTS_CHANGES), ("changed_ms", SHOWN_ONLY)],
    remedy: DEFINE_AGAIN,
};

pub(crate) static JOB_PIPELINES: ChecksummedTable = ChecksummedTable {
    table: "jobpipelines",
    covered: "ownerid, ordinal, prerequisite, kind, connectionid, description, spec",
    later: None,
    left_out: &[],
    remedy: DEFINE_AGAIN,
};

pub(crate) static JOB_NOTIFICATIONS: ChecksummedTable = ChecksummedTable {
    table: "jobnotifications",
    covered: "ownerid, ordinal, connectionid, description, spec",
    later: None,
    left_out: &[],
    remedy: DEFINE_AGAIN,
};

pub(crate) static SCHEDULES: ChecksummedTable = ChecksummedTable {
    table: "schedules",
    covered: "ownerid, ordinal, yearlist, monthofyear, dayofmonth, dayofweek, hourofday, \
              minutesofhour, timezone, windowlength, requestminimum, repeat_ms",
    later: None,
    left_out: &[],
    remedy: DEFINE_AGAIN,
};

pub(crate) static JOB_HOP_FILTERS: ChecksummedTable = ChecksummedTable {
    table: "jobhopfilters",
    covered: "ownerid, linktype, maxhops",
    later: None,
    left_out: &[],
    remedy: DEFINE_AGAIN,
};

pub(crate) static JOB_STATES: ChecksummedTable = ChecksummedTable {
    table: "job_states",
    covered: "jobid, phase, minimal, paused, waiting, stopping, resuming, aborting_from, restart, \
              run, run_kind, starttime, endtime, errortext, windowend, reseedtime, failtime, \
              failcount, removal_round, released_round, approved_round, held_round, held_ms, \
              removals_only",
    later: None,
    left_out: &[
        ("seeding", CONDUCTED),
        ("repository_present", CONDUCTED),
        ("outputs_present", CONDUCTED),
        ("node", CONDUCTED),
        ("seedingversion", CONDUCTED),
        ("lastchecktime", CONDUCTED),
        ("lasttime", CONDUCTED),
        ("judged", CONDUCTED),
        ("refetch", CONDUCTED),
        ("removal_base", CONDUCTED),
        ("removal_base_ms", CONDUCTED),
        ("changed_ms", COUNTS_CHANGES),
    ],
    remedy: RESTORE,
};

/// The other tables, and why their rows carry none.
#[cfg(test)]
pub(super) static WITHOUT: &[(&str, &str)] = &[
    (
        "queue",
        "its states change with every look; they are compared with counters, bins and chunks",
    ),
    ("bins", "politeness finds it out again; its counts are compared with the queue"),
    ("bin_work", "compared with the queue"),
    ("traps", "counted again as pages come"),
    ("outlinks", "told again with every look at the document"),
    ("edges", "told again with every look at the document"),
    ("distances", "follow from the edges"),
    ("carrydowns", "handed again with every look at the parent"),
    ("handed", "handed again with every look at the parent"),
    ("prereqevents", "gone with the event"),
    ("events", "gone with the process"),
    ("nodes", "gone with the process"),
    ("slots", "gone with the process"),
    ("slot_waits", "gone with the process"),
    ("leases", "taken anew by every process; commit numbers are compared with the chunks"),
    ("chunk_tasks", SHOWN_ONLY),
    ("shards", "the search index is made anew from the documents"),
    ("shard_files", "the search index is made anew from the documents"),
    ("placements", "the search index is made anew from the documents"),
    ("link_rows", "`driftline links verify` compares them"),
    ("registrations", "compared with the program at every start"),
    ("authdomains", "a name that connections name"),
    ("authgroups", "a name that connections name"),
    ("claims", "compared with what outputs have"),
    ("former_outputs", "a key and nothing else, which an index holds too"),
    ("removals", "compared with the limit of one run"),
    ("runs", SHOWN_ONLY),
    ("counters", "compared with what they count"),
    ("history", SHOWN_ONLY),
    ("history_counts", "compared with what they count"),
    ("outages", "gone with the process"),
    ("api_tokens", "a damaged hash opens nothing"),
    ("audit", "its chain tells what was changed"),
    ("audit_chain", "it is a chain of hashes itself"),
    ("robots", "asked for again when it expires"),
    ("addresses", SHOWN_ONLY),
    ("sessions", "sealed, and begun anew when it does not open"),
];
