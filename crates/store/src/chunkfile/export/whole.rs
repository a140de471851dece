//! Export of everything that is stored: the bodies of all parts as one archive.
//!
//! Relies on the rows to say what is stored, and reads beside a running crawl: a
//! place is read soon after it was looked up, long before its grace is over.
//! Invariant: every object that goes into the archive is byte for byte what was
//! written. At most one object is in memory.

use std::io::Write;

use super::WarcGzWriter;
use crate::chunkfile::{bodies, warc::Record};
use crate::ids::{CommitNumber, Part};
use crate::objects::{ObjectPath, Objects};
use crate::tables::chunk_storage::{self, StoredBodies};
use crate::tables::settings;
use crate::{Db, Error, Result};

/// Chunks looked up at a time: few enough to be read within the grace.
const PAGE: u32 = 100;

/// What an archive holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ExportSummary {
    pub chunks: u64,
    /// Records, every `warcinfo` included.
    pub records: u64,
}

/// Writes `info`, which must be a `warcinfo` record, and all stored bodies as
/// `.warc.gz`: part by part, in the order of their commits, each chunk behind the
/// `warcinfo` it was stored with.
pub fn export_stored(
    db: &Db,
    objects: &Objects,
    info: &Record,
    out: impl Write,
) -> Result<ExportSummary> {
    assert_eq!(info.kind(), "warcinfo", "an archive begins with its warcinfo");
    let mut writer = WarcGzWriter::new(out);
    writer.push(info)?;
    let mut chunks = 0;
    for part in (0..i64::from(db.read(settings::parts)?)).map(Part) {
        let mut after = CommitNumber::NONE;
        loop {
            let page = db.read(move |tx| chunk_storage::stored_bodies(tx, part, after, PAGE))?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            for stored in &page {
                push_chunk(&mut writer, objects, stored)?;
                chunks += 1;
            }
        }
    }
    Ok(ExportSummary { chunks, records: writer.finish()? })
}

fn push_chunk(
    writer: &mut WarcGzWriter<impl Write>,
    objects: &Objects,
    stored: &StoredBodies,
) -> Result<()> {
    let bytes = objects.get(&ObjectPath::parse(&stored.path)?)?;
    if stored.hash != blake3::hash(&bytes).as_bytes() {
        return Err(Error::corrupt(
            format!("object {}", stored.path),
            "its bytes are not those that were written; restore from a backup",
        ));
    }
    for record in bodies::records(&stored.path, &bytes) {
        writer.push(&record?)?;
    }
    Ok(())
}
