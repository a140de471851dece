//! What a WAT record tells of a page: its title, its description and its links, as JSON.
//!
//! WAT archives are made from WARC archives, with a record for each of theirs; only those
//! that tell of a page that was there count. Invariant: the facts keep to the limits of
//! [`crate::facts`], whatever the JSON says; of its depth the parser takes 128 levels, and
//! of its length what it is given: callers give at most [`BYTES_MAX`].

use crate::facts::{Facts, LINKS_MAX, Link, LinkKind, Rel, SHORT_TEXT_BYTES_MAX};
use crate::fingerprint;
use crate::sniff::ContentType;
use crate::text::collapse;
use crate::url::{Policy, Resolver};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value as Json;
use std::collections::{HashMap, HashSet};

/// Bytes of a record.
pub const BYTES_MAX: usize = 4 << 20;
/// The status of a page that was there.
const OK: u16 = 200;

/// What is told of a page.
#[derive(Debug, Default, Deserialize)]
pub struct Extract {
    #[serde(rename = "Headers", default)]
    headers: HashMap<String, Json>,
    #[serde(rename = "Response-Message", default)]
    message: Message,
    #[serde(rename = "HTML-Metadata", default)]
    html: Html,
}

#[derive(Deserialize)]
struct Root<Response> {
    #[serde(rename = "Envelope")]
    envelope: Option<Envelope<Response>>,
}

#[derive(Deserialize)]
struct Envelope<Response> {
    #[serde(rename = "Payload-Metadata")]
    payload: Option<Payload<Response>>,
}

#[derive(Deserialize)]
struct Payload<Response> {
    #[serde(rename = "HTTP-Response-Metadata")]
    response: Option<Response>,
}

/// As much of an [`Extract`] as tells its status, field for field.
#[derive(Deserialize)]
struct ResponseMetadata {
    #[serde(rename = "Headers", default)]
    _headers: IgnoredAny,
    #[serde(rename = "Response-Message", default)]
    message: Message,
    #[serde(rename = "HTML-Metadata", default)]
    _html: IgnoredAny,
}

/// Reads a record about an answer of any kind. The error is that it is no record.
fn response<Response: DeserializeOwned>(block: &[u8]) -> Result<Option<Response>, ()> {
    let block = Some(block).filter(|it| it.len() <= BYTES_MAX).ok_or(())?;
    let root: Root<Response> = serde_json::from_slice(block).map_err(|_| ())?;
    let payload = root.envelope.and_then(|it| it.payload);
    Ok(payload.and_then(|it| it.response))
}

#[derive(Debug, Default, Deserialize)]
struct Message {
    #[serde(rename = "Status", default)]
    status: Json,
}

#[derive(Debug, Default, Deserialize)]
struct Html {
    #[serde(rename = "Head", default)]
    head: HtmlHead,
    #[serde(rename = "Links", default)]
    links: Vec<NamedLink>,
}

#[derive(Debug, Default, Deserialize)]
struct HtmlHead {
    #[serde(rename = "Title", default)]
    title: String,
    #[serde(rename = "Base", default)]
    base: Option<String>,
    #[serde(rename = "Metas", default)]
    metas: Vec<Meta>,
}

#[derive(Debug, Deserialize)]
struct Meta {
    #[serde(default)]
    name: String,
    #[serde(default)]
    content: String,
}

#[derive(Debug, Deserialize)]
struct NamedLink {
    #[serde(default)]
    path: String,
    #[serde(default)]
    url: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    rel: String,
}

/// Reads a record. `None` when it tells of no page that was there, or is too long.
pub fn read(block: &[u8]) -> Option<Extract> {
    let told: Extract = response(block).ok()??;
    Some(told).filter(|told| told.message.status() == Some(OK))
}

/// What a record tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordStatus {
    /// It cannot be read, or is too long.
    Unreadable,
    /// No answer of a server: a request, or something about the crawl.
    NoAnswer,
    /// An answer with this status.
    Answer(u16),
}

