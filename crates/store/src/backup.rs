//! Backup and restore of an embedded data directory.
//!
//! A backup is a directory with a copy of the rows, the key of their secrets, the objects
//! they name, the link index written out, and a manifest with the BLAKE3 hash of every
//! file. It can be made while the program runs: rows are copied as one snapshot, and the
//! objects that snapshot names are never changed and not collected until long after. The
//! link index comes first: it may be behind the rows, from which it goes on, but never
//! before them. The search index is not in it: its files come and go by the second, and it
//! is made anew from the documents.
//!
//! Invariants: a backup or a restored directory is either whole or not there, since
//! both are built beside their name and renamed last, after everything is synced.
//! Nothing is restored that does not match the manifest byte by byte.

use crate::datadir::{Layout, SECRETS_KEY, WRITTEN_LINKS, make_directory};
use crate::ids::{ObjectId, Part};
use crate::tables::{objects, shards};
use crate::{Db, Error, Result, migrate};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The list of files with their hashes; it is the last thing written.
const MANIFEST: &str = "manifest";
/// First line of a manifest.
const FORMAT: &str = "driftline backup 1";
/// Last line of a manifest, so that one that was cut short is noticed.
const END: &str = "end";
/// Objects listed at a time.
const PAGE: u32 = 1_000;
/// Bytes of a line of a manifest.
const LINE_BYTES_MAX: u64 = 4_096;
/// Bytes copied at a time.
const BUFFER: usize = 1 << 20;

/// How much a backup or a restore has copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct CopiedFiles {
    /// Files, the rows among them.
    pub files: u64,
    pub bytes: u64,
}

/// Copies a data directory, held by another process or by none, to `target`. `links` writes
/// the link index into a file and says whether there is one; whoever has it open can.
pub fn backup(
    source: &Layout,
    target: &Path,
    links: &mut dyn FnMut(&Path) -> Result<bool>,
) -> Result<CopiedFiles> {
    if !source.exists() {
        return Err(Error::Refused(format!(
            "there is no data directory at {}; name one with --data",
            source.root().display()
        )));
    }
    let root = source.root().canonicalize().map_err(|error| Error::io(source.root(), error))?;
    let above = target.ancestors().skip(1).find_map(|above| above.canonicalize().ok());
    if above.is_some_and(|above| above.starts_with(&root)) {
        return Err(Error::Refused(format!(
            "{} is inside the data directory; choose a place outside it",
            target.display()
        )));
    }
    let building = UnfinishedDirectory::start(target)?;
    let copy = Layout::new(&building.path);
    let has_links = links(&copy.written_links())?;
    snapshot_rows(&source.database(), &copy.database())?;

    let manifest_path = building.path.join(MANIFEST);
    let file = File::create(&manifest_path).map_err(|error| Error::io(&manifest_path, error))?;
    let mut manifest =
        Manifest { out: BufWriter::new(file), path: manifest_path, copied: CopiedFiles::default() };
    manifest.line(FORMAT)?;
    if has_links {
        manifest.entry(&hash_file(&copy.written_links())?, WRITTEN_LINKS)?;
    }
    copy_objects(source, &copy, &mut manifest)?;
    // After the rows: a key is there before what it seals.
    if source.secrets_key().exists() {
        let key = copy_file(&source.secrets_key(), &copy.secrets_key())?;
        manifest.entry(&key, SECRETS_KEY)?;
    }
    // Hashed last: listing the objects opens the copy, which writes to its header.
    manifest.entry(&hash_file(&copy.database())?, "driftline.sqlite")?;
    let copied = manifest.finish()?;
    building.finish()?;
    Ok(copied)
}

