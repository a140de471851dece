//! The documents of a data directory, as their chunks have them.

use anyhow::Result;
use page::facts::Facts;
use std::collections::HashSet;
use store::chunkfile::document::DocumentRecord;
use store::ids::{ChunkId, ConnectionId, DocumentId, Part};
use store::objects::Objects;
use store::tables::{chunks, documents, settings};
use store::{Db, pack};

/// A document.
pub struct Text {
    pub connection: ConnectionId,
    pub place: (Part, ChunkId),
    pub record: DocumentRecord,
}

impl Text {
    pub fn facts(&self) -> &Facts {
        self.record.facts.as_ref().expect("only those are taken")
    }
}

/// All of them.
pub struct Corpus {
    pub texts: Vec<Text>,
}

impl Corpus {
    pub fn bytes(&self) -> usize {
        self.texts.iter().map(|it| it.facts().text.len()).sum()
    }
}

pub fn read(db: &Db, objects: &Objects) -> Result<Corpus> {
    let mut texts = Vec::new();
    for part in (0..i64::from(db.read(settings::parts)?)).map(Part) {
        let mut wanted = HashSet::new();
        let mut in_chunks = Vec::new();
        let mut after = DocumentId(i64::MIN);
        loop {
            let rows = db.read(move |tx| documents::live_after(tx, part, after, 1_000))?;
            let Some(last) = rows.last() else { break };
            after = last.id;
            for row in rows {
                in_chunks.push((row.chunk, row.connection));
                wanted.insert((row.chunk, row.dochash));
            }
        }
        in_chunks.sort_unstable_by_key(|it| it.0.0);
        in_chunks.dedup();
        for (chunk, connection) in in_chunks {
            let Some(facts) = db.read(move |tx| chunks::facts_of(tx, part, chunk))? else { continue };
            let Some(bytes) = pack::read_facts(db, objects, part, facts)? else { continue };
            for record in pack::stream(part, chunk, bytes)? {
                let record = record?;
                if record.facts.is_some() && wanted.contains(&(chunk, record.dochash)) {
                    texts.push(Text { connection, place: (part, chunk), record });
                }
            }
        }
    }
    Ok(Corpus { texts })
}
