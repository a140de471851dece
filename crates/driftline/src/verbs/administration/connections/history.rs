//! The history of a repository connection, forgotten piece by piece.
//!
//! Invariant: a piece is bounded, so that the process that carries it out answers soon, however
//! long the history is.

use super::{ConnectionName, find};
use crate::text::shown;
use crate::verbs::changes::{ChangeContext, ChangeResult};
use store::Tx;
use store::tables::connections::{Connection, ConnectionKind};
use store::tables::history;

/// Activities that are forgotten in one step, and steps of one piece: a few seconds.
const STEP: u32 = 1_000;
const STEPS_MAX: usize = 50;

/// Clears a piece of a history, by whoever has the rows. The one line of what changed is
/// how many activities that were.
pub(super) fn piece(
    context: &ChangeContext,
    one: ConnectionName,
    before_ms: i64,
) -> anyhow::Result<ChangeResult> {
    let it = context.db.read(move |tx| repository(tx, &one))?;
    let (mut cleared, mut more) = (0, false);
    for _ in 0..STEPS_MAX {
        let found = history::step(&context.db, it.id, before_ms, STEP)?;
        cleared += found;
        more = found == u64::from(STEP);
        if !more {
            break;
        }
    }
    Ok(ChangeResult { more, ..ChangeResult::done(vec![cleared.to_string()]) })
}

/// The repository connection of a name.
fn repository(tx: &mut Tx<'_>, one: &ConnectionName) -> store::Result<Connection> {
    let kind = one.kind.clone().or_else(|| Some(ConnectionKind::Repository.name().to_owned()));
    match find(tx, &ConnectionName { kind, name: one.name.clone() })? {
        (ConnectionKind::Repository, it) => Ok(it),
        (kind, it) => Err(store::Error::Refused(format!(
            "{} is a connection of kind {}; only repository connections have a history",
            shown(&it.name),
            kind.name()
        ))),
    }
}
