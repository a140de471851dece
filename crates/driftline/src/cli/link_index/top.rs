//! `driftline top`: the most linked pages, of all or of one domain.

use super::links::listing::{Flags, Sheet};
use super::links::show::pages;
use crate::cli::{csv, say, say_json};
use crate::place::Place;
use crate::stderr;
use crate::text::{quoted, shown, table};
use crate::verbs::Verb;
use crate::verbs::links::top::{Top, TopRequest, TopResponse};
use clap::Args as ClapArgs;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use outputs::links::rankings::{By, RankedUri};
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
    /// Rank by the number of in-links, or by a score: in-links, plus one if the page was crawled
    #[arg(long, value_name = "FIGURE", default_value = "incount",
          value_parser = PossibleValuesParser::new(["incount", "score"]).map(by_of))]
    by: By,
    /// Only pages of this domain, given as a domain, a host or a URL
    #[arg(long, value_name = "NAME")]
    domain: Option<String>,
    #[command(flatten)]
    flags: Flags,
}

fn by_of(name: String) -> By {
    if name == "score" { By::Score } else { By::Incount }
}

/// Runs the verb. A domain of which nothing is known is a "no".
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let request = args.request(args.place.json())?;
    if args.flags.csv {
        return export(&args, &request);
    }
    let response = args.place.ask::<Top>(request)?;
    match args.place.json() {
        true => say_json(&response)?,
        false => lines(&args, &response).iter().for_each(|line| say(line)),
    }
    let is_known = response.unknown_domain().is_none();
    Ok(if is_known { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Args {
    fn request(&self, json: bool) -> anyhow::Result<TopRequest> {
        let page = self.flags.page(json)?;
        Ok(TopRequest { by: self.by, domain: self.domain.clone(), page })
    }
}

fn export(args: &Args, request: &TopRequest) -> anyhow::Result<ExitCode> {
    let sheet = Sheet {
        columns: &["url", "incount", "score", "crawled"],
        cells: |it: &RankedUri| {
            let crawled = if it.crawled { "yes" } else { "no" };
            vec![
                csv::cell(&it.url),
                it.incount.to_string(),
                it.score.to_string(),
                crawled.to_owned(),
            ]
        },
    };
    let mut session = args.place.session(Top::OPENS);
    let mut missing = None;
    args.flags.export(&sheet, |page| {
        let request = TopRequest { page: page.clone(), ..request.clone() };
        let response = session.ask::<Top>(request)?;
        missing = response.unknown_domain().map(unknown);
        Ok(Some(response.listing).filter(|_| missing.is_none()))
    })?;
    if let Some(sentence) = missing {
        stderr::line(&sentence);
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn unknown(domain: &str) -> String {
    format!("no page of {} is known; `driftline domains` lists the known domains", shown(domain))
}

fn lines(args: &Args, response: &TopResponse) -> Vec<String> {
    if let Some(domain) = response.unknown_domain() {
        return vec![unknown(domain)];
    }
    let mut out = Vec::new();
    if let (Some(domain), Some(number)) = (&response.domain, response.pages) {
        out.push(format!("{}: {}", shown(domain), pages(number)));
    }
    if response.listing.items.is_empty() {
        out.push("no page has been crawled yet".to_owned());
        return out;
    }
    let mut rows = vec![["in-links", "score", "crawled", "page"].map(str::to_owned).to_vec()];
    rows.extend(response.listing.items.iter().map(|it| {
        let crawled = if it.crawled { "yes" } else { "no" };
        vec![it.incount.to_string(), it.score.to_string(), crawled.to_owned(), shown(&it.url)]
    }));
    out.extend(table(&rows, |at| at < 2));
    out.extend(args.flags.ways(&command(args), &response.listing));
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
