//! The index that a shard's writer has beside it: documents go in, a commit makes them
//! durable together with how far the writer is.
//!
//! Relies on tantivy for segments, deletes and merges. Invariants: the directory is this
//! writer's alone, and can be lost at any time: what is published is what counts; what a
//! commit says of cursors is true of the documents that are in; no writer finds in its
//! directory what another one does.

use super::schema::{DocumentKey, Fields, VERSION, analysers};
use super::words;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use store::ids::{CommitNumber, Part};
use store::{Error, Result, disk, memory};
use tantivy::directory::MmapDirectory;
use tantivy::directory::error::{LockError, OpenDirectoryError, OpenReadError, OpenWriteError};
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy, MergePolicy};
use tantivy::schema::Value as _;
use tantivy::{
    Index, IndexSettings, IndexWriter, ReloadPolicy, Searcher, TantivyDocument, TantivyError,
};

/// What the index says of its files.
pub const META: &str = "meta.json";
/// Which files tantivy may collect.
const MANAGED: &str = ".managed.json";
/// Documents of a segment that is merged with no other: its files stay of a size that a
/// store takes in one piece.
const MERGED_DOCUMENTS_MAX: usize = 200_000;
/// Segments of about the same size that are merged into one.
const MERGED_SEGMENTS_MIN: usize = 8;
/// Segments with fewer documents than this count as of the same size: a batch has no more, so
/// what was merged once is not merged again with the next batches.
const SMALL_DOCUMENTS: u32 = 1_000;
/// The share of deleted documents from which a segment is written anew.
const DELETED_SHARE: f32 = 0.2;

/// How a shard is built; one that was built otherwise is built anew.
pub fn make(spans_parts: bool) -> String {
    format!("{VERSION}-{}", if spans_parts { "all" } else { "part" })
}

/// How far a writer is: the last commit of each part that is in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursors {
    parts: BTreeMap<String, CommitNumber>,
}

impl Cursors {
    /// The last commit of a part that is in.
    pub fn of(&self, part: Part) -> CommitNumber {
        self.parts.get(&part.0.to_string()).copied().unwrap_or(CommitNumber::NONE)
    }

    /// The last commits of all parts that are in.
    pub fn parts(&self) -> impl Iterator<Item = (Part, CommitNumber)> {
        self.parts.iter().filter_map(|(part, seq)| Some((Part(part.parse().ok()?), *seq)))
    }

    /// From what a commit says.
    pub fn of_payload(home: &Path, payload: Option<&str>) -> Result<Cursors> {
        let Some(text) = payload else { return Ok(Cursors::default()) };
        serde_json::from_str(text)
            .map_err(|error| Error::corrupt(home.display().to_string(), error.to_string()))
    }

    /// A part is further.
    pub fn set(&mut self, part: Part, seq: CommitNumber) {
        self.parts.insert(part.0.to_string(), seq);
    }

    /// A part is as far as this at least.
    pub fn raise(&mut self, part: Part, seq: CommitNumber) {
        self.set(part, self.of(part).max(seq));
    }

    /// What an index says of how far it is, in what it says of itself.
    pub fn of_index(meta: &str) -> Cursors {
        #[derive(Deserialize)]
        struct Meta {
            payload: Option<String>,
        }
        let meta: Option<Meta> = serde_json::from_str(meta).ok();
        let payload = meta.and_then(|meta| meta.payload);
        payload.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }
}

/// What a commit left.
#[derive(Debug, Clone)]
pub struct CommittedSegments {
    /// What the index says of its files.
    pub meta: String,
    /// The names of the files.
    pub names: Vec<String>,
    /// Documents that are in.
    pub documents: i64,
}

