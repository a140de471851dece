//! Questions and their answers.

use super::world::{Doc, World};
use crate::search::ask::parse::QuestionRefusal;
use crate::search::ask::{AnswerFailure, Question};
use store::chunkfile::document::{Access, Level, Token};
use store::testing::{both_databases, on_sqlite};

/// A few documents of two sites.
fn library(db: &store::Db) -> store::Result<World> {
    let mut world = World::new(db, true)?;
    let mut guide = Doc::new(
        "https://docs.example.com/guide/start.html",
        "Getting started",
        "The quick brown fox jumps over the lazy dog. Install the crawler first.",
    );
    guide.facts.language = Some("en-GB".into());
    guide.modified = Some("Fri, 09 Aug 2013 23:54:35 GMT".into());
    let mut manual = Doc::new(
        "https://example.org/manual.pdf",
        "Manual of the crawler",
        "A dog is a brown animal. The crawler fetches pages and the indexer reads them.",
    );
    manual.facts.media_type = "application/pdf".into();
    manual.facts.language = Some("de".into());
    let tokyo = Doc::new("https://example.org/ja", "東京の案内", "東京都は日本の首都です。");
    let accents = Doc::new("https://example.org/cafe", "Café", "Un café crème près de la gare.");
    world.commit(&[guide, manual, tokyo, accents])?;
    world.follow()?;
    Ok(world)
}

const GUIDE: &str = "https://docs.example.com/guide/start.html";
const MANUAL: &str = "https://example.org/manual.pdf";

#[test]
fn words_phrases_operators_and_filters_find_what_they_say() {
    on_sqlite(|db| {
        let world = library(db)?;
        let both = |text: &str| {
            let mut found = world.found(text);
            found.sort();
            found
        };
        assert_eq!(both("brown dog"), [GUIDE, MANUAL]);
        assert_eq!(world.found("\"brown fox\""), [GUIDE]);
        assert_eq!(world.found("crawler"), [MANUAL, GUIDE], "the title counts more");
        assert_eq!(both("fox OR animal"), [GUIDE, MANUAL]);
        assert_eq!(world.found("dog -fox"), [MANUAL]);
        assert_eq!(world.found("index*"), [MANUAL]);
        assert_eq!(world.found("dog site:example.com"), [GUIDE], "a host below it");
        assert_eq!(world.found("dog site:docs.example.com/guide"), [GUIDE]);
        assert_eq!(world.found("dog domain:example.org"), [MANUAL]);
        assert_eq!(world.found("intitle:started"), [GUIDE]);
        assert_eq!(world.found("inurl:manual"), [MANUAL]);
        assert_eq!(world.found("dog lang:en"), [GUIDE]);
        assert_eq!(world.found("type:pdf"), [MANUAL]);
        assert_eq!(world.found("dog before:2014"), [GUIDE]);
        assert_eq!(world.found("dog after:2014"), [MANUAL]);
        assert_eq!(both("dog links:<1"), [GUIDE, MANUAL]);
        assert_eq!(world.found("dog links:>0"), [""; 0]);
        assert_eq!(world.found("cafe CREME"), ["https://example.org/cafe"]);
        assert_eq!(world.found("東京"), ["https://example.org/ja"]);
        assert_eq!(world.found("京都"), ["https://example.org/ja"], "within a run");
        assert_eq!(world.found("首"), ["https://example.org/ja"], "a single character");
        assert_eq!(world.found("です"), ["https://example.org/ja"], "the end of a run");
        assert_eq!(world.found("都東"), [""; 0]);
        Ok(())
    });
}

