//! `driftline connection clear-history`: forgets all activities of a repository connection,
//! piece after piece until nothing is left.

use crate::cli::report_change;
use crate::place::Place;
use crate::text::counted;
use crate::verbs::administration::connections::{
    ChangeConnection, ConnectionName, ConnectionRequest,
};
use crate::verbs::changes::ChangeResult;
use std::process::ExitCode;
use store::clock;

/// Runs the verb: clears piece after piece.
pub(super) fn clear(place: &Place, one: ConnectionName) -> anyhow::Result<ExitCode> {
    let before_ms = clock::now_ms() + 1;
    let mut cleared = 0;
    loop {
        let request = ConnectionRequest::ClearHistory { one: one.clone(), before_ms };
        let piece = place.change::<ChangeConnection>(request)?;
        cleared += piece.changes.first().and_then(|it| it.parse::<i64>().ok()).unwrap_or(0);
        if !piece.more {
            break;
        }
    }
    let many = counted(cleared, "activity", "activities");
    let line = format!("repository connection {}: {many} deleted", one.name);
    let changes = if cleared > 0 { vec![line] } else { Vec::new() };
    report_change(place, &ChangeResult::done(changes), "nothing changed: it has no history")
}
