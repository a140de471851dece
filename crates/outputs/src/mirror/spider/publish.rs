//! Publishing: the journal becomes the next x-file.
//!
//! A plan is written first: it says which number, what time, and up to which entry of the
//! journal. Invariant: whoever finds a plan carries it out to the end, and the same plan gives
//! the same x-file. Its order of steps: index of members, x-file, links to the original bytes,
//! cursor, then the entries of the journal go.

use super::fold::fold;
use super::{DIR, MEMBERS, journal};
use crate::mirror::cursor as cursors;
use crate::mirror::digest::Digest;
use crate::mirror::sealed::{Kind, open_one, seal};
use crate::mirror::versions::Versions;
use crate::mirror::{Mirror, x_files};
use page::mirror::names::HashName;
use page::mirror::xfile::{
    Content, Event, Header, Operation, Outcome, Previous, Publication, Stage,
};
use serde::{Deserialize, Serialize};
use store::Result;

const CURSOR: &str = "worker/spider/cursor";
const PLAN: &str = "worker/spider/plan";
/// What writes x-files.
pub(super) const PRODUCER: &str = concat!("driftline ", env!("CARGO_PKG_VERSION"));

/// What the spider has published.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(in crate::mirror) struct SpiderCursor {
    /// The newest x-file.
    pub(in crate::mirror) number: u64,
    /// Its digest.
    sha256: Option<Digest>,
    /// The last entry of the journal that x-files cover.
    pub(in crate::mirror) journal: u64,
    /// Tells this row of x-files from another that begins with 1 again.
    epoch: String,
    /// The rules that placed the members.
    rules: Option<Digest>,
}

/// How the next x-file is made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) number: u64,
    /// The last entry of the journal that it covers.
    pub(super) through: u64,
    is_complete: bool,
    /// The oldest x-file that there is.
    oldest: u64,
    /// The snapshot from which on they go; 0 for none.
    base: u64,
    started_ms: i64,
    completed_ms: i64,
    epoch: String,
    rules: Option<Digest>,
    /// Whether every member is to be placed anew.
    pub(super) has_new_rules: bool,
}

pub(in crate::mirror) fn cursor(mirror: &Mirror) -> Result<SpiderCursor> {
    cursors::read(&mirror.disk, CURSOR)
}

/// Publishes what was delivered as the next x-file; `None` if there is nothing to say.
pub fn publish(mirror: &Mirror, outcome: Outcome, now_ms: i64) -> Result<Option<u64>> {
    let _working = mirror.begin(&mirror.spider);
    let unfinished = finish_plan(mirror)?;
    let cursor = cursor(mirror)?;
    let number = cursor.number + 1;
    let through = journal::newest(mirror)?;
    let is_announced = mirror.disk.kind(x_files::announced_path(number))?.is_some();
    let has_new_rules = cursor.number > 0 && cursor.rules != mirror.rules_digest();
    if through == cursor.journal && !is_announced && !has_new_rules {
        return Ok(unfinished);
    }
    let started_ms = match is_announced {
        true => super::announce::time_of(mirror, number)?,
        false => now_ms,
    };
    let plan = Plan {
        number,
        through,
        is_complete: outcome == Outcome::Complete,
        oldest: x_files::numbers(&mirror.disk)?.first().copied().unwrap_or(number),
        base: x_files::snapshots(&mirror.disk)?.first().copied().unwrap_or(0),
        started_ms,
        completed_ms: now_ms,
        epoch: epoch(mirror, &cursor, now_ms),
        rules: mirror.rules_digest(),
        has_new_rules,
    };
    mirror.disk.write_durably(PLAN, &seal(Kind::Plan, std::slice::from_ref(&plan)))?;
    Ok(carry_out(mirror, &plan)?.or(unfinished))
}

/// The name of this row of x-files: that of its beginning.
pub(super) fn epoch(mirror: &Mirror, cursor: &SpiderCursor, now_ms: i64) -> String {
    if !cursor.epoch.is_empty() {
        return cursor.epoch.clone();
    }
    let place = mirror.disk.place("");
    let seed = format!("{now_ms} {} {}", std::process::id(), place.display());
    HashName::of(&seed).to_string()[..16].to_owned()
}

