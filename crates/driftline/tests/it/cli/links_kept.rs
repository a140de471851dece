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

/// Lost links of a page after it was loaded with a link and, later, without it.
fn lost_after_loads(days_kept: &str) -> usize {
    let place = Place::empty();
    let load = |name: &str, day: &str, targets: &[&str]| {
        let links: Vec<Value> = targets
            .iter()
            .map(|host| serde_json::json!({"url": format!("http://{host}/"), "anchorText": "x"}))
            .collect();
        let crawl_date = format!("{day}T00:00:00Z");
        let page = serde_json::json!({
            "url": "http://a.com/1", "crawlDate": crawl_date, "outboundLinks": links
        });
        let file = place.folder.path().join(name);
        std::fs::write(&file, format!("{page}\n")).unwrap();
        place.succeeds(&["load", "--link-policy", "webindex", file.to_str().unwrap()]);
    };
    load("one.txt", "2020-01-01", &["b.com", "c.com"]);
    place.succeeds(&["links", "retention", "--days", days_kept]);
    load("two.txt", "2020-02-01", &["c.com"]);
    // A page that nothing has anything to do with any more is not known, which is no success.
    let asked = place.run(&["links", "http://b.com/", "--lost", "--json"]);
    let answer: Value = serde_json::from_slice(&asked.stdout).unwrap();
    answer["lost"]["items"].as_array().map_or(0, Vec::len)
}

#[test]
fn an_index_that_is_only_filled_from_archives_forgets_lost_links_too() {
    assert_eq!(lost_after_loads("0"), 1, "it is kept for ever");
    assert_eq!(lost_after_loads("30"), 0, "it was lost years ago");
}
