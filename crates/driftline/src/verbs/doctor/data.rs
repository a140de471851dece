//! What the rows say of themselves, answered by whoever has them open; and whether
//! objects can be written, read and removed.

use super::check::{Advice, Check};
use crate::text::{counted, size, span};
use crate::verbs::context::VerbContext;
use crate::verbs::status::outages;
use store::dialect::Dialect;
use store::objects::{ObjectPath, Objects};
use store::tables::health::{self, DatabaseServer};
use store::tables::outages::Outage;
use store::tables::settings;
use store::{clock, migrate};

/// The oldest PostgreSQL that is supported.
const POSTGRES_MIN: i64 = 150_000;
/// A file larger than this is checked by `verify` only: reading it takes too long.
const CHECKED_BYTES_MAX: i64 = 1 << 30;
/// The database's clock may differ so much from this machine's: leases allow for it.
const SKEW_MS_MAX: i64 = 2_000;
/// A process that says nothing for so long is gone.
const SILENT_MS: i64 = 5 * 60 * 1_000;
/// An object that was announced so long ago is not coming any more.
const STAGED_MS: i64 = store::collect::STAGED_GRACE_MS;

/// Connections that are named at most.
const FINDINGS_MAX: usize = 20;

const REPORT: &str = "run `driftline verify`, keep a copy of the data, and report it";

/// The findings about the rows.
pub fn checks(context: &VerbContext) -> store::Result<Vec<Check>> {
    let db = &context.db;
    let before_ms = clock::now_ms();
    let server = db.read(health::server)?;
    let now_ms = clock::now_ms();
    let mut out = database(db.dialect(), &server);
    out.push(clocks(server.now_ms, before_ms, now_ms));
    out.push(schema(db));
    out.push(frozen(context)?);
    out.push(integrity(context, &server)?);
    let sampled = db.read(health::sample_counters)?;
    out.push(match sampled.wrong.first() {
        None if sampled.queues == 0 => Check::ok(
            "counters",
            "all queues are too large to count here; `driftline verify` counts them",
        ),
        None => {
            let queues = counted(sampled.queues as i64, "queue is", "queues are");
            Check::ok("counters", format!("those of {queues} right"))
        }
        Some(wrong) => Check::fail(
            "counters",
            wrong.clone(),
            Advice { why: "the counters do not match the rows", next: REPORT },
        ),
    });
    out.extend(leftovers(context, now_ms)?);
    out.extend(connections(context, now_ms)?);
    Ok(out)
}

/// Outputs and repositories that a process waits for: one finding for each.
fn connections(context: &VerbContext, now_ms: i64) -> store::Result<Vec<Check>> {
    const NAME: &str = "connections";
    let doing = context.doing.clone();
    let away = context.db.read(move |tx| outages::current(tx, doing.as_deref(), now_ms))?;
    if away.is_empty() {
        return Ok(vec![Check::ok(NAME, "no process waits for an output or a repository")]);
    }
    let help = Advice {
        why: "nothing is lost; the work continues when it is reachable again",
        next: "check the service; its settings: driftline connection show NAME",
    };
    let finding = |it: &Outage| Check::warn(NAME, outages::line(it, now_ms), help);
    Ok(away.iter().take(FINDINGS_MAX).map(finding).collect())
}

fn database(dialect: Dialect, server: &DatabaseServer) -> Vec<Check> {
    let taken = size(server.bytes);
    if dialect == Dialect::Sqlite {
        return vec![Check::ok("database", format!("SQLite {}, {taken}", server.version_text))];
    }
    let what = format!("PostgreSQL {}, {taken}", server.version_text);
    let version = match server.version {
        POSTGRES_MIN.. => Check::ok("database", what),
        _ => Check::fail(
            "database",
            what,
            Advice { why: "version 15 or later is needed", next: "upgrade the server" },
        ),
    };
    let encoding = match server.encoding.as_str() {
        "UTF8" => Check::ok("encoding", "UTF8"),
        other => {
            let help = Advice {
                why: "web pages need full Unicode",
                next: "create the database with encoding UTF8",
            };
            Check::fail("encoding", other, help)
        }
    };
    let durable = match (server.synchronous.as_str(), server.fsync.as_str()) {
        ("off", _) | (_, "off") => {
            let what =
                format!("synchronous_commit is {}, fsync is {}", server.synchronous, server.fsync);
            let help = Advice {
                why: "a power failure could lose committed data",
                next: "set both to on, in postgresql.conf and in the database URL",
            };
            Check::fail("durability", what, help)
        }
        _ => Check::ok("durability", "a commit waits for the disk"),
    };
    vec![version, encoding, durable]
}

