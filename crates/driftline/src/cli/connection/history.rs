//! `driftline connection clear-history`: forgets all activities of a repository connection.
//!
//! Whoever asks repeats the question until nothing is left. Invariant: a piece is bounded,
//! so that the process that carries it out answers soon, however long the history is.

use super::{Changed, Changes, One, find};
use crate::cli::place::Place;
use crate::cli::{shown, told, words};
use anyhow::Context;
use std::process::ExitCode;
use store::tables::connections::{Connection, Kind};
use store::tables::history;
use store::{Tx, clock};

/// Activities that are forgotten in one step, and steps of one piece: a few seconds.
const STEP: u32 = 1_000;
const STEPS_MAX: usize = 50;

/// Runs the verb: clears piece after piece.
pub(super) fn clear(place: &Place, one: One) -> anyhow::Result<ExitCode> {
    let before_ms = clock::now_ms() + 1;
    let mut cleared = 0;
    loop {
        let change = super::Change::ClearHistory { one: one.clone(), before_ms };
        let answer = place.change("connection", &change)?;
        let piece: Changed = serde_json::from_value(answer)
            .context("the process that holds the directory is of another version")?;
        cleared += piece.changes.first().and_then(|it| it.parse::<i64>().ok()).unwrap_or(0);
        if !piece.more {
            break;
        }
    }
    let many = words::counted(cleared, "activity", "activities");
    let line = format!("repository connection {}: {many} forgotten", one.name);
    let changes = if cleared > 0 { vec![line] } else { Vec::new() };
    let answer = serde_json::to_value(Changed::done(changes))?;
    told(place, answer, "nothing has changed: it has no history")
}

/// Clears a piece of a history, by whoever has the rows. The one line of what changed is
/// how many activities that were.
pub(super) fn piece(changes: &Changes, one: One, before_ms: i64) -> anyhow::Result<Changed> {
    let it = changes.db.read(move |tx| repository(tx, &one))?;
    let (mut cleared, mut more) = (0, false);
    for _ in 0..STEPS_MAX {
        let found = history::step(&changes.db, it.id, before_ms, STEP)?;
        cleared += found;
        more = found == u64::from(STEP);
        if !more {
            break;
        }
    }
    Ok(Changed { more, ..Changed::done(vec![cleared.to_string()]) })
}

/// The repository connection of a name.
fn repository(tx: &mut Tx<'_>, one: &One) -> store::Result<Connection> {
    let kind = one.kind.clone().or_else(|| Some(Kind::Repository.name().to_owned()));
    match find(tx, &One { kind, name: one.name.clone() })? {
        (Kind::Repository, it) => Ok(it),
        (kind, it) => Err(store::Error::Refused(format!(
            "{} is a connection of kind {}; only repositories have a history",
            shown(&it.name),
            kind.name()
        ))),
    }
}
