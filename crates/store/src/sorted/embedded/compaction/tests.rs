//! A map in a directory, over many processes and many changes: what it takes on the disk, and
//! that it loses nothing on the way.

use super::super::super::{Family, Habit, Row, SortedMap, Span};
use super::super::{EmbeddedMap, MapLocation};
use super::*;
use crate::ids::Part;
use std::collections::BTreeMap;
use std::sync::Arc;

const FAMILIES: &[Family] = &[
    Family { byte: b'a', name: "small", habit: Habit::Looked },
    Family { byte: b'b', name: "more", habit: Habit::Ranked },
    Family { byte: b'c', name: "large", habit: Habit::Kept },
];
/// Rows of the small site of these tests, and those that a run changes.
const ROWS: u64 = 3_000;
const CHANGED: u64 = 300;
const RUNS: u64 = 24;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// A row of a version; its value compresses as little as real ones do.
fn row(number: u64, version: u64) -> (Vec<u8>, Vec<u8>) {
    let family = FAMILIES[usize::try_from(number % 3).unwrap()].byte;
    let key = [&[family][..], format!("com.example>>o>/page/{number:06}").as_bytes()].concat();
    let noise = blake3::hash(format!("{number} {version}").as_bytes());
    (key, [&noise.as_bytes()[..], format!("words of version {version}").as_bytes()].concat())
}

/// A run: some rows are different, one goes and comes back.
fn change(map: &dyn SortedMap, run: u64, now: &mut Rows) {
    let mut rows = Vec::new();
    let count = if run == 0 { ROWS } else { CHANGED };
    for at in 0..count {
        let (key, value) = row((run * 7_919 + at * 13) % ROWS, run);
        rows.push((key, Some(value)));
    }
    let (key, _) = row(run, 0);
    rows.push((key, (run % 2 == 1).then(|| b"back".to_vec())));
    for (key, value) in &rows {
        match value {
            Some(value) => drop(now.insert(key.clone(), value.clone())),
            None => drop(now.remove(key)),
        }
    }
    let part = Part(0);
    let rows: Vec<Row> = rows.into_iter().map(|(key, value)| Row { part, key, value }).collect();
    map.change(part, None, Arc::new(move |_| Ok(rows.clone()))).unwrap();
}

fn rows_of(map: &(dyn SortedMap + 'static)) -> Rows {
    let look = |byte: u8| {
        map.read(move |view| view.scan(Part(0), &Span::prefix(&[byte]), 100_000)).unwrap()
    };
    FAMILIES.iter().flat_map(|it| look(it.byte)).collect()
}

/// Bytes that a directory takes, holes not counted.
fn bytes_of(folder: &Path) -> u64 {
    let (mut bytes, mut folders) = (0, vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|it| it.unwrap()) {
            let found = entry.metadata().unwrap();
            match found.is_dir() {
                true => folders.push(entry.path()),
                false => bytes += found.len().min(found.blocks() * 512),
            }
        }
    }
    bytes
}

/// The files of a directory, with their sizes.
fn files_of(folder: &Path) -> Vec<(PathBuf, u64)> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        // What the library removes meanwhile makes the next list another one.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(it) if it.is_dir() => folders.push(entry.path()),
                Ok(it) => found.push((entry.path(), it.len())),
                Err(_) => {}
            }
        }
    }
    found.sort();
    found
}

/// What a process that is killed now would leave: files that did not change while they were
/// copied.
fn killed(place: &MapLocation, to: &Path) -> MapLocation {
    loop {
        let _ = fs::remove_dir_all(to);
        let before = files_of(&place.path);
        for (file, _) in &before {
            let target = to.join(file.strip_prefix(&place.path).unwrap());
            fs::create_dir_all(target.parent().unwrap()).unwrap();
            let _ = fs::copy(file, target);
        }
        if files_of(&place.path) == before {
            return MapLocation { path: to.to_owned(), ..place.clone() };
        }
    }
}

fn place(folder: &Path, name: &str) -> MapLocation {
    MapLocation { path: folder.join(name), families: FAMILIES }
}

#[test]
fn a_small_map_takes_at_most_twice_its_rows_after_any_number_of_processes() {
    let folder = tempfile::tempdir().unwrap();
    let (at, mut now) = (place(folder.path(), "map"), Rows::new());
    for run in 0..RUNS {
        let map: Arc<dyn SortedMap> = Arc::new(EmbeddedMap::open(&at).unwrap());
        assert_eq!(rows_of(&*map), now, "run {run}");
        change(&*map, run, &mut now);
        drop(map);
        if run % 6 == 5 {
            let anew = place(folder.path(), &format!("anew-{run}"));
            let fresh = EmbeddedMap::open(&anew).unwrap();
            let row = |(key, value): (&Vec<u8>, &Vec<u8>)| Row {
                part: Part(0),
                key: key.clone(),
                value: Some(value.clone()),
            };
            let rows: Vec<Row> = now.iter().map(row).collect();
            fresh.change(Part(0), None, Arc::new(move |_| Ok(rows.clone()))).unwrap();
            drop(fresh);
            let (bytes, fresh) = (bytes_of(&at.path), bytes_of(&anew.path));
            assert!(bytes <= 2 * fresh, "{bytes} bytes after run {run}, {fresh} made anew");
        }
    }
}

#[test]
fn the_journal_of_a_small_map_that_stays_open_is_shortened() {
    let folder = tempfile::tempdir().unwrap();
    let at = place(folder.path(), "map");
    let map: Arc<dyn SortedMap> = Arc::new(EmbeddedMap::open(&at).unwrap());
    let (mut now, mut longest, mut shortened) = (Rows::new(), 0, 0);
    for run in 0..300 {
        change(&*map, run, &mut now);
        let before = journal_bytes(&at.path).unwrap();
        longest = longest.max(before);
        map.tidy().unwrap();
        shortened += u64::from(journal_bytes(&at.path).unwrap() < before);
        if run % 60 == 0 {
            assert_eq!(rows_of(&*map), now, "run {run}");
        }
    }
    assert!(longest < 2 * JOURNAL_OPEN_BYTES, "{longest} bytes of journal");
    assert!(shortened > 0, "{longest} bytes of journal, never shortened");
    assert_eq!(rows_of(&*map), now);
}

#[test]
fn a_map_whose_process_is_killed_at_any_moment_has_all_it_was_told() {
    let folder = tempfile::tempdir().unwrap();
    let at = place(folder.path(), "map");
    let mut now = Rows::new();
    let check = |name: &str, now: &Rows| {
        let left = killed(&at, &folder.path().join(name));
        let map: Arc<dyn SortedMap> = Arc::new(EmbeddedMap::open(&left).unwrap());
        assert_eq!(&rows_of(&*map), now, "{name}");
        let mut later = now.clone();
        // And it goes on from there.
        change(&*map, 99, &mut later);
        drop(map);
        let map: Arc<dyn SortedMap> = Arc::new(EmbeddedMap::open(&left).unwrap());
        assert_eq!(rows_of(&*map), later, "{name}, later");
    };
    for run in 0..4 {
        let map = EmbeddedMap::open(&at).unwrap();
        check(&format!("opened-{run}"), &now);
        change(&map, run * 2, &mut now);
        check(&format!("changed-{run}"), &now);
        // Rows are in tables, and in the journal still.
        assert!(map.with(OpenedMap::write_out).unwrap());
        check(&format!("written-{run}"), &now);
        change(&map, run * 2 + 1, &mut now);
        check(&format!("again-{run}"), &now);
        drop(map);
        check(&format!("closed-{run}"), &now);
    }
}
