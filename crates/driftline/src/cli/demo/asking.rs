//! Fifth step: `driftline why`, asked for a page that went and for one that could not be
//! had.

use super::round::JOB;
use super::stage::Stage;
use crate::cli::why;
use crate::demo_site::{FAILING, Fate};
use page::url::host_of;
use serde_json::json;

/// Asks, and tells the answers as the verb does.
pub fn step(stage: &mut Stage) -> anyhow::Result<()> {
    let Some(round) = stage.rounds.last() else { return Ok(()) };
    let find = |fate: Fate, host: &str| {
        let is_meant = |url: &str| host.is_empty() || host_of(url) == host;
        round.found.iter().find(|(url, found)| found.fate == fate && is_meant(url))
    };
    let asked = [find(Fate::Removed, ""), find(Fate::Failing, FAILING)];
    let urls: Vec<String> = asked.into_iter().flatten().map(|(url, _)| url.clone()).collect();
    stage.title("Every URL can be asked about");
    let mut answers = Vec::new();
    for url in urls {
        let answer = stage.ask("why", json!({"url": url, "job": JOB}))?;
        stage.say(&format!("  $ driftline why {url}{}", stage.flags()));
        for line in why::told(answer.clone(), &stage.flags())? {
            stage.wrapped(&format!("  {line}"));
        }
        answers.push(answer);
    }
    stage.tell("why", answers.into());
    Ok(())
}
