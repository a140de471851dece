//! The schema holds what the seeds name, and is refused when it is newer.

use super::*;
use crate::testing::both_databases;

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    both_databases(|db| {
        db.write(|tx| {
            tx.execute(
                "INSERT INTO schema_versions (version, name, applied_ms) VALUES ($1, $2, $3)",
                &[(SCHEMA_VERSION + 1).into(), "from the future".into(), 0.into()],
            )
        })?;
        for refused in [migrate(db, 0).map(|_| ()), check(db)] {
            let message = refused.expect_err("a newer schema must be refused").to_string();
            let newer = SCHEMA_VERSION + 1;
            let said = format!("schema {newer}, this program knows {SCHEMA_VERSION}");
            assert!(message.contains(&said), "{message}");
        }
        Ok(())
    });
}

#[test]
fn a_database_that_was_never_finished_is_told_so() {
    let place = tempfile::tempdir().unwrap();
    let db = Db::open_sqlite(&place.path().join("empty.sqlite")).unwrap();
    let message = check(&db).unwrap_err().to_string();
    assert!(message.contains("schema 0") && message.contains("driftline init"), "{message}");
}

#[test]
fn migrating_again_changes_nothing() {
    both_databases(|db| {
        assert_eq!(migrate(db, 0)?, Vec::<i64>::new());
        check(db)
    });
}

/// Every table of seed 002 (11.1 to 11.26) and seed 001 with its columns.
const SEED_TABLES: &[(&str, &str)] = &[
    ("connectors", "classname description"),
    ("outputconnectors", "classname description"),
    ("authconnectors", "classname description"),
    ("mapconnectors", "classname description"),
    ("authdomains", "domainname description"),
    ("authgroups", "groupname description"),
    ("outputconnections", "connectionname description classname configxml maxcount"),
    (
        "authconnections",
        "authorityname description classname configxml mappingname authdomainname groupname maxcount",
    ),
    ("mapconnections", "mappingname description classname configxml maxcount"),
    ("repoconnections", "connectionname description classname configxml maxcount groupname"),
    ("throttlespec", "ownername description matchstring throttle"),
    (
        "repohistory",
        "id owner activitytype entityid datasize resultcode resultdesc starttime endtime",
    ),
    (
        "jobs",
        "id description connectionname outputname docspec outputspec startmethod priority \
         hopcountmode type intervaltime maxintervaltime reseedinterval expirationtime \
         status processid starttime endtime errortext windowend lastchecktime lasttime \
         reseedtime failtime failcount",
    ),
    (
        "schedules",
        "ownerid ordinal yearlist monthofyear dayofmonth dayofweek hourofday minutesofhour \
         timezone windowlength",
    ),
    ("jobhopfilters", "ownerid linktype maxhops"),
    // Without docpriority and priorityset: there is no priority, and none is made up.
    (
        "jobqueue",
        "id jobid docid dochash status processid seedingprocessid isseed checktime checkaction \
         failcount failtime",
    ),
    ("intrinsiclink", "jobid parentidhash childidhash linktype isnew"),
    ("hopcount", "id jobid parentidhash linktype deathmark distance"),
    ("hopdeletedeps", "ownerid jobid linktype parentidhash childidhash"),
    ("carrydown", "jobid parentidhash childidhash dataname datavalue datavaluehash isnew"),
    ("prereqevents", "owner eventname"),
    ("events", "name"),
    (
        "ingeststatus",
        "id dockey docuri urihash connectionname authorityname lastversion lastoutputversion \
         firstingest lastingest changecount",
    ),
    ("link", "\"index\" link chunk_id state"),
    ("chunk", "\"index\" id"),
    ("host", "\"index\" host type state health"),
    ("crawler", "\"index\" chunk_id c_host c_task"),
    ("index_builder", "\"index\" chunk_id ib_host ib_task"),
    ("index_server", "\"index\" \"row\" chunk_id is_host"),
];

#[test]
fn every_table_and_column_of_the_seeds_can_be_looked_at() {
    both_databases(|db| {
        for (table, columns) in SEED_TABLES {
            let columns = columns.split_whitespace().collect::<Vec<_>>().join(", ");
            let sql = format!("SELECT {columns} FROM {table} LIMIT 1");
            db.read(move |tx| tx.query(&sql, &[], |_| Ok(()))).unwrap_or_else(|error| {
                panic!("{table} ({columns}): {error}");
            });
        }
        Ok(())
    });
}
