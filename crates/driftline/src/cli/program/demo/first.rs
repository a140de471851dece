//! Second step: the first crawl, with an example of everything that it met.

use super::round::{self, Round};
use super::stage::DemoStage;
use crate::demo_site::Fate;
use crate::text::size;
use crate::verbs::jobs::why::{Why, WhyRequest};

/// Fates in the order of the story, each with the example that tells most.
const FATES: [(Fate, &str); 7] = [
    (Fate::Added, "/2026/herring"),
    (Fate::Redirect, "/ferry"),
    (Fate::Missing, ""),
    (Fate::Noindex, ""),
    (Fate::Robots, "/drafts/"),
    (Fate::Trap, ""),
    (Fate::Failing, ""),
];

/// Crawls, and tells what was met.
pub fn step(stage: &mut DemoStage) -> anyhow::Result<()> {
    stage.title("The first crawl");
    round::crawl(stage)?;
    let Some(round) = stage.rounds.last() else { return Ok(()) };
    stage.say(&cost(round));
    for (fate, path) in FATES {
        example(stage, round, fate, path)?;
    }
    Ok(())
}

/// What a crawl cost.
pub fn cost(round: &Round) -> String {
    format!(
        "  {} URLs, {} requests ({} conditional), {} received, {:.1} s",
        round.found.len(),
        round.visits.len(),
        round.conditional(),
        size(i64::try_from(round.worked.did.bytes).unwrap_or(i64::MAX)),
        round.took.as_secs_f64(),
    )
}

fn example(stage: &DemoStage, round: &Round, fate: Fate, path: &str) -> anyhow::Result<()> {
    let of_fate: Vec<&String> =
        round.found.iter().filter(|(_, found)| found.fate == fate).map(|(url, _)| url).collect();
    let telling = of_fate.iter().find(|url| url.contains(path)).or(of_fate.first());
    let Some(url) = telling else { return Ok(()) };
    let number = of_fate.len();
    stage.say(&format!("  {number:>3} {:<24} {}", fate.words(), stage.short(url)));
    if fate == Fate::Added {
        return Ok(());
    }
    let request = WhyRequest { url: (*url).clone(), job: Some(round::JOB.to_owned()) };
    if let Some(reason) = stage.ask::<Why>(request)?.answers.first() {
        stage.wrapped(&format!("        {}", stage.short(&reason.sentence)));
    }
    Ok(())
}
