//! Third step: the web changes.

use super::stage::DemoStage;
use crate::demo_site::{self, FAILING, MOVED_LINK, SiteChange};
use serde_json::json;
use std::collections::BTreeMap;

/// Changes the web, and tells what is different.
pub fn step(stage: &mut DemoStage) -> anyhow::Result<()> {
    stage.site.change();
    let changes = demo_site::changes();
    stage.title("The web changes");
    for host in demo_site::names().into_iter().filter(|host| *host != FAILING) {
        stage.say(&format!("  {host}"));
        for (what, paths) in by_what(&changes, host) {
            stage.wrapped(&format!("    {what}: {}", paths.join(", ")));
        }
    }
    stage.say(&format!("  {FAILING} fails: it answers everything with status 503"));
    let [from, to, target] = MOVED_LINK.map(|(host, path)| format!("{host}{path}"));
    stage.say(&format!("  The link to {target} moves\n    from {from}\n    to   {to}"));
    let changes: Vec<_> = changes
        .iter()
        .map(|it| json!({"host": it.host, "path": it.path, "what": it.what}))
        .collect();
    stage.record("changes", changes.into());
    Ok(())
}

/// What happens at a host, each kind with its paths.
fn by_what(changes: &[SiteChange], host: &str) -> BTreeMap<String, Vec<String>> {
    let mut kinds: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for change in changes.iter().filter(|change| change.host == host) {
        kinds.entry(change.what.clone()).or_default().push(change.path.to_owned());
    }
    kinds
}
