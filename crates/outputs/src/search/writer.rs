//! The index that a shard's writer has beside it: documents go in, a commit makes them
//! durable together with how far the writer is.
//!
//! Relies on tantivy for segments, deletes and merges. Invariants: the directory is this
//! writer's alone, and can be lost at any time: what is published is what counts; what a
//! commit says of cursors is true of the documents that are in.

use super::schema::{Fields, Key, VERSION, analysers};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use store::ids::Part;
use store::{Error, Result};
use tantivy::directory::MmapDirectory;
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy};
use tantivy::{Index, IndexSettings, IndexWriter, TantivyDocument, TantivyError};

/// What the index says of its files.
pub const META: &str = "meta.json";
/// Which files tantivy may collect.
const MANAGED: &str = ".managed.json";
/// Memory of a writer, before a segment is written.
const WRITER_BYTES: usize = 64 * 1024 * 1024;
/// Documents of a segment that is merged with no other: its files stay of a size that a
/// store takes in one piece.
const MERGED_DOCUMENTS_MAX: usize = 200_000;
/// Segments of about the same size that are merged into one.
const MERGED_SEGMENTS_MIN: usize = 8;
/// Segments with fewer documents than this count as of the same size.
const SMALL_DOCUMENTS: u32 = 10_000;
/// The share of deleted documents from which a segment is written anew.
const DELETED_SHARE: f32 = 0.2;

/// How a shard is built; one that was built otherwise is built anew.
pub fn make(spans_parts: bool) -> String {
    format!("{VERSION}-{}", if spans_parts { "all" } else { "part" })
}

/// How far a writer is: the last commit of each part that is in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursors {
    parts: BTreeMap<String, i64>,
}

impl Cursors {
    /// The last commit of a part that is in.
    pub fn of(&self, part: Part) -> i64 {
        self.parts.get(&part.0.to_string()).copied().unwrap_or(0)
    }

    /// A part is further.
    pub fn set(&mut self, part: Part, seq: i64) {
        self.parts.insert(part.0.to_string(), seq);
    }
}

/// What a commit left.
#[derive(Debug, Clone)]
pub struct Committed {
    /// What the index says of its files.
    pub meta: String,
    /// The names of the files.
    pub names: Vec<String>,
    /// Documents that are in.
    pub documents: i64,
}

/// A shard's writer.
pub struct Writer {
    home: PathBuf,
    index: Index,
    writer: IndexWriter,
    /// The fields.
    pub fields: Fields,
    /// How far it is.
    pub cursors: Cursors,
}

impl Writer {
    /// Opens the index in a directory, or makes one.
    pub fn open(home: &Path) -> Result<Writer> {
        let fields = Fields::default();
        let directory = MmapDirectory::open(home).map_err(|error| failed(home, error.into()))?;
        let made = Index::builder()
            .schema(fields.schema.clone())
            .settings(IndexSettings::default())
            .tokenizers(analysers())
            .open_or_create(directory);
        let mut index = made.map_err(|error| failed(home, error))?;
        index.set_tokenizers(analysers());
        let options = IndexWriterOptions::builder()
            .memory_budget_per_thread(WRITER_BYTES)
            .num_worker_threads(1)
            .num_merge_threads(1)
            .build();
        let writer: IndexWriter =
            index.writer_with_options(options).map_err(|error| failed(home, error))?;
        writer.set_merge_policy(Box::new(merges()));
        let meta = index.load_metas().map_err(|error| failed(home, error))?;
        let cursors = match &meta.payload {
            None => Cursors::default(),
            Some(text) => serde_json::from_str(text)
                .map_err(|error| Error::corrupt(home.display().to_string(), error.to_string()))?,
        };
        Ok(Writer { home: home.to_owned(), index, writer, fields, cursors })
    }

