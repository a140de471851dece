//! What the roles that consume chunks are doing with them: shown to operators, relied on by
//! nobody.

use crate::ids::ChunkId;
use crate::names::names;
use crate::tables::leases::Lease;
use crate::{Result, Tx};

/// What a role does with a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Its documents are being fetched.
    Crawling,
    /// It has been committed.
    Crawled,
    /// It goes into a new version of an index.
    Building,
    /// That version is published.
    Built,
    /// Whoever asks is answered from it.
    Propagated,
    /// It was given up, or could not be read.
    Error,
}

names!(Task of "a row of chunk_tasks" {
    Crawling = "crawling",
    Crawled = "crawled",
    Building = "building",
    Built = "built",
    Propagated = "propagated",
    Error = "error",
});

/// Records what a role is doing with a chunk, for whoever follows it; an error has a text.
pub fn mark_task(
    tx: &mut Tx<'_>,
    lease: &Lease,
    chunk: ChunkId,
    task: Task,
    error: Option<&str>,
    now_ms: i64,
) -> Result<()> {
    tx.execute(
        "INSERT INTO chunk_tasks (part, chunk, role, node, task, errortext, changed_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (part, chunk, role) DO UPDATE SET
             node = excluded.node, task = excluded.task, errortext = excluded.errortext,
             changed_ms = excluded.changed_ms",
        &[
            lease.part.into(),
            chunk.into(),
            (&lease.role).into(),
            lease.node.into(),
            task.into(),
            error.into(),
            now_ms.into(),
        ],
    )?;
    Ok(())
}

/// Everything of a part that a role is said to be doing is said to be another thing.
pub fn move_tasks(tx: &mut Tx<'_>, lease: &Lease, from: Task, to: Task, now_ms: i64) -> Result<()> {
    tx.execute(
        "UPDATE chunk_tasks SET task = $4, node = $5, changed_ms = $6
         WHERE part = $1 AND role = $2 AND task = $3",
        &[
            lease.part.into(),
            (&lease.role).into(),
            from.into(),
            to.into(),
            lease.node.into(),
            now_ms.into(),
        ],
    )?;
    Ok(())
}
