//! Last step: what to type next.

use super::stage::DemoStage;
use serde_json::Value as Json;

/// Commands for a crawl of one's own.
const COMMANDS: [(&str, &str); 4] = [
    ("driftline crawl https://example.com/", "crawl a site; repeat it later"),
    ("driftline status", "the state of its job"),
    ("driftline documents --state failed", "what could not be fetched"),
    ("driftline why https://example.com/page", "why a page is stored or not"),
];

pub fn step(stage: &mut DemoStage) -> anyhow::Result<()> {
    if stage.kept.is_some() {
        let flags = stage.flags();
        stage.title("The data directory is kept; explore it with");
        for command in ["status", "documents --state cut", "hosts"] {
            stage.say(&format!("  driftline {command}{flags}"));
        }
    }
    stage.title("Now try a site of your own");
    for (command, what) in COMMANDS {
        stage.say(&format!("  {command:<39} {what}"));
    }
    let data = stage.kept.as_ref().map(|kept| kept.display().to_string());
    stage.record("data", data.map_or(Json::Null, Json::from));
    Ok(())
}
