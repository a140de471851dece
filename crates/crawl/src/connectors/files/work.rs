//! Files and directories as documents: a directory leads to what is in it, a file says
//! what it contains.
//!
//! A document's identifier is its absolute path. Invariants: nothing outside the roots
//! is ever read, whatever symbolic links say; a file is read to its limit and no
//! further; what cannot be read is trouble of that file alone; a file is missing only while
//! the roots are there.

use super::super::{content, roots};
use super::{AllowedRoots, By, FilesSpec, PATTERNS_BYTES_MAX};
use crate::lifecycle::Model;
use crate::repository::{KnownVersion, LookResult, Read, Reference, Repository};
use bytes::Bytes;
use page::facts::Facts;
use regex::{RegexSet, RegexSetBuilder};
use std::fs::Metadata;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use store::tables::carrydown::Data;
use store::tables::queue::ReasonCode;

/// How what is in a directory is linked to it.
pub const CHILD: &str = "child";

/// A files job at work.
pub struct FilesRepository {
    spec: FilesSpec,
    allowed: AllowedRoots,
    include: RegexSet,
    exclude: RegexSet,
}

impl FilesRepository {
    /// Compiles a specification that has been checked.
    pub fn new(spec: FilesSpec, allowed: AllowedRoots) -> Result<FilesRepository, String> {
        let set = |patterns: &[String]| {
            RegexSetBuilder::new(patterns)
                .size_limit(PATTERNS_BYTES_MAX)
                .build()
                .map_err(|error| error.to_string())
        };
        let (include, exclude) = (set(&spec.include)?, set(&spec.exclude)?);
        Ok(FilesRepository { spec, allowed, include, exclude })
    }

    /// Whether a path is below one of the roots, or one of them.
    fn is_inside(&self, path: &Path) -> bool {
        self.spec.roots.iter().any(|root| path.starts_with(root))
    }

    fn metadata(&self, path: &Path) -> std::io::Result<Metadata> {
        match self.spec.follow_links {
            true => std::fs::metadata(path),
            false => std::fs::symlink_metadata(path),
        }
    }

    fn directory(&self, path: &Path) -> LookResult {
        let entries = match std::fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) => return self.trouble(&error),
        };
        let here = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut references = Vec::new();
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => return self.trouble(&error),
            };
            let path = entry.path();
            // A name that is no text cannot be an identifier.
            let Some(docid) = path.to_str() else { continue };
            if self.unwanted(docid).is_none() && self.is_wanted(&entry, &path, &here) {
                references.push(Reference {
                    docid: docid.to_owned(),
                    link: CHILD,
                    data: Data::new(),
                });
            }
        }
        references.sort_by(|one, other| one.docid.cmp(&other.docid));
        LookResult::Container { references }
    }

    /// Whether an entry of a directory is a file, a directory, or a link to one that leads
    /// neither out of the roots nor back to where it is; and not this program's own data.
    fn is_wanted(&self, entry: &std::fs::DirEntry, path: &Path, here: &Path) -> bool {
        let Ok(kind) = entry.file_type() else { return false };
        if !kind.is_symlink() {
            let is_ours = || entry.metadata().is_ok_and(|it| store::ours::is_ours(&it));
            return (kind.is_file() || kind.is_dir()) && !is_ours();
        }
        let target = std::fs::canonicalize(path).ok().filter(|_| self.spec.follow_links);
        let inside = |target: &PathBuf| {
            let roots = self.spec.roots.iter().filter_map(|root| std::fs::canonicalize(root).ok());
            roots.into_iter().any(|root| target.starts_with(root))
        };
        target.is_some_and(|target| inside(&target) && !here.starts_with(&target))
    }

    fn file(&self, path: &Path, metadata: &Metadata, version: Option<&str>) -> LookResult {
        let stamp = stamp(metadata);
        if self.spec.by == By::TimeAndSize && version == Some(stamp.as_str()) {
            return LookResult::Same;
        }
        let limit = u64::try_from(self.spec.max_bytes).unwrap_or(0);
        let mut body = Vec::new();
        if metadata.len() <= limit {
            let read = std::fs::File::open(path)
                .and_then(|file| file.take(limit + 1).read_to_end(&mut body));
            if let Err(error) = read {
                return self.trouble(&error);
            }
        }
        let facts = facts(path, &body);
        let version_now = match self.spec.by {
            By::TimeAndSize => stamp,
            By::Hash => hex(&facts.content_hash),
        };
        if version == Some(version_now.as_str()) {
            return LookResult::Same;
        }
        LookResult::Read(Box::new(Read {
            version: version_now,
            facts,
            fields: Data::new(),
            body: Bytes::from(body),
            modified_ms: modified_ms(metadata),
            references: Vec::new(),
        }))
    }

    /// What an error says of a file or directory: it is gone, or in trouble.
    fn trouble(&self, error: &std::io::Error) -> LookResult {
        // A disk or a share that fails may come back; a right does not come by waiting.
        let (code, passes) = match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => {
                return roots::missing(&self.spec.roots);
            }
            ErrorKind::PermissionDenied => ("permission", false),
            _ => ("read", true),
        };
        LookResult::Trouble { code, detail: format!("it cannot be read: {error}"), passes }
    }
}

