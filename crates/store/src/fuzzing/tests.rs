//! The corpora of this crate, replayed; and that none of any crate is forgotten.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;

const FUZZ: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz");

/// The names in a directory, without extensions.
fn names(directory: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(Path::new(FUZZ).join(directory)).unwrap();
    let stem = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    entries.map(|entry| stem(&entry.unwrap().path())).collect()
}

#[test]
fn every_input_of_the_corpora_keeps_its_promise() {
    page::fuzzing::replay(&Path::new(FUZZ).join("corpus"), TARGETS).unwrap();
}

#[test]
fn targets_corpora_and_programs_are_the_same_set() {
    let targets = page::fuzzing::TARGETS.iter().chain(TARGETS);
    let targets: BTreeSet<_> = targets.map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names("corpus"), targets);
    assert_eq!(names("fuzz_targets"), targets);
}