/// Writes the segments of a shard in a directory of its own.
#[allow(missing_docs)]
pub struct Writer {
    home: PathBuf,
    index: Index,
    writer: IndexWriter,
    pub fields: Fields,
    /// How far it is.
    pub cursors: Cursors,
    /// Whether something was put or deleted since the last commit.
    is_changed: bool,
    /// Whether there was a commit: only then does tantivy look for what to merge.
    has_committed: bool,
    /// The last commit, for whoever looks a key up; opened when it is first needed.
    committed: Option<Searcher>,
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
            .memory_budget_per_thread(memory::SEARCH_WRITER_BYTES)
            .num_worker_threads(1)
            .num_merge_threads(1)
            .build();
        let writer: IndexWriter =
            index.writer_with_options(options).map_err(|error| failed(home, error))?;
        writer.set_merge_policy(Box::new(merges()));
        let meta = index.load_metas().map_err(|error| failed(home, error))?;
        let cursors = Cursors::of_payload(home, meta.payload.as_deref())?;
        let (home, is_changed, has_committed) = (home.to_owned(), false, false);
        let committed = None;
        Ok(Writer { home, index, writer, fields, cursors, is_changed, has_committed, committed })
    }

    /// A document takes the place of what was there under its key.
    pub fn put(&mut self, key: DocumentKey, document: TantivyDocument) -> Result<()> {
        self.is_changed = true;
        self.writer.delete_term(key.term(&self.fields));
        self.writer.add_document(document).map_err(|error| failed(&self.home, error))?;
        Ok(())
    }

    /// Goes through the words of a document as the writer's thread will, where a panic can be
    /// caught.
    pub fn try_words(&self, document: &TantivyDocument) {
        let mut analyser = words::analyser();
        let texts = document.field_values().filter_map(|(_, value)| value.as_str());
        for text in texts {
            let mut stream = analyser.token_stream(text);
            while stream.advance() {}
        }
    }

    /// A document is gone.
    pub fn delete(&mut self, key: DocumentKey) {
        self.is_changed = true;
        self.writer.delete_term(key.term(&self.fields));
    }

    /// Whether something was put or deleted since the last commit.
    pub fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Deletes a document if it is in, or may be: what was put since the last commit is not
    /// looked for.
    pub fn delete_if_in(&mut self, key: DocumentKey) -> Result<()> {
        if self.is_changed || self.is_committed(key)? {
            self.delete(key);
        }
        Ok(())
    }

    /// Whether the last commit has a document.
    fn is_committed(&mut self, key: DocumentKey) -> Result<bool> {
        let searcher = match self.committed.take() {
            Some(searcher) => searcher,
            None => searcher(self)?,
        };
        let count = searcher.doc_freq(&key.term(&self.fields));
        self.committed = Some(searcher);
        Ok(count.map_err(|error| failed(&self.home, error))? > 0)
    }

    /// Makes everything durable, with how far the writer is.
    pub fn commit(&mut self) -> Result<()> {
        let payload = serde_json::to_string(&self.cursors).unwrap_or_default();
        let home = &self.home;
        let mut commit = self.writer.prepare_commit().map_err(|error| failed(home, error))?;
        commit.set_payload(&payload);
        commit.commit().map_err(|error| failed(home, error))?;
        (self.is_changed, self.has_committed, self.committed) = (false, true, None);
        Ok(())
    }

    /// Whether segments of the last commit are being merged.
    pub fn is_merging(&self) -> Result<bool> {
        if !self.has_committed {
            return Ok(false);
        }
        let segments = self.index.searchable_segment_metas();
        let segments = segments.map_err(|error| failed(&self.home, error))?;
        // As tantivy does: one segment that is whole has nothing to be merged with.
        let is_whole = matches!(&segments[..], [only] if only.num_deleted_docs() == 0);
        Ok(!is_whole && !merges().compute_merge_candidates(&segments).is_empty())
    }

    /// What there is to publish. A merge that ends later may take files away; then this is
    /// to be asked again.
    pub fn committed(&self) -> Result<CommittedSegments> {
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
                return Ok(CommittedSegments { meta, names, documents });
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

/// The index as it is in a writer's last commit.
pub fn searcher(writer: &Writer) -> Result<Searcher> {
    let reader = writer.index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into();
    let reader: tantivy::IndexReader = reader.map_err(|error| failed(&writer.home, error))?;
    Ok(reader.searcher())
}

fn merges() -> LogMergePolicy {
    let mut policy = LogMergePolicy::default();
    policy.set_min_num_segments(MERGED_SEGMENTS_MIN);
    policy.set_min_layer_size(SMALL_DOCUMENTS);
    policy.set_max_docs_before_merge(MERGED_DOCUMENTS_MAX);
    policy.set_del_docs_ratio_before_merge(DELETED_SHARE);
    policy
}

/// Gives a writer a directory of its own within a shard's folder, with what the last one left.
///
/// Tantivy's merges go on behind a writer that was dropped, and write by name. So the
/// directory gets a new name with every writer: whoever still has the old one fails.
/// Names are numbers that grow.
pub fn take_over(folder: &Path, name: i64) -> Result<PathBuf> {
    let home = folder.join(name.to_string());
    fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
    let mut left: Vec<(i64, PathBuf)> = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| Error::io(folder, error))? {
        let entry = entry.map_err(|error| Error::io(folder, error))?;
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
        left.push((number.unwrap_or(i64::MIN), entry.path()));
    }
    left.sort();
    let newest = left.pop_if(|(number, path)| *number != i64::MIN && path.is_dir());
    for (_, path) in left {
        removed(&path)?;
    }
    match newest {
        Some((_, path)) => fs::rename(&path, &home).map_err(|error| Error::io(path, error))?,
        None => fs::create_dir(&home).map_err(|error| Error::io(&home, error))?,
    }
    Ok(home)
}

/// What the name of a directory ends in whose index is not published: whoever takes the folder
/// over removes it.
const BESIDE: &str = "beside";

