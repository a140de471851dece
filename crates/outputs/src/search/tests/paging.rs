//! Pages of hits, and what an answer says of what it lacks.

use super::world::{Doc, NOW_MS, World};
use crate::search::ask::{Answer, AnswerFailure, Question, SearchLimits};
use crate::search::indexed_links::Target;
use std::time::Duration;
use store::chunkfile::document::{Access, Level, Token};
use store::testing::{both_databases, on_sqlite};

fn asked(answer: Result<Answer, AnswerFailure>) -> Answer {
    answer.unwrap_or_else(|failed| panic!("{failed}"))
}

fn question(text: &str) -> Question {
    Question { text: text.into(), ..Question::default() }
}

/// Copies of one text that come first, and texts of their own behind them.
fn copies_and_others(copies: usize, others: usize) -> Vec<Doc> {
    let copy = |at: usize| {
        let url = format!("https://example.com/copy{at}");
        let mut doc = Doc::new(&url, "The story", "A story.");
        // Any two differ in two bits at most.
        doc.facts.simhash = 0xabcd_ef01_2345_6789 ^ (1 << (at % 64));
        doc
    };
    let other = |at: usize| {
        let text = format!("Somewhere in a long text number {at} there is a story, too.");
        Doc::new(&format!("https://example.com/other{at}"), "Another", &text)
    };
    (0..copies).map(copy).chain((0..others).map(other)).collect()
}

/// The URLs of all pages of a question.
fn all_pages(world: &World, mut question: Question) -> Vec<String> {
    let mut seen = Vec::new();
    loop {
        let answer = asked(world.ask(&question));
        assert_eq!(answer.has_more, answer.next.is_some());
        seen.extend(answer.hits.into_iter().map(|hit| hit.url));
        match answer.next {
            Some(next) => question.cursor = Some(next),
            None => return seen,
        }
    }
}

#[test]
fn what_is_behind_hundreds_of_near_duplicates_is_reached() {
    on_sqlite(|db| {
        let mut world = World::new(db, true)?;
        world.commit(&copies_and_others(260, 35))?;
        world.follow()?;
        let first = asked(world.ask(&question("story")));
        assert_eq!((first.total, first.hits.len()), (295, 10), "the page is full");
        let best = &first.hits[0];
        assert!(best.url.contains("copy"), "{best:?}");
        assert_eq!((best.similar.len(), best.similar_count), (10, 259), "some are named");
        let mut all = all_pages(&world, question("story"));
        for limit in [7, 36, 100] {
            let again = all_pages(&world, Question { limit, ..question("story") });
            assert_eq!(again, all, "{limit} at a time");
        }
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 36, "none twice, none left out");
        Ok(())
    });
}

#[test]
fn hits_that_cannot_be_reached_are_said_to_be_there() {
    on_sqlite(|db| {
        let mut world = World::new(db, true)?;
        world.commit(&copies_and_others(260, 5))?;
        world.follow()?;
        let in_links = |targets: &[Option<Target>]| Ok(vec![0; targets.len()]);
        let ask = |candidates| {
            let limits = SearchLimits { candidates, ..SearchLimits::default() };
            asked(world.ask_within(&question("story"), limits, &in_links))
        };
        let cut = ask(250);
        assert_eq!((cut.hits.len(), cut.has_more, cut.next), (1, true, None));
        assert!(!cut.is_partial, "it counted all: {}", cut.total);
        let whole = ask(1_000);
        assert_eq!((whole.hits.len(), whole.has_more, whole.next), (6, false, None));
        Ok(())
    });
}

#[test]
fn a_page_loads_what_it_shows_and_nothing_else() {
    on_sqlite(|db| {
        let mut world = World::new(db, true)?;
        world.commit(&copies_and_others(1, 60))?;
        world.follow()?;
        let first = asked(world.ask(&Question { limit: 40, ..question("story") }));
        let before = world.loads();
        let deep = Question { limit: 10, cursor: first.next, ..question("story") };
        assert_eq!(asked(world.ask(&deep)).hits.len(), 10);
        assert_eq!(world.loads() - before, 10, "the fifty before are not loaded");
        Ok(())
    });
}

