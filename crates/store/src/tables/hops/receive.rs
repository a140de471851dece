//! What documents are told by those that lead to them.
//!
//! Invariants: hearing the same twice changes nothing; whatever is heard, the invariants
//! of the graphs hold when it is done. Needs no lease: rows are locked in one order.

use super::{Distance, Graphs};
use crate::ids::Part;
use crate::{Result, Tx, Value};
use page::ids::DocHash;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a document says of itself to those it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// It is so far from the seeds.
    At(i64),
    /// It does not know any more, or not yet.
    Lost,
    /// It does not lead there any more.
    Gone,
}

/// Something that a document is told, in one graph.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct DistanceMessage {
    pub target: DocHash,
    /// The document that links to it, and its part.
    pub source: (Part, DocHash),
    /// The kind of the link between them.
    pub link: Arc<str>,
    /// The graph: which of the kinds that are counted.
    pub kind: usize,
    pub says: Says,
}

/// A document that is nearer, or farther, or lost, in one graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct MovedDocument {
    pub dochash: DocHash,
    pub kind: usize,
    pub before: Distance,
    pub now: Distance,
}

/// A distance, as it is in the tables and as it is to be.
struct DistanceRow {
    before: Option<i64>,
    distance: Option<i64>,
    parent: Option<(DocHash, Part, String)>,
    is_changed: bool,
    is_news: bool,
    is_shaken: bool,
}

/// A distance that nothing is farther than.
const FAR: i64 = i64::MAX;

type Rows = BTreeMap<(DocHash, usize), DistanceRow>;

/// Tells documents of a part. Returns those whose distance is another one now.
pub fn receive(
    tx: &mut Tx<'_>,
    graphs: Graphs<'_>,
    sent: &[DistanceMessage],
) -> Result<Vec<MovedDocument>> {
    if sent.is_empty() {
        return Ok(Vec::new());
    }
    let targets: BTreeSet<DocHash> = sent.iter().map(|it| it.target).collect();
    let mut rows = lock(tx, graphs, &targets)?;
    let missing: BTreeSet<(DocHash, usize)> = sent
        .iter()
        .filter(|it| matches!(it.says, Says::At(_)))
        .map(|it| (it.target, it.kind))
        .filter(|key| !rows.contains_key(key))
        .collect();
    if !missing.is_empty() {
        make(tx, graphs, &missing)?;
        // Others may have made them at the same moment, and told them something.
        let made: BTreeSet<DocHash> = missing.iter().map(|it| it.0).collect();
        rows.extend(lock(tx, graphs, &made)?);
    }
    if graphs.keeps_links {
        write_links(tx, graphs, sent)?;
    }
    for it in sent {
        let kind = &graphs.kinds[it.kind];
        let Some(row) = rows.get_mut(&(it.target, it.kind)) else { continue };
        row.receive(it, i64::from(*it.link == **kind));
    }
    for ((dochash, kind), row) in rows.iter_mut().filter(|(_, row)| row.is_shaken) {
        let best = best_link(tx, graphs, *dochash, *kind)?;
        row.lean_on(best);
    }
    let changed: Vec<(&(DocHash, usize), &DistanceRow)> =
        rows.iter().filter(|(_, row)| row.is_changed).collect();
    write(tx, graphs, &changed)?;
    let moved = changed.iter().filter(|(_, row)| row.before != row.distance);
    Ok(moved
        .map(|((dochash, kind), row)| MovedDocument {
            dochash: *dochash,
            kind: *kind,
            before: distance_of(row.before),
            now: distance_of(row.distance),
        })
        .collect())
}

fn distance_of(distance: Option<i64>) -> Distance {
    match distance {
        Some(FAR) => Distance::Unknown,
        distance => Distance::from_row(distance),
    }
}

