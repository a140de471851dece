//! What a mirror can be told.

use crate::connectors::choice::choice;
use serde::{Deserialize, Serialize};

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 3_600 * 1_000;

/// The settings of a mirror, which are kept with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MirrorSettings {
    /// What the files of pages are called.
    pub names: Names,
    /// Generations that are kept, the newest ones.
    pub keep: u64,
    /// Generations older than this go even if they are among the newest; the newest stays.
    pub keep_ms: Option<i64>,
    /// How long requisites stay that no page needs any more: readers have old pages open.
    pub grace_ms: i64,
    /// Threads that parse and rewrite.
    #[serde(skip, default = "threads")]
    pub threads: usize,
    /// Who answers for the mirror, for its x-files.
    pub editor: String,
    /// What is said of a link that leads to another site.
    pub outside_notice: Option<String>,
}

impl Default for MirrorSettings {
    fn default() -> MirrorSettings {
        MirrorSettings {
            names: Names::Hash,
            keep: 10,
            keep_ms: None,
            grace_ms: DAY_MS,
            threads: threads(),
            editor: String::new(),
            outside_notice: None,
        }
    }
}

fn threads() -> usize {
    2
}

/// What the files of pages are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Names {
    /// `xx/<hash of the URL>.html`.
    #[default]
    Hash,
    /// A path that is made of the URL.
    Path,
}

choice!(Names of "names" { Hash = "hash", Path = "path" });