/// Makes a data directory at `target` from a backup.
pub fn restore(source: &Path, target: &Path) -> Result<CopiedFiles> {
    let listed = read_manifest(source)?;
    let building = UnfinishedDirectory::start(target)?;
    let mut copied = CopiedFiles::default();
    for entry in &listed {
        let from = source.join(&entry.path);
        let to = building.path.join(&entry.path);
        let found = copy_file(&from, &to)?;
        if found != entry.hashed {
            return Err(Error::Corrupt {
                what: from.display().to_string(),
                reason: "it is not the file the manifest names; restore from another backup".into(),
            });
        }
        copied.files += 1;
        copied.bytes += found.bytes;
    }
    // Opening proves that this program can read it before it gets its name.
    let db = Db::open_sqlite(&Layout::new(&building.path).database())?;
    migrate::check(&db)?;
    drop(db);
    building.finish()?;
    Ok(copied)
}

/// One consistent copy of the rows, while others read and write them.
#[allow(clippy::disallowed_methods, reason = "this connection outlives no request and has no pool")]
fn snapshot_rows(from: &Path, to: &Path) -> Result<()> {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE;
    let connection = rusqlite::Connection::open_with_flags(from, flags)?;
    let to_text = to.to_str().ok_or_else(|| {
        Error::Refused(format!("{} is not valid UTF-8; choose another name", to.display()))
    })?;
    connection.execute("VACUUM INTO ?1", [to_text])?;
    sync(to)
}

/// Copies every published object that the copied rows name.
fn copy_objects(source: &Layout, copy: &Layout, manifest: &mut Manifest) -> Result<()> {
    let db = Db::open_sqlite(&copy.database())?;
    migrate::refuse_incomplete(&db)?;
    if migrate::check(&db).is_ok() {
        db.write(shards::forget_all)?;
    }
    let (mut part, mut id) = (Part(i64::MIN), ObjectId(i64::MIN));
    loop {
        let page = db.read(move |tx| objects::published_after(tx, part, id, PAGE))?;
        let Some(last) = page.last() else { return Ok(()) };
        (part, id) = (last.part, last.id);
        for object in &page {
            let from = source.objects().join(&object.path);
            let hashed = copy_file(&from, &copy.objects().join(&object.path))?;
            if object.hash.as_deref() != Some(hashed.hash.as_slice()) {
                return Err(Error::Corrupt {
                    what: from.display().to_string(),
                    reason: "it is not what was written; run `driftline verify`".into(),
                });
            }
            manifest.entry(&hashed, &format!("objects/{}", object.path))?;
        }
    }
}

/// A directory that gets its name only when it is whole.
struct UnfinishedDirectory {
    path: PathBuf,
    target: PathBuf,
    whole: bool,
}

impl UnfinishedDirectory {
    fn start(target: &Path) -> Result<UnfinishedDirectory> {
        let taken = match std::fs::read_dir(target) {
            Ok(mut entries) => entries.next().is_some(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
            Err(error) => return Err(Error::io(target, error)),
        };
        if taken {
            return Err(Error::Refused(format!(
                "{} already exists and is not empty; name a new directory",
                target.display()
            )));
        }
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(".partial");
        let path = target.with_file_name(name);
        // Left over from an attempt that was cut off.
        match std::fs::remove_dir_all(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io(&path, error));
            }
            _ => {}
        }
        make_directory(&path.join("objects"))?;
        Ok(UnfinishedDirectory { path, target: target.to_owned(), whole: false })
    }

    fn finish(mut self) -> Result<()> {
        sync(&self.path)?;
        std::fs::rename(&self.path, &self.target)
            .map_err(|error| Error::io(&self.target, error))?;
        self.whole = true;
        match self.target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => sync(parent),
            _ => sync(Path::new(".")),
        }
    }
}

