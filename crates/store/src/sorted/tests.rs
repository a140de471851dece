//! What every sorted map promises, on each engine.

use super::*;
use crate::Db;
use crate::dialect::Dialect;
use crate::ids::NodeId;
use crate::tables::leases::{self, LeaseRequest};
use crate::testing::both_databases;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

const SMALL: Family = Family { byte: b'a', name: "small", habit: Habit::Looked };
const MORE: Family = Family { byte: b'b', name: "more", habit: Habit::Ranked };
const LARGE: Family = Family { byte: b'c', name: "large", habit: Habit::Kept };
const FAMILIES: &[Family] = &[SMALL, MORE, LARGE];

fn each_engine(test: impl Fn(Arc<dyn SortedMap>)) {
    let place = tempfile::tempdir().unwrap();
    let place = MapLocation { path: place.path().join("map"), families: FAMILIES };
    test(Arc::new(EmbeddedMap::open(&place).unwrap()));
    both_databases(|db| {
        test(Arc::new(InRows::new(db)));
        Ok(())
    });
}

fn replaced(families: &[Family], parts: u32) -> BulkReplacement<'_> {
    BulkReplacement { families, parts, leases: &[] }
}

fn row(part: i64, key: &[u8], value: Option<&[u8]>) -> Row {
    Row { part: Part(part), key: key.to_vec(), value: value.map(<[u8]>::to_vec) }
}

fn write(map: &dyn SortedMap, part: i64, rows: Vec<Row>) {
    map.change(Part(part), None, Arc::new(move |_| Ok(rows.clone()))).unwrap();
}

fn all(map: &Arc<dyn SortedMap>, part: i64, span: Span) -> Vec<Pair> {
    map.read(move |view| view.scan(Part(part), &span, 1_000)).unwrap()
}

/// Rows of one part: a few keys, so that they meet.
fn rows() -> impl Strategy<Value = Vec<(Vec<u8>, Option<Vec<u8>>)>> {
    let key =
        (prop::sample::select(vec![b'a', b'b', b'c']), prop::collection::vec(any::<u8>(), 0..3))
            .prop_map(|(family, rest)| [vec![family], rest].concat());
    prop::collection::vec((key, prop::option::of(prop::collection::vec(any::<u8>(), 0..4))), 0..12)
}

#[test]
fn a_map_is_what_a_tree_in_memory_would_be() {
    each_engine(|map| {
        let mut runner = TestRunner::new(Config { cases: 24, ..Config::default() });
        let mut model: BTreeMap<(i64, Vec<u8>), Vec<u8>> = BTreeMap::new();
        let model = std::cell::RefCell::new(&mut model);
        let outcome = runner.run(
            &(0i64..3, rows(), rows(), any::<bool>()),
            |(part, rows, ends, backwards)| {
                let mut model = model.borrow_mut();
                write(
                    &*map,
                    part,
                    rows.iter().map(|(key, value)| row(part, key, value.as_deref())).collect(),
                );
                for (key, value) in rows {
                    match value {
                        Some(value) => model.insert((part, key), value),
                        None => model.remove(&(part, key)),
                    };
                }
                let found = |from: &[u8], to: &[u8]| -> Vec<Pair> {
                    let within = model
                        .iter()
                        .filter(|((at, key), _)| *at == part && &key[..] >= from && &key[..] < to);
                    let mut rows: Vec<Pair> =
                        within.map(|((_, key), value)| (key.clone(), value.clone())).collect();
                    if backwards {
                        rows.reverse();
                    }
                    rows
                };
                for family in FAMILIES {
                    let mut span = Span::prefix(&[family.byte]);
                    span.backwards = backwards;
                    prop_assert_eq!(
                        all(&map, part, span),
                        found(&[family.byte], &[family.byte + 1])
                    );
                }
                for (key, _) in &ends {
                    let family = key[0];
                    let mut span = Span::prefix(&[family]);
                    span.backwards = backwards;
                    let behind = all(&map, part, span.behind(key));
                    let expected = match backwards {
                        true => found(&[family], key),
                        false => found(&[key, &[0u8][..]].concat(), &[family + 1]),
                    };
                    prop_assert_eq!(behind, expected);
                }
                let keys: Vec<Vec<u8>> = ends.into_iter().map(|(key, _)| key).collect();
                let expected: Vec<_> =
                    keys.iter().map(|key| model.get(&(part, key.clone())).cloned()).collect();
                let got = map.read(move |view| view.get_many(Part(part), &keys)).unwrap();
                prop_assert_eq!(got, expected);
                Ok(())
            },
        );
        if let Err(failure) = outcome {
            panic!("{failure}");
        }
    });
}

