//! What bytes say that a connector has at hand: HTML is parsed, text is kept, of the rest
//! only the kind is known.
//!
//! Pure. Invariant: the facts keep to the limits of `page::facts`, whatever the bytes are.

use page::facts::{Facts, TEXT_BYTES_MAX};
use page::html::{self, Input};
use page::url::Policy;
use page::{charset, fingerprint, sniff};

/// What a document says that is at a URL, is declared to be of a type, and has a body.
pub fn facts(url: &str, content_type: Option<&str>, body: &[u8]) -> Facts {
    let media = sniff::media_of(content_type, false, body);
    if media.kind == sniff::ContentKind::Html {
        let policy = Policy::default();
        let mut input = Input::new(body, url, &policy);
        input.content_type = content_type;
        return html::extract(&input);
    }
    let mut facts = Facts {
        media_type: media.essence.clone().into_owned(),
        content_hash: fingerprint::content_hash(body),
        ..Facts::default()
    };
    let is_text = matches!(
        media.kind,
        sniff::ContentKind::Text | sniff::ContentKind::Xml | sniff::ContentKind::Json
    );
    if is_text {
        let encoding = charset::decide(body, content_type).encoding;
        facts.charset = encoding.name().to_owned();
        let text = charset::decode(body, encoding);
        facts.text = text[..text.floor_char_boundary(TEXT_BYTES_MAX)].to_owned();
        facts.truncated.text = facts.text.len() < text.len();
    }
    facts.text_hash = fingerprint::text_hash(&facts.text);
    facts.simhash = fingerprint::simhash(&facts.text);
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_has_a_title_and_links_and_text_is_kept() {
        let page = b"<title>One</title><p>words <a href=\"/two\">two</a>";
        let facts = facts("https://a.example/one", Some("text/html"), page);
        assert_eq!((&*facts.title, &*facts.links[0].url), ("One", "https://a.example/two"));
        let text = super::facts("sql:1", Some("text/plain; charset=utf-8"), "é".as_bytes());
        assert_eq!((&*text.text, &*text.media_type), ("é", "text/plain"));
    }

    #[test]
    fn text_is_cut_at_its_limit_between_characters() {
        let long = facts(
            "sql:1",
            Some("text/plain; charset=utf-8"),
            "é".repeat(TEXT_BYTES_MAX).as_bytes(),
        );
        assert_eq!((long.text.len(), long.truncated.text), (TEXT_BYTES_MAX, true));
        let odd = format!("x{}", "é".repeat(TEXT_BYTES_MAX));
        let odd = facts("sql:1", Some("text/plain; charset=utf-8"), odd.as_bytes());
        assert!(odd.truncated.text && odd.text.len() < TEXT_BYTES_MAX);
    }
}
