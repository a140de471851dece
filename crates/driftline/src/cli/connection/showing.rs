//! Connections listed, shown and checked. Nothing here writes, and no secret is shown.

use super::super::answers::Answers;
use super::super::place::Place;
use super::super::words::{self, size, span};
use super::super::{say, shown};
use super::{Ask, One, find};
use crate::catalog::{self, typed};
use crate::definitions::{self, ConnectionForm, ThrottleForm};
use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::process::ExitCode;
use store::Tx;
use store::tables::connections::{self, Connection, HISTORY_MS, Kind};
use store::tables::registrations;

/// Connections of a kind listed at most.
const LISTED_MAX: u32 = 10_000;

/// A connection, as it is shown.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
pub struct Shown {
    kind: String,
    name: String,
    /// How often it has been changed, its making counted.
    version: i64,
    /// Why it cannot be used; empty when it can.
    findings: Vec<String>,
    definition: ConnectionForm,
}

/// The connections that are asked for.
pub fn answer(answers: &Answers, ask: Ask) -> anyhow::Result<Json> {
    let opens = ask.opens;
    let mut found = answers.db.read(move |tx| {
        let mut found = Vec::new();
        if let Some(name) = &ask.name {
            let (kind, it) = find(tx, &One { name: name.clone(), kind: ask.kind.clone() })?;
            found.push(look(tx, kind, &it)?);
            return Ok(found);
        }
        let wanted = ask.kind.as_deref().and_then(Kind::parse);
        for kind in Kind::ALL.into_iter().filter(|kind| wanted.is_none_or(|it| *kind == it)) {
            for it in connections::list(tx, kind, "", LISTED_MAX)? {
                found.push(look(tx, kind, &it)?);
            }
        }
        Ok(found)
    })?;
    for it in found.iter_mut().filter(|it| opens && it.findings.is_empty()) {
        it.findings.extend(tried(answers, it)?);
    }
    Ok(serde_json::to_value(found)?)
}

/// Opens a connection. Why it cannot be used, if it cannot.
fn tried(answers: &Answers, it: &Shown) -> anyhow::Result<Option<String>> {
    let (kind, name) = (Kind::parse(&it.kind), it.name.clone());
    let Some(kind @ (Kind::Repository | Kind::Output | Kind::Notification)) = kind else {
        // Others say what they reach in their jobs.
        return Ok(None);
    };
    let known = answers.db.read(move |tx| connections::find(tx, kind, &name))?;
    let Some(known) = known else { return Ok(None) };
    let (class, config) = (&known.classname, &known.config);
    let tried = match kind {
        Kind::Repository => crawl::connectors::open(class, config),
        Kind::Notification => outputs::notifications::open(class, config)
            .and_then(|mut it| it.check().map_err(|away| away.why)),
        _ => outputs::connectors::open(class, config)
            .and_then(|mut it| it.check().map_err(|away| away.why)),
    };
    Ok(tried.err())
}

fn look(tx: &mut Tx<'_>, kind: Kind, it: &Connection) -> store::Result<Shown> {
    let mut form = definitions::connection_form(tx, it)?;
    let mut findings = Vec::new();
    match catalog::find(kind, &form.connector) {
        None => findings.push(format!(
            "this program has no {} connector {}",
            kind.name(),
            form.connector
        )),
        Some(connector) => {
            if !registrations::is_registered(tx, kind, connector.name)? {
                findings.push(format!(
                    "its connector is not registered; register it: driftline connector register \
                     {} --kind {}",
                    connector.name,
                    kind.name()
                ));
            }
            if let Err(reason) = (connector.check_config)(&it.config) {
                findings.push(format!("its settings cannot be used: {reason}"));
            }
            typed::hide(&mut form.settings, &typed::secrets(connector.settings, ""));
        }
    }
    Ok(Shown {
        kind: kind.name().to_owned(),
        name: it.name.clone(),
        version: connections::version(tx, it.id)?.unwrap_or(0),
        findings,
        definition: form,
    })
}

fn asked(place: &Place, ask: &Ask) -> anyhow::Result<(Json, Vec<Shown>)> {
    let answer = place.ask("connections", ask)?;
    let found = serde_json::from_value(answer.clone())
        .context("the process that holds the directory is of another version")?;
    Ok((answer, found))
}

/// The one that was asked for.
fn asked_one(place: &Place, ask: &Ask) -> anyhow::Result<(Json, Shown)> {
    let (answer, mut found) = asked(place, ask)?;
    let one = found.pop().context("there is no such connection")?;
    Ok((answer.get(0).cloned().unwrap_or_default(), one))
}

/// Lists them.
pub fn list(place: &Place, ask: &Ask) -> anyhow::Result<ExitCode> {
    let (answer, found) = asked(place, ask)?;
    if place.json() {
        say(&answer.to_string());
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_empty() {
        say("there is none; make one: driftline connection create NAME --connector CONNECTOR");
    }
    let row = |it: Shown| {
        let trouble = if it.findings.is_empty() { "" } else { " (cannot be used)" };
        let description = it.definition.description.as_deref().map_or(String::new(), shown);
        let (name, connector) = (shown(&it.name), shown(&it.definition.connector));
        vec![it.kind, name, connector, format!("{description}{trouble}")]
    };
    let rows: Vec<Vec<String>> = found.into_iter().map(row).collect();
    words::table(&rows, |_| false).iter().for_each(|line| say(line));
    Ok(ExitCode::SUCCESS)
}

/// Shows one.
pub fn show(place: &Place, ask: &Ask) -> anyhow::Result<ExitCode> {
    let (answer, it) = asked_one(place, ask)?;
    if place.json() {
        say(&answer.to_string());
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
pub fn check(place: &Place, ask: &Ask) -> anyhow::Result<ExitCode> {
    let (_, it) = asked_one(place, ask)?;
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

fn print_findings(it: &Shown) {
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
