//! Connections keep what they refer to, and tell their jobs when they change.

use super::*;
use crate::ids::JobId;
use crate::tables::authorities::NamedGroup;
use crate::tables::jobs::Job;
use crate::tables::notifications::{self, Notification};
use crate::tables::pipelines::{self, PipelineStage, StageKind};
use crate::tables::throttles::{self, Throttle};
use crate::testing::both_databases;

fn connection(id: i64, name: &str) -> Connection {
    Connection {
        id: ConnectionId(id),
        name: name.into(),
        description: None,
        classname: "web".into(),
        config: "{}".into(),
        maxcount: 10,
        groupname: None,
        authdomainname: None,
        prerequisite: None,
        history_ms: Some(1_000),
    }
}

#[test]
fn a_connection_is_saved_whole_and_can_be_renamed() {
    both_databases(|db| {
        let first = connection(1, "the web");
        let renamed = Connection { description: Some("ours".into()), ..connection(1, "intranet") };
        for it in [first, renamed.clone()] {
            db.write(move |tx| save(tx, ConnectionKind::Repository, &it, 5))?;
        }
        assert_eq!(db.read(|tx| find(tx, ConnectionKind::Repository, "the web"))?, None);
        let found = db.read(|tx| find(tx, ConnectionKind::Repository, "intranet"))?;
        assert_eq!(found, Some(renamed.clone()));
        assert_eq!(db.read(|tx| find(tx, ConnectionKind::Output, "intranet"))?, None);
        assert_eq!(db.read(|tx| list(tx, ConnectionKind::Repository, "", 9))?, [renamed]);
        Ok(())
    });
}

#[test]
fn two_connections_of_a_kind_cannot_share_a_name() {
    both_databases(|db| {
        db.write(|tx| save(tx, ConnectionKind::Output, &connection(1, "solr"), 0))?;
        db.write(|tx| save(tx, ConnectionKind::Repository, &connection(2, "solr"), 0))?;
        let refused = db.write(|tx| save(tx, ConnectionKind::Output, &connection(3, "solr"), 0));
        assert!(matches!(refused, Err(Error::Duplicate { .. })), "{refused:?}");
        Ok(())
    });
}

#[test]
fn its_version_counts_changes_and_nothing_else() {
    both_databases(|db| {
        let save = |it: Connection| {
            db.write(move |tx| {
                super::save(tx, ConnectionKind::Output, &it, 0)?;
                version(tx, it.id)
            })
        };
        assert_eq!(save(connection(1, "disk"))?, Some(1));
        assert_eq!(save(connection(1, "disk"))?, Some(1), "nothing has changed");
        assert_eq!(save(Connection { maxcount: 3, ..connection(1, "disk") })?, Some(2));
        assert_eq!(db.read(|tx| version(tx, ConnectionId(9)))?, None);
        let other =
            db.write(|tx| super::save(tx, ConnectionKind::Repository, &connection(1, "disk"), 0));
        assert!(other.unwrap_err().to_string().contains("another kind"));
        let (kind, found) = db.read(|tx| load(tx, ConnectionId(1)))?.expect("it is there");
        assert_eq!((kind, found.maxcount), (ConnectionKind::Output, 3));
        Ok(())
    });
}

