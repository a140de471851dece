//! How far documents are from the seeds, by kind of link (tables 11.18 to 11.20).
//!
//! For each kind of link that a job counts there is a graph of its own, in which links of
//! that kind count one and all others nothing. A document's part holds its distance, the
//! links to it with what their sources said of themselves, and where it leads. Parts
//! agree by telling: whose distance has changed has **news** for all it leads to, which
//! the holder of its part passes on ([`unsent`], [`receive()`], [`mark_sent`]).
//!
//! Invariants, of every graph: a distance is that of the best parent and the link from
//! it, as the parent said it; following best parents leads to a seed, or to a list that is
//! no document and is there from the beginning (robots.txt). A document whose best parent
//! is lost is **lost** itself, and stays so until everybody who rests on it has heard of
//! it: only then may it rest on others, who cannot rest on it any more ([`find_again`]).
//! So circles that no seed leads to do not hold each other up.

mod find;
mod leads;
mod receive;

pub use find::{find_again, grown, is_hopeful, unreachable};
pub use leads::{Leads, SentState, leads, save_leads};
pub use receive::{DistanceMessage, MovedDocument, Says, receive};

use crate::ids::{JobId, Part};
use crate::tables::queue::Place;
use crate::{Result, Tx, Value};
use page::ids::DocHash;
use std::collections::HashMap;

/// What seeds are said to be linked by, and from where: nowhere.
pub const SEED_LINK: &str = "";
/// The source of the links to seeds.
pub const NOWHERE: (Part, DocHash) = (Part(0), DocHash([0; 16]));

/// A job's graphs in a part.
#[derive(Debug, Clone, Copy)]
pub struct Graphs<'a> {
    /// The job and the part.
    pub place: Place,
    /// The kinds of links that are counted.
    pub kinds: &'a [String],
    /// Whether links are kept, so that a document that loses one finds another.
    pub keeps_links: bool,
}

/// How far a document is from the seeds, counting one kind of link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distance {
    /// The number of links from a seed.
    At(i64),
    /// Its best parent is lost; whether there is another is not known yet.
    Lost,
    /// No way is known.
    Unknown,
}

impl Distance {
    fn from_row(distance: Option<i64>) -> Distance {
        distance.map_or(Distance::Lost, Distance::At)
    }
}

/// The distances of documents, in the order of the kinds.
pub fn distances(
    tx: &mut Tx<'_>,
    graphs: Graphs<'_>,
    keys: &[DocHash],
) -> Result<HashMap<DocHash, Vec<Distance>>> {
    let place = graphs.place;
    let unknown = vec![Distance::Unknown; graphs.kinds.len()];
    let mut out: HashMap<DocHash, Vec<Distance>> =
        keys.iter().map(|key| (*key, unknown.clone())).collect();
    let keys: Vec<Value<'_>> = keys.iter().map(Into::into).collect();
    let rows = tx.query_in(
        "SELECT dochash, linktype, distance FROM distances
         WHERE part = $1 AND jobid = $2 AND dochash IN ($keys)",
        &[place.part.into(), place.job.into()],
        &keys,
        |row| Ok((row.get::<DocHash>(0)?, row.get::<String>(1)?, row.get(2)?)),
    )?;
    for (dochash, kind, distance) in rows {
        let at = graphs.kinds.iter().position(|it| *it == kind);
        if let (Some(at), Some(distances)) = (at, out.get_mut(&dochash)) {
            distances[at] = Distance::from_row(distance);
        }
    }
    Ok(out)
}

/// A document with news.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct News {
    pub dochash: DocHash,
    /// In the graph of this kind of link.
    pub kind: String,
    /// How far it is now.
    pub distance: Distance,
}

const UNTOLD: &str = "SELECT dochash, linktype, distance FROM distances
     WHERE part = $1 AND jobid = $2 AND news = 1 ORDER BY dochash, linktype LIMIT $3";

/// Documents that have news for what they lead to.
pub fn unsent(tx: &mut Tx<'_>, place: Place, limit: u32) -> Result<Vec<News>> {
    tx.query(UNTOLD, &[place.part.into(), place.job.into(), limit.into()], |row| {
        let distance = Distance::from_row(row.get(2)?);
        Ok(News { dochash: row.get(0)?, kind: row.get(1)?, distance })
    })
}

/// All a document leads to has heard its news, unless there are newer ones.
pub fn mark_sent(tx: &mut Tx<'_>, place: Place, news: &[News]) -> Result<()> {
    for it in news {
        let text = match it.distance {
            Distance::Lost => "AND distance IS NULL AND $5 = 0",
            _ => "AND distance = $5",
        };
        let distance = if let Distance::At(distance) = it.distance { distance } else { 0 };
        tx.execute(
            &format!(
                "UPDATE distances SET news = 0
                 WHERE part = $1 AND jobid = $2 AND dochash = $3 AND linktype = $4 {text}"
            ),
            &[
                place.part.into(),
                place.job.into(),
                (&it.dochash).into(),
                (&it.kind).into(),
                distance.into(),
            ],
        )?;
    }
    Ok(())
}

/// What is under way in a job's graphs, in all parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingDistances {
    /// Documents have news for their targets.
    pub news: bool,
    /// Somebody is lost, and not all have heard of it who rest on it.
    pub losses: bool,
    /// Documents have lost their way to a seed.
    pub lost: bool,
    /// Somebody's distance has grown, and what that means has not been looked at.
    pub grown: bool,
}

impl PendingDistances {
    /// Whether all distances are what they are.
    pub fn is_nothing(self) -> bool {
        !self.news && !self.lost && !self.grown
    }
}

/// What is under way in a job's graphs, in all parts.
pub fn under_way(tx: &mut Tx<'_>, job: JobId) -> Result<PendingDistances> {
    let mut any = |condition: &str| {
        let sql = format!(
            "SELECT COUNT(*) FROM (SELECT 1 FROM distances WHERE jobid = $1 AND {condition}
             LIMIT 1) AS found"
        );
        tx.query_one(&sql, &[job.into()], |row| Ok(row.get::<i64>(0)? > 0))
    };
    Ok(PendingDistances {
        news: any("news = 1")?,
        losses: any("news = 1 AND distance IS NULL")?,
        lost: any("distance IS NULL")?,
        grown: any("grown = 1")?,
    })
}

/// Whether the holder of a part has something to do for a job's graphs there.
pub fn is_due(tx: &mut Tx<'_>, place: Place) -> Result<bool> {
    // One by one, since each has its own index.
    for condition in ["news = 1", "distance IS NULL", "grown = 1"] {
        let found = tx.query_opt(
            &format!(
                "SELECT 1 FROM distances WHERE part = $1 AND jobid = $2 AND {condition} LIMIT 1"
            ),
            &[place.part.into(), place.job.into()],
            |row| row.get::<i64>(0),
        )?;
        if found.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests;
