//! What questions mean.

use super::*;
use proptest::prelude::*;

fn word(text: &str) -> QueryNode {
    QueryNode::Words(FieldScope::Anywhere, vec![text.to_owned()])
}

fn phrase(words: &[&str]) -> QueryNode {
    QueryNode::Words(FieldScope::Anywhere, words.iter().map(|it| (*it).to_owned()).collect())
}

#[test]
fn words_phrases_and_operators() {
    let of = |text: &str| parse(text).unwrap();
    assert_eq!(of("Rust book"), QueryNode::All(vec![word("rust"), word("book")]));
    assert_eq!(of("\"the rust book\""), phrase(&["the", "rust", "book"]));
    assert_eq!(of("\"not closed"), phrase(&["not", "closed"]));
    let either = QueryNode::Any(vec![word("a"), QueryNode::All(vec![word("b"), word("c")])]);
    assert_eq!(of("a OR b AND c"), either);
    assert_eq!(of("a | (b c)"), either);
    assert_eq!(of("a -b"), QueryNode::All(vec![word("a"), QueryNode::Not(Box::new(word("b")))]));
    assert_eq!(of("a NOT (b)"), of("a -b"));
    assert_eq!(of("ORDER BY"), QueryNode::All(vec![word("order"), word("by")]), "no operator");
    assert_eq!(of("a) b"), QueryNode::All(vec![word("a"), word("b")]));
    assert_eq!(of("std::fs"), phrase(&["std", "fs"]), "a word with colons");
    assert_eq!(of("wi-fi"), phrase(&["wi", "fi"]));
    assert_eq!(of("hash*"), QueryNode::Beginning(FieldScope::Anywhere, "hash".into()));
    assert_eq!(of("東"), QueryNode::Beginning(FieldScope::Anywhere, "東".into()));
}

#[test]
fn filters() {
    let of = |text: &str| parse(text).unwrap();
    assert_eq!(
        of("site:Docs.Example.com"),
        QueryNode::Filter(Filter::Site("docs.example.com".into()))
    );
    let path = QueryNode::Words(FieldScope::Address, vec!["book".into()]);
    let site = QueryNode::Filter(Filter::Site("a.example".into()));
    assert_eq!(of("site:https://a.example/book/"), QueryNode::All(vec![site, path]));
    assert_eq!(
        of("domain:www.example.com"),
        QueryNode::Filter(Filter::Domain("example.com".into()))
    );
    let title = QueryNode::Words(FieldScope::Title, vec!["two".into(), "words".into()]);
    assert_eq!(of("intitle:\"two words\""), title);
    assert_eq!(of("inurl:book"), QueryNode::Words(FieldScope::Address, vec!["book".into()]));
    assert_eq!(of("lang:pt-BR"), QueryNode::Filter(Filter::Language("pt".into())));
    assert_eq!(of("type:application/pdf"), QueryNode::Filter(Filter::Media("pdf".into())));
    assert_eq!(of("after:1970-01-02"), QueryNode::Filter(Filter::After(86_400_000)));
    assert_eq!(of("before:1971"), QueryNode::Filter(Filter::Before(31_536_000_000)));
    assert_eq!(of("links:>10"), QueryNode::Filter(Filter::Links(11, u64::MAX)));
    assert_eq!(of("links:2..5"), QueryNode::Filter(Filter::Links(2, 5)));
    assert_eq!(of("links:<=5"), QueryNode::Filter(Filter::Links(0, 5)));
}

#[test]
fn what_has_no_sense_is_refused_and_says_what_to_write() {
    let refused = |text: &str| parse(text).unwrap_err().to_string();
    assert!(refused("before:yesterday").contains("2024-05-31"));
    assert!(refused("links:many").contains("links:>10"));
    assert!(refused("site:").contains("site:example.com"));
    assert!(refused("a*").contains("at least 2"));
    assert_eq!(parse("  "), Err(QuestionRefusal::Empty));
    assert_eq!(parse("--- ..."), Err(QuestionRefusal::Empty));
    assert_eq!(parse(&"a ".repeat(CLAUSES_MAX + 1)), Err(QuestionRefusal::TooMany));
    assert_eq!(parse(&"(".repeat(DEPTH_MAX + 2)), Err(QuestionRefusal::TooDeep));
    assert_eq!(parse(&"x".repeat(QUESTION_BYTES_MAX + 1)), Err(QuestionRefusal::TooLong));
    assert_eq!(parse(&"-".repeat(500)), Err(QuestionRefusal::TooDeep));
}

proptest! {
    #[test]
    fn whatever_is_written_is_read(text in "[a-z \"()|:*<>.\\-ORANDT東é]{0,120}") {
        let _ = parse(&text);
    }

    #[test]
    fn and_whatever_else(text in "\\PC{0,200}") {
        let _ = parse(&text);
    }
}