/// The database was asked between two looks at our own clock.
fn clocks(theirs_ms: i64, before_ms: i64, after_ms: i64) -> Check {
    const NAME: &str = "database clock";
    let apart_ms = (before_ms - theirs_ms).max(theirs_ms - after_ms).max(0);
    if apart_ms <= SKEW_MS_MAX {
        return Check::ok(NAME, "it agrees with this machine's");
    }
    let help = Advice {
        why: "leases depend on the clocks of the machines that share a database",
        next: "synchronise every machine with NTP",
    };
    Check::warn(NAME, format!("it differs from this machine's by {}", span(apart_ms)), help)
}

fn schema(db: &store::Db) -> Check {
    match migrate::check(db) {
        Ok(()) => Check::ok("schema", format!("version {}", migrate::SCHEMA_VERSION)),
        Err(error) => {
            let help = Advice {
                why: "this program cannot work with it",
                next: "the message says what to do",
            };
            Check::fail("schema", error.to_string(), help)
        }
    }
}

fn frozen(context: &VerbContext) -> store::Result<Check> {
    let found = context.db.read(|tx| Ok((settings::parts(tx)?, settings::suffix_list(tx)?)));
    Ok(match found {
        Ok((parts, _)) => Check::ok("settings", format!("{parts} parts, a public suffix list")),
        Err(error) => {
            let help = Advice {
                why: "they determine where each document is stored",
                next: "restore them from a backup",
            };
            Check::fail("settings", error.to_string(), help)
        }
    })
}

fn integrity(context: &VerbContext, server: &DatabaseServer) -> store::Result<Check> {
    const NAME: &str = "integrity";
    if context.db.dialect() == Dialect::Postgres {
        return Ok(Check::skip(NAME, "PostgreSQL checks its pages itself"));
    }
    if server.bytes > CHECKED_BYTES_MAX {
        return Ok(Check::skip(NAME, "the file is large; check it with: driftline verify"));
    }
    Ok(match context.db.read(health::problems)?.first() {
        None => Check::ok(NAME, "the database file is intact"),
        Some(problem) => {
            let help = Advice {
                why: "rows may be lost or wrong",
                next: "restore the directory from a backup",
            };
            Check::fail(NAME, problem.clone(), help)
        }
    })
}

/// What processes that died have left. All of it is taken care of by the next one.
fn leftovers(context: &VerbContext, now_ms: i64) -> store::Result<Vec<Check>> {
    let (silent, leases, chunks, objects) = context.db.read(move |tx| {
        Ok((
            health::silent_nodes(tx, now_ms - SILENT_MS)?,
            health::left_leases(tx, now_ms)?,
            health::stuck_chunks(tx, now_ms)?,
            health::left_objects(tx, now_ms - STAGED_MS)?,
        ))
    })?;
    let nodes = match silent.first() {
        None => Check::ok("nodes", "every process is alive or ended cleanly"),
        Some(name) => {
            let number = i64::try_from(silent.len()).unwrap_or(i64::MAX);
            let number = counted(number, "process", "processes");
            let what = format!("{number} did not end cleanly, such as {name}");
            let help = Advice {
                why: "they were killed, or cannot reach the database",
                next: "check their logs",
            };
            Check::warn("nodes", what, help)
        }
    };
    let left = |name: &str, number: i64, what: &str, next: &str| match number {
        0 => Check::ok(name, "none left over"),
        _ => {
            let why = "a process was killed or lost its connection";
            Check::warn(name, format!("{number} {what}"), Advice { why, next })
        }
    };
    Ok(vec![
        nodes,
        left("leases", leases, "were not released", "the next crawl takes them over"),
        left(
            "chunks",
            chunks,
            "are open, and no process works on them",
            "the next crawl abandons them",
        ),
        left("staged objects", objects, "were never published", "remove them: driftline gc"),
    ])
}

