//! Writes documents into files, and removes them.
//!
//! Relies on [`Beneath`] for never leaving the directory, whatever links others put into it.
//! Invariants: a reader sees a file whole or not at all; when a batch has been taken, it
//! is on the disk; a document whose name is that of a directory is kept inside it, so
//! that no document is in another's way.

use super::FilesConfig;
use super::paths::path_of;
use crate::connectors::read;
use crate::output::{Operation, Outcome, Output, Unavailable, Wants};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use store::beneath::{Beneath, FileKind, UNFINISHED};

/// A document whose path is a directory of others is kept in it under this name, which
/// no URI leads to. (Nor does one to the name of a file that is being written.)
const SELF: &str = "%self";
/// Attempts at a path that others change at the same time.
const ATTEMPTS_MAX: usize = 5;

/// A files output, open.
pub struct FilesOutput {
    directory: PathBuf,
}

impl FilesOutput {
    /// Opens it; the directory is made when the first document comes.
    pub fn open(config: &str) -> Result<FilesOutput, String> {
        let config = read::<FilesConfig>(config)?.check()?;
        Ok(FilesOutput { directory: config.directory.into() })
    }

    fn unavailable(&self, error: &io::Error) -> Unavailable {
        Unavailable::because(format!(
            "directory {} cannot be used: {error}",
            self.directory.display()
        ))
    }

    /// The directory, which is made if it is not there.
    fn below(&self) -> io::Result<Beneath> {
        std::fs::create_dir_all(&self.directory)?;
        Beneath::open(&self.directory)
    }
}

fn put(below: &Beneath, uri: &str, bytes: &[u8]) -> io::Result<()> {
    let path = path_of(uri);
    let mut attempt = 0;
    loop {
        match write(below, &path, bytes) {
            // A document stands where a directory is needed, or the other way round.
            Err(error) if is_in_the_way(&error) && attempt < ATTEMPTS_MAX => {
                make_way(below, &path)?;
            }
            // Somebody else has removed a directory that was empty.
            Err(error) if error.kind() == ErrorKind::NotFound && attempt < ATTEMPTS_MAX => {}
            outcome => return outcome,
        }
        attempt += 1;
    }
}

fn write(below: &Beneath, path: &Path, bytes: &[u8]) -> io::Result<()> {
    match below.kind(path)? {
        Some(FileKind::Directory) => below.write(&path.join(SELF), bytes),
        _ => below.write(path, bytes),
    }
}

/// Moves documents that stand where directories are needed into these.
fn make_way(below: &Beneath, path: &Path) -> io::Result<()> {
    let mut at = PathBuf::new();
    for component in path.parent().into_iter().flat_map(Path::components) {
        at.push(component);
        if below.kind(&at)? == Some(FileKind::File) {
            let mut aside = at.as_os_str().to_owned();
            aside.push(UNFINISHED);
            below.rename(&at, Path::new(&aside))?;
            below.make_directory(&at)?;
            below.rename(Path::new(&aside), &at.join(SELF))?;
        }
    }
    Ok(())
}

fn remove(below: &Beneath, uri: &str) -> io::Result<()> {
    let path = path_of(uri);
    for path in [path.join(SELF), path] {
        match below.remove_file(&path) {
            Ok(()) => {}
            Err(error) if is_absent(&error) => continue,
            Err(error) => return Err(error),
        }
        tidy(below, &path);
    }
    Ok(())
}

/// Removes directories that are empty now.
fn tidy(below: &Beneath, path: &Path) {
    let mut at = path.parent();
    while let Some(directory) = at.filter(|it| !it.as_os_str().is_empty()) {
        if below.remove_directory(directory).is_err() {
            return;
        }
        at = directory.parent();
    }
}

