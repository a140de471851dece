//! Connections listed, shown and checked.

use crate::catalog::typed;
use crate::cli::{say, say_json};
use crate::definitions::ThrottleForm;
use crate::place::Place;
use crate::text::{self, shown, size, span};
use crate::verbs::administration::connections::{Connections, ConnectionsRequest, ShownConnection};
use anyhow::Context;
use std::process::ExitCode;
use store::tables::connections::HISTORY_MS;

/// The one that was asked for.
fn ask_one(place: &Place, request: ConnectionsRequest) -> anyhow::Result<ShownConnection> {
    place.ask::<Connections>(request)?.pop().context("there is no such connection")
}

pub fn list(place: &Place, request: ConnectionsRequest) -> anyhow::Result<ExitCode> {
    let found = place.ask::<Connections>(request)?;
    if place.json() {
        say_json(&found)?;
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_empty() {
        say("none defined; create one: driftline connection create NAME --connector CONNECTOR");
    }
    let row = |it: ShownConnection| {
        let trouble = if it.findings.is_empty() { "" } else { " (cannot be used)" };
        let description = it.definition.description.as_deref().map_or(String::new(), shown);
        let (name, connector) = (shown(&it.name), shown(&it.definition.connector));
        vec![it.kind, name, connector, format!("{description}{trouble}")]
    };
    let rows: Vec<Vec<String>> = found.into_iter().map(row).collect();
    text::table(&rows, |_| false).iter().for_each(|line| say(line));
    Ok(ExitCode::SUCCESS)
}

pub fn show(place: &Place, request: ConnectionsRequest) -> anyhow::Result<ExitCode> {
    let it = ask_one(place, request)?;
    if place.json() {
        say_json(&it)?;
        return Ok(ExitCode::SUCCESS);
    }
    let form = &it.definition;
    say(&format!("{} connection {}", it.kind, shown(&it.name)));
    if let Some(description) = &form.description {
        say(&format!("    {}", shown(description)));
    }
    say(&format!("    connector {}, version {}", shown(&form.connector), it.version));
    if let Some(most) = form.max_connections {
        say(&format!("    at most {most} connections open at once"));
    }
    for (label, value) in [
        ("authority group", &form.group),
        ("authorization domain", &form.domain),
        ("asked after", &form.prerequisite),
    ] {
        if let Some(value) = value {
            say(&format!("    {label} {}", shown(value)));
        }
    }
    let kept = match form.history_ms.unwrap_or(HISTORY_MS) {
        0 => "for ever".to_owned(),
        kept_ms => format!("for {}", span(kept_ms)),
    };
    say(&format!("    history is kept {kept}"));
    for (name, value) in typed::fields(&form.settings).iter().filter(|(name, _)| !name.is_empty()) {
        say(&format!("    {} = {}", shown(name), shown(&value.to_string())));
    }
    for (expression, throttle) in &form.throttles {
        say(&format!("    throttle {:?}: {}", shown(expression), limits(throttle)));
    }
    print_findings(&it);
    Ok(ExitCode::SUCCESS)
}

/// Says whether one can be used. If not, that is a "no".
pub fn check(place: &Place, request: ConnectionsRequest) -> anyhow::Result<ExitCode> {
    let it = ask_one(place, request)?;
    let is_good = it.findings.is_empty();
    if place.json() {
        let (kind, name, findings) = (&it.kind, &it.name, &it.findings);
        let answer = serde_json::json!(
            {"kind": kind, "name": name, "usable": is_good, "findings": findings}
        );
        say(&answer.to_string());
    } else {
        let verdict = if is_good { "can be used" } else { "cannot be used" };
        say(&format!("{} connection {} {verdict}", it.kind, shown(&it.name)));
        print_findings(&it);
    }
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_findings(it: &ShownConnection) {
    it.findings.iter().for_each(|finding| say(&format!("    {}", shown(finding))));
}

/// A throttle's limits, as people read them.
fn limits(throttle: &ThrottleForm) -> String {
    let mut words = Vec::new();
    words.extend(throttle.per_minute.map(|rate| format!("{rate} documents/min")));
    words.extend(throttle.connections.map(|most| format!("{most} connections")));
    words.extend(throttle.bytes_per_s.map(|most| format!("{}/s", size(most))));
    if words.is_empty() {
        words.push("no limit".to_owned());
    }
    if let Some(description) = &throttle.description {
        words.push(format!("({})", shown(description)));
    }
    words.join(", ")
}