#[test]
fn a_connection_names_only_what_is_there_and_what_its_kind_has() {
    both_databases(|db| {
        let refused = |kind, it: Connection| {
            let outcome = db.write(move |tx| save(tx, kind, &it, 0));
            outcome.expect_err("it cannot be held").to_string()
        };
        let some = |text: &str| Some(text.to_owned());
        let bare = || connection(1, "x");
        assert!(
            refused(ConnectionKind::Output, Connection { maxcount: 0, ..bare() })
                .contains("at least 1")
        );
        assert!(
            refused(ConnectionKind::Output, Connection { name: "a\nb".into(), ..bare() })
                .contains("name")
        );
        let grouped = Connection { groupname: some("staff"), ..bare() };
        assert!(refused(ConnectionKind::Output, grouped.clone()).contains("this kind has no"));
        assert!(
            refused(ConnectionKind::Repository, grouped.clone())
                .contains("no authority group named")
        );
        assert!(refused(ConnectionKind::Authority, bare()).contains("name one"));
        db.write(|tx| {
            let staff = NamedGroup { name: "staff".into(), description: String::new() };
            authorities::save(tx, Realm::Groups, &staff)
        })?;
        let mapped = Connection { prerequisite: some("m"), ..grouped };
        assert!(
            refused(ConnectionKind::Authority, mapped.clone())
                .contains("mapping connection named m")
        );
        assert!(refused(ConnectionKind::Repository, mapped.clone()).contains("no prerequisite"));
        db.write(move |tx| {
            save(tx, ConnectionKind::Mapping, &connection(2, "m"), 0)?;
            save(
                tx,
                ConnectionKind::Mapping,
                &Connection { prerequisite: some("m"), ..connection(3, "n") },
                0,
            )?;
            save(tx, ConnectionKind::Authority, &mapped, 0)
        })?;
        for (id, name, first) in [(2, "m", "n"), (2, "m", "m"), (2, "k", "m"), (2, "k", "n")] {
            let round = Connection { prerequisite: some(first), ..connection(id, name) };
            assert!(
                refused(ConnectionKind::Mapping, round).contains("circle"),
                "{name} after {first}"
            );
        }
        db.write(|tx| save(tx, ConnectionKind::Mapping, &connection(2, "k"), 0))?;
        let renamed = db.read(|tx| find(tx, ConnectionKind::Authority, "x"))?.expect("it is there");
        assert_eq!(renamed.prerequisite.as_deref(), Some("k"), "it follows a new name");
        Ok(())
    });
}

/// A job from `web` to `disk` that tells `mail`.
fn make_job(tx: &mut Tx<'_>) -> Result<()> {
    save(tx, ConnectionKind::Repository, &connection(1, "web"), 0)?;
    save(tx, ConnectionKind::Output, &connection(2, "disk"), 0)?;
    save(tx, ConnectionKind::Notification, &connection(3, "mail"), 0)?;
    jobs::save(tx, &Job::new(JobId(1), "docs", ConnectionId(1)), 0)?;
    let spec = || "{}".to_owned();
    let stage = PipelineStage {
        prerequisite: None,
        kind: StageKind::Output,
        connection: ConnectionId(2),
        description: None,
        spec: spec(),
    };
    pipelines::replace(tx, JobId(1), &[stage], 0)?;
    let told = Notification { connection: ConnectionId(3), description: None, spec: spec() };
    notifications::replace(tx, JobId(1), &[told], 0)
}

#[test]
fn a_connection_stays_while_a_job_or_another_connection_uses_it() {
    both_databases(|db| {
        db.write(make_job)?;
        let delete = |kind, name: &'static str| db.write(move |tx| super::delete(tx, kind, name));
        for (kind, name) in [
            (ConnectionKind::Repository, "web"),
            (ConnectionKind::Output, "disk"),
            (ConnectionKind::Notification, "mail"),
        ] {
            let refused = delete(kind, name).unwrap_err().to_string();
            assert!(refused.contains("in use by job docs"), "{refused}");
        }
        db.write(|tx| {
            save(tx, ConnectionKind::Mapping, &connection(4, "m"), 0)?;
            let after = Connection { prerequisite: Some("m".into()), ..connection(5, "n") };
            save(tx, ConnectionKind::Mapping, &after, 0)?;
            let slow = Throttle {
                matches: String::new(),
                description: None,
                per_ms: None,
                connections_max: Some(1),
                bytes_per_s_max: None,
            };
            throttles::replace(tx, ConnectionId(1), &[slow])
        })?;
        let refused = delete(ConnectionKind::Mapping, "m").unwrap_err().to_string();
        assert!(refused.contains("in use by mapping connection n"), "{refused}");
        assert!(delete(ConnectionKind::Mapping, "n")? && delete(ConnectionKind::Mapping, "m")?);
        assert!(!delete(ConnectionKind::Mapping, "m")?);
        db.write(|tx| jobs::delete(tx, JobId(1)))?;
        assert!(delete(ConnectionKind::Repository, "web")?);
        assert_eq!(db.read(|tx| throttles::load(tx, ConnectionId(1)))?, []);
        Ok(())
    });
}

