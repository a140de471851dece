//! Orphans: objects in the store that no row knows.
//!
//! There are none unless somebody restored rows without their objects' store, put
//! files there by hand, or there is a bug: a row comes before its object and goes
//! after it. So they are reported, and deleted only when somebody asked for that.
//!
//! Invariant: an object that was listed, still exists when its row is found
//! missing, and is older than a writer may take, is nobody's.

use std::collections::HashSet;

use crate::ids::Part;
use crate::objects::{LIST_MAX, ObjectPath, Objects};
use crate::tables::objects as rows;
use crate::{Db, Result};

/// Orphans that a report names; beyond that it only counts.
pub const ORPHANS_SHOWN_MAX: usize = 100;

/// Objects that no row knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
#[allow(missing_docs)]
pub struct Orphans {
    /// How many there are, or were.
    pub found: u64,
    pub bytes: u64,
    /// How many were deleted.
    pub deleted: u64,
    /// The first [`ORPHANS_SHOWN_MAX`] of them.
    pub paths: Vec<String>,
}

/// Compares the store's listing of a part with the rows, page by page.
pub(super) fn find(
    db: &Db,
    objects: &Objects,
    part: Part,
    written_before_ms: i64,
    keep: bool,
    orphans: &mut Orphans,
) -> Result<()> {
    for root in ObjectPath::ROOTS {
        let prefix = ObjectPath::parse(&format!("{root}/{part}"))?;
        let mut after = None;
        loop {
            let page = objects.list(&prefix, after.as_ref(), LIST_MAX)?;
            let Some(last) = page.last() else { break };
            after = Some(last.path.clone());
            let old: Vec<ObjectPath> = page
                .into_iter()
                .filter(|listed| listed.modified_ms < written_before_ms)
                .map(|listed| listed.path)
                .collect();
            for path in without_row(db, part, old)? {
                // A collection beside this one may have removed it, and then its row.
                let Some(bytes) = objects.head(&path)? else { continue };
                if !keep {
                    objects.delete(&path)?;
                    orphans.deleted += 1;
                }
                orphans.found += 1;
                orphans.bytes += bytes;
                if orphans.paths.len() < ORPHANS_SHOWN_MAX {
                    orphans.paths.push(path.to_string());
                }
            }
        }
    }
    Ok(())
}

fn without_row(db: &Db, part: Part, mut paths: Vec<ObjectPath>) -> Result<Vec<ObjectPath>> {
    let asked: Vec<String> = paths.iter().map(ObjectPath::to_string).collect();
    let known = db.read(move |tx| rows::known_paths(tx, part, &asked))?;
    let known: HashSet<String> = known.into_iter().collect();
    paths.retain(|path| !known.contains(path.as_str()));
    Ok(paths)
}
