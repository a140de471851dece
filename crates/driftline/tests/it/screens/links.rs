//! What commands about links and the search print.

use super::Screens;
use super::crawled::Copy;
use super::redacted::Varying;

const STORM: &str = "http://lighthouse.example:8017/history/great-storm";
const NOBODY: &str = "http://nobody.example/";

#[test]
fn links() {
    let copy = Copy::new();
    Screens::of(&copy.data())
        .both(&["links", STORM])
        .text(&["links", STORM, "--in", "--limit", "1"])
        .both(&["links", STORM, "--lost"])
        .text(&["links", STORM, "--since", "1h"])
        .text(&["links", STORM, "--in", "--csv"])
        .text(&["links", NOBODY])
        .json(&["links", NOBODY])
        .text(&["links", STORM, "--cursor", "x"])
        .both(&["links", "retention"])
        .both(&["links", "verify"])
        .text(&["links", "rebuild"])
        .hold("links");
}

#[test]
fn page() {
    let copy = Copy::new();
    Screens::of(&copy.data()).both(&["page", STORM]).text(&["page", NOBODY]).hold("page");
}

#[test]
fn top() {
    let copy = Copy::new();
    let of_tides = ["top", "--domain", "tides.example", "--by", "score", "--limit", "2"];
    Screens::of(&copy.data())
        .text(&["top", "--limit", "3"])
        .both(&of_tides)
        .text(&["top", "--domain", "nobody.example"])
        .hold("top");
}

#[test]
fn domains() {
    let copy = Copy::new();
    Screens::of(&copy.data()).text(&["domains"]).both(&["domains", "--limit", "1"]).hold("domains");
}

#[test]
fn search() {
    let copy = Copy::new();
    Screens::of(&copy.data())
        .varying(Varying {
            texts: &[(r"\b20\d\d( \(|$)", "0000$1")],
            fields: &["score", "took_ms"],
        })
        .both(&["search", "\"great storm\" site:lighthouse.example intitle:storm"])
        .text(&["search", "--facets", "--limit", "1", "intitle:tides site:www.tides.example"])
        .text(&["search", "stomr"])
        .text(&["search", "\"open phrase"])
        .both(&["search", "verify"])
        .hold("search");
}
