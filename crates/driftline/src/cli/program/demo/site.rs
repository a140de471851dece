//! First step: what is served.

use super::stage::DemoStage;
use crate::demo_site;
use serde_json::json;

/// Tells which hosts there are.
pub fn step(stage: &mut DemoStage) -> anyhow::Result<()> {
    let hosts = demo_site::hosts();
    let port = stage.site.web().port();
    let pages: usize = hosts.iter().map(|(_, _, pages)| pages).sum();
    stage.say(&format!(
        "A small web is served on this machine: {} hosts, {pages} pages, at 127.0.0.1:{port}.\nNo \
         request leaves the machine. Below, URLs are shown without http:// and :{port}.",
        hosts.len()
    ));
    for (name, title, pages) in &hosts {
        stage.say(&format!("  {name:<28} {title:<32} {pages:>2} pages"));
    }
    stage.record("port", port.into());
    let hosts: Vec<_> = hosts
        .iter()
        .map(|(name, title, pages)| json!({"name": name, "title": title, "pages": pages}))
        .collect();
    stage.record("hosts", hosts.into());
    Ok(())
}
