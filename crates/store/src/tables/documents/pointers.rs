//! Where the content of documents is, for whoever follows chunks or walks all that is there.
//!
//! Reads a few columns of each row. Invariant: nothing here decides; a row that is damaged is
//! found by whoever loads the document.

use crate::chunkfile::document::DocumentRole;
use crate::ids::{ChunkId, CommitNumber, ConnectionId, DocumentId, JobId, Part};
use crate::{Result, Tx, Value};
use page::ids::DocHash;

/// Where the content of a document is, of a connection that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Pointer {
    pub connection: ConnectionId,
    pub dochash: DocHash,
    pub chunk: Option<ChunkId>,
    pub is_removed: bool,
    pub role: DocumentRole,
}

/// What rows there are of documents, of every connection that has them.
pub fn pointers(tx: &mut Tx<'_>, part: Part, hashes: &[DocHash]) -> Result<Vec<Pointer>> {
    let keys: Vec<_> = hashes.iter().map(Value::from).collect();
    tx.query_in(
        "SELECT connectionid, dochash, chunk, removed_ms, requisite FROM documents WHERE part = $1
           AND dochash IN ($keys)",
        &[part.into()],
        &keys,
        |row| {
            let removed_ms: Option<i64> = row.get(3)?;
            Ok(Pointer {
                connection: row.get(0)?,
                dochash: row.get(1)?,
                chunk: row.get(2)?,
                is_removed: removed_ms.is_some(),
                role: DocumentRole::of_requisite(row.get(4)?),
            })
        },
    )
}

/// Documents whose content is in a chunk: of which connection, and their keys, after one.
pub fn of_chunk(
    tx: &mut Tx<'_>,
    part: Part,
    chunk: ChunkId,
    after: DocumentId,
    limit: u32,
) -> Result<Vec<(DocumentId, ConnectionId, DocHash)>> {
    // The plus keeps SQLite from walking all documents of the part in the order of their ids.
    tx.query(
        "SELECT id, connectionid, dochash FROM documents
         WHERE part = $1 AND chunk = $2 AND chunk IS NOT NULL AND +id > $3
         ORDER BY +id LIMIT $4",
        &[part.into(), chunk.into(), after.into(), limit.into()],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )
}

/// A document that is there, and where its content is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Live {
    pub id: DocumentId,
    pub connection: ConnectionId,
    pub dochash: DocHash,
    pub docid: String,
    pub chunk: ChunkId,
    /// The job that committed the chunk, and the number of that commit.
    pub job: Option<JobId>,
    pub seq: Option<CommitNumber>,
    pub role: DocumentRole,
}

/// Documents of a part that are there and have content, after one.
pub fn live_after(tx: &mut Tx<'_>, part: Part, after: DocumentId, limit: u32) -> Result<Vec<Live>> {
    tx.query(
        "SELECT d.id, d.connectionid, d.dochash, d.docid, d.chunk, k.jobid, k.seq, d.requisite
         FROM documents d LEFT JOIN chunks k ON k.part = d.part AND k.id = d.chunk
         WHERE d.part = $1 AND d.id > $2 AND d.removed_ms IS NULL AND d.chunk IS NOT NULL
         ORDER BY d.id LIMIT $3",
        &[part.into(), after.into(), limit.into()],
        |row| {
            Ok(Live {
                id: row.get(0)?,
                connection: row.get(1)?,
                dochash: row.get(2)?,
                docid: row.get(3)?,
                chunk: row.get(4)?,
                job: row.get(5)?,
                seq: row.get(6)?,
                role: DocumentRole::of_requisite(row.get(7)?),
            })
        },
    )
}