fn take_one(below: &Beneath, operation: &Operation) -> io::Result<Outcome> {
    for uri in operation.stale.iter().filter(|uri| **uri != operation.uri) {
        remove(below, uri)?;
    }
    match operation.content.as_ref().map(|it| it.bytes.as_ref()) {
        None => remove(below, &operation.uri).map(|()| Outcome::Taken),
        Some(Some(bytes)) => put(below, &operation.uri, bytes).map(|()| Outcome::Taken),
        Some(None) => {
            remove(below, &operation.uri)?;
            let detail = "its bytes were not kept, because they are too many".to_owned();
            Ok(Outcome::Rejected { code: "NOBYTES", detail })
        }
    }
}

impl Output for FilesOutput {
    fn check(&mut self) -> Result<(), Unavailable> {
        let probe = Path::new("%check");
        self.below()
            .and_then(|below| {
                below.write(probe, b"may be removed")?;
                below.remove_file(probe)
            })
            .map_err(|error| self.unavailable(&error))
    }

    fn wants(&self) -> Wants {
        Wants::Bytes
    }

    fn apply(
        &mut self,
        _spec: &str,
        operations: &[Operation],
    ) -> Result<Vec<Outcome>, Unavailable> {
        let unavailable = |error: io::Error| self.unavailable(&error);
        let below = self.below().map_err(unavailable)?;
        let mut outcomes = Vec::with_capacity(operations.len());
        for operation in operations {
            outcomes.push(match take_one(&below, operation) {
                Ok(outcome) => outcome,
                // Nobody's document is to blame for a disk that is full.
                Err(error) if is_everybodys(&error) => return Err(unavailable(error)),
                Err(error) => Outcome::Trouble { code: "IO", detail: error.to_string() },
            });
        }
        rustix::fs::syncfs(below.root()).map_err(|error| unavailable(error.into()))?;
        Ok(outcomes)
    }
}

fn is_in_the_way(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists | ErrorKind::IsADirectory
    )
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory)
}

