//! `driftline links`: who links to a page with which words, what it links to, and which
//! links it lost, when and why.
//!
//! `finding` finds the page, `asking` says what may be asked, `showing` prints, `listing` has
//! what this verb shares with `top` and `domains`. Invariant: an answer shows lists page by
//! page; a cursor belongs to the list that gave it.

mod asking;
pub mod finding;
pub mod keeping;
pub mod listing;
pub mod retention;
pub mod showing;
#[cfg(test)]
pub mod tests;

pub use asking::{Args, Ask, KIND_NAMES, kind_of};

use super::answers::Answers;
use super::place::Place;
use super::report::moments::calendar;
use super::{csv, say, stderr};
use anyhow::Context;
use asking::{List, Looking, kind_name};
use finding::{Candidates, Found};
use listing::Sheet;
use outputs::links::pages::PageLink;
use outputs::links::paging::Listing;
use outputs::links::queries::{self, Filter, Shown};
use outputs::links::rankings::url_of;
use page::facts::Rel;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::process::ExitCode;
use store::clock;
use store::sorted::View;

/// The answer.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Answer {
    asked: String,
    /// The page; `null` if nothing is known of it.
    page: Option<Head>,
    /// What is listed is new or lost since then.
    since_ms: Option<i64>,
    /// Who links to it; `null` where that was not asked.
    #[serde(rename = "in")]
    inward: Option<Listing<Line>>,
    /// What it links to.
    out: Option<Listing<Line>>,
    /// Who linked to it, the last one lost first.
    lost: Option<Listing<Line>>,
}

/// What is said first of a page.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[allow(missing_docs)]
pub struct Head {
    pub url: String,
    /// Its row.
    pub uri: String,
    /// How many pages link to it.
    pub incount: u64,
    /// How many URLs it links to.
    pub outcount: u64,
    /// Whether it was crawled and is there.
    pub crawled: bool,
    /// When a crawl last saw it; `null` if it is not there.
    pub last_seen_ms: Option<i64>,
    /// Why it is gone, and since when.
    pub gone: Option<String>,
    pub gone_ms: Option<i64>,
}

/// One link.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Line {
    /// The page at its other end.
    url: String,
    uri: String,
    anchor: String,
    kind: String,
    nofollow: bool,
    /// All its promises: `nofollow`, `ugc`, `sponsored`.
    rel: Vec<String>,
    first_seen_ms: i64,
    last_seen_ms: i64,
    /// When it was lost, and why; `null` while it is there.
    lost_ms: Option<i64>,
    reason: Option<String>,
}

impl From<Shown> for Line {
    fn from(it: Shown) -> Line {
        let promises =
            [(Rel::NOFOLLOW, "nofollow"), (Rel::UGC, "ugc"), (Rel::SPONSORED, "sponsored")];
        let rel = promises.iter().filter(|(rel, _)| Rel(it.rel).has(*rel));
        Line {
            rel: rel.map(|(_, name)| (*name).to_owned()).collect(),
            url: it.url,
            uri: it.uri,
            anchor: it.anchor,
            kind: kind_name(it.kind).to_owned(),
            nofollow: it.nofollow,
            first_seen_ms: it.first_seen_ms,
            last_seen_ms: it.last_seen_ms,
            lost_ms: it.lost_ms,
            reason: it.reason,
        }
    }
}

impl Head {
    /// Of a page that was found.
    pub fn of(found: &Found) -> Head {
        let page = found.page.as_ref();
        let there = page.filter(|(page, _)| page.is_there());
        let gone = page.filter(|(page, _)| !page.is_there());
        Head {
            url: url_of(&found.known.node.uri),
            uri: found.known.node.uri.clone(),
            incount: found.known.node.incount,
            outcount: page.map_or(0, |(page, _)| page.links.len() as u64),
            crawled: there.is_some(),
            last_seen_ms: there.map(|(_, seen_ms)| *seen_ms),
            gone: gone.map(|(page, _)| page.gone.clone()),
            gone_ms: gone.map(|(page, _)| page.date_ms),
        }
    }
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.keeping {
        Some(keeping) => keeping::run(keeping),
        None => look(args.looking),
    }
}