#[test]
fn a_change_sees_the_one_before_and_is_whole() {
    each_engine(|map| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let map = map.clone();
                std::thread::spawn(move || {
                    for _ in 0..20 {
                        let add = |view: &dyn View| {
                            let now = view.get(Part(1), b"an")?.map_or(0, |value| value[0]);
                            Ok(vec![
                                row(1, b"an", Some(&[now + 1])),
                                row(1, &[b'b', now], Some(&[])),
                            ])
                        };
                        map.change(Part(1), None, Arc::new(add)).unwrap();
                        // Both rows, or neither.
                        let seen = map.read(|view| {
                            let count = view.get(Part(1), b"an")?.map_or(0, |value| value[0]);
                            Ok((count, view.scan(Part(1), &Span::prefix(b"b"), 1_000)?.len()))
                        });
                        let (count, rows) = seen.unwrap();
                        assert_eq!(usize::from(count), rows);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(all(&map, 1, Span::prefix(b"a")), [(b"an".to_vec(), vec![80])]);
    });
}

#[test]
fn a_change_that_fails_writes_nothing() {
    each_engine(|map| {
        let failed = map.change(Part(0), None, Arc::new(|_| Err(Error::Refused("no".into()))));
        assert!(failed.is_err());
        assert!(all(&map, 0, Span::prefix(b"a")).is_empty());
        write(&*map, 0, vec![row(0, b"ax", Some(b"1"))]);
        assert_eq!(all(&map, 0, Span::prefix(b"a")).len(), 1);
    });
}

#[test]
fn families_are_replaced_whole_and_others_stay() {
    each_engine(|map| {
        for part in 0..3 {
            write(
                &*map,
                part,
                vec![row(part, b"aold", Some(b"1")), row(part, b"cold", Some(b"2"))],
            );
        }
        let mut new: Vec<Row> = Vec::new();
        for part in [0, 2] {
            new.push(row(part, b"bfirst", Some(b"")));
            new.push(row(part, b"anew", Some(&[part as u8])));
            new.push(row(part, b"bsecond", Some(b"x")));
        }
        let mut new = new.into_iter();
        map.replace(&replaced(&[SMALL, MORE], 3), &mut || Ok(new.next())).unwrap();
        let keys = |part, family: &[u8]| -> Vec<Vec<u8>> {
            all(&map, part, Span::prefix(family)).into_iter().map(|(key, _)| key).collect()
        };
        for part in 0..3 {
            let is_filled = part != 1;
            assert_eq!(keys(part, b"a"), if is_filled { vec![b"anew".to_vec()] } else { vec![] });
            assert_eq!(keys(part, b"b").len(), if is_filled { 2 } else { 0 });
            assert_eq!(keys(part, b"c"), [b"cold".to_vec()]);
        }
        write(&*map, 1, vec![row(1, b"alater", Some(b"3"))]);
        assert_eq!(keys(1, b"a"), [b"alater".to_vec()]);
        map.compact().unwrap();
        assert!(map.disk_bytes().unwrap() > 0);
    });
}

#[test]
fn a_replacement_that_breaks_off_leaves_what_was_there() {
    each_engine(|map| {
        write(&*map, 0, vec![row(0, b"aold", Some(b"1"))]);
        let mut left = 3;
        let broken = map.replace(&replaced(&[SMALL], 1), &mut || {
            left -= 1;
            match left {
                0 => Err(Error::Refused("the source broke".into())),
                left => Ok(Some(row(0, &[b'a', 9 - left], Some(b"")))),
            }
        });
        assert!(broken.unwrap_err().to_string().contains("the source broke"));
        assert_eq!(all(&map, 0, Span::prefix(b"a")).len(), 1);
    });
}

/// A process that takes the lease of part 0 when every deadline is over.
fn take_over(db: &Db, node: i64) -> Lease {
    let asking = LeaseRequest {
        node: NodeId(node),
        node_name: format!("process-{node}"),
        now_ms: node * 1_000,
        lease_ms: 1,
        skew_ms: 0,
    };
    db.write(move |tx| leases::take(tx, Part(0), "links", &asking)).unwrap().unwrap()
}

#[test]
fn a_rebuild_that_lost_its_lease_replaces_nothing() {
    both_databases(|db| {
        let map: Arc<dyn SortedMap> = Arc::new(InRows::new(db));
        write(&*map, 0, vec![row(0, b"aold", Some(b"1"))]);
        // SQLite has one writer, so that nobody can take the lease while the rows are written.
        let moments: &[usize] = if db.dialect() == Dialect::Postgres { &[0, 2] } else { &[0] };
        for (attempt, moment) in (1..).zip(moments) {
            let lease = take_over(db, attempt * 10);
            let mut told = 0;
            let what = BulkReplacement { leases: &[lease], ..replaced(&[SMALL], 1) };
            let outcome = map.replace(&what, &mut || {
                if told == *moment {
                    take_over(db, attempt * 10 + 1);
                }
                told += 1;
                Ok((told < 4).then(|| row(0, &[b'a', told as u8], Some(b""))))
            });
            assert!(matches!(outcome, Err(Error::LeaseLost { .. })), "{outcome:?}");
            assert_eq!(all(&map, 0, Span::prefix(b"a")), [(b"aold".to_vec(), b"1".to_vec())]);
        }
        let lease = take_over(db, 99);
        let mut new = Some(row(0, b"anew", Some(b"2")));
        let what = BulkReplacement { leases: &[lease], ..replaced(&[SMALL], 1) };
        map.replace(&what, &mut || Ok(new.take()))?;
        assert_eq!(all(&map, 0, Span::prefix(b"a")), [(b"anew".to_vec(), b"2".to_vec())]);
        Ok(())
    });
}

#[test]
fn a_directory_keeps_its_rows_and_loses_what_was_cut_off() {
    let place = tempfile::tempdir().unwrap();
    let place = MapLocation { path: place.path().join("map"), families: FAMILIES };
    let map: Arc<dyn SortedMap> = Arc::new(EmbeddedMap::open(&place).unwrap());
    write(&*map, 0, vec![row(0, b"akept", Some(b"1"))]);
    let failed = AtomicBool::new(false);
    let _ = map.replace(&replaced(&[SMALL], 1), &mut || {
        failed.store(true, Ordering::SeqCst);
        Err(Error::Refused("cut off".into()))
    });
    assert!(failed.load(Ordering::SeqCst));
    let second = EmbeddedMap::open(&place);
    assert!(matches!(second, Err(Error::InUse { .. })), "one process at a time");
    drop(map);
    let map: Arc<dyn SortedMap> = Arc::new(EmbeddedMap::open(&place).unwrap());
    assert_eq!(all(&map, 0, Span::prefix(b"a")), [(b"akept".to_vec(), b"1".to_vec())]);
    let mut new = Some(row(0, b"anew", Some(b"2")));
    map.replace(&replaced(&[SMALL], 1), &mut || Ok(new.take())).unwrap();
    drop(map);
    let map: Arc<dyn SortedMap> = Arc::new(EmbeddedMap::open(&place).unwrap());
    assert_eq!(all(&map, 0, Span::prefix(b"a")), [(b"anew".to_vec(), b"2".to_vec())]);
}

#[test]
fn a_whole_map_is_carried_into_a_file_and_into_another_map() {
    each_engine(|map| {
        for part in 0..3 {
            let rows =
                (0..60u8).map(|number| row(part, &[b'a' + number % 3, number], Some(&[number; 3])));
            write(&*map, part, rows.collect());
        }
        let whole = |map: &Arc<dyn SortedMap>| -> Vec<(i64, Pair)> {
            let parts = 0..3i64;
            let rows = |part| {
                FAMILIES.iter().flat_map(move |it| {
                    all(map, part, Span::prefix(&[it.byte]))
                        .into_iter()
                        .map(move |pair| (part, pair))
                })
            };
            parts.flat_map(rows).collect()
        };
        let expected = whole(&map);
        assert_eq!(expected.len(), 180);
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("rows");
        transfer::export(&*map, FAMILIES, 3, &file).unwrap();
        assert!(
            transfer::export(&*map, FAMILIES, 3, &file).is_err(),
            "a file is never overwritten"
        );
        let open = |name: &str| -> Arc<dyn SortedMap> {
            let place = MapLocation { path: place.path().join(name), families: FAMILIES };
            Arc::new(EmbeddedMap::open(&place).unwrap())
        };
        let (read, copied) = (open("read"), open("copied"));
        write(&*read, 1, vec![row(1, b"aown", Some(b"goes"))]);
        transfer::import(&*read, FAMILIES, 3, &file).unwrap();
        assert_eq!(whole(&read), expected);
        transfer::copy(&*map, &*copied, FAMILIES, 3).unwrap();
        assert_eq!(whole(&copied), expected);
        transfer::copy(&*copied, &*map, FAMILIES, 3).unwrap();
        assert_eq!(whole(&map), expected);
        let bytes = std::fs::read(&file).unwrap();
        for cut in [0, 5, 40, bytes.len() - 1] {
            std::fs::write(&file, &bytes[..cut]).unwrap();
            assert!(transfer::import(&*read, FAMILIES, 3, &file).is_err(), "cut at {cut}");
            assert_eq!(whole(&read), expected, "cut at {cut}");
        }
    });
}

#[test]
fn a_map_that_cannot_be_written_is_read_through_a_mirror() {
    let folder = tempfile::tempdir().unwrap();
    let place = MapLocation { path: folder.path().join("map"), families: FAMILIES };
    let map: Arc<dyn SortedMap> = Arc::new(EmbeddedMap::open(&place).unwrap());
    write(&*map, 0, vec![row(0, b"atable", Some(b"1")), row(0, b"clarge", Some(b"2"))]);
    map.compact().unwrap();
    write(&*map, 1, vec![row(1, b"ajournal", Some(b"3"))]);
    drop(map);
    let files = || {
        let mut found = Vec::new();
        let mut folders = vec![place.path.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(|it| it.unwrap()) {
                let metadata = entry.metadata().unwrap();
                found.push((entry.path(), metadata.len(), metadata.modified().unwrap()));
                if metadata.is_dir() {
                    folders.push(entry.path());
                }
            }
        }
        found.sort();
        found
    };
    let before = files();
    let mirror: Arc<dyn SortedMap> =
        Arc::new(EmbeddedMap::open_mirror(&place, &folder.path().join("mirror")).unwrap());
    for (part, key, value) in
        [(0, &b"atable"[..], b"1"), (0, b"clarge", b"2"), (1, b"ajournal", b"3")]
    {
        let key = key.to_vec();
        let found = mirror.read(move |view| view.get(Part(part), &key)).unwrap();
        assert_eq!(found.as_deref(), Some(&value[..]));
    }
    mirror.compact().unwrap();
    write(&*mirror, 0, vec![row(0, b"atable", None)]);
    drop(mirror);
    assert_eq!(files(), before, "the original is as it was");
    // One that was never made is empty.
    let none = MapLocation { path: folder.path().join("none"), families: FAMILIES };
    let mirror: Arc<dyn SortedMap> =
        Arc::new(EmbeddedMap::open_mirror(&none, &folder.path().join("empty")).unwrap());
    assert!(all(&mirror, 0, Span::prefix(b"a")).is_empty() && !none.path.exists());
}
