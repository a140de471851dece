//! Directories, archives, parts of archives and captured pages as documents.
//!
//! The identifier of a directory or an archive is its absolute path, that of a further part
//! of an archive has the offset of its first record behind a `#`, and that of a page is its
//! URL. Archives hand pages where their captures are: a page is what the newest capture
//! says that can be read, whatever archives come and go. Invariants: nothing outside the
//! job's paths is read; an archive whose time and size are the same holds the same.

use super::super::roots::{self, AllowedRoots};
use super::WarcSpec;
use super::archive::{self, CaptureLocation, Fault};
use crate::lifecycle::Model;
use crate::repository::{KnownVersion, LookResult, Read, Reference, Repository};
use std::cmp::Reverse;
use std::io::ErrorKind;
use std::path::Path;
use std::time::UNIX_EPOCH;
use store::tables::carrydown::Data;
use store::tables::queue::ReasonCode;

/// How what is in a directory, and a further part of an archive, is linked.
pub const CHILD: &str = "child";
/// How a page is linked to where it was captured.
pub const RECORD: &str = "record";
/// What a page is handed.
const CAPTURE: &str = "capture";

/// A warc job at work.
pub struct Archives {
    spec: WarcSpec,
    allowed: AllowedRoots,
}

impl Archives {
    /// A job with a specification that has been checked.
    pub fn new(spec: WarcSpec, allowed: AllowedRoots) -> Archives {
        Archives { spec, allowed }
    }

    fn is_inside(&self, path: &str) -> bool {
        self.spec.paths.iter().any(|it| Path::new(path).starts_with(it))
    }

    fn path(&self, docid: &str) -> LookResult {
        let (path, from) = part(docid);
        let metadata = match std::fs::symlink_metadata(path) {
            // What a job names may be a link; what is found may not.
            Ok(it) if it.is_symlink() && self.spec.paths.iter().any(|named| named == path) => {
                std::fs::metadata(path)
            }
            other => other,
        };
        match metadata {
            Err(error) => trouble(&Fault::Io(error)),
            Ok(it) if it.is_dir() => directory(path),
            Ok(it) if it.is_file() && archive::is_archive(path) => {
                match from > 0 && from >= it.len() {
                    true => LookResult::Missing,
                    false => listing(path, from),
                }
            }
            Ok(_) => LookResult::Missing,
        }
    }

    fn page(&self, url: &str, known: KnownVersion<'_>) -> LookResult {
        let captures = known.data.get(CAPTURE).into_iter().flatten();
        let mut captures: Vec<(CaptureLocation, &str)> =
            captures.filter_map(|it| parse(it)).filter(|it| self.is_inside(it.1)).collect();
        captures.sort_by_key(|it| Reverse(*it));
        let mut damaged = None;
        for (place, path) in captures {
            let stamp = match stamp(Path::new(path)) {
                Ok(stamp) => stamp,
                Err(error) => match trouble(&Fault::Io(error)) {
                    LookResult::Missing => continue,
                    trouble => return trouble,
                },
            };
            let version = format!("{} {stamp}", written(place, path));
            if known.version == Some(version.as_str()) {
                return LookResult::Same;
            }
            match archive::read(Path::new(path), place.offset, url) {
                Ok(Some(found)) => {
                    return LookResult::Read(Box::new(Read {
                        version,
                        facts: found.facts,
                        fields: Data::new(),
                        body: found.body,
                        modified_ms: Some(place.date_ms),
                        references: Vec::new(),
                    }));
                }
                // The archive is another one by now; whoever lists it again says so.
                Ok(None) => damaged = Some(format!("{path} has another record there")),
                Err(Fault::Format(reason)) => damaged = Some(reason),
                Err(fault @ Fault::Io(_)) => return trouble(&fault),
            }
        }
        match damaged {
            Some(detail) => LookResult::Trouble { code: "archive", detail, passes: true },
            None => LookResult::Missing,
        }
    }
}

impl Repository for Archives {
    fn model(&self) -> Model {
        Model::ChainedAddChange
    }

    fn seed(
        &self,
        _since: Option<&str>,
        now_ms: i64,
        name: &mut dyn FnMut(String),
    ) -> store::Result<Option<String>> {
        self.spec.paths.iter().cloned().for_each(name);
        Ok(Some(now_ms.to_string()))
    }