#[test]
fn an_answer_has_snippets_facets_and_better_spellings() {
    on_sqlite(|db| {
        let world = library(db)?;
        let ask = |text: &str| {
            let question = Question { text: text.into(), ..Question::default() };
            world.ask(&question).unwrap_or_else(|failed| panic!("{failed}"))
        };
        let answer = ask("lazy fox");
        let hit = &answer.hits[0];
        let marked: Vec<&str> =
            hit.snippet.iter().filter(|it| it.hit).map(|it| it.text.as_str()).collect();
        assert_eq!(marked, ["fox", "lazy"]);
        assert_eq!((hit.domain.as_str(), hit.language.as_str()), ("example.com", "en"));
        assert_eq!(hit.date_ms, 1_376_092_475_000);
        let facets = ask("dog").facets;
        let of = |name: &str| &facets.iter().find(|it| it.name == name).unwrap().values;
        assert_eq!(of("domain"), &[("example.com".to_owned(), 1), ("example.org".to_owned(), 1)]);
        assert_eq!(of("type"), &[("html".to_owned(), 1), ("pdf".to_owned(), 1)]);
        assert_eq!(of("year")[0], ("2013".to_owned(), 1));
        assert_eq!(ask("crawlr").suggestion.as_deref(), Some("crawler"));
        assert_eq!(ask("crawler").suggestion, None);
        let relaxed = ask("quick brown unicorn");
        assert!(relaxed.is_relaxed && relaxed.hits[0].url == GUIDE, "most of the words");
        assert!(!ask("dog fox").is_relaxed);
        assert_eq!(ask("unicorn intitle:started").total, 0, "what is asked of a title is asked");
        Ok(())
    });
}

#[test]
fn pages_follow_each_other_and_cursors_belong_to_their_question() {
    on_sqlite(|db| {
        let mut world = World::new(db, true)?;
        let documents: Vec<Doc> = (0..25u8).map(|at| Doc::numbered(at, 1, true)).collect();
        world.commit(&documents)?;
        world.follow()?;
        let mut question = Question { text: "common".into(), ..Question::default() };
        let mut seen = Vec::new();
        loop {
            let answer = world.ask(&question).unwrap_or_else(|failed| panic!("{failed}"));
            assert_eq!(answer.total, 25);
            seen.extend(answer.hits.into_iter().map(|hit| hit.url));
            question.cursor = answer.next;
            if question.cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen.len(), 25);
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 25, "none twice");
        let first = world.ask(&Question { text: "common".into(), ..Question::default() });
        let cursor = first.unwrap_or_else(|failed| panic!("{failed}")).next;
        let other = Question { text: "other".into(), cursor, ..Question::default() };
        for bad in [other, Question { cursor: Some("?".into()), ..question }] {
            let failed = world.ask(&bad).unwrap_err();
            assert!(
                matches!(failed, AnswerFailure::Refused(QuestionRefusal::BadCursor)),
                "{failed}"
            );
        }
        Ok(())
    });
}

#[test]
fn near_duplicates_are_folded_and_named() {
    on_sqlite(|db| {
        let mut world = World::new(db, true)?;
        let mut copies: Vec<Doc> = (0..3u64)
            .map(|at| {
                let url = format!("https://example.com/copy{at}");
                let mut doc = Doc::new(&url, "A story", "Once upon a time there was a copy.");
                doc.facts.simhash = 0xabcd_ef01_2345_6789 ^ (1 << at);
                doc
            })
            .collect();
        copies.push(Doc::new("https://example.com/own", "Another", "Once there was a dragon."));
        world.commit(&copies)?;
        world.follow()?;
        let question = Question { text: "once".into(), ..Question::default() };
        let folded = world.ask(&question).unwrap_or_else(|failed| panic!("{failed}"));
        assert_eq!((folded.hits.len(), folded.total), (2, 4));
        assert_eq!(folded.hits.iter().map(|hit| hit.similar.len()).sum::<usize>(), 2);
        let all = world.ask(&Question { duplicates: true, ..question });
        assert_eq!(all.unwrap_or_else(|failed| panic!("{failed}")).hits.len(), 4);
        Ok(())
    });
}