    /// A document takes the place of what was there under its key.
    pub fn put(&mut self, key: Key, document: TantivyDocument) -> Result<()> {
        self.writer.delete_term(key.term(&self.fields));
        self.writer.add_document(document).map_err(|error| failed(&self.home, error))?;
        Ok(())
    }

    /// A document is gone.
    pub fn delete(&mut self, key: Key) {
        self.writer.delete_term(key.term(&self.fields));
    }

    /// Makes everything durable, with how far the writer is.
    pub fn commit(&mut self) -> Result<()> {
        let told = serde_json::to_string(&self.cursors).unwrap_or_default();
        let home = &self.home;
        let mut commit = self.writer.prepare_commit().map_err(|error| failed(home, error))?;
        commit.set_payload(&told);
        commit.commit().map_err(|error| failed(home, error))?;
        Ok(())
    }

    /// What there is to publish. A merge that ends later may take files away; then this is
    /// to be asked again.
    pub fn committed(&self) -> Result<Committed> {
        let path = self.home.join(META);
        let read = || fs::read_to_string(&path).map_err(|error| Error::io(&path, error));
        let mut meta = read()?;
        loop {
            let known = self.index.load_metas().map_err(|error| failed(&self.home, error))?;
            let mut names = Vec::new();
            for file in known.list_segment_files() {
                // Some kinds of files are not there if a segment has nothing for them.
                if self.home.join(&file).is_file() {
                    names.push(file.display().to_string());
                }
            }
            let documents = known.segments.iter().map(|it| i64::from(it.num_docs())).sum();
            let now = read()?;
            if now == meta {
                return Ok(Committed { meta, names, documents });
            }
            // A merge has ended meanwhile: what was read is of two states. Merges are few.
            meta = now;
        }
    }

    /// Where its files are.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The index, for readers beside the writer.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Waits until no merge is under way any more, and ends.
    pub fn settle(self) -> Result<()> {
        self.writer.wait_merging_threads().map_err(|error| failed(&self.home, error))
    }
}

fn merges() -> LogMergePolicy {
    let mut policy = LogMergePolicy::default();
    policy.set_min_num_segments(MERGED_SEGMENTS_MIN);
    policy.set_min_layer_size(SMALL_DOCUMENTS);
    policy.set_max_docs_before_merge(MERGED_DOCUMENTS_MAX);
    policy.set_del_docs_ratio_before_merge(DELETED_SHARE);
    policy
}

/// Makes an empty directory for a writer, or one with files of a published version, which
/// are named as tantivy must find them.
pub fn clear(home: &Path) -> Result<()> {
    match fs::remove_dir_all(home) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::io(home, error));
        }
        _ => {}
    }
    fs::create_dir_all(home).map_err(|error| Error::io(home, error))
}

/// Says what files are there, after they have been put there.
pub fn describe(home: &Path, meta: &str, names: &[String]) -> Result<()> {
    let mut managed: Vec<&str> = names.iter().map(String::as_str).collect();
    managed.push(META);
    let managed = serde_json::to_string(&managed).unwrap_or_default();
    for (name, text) in [(MANAGED, managed.as_str()), (META, meta)] {
        let path = home.join(name);
        fs::write(&path, text).map_err(|error| Error::io(&path, error))?;
    }
    Ok(())
}

/// What tantivy says, in our words.
pub fn failed(home: &Path, error: TantivyError) -> Error {
    let io = |error: &std::io::Error| {
        let copy = match error.raw_os_error() {
            Some(code) => std::io::Error::from_raw_os_error(code),
            None => std::io::Error::new(error.kind(), error.to_string()),
        };
        Error::io(home, copy)
    };
    match &error {
        TantivyError::IoError(error) => io(error),
        other if is_full(&other.to_string()) => Error::Full { what: home.display().to_string() },
        other => Error::corrupt(home.display().to_string(), other.to_string()),
    }
}

/// Errors of tantivy's threads arrive as texts.
fn is_full(text: &str) -> bool {
    text.contains("No space left") || text.contains("os error 28")
}
