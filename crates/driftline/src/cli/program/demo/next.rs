//! Last step: what to type next.

use super::stage::DemoStage;
use serde_json::Value as Json;

/// Commands for a crawl of one's own.
const COMMANDS: [(&str, &str); 4] = [
    ("driftline crawl https://example.com/", "crawl a site; later again"),
    ("driftline status", "how its job stands"),
    ("driftline documents --state failed", "what could not be had"),
    ("driftline why https://example.com/page", "why a page is stored, or is not"),
];

pub fn step(stage: &mut DemoStage) -> anyhow::Result<()> {
    if stage.kept.is_some() {
        let flags = stage.flags();
        stage.title("The data directory is kept; look around in it");
        for command in ["status", "documents --state cut", "hosts"] {
            stage.say(&format!("  driftline {command}{flags}"));
        }
    }
    stage.title("Now with a site of yours");
    for (command, what) in COMMANDS {
        stage.say(&format!("  {command:<39} {what}"));
    }
    let data = stage.kept.as_ref().map(|kept| kept.display().to_string());
    stage.record("data", data.map_or(Json::Null, Json::from));
    Ok(())
}
