//! `driftline top`: the most linked pages, of all or of one domain.
//!
//! By in-links, or by score: in-links and one more if the page was crawled. Invariant: the
//! order is whole, pages with equal figures by their rows, so a cursor shows none twice.

use super::answers::Answers;
use super::links::finding;
use super::links::listing::{self, Flags, Sheet};
use super::links::showing::pages;
use super::place::Place;
use super::words::{quoted, table};
use super::{csv, say, shown, stderr};
use anyhow::Context;
use clap::Args as ClapArgs;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use outputs::links::paging::Listing;
use outputs::links::rankings::{self, By, Ranked};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::process::ExitCode;

/// List the most linked pages
#[derive(ClapArgs)]
#[command(after_help = "\
Example: driftline top --limit 100
Example: driftline top --by score --domain example.com
Example: driftline top --csv")]
pub struct Args {
    #[command(flatten)]
    place: Place,
    /// What counts: in-links, or in-links and one more if it was crawled
    #[arg(long, value_name = "FIGURE", default_value = "incount",
          value_parser = PossibleValuesParser::new(["incount", "score"]).map(by_of))]
    by: By,
    /// Only pages of this domain; a host or a URL of it will do
    #[arg(long, value_name = "NAME")]
    domain: Option<String>,
    #[command(flatten)]
    flags: Flags,
}

fn by_of(name: String) -> By {
    if name == "score" { By::Score } else { By::Incount }
}

/// The question, as it goes through a socket.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    by: By,
    domain: Option<String>,
    page: listing::Asked,
}

/// The answer.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Answer {
    by: By,
    /// The domain as it is known, if one was asked for.
    domain: Option<String>,
    /// How many pages it has that are crawled or linked to; `null` if it is not known.
    pages: Option<u64>,
    #[serde(flatten)]
    listing: Listing<Ranked>,
}

impl Answer {
    /// The name of a domain that was asked for and is not known.
    fn unknown(&self) -> Option<&str> {
        self.domain.as_deref().filter(|_| self.pages.is_none())
    }
}

/// Runs the verb. A domain of which nothing is known is a "no".
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let page = args.flags.asked(args.place.json())?;
    let ask = Ask { by: args.by, domain: args.domain.clone(), page };
    if args.flags.csv {
        return export(&args, &ask);
    }
    let json = args.place.link_session().ask("top", &ask)?;
    let answer = read(json.clone())?;
    match args.place.json() {
        true => say(&json.to_string()),
        false => lines(&args, &answer).iter().for_each(|line| say(line)),
    }
    Ok(if answer.unknown().is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn export(args: &Args, ask: &Ask) -> anyhow::Result<ExitCode> {
    let sheet = Sheet {
        columns: &["url", "incount", "score", "crawled"],
        cells: |it: &Ranked| {
            let crawled = if it.crawled { "yes" } else { "no" };
            vec![
                csv::cell(&it.url),
                it.incount.to_string(),
                it.score.to_string(),
                crawled.to_owned(),
            ]
        },
    };
    let mut session = args.place.link_session();
    let mut missing = None;
    args.flags.export(&sheet, |asked| {
        let answer = read(session.ask("top", Ask { page: asked.clone(), ..ask.clone() })?)?;
        missing = answer.unknown().map(unknown);
        Ok(Some(answer.listing).filter(|_| missing.is_none()))
    })?;
    if let Some(sentence) = missing {
        stderr::line(&sentence);
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn read(json: Json) -> anyhow::Result<Answer> {
    serde_json::from_value(json)
        .context("the process that holds the directory is of another version")
}

fn unknown(domain: &str) -> String {
    format!("no page of {} is known; `driftline domains` lists the domains that are", shown(domain))
}

/// The answer, by whoever has the index open.
pub fn answer(answers: &Answers, ask: Ask) -> anyhow::Result<Json> {
    let index = answers.links.open()?;
    let paging = ask.page.paging()?;
    let (domain, pages) = match &ask.domain {
        Some(asked) => {
            let (name, pages) = finding::domain(answers, asked)?;
            (Some(name), pages)
        }
        None => (None, None),
    };
    let (by, parts, of) = (ask.by, index.parts(), domain.clone());
    let listing = index.read(move |view| match &of {
        Some(domain) => rankings::top_of_domain(view, parts, domain, by, &paging),
        None => rankings::top(view, parts, by, &paging),
    })?;
    Ok(serde_json::to_value(Answer { by, domain, pages, listing })?)
}

fn lines(args: &Args, answer: &Answer) -> Vec<String> {
    if let Some(domain) = answer.unknown() {
        return vec![unknown(domain)];
    }
    let mut out = Vec::new();
    if let (Some(domain), Some(number)) = (&answer.domain, answer.pages) {
        out.push(format!("{}: {}", shown(domain), pages(number)));
    }
    if answer.listing.items.is_empty() {
        out.push("no page is crawled or linked to yet".to_owned());
        return out;
    }
    let mut rows = vec![["in-links", "score", "crawled", "page"].map(str::to_owned).to_vec()];
    rows.extend(answer.listing.items.iter().map(|it| {
        let crawled = if it.crawled { "yes" } else { "no" };
        vec![it.incount.to_string(), it.score.to_string(), crawled.to_owned(), shown(&it.url)]
    }));
    out.extend(table(&rows, |at| at < 2));
    out.extend(args.flags.ways(&command(args), &answer.listing));
    out
}

/// The command that asks for this list, without a cursor.
fn command(args: &Args) -> String {
    let by = if args.by == By::Score { " --by score" } else { "" };
    let domain = args.domain.as_ref();
    let domain = domain.map_or(String::new(), |name| format!(" --domain {}", quoted(name)));
    format!("driftline top{by}{domain}{}", args.place.flags())
}

#[cfg(test)]
mod tests;