/// Shows the links of a page. One of which nothing is known is a "no".
fn look(looking: Looking) -> anyhow::Result<ExitCode> {
    let now_ms = clock::now_ms();
    let ask = looking.ask(now_ms)?;
    if looking.flags.csv {
        return export(&looking, ask);
    }
    let json = looking.place.link_session().ask("links", &ask)?;
    let answer = read(json.clone())?;
    match looking.place.json() {
        true => say(&json.to_string()),
        false => showing::lines(&looking, &answer, now_ms).iter().for_each(|line| say(line)),
    }
    Ok(if answer.page.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn export(looking: &Looking, ask: Ask) -> anyhow::Result<ExitCode> {
    let sheet = match ask.list {
        Some(List::Lost) => Sheet { columns: &LOST_COLUMNS, cells: lost_cells },
        _ => Sheet { columns: &LOST_COLUMNS[..6], cells },
    };
    let mut session = looking.place.link_session();
    let is_known = looking.flags.export(&sheet, |asked| {
        let answer = read(session.ask("links", Ask { page: asked.clone(), ..ask.clone() })?)?;
        Ok([answer.inward, answer.out, answer.lost].into_iter().flatten().next())
    })?;
    if is_known {
        return Ok(ExitCode::SUCCESS);
    }
    stderr::line(&unknown(&looking.place, &ask.url));
    Ok(ExitCode::FAILURE)
}

const LOST_COLUMNS: [&str; 8] =
    ["url", "anchor", "kind", "nofollow", "first_seen", "last_seen", "lost", "reason"];

fn cells(it: &Line) -> Vec<String> {
    vec![
        csv::cell(&it.url),
        csv::cell(&it.anchor),
        it.kind.clone(),
        if it.nofollow { "yes" } else { "no" }.to_owned(),
        calendar(it.first_seen_ms),
        calendar(it.last_seen_ms),
    ]
}

fn lost_cells(it: &Line) -> Vec<String> {
    let lost = it.lost_ms.map_or(String::new(), calendar);
    let reason = csv::cell(it.reason.as_deref().unwrap_or_default());
    [cells(it), vec![lost, reason]].concat()
}

fn read(json: Json) -> anyhow::Result<Answer> {
    serde_json::from_value(json)
        .context("the process that holds the directory is of another version")
}

/// What is said of a page that nobody has heard of.
pub fn unknown(place: &Place, asked: &str) -> String {
    format!(
        "nothing is known of {}: it was not crawled, and no page that was links to it; if it \
         should have been crawled, ask: driftline why {}{}",
        super::shown(asked),
        super::words::quoted(asked),
        place.flags()
    )
}

/// The answer, by whoever has the index open.
pub fn answer(answers: &Answers, ask: Ask) -> anyhow::Result<Json> {
    let (index, candidates) = finding::candidates(answers, &ask.url)?;
    let answer = index.read(move |view| answer_from(view, &candidates, &ask))?;
    Ok(serde_json::to_value(answer)?)
}

fn answer_from(view: &dyn View, candidates: &Candidates, ask: &Ask) -> store::Result<Answer> {
    let (asked, since_ms) = (ask.url.clone(), ask.filter.since_ms);
    let mut answer = Answer { asked, page: None, since_ms, inward: None, out: None, lost: None };
    let Some(found) = finding::find(view, candidates)? else { return Ok(answer) };
    answer.page = Some(Head::of(&found));
    let (known, filter, paging) = (&found.known, &ask.filter, ask.page.paging()?);
    if ask.wants(List::In) {
        answer.inward = Some(lines(queries::inlinks(view, known, filter, &paging)?));
    }
    if ask.wants(List::Lost) {
        answer.lost = Some(lines(queries::lost(view, known, filter, &paging)?));
    }
    if ask.wants(List::Out) {
        let (mut page, seen_ms) = found.page.unwrap_or_default();
        page.links.retain(|link| takes(filter, link));
        answer.out = Some(lines(queries::outlinks(&page, seen_ms, &paging)));
    }
    Ok(answer)
}

fn lines(listing: Listing<Shown>) -> Listing<Line> {
    let Listing { items, next, previous } = listing;
    Listing { items: items.into_iter().map(Line::from).collect(), next, previous }
}

/// Whether a filter takes an out-link.
fn takes(filter: &Filter, link: &PageLink) -> bool {
    let first_ms = i64::try_from(link.first_s.saturating_mul(1_000)).unwrap_or(i64::MAX);
    filter.since_ms.is_none_or(|since_ms| first_ms >= since_ms)
        && filter.nofollow.is_none_or(|it| it == link.rel.has(Rel::NOFOLLOW))
        && filter.kind.is_none_or(|kind| kind == link.kind)
}
