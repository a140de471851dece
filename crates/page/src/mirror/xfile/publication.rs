//! What an x-file says of itself: its place in the row of x-files, and what it covers.

use crate::mirror::digest::ContentDigest;
use crate::mirror::words::words;

/// Parts of a data directory that an x-file can name.
pub(super) const PARTS_MAX: usize = 1_024;

/// The place of an x-file in the row, and what it is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// Changes when the mirror is built anew and numbers begin again.
    pub epoch: String,
    /// Its number: 1, 2, 3, without a gap.
    pub number: u64,
    /// Whether its contents are fetched or still to come.
    pub stage: Stage,
    /// The x-file before, unless this is the first.
    pub previous: Option<Previous>,
    /// The last number that there is a whole snapshot of.
    pub base: u64,
    /// The oldest number that can still be had.
    pub oldest: u64,
    /// When the run began, in milliseconds.
    pub started_ms: i64,
    /// When it ended.
    pub completed_ms: Option<i64>,
    /// The program that wrote it.
    pub producer: String,
    /// The digest of the rules that it was made by, if there were some.
    pub rules: Option<ContentDigest>,
    /// Whether the run reached its end.
    pub outcome: Outcome,
    /// Up to which commit each part is in it, in the order of parts.
    pub cut: Vec<PartCommit>,
}

/// Whether the contents of an x-file have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// What the run is going to fetch.
    Announced,
    /// What it has fetched.
    Published,
}

words!(Stage { Announced = "announced", Published = "published" });

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// At its end.
    Complete,
    /// Before it; what it did not see is not gone.
    Partial,
}

words!(Outcome { Complete = "complete", Partial = "partial" });

/// The x-file before this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Previous {
    /// Its number.
    pub number: u64,
    /// The digest of its bytes.
    pub sha256: ContentDigest,
}

/// How far a part is in an x-file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartCommit {
    /// The part.
    pub part: u32,
    /// The number of its last commit that is in the x-file.
    pub commit: u64,
}

/// `0:12 1:15` for commit 12 of part 0 and 15 of part 1.
pub(super) fn cut_to_text(cut: &[PartCommit]) -> String {
    let pairs: Vec<String> = cut.iter().map(|it| format!("{}:{}", it.part, it.commit)).collect();
    pairs.join(" ")
}

pub(super) fn cut_of_text(text: &str) -> Option<Vec<PartCommit>> {
    let mut cut: Vec<PartCommit> = Vec::new();
    for pair in text.split_ascii_whitespace() {
        let (part, commit) = pair.split_once(':')?;
        let pair = PartCommit { part: part.parse().ok()?, commit: commit.parse().ok()? };
        let is_in_order = cut.last().is_none_or(|last| last.part < pair.part);
        if cut.len() == PARTS_MAX || !is_in_order {
            return None;
        }
        cut.push(pair);
    }
    Some(cut)
}
