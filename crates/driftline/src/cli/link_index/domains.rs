//! `driftline domains`: the domains of the link index, from the one with most pages on.

use super::links::listing::{Flags, Sheet};
use crate::cli::{csv, say, say_json};
use crate::place::Place;
use crate::text::{shown, table};
use crate::verbs::Verb;
use crate::verbs::links::domains::Domains;
use clap::Args as ClapArgs;
use outputs::links::paging::Listing;
use outputs::links::rankings::Domain;
use std::process::ExitCode;

/// List the known domains, those with the most pages first
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

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let page = args.flags.page(args.place.json())?;
    let mut session = args.place.session(Domains::OPENS);
    if args.flags.csv {
        let sheet = Sheet {
            columns: &["domain", "pages"],
            cells: |it: &Domain| vec![csv::cell(&it.domain), it.pages.to_string()],
        };
        args.flags.export(&sheet, |page| session.ask::<Domains>(page.clone()).map(Some))?;
        return Ok(ExitCode::SUCCESS);
    }
    let listing = session.ask::<Domains>(page)?;
    match args.place.json() {
        true => say_json(&listing)?,
        false => lines(&args, &listing).iter().for_each(|line| say(line)),
    }
    Ok(ExitCode::SUCCESS)
}

fn lines(args: &Args, listing: &Listing<Domain>) -> Vec<String> {
    if listing.items.is_empty() {
        return vec!["no page has been crawled yet".to_owned()];
    }
    let mut rows = vec![["pages", "domain"].map(str::to_owned).to_vec()];
    rows.extend(listing.items.iter().map(|it| vec![it.pages.to_string(), shown(&it.domain)]));
    let command = format!("driftline domains{}", args.place.flags());
    [table(&rows, |at| at == 0), args.flags.ways(&command, listing)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::links::scene::{Scene, parsed, suggested};
    use clap::Parser;

    #[derive(Parser)]
    struct DomainsCommand {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn domains_come_by_their_pages() {
        let scene = Scene::new();
        let args = parsed::<DomainsCommand>(&["domains", "--limit", "2"]).args;
        let asked =
            |args: &Args| Domains::answer(&scene.context, args.flags.page(false).unwrap()).unwrap();
        let first = asked(&args);
        let told = lines(&args, &first);
        assert_eq!(told[..3], ["pages  domain", "    3  a.example", "    2  b.example"]);
        let on = format!("next page: driftline domains --limit 2 --cursor {}", first.next.unwrap());
        assert_eq!(told[3], on);
        let rest = asked(&parsed::<DomainsCommand>(&suggested(&on)).args);
        assert_eq!(rest.items, [Domain { domain: "c.example".into(), pages: 1 }]);
        assert!(rest.next.is_none() && rest.previous.is_some());
    }
}