/// Writes, reads and removes a small object.
pub fn objects(objects: &Objects) -> Check {
    const NAME: &str = "objects";
    let tried = probe(objects);
    match tried {
        Ok(took_ms) => {
            Check::ok(NAME, format!("one was written, read and removed in {}", span(took_ms)))
        }
        Err(reason) => {
            let help = Advice {
                why: "facts and bodies are kept there",
                next: "check the location, its keys (--s3-keys) and their permissions",
            };
            Check::fail(NAME, reason, help)
        }
    }
}

fn probe(objects: &Objects) -> Result<i64, String> {
    let began_ms = clock::now_ms();
    // Where gc would find it, should this process die on the way.
    let name = format!("packs/0/doctor-{}-{began_ms}", std::process::id());
    let content = name.clone().into_bytes();
    let tried = ObjectPath::parse(&name).and_then(|path| {
        objects.put(&path, content.clone())?;
        let found = objects.get(&path);
        objects.delete(&path)?;
        Ok((found?, objects.head(&path)?))
    });
    match tried {
        Ok((found, None)) if found == content => Ok((clock::now_ms() - began_ms).max(0)),
        Ok((_, Some(_))) => Err("an object was removed and is still there".to_owned()),
        Ok(_) => Err("an object came back with other bytes".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::doctor::check::CheckStatus;
    use store::ids::{JobId, Part};
    use store::objects::Location;
    use store::tables::counters;
    use store::testing::both_databases;

    fn server() -> DatabaseServer {
        DatabaseServer {
            version: 150_004,
            version_text: "15.4".into(),
            encoding: "UTF8".into(),
            synchronous: "on".into(),
            fsync: "on".into(),
            now_ms: 0,
            bytes: 5,
        }
    }

    #[test]
    fn a_sound_database_is_well_and_a_wrong_counter_is_found() {
        both_databases(|db| {
            db.write(|tx| settings::freeze(tx, 4))?;
            let context = VerbContext::of_rows(db.clone());
            let found = checks(&context)?;
            let bad = |found: &[Check]| -> Vec<String> {
                let is_bad =
                    |it: &&Check| matches!(it.verdict, CheckStatus::Fail | CheckStatus::Warn);
                // The server of the tests does not sync, and is told so.
                let is_bad = |it: &&Check| is_bad(it) && it.name != "durability";
                found.iter().filter(is_bad).map(|it| it.name.clone()).collect()
            };
            assert_eq!(bad(&found), [] as [String; 0], "{found:?}");
            assert!(found.len() >= 10);
            db.write(|tx| counters::add(tx, Part(0), JobId(1), &[("done", 5)]))?;
            assert_eq!(bad(&checks(&context)?), ["counters"]);
            Ok(())
        });
    }

    #[test]
    fn a_server_that_is_old_or_careless_fails() {
        let verdicts = |server: DatabaseServer| -> Vec<CheckStatus> {
            database(Dialect::Postgres, &server).iter().map(|check| check.verdict).collect()
        };
        let (ok, fail) = (CheckStatus::Ok, CheckStatus::Fail);
        assert_eq!(verdicts(server()), [ok, ok, ok]);
        assert_eq!(verdicts(DatabaseServer { version: 140_009, ..server() }), [fail, ok, ok]);
        assert_eq!(
            verdicts(DatabaseServer { encoding: "LATIN1".into(), ..server() }),
            [ok, fail, ok]
        );
        assert_eq!(
            verdicts(DatabaseServer { synchronous: "off".into(), ..server() }),
            [ok, ok, fail]
        );
        assert_eq!(verdicts(DatabaseServer { fsync: "off".into(), ..server() }), [ok, ok, fail]);
    }

    #[test]
    fn clocks_may_differ_a_little() {
        assert_eq!(clocks(1_000, 900, 1_100).verdict, CheckStatus::Ok);
        assert_eq!(clocks(10_000, 900, 1_100).verdict, CheckStatus::Warn);
        assert_eq!(clocks(-10_000, 900, 1_100).verdict, CheckStatus::Warn);
    }

    #[test]
    fn objects_are_tried_and_nothing_is_left() {
        let place = tempfile::tempdir().unwrap();
        let store = Objects::open(&Location::Directory(place.path().to_owned())).unwrap();
        assert_eq!(objects(&store).verdict, CheckStatus::Ok);
        let root = ObjectPath::parse("packs").unwrap();
        assert_eq!(store.list(&root, None, 9).unwrap(), []);
    }
}