#[test]
fn a_change_of_what_a_connection_does_makes_its_jobs_look_at_everything_again() {
    both_databases(|db| {
        db.write(make_job)?;
        let changed = |kind, it: Connection| {
            db.write(move |tx| {
                tx.execute("UPDATE job_states SET seedingversion = 'so far'", &[])?;
                save(tx, kind, &it, 0)?;
                let sql = "SELECT seedingversion FROM job_states WHERE jobid = 1";
                tx.query_one(sql, &[], |row| row.get::<Option<String>>(0))
            })
        };
        let config = |it: Connection| Connection { config: "{\"a\": 1}".into(), ..it };
        let kept = Some("so far".to_owned());
        let described = Connection { description: Some("ours".into()), ..connection(1, "the web") };
        assert_eq!(
            changed(ConnectionKind::Repository, described)?,
            kept,
            "its documents are the same"
        );
        assert_eq!(changed(ConnectionKind::Notification, config(connection(3, "mail")))?, kept);
        assert_eq!(changed(ConnectionKind::Repository, config(connection(1, "the web")))?, None);
        assert_eq!(changed(ConnectionKind::Output, config(connection(2, "disk")))?, None);
        Ok(())
    });
}

#[test]
fn settings_are_sealed_where_they_are_stored() {
    both_databases(|db| {
        let it =
            Connection { config: "{\"password\":\"hunter2\"}".into(), ..connection(7, "wiki") };
        let (id, saved) = (it.id, it.clone());
        db.write(move |tx| save(tx, ConnectionKind::Output, &saved, 1))?;
        let stored = |tx: &mut Tx<'_>| {
            let row =
                tx.query_opt("SELECT config, version FROM connections WHERE id = 7", &[], |row| {
                    Ok((row.get::<String>(0)?, row.get::<i64>(1)?))
                })?;
            Ok(row.expect("it is there"))
        };
        let (first, version) = db.read(stored)?;
        assert!(first.starts_with("sealed:1:") && !first.contains("hunter2"), "{first}");
        assert_eq!(db.read(move |tx| load(tx, id))?, Some((ConnectionKind::Output, it.clone())));
        // Who has no key is told so, and writes nothing in the open.
        let stranger = db.clone().with_keys(Keys::default());
        let refused = stranger.read(move |tx| load(tx, id)).unwrap_err().to_string();
        assert!(refused.contains("--secrets-key"), "{refused}");
        let nothing = Keys::default();
        assert_eq!(stranger.write(move |tx| reseal(tx, &nothing))?, 0);
        assert_eq!(db.read(stored)?, (first.clone(), version));
        // Another key takes over; nobody hears of a change.
        let folder = tempfile::tempdir().expect("a folder");
        let other = Keys::kept_in(&folder.path().join("secrets.key"));
        let (renewed, old) = (db.clone().with_keys(other), db.keys().clone());
        let again = old.clone();
        assert_eq!(renewed.write(move |tx| reseal(tx, &old))?, 1);
        assert_eq!(renewed.write(move |tx| reseal(tx, &again))?, 0, "once is enough");
        assert_eq!(
            renewed.read(move |tx| load(tx, id))?,
            Some((ConnectionKind::Output, it.clone()))
        );
        let (second, same) = db.read(stored)?;
        assert!(second != first && second.starts_with("sealed:1:") && same == version);
        assert!(db.read(move |tx| load(tx, id)).is_err(), "the old key is of no use");
        // What is sealed for nobody is as it was before there were keys.
        let last = renewed.keys().clone();
        assert_eq!(stranger.write(move |tx| reseal(tx, &last))?, 1);
        assert_eq!(db.read(stored)?.0, it.config);
        assert_eq!(db.read(move |tx| load(tx, id))?, Some((ConnectionKind::Output, it.clone())));
        Ok(())
    });
}
