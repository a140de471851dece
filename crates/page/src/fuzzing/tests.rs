//! The corpora of this crate, replayed.

use super::*;

const CORPORA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");

#[test]
fn every_input_of_the_corpora_keeps_its_promise() {
    replay(Path::new(CORPORA), TARGETS).unwrap();
}

#[test]
fn a_target_without_corpus_is_noticed() {
    let nothing: Target = |_| {};
    assert!(replay(Path::new(CORPORA), &[("no such target", nothing)]).is_err());
}
