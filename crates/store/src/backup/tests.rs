//! A backup can be restored, is whole or not there, and refuses damage.

use super::*;
use crate::datadir::DataDir;
use crate::objects::{Location, Objects};
use crate::testing::commit_sample;
use crate::verify::verify;

/// A backup of what has no link index.
fn backup(source: &Layout, target: &Path) -> Result<CopiedFiles> {
    super::backup(source, target, &mut |_| Ok(false))
}

#[test]
fn a_link_index_is_part_of_a_backup_and_checked_like_all_of_it() {
    let place = tempfile::tempdir().unwrap();
    let data = DataDir::open(&place.path().join("data"), 2, 0).unwrap();
    let saved = place.path().join("saved");
    let mut write = |path: &Path| {
        std::fs::write(path, "the rows").map_err(|error| Error::io(path, error))?;
        Ok(true)
    };
    super::backup(data.layout(), &saved, &mut write).unwrap();
    let restored = place.path().join("restored");
    restore(&saved, &restored).unwrap();
    let rows = std::fs::read_to_string(Layout::new(&restored).written_links()).unwrap();
    assert_eq!(rows, "the rows");
    std::fs::write(Layout::new(&saved).written_links(), "other rows").unwrap();
    assert!(restore(&saved, &place.path().join("again")).is_err());
}

fn filled(root: &Path) -> DataDir {
    let data = DataDir::open(root, 4, 0).unwrap();
    let store = objects_of(data.layout());
    for part in [0, 2] {
        commit_sample(data.db(), &store, Part(part), 0).unwrap();
    }
    data
}

fn objects_of(layout: &Layout) -> Objects {
    Objects::open(&Location::Directory(layout.objects())).unwrap()
}

/// All rows of a database as text, table by table.
fn dump(db: &Db) -> Vec<String> {
    ["queue", "chunks", "objects", "counters", "leases", "settings", "bins"]
        .iter()
        .flat_map(|table| {
            let sql = format!("SELECT * FROM {table} ORDER BY 1, 2 LIMIT 1000");
            db.read(move |tx| {
                tx.query(&sql, &[], |row| {
                    let crate::Row::Sqlite(row) = row else { panic!("a data directory is SQLite") };
                    let columns = row.as_ref().column_count();
                    let values: Vec<String> =
                        (0..columns).map(|index| format!("{:?}", row.get_ref(index))).collect();
                    Ok(values.join("|"))
                })
            })
            .unwrap()
        })
        .collect()
}

#[test]
fn what_was_backed_up_while_in_use_is_restored_whole() {
    let place = tempfile::tempdir().unwrap();
    let data = filled(&place.path().join("data"));
    let saved = place.path().join("saved");
    let copied = backup(data.layout(), &saved).unwrap();
    assert_eq!(copied.files, 3, "the rows and two objects");
    let before = dump(data.db());
    // The original goes on; the backup does not change.
    commit_sample(data.db(), &objects_of(data.layout()), Part(1), 0).unwrap();

    let restored = place.path().join("restored");
    assert_eq!(restore(&saved, &restored).unwrap(), copied);
    let again = DataDir::open(&restored, 4, 0).unwrap();
    assert_eq!(dump(again.db()), before);
    let report = verify(again.db(), &objects_of(again.layout()), true).unwrap();
    assert_eq!((report.findings, report.objects), (vec![], 2));
}

#[test]
fn nothing_is_written_over() {
    let place = tempfile::tempdir().unwrap();
    let data = filled(&place.path().join("data"));
    let saved = place.path().join("saved");
    backup(data.layout(), &saved).unwrap();
    for refused in [
        backup(data.layout(), &saved).unwrap_err(),
        restore(&saved, data.layout().root()).unwrap_err(),
    ] {
        assert!(refused.to_string().contains("not empty"), "{refused}");
    }
    let inside = backup(data.layout(), &data.layout().root().join("copy")).unwrap_err();
    assert!(inside.to_string().contains("inside the data directory"), "{inside}");
    let nothing = Layout::new(place.path().join("nothing"));
    assert!(backup(&nothing, &place.path().join("x")).is_err());
    assert!(!place.path().join("x.partial").exists(), "no half-made backup is left");
}

#[test]
fn a_damaged_backup_is_refused_and_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let data = filled(&place.path().join("data"));
    let saved = place.path().join("saved");
    backup(data.layout(), &saved).unwrap();
    let manifest = std::fs::read_to_string(saved.join(MANIFEST)).unwrap();
    let object = manifest
        .lines()
        .find_map(|line| line.split(' ').nth(2).filter(|it| it.starts_with("objects/")));
    let object = saved.join(object.expect("the sample has objects"));
    let target = place.path().join("restored");
    let refused = |what: &str| {
        let error = restore(&saved, &target).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
        assert!(!target.exists() && !place.path().join("restored.partial").exists());
    };

    let good = std::fs::read(&object).unwrap();
    std::fs::write(&object, [good.as_slice(), b"!"].concat()).unwrap();
    refused("not the file the manifest names");
    std::fs::write(&object, good).unwrap();

    let cut = manifest.trim_end().trim_end_matches(END);
    std::fs::write(saved.join(MANIFEST), cut).unwrap();
    refused("cut short");
    std::fs::write(saved.join(MANIFEST), manifest.replace("objects/", "../objects/")).unwrap();
    refused("cannot be read");
    std::fs::remove_file(saved.join(MANIFEST)).unwrap();
    refused("not a backup");
}

#[test]
fn a_backup_refuses_an_object_that_is_not_what_was_written() {
    let place = tempfile::tempdir().unwrap();
    let data = filled(&place.path().join("data"));
    let all =
        data.db().read(|tx| crate::tables::objects::published_after(tx, Part(-1), ObjectId(0), 9));
    let damaged = data.layout().objects().join(&all.unwrap()[0].path);
    std::fs::write(&damaged, "other bytes").unwrap();
    let saved = place.path().join("saved");
    let error = backup(data.layout(), &saved).unwrap_err().to_string();
    assert!(error.contains("driftline verify"), "{error}");
    assert!(!saved.exists());
}

#[test]
fn a_copy_is_as_private_as_what_it_copies() {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().unwrap();
    let data = filled(&place.path().join("data"));
    let (saved, restored) = (place.path().join("saved"), place.path().join("restored"));
    backup(data.layout(), &saved).unwrap();
    restore(&saved, &restored).unwrap();
    for root in [data.layout().root(), saved.as_path(), restored.as_path()] {
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o077;
        assert_eq!(mode(root), 0, "{}", root.display());
    }
}
