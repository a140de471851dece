//! `driftline domains`: the domains of the link index, from the one with most pages on.
//!
//! A page counts when it was crawled or a page that was links to it. Invariant: domains with
//! equal figures come by name, so a cursor shows none twice.

use super::answers::Answers;
use super::links::listing::{self, Flags, Sheet};
use super::place::Place;
use super::words::table;
use super::{csv, say, shown};
use anyhow::Context;
use clap::Args as ClapArgs;
use outputs::links::paging::Listing;
use outputs::links::rankings::{self, Domain};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::process::ExitCode;

/// List the domains of which pages are known, the largest first
#[derive(ClapArgs)]
#[command(after_help = "\
Example: driftline domains --limit 100
Example: driftline domains --csv")]
pub struct Args {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    flags: Flags,
}

/// The question, as it goes through a socket.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    page: listing::Asked,
}

/// The answer.
pub type Answer = Listing<Domain>;

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let ask = Ask { page: args.flags.asked(args.place.json())? };
    let mut session = args.place.link_session();
    if args.flags.csv {
        let sheet = Sheet {
            columns: &["domain", "pages"],
            cells: |it: &Domain| vec![csv::cell(&it.domain), it.pages.to_string()],
        };
        args.flags.export(&sheet, |asked| {
            read(session.ask("domains", Ask { page: asked.clone() })?).map(Some)
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let json = session.ask("domains", &ask)?;
    match args.place.json() {
        true => say(&json.to_string()),
        false => lines(&args, &read(json)?).iter().for_each(|line| say(line)),
    }
    Ok(ExitCode::SUCCESS)
}

fn read(json: Json) -> anyhow::Result<Listing<Domain>> {
    serde_json::from_value(json)
        .context("the process that holds the directory is of another version")
}

/// The answer, by whoever has the index open.
pub fn answer(answers: &Answers, ask: Ask) -> anyhow::Result<Json> {
    let index = answers.links.open()?;
    let (paging, parts) = (ask.page.paging()?, index.parts());
    let listing = index.read(move |view| rankings::domains(view, parts, &paging))?;
    Ok(serde_json::to_value(listing)?)
}

fn lines(args: &Args, listing: &Listing<Domain>) -> Vec<String> {
    if listing.items.is_empty() {
        return vec!["no page is crawled or linked to yet".to_owned()];
    }
    let mut rows = vec![["pages", "domain"].map(str::to_owned).to_vec()];
    rows.extend(listing.items.iter().map(|it| vec![it.pages.to_string(), shown(&it.domain)]));
    let command = format!("driftline domains{}", args.place.flags());
    [table(&rows, |at| at == 0), args.flags.ways(&command, listing)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::links::tests::{Scene, parsed, suggested};
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn domains_come_by_their_pages() {
        let scene = Scene::new();
        let args = parsed::<Line>(&["domains", "--limit", "2"]).args;
        let asked = |args: &Args| {
            let ask = Ask { page: args.flags.asked(false).unwrap() };
            read(answer(&scene.answers, ask).unwrap()).unwrap()
        };
        let first = asked(&args);
        let told = lines(&args, &first);
        assert_eq!(told[..3], ["pages  domain", "    3  a.example", "    2  b.example"]);
        let on =
            format!("go on with: driftline domains --limit 2 --cursor {}", first.next.unwrap());
        assert_eq!(told[3], on);
        let rest = asked(&parsed::<Line>(&suggested(&on)).args);
        assert_eq!(rest.items, [Domain { domain: "c.example".into(), pages: 1 }]);
        assert!(rest.next.is_none() && rest.previous.is_some());
    }
}