impl DistanceRow {
    fn receive(&mut self, sent: &DistanceMessage, counts: i64) {
        let is_parent = self
            .parent
            .as_ref()
            .is_some_and(|(source, _, link)| *source == sent.source.1 && **link == *sent.link);
        // One that is lost listens to nobody, until all who rest on it have heard.
        let Some(now) = self.distance else { return };
        match sent.says {
            Says::At(distance) if distance.saturating_add(counts) < now => {
                self.distance = Some(distance + counts);
                self.parent = Some((sent.source.1, sent.source.0, sent.link.to_string()));
                (self.is_changed, self.is_news, self.is_shaken) = (true, true, false);
            }
            Says::At(distance) => self.is_shaken |= is_parent && distance + counts > now,
            Says::Lost | Says::Gone => self.is_shaken |= is_parent,
        }
    }

    /// Takes another parent that is as near, if it cannot rest on this document: it is
    /// nearer to the seeds, and who rests on a document is never.
    fn lean_on(&mut self, best: Option<OfferedLink>) {
        let now = self.distance.unwrap_or(FAR);
        self.is_changed = true;
        match best {
            Some(best) if best.total <= now && best.offer < now => {
                self.is_news |= best.total < now;
                self.distance = Some(best.total);
                self.parent = Some((best.source, best.part, best.link));
            }
            _ => {
                (self.distance, self.parent) = (None, None);
                self.is_news = true;
            }
        }
    }
}

/// A link to a document, from one that knows where it is.
pub(super) struct OfferedLink {
    pub(super) source: DocHash,
    pub(super) part: Part,
    pub(super) link: String,
    pub(super) offer: i64,
    pub(super) total: i64,
}

/// The link that makes a document nearest.
pub(super) fn best_link(
    tx: &mut Tx<'_>,
    graphs: Graphs<'_>,
    dochash: DocHash,
    kind: usize,
) -> Result<Option<OfferedLink>> {
    let (place, kind) = (graphs.place, &graphs.kinds[kind]);
    tx.query_opt(
        "SELECT sourcehash, sourcepart, linktype, offer,
                offer + CASE WHEN linktype = counts THEN 1 ELSE 0 END AS total
         FROM edges
         WHERE part = $1 AND jobid = $2 AND targethash = $3 AND counts = $4 AND offer IS NOT NULL
         ORDER BY total, offer, sourcehash LIMIT 1",
        &[place.part.into(), place.job.into(), (&dochash).into(), kind.into()],
        |row| {
            Ok(OfferedLink {
                source: row.get(0)?,
                part: row.get(1)?,
                link: row.get(2)?,
                offer: row.get(3)?,
                total: row.get(4)?,
            })
        },
    )
}

/// The distances of documents, which nobody else changes before this transaction ends.
fn lock(tx: &mut Tx<'_>, graphs: Graphs<'_>, targets: &BTreeSet<DocHash>) -> Result<Rows> {
    let place = graphs.place;
    let keys: Vec<Value<'_>> = targets.iter().map(Into::into).collect();
    let found = tx.query_in(
        "SELECT dochash, linktype, distance, parenthash, parentpart, parentlink FROM distances
         WHERE part = $1 AND jobid = $2 AND dochash IN ($keys)
         ORDER BY dochash, linktype /*for update*/",
        &[place.part.into(), place.job.into()],
        &keys,
        |row| {
            let parent: (Option<DocHash>, Option<Part>, Option<String>) =
                (row.get(3)?, row.get(4)?, row.get(5)?);
            let parent = match parent {
                (Some(source), Some(part), Some(link)) => Some((source, part, link)),
                _ => None,
            };
            let distance = row.get(2)?;
            let row_now = DistanceRow {
                before: distance,
                distance,
                parent,
                is_changed: false,
                is_news: false,
                is_shaken: false,
            };
            Ok((row.get::<DocHash>(0)?, row.get::<String>(1)?, row_now))
        },
    )?;
    let kind_of = |kind: &String| graphs.kinds.iter().position(|it| it == kind);
    Ok(found
        .into_iter()
        .filter_map(|(dochash, kind, row)| Some(((dochash, kind_of(&kind)?), row)))
        .collect())
}