/// Carries out a plan that a process left.
fn finish_plan(mirror: &Mirror) -> Result<Option<u64>> {
    let Some(bytes) = mirror.disk.read_if_there(PLAN)? else { return Ok(None) };
    let plan = open_one(Kind::Plan, &bytes, &mirror.disk.place(PLAN).display().to_string())?;
    carry_out(mirror, &plan)
}

fn carry_out(mirror: &Mirror, plan: &Plan) -> Result<Option<u64>> {
    let cursor = cursor(mirror)?;
    let is_done = cursor.journal >= plan.through && cursor.number >= plan.number;
    let mut published = is_done.then_some(plan.number);
    if !is_done {
        let is_visible = x_files::newest(&mirror.disk)? >= plan.number;
        if is_visible || make_x_file(mirror, plan, &cursor)? {
            published = Some(plan.number);
        }
        settle(mirror, plan, cursor, published.is_some())?;
    }
    Versions::open(&mirror.disk, MEMBERS, self::cursor(mirror)?.number)?.tidy()?;
    journal::remove(&mirror.disk, plan.through)?;
    mirror.disk.remove(PLAN)?;
    Ok(published)
}

/// Writes the x-file of a plan, unless there is nothing to say in it.
fn make_x_file(mirror: &Mirror, plan: &Plan, cursor: &SpiderCursor) -> Result<bool> {
    // A run that has announced something is answered, so that there is no gap.
    let is_due = mirror.disk.kind(x_files::announced_path(plan.number))?.is_some();
    match fold(mirror, plan, &header(mirror, plan, cursor), is_due)? {
        Some(written) => {
            x_files::publish(&mirror.disk, plan.number, written)?;
            Ok(true)
        }
        None => Ok(false),
    }
}

fn header(mirror: &Mirror, plan: &Plan, cursor: &SpiderCursor) -> Header {
    let previous =
        cursor.sha256.map(|sha256| Previous { number: cursor.number, sha256: sha256.into() });
    Header {
        editor: mirror.editor(),
        info: mirror.info(),
        publication: Some(Publication {
            epoch: plan.epoch.clone(),
            number: plan.number,
            stage: Stage::Published,
            previous,
            base: plan.base,
            oldest: plan.oldest,
            started_ms: plan.started_ms,
            completed_ms: Some(plan.completed_ms),
            producer: PRODUCER.to_owned(),
            rules: plan.rules.map(Into::into),
            outcome: if plan.is_complete { Outcome::Complete } else { Outcome::Partial },
            cut: Vec::new(),
        }),
    }
}

/// Has the spider's folder and cursor follow what was published.
fn settle(mirror: &Mirror, plan: &Plan, cursor: SpiderCursor, is_published: bool) -> Result<()> {
    let mut next = SpiderCursor {
        journal: plan.through,
        epoch: plan.epoch.clone(),
        rules: plan.rules,
        ..cursor
    };
    if is_published {
        next.sha256 = Some(link_originals(mirror, plan.number)?);
        next.number = plan.number;
    }
    cursors::write(&mirror.disk, CURSOR, &next)
}

/// Has `worker/spider/xx/<hash>` be the bytes that an x-file names. Returns its digest.
fn link_originals(mirror: &Mirror, number: u64) -> Result<Digest> {
    let mut x_file = x_files::open(&mirror.disk, number)?;
    let failed = |error| x_files::failed(&mirror.disk, number, error);
    while let Some(event) = x_file.reader.next().map_err(failed)? {
        let Event::Open(node) = event else { continue };
        let path = format!("{DIR}/{}", node.hash_name.path(""));
        match (&node.content, node.operation) {
            (Content::Stored(stored), Operation::Add | Operation::Update) => {
                mirror.disk.link_blob(&stored.sha256.into(), path)?;
            }
            (_, Operation::Remove | Operation::Update) => mirror.disk.remove(path)?,
            _ => {}
        }
    }
    Ok(x_file.digest)
}
