//! What became of every URL in a run: from the changes that its chunks committed, which
//! outputs will read, and for what made no change from the queue.
//!
//! Invariant: it knows nothing of what the sample web did, so what it says is the
//! crawler's own account.

use super::round::JOB;
use super::stage::DemoStage;
use crate::demo_site::Fate;
use crate::verbs::jobs::documents::{DocumentLine, Documents, DocumentsRequest};
use crate::verbs::jobs::why::{Why, WhyRequest};
use crate::verbs::paging::LIST_LIMIT_MAX;
use ::crawl::begin::Begun;
use ::crawl::fetch::sentences;
use anyhow::ensure;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;
use store::chunkfile::document::{Change, DocumentRecord, RemoveReason};
use store::chunkfile::facts::FactsStream;
use store::ids::{CommitNumber, Part};
use store::objects::ChunkKey;
use store::tables::documents::LookOutcome;
use store::tables::queue::{ReasonCode, State};
use store::tables::{chunks, settings};
use store::{Db, objects::Objects, pack};

/// Chunks read at once.
const CHUNKS: u32 = 16;

/// What became of one URL.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundUrl {
    pub fate: Fate,
    /// Why, in a few.
    pub why: String,
    /// Where it is known to lead.
    pub links: BTreeSet<String>,
    /// The hash of its text, if it has any.
    text: Option<[u8; 16]>,
}

/// Reads what a run did.
pub fn read(stage: &DemoStage, begun: &Begun) -> anyhow::Result<BTreeMap<String, FoundUrl>> {
    let mut records = changes(&stage.held.db, &stage.held.objects, begun)?;
    let limit = LIST_LIMIT_MAX;
    let request =
        DocumentsRequest { job: Some(JOB.to_owned()), limit, ..DocumentsRequest::default() };
    let listed = stage.ask::<Documents>(request)?;
    ensure!(listed.cursor.is_none(), "the demo's web has more than {limit} documents");
    let before = stage.rounds.last().map(|round| &round.found);
    let mut all = BTreeMap::new();
    for row in listed.urls {
        let known = before.and_then(|before| before.get(&row.url));
        let found = match records.remove(&row.url) {
            Some(record) => changed(stage, &record, known),
            None => unchanged(&row, known, begun.run.0),
        };
        all.insert(row.url, found);
    }
    // What was removed because nothing leads to it any more is not queued.
    for (url, record) in records.extract_if(.., |_, it| matches!(it.change, Change::Remove(_))) {
        let known = before.and_then(|before| before.get(&url));
        let found = changed(stage, &record, known);
        all.insert(url, found);
    }
    let odd: Vec<&String> = records.keys().collect();
    ensure!(odd.is_empty(), "the queue does not know of changes to {odd:?}");
    // Of a first crawl it would be said of every document.
    let is_new = |found: &FoundUrl| before.is_some() && found.fate == Fate::Added;
    for (url, found) in all.iter_mut().filter(|(_, found)| is_new(found)) {
        found.why = linked_from(stage, url)?;
    }
    Ok(all)
}

/// The last change of each document in a run.
fn changes(
    db: &Db,
    objects: &Objects,
    begun: &Begun,
) -> anyhow::Result<BTreeMap<String, DocumentRecord>> {
    let mut records = BTreeMap::new();
    let parts = db.read(settings::parts)?;
    for part in (0..i64::from(parts)).map(Part) {
        let mut seq = CommitNumber::NONE;
        loop {
            let page = db.read(move |tx| chunks::after(tx, part, seq, CHUNKS))?;
            let Some(last) = page.last() else { break };
            seq = last.seq;
            let of_run =
                |chunk: &chunks::CommittedChunk| (chunk.job, chunk.run) == (begun.job, begun.run);
            for chunk in page.into_iter().filter(of_run) {
                let Some(facts) = pack::read_facts(db, objects, part, chunk.facts)? else {
                    continue;
                };
                let key = ChunkKey::new(part, chunk.id)?;
                for record in FactsStream::open(key, Cursor::new(facts))? {
                    let record = record?;
                    if record.change == Change::NoContent {
                        // Outputs hear nothing of it.
                        continue;
                    }
                    records.insert(record.docid.clone(), record);
                }
            }
        }
    }
    Ok(records)
}