/// Makes rows for documents that nobody knew a way to, in the order in which all lock.
fn make(tx: &mut Tx<'_>, graphs: Graphs<'_>, keys: &BTreeSet<(DocHash, usize)>) -> Result<()> {
    let place = graphs.place;
    let rows: Vec<Vec<Value<'_>>> = keys
        .iter()
        .map(|(dochash, kind)| {
            let kind = (&graphs.kinds[*kind]).into();
            vec![
                place.part.into(),
                place.job.into(),
                dochash.into(),
                kind,
                FAR.into(),
                0.into(),
                0.into(),
            ]
        })
        .collect();
    tx.insert_rows(
        "INSERT INTO distances (part, jobid, dochash, linktype, distance, news, grown)",
        &rows,
        "ON CONFLICT (part, jobid, dochash, linktype) DO NOTHING",
    )?;
    Ok(())
}

fn write(
    tx: &mut Tx<'_>,
    graphs: Graphs<'_>,
    changed: &[(&(DocHash, usize), &DistanceRow)],
) -> Result<()> {
    let place = graphs.place;
    let rows: Vec<Vec<Value<'_>>> = changed
        .iter()
        .map(|((dochash, kind), row)| {
            let parent = row.parent.as_ref();
            vec![
                place.part.into(),
                place.job.into(),
                dochash.into(),
                (&graphs.kinds[*kind]).into(),
                row.distance.into(),
                parent.map(|it| &it.0).into(),
                parent.map(|it| it.1).into(),
                parent.map(|it| it.2.as_str()).into(),
                row.is_news.into(),
                0.into(),
            ]
        })
        .collect();
    tx.insert_rows(
        "INSERT INTO distances (part, jobid, dochash, linktype, distance, parenthash, parentpart,
                                parentlink, news, grown)",
        &rows,
        "ON CONFLICT (part, jobid, dochash, linktype) DO UPDATE SET
             distance = excluded.distance, parenthash = excluded.parenthash,
             parentpart = excluded.parentpart, parentlink = excluded.parentlink,
             news = CASE WHEN excluded.news = 1 THEN 1 ELSE distances.news END",
    )?;
    Ok(())
}

/// Keeps links with what their sources say, and drops those that are gone.
fn write_links(tx: &mut Tx<'_>, graphs: Graphs<'_>, sent: &[DistanceMessage]) -> Result<()> {
    let place = graphs.place;
    let mut kept: Vec<(&DistanceMessage, Option<i64>)> = sent
        .iter()
        .filter_map(|it| match it.says {
            Says::At(distance) => Some((it, Some(distance))),
            Says::Lost => Some((it, None)),
            Says::Gone => None,
        })
        .collect();
    kept.sort_by_key(|(it, _)| (it.target, it.kind, it.source.1));
    let rows: Vec<Vec<Value<'_>>> = kept
        .into_iter()
        .map(|(it, offer)| {
            vec![
                place.part.into(),
                place.job.into(),
                (&it.target).into(),
                (&graphs.kinds[it.kind]).into(),
                (&it.source.1).into(),
                (&*it.link).into(),
                it.source.0.into(),
                offer.into(),
            ]
        })
        .collect();
    tx.insert_rows(
        "INSERT INTO edges (part, jobid, targethash, counts, sourcehash, linktype, sourcepart, offer)",
        &rows,
        "ON CONFLICT (part, jobid, targethash, counts, sourcehash, linktype)
         DO UPDATE SET offer = excluded.offer",
    )?;
    for it in sent.iter().filter(|it| it.says == Says::Gone) {
        tx.execute(
            "DELETE FROM edges WHERE part = $1 AND jobid = $2 AND targethash = $3 AND counts = $4
               AND sourcehash = $5 AND linktype = $6",
            &[
                place.part.into(),
                place.job.into(),
                (&it.target).into(),
                (&graphs.kinds[it.kind]).into(),
                (&it.source.1).into(),
                (&*it.link).into(),
            ],
        )?;
    }
    Ok(())
}