impl Drop for UnfinishedDirectory {
    fn drop(&mut self) {
        if !self.whole {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// A file's size and hash.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileHash {
    bytes: u64,
    hash: [u8; 32],
}

struct ManifestEntry {
    hashed: FileHash,
    path: String,
}

struct Manifest {
    out: BufWriter<File>,
    path: PathBuf,
    copied: CopiedFiles,
}

impl Manifest {
    fn line(&mut self, line: &str) -> Result<()> {
        writeln!(self.out, "{line}").map_err(|error| Error::io(&self.path, error))
    }

    fn entry(&mut self, hashed: &FileHash, path: &str) -> Result<()> {
        self.copied.files += 1;
        self.copied.bytes += hashed.bytes;
        let hash = blake3::Hash::from(hashed.hash).to_hex();
        self.line(&format!("{hash} {} {path}", hashed.bytes))
    }

    fn finish(mut self) -> Result<CopiedFiles> {
        self.line(END)?;
        let file =
            self.out.into_inner().map_err(|error| Error::io(&self.path, error.into_error()))?;
        file.sync_all().map_err(|error| Error::io(&self.path, error))?;
        Ok(self.copied)
    }
}

fn read_manifest(source: &Path) -> Result<Vec<ManifestEntry>> {
    let path = source.join(MANIFEST);
    let corrupt = |reason: &str| Error::Corrupt {
        what: path.display().to_string(),
        reason: reason.to_owned(),
    };
    let file = File::open(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Error::Refused(format!("{} is not a backup: it has no manifest", source.display()))
        }
        _ => Error::io(&path, error),
    })?;
    let mut lines = BufReader::new(file);
    let mut next = || -> Result<Option<String>> {
        let mut line = String::new();
        (&mut lines)
            .take(LINE_BYTES_MAX)
            .read_line(&mut line)
            .map_err(|error| Error::io(&path, error))?;
        // A line that is cut short, by the limit or by the end, is no line.
        Ok(line.strip_suffix('\n').map(str::to_owned))
    };
    if next()?.as_deref() != Some(FORMAT) {
        return Err(corrupt("it is of a format this program does not know"));
    }
    let mut entries = Vec::new();
    loop {
        let line = next()?.ok_or_else(|| corrupt("it was cut short"))?;
        if line == END {
            return Ok(entries);
        }
        entries.push(parse_entry(&line).ok_or_else(|| corrupt("a line of it cannot be read"))?);
    }
}

fn parse_entry(line: &str) -> Option<ManifestEntry> {
    let (hash, rest) = line.split_once(' ')?;
    let (bytes, path) = rest.split_once(' ')?;
    // A manifest could be anybody's: only names that stay inside the directory.
    let inside =
        Path::new(path).components().all(|part| matches!(part, std::path::Component::Normal(_)));
    if !inside {
        return None;
    }
    let hash = *blake3::Hash::from_hex(hash).ok()?.as_bytes();
    Some(ManifestEntry {
        hashed: FileHash { bytes: bytes.parse().ok()?, hash },
        path: path.to_owned(),
    })
}

fn hash_file(path: &Path) -> Result<FileHash> {
    each_block(path, |_| Ok(()))
}

fn copy_file(from: &Path, to: &Path) -> Result<FileHash> {
    if let Some(parent) = to.parent() {
        make_directory(parent)?;
    }
    let mut out = OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(to)
        .map_err(|error| Error::io(to, error))?;
    let hashed =
        each_block(from, |block| out.write_all(block).map_err(|error| Error::io(to, error)))?;
    out.sync_all().map_err(|error| Error::io(to, error))?;
    Ok(hashed)
}

fn each_block(path: &Path, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<FileHash> {
    let mut file = File::open(path).map_err(|error| Error::io(path, error))?;
    let mut hasher = blake3::Hasher::new();
    let mut block = vec![0; BUFFER];
    let mut bytes = 0;
    loop {
        let read = file.read(&mut block).map_err(|error| Error::io(path, error))?;
        if read == 0 {
            return Ok(FileHash { bytes, hash: *hasher.finalize().as_bytes() });
        }
        bytes += read as u64;
        hasher.update(&block[..read]);
        take(&block[..read])?;
    }
}

/// Syncs a file or a directory to the disk.
fn sync(path: &Path) -> Result<()> {
    File::open(path).and_then(|file| file.sync_all()).map_err(|error| Error::io(path, error))
}

#[cfg(test)]
mod tests;
