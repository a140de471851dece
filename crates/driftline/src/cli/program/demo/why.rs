//! Fifth step: `driftline why`, asked for a page that went and for one that could not be
//! had.

use super::round::JOB;
use super::stage::DemoStage;
use crate::cli::jobs::why;
use crate::demo_site::{FAILING, Fate};
use crate::verbs::jobs::why::{Why, WhyRequest};
use crate::verbs::wire;
use page::url::host_of;

/// Asks, and tells the answers as the verb does.
pub fn step(stage: &mut DemoStage) -> anyhow::Result<()> {
    let Some(round) = stage.rounds.last() else { return Ok(()) };
    let find = |fate: Fate, host: &str| {
        let is_meant = |url: &str| host.is_empty() || host_of(url) == host;
        round.found.iter().find(|(url, found)| found.fate == fate && is_meant(url))
    };
    let asked = [find(Fate::Removed, ""), find(Fate::Failing, FAILING)];
    let urls: Vec<String> = asked.into_iter().flatten().map(|(url, _)| url.clone()).collect();
    stage.title("`driftline why` explains the state of any URL");
    let mut answers = Vec::new();
    for url in urls {
        let request = WhyRequest { url: url.clone(), job: Some(JOB.to_owned()) };
        let response = stage.ask::<Why>(request)?;
        stage.say(&format!("  $ driftline why {url}{}", stage.flags()));
        for line in why::lines(&response, &stage.flags()) {
            stage.wrapped(&format!("  {line}"));
        }
        answers.push(wire::encode(&response)?);
    }
    stage.record("why", answers.into());
    Ok(())
}
