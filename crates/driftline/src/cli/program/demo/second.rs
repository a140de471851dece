//! Fourth step: the second crawl, and what it made of every URL, host by host.

use super::fates::FoundUrl;
use super::first::cost;
use super::round;
use super::stage::DemoStage;
use crate::demo_site::{self, Fate};
use page::url::{host_of, path_of};
use serde_json::json;
use std::collections::BTreeMap;

/// What is told URL by URL, with the word for it. Of the others there are numbers.
const TOLD: [(Fate, &str); 6] = [
    (Fate::Added, "added"),
    (Fate::Updated, "updated"),
    (Fate::Restyled, "updated"),
    (Fate::Removed, "removed"),
    (Fate::Moved, "removed"),
    (Fate::Failing, "kept"),
];
/// What is told in numbers, with the words before them.
const COUNTED: [(&str, &[Fate]); 2] = [
    ("unchanged", &[Fate::Kept, Fate::Same]),
    ("as before", &[Fate::Redirect, Fate::Missing, Fate::Noindex, Fate::Robots, Fate::Trap]),
];

/// A link that one page lost and another gained.
struct MovedLink {
    target: String,
    from: String,
    to: String,
}

/// Crawls again, and tells what came of it.
pub fn step(stage: &mut DemoStage) -> anyhow::Result<()> {
    stage.title("The second crawl checks every known URL again");
    round::crawl(stage)?;
    let [first, second] = stage.rounds.as_slice() else { return Ok(()) };
    stage.say(&cost(second));
    stage.wrapped(&format!("  {}", totals(&second.found)));
    for host in demo_site::names() {
        print_host(stage, &second.found, host);
    }
    let moved = moved_links(&first.found, &second.found);
    for link in &moved {
        let [target, from, to] = [&link.target, &link.from, &link.to].map(|url| stage.short(url));
        stage.say(&format!("  The link to {target} moved\n    from {from}\n    to   {to}"));
    }
    let moved: Vec<_> = moved
        .iter()
        .map(|link| json!({"target": link.target, "from": link.from, "to": link.to}))
        .collect();
    let crawls = [first.json()?, second.json()?];
    stage.record("crawls", crawls.to_vec().into());
    stage.record("moved_links", moved.into());
    Ok(())
}

/// All of it in one sentence.
fn totals(found: &BTreeMap<String, FoundUrl>) -> String {
    let count = |fates: &[Fate]| found.values().filter(|it| fates.contains(&it.fate)).count();
    format!(
        "{} added, {} updated, {} removed, {} unchanged ({} of them not modified), {} {}",
        count(&[Fate::Added]),
        count(&[Fate::Updated, Fate::Restyled]),
        count(&[Fate::Removed, Fate::Moved]),
        count(&[Fate::Kept, Fate::Same]),
        count(&[Fate::Kept]),
        count(&[Fate::Failing]),
        Fate::Failing.words(),
    )
}

fn print_host(stage: &DemoStage, found: &BTreeMap<String, FoundUrl>, host: &str) {
    let of_host = || found.iter().filter(|(url, _)| host_of(url) == host);
    stage.say(&format!("  {host}"));
    for (fate, word) in TOLD {
        for (url, found) in of_host().filter(|(_, found)| found.fate == fate) {
            // Within a host its name says nothing.
            let why = found.why.replace(&format!(" {host}/"), " /");
            stage.say(&format!("    {word:<9} {:<19} {why}", path_of(url)));
        }
    }
    for (words, fates) in COUNTED {
        let numbers = numbers(|| of_host().map(|(_, found)| found.fate), fates);
        if !numbers.is_empty() {
            stage.say(&format!("    {words} {}", numbers.join(", ")));
        }
    }
}

/// How many there are of each fate, in words.
fn numbers<I: Iterator<Item = Fate>>(all: impl Fn() -> I, fates: &[Fate]) -> Vec<String> {
    let counted = fates.iter().map(|fate| (fate, all().filter(|one| one == fate).count()));
    let some = counted.filter(|(_, number)| *number > 0);
    some.map(|(fate, number)| format!("{number} {}", fate.words())).collect()
}

/// Links that left a page for another one.
fn moved_links(
    before: &BTreeMap<String, FoundUrl>,
    after: &BTreeMap<String, FoundUrl>,
) -> Vec<MovedLink> {
    let mut lost: BTreeMap<&str, &str> = BTreeMap::new();
    let both = || after.iter().filter_map(|(url, found)| Some((url, before.get(url)?, found)));
    for (url, was, is) in both() {
        if matches!(is.fate, Fate::Updated | Fate::Restyled) {
            lost.extend(was.links.difference(&is.links).map(|link| (link.as_str(), url.as_str())));
        }
    }
    let mut moved = Vec::new();
    for (url, was, is) in both() {
        for target in is.links.difference(&was.links) {
            if let Some(from) = lost.get(target.as_str()).filter(|_| is.fate == Fate::Updated) {
                let (target, from, to) = (target.clone(), (*from).to_owned(), url.clone());
                moved.push(MovedLink { target, from, to });
            }
        }
    }
    moved
}