/// Makes an empty directory in a shard's folder beside the one of what is published, and removes
/// those that others left half done.
pub fn make_beside(folder: &Path, name: i64) -> Result<PathBuf> {
    fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
    for entry in fs::read_dir(folder).map_err(|error| Error::io(folder, error))? {
        let path = entry.map_err(|error| Error::io(folder, error))?.path();
        if path.extension().is_some_and(|it| it == BESIDE) {
            removed(&path)?;
        }
    }
    let home = folder.join(format!("{name}.{BESIDE}"));
    fs::create_dir(&home).map_err(|error| Error::io(&home, error))?;
    Ok(home)
}

/// Gives a directory that was made beside another one a name by which it is the newest. Nobody
/// writes there any more.
pub fn take_the_place(home: &Path) -> Result<()> {
    fs::rename(home, home.with_extension("")).map_err(|error| Error::io(home, error))
}

fn removed(path: &Path) -> Result<()> {
    let gone = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match gone {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io(path, error)),
        _ => Ok(()),
    }
}

/// Empties a directory that was just taken over.
pub fn clear(home: &Path) -> Result<()> {
    removed(home)?;
    fs::create_dir(home).map_err(|error| Error::io(home, error))
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

/// What tantivy says, in our words. What the system said is inside, or was kept by a thread that
/// ended; then the disk is asked.
pub fn failed(home: &Path, error: TantivyError) -> Error {
    let what = || home.display().to_string();
    if let Some(io) = inner_io(&error) {
        let copy = match io.raw_os_error() {
            Some(code) => std::io::Error::from_raw_os_error(code),
            None => std::io::Error::new(io.kind(), io.to_string()),
        };
        return Error::io(home, copy);
    }
    let text = error.to_string();
    if is_full(&text) {
        return Error::Full { what: what() };
    }
    if let Some(trouble) = home.is_dir().then(|| disk::trouble(home)).flatten() {
        return trouble;
    }
    match error {
        TantivyError::ErrorInThread(_) | TantivyError::Poisoned => {
            let reason = format!(
                "a thread that writes the search index has ended ({text}); it goes on from what \
                 is published"
            );
            Error::Io { path: what(), error: std::io::Error::other(reason) }
        }
        _ => Error::corrupt(what(), text),
    }
}

/// The error of the system that an error of tantivy is about.
fn inner_io(error: &TantivyError) -> Option<&std::io::Error> {
    match error {
        TantivyError::IoError(io)
        | TantivyError::LockFailure(LockError::IoError(io), _)
        | TantivyError::OpenDirectoryError(
            OpenDirectoryError::IoError { io_error: io, .. }
            | OpenDirectoryError::FailedToCreateTempDir(io),
        )
        | TantivyError::OpenReadError(OpenReadError::IoError { io_error: io, .. })
        | TantivyError::OpenWriteError(OpenWriteError::IoError { io_error: io, .. }) => Some(io),
        _ => None,
    }
}

/// Errors of tantivy's threads arrive as texts.
fn is_full(text: &str) -> bool {
    text.contains("No space left") || text.contains("os error 28")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantivy::Directory;

    #[test]
    fn a_writer_that_was_killed_by_the_disk_says_what_the_disk_said() {
        let home = tempfile::tempdir().unwrap();
        let killed = || TantivyError::ErrorInThread("An index writer was killed.".into());
        let alive = failed(home.path(), killed());
        assert!(matches!(&alive, Error::Io { .. }), "the disk is in order: {alive}");
        std::os::unix::fs::symlink("/dev/full", home.path().join(".driftline-probe")).unwrap();
        let full = failed(home.path(), killed());
        assert!(matches!(&full, Error::Full { .. }), "{full}");
        let dead = std::sync::Arc::new(std::io::Error::from_raw_os_error(5));
        let dead = OpenReadError::IoError { io_error: dead, filepath: "x".into() };
        let dead = failed(Path::new("the search index"), dead.into()).to_string();
        assert!(dead.contains("Input/output error"), "{dead}");
    }

    #[test]
    fn who_still_has_the_directory_of_an_older_writer_reaches_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let first = take_over(folder.path(), 7).unwrap();
        fs::write(first.join("segment"), "kept").unwrap();
        let old = MmapDirectory::open(&first).unwrap();
        // What older programs and crashes leave.
        fs::write(folder.path().join(META), "{}").unwrap();
        fs::create_dir(folder.path().join("5")).unwrap();
        let second = take_over(folder.path(), 8).unwrap();
        assert_eq!(fs::read_to_string(second.join("segment")).unwrap(), "kept");
        assert!(old.open_write(Path::new("merged")).is_err(), "its place is gone");
        assert!(old.atomic_write(Path::new(META), b"{}").is_err(), "its place is gone");
        let names = |path: &Path| -> Vec<String> {
            let entries = fs::read_dir(path).unwrap().map(|it| it.unwrap().file_name());
            entries.map(|name| name.to_string_lossy().into_owned()).collect()
        };
        assert_eq!(
            (names(folder.path()), names(&second)),
            (vec!["8".into()], vec!["segment".into()])
        );
        clear(&second).unwrap();
        assert_eq!(names(&second), [""; 0]);
    }
}
