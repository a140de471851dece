//! What documents hear, one thing after the other, on both databases. Whether the whole is
//! exact, the property test of `crawl::hops` shows.

use super::*;
use crate::Db;
use crate::dialect::Dialect;
use crate::testing::both_databases;

const PLACE: Place = Place { part: Part(1), job: JobId(1) };

fn key(number: u8) -> DocHash {
    DocHash([number; 16])
}

fn kinds() -> Vec<String> {
    vec!["link".to_owned(), "redirect".to_owned()]
}

/// Tells in the graph that counts links.
fn say(db: &Db, told: &[(u8, u8, &str, Says)]) -> Result<Vec<MovedDocument>> {
    let told: Vec<DistanceMessage> = told
        .iter()
        .map(|(source, target, link, says)| DistanceMessage {
            target: key(*target),
            source: (Part(1), key(*source)),
            link: (*link).into(),
            kind: 0,
            says: *says,
        })
        .collect();
    db.write(move |tx| {
        let kinds = kinds();
        receive(tx, Graphs { place: PLACE, kinds: &kinds, keeps_links: true }, &told)
    })
}

fn distance(db: &Db, number: u8) -> Result<Distance> {
    db.read(move |tx| {
        let kinds = kinds();
        let graphs = Graphs { place: PLACE, kinds: &kinds, keeps_links: true };
        Ok(distances(tx, graphs, &[key(number)])?[&key(number)][0])
    })
}

#[test]
fn the_nearest_parent_counts_and_another_that_is_as_near_replaces_it() {
    both_databases(|db| {
        let moved = say(db, &[(1, 9, "link", Says::At(4)), (2, 9, "link", Says::At(2))])?;
        assert_eq!(moved.len(), 1);
        assert_eq!((moved[0].before, moved[0].now), (Distance::Unknown, Distance::At(3)));
        assert_eq!(say(db, &[(1, 9, "link", Says::At(4))])?, [], "it is known");
        say(db, &[(3, 9, "redirect", Says::At(3)), (4, 9, "link", Says::At(2))])?;
        assert_eq!(say(db, &[(2, 9, "link", Says::Gone)])?, [], "another is as near");
        assert_eq!(distance(db, 9)?, Distance::At(3));
        // What leads here without counting may rest on this document.
        say(db, &[(4, 9, "link", Says::Gone)])?;
        assert_eq!(distance(db, 9)?, Distance::Lost);
        assert_eq!(say(db, &[(5, 9, "link", Says::At(0))])?, [], "the lost listen to nobody");
        let under_way = db.read(|tx| under_way(tx, JobId(1)))?;
        assert!(under_way.losses && under_way.lost && !under_way.is_nothing());
        let news = db.read(|tx| unsent(tx, PLACE, 9))?;
        assert_eq!(news.len(), 1);
        db.write(move |tx| mark_sent(tx, PLACE, &news))?;
        db.write(|tx| {
            let kinds = kinds();
            let graphs = Graphs { place: PLACE, kinds: &kinds, keeps_links: true };
            assert!(is_hopeful(tx, JobId(1))?);
            assert_eq!(find_again(tx, graphs, 9)?, [key(9)]);
            assert_eq!(grown(tx, graphs, 9)?, [key(9)]);
            assert!(grown(tx, graphs, 9)?.is_empty() && unreachable(tx, graphs, 9)?.is_empty());
            Ok(())
        })?;
        assert_eq!(distance(db, 9)?, Distance::At(1));
        assert!(db.read(|tx| is_due(tx, PLACE))?, "it has news");
        Ok(())
    });
}

#[test]
fn where_documents_lead_is_kept_by_kind() {
    both_databases(|db| {
        let target = |number: u8| (key(number), Part(i64::from(number)));
        let some: Leads = [
            ("link".to_owned(), [target(1), target(2)].into()),
            ("redirect".to_owned(), [target(3)].into()),
        ]
        .into();
        let saved = some.clone();
        db.write(move |tx| {
            let kinds = kinds();
            let graphs = Graphs { place: PLACE, kinds: &kinds, keeps_links: true };
            let both = [(key(1), saved.clone()), (key(2), saved.clone())];
            save_leads(tx, graphs, &both, SentState::Sending)?;
            save_leads(tx, graphs, &[(key(2), Leads::new())], SentState::Kept)?;
            let found = leads(tx, graphs, &[key(1), key(2)])?;
            assert_eq!(found, [(key(1), (some.clone(), SentState::Sending))].into());
            Ok(())
        })
    });
}

/// However many documents a job has: only those are walked that something is to be done for.
#[test]
fn what_is_to_be_done_is_found_by_an_index_of_its_own() {
    both_databases(|db| {
        if db.dialect() != Dialect::Sqlite {
            return Ok(());
        }
        for (sql, index) in [
            (UNTOLD, "distances_news"),
            (find::LOST, "distances_lost"),
            (find::GROWN, "distances_grown"),
        ] {
            let sql = format!("EXPLAIN QUERY PLAN {sql}");
            let plan: Vec<String> = db.read(move |tx| {
                tx.query(&sql, &[1.into(), 1.into(), 9.into()], |row| row.get(3))
            })?;
            let plan = plan.join("; ");
            assert!(plan.contains(&format!("COVERING INDEX {index}")), "{plan}");
            assert!(!plan.contains("TEMP B-TREE"), "{plan}");
        }
        Ok(())
    });
}
