//! The link index goes where the data goes: into a backup and back.

use super::Place;
use serde_json::Value;

const PAGES: &str = "\
{\"url\":\"http://a.com/1\",\"crawlDate\":\"2026-01-02T00:00:00Z\",\"outboundLinks\":[{\"url\":\"http://b.com/\",\"anchorText\":\"b\"}]}
{\"url\":\"http://c.com/2\",\"crawlDate\":\"2026-01-02T00:00:00Z\",\"outboundLinks\":[{\"url\":\"http://b.com/\",\"anchorText\":\"b\"}]}
";

/// A directory into which pages were loaded.
fn loaded() -> Place {
    let place = Place::empty();
    let pages = place.folder.path().join("pages.txt");
    std::fs::write(&pages, PAGES).unwrap();
    place.succeeds(&["load", "--link-policy", "webindex", pages.to_str().unwrap()]);
    place
}

fn top(place: &Place) -> Value {
    serde_json::from_str(&place.succeeds(&["top", "--json"])).unwrap()
}

#[test]
fn a_backup_has_the_link_index_in_it() {
    let place = loaded();
    let before = top(&place);
    assert_eq!(before["items"][0]["incount"], 2, "{before}");
    let saved = place.folder.path().join("saved");
    place.succeeds(&["backup", saved.to_str().unwrap()]);
    assert!(saved.join("links.rows").is_file());
    std::fs::remove_dir_all(&place.data).unwrap();
    place.succeeds(&["restore", saved.to_str().unwrap()]);
    assert_eq!(top(&place), before);
    assert!(!place.layout().written_links().exists(), "it was read in");
    place.succeeds(&["links", "verify"]);
    place.succeeds(&["links", "rebuild"]);
    assert_eq!(top(&place), before);
    let dump = place.succeeds(&["links", "dump"]);
    assert!(dump.contains("p:com.b>>o>/|inlinks|com.a>>o>/1|b\n"), "{dump}");
}
