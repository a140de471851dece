//! Rows against their checksums.

use super::{PAGE, VerifyReport};
use crate::checksums::{self, ScanPosition};
use crate::{Db, Result};

/// Names the rows that are not as they were written.
pub(super) fn check(db: &Db, report: &mut VerifyReport) -> Result<()> {
    let mut next = Some(ScanPosition::default());
    while let Some(place) = next {
        let found = db.read(move |tx| checksums::damaged_after(tx, place.clone(), PAGE))?;
        report.rows += found.rows;
        for key in found.keys {
            report.find(
                format!("the row of table {} with {key}", found.table.table),
                "its checksum does not match what it says",
                found.table.remedy,
            );
        }
        next = found.next;
    }
    Ok(())
}
