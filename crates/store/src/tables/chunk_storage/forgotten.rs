//! Forgetting the rows of committed chunks that nothing needs any more.
//!
//! A run over pages that did not change leaves a row for every hundred of them, and nothing ever
//! points to it. Invariant: a row goes only when its facts and bodies are gone, every consumer has
//! passed it, no document names it, and its run is not the last of its job, whose totals are the
//! sum of such rows. So what is missing below the slowest consumer's place was not needed.

use super::{ScannedChunk, SettledChunks, StorageProgress, step_over};
use crate::ids::{CommitNumber, Part};
use crate::{Result, Tx};

/// Forgets chunks that nothing needs, among up to `limit` numbered after `after` and not after
/// `settled`, with what roles said of them. The caller holds the part's crawl lease and has
/// fenced.
pub fn forget(
    tx: &mut Tx<'_>,
    part: Part,
    after: CommitNumber,
    settled: SettledChunks,
    limit: u32,
    _now_ms: i64,
) -> Result<StorageProgress> {
    let looked_at = tx.query(
        "SELECT id, seq,
                CAST(CASE WHEN facts IS NOT NULL OR facts_object IS NOT NULL
                            OR bodies_object IS NOT NULL
                            OR EXISTS (SELECT 1 FROM job_states s
                                       WHERE s.jobid = chunks.jobid AND s.run <= chunks.run)
                            OR EXISTS (SELECT 1 FROM documents d
                                       WHERE d.part = $1 AND d.chunk = chunks.id)
                            OR EXISTS (SELECT 1 FROM documents d
                                       WHERE d.part = $1 AND d.bodychunk = chunks.id)
                            OR EXISTS (SELECT 1 FROM chunks o
                                       WHERE o.part = $1 AND o.state = 'crawling'
                                         AND o.claim = chunks.id)
                     THEN 1 ELSE 0 END AS BIGINT)
         FROM chunks
         WHERE part = $1 AND state = 'crawled' AND seq > $2 AND seq <= $3
         ORDER BY seq LIMIT $4",
        &[part.into(), after.into(), settled.seq.into(), limit.into()],
        |row| {
            let (id, seq, needed) = (row.get(0)?, row.get(1)?, row.get::<i64>(2)? == 1);
            Ok(ScannedChunk { id, seq, object: None, row_bytes: None, needed })
        },
    )?;
    let mut step = step_over(&looked_at, limit);
    let doomed: Vec<_> = looked_at.iter().filter(|it| !it.needed).map(|it| it.id.into()).collect();
    for text in [
        "DELETE FROM chunk_tasks WHERE part = $1 AND chunk IN ($keys) RETURNING part",
        "DELETE FROM chunks WHERE part = $1 AND state = 'crawled' AND id IN ($keys)
         RETURNING part",
    ] {
        tx.query_in(text, &[part.into()], &doomed, |_| Ok(()))?;
    }
    step.chunks = doomed.len() as u64;
    Ok(step)
}
