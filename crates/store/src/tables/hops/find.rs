//! Documents that were lost are found again by other ways, or by none.
//!
//! Invariant: whoever calls has seen, in this transaction, that nobody's loss is still to
//! be told; so a document that knows where it is does not rest on one that is lost.

use super::receive::best_link;
use super::{Distance, Graphs};
use crate::ids::JobId;
use crate::{Result, Tx, Value};
use page::ids::DocHash;

/// A lost document that somebody leads to who knows where it is.
pub(super) const LOST: &str = "SELECT dochash, linktype FROM distances
     WHERE part = $1 AND jobid = $2 AND distance IS NULL ORDER BY dochash, linktype LIMIT $3";
pub(super) const GROWN: &str = "SELECT dochash FROM distances
     WHERE part = $1 AND jobid = $2 AND grown = 1 ORDER BY dochash, linktype LIMIT $3";

const HOPEFUL: &str = "distance IS NULL AND EXISTS (
    SELECT 1 FROM edges e WHERE e.part = d.part AND e.jobid = d.jobid AND e.targethash = d.dochash
      AND e.counts = d.linktype AND e.offer IS NOT NULL)";

/// Whether somebody is lost, in any part, who can be found again.
pub fn is_hopeful(tx: &mut Tx<'_>, job: JobId) -> Result<bool> {
    let sql = format!(
        "SELECT COUNT(*) FROM (SELECT 1 FROM distances d WHERE d.jobid = $1 AND {HOPEFUL} LIMIT 1)
         AS found"
    );
    tx.query_one(&sql, &[job.into()], |row| Ok(row.get::<i64>(0)? > 0))
}

/// Finds documents of a part again that others lead to. They have news, and their
/// distance may be less when others have told theirs. Returns them.
pub fn find_again(tx: &mut Tx<'_>, graphs: Graphs<'_>, limit: u32) -> Result<Vec<DocHash>> {
    let place = graphs.place;
    let sql = format!(
        "SELECT d.dochash, d.linktype FROM distances d
         WHERE d.part = $1 AND d.jobid = $2 AND {HOPEFUL} ORDER BY d.dochash, d.linktype LIMIT $3
         /*for update*/"
    );
    let lost = tx.query(&sql, &[place.part.into(), place.job.into(), limit.into()], |row| {
        Ok((row.get::<DocHash>(0)?, row.get::<String>(1)?))
    })?;
    let mut found = Vec::new();
    for (dochash, kind) in lost {
        let Some(at) = graphs.kinds.iter().position(|it| *it == kind) else { continue };
        let Some(best) = best_link(tx, graphs, dochash, at)? else { continue };
        tx.execute(
            "UPDATE distances SET distance = $5, parenthash = $6, parentpart = $7, parentlink = $8,
                 news = 1, grown = 1
             WHERE part = $1 AND jobid = $2 AND dochash = $3 AND linktype = $4
               AND distance IS NULL",
            &[
                place.part.into(),
                place.job.into(),
                (&dochash).into(),
                (&kind).into(),
                best.total.into(),
                (&best.source).into(),
                best.part.into(),
                (&best.link).into(),
            ],
        )?;
        found.push(dochash);
    }
    found.dedup();
    Ok(found)
}

/// Documents of a part that are lost for good: whoever calls has seen that nobody has
/// news, and that nobody is hopeful. No way to them is known from now on. Returns them.
pub fn unreachable(tx: &mut Tx<'_>, graphs: Graphs<'_>, limit: u32) -> Result<Vec<DocHash>> {
    let place = graphs.place;
    let lost = tx.query(LOST, &[place.part.into(), place.job.into(), limit.into()], |row| {
        Ok((row.get::<DocHash>(0)?, row.get::<String>(1)?))
    })?;
    for (dochash, kind) in &lost {
        let values: [Value<'_>; 4] =
            [place.part.into(), place.job.into(), dochash.into(), kind.into()];
        tx.execute(
            "DELETE FROM distances WHERE part = $1 AND jobid = $2 AND dochash = $3
               AND linktype = $4 AND distance IS NULL",
            &values,
        )?;
    }
    let mut out: Vec<DocHash> = lost.into_iter().map(|(dochash, _)| dochash).collect();
    out.dedup();
    Ok(out)
}

/// Documents of a part whose distance has grown; whoever calls has seen that nothing else
/// is under way, and looks what that means for them. Returns them, once.
pub fn grown(tx: &mut Tx<'_>, graphs: Graphs<'_>, limit: u32) -> Result<Vec<DocHash>> {
    let place = graphs.place;
    let mut grown: Vec<DocHash> =
        tx.query(GROWN, &[place.part.into(), place.job.into(), limit.into()], |row| row.get(0))?;
    grown.dedup();
    for dochash in &grown {
        tx.execute(
            "UPDATE distances SET grown = 0 WHERE part = $1 AND jobid = $2 AND dochash = $3",
            &[place.part.into(), place.job.into(), dochash.into()],
        )?;
    }
    Ok(grown)
}

impl Distance {
    /// Whether it is at most so far; `None` while that is not known.
    pub fn is_within(self, most: i64) -> Option<bool> {
        match self {
            Distance::At(distance) => Some(distance <= most),
            Distance::Lost => None,
            Distance::Unknown => Some(false),
        }
    }
}