impl Repository for FilesRepository {
    fn model(&self) -> Model {
        Model::ChainedAddChange
    }

    fn seed(
        &self,
        _since: Option<&str>,
        now_ms: i64,
        name: &mut dyn FnMut(String),
    ) -> store::Result<Option<String>> {
        for root in &self.spec.roots {
            name(root.clone());
        }
        Ok(Some(now_ms.to_string()))
    }

    fn check_available(&self, has_documents: bool) -> store::Result<()> {
        roots::check_available(&self.spec.roots, has_documents)
    }

    fn group<'a>(&self, docid: &'a str) -> &'a str {
        docid.rsplit_once('/').map_or(docid, |(directory, _)| directory)
    }

    fn uri(&self, docid: &str) -> String {
        url::Url::from_file_path(docid).map_or_else(|()| docid.to_owned(), String::from)
    }

    fn unwanted(&self, docid: &str) -> Option<(ReasonCode, String)> {
        let path = Path::new(docid);
        if !self.is_inside(path) {
            return Some((ReasonCode::Scope, "it is under none of the job's roots".to_owned()));
        }
        if self.exclude.is_match(docid) {
            return Some((ReasonCode::Scope, "it matches an exclude expression".to_owned()));
        }
        None
    }

    fn look(&self, docid: &str, known: KnownVersion<'_>) -> LookResult {
        let path = Path::new(docid);
        if let Some(refused) = self.allowed.refused(path) {
            return refused;
        }
        let metadata = match self.metadata(path) {
            Ok(metadata) => metadata,
            Err(error) => return self.trouble(&error),
        };
        if metadata.is_dir() {
            return self.directory(path);
        }
        let included = self.spec.include.is_empty() || self.include.is_match(docid);
        match metadata.is_file() && included {
            true => self.file(path, &metadata, known.version),
            false => LookResult::Missing,
        }
    }
}

/// What a file is recognised by without being read.
fn stamp(metadata: &Metadata) -> String {
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let (seconds, nanos) = modified.map_or((0, 0), |time| (time.as_secs(), time.subsec_nanos()));
    format!("{seconds}.{nanos:09}+{}", metadata.len())
}

fn modified_ms(metadata: &Metadata) -> Option<i64> {
    let time = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(time.as_millis()).ok()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What a file says.
fn facts(path: &Path, body: &[u8]) -> Facts {
    let mut facts = content::facts(&format!("file://{}", path.display()), media_type(path), body);
    // Links of a file lead to the web, not to files.
    facts.links.clear();
    if facts.media_type != "text/html" {
        facts.title =
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    }
    facts
}

/// What the end of a file's name says of it.
fn media_type(path: &Path) -> Option<&'static str> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    Some(match ending.as_str() {
        "html" | "htm" | "xhtml" => "text/html",
        "txt" | "md" | "text" | "log" | "csv" => "text/plain",
        "xml" => "application/xml",
        "pdf" => "application/pdf",
        "epub" => "application/epub+zip",
        "doc" | "xls" | "ppt" => "application/x-ole-storage",
        "docx" | "docm" | "xlsx" | "xlsm" | "pptx" | "pptm" => {
            "application/vnd.openxmlformats-officedocument"
        }
        "odt" => "application/vnd.oasis.opendocument.text",
        "ods" => "application/vnd.oasis.opendocument.spreadsheet",
        "odp" => "application/vnd.oasis.opendocument.presentation",
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