fn is_everybodys(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull
            | ErrorKind::QuotaExceeded
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::StaleNetworkFileHandle
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Content;
    use bytes::Bytes;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn put(uri: &str, text: &str) -> Operation {
        let bytes = Some(Bytes::copy_from_slice(text.as_bytes()));
        let content = Some(Content { bytes, ..Content::default() });
        Operation { uri: uri.to_owned(), stale: Vec::new(), content }
    }

    fn drop_(uri: &str) -> Operation {
        Operation { uri: uri.to_owned(), stale: Vec::new(), content: None }
    }

    fn files() -> (tempfile::TempDir, FilesOutput) {
        let directory = tempfile::tempdir().expect("a directory");
        let config = serde_json::json!({ "directory": directory.path().join("out") });
        let files = FilesOutput::open(&config.to_string()).expect("it opens");
        (directory, files)
    }

    /// Every file below a directory, with what it says.
    fn all(at: &Path) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        for entry in std::fs::read_dir(at).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() {
                let below = all(&path);
                assert!(!below.is_empty(), "{} is empty", path.display());
                found.extend(below.into_iter().map(|(it, text)| (format!("{name}/{it}"), text)));
            } else {
                found.insert(name, std::fs::read_to_string(path).expect("it is text"));
            }
        }
        found
    }

    #[test]
    fn a_document_that_is_also_a_directory_is_kept_inside() {
        let (_directory, mut files) = files();
        let operations = [put("https://a/docs", "docs"), put("https://a/docs/one", "1")];
        assert_eq!(files.apply("{}", &operations).unwrap(), vec![Outcome::Taken; 2]);
        let kept = all(&files.directory);
        assert_eq!(kept["https/a/docs/%self"], "docs");
        assert_eq!(kept["https/a/docs/one"], "1");
        files.apply("{}", &[put("https://a/docs", "new"), drop_("https://a/docs/one")]).unwrap();
        assert_eq!(all(&files.directory), [("https/a/docs/%self".into(), "new".into())].into());
        files.apply("{}", &[drop_("https://a/docs"), drop_("https://a/docs")]).unwrap();
        assert_eq!(all(&files.directory), BTreeMap::new());
    }

    #[test]
    fn links_that_others_put_into_the_directory_lead_nowhere() {
        let (place, mut files) = files();
        let (outside, victim) = (place.path().join("outside"), place.path().join("victim"));
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(&victim, "mine").unwrap();
        files.apply("{}", &[put("https://a/there", "1")]).unwrap();
        std::os::unix::fs::symlink(&outside, files.directory.join("https/b")).unwrap();
        let at = |name: &str| files.directory.join("https/a").join(name);
        std::os::unix::fs::symlink(&victim, at("new%unfinished")).unwrap();
        std::os::unix::fs::symlink(&victim, at("old")).unwrap();
        let operations =
            [put("https://b/x", "x"), put("https://a/new", "2"), put("https://a/old", "3")];
        let outcomes = files.apply("{}", &operations).unwrap();
        assert!(
            matches!(&outcomes[0], Outcome::Trouble { code: "IO", detail } if detail.contains("link")),
            "{outcomes:?}"
        );
        assert_eq!(outcomes[1..], [Outcome::Taken, Outcome::Taken]);
        assert!(matches!(
            files.apply("{}", &[drop_("https://b/x")]).unwrap()[0],
            Outcome::Trouble { .. }
        ));
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0, "nothing is outside");
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
        assert_eq!(all(&files.directory.join("https/a"))["new"], "2");
    }

    #[test]
    fn what_was_kept_elsewhere_goes_and_what_has_no_bytes_is_rejected() {
        let (_directory, mut files) = files();
        files.apply("{}", &[put("https://a/old", "1")]).unwrap();
        let moved = Operation { stale: vec!["https://a/old".into()], ..put("https://a/new", "2") };
        files.apply("{}", &[moved]).unwrap();
        assert_eq!(all(&files.directory), [("https/a/new".into(), "2".into())].into());
        let large = Operation { content: Some(Content::default()), ..drop_("https://a/new") };
        let outcomes = files.apply("{}", &[large]).unwrap();
        assert!(matches!(outcomes[0], Outcome::Rejected { code: "NOBYTES", .. }));
        assert_eq!(all(&files.directory), BTreeMap::new());
    }

    #[test]
    fn a_directory_that_cannot_be_used_blames_no_document() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let config = serde_json::json!({ "directory": file.path() });
        let mut files = FilesOutput::open(&config.to_string()).expect("it opens");
        assert!(files.check().unwrap_err().why.contains("cannot be used"));
        let unavailable = files.apply("{}", &[put("https://a/", "1")]).unwrap_err();
        assert!(unavailable.why.contains("cannot be used"), "{}", unavailable.why);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        /// Whatever is put and removed, in whatever order, every document that is there
        /// can be found, and nothing else is.
        #[test]
        fn documents_are_never_in_each_others_way(
            story in proptest::collection::vec(("[ab]{1,2}(/[ab]{0,2}){0,3}", any::<bool>()), 1..25)
        ) {
            let (_directory, mut files) = files();
            let mut model = BTreeMap::new();
            for (number, (path, stays)) in story.iter().enumerate() {
                let uri = format!("http://{path}");
                let text = number.to_string();
                let operation = if *stays { put(&uri, &text) } else { drop_(&uri) };
                prop_assert_eq!(files.apply("{}", &[operation]).unwrap(), vec![Outcome::Taken]);
                match stays {
                    true => model.insert(uri, text),
                    false => model.remove(&uri),
                };
            }
            let kept = all(&files.directory);
            prop_assert_eq!(kept.len(), model.len(), "{:?} {:?}", kept, model);
            for (uri, text) in model {
                let path = files.directory.join(path_of(&uri));
                let path = if path.is_dir() { path.join(SELF) } else { path };
                prop_assert_eq!(std::fs::read_to_string(path).unwrap(), text);
            }
        }
    }
}