/// Tells what a record is about, also when that is no page.
pub fn record_status(block: &[u8]) -> RecordStatus {
    let Ok(answer) = response::<ResponseMetadata>(block) else { return RecordStatus::Unreadable };
    let status = answer.and_then(|it| it.message.status());
    status.map_or(RecordStatus::NoAnswer, RecordStatus::Answer)
}

impl Message {
    /// Writers give it as text or as a number.
    fn status(&self) -> Option<u16> {
        match &self.status {
            Json::String(text) => text.parse().ok(),
            number => number.as_u64().and_then(|number| u16::try_from(number).ok()),
        }
    }
}

impl Extract {
    /// The server's name for itself.
    pub fn server(&self) -> Option<&str> {
        self.header("server")
    }

    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.and_then(|(_, value)| value.as_str())
    }

    /// What it says of the page at a URL.
    pub fn facts(&self, url: &str) -> Facts {
        let declared = self.header("content-type").and_then(ContentType::parse);
        let head = &self.html.head;
        let description = head.metas.iter().find(|it| it.name.eq_ignore_ascii_case("description"));
        let mut facts = Facts {
            media_type: declared.map_or_else(|| "text/html".to_owned(), |it| it.essence),
            title: short(&head.title),
            description: description.map(|it| short(&it.content)).unwrap_or_default(),
            ..Facts::default()
        };
        self.take_links(url, &mut facts);
        let mut said = format!("{}\n{}\n{}", facts.media_type, facts.title, facts.description);
        for link in &facts.links {
            said.push('\n');
            said.push_str(&link.url);
        }
        // There are no bytes to tell it by; what is told stands for them.
        facts.content_hash = fingerprint::content_hash(said.as_bytes());
        facts.text_hash = fingerprint::text_hash("");
        facts.simhash = fingerprint::simhash("");
        facts
    }

    fn take_links(&self, url: &str, facts: &mut Facts) {
        let base = self.html.head.base.as_deref().unwrap_or(url);
        let policy = Policy::default();
        let Ok(mut base) = Resolver::new(base, &policy).or_else(|_| Resolver::new(url, &policy))
        else {
            return;
        };
        let mut seen = HashSet::new();
        for named in &self.html.links {
            let kind = match named.path.split('@').next().unwrap_or_default() {
                "A" => LinkKind::A,
                "AREA" => LinkKind::Area,
                "FRAME" | "IFRAME" => LinkKind::Frame,
                _ => continue,
            };
            let Ok(target) = base.resolve(&named.url) else { continue };
            if !seen.insert((target.to_owned(), kind)) {
                continue;
            }
            if facts.links.len() == LINKS_MAX {
                facts.truncated.links = true;
                return;
            }
            let is_refused = named.rel.split_ascii_whitespace().any(|it| it == "nofollow");
            let rel = if is_refused { Rel::NOFOLLOW } else { Rel::default() };
            let (url, anchor) = (target.to_owned(), short(&named.text));
            facts.links.push(Link { url, anchor, kind, rel });
        }
    }
}

