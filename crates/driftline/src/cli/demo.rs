//! `driftline demo`: shows, offline and by itself, what the program can do today.
//!
//! Everything it prints was computed by the same functions a crawl will use, in a
//! temporary data directory that is gone afterwards. It serves no pages and crawls
//! nothing yet.

mod sample;

use super::{say, shown};
use clap::Args as ClapArgs;
use page::facts::{Facts, Rel};
use page::html::{self, Input};
use page::robots::Robots;
use page::url::Policy;
use std::process::ExitCode;

const ROBOTS: &str = include_str!("demo/robots.txt");
const PAGE: &str = include_str!("demo/page.html");
const PAGE_URL: &str = "https://www.tides.example/harbours";
const AGENT: &str = "driftline";

/// Show, offline, what there is
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline demo")]
pub struct Args {}

/// Runs the verb.
pub fn run(_: Args) -> anyhow::Result<ExitCode> {
    say("Driftline shows what it has so far. Nothing leaves this machine.");
    let robots = Robots::parse(ROBOTS.as_bytes());
    show_robots(&robots);
    let facts = html::extract(&Input::new(PAGE.as_bytes(), PAGE_URL, &Policy::default()));
    show_facts(&facts);
    show_near_duplicate(&facts);
    say("");
    say("That is all for now: the crawl itself comes next. `driftline --help` lists the verbs.");
    Ok(ExitCode::SUCCESS)
}

fn show_robots(robots: &Robots) {
    heading("A robots.txt decides, and says which line did");
    for path in ["/harbours", "/drafts/new-gauge.html", "/drafts/published.html"] {
        let verdict = robots.verdict(AGENT, path);
        let word = if verdict.allowed { "allowed" } else { "disallowed" };
        let rule = match &verdict.rule {
            Some(rule) => format!("line {}: {}", rule.line, shown(&rule.text)),
            None => "no rule applies".to_owned(),
        };
        say(&format!("  {path:<26} {word:<11} {rule}"));
    }
    let delay = robots.crawl_delay_ms(AGENT).unwrap_or(0);
    say(&format!("  and asks for {delay} ms between requests"));
}

fn show_facts(facts: &Facts) {
    heading("A page becomes facts, in one streaming pass");
    say(&format!("  title      {}", shown(&facts.title)));
    say(&format!("  language   {}", facts.language.as_deref().unwrap_or("unknown")));
    say(&format!("  canonical  {}", facts.canonical.as_deref().unwrap_or("none")));
    say(&format!("  text       {} bytes, {} headings", facts.text.len(), facts.headings.len()));
    for link in &facts.links {
        let nofollow = if link.rel.has(Rel::NOFOLLOW) { "  (nofollow)" } else { "" };
        let kind = format!("{:?}", link.kind).to_lowercase();
        say(&format!(
            "  link       {kind:<10} {} \"{}\"{nofollow}",
            shown(&link.url),
            shown(&link.anchor)
        ));
    }
}

fn show_near_duplicate(facts: &Facts) {
    heading("A small edit is recognised as one");
    let edited = PAGE.replace("every spring", "every autumn");
    let edited = html::extract(&Input::new(edited.as_bytes(), PAGE_URL, &Policy::default()));
    let same = |equal| if equal { "same" } else { "different" };
    say(&format!("  bytes {}", same(facts.content_hash == edited.content_hash)));
    say(&format!("  text  {}", same(facts.text_hash == edited.text_hash)));
    let bits = page::fingerprint::distance(facts.simhash, edited.simhash);
    say(&format!("  {bits} of 64 bits of the fingerprint differ"));
}

fn heading(text: &str) {
    say("");
    say(text);
}
