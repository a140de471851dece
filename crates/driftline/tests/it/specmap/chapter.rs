//! What the chapter on ManifoldCF's data structures names: its tables with their
//! columns, its job states, its document states. Written out here, in the order
//! of the chapter, so that the map can be held against it without the chapter;
//! where the chapter itself is at hand, [`read`] takes the same from its text.

/// A described table of the chapter. Table 11.2 describes four of one shape.
pub struct Table {
    /// The names of the tables it describes.
    pub names: &'static str,
    /// Its columns, in order.
    pub columns: &'static str,
}

const fn table(names: &'static str, columns: &'static str) -> Table {
    Table { names, columns }
}

/// Tables 11.1 to 11.26, as far as they describe columns.
pub const TABLES: [Table; 21] = [
    table("outputconnectors authconnectors mapconnectors connectors", "classname description"),
    table("authdomains", "domainname description"),
    table("authgroups", "groupname description"),
    table("outputconnections", "connectionname description classname configxml maxcount"),
    table(
        "authconnections",
        "authorityname description classname configxml mappingname authdomainname groupname maxcount",
    ),
    // The chapter prints mappingname twice: the connection's own, and its prerequisite.
    table("mapconnections", "mappingname description classname configxml mappingname maxcount"),
    table("repoconnections", "connectionname description classname configxml maxcount groupname"),
    table("throttlespec", "ownername description matchstring throttle"),
    table(
        "repohistory",
        "id owner activitytype entityid datasize resultcode resultdesc starttime endtime",
    ),
    table(
        "jobs",
        "id description connectionname outputname docspec outputspec startmethod priority \
         hopcountmode type intervaltime maxintervaltime reseedinterval expirationtime",
    ),
    table(
        "schedules",
        "ownerid ordinal yearlist monthofyear dayofmonth dayofweek hourofday minutesofhour \
         timezone windowlength",
    ),
    table("jobhopfilters", "ownerid linktype maxhops"),
    table(
        "jobs",
        "id status processid starttime endtime errortext windowend lastchecktime lasttime \
         reseedtime failtime failcount",
    ),
    table(
        "jobqueue",
        "id jobid docid dochash status processid seedingprocessid docpriority priorityset isseed \
         checktime checkaction failcount failtime",
    ),
    table("intrinsiclink", "jobid parentidhash childidhash linktype isnew"),
    table("hopcount", "id jobid parentidhash linktype deathmark distance"),
    table("hopdeletedeps", "ownerid jobid linktype parentidhash childidhash"),
    table("carrydown", "jobid parentidhash childidhash dataname datavalue datavaluehash isnew"),
    table("prereqevents", "owner eventname"),
    table("events", "name"),
    table(
        "ingeststatus",
        "id dockey docuri urihash connectionname authorityname lastversion lastoutputversion \
         firstingest lastingest changecount",
    ),
];

/// Table 11.24.
pub const JOB_STATES: [&str; 42] = [
    "INACTIVE",
    "ACTIVE",
    "PAUSED",
    "PAUSING",
    "ACTIVEWAITING",
    "PAUSINGWAITING",
    "RESUMING",
    "SHUTTINGDOWN",
    "ACTIVEWAIT",
    "PAUSEDWAIT",
    "ABORTING",
    "STARTINGUP",
    "STARTINGUPMINIMAL",
    "DELETESTARTINGUP",
    "ABORTINGSTARTINGUP",
    "READYFORSTARTUP",
    "READYFORSTARTUPMINIMAL",
    "READYFORDELETE",
    "ACTIVESEEDING",
    "PAUSINGSEEDING",
    "ACTIVEWAITINGSEEDING",
    "PAUSINGWAITINGSEEDING",
    "RESUMINGSEEDING",
    "ABORTINGSEEDING",
    "PAUSEDSEEDING",
    "ACTIVEWAITSEEDING",
    "PAUSEDWAITSEEDING",
    "ABORTINGFORRESTART",
    "ABORTINGFORRESTARTMINIMAL",
    "ABORTINGFORRESTARTSEEDING",
    "ABORTINGFORRESTARTSEEDINGMINIMAL",
    "ABORTINGSTARTINGUPFORRESTART",
    "ABORTINGSTARTINGUPFORRESTARTMINIMAL",
    "READYFORNOTIFY",
    "NOTIFYINGOFCOMPLETION",
    "ACTIVE_UNINSTALLED",
    "ACTIVESEEDING_UNINSTALLED",
    "ACTIVE_NOOUTPUT",
    "ACTIVESEEDING_NOOUTPUT",
    "ACTIVE_NEITHER",
    "ACTIVESEEDING_NEITHER",
    "READYFORDELETE_NOOUTPUT",
];

/// States that jobs of ManifoldCF have and table 11.24 lacks.
pub const FURTHER_JOB_STATES: [&str; 5] = [
    "DELETING",
    "DELETING_NOOUTPUT",
    "ABORTINGSHUTTINGDOWN",
    "READYFORDELETENOTIFY",
    "NOTIFYINGOFDELETION",
];

/// Table 11.25.
pub const DOCUMENT_STATES: [&str; 13] = [
    "PENDING",
    "ACTIVE",
    "COMPLETE",
    "UNCHANGED",
    "PENDINGPURGATORY",
    "ACTIVEPURGATORY",
    "PURGATORY",
    "ELIGIBLEFORDELETE",
    "BEINGDELETED",
    "BEINGCLEANED",
    "ACTIVENEEDRESCAN",
    "ACTIVENEEDRESCANPURGATORY",
    "HOPCOUNTREMOVED",
];

/// Names that the chapter misprints, and what they are.
const MISPRINTS: [(&str, &str); 5] = [
    ("ACTIVWAITING", "ACTIVEWAITING"),
    ("ACTIVEMWAIT", "ACTIVEWAIT"),
    ("ACTIVEMSEEDING", "ACTIVESEEDING"),
    ("ACTIVEMWAITINGSEEDING", "ACTIVEWAITINGSEEDING"),
    ("ACTIVEMWAITSEEDING", "ACTIVEWAITSEEDING"),
];

/// A table as the chapter's text has it: its heading's first word, its first column.
#[derive(Debug, PartialEq, Eq)]
pub struct Printed {
    /// `Column` or `State`.
    pub heading: String,
    /// The names in its first column, without misprints.
    pub names: Vec<String>,
}

/// The tables of columns and of states in the chapter's text, in order.
///
/// Cells are parted by tabs; prose has none. A page break may fall into a table,
/// and a cell that goes on behind it stands beside an empty first cell.
pub fn read(text: &str) -> Vec<Printed> {
    let mut tables: Vec<Printed> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("Table 11.") {
            inside = false;
        }
        let Some((first, second)) = line.split_once('\t') else { continue };
        if second == "Meaning" {
            inside = true;
            tables.push(Printed { heading: first.into(), names: Vec::new() });
            continue;
        }
        let name = first.replace("<code>", "").replace("</code>", "");
        let is_name = |c: char| c.is_ascii_alphabetic() || c == '_';
        if let Some(table) = tables.last_mut()
            && inside
            && !name.is_empty()
            && name.chars().all(is_name)
        {
            table.names.push(corrected(&name));
        }
    }
    tables
}

fn corrected(name: &str) -> String {
    let found = MISPRINTS.iter().find(|(printed, _)| *printed == name);
    found.map_or(name, |(_, meant)| meant).into()
}