/// A short text, its white space collapsed.
fn short(text: &str) -> String {
    collapse(text, SHORT_TEXT_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Common Crawl writes them.
    fn record(status: &str, html: &str) -> String {
        format!(
            r#"{{"Container": {{}}, "Envelope": {{"WARC-Header-Metadata": {{"WARC-Type": "response"}},
            "Payload-Metadata": {{"HTTP-Response-Metadata": {{
                "Response-Message": {{"Status": {status}, "Reason": "OK"}},
                "Headers": {{"content-type": "text/html; charset=utf-8"}},
                "HTML-Metadata": {html}}}}}}}}}"#
        )
    }

    #[test]
    fn title_description_and_links_are_taken() {
        let html = r#"{"Head": {"Title": " One \n page ", "Metas": [{"name": "Description",
            "content": "About it"}]}, "Links": [{"path": "A@/href", "url": "/two", "text": "Two",
            "rel": "nofollow"}, {"path": "IMG@/src", "url": "/i.png"}, {"path": "A@/href",
            "url": "mailto:me"}]}"#;
        let facts =
            read(record(r#""200""#, html).as_bytes()).unwrap().facts("https://a.example/one");
        assert_eq!((&*facts.title, &*facts.description), ("One page", "About it"));
        assert_eq!(facts.media_type, "text/html");
        let links: Vec<(&str, &str)> =
            facts.links.iter().map(|it| (&*it.url, &*it.anchor)).collect();
        assert_eq!(links, [("https://a.example/two", "Two")]);
        assert!(facts.links[0].rel.has(Rel::NOFOLLOW));
    }

    #[test]
    fn what_tells_of_no_page_is_nothing() {
        assert!(read(record("200", "{}").as_bytes()).is_some());
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for block in [
            record(r#""404""#, "{}"),
            record("null", "{}"),
            record("200", r#"{"Links": 7}"#),
            r#"{"Envelope": {"Payload-Metadata": {"HTTP-Request-Metadata": {}}}}"#.to_owned(),
            "{".to_owned(),
            String::new(),
            deep,
        ] {
            assert!(read(block.as_bytes()).is_none(), "{block:.80}");
        }
    }

    #[test]
    fn a_record_tells_its_status_also_when_that_is_no_page() {
        for (status, expected) in [
            (r#""200""#, RecordStatus::Answer(200)),
            ("301", RecordStatus::Answer(301)),
            (r#""404""#, RecordStatus::Answer(404)),
            ("null", RecordStatus::NoAnswer),
            ("-1", RecordStatus::NoAnswer),
            (r#""99999""#, RecordStatus::NoAnswer),
        ] {
            assert_eq!(record_status(record(status, "{}").as_bytes()), expected, "{status}");
        }
        // What is wrong with its links is no matter here.
        assert_eq!(
            record_status(record("404", r#"{"Links": 7}"#).as_bytes()),
            RecordStatus::Answer(404)
        );
        let request = r#"{"Envelope": {"Payload-Metadata": {"HTTP-Request-Metadata": {}}}}"#;
        assert_eq!(record_status(request.as_bytes()), RecordStatus::NoAnswer);
        assert_eq!(record_status(br#"{"Envelope": {}}"#), RecordStatus::NoAnswer);
        assert_eq!(record_status(b"{}"), RecordStatus::NoAnswer, "JSON about something else");
        for block in ["", "{", "7", r#"{"Envelope": 7}"#] {
            assert_eq!(record_status(block.as_bytes()), RecordStatus::Unreadable, "{block}");
        }
    }

    #[test]
    fn links_are_taken_once_and_up_to_their_limit() {
        let links = |count: usize| {
            let link = |it: usize| format!(r#"{{"path": "A@/href", "url": "/{}"}}"#, it % count);
            let links: Vec<String> = (0..2 * count).map(link).collect();
            let html = format!(r#"{{"Links": [{}]}}"#, links.join(","));
            let facts = read(record("200", &html).as_bytes()).unwrap().facts("https://a.example/");
            (facts.links.len(), facts.truncated.links)
        };
        assert_eq!(links(LINKS_MAX), (LINKS_MAX, false));
        assert_eq!(links(LINKS_MAX + 1), (LINKS_MAX, true));
    }

    #[test]
    fn a_record_may_be_so_long_and_no_longer() {
        let padded = |bytes: usize| {
            let mut record = record("200", "{}");
            record.extend(std::iter::repeat_n(' ', bytes - record.len()));
            (read(record.as_bytes()).is_some(), record_status(record.as_bytes()))
        };
        assert_eq!(padded(BYTES_MAX), (true, RecordStatus::Answer(200)));
        assert_eq!(padded(BYTES_MAX + 1), (false, RecordStatus::Unreadable));
    }
}
