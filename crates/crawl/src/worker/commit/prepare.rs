//! The files of a chunk: bodies and facts, encoded and written before its commit.
//!
//! Relies on rows that announce the objects before they are written. Invariant:
//! facts that say where a body is are encoded after the body has its place.

use crate::batch::{Batch, Had, KeptBody};
use crate::definitions::RobotsFor;
use crate::job::JobWork;
use crate::worker::commit::turn::OpenChunk;
use bytes::Bytes;
use store::chunkfile::bodies::BodiesWriter;
use store::chunkfile::document::Body;
use store::chunkfile::facts;
use store::chunkfile::warc::{self, Capture, Record, RecordId};
use store::collect::WrittenObject;
use store::ids::{ObjectId, Part};
use store::objects::{ChunkKey, ObjectPath, Objects};
use store::tables::chunks::ChunkSummary;
use store::tables::objects::ObjectKind;
use store::{Error, Result};

/// Facts up to this size stay in the chunk's row until they are packed; larger ones
/// are an object at once, which costs less than writing them through the database.
const INLINE_BYTES_MAX: usize = 64 << 10;

/// What is to be written, and what the chunk's row will say.
pub struct PreparedCommit {
    /// The facts, if they are an object.
    pub facts: Option<File>,
    /// The bodies, if there are any.
    pub bodies: Option<File>,
    /// What the row of the chunk says.
    pub summary: ChunkSummary,
}

/// An object to be.
pub struct File {
    /// What its row will say.
    pub written: WrittenObject,
    path: ObjectPath,
    bytes: Bytes,
}

impl File {
    fn new(part: Part, object: ObjectId, path: ObjectPath, bytes: Vec<u8>) -> File {
        File { written: WrittenObject::of(part, object, &bytes), path, bytes: bytes.into() }
    }
}

impl PreparedCommit {
    /// The rows that announce the objects: which, of what kind, and where.
    pub fn rows(&self) -> Vec<((Part, ObjectId), ObjectKind, String)> {
        let row = |file: &File, kind| (file.written.key, kind, file.path.as_str().to_owned());
        let facts = self.facts.iter().map(|file| row(file, ObjectKind::Facts));
        facts.chain(self.bodies.iter().map(|file| row(file, ObjectKind::Bodies))).collect()
    }

    /// Writes the objects. Doing it again is harmless.
    pub fn put(&self, objects: &Objects) -> Result<()> {
        for file in self.facts.iter().chain(&self.bodies) {
            objects.put(&file.path, file.bytes.clone())?;
        }
        Ok(())
    }
}

/// Encodes the files of a chunk.
pub fn files(
    key: ChunkKey,
    chunk: OpenChunk,
    job: &JobWork,
    batch: &mut Batch,
) -> Result<PreparedCommit> {
    let part = Part(i64::from(key.part));
    let bodies = match chunk.bodies.filter(|_| !batch.bodies.is_empty()) {
        Some(object) => {
            let bytes = bodies(key, job, batch)?;
            Some(File::new(part, object, ObjectPath::bodies(key), bytes))
        }
        None => None,
    };
    let (mut inline, mut facts) = (None, None);
    if !batch.records.is_empty() {
        let bytes = facts::encode(key, &batch.records)?;
        if bytes.len() <= INLINE_BYTES_MAX {
            inline = Some(bytes);
        } else {
            facts = Some(File::new(part, chunk.facts, ObjectPath::facts(key), bytes));
        }
    }
    let counts = batch.counts;
    let summary = ChunkSummary {
        documents: i64::try_from(batch.settled.len()).unwrap_or(i64::MAX),
        adds: counts.adds,
        updates: counts.updates,
        removes: counts.removes,
        keeps: counts.keeps,
        errors: counts.errors,
        bytes: counts.bytes,
        facts: inline,
        facts_object: facts.as_ref().map(|file| file.written.key.1),
        bodies_object: bodies.as_ref().map(|file| file.written.key.1),
    };
    Ok(PreparedCommit { facts, bodies, summary })
}

/// The bodies file; each record learns where its body is. One that is too large for
/// the file is left out, and its record says that there is none.
fn bodies(key: ChunkKey, job: &JobWork, batch: &mut Batch) -> Result<Vec<u8>> {
    let id = |ordinal| RecordId::of(job.shared.installation, key, ordinal);
    let date_ms = batch.bodies.first().map_or(0, |body| body.date_ms);
    let web = job.web();
    let agent = web.map_or("", |web| web.user_agent.to_str().unwrap_or_default());
    let robots =
        if web.is_some_and(|web| web.spec.robots == RobotsFor::None) { "ignore" } else { "obey" };
    let software = concat!("driftline/", env!("CARGO_PKG_VERSION"));
    let fields = [
        ("software", software),
        ("format", "WARC File Format 1.1"),
        ("http-header-user-agent", agent),
        ("robots", robots),
        ("isPartOf", &job.name),
    ];
    let mut writer = BodiesWriter::new(key, &warc::warcinfo(&id(0), date_ms, &fields))?;
    for kept in std::mem::take(&mut batch.bodies) {
        let record = record(&id(writer.records()), &kept);
        match writer.push(&record) {
            Ok(place) => {
                let (offset, len) = (place.offset, place.len);
                batch.records[kept.record].body = Body::Here { offset, len };
            }
            Err(Error::TooLarge { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(writer.finish())
}

fn record(id: &RecordId, kept: &KeptBody) -> Record {
    let (target_uri, date_ms, body) = (kept.url.as_str(), kept.date_ms, &kept.body[..]);
    match &kept.had {
        Had::Whole(media_type) => warc::resource(id, target_uri, date_ms, media_type, body),
        Had::Answer { ip, status, headers } => {
            let headers: Vec<(&str, &[u8])> =
                headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
            let (ip, status, truncated) = (Some(*ip), *status, kept.truncated);
            let headers = &headers[..];
            let capture = Capture { target_uri, date_ms, ip, status, headers, body, truncated };
            warc::response(id, &capture)
        }
    }
}