#[test]
fn a_question_that_has_no_time_left_says_so_and_does_nothing_more() {
    on_sqlite(|db| {
        let mut world = World::new(db, true)?;
        world.commit(&copies_and_others(1, 3))?;
        world.follow()?;
        assert_eq!(world.found("sto*").len(), 4);
        let before = world.loads();
        let refuses = |_: &[Option<Target>]| panic!("there is no time to look up in-links");
        let none = SearchLimits { time: Duration::ZERO, ..SearchLimits::default() };
        for text in ["story", "sto*", "storz", "story links:>0", "\"a story\"", "story -sto*"] {
            let answer = asked(world.ask_within(&question(text), none, &refuses));
            assert!(answer.is_partial && answer.has_more, "{text}: {answer:?}");
            let nothing = (answer.hits.len(), answer.suggestion, answer.next);
            assert_eq!(nothing, (0, None, None), "{text}");
        }
        assert_eq!(world.loads(), before, "no document was loaded");
        Ok(())
    });
}

#[test]
fn a_beginning_that_stands_for_too_many_words_says_so() {
    on_sqlite(|db| {
        let mut world = World::new(db, true)?;
        let many: String = (0..50_001).map(|at| format!("zz{at:05} ")).collect();
        world.commit(&[
            Doc::new("https://example.com/many", "Many", &format!("common {many}")),
            Doc::new("https://example.com/last", "Last", "common zzzzz"),
            Doc::new("https://example.com/none", "None", "common"),
        ])?;
        world.follow()?;
        let cut = asked(world.ask(&question("zz*")));
        assert!(cut.is_partial, "{cut:?}");
        assert_eq!((cut.total, cut.hits[0].url.as_str()), (1, "https://example.com/many"));
        let whole = asked(world.ask(&question("zz5* OR zzz*")));
        assert!(!whole.is_partial && whole.total == 2, "{whole:?}");
        assert_eq!(world.found("common -zz*"), ["https://example.com/none"], "none slips through");
        Ok(())
    });
}

#[test]
fn a_better_spelling_tells_a_reader_nothing_of_documents_of_others() {
    on_sqlite(|db| {
        let mut world = World::new(db, true)?;
        let staff = vec![Token::new(Level::Share, "staff")];
        let access = Access { allow: staff, deny: Vec::new() };
        let secret = Doc::new("https://example.com/secret", "Plan", "the unobtainium layoffs");
        world.commit(&[
            Doc { access, ..secret },
            Doc::new("https://example.com/open", "Open", "the crawler and the layoff"),
        ])?;
        world.follow()?;
        let suggested = |text: &str, tokens: Option<&[&str]>| {
            let tokens = tokens.map(|it| it.iter().map(|it| (*it).to_owned()).collect());
            asked(world.ask(&Question { tokens, ..question(text) })).suggestion
        };
        let secret = Some("unobtainium".to_owned());
        assert_eq!(suggested("unobtanium", None), secret, "no reader is named");
        assert_eq!(suggested("unobtanium", Some(&["staff"])), secret);
        assert_eq!(suggested("unobtanium", Some(&[])), None);
        assert_eq!(suggested("crawlr", Some(&[])).as_deref(), Some("crawler"));
        // Nor does it tell that there is such a word, by suggesting no other one.
        assert_eq!(suggested("layoffs", Some(&[])).as_deref(), Some("layoff"));
        assert_eq!(suggested("layoffs", Some(&["staff"])), None);
        Ok(())
    });
}

#[test]
fn an_answer_says_how_far_the_index_is_behind() {
    for spans_parts in [true, false] {
        both_databases(|db| {
            let mut world = World::new(db, spans_parts)?;
            let behind = |world: &World| {
                let answer = asked(world.ask(&question("common")));
                (answer.total, answer.behind_chunks, answer.behind_ms)
            };
            assert_eq!(behind(&world), (0, 0, 0), "nothing is committed");
            let numbered = |at| Doc::numbered(at, 1, true);
            world.commit(&[numbered(0), numbered(1)])?;
            assert_eq!(behind(&world), (0, 2, NOW_MS), "nothing is indexed");
            world.follow()?;
            assert_eq!(behind(&world), (2, 0, 0));
            world.commit(&[numbered(6)])?;
            world.commit(&[numbered(2)])?;
            assert_eq!(behind(&world), (2, 2, NOW_MS));
            world.follow()?;
            assert_eq!(behind(&world), (4, 0, 0));
            Ok(())
        });
    }
}
