//! The feed connector: feeds (RSS, Atom, JSON Feed), and the articles they announce.
//!
//! It works on the web as the [web connector](super::web) does, with the same settings: its
//! seeds are feeds, and what they announce is fetched and leads nowhere. A feed hands its
//! articles what it says of them; it is no document itself. Invariant: an article is
//! announced by the feed that has handed it its title, its date and its source.

use super::web;
use crate::definitions::WebSpec;
use page::feed;
use std::collections::HashMap;
use store::catalog::Connector;
use store::tables::carrydown::Data;

/// The connector's name in `connections.classname`.
pub const NAME: &str = "feed";

/// What the program knows of this connector.
pub const CONNECTOR: Connector = Connector {
    name: NAME,
    about: "feeds (RSS, Atom, JSON Feed) and the articles they announce",
    install: None,
    deinstall: None,
    ..web::CONNECTOR
};

/// What a web job is told for feeds: articles may be anywhere.
pub fn spec(mut spec: WebSpec) -> WebSpec {
    spec.scope.reach = crate::scope::Reach::Any;
    spec
}

/// What a feed says of its articles, by their addresses as it writes them.
pub fn announced(url: &str, body: &[u8]) -> HashMap<String, Data> {
    let mut out: HashMap<String, Data> = HashMap::new();
    for entry in feed::read(body).into_iter().flat_map(|feed| feed.entries) {
        let data = out.entry(entry.url).or_default();
        let mut say = |name: &str, value: String| {
            if !value.is_empty() {
                data.entry(name.to_owned()).or_default().insert(value);
            }
        };
        say("title", entry.title);
        say("pubdate", entry.updated_ms.map(date).unwrap_or_default());
        say("source", url.to_owned());
    }
    out
}

/// A time as people and programs read it.
fn date(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map(|it| it.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_tells_title_date_and_source_of_its_articles() {
        let body = br#"<rss version="2.0"><channel><title>News</title>
            <item><title>One &amp; only</title><link>http://a.example/1</link>
                <pubDate>Mon, 06 Sep 2021 16:45:00 GMT</pubDate></item>
            <item><link>http://a.example/2</link></item></channel></rss>"#;
        let told = announced("http://a.example/feed", body);
        let of = |url: &str, name: &str| {
            let values = told[url].get(name).cloned().unwrap_or_default();
            values.into_iter().collect::<Vec<_>>().join("|")
        };
        assert_eq!(of("http://a.example/1", "title"), "One & only");
        assert_eq!(of("http://a.example/1", "pubdate"), "2021-09-06T16:45:00Z");
        assert_eq!(of("http://a.example/2", "source"), "http://a.example/feed");
        assert_eq!(of("http://a.example/2", "title"), "");
        assert!(announced("http://a.example/", b"<html>no feed").is_empty());
    }
}