/// A document that outputs hear of.
fn changed(stage: &DemoStage, record: &DocumentRecord, known: Option<&FoundUrl>) -> FoundUrl {
    let status = record.fetch.as_ref().map_or(0, |fetch| fetch.status);
    let facts = record.facts.as_ref();
    let links = match (facts, known) {
        (Some(facts), _) => facts.links.iter().map(|link| link.url.clone()).collect(),
        (None, Some(known)) if record.change == Change::Keep => known.links.clone(),
        _ => BTreeSet::new(),
    };
    let text = match facts {
        Some(facts) => (!facts.text.is_empty()).then_some(facts.text_hash),
        None => known.and_then(|known| known.text),
    };
    let is_restyled = text.is_some() && known.is_some_and(|known| known.text == text);
    let (fate, why) = match record.change {
        Change::Add => (Fate::Added, String::new()),
        Change::Update if is_restyled => {
            (Fate::Restyled, "its markup differs, its text does not".into())
        }
        Change::Update => (Fate::Updated, difference(known, &links, text)),
        Change::Keep if status == 304 => (Fate::Kept, "the server says so (304)".into()),
        Change::Keep => (Fate::Same, "the same bytes were sent".into()),
        Change::Remove(RemoveReason::Redirected) => {
            (Fate::Moved, format!("it redirects to {}", stage.short(record.final_url())))
        }
        Change::Remove(RemoveReason::Gone) => {
            (Fate::Removed, format!("status {status}, confirmed by a second request"))
        }
        Change::Remove(RemoveReason::Unreachable) => {
            (Fate::Removed, "no page links to it any more".into())
        }
        Change::Remove(reason) => (Fate::Removed, reason.name().to_owned()),
        Change::NoContent => (Fate::Kept, "it has no content".into()),
    };
    FoundUrl { fate, why, links, text }
}

/// What an update is about.
fn difference(
    known: Option<&FoundUrl>,
    links: &BTreeSet<String>,
    text: Option<[u8; 16]>,
) -> String {
    let Some(known) = known else { return String::new() };
    let mut parts = Vec::new();
    if known.text != text {
        parts.push("its text differs".to_owned());
    }
    let count = |one: &BTreeSet<String>, other: &BTreeSet<String>| one.difference(other).count();
    for (number, word) in
        [(count(links, &known.links), "more"), (count(&known.links, links), "fewer")]
    {
        if number > 0 {
            parts.push(format!("{number} {} {word}", if number == 1 { "link" } else { "links" }));
        }
    }
    parts.join(", ")
}

/// A document that outputs hear nothing of.
fn unchanged(row: &DocumentLine, known: Option<&FoundUrl>, run: i64) -> FoundUrl {
    let was_settled = row.run == Some(run);
    let status = row.status.map_or(String::new(), |status| format!("status {status}"));
    let detail = row.detail.clone().unwrap_or_default();
    let outcome = row.outcome.as_deref().unwrap_or_default();
    let code = row.reason.as_deref().unwrap_or(outcome);
    let is_cut = State::parse(&row.state) == Some(State::Cut);
    let is_done = State::parse(&row.state) == Some(State::Done);
    let cut = ReasonCode::parse(code).filter(|_| is_cut);
    let done = LookOutcome::parse(code).filter(|_| is_done && was_settled);
    let (fate, why) = match (cut, done) {
        (Some(ReasonCode::Robots), _) => (Fate::Robots, detail),
        (Some(ReasonCode::Noindex), _) => (Fate::Noindex, detail),
        (Some(ReasonCode::Trap), _) => (Fate::Trap, detail),
        (_, Some(LookOutcome::Redirect)) => (Fate::Redirect, status),
        (_, Some(LookOutcome::Gone)) => (Fate::Missing, status),
        // It was not reached in this run; what forbade it is still known.
        _ if ReasonCode::parse(outcome) == Some(ReasonCode::Robots) => {
            (Fate::Robots, "as before".to_owned())
        }
        _ => {
            let alone = || "not requested: its host is blocked".to_owned();
            (Fate::Failing, sentences::of(outcome).unwrap_or_else(alone))
        }
    };
    let (links, text) = match known {
        Some(known) if fate == Fate::Failing => (known.links.clone(), known.text),
        _ => (BTreeSet::new(), None),
    };
    FoundUrl { fate, why, links, text }
}

/// The page that named a document first.
fn linked_from(stage: &DemoStage, url: &str) -> anyhow::Result<String> {
    let request = WhyRequest { url: url.to_owned(), job: Some(JOB.to_owned()) };
    let answers = stage.ask::<Why>(request)?.answers;
    let details = answers.first().map_or(&[][..], |reason| &reason.details);
    let value = |name: &str| {
        let detail = details.iter().find(|detail| detail.name == name)?;
        Some(detail.value.as_str())
    };
    Ok(match value("linked from") {
        Some(page) => format!("linked from {}", stage.short(page)),
        None if value("distance") == Some("a seed") => "a seed".to_owned(),
        None => "named by robots.txt".to_owned(),
    })
}
