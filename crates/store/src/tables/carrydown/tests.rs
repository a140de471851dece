//! What is handed arrives, once, and what is taken back goes, on both databases.

use super::*;
use crate::ids::JobId;
use crate::testing::both_databases;

const PLACE: Place = Place { part: Part(1), job: JobId(1) };

fn key(number: u8) -> DocHash {
    DocHash([number; 16])
}

fn of(values: &[(&str, &[&str])]) -> Data {
    let text = |it: &&str| (*it).to_owned();
    values.iter().map(|(name, it)| ((*name).to_owned(), it.iter().map(text).collect())).collect()
}

fn handing(parent: u8, child: u8, data: Data) -> ChildData {
    ChildData { parent: (Part(2), key(parent)), child: key(child), data }
}

#[test]
fn a_child_has_what_all_its_parents_hand_it_and_hears_what_is_new_to_it() {
    both_databases(|db| {
        let take = |handing: ChildData| {
            db.write(move |tx| super::take(tx, PLACE, std::slice::from_ref(&handing)))
        };
        let has = || db.read(|tx| Ok(data(tx, PLACE, &[key(9)])?.remove(&key(9))));
        assert_eq!(has()?, None);
        let first = of(&[("title", &["one", "two"]), ("source", &["feed"])]);
        assert_eq!(take(handing(1, 9, first.clone()))?, [key(9)]);
        assert_eq!(take(handing(1, 9, first.clone()))?, [], "the same again is no news");
        assert_eq!(take(handing(2, 9, of(&[("title", &["two", "three"])])))?, [key(9)]);
        let all = of(&[("title", &["one", "two", "three"]), ("source", &["feed"])]);
        assert_eq!(has()?, Some(all));
        assert_eq!(take(handing(1, 9, of(&[("title", &["one"])])))?, [key(9)], "some went");
        assert_eq!(has()?, Some(of(&[("title", &["one", "two", "three"])])));
        assert_eq!(take(handing(2, 9, Data::new()))?, [key(9)]);
        assert_eq!(take(handing(1, 9, Data::new()))?, [key(9)]);
        assert_eq!(take(handing(1, 9, Data::new()))?, []);
        assert_eq!(has()?, None);
        Ok(())
    });
}

#[test]
fn whom_a_parent_has_handed_something_is_kept() {
    both_databases(|db| {
        let children: HandedChildren =
            [((Part(3), key(1)), [7; 16]), ((Part(4), key(2)), [8; 16])].into();
        let saved = children.clone();
        db.write(move |tx| {
            let both = [(key(5), saved.clone()), (key(6), saved.clone())];
            save_handed(tx, PLACE, &both, false)?;
            save_handed(tx, PLACE, &[(key(6), HandedChildren::new())], true)?;
            let found = handed(tx, PLACE, &[key(5), key(6)])?;
            assert_eq!(found, [(key(5), (children.clone(), false))].into());
            Ok(())
        })
    });
}

#[test]
fn data_has_limits_and_a_hash_of_its_own() {
    let long = "x".repeat(VALUE_BYTES_MAX + 1);
    let many: Vec<String> = (0..2 * VALUES_MAX).map(|it| format!("{it:04}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let odd = of(&[("", &["a"]), ("long", &[&long]), ("many", &many), ("nul\0", &["a"])]);
    let limited = limited(odd);
    assert_eq!(limited.keys().collect::<Vec<_>>(), ["many"]);
    assert_eq!(limited["many"].len(), VALUES_MAX);
    let prints = [
        print(&of(&[("a", &["b", "c"])])),
        print(&of(&[("a", &["bc"])])),
        print(&of(&[("a", &["b"]), ("c", &[])])),
        print(&Data::new()),
    ];
    assert_eq!(prints.iter().collect::<BTreeSet<_>>().len(), prints.len());
}
