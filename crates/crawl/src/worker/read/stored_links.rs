//! The links of documents that were not read this time: the server said that nothing
//! changed, or nothing could be had. They lead where they led before.
//!
//! Relies on the facts of committed chunks. Documents of a chunk were crawled together
//! and are mostly looked at together, so a few chunks are kept in memory. Invariant: a
//! document that was not read names the same documents as when it was.

use crate::batch::known_links::KnownLinks;
use crate::batch::{Batch, LinkContext};
use crate::job::{JobWork, LinkOrigin};
use crate::targets::targets_of;
use page::facts::Facts;
use page::ids::DocHash;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use store::ids::{ChunkId, IdMaker, Part};
use store::objects::Objects;
use store::{Db, Result, pack};

/// Chunks whose links are kept in memory.
const CHUNKS_MAX: usize = 16;

/// What links a document has and what it needs, by its place in its chunk and its key, which does not match
/// where a damaged row points to; nothing else is kept.
type ChunkLinks = HashMap<(i64, DocHash), Facts>;

/// Finds links of documents that were not read.
pub struct StoredLinks {
    ids: Arc<IdMaker>,
    known: KnownLinks,
    chunks: Mutex<RecentChunks>,
}

/// The chunks that were asked for lately.
type RecentChunks = VecDeque<((Part, ChunkId), Arc<ChunkLinks>)>;

impl StoredLinks {
    pub fn new(ids: Arc<IdMaker>, known: KnownLinks) -> StoredLinks {
        StoredLinks { ids, known, chunks: Mutex::default() }
    }

    /// Takes the links of a batch's unread documents in.
    pub fn name_again(
        &self,
        db: &Db,
        objects: &Objects,
        part: Part,
        job: &JobWork,
        batch: &mut Batch,
    ) -> Result<()> {
        let unread = std::mem::take(&mut batch.links.unread);
        for it in &unread {
            let chunk = match self.chunk(db, objects, part, it.facts.0) {
                Ok(chunk) => chunk,
                Err(error) => {
                    // Whoever prepares again needs them all; those named twice are one.
                    batch.links.unread = unread;
                    return Err(error);
                }
            };
            let Some(facts) = chunk.get(&(it.facts.1, it.dochash)) else { continue };
            let Some(web) = job.web() else { continue };
            let targets = targets_of(web, &it.docid, it.standing, facts, &[]);
            let (hops, parent) = (it.standing.hops + 1, Some((part, it.dochash)));
            let at = LinkContext { job, ids: &self.ids, known: &self.known };
            batch.clear_leads(job, it.dochash);
            for target in targets {
                let found = LinkOrigin { hops, parent, ..LinkOrigin::of(&target) };
                batch.link(at, target.url, target.dochash, found);
            }
        }
        Ok(())
    }

    fn chunk(
        &self,
        db: &Db,
        objects: &Objects,
        part: Part,
        chunk: ChunkId,
    ) -> Result<Arc<ChunkLinks>> {
        let held = || self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, links)) = held().iter().find(|it| it.0 == (part, chunk)) {
            return Ok(links.clone());
        }
        let links = Arc::new(read(db, objects, part, chunk)?);
        let mut chunks = held();
        if chunks.len() >= CHUNKS_MAX {
            chunks.pop_front();
        }
        chunks.push_back(((part, chunk), links.clone()));
        Ok(links)
    }
}

fn read(db: &Db, objects: &Objects, part: Part, chunk: ChunkId) -> Result<ChunkLinks> {
    let mut links = ChunkLinks::new();
    let records = pack::records(db, objects, part, chunk)?;
    for (ordinal, record) in (0..).zip(records.into_iter().flatten()) {
        let record = record?;
        if let Some(facts) = record.facts {
            let facts = Facts {
                links: facts.links,
                directives: facts.directives,
                requisites: facts.requisites,
                ..Facts::default()
            };
            links.insert((ordinal, record.dochash), facts);
        }
    }
    Ok(links)
}