    fn check_available(&self, has_documents: bool) -> store::Result<()> {
        roots::check_available(&self.spec.paths, has_documents)
    }

    fn carries(&self) -> bool {
        true
    }

    fn unwanted(&self, docid: &str) -> Option<(ReasonCode, String)> {
        let is_outside = docid.starts_with('/') && !self.is_inside(docid);
        is_outside.then(|| (ReasonCode::Scope, "it is under none of the job's paths".to_owned()))
    }

    fn look(&self, docid: &str, known: KnownVersion<'_>) -> LookResult {
        let looked = match docid.starts_with('/') {
            true => match self.allowed.refused(Path::new(part(docid).0)) {
                Some(refused) => return refused,
                None => self.path(docid),
            },
            false => self.page(docid, known),
        };
        match looked {
            LookResult::Missing => roots::missing(&self.spec.paths),
            looked => looked,
        }
    }
}

/// The archive that an identifier names, and where its part begins.
fn part(docid: &str) -> (&str, u64) {
    let split = docid.rsplit_once('#').filter(|(path, _)| archive::is_archive(path));
    split.and_then(|(path, from)| Some((path, from.parse().ok()?))).unwrap_or((docid, 0))
}

/// A directory leads to directories and archives; symbolic links are not followed.
fn directory(path: &str) -> LookResult {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) => return trouble(&Fault::Io(error)),
    };
    let mut references = Vec::new();
    for entry in entries {
        let found = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)));
        let (path, kind) = match found {
            Ok(found) => found,
            Err(error) => return trouble(&Fault::Io(error)),
        };
        // A name that is no text cannot be an identifier.
        let Some(docid) = path.to_str() else { continue };
        if kind.is_dir() || (kind.is_file() && archive::is_archive(docid)) {
            references.push(Reference { docid: docid.to_owned(), link: CHILD, data: Data::new() });
        }
    }
    references.sort_by(|one, other| one.docid.cmp(&other.docid));
    LookResult::Container { references }
}

/// A part of an archive leads to its pages and to the next part.
fn listing(path: &str, from: u64) -> LookResult {
    let listed = match archive::list(Path::new(path), from) {
        Ok(listed) => listed,
        Err(fault) => return trouble(&fault),
    };
    let page = |(docid, place): (String, CaptureLocation)| {
        let data = Data::from([(CAPTURE.to_owned(), [written(place, path)].into())]);
        Reference { docid, link: RECORD, data }
    };
    let mut references: Vec<Reference> = listed.captures.into_iter().map(page).collect();
    references.sort_by(|one, other| one.docid.cmp(&other.docid));
    references.extend(listed.next.map(|offset| Reference {
        docid: format!("{path}#{offset}"),
        link: CHILD,
        data: Data::new(),
    }));
    LookResult::Container { references }
}

/// A capture as pages are handed it: when, at which byte, in which archive.
fn written(place: CaptureLocation, path: &str) -> String {
    let date = jiff::Timestamp::from_millisecond(place.date_ms).unwrap_or_default();
    format!("{date} {} {path}", place.offset)
}

fn parse(text: &str) -> Option<(CaptureLocation, &str)> {
    let mut words = text.splitn(3, ' ');
    let date: jiff::Timestamp = words.next()?.parse().ok()?;
    let (offset, path) = (words.next()?.parse().ok()?, words.next()?);
    Some((CaptureLocation { date_ms: date.as_millisecond(), offset }, path))
}

/// What an archive is recognised by.
fn stamp(path: &Path) -> std::io::Result<String> {
    let metadata = std::fs::metadata(path)?;
    let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(format!("{}.{:09}+{}", modified.as_secs(), modified.subsec_nanos(), metadata.len()))
}

fn trouble(fault: &Fault) -> LookResult {
    let (code, detail, passes) = match fault {
        Fault::Format(reason) => ("archive", reason.clone(), false),
        Fault::Io(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => return LookResult::Missing,
            // A disk or a share that fails may come back; a right does not come by waiting.
            ErrorKind::PermissionDenied => ("permission", error.to_string(), false),
            _ => ("read", error.to_string(), true),
        },
    };
    LookResult::Trouble { code, detail: format!("it cannot be read: {detail}"), passes }
}

#[cfg(test)]
mod tests;