#[test]
fn a_reader_sees_what_every_level_lets_through_and_nothing_that_one_denies() {
    on_sqlite(|db| {
        let mut world = World::new(db, true)?;
        let token = |level, name: &str| Token::new(level, name);
        let with = |name: &str, access: Access| {
            let url = format!("https://example.com/{name}");
            Doc { access, ..Doc::new(&url, name, &format!("secret {name}")) }
        };
        let share_and_document = Access {
            allow: vec![token(Level::Share, "staff"), token(Level::Document, "alice")],
            deny: vec![token(Level::Parent, "mallory")],
        };
        let staff = Access { allow: vec![token(Level::Share, "staff")], deny: Vec::new() };
        let denied = Access { allow: Vec::new(), deny: vec![token(Level::Document, "bob")] };
        world.commit(&[
            with("open", Access::default()),
            with("both", share_and_document),
            with("staff", staff),
            with("notbob", denied),
        ])?;
        world.follow()?;
        let seen = |tokens: Option<&[&str]>| {
            let tokens = tokens.map(|it| it.iter().map(|it| (*it).to_owned()).collect());
            let question = Question { text: "secret".into(), tokens, ..Question::default() };
            let answer = world.ask(&question).unwrap_or_else(|failed| panic!("{failed}"));
            let mut titles: Vec<String> = answer.hits.into_iter().map(|hit| hit.title).collect();
            titles.sort();
            titles
        };
        assert_eq!(seen(None), ["both", "notbob", "open", "staff"], "no reader is named");
        assert_eq!(seen(Some(&[])), ["notbob", "open"]);
        assert_eq!(seen(Some(&["staff"])), ["notbob", "open", "staff"]);
        assert_eq!(seen(Some(&["alice"])), ["notbob", "open"], "the share is closed");
        assert_eq!(seen(Some(&["staff", "alice"])), ["both", "notbob", "open", "staff"]);
        assert_eq!(seen(Some(&["staff", "alice", "mallory"])), ["notbob", "open", "staff"]);
        assert_eq!(seen(Some(&["staff", "bob"])), ["open", "staff"], "deny wins");
        Ok(())
    });
}

#[test]
fn a_document_on_which_the_index_panics_is_left_out_and_all_others_are_found() {
    on_sqlite(|db| {
        let mut world = World::new(db, true)?;
        let doc = |name: &str| {
            Doc::new(&format!("https://a.example/{name}"), name, &format!("common words of {name}"))
        };
        world.commit(&[doc("one"), doc("bad"), doc("three")])?;
        let left_out = world.follow_with_a_bug("/bad")?;
        assert_eq!(left_out.len(), 1);
        assert_eq!(left_out[0].docid, "https://a.example/bad");
        assert!(left_out[0].why.contains("internal error: a bug"), "{left_out:?}");
        let mut found = world.found("common");
        found.sort();
        assert_eq!(found, ["https://a.example/one", "https://a.example/three"]);
        Ok(())
    });
}

#[test]
fn documents_of_a_secured_connection_without_tokens_are_found_by_no_restricted_question() {
    both_databases(|db| {
        let mut world = World::new(db, true)?;
        let staff = vec![Token::new(Level::Share, "staff")];
        let with_token = Access { allow: staff, deny: Vec::new() };
        let denied = vec![Token::new(Level::Document, "bob")];
        let only_denied = Access { allow: Vec::new(), deny: denied };
        let with = |name: &str, access: Access| {
            let url = format!("https://example.com/{name}");
            Doc { access, ..Doc::new(&url, name, &format!("secret {name}")) }
        };
        world.commit(&[
            with("bare", Access::default()),
            with("token", with_token),
            with("denied", only_denied),
        ])?;
        // They are indexed before anybody secures the connection.
        world.follow()?;
        let seen = |world: &World, tokens: Option<&[&str]>| {
            let tokens = tokens.map(|it| it.iter().map(|it| (*it).to_owned()).collect());
            let question = Question { text: "secret".into(), tokens, ..Question::default() };
            let answer = world.ask(&question).unwrap_or_else(|failed| panic!("{failed}"));
            let mut titles: Vec<String> = answer.hits.into_iter().map(|hit| hit.title).collect();
            titles.sort();
            titles
        };
        world.is_secured_by(None)?;
        assert_eq!(seen(&world, Some(&[])), ["bare", "denied"]);
        world.is_secured_by(Some("employees"))?;
        assert_eq!(seen(&world, Some(&[])), [""; 0]);
        assert_eq!(seen(&world, Some(&["staff"])), ["token"]);
        assert_eq!(seen(&world, None), ["bare", "denied", "token"], "no reader is named");
        world.is_secured_by(None)?;
        assert_eq!(seen(&world, Some(&["staff"])), ["bare", "denied", "token"]);
        Ok(())
    });
}
