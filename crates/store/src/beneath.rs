//! Files below a directory that others may write into, without ever leaving it.
//!
//! Every step from the root to a file is taken by its own name, from a handle of the directory
//! before it, and a symbolic link is never followed: not on the way, and not at the end. So
//! nothing outside the root is read, written or removed, whatever is put there, and whenever.
//! The root itself is where its administrator says, and may be a link.

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// Files that are being written end with this.
pub const UNFINISHED: &str = "%unfinished";

/// A directory that is worked in.
pub struct Beneath {
    root: File,
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FileKind {
    /// A file with bytes in it.
    File,
    Directory,
    /// A symbolic link, or something else that is neither.
    Other,
}

impl Beneath {
    /// Opens a directory that is there.
    pub fn open(root: &Path) -> Result<Beneath> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Beneath { root: rustix::fs::open(root, flags, Mode::empty())?.into() })
    }

    /// The directory itself, to be synced.
    pub fn root(&self) -> &File {
        &self.root
    }

    /// What a path stands for; `None` if there is nothing.
    pub fn kind(&self, path: &Path) -> Result<Option<FileKind>> {
        let found = self.parent(path, Missing::Left).and_then(|(at, name)| kind(&at, name));
        match found {
            Err(error) if is_absent(&error) => Ok(None),
            found => found,
        }
    }

    /// Makes a directory, and those above it; what is there stays.
    pub fn make_directory(&self, path: &Path) -> Result<()> {
        self.directory(path, Missing::Made).map(drop)
    }

    /// Writes a file beside the path, then moves it there: readers see all of it or nothing.
    /// Directories above it are made.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let (at, name) = self.parent(path, Missing::Made)?;
        let mut unfinished: OsString = name.to_owned();
        unfinished.push(UNFINISHED);
        match rustix::fs::unlinkat(&at, &unfinished, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        let mut file = File::from(rustix::fs::openat(&at, &unfinished, flags, mode)?);
        file.write_all(bytes)?;
        Ok(rustix::fs::renameat(&at, &unfinished, &at, name)?)
    }

    /// Makes a file to be written piece by piece, in the place of one of that name. Directories
    /// above it are made.
    pub fn create(&self, path: &Path) -> Result<File> {
        let (at, name) = self.parent(path, Missing::Made)?;
        match rustix::fs::unlinkat(&at, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&at, name, flags, Mode::from_raw_mode(0o666))?.into())
    }

    /// Opens a file to be read.
    pub fn open_file(&self, path: &Path) -> Result<File> {
        let (at, name) = self.parent(path, Missing::Left)?;
        // Opening a pipe would wait for its writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file: File = match rustix::fs::openat(&at, name, flags, Mode::empty()) {
            Err(Errno::LOOP) => return Err(no_file(name)),
            opened => opened?.into(),
        };
        if !file.metadata()?.is_file() {
            return Err(no_file(name));
        }
        Ok(file)
    }

    /// The bytes of a file.
    pub fn read(&self, path: &Path) -> Result<Vec<u8>> {
        let mut file = self.open_file(path)?;
        let mut bytes = Vec::with_capacity(usize::try_from(file.metadata()?.len()).unwrap_or(0));
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// How many bytes a file has; `None` if there is nothing of that name.
    pub fn length(&self, path: &Path) -> Result<Option<u64>> {
        let found = self.parent(path, Missing::Left).and_then(|(at, name)| {
            let found = rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW)?;
            match FileType::from_raw_mode(found.st_mode) {
                FileType::RegularFile => Ok(u64::try_from(found.st_size).unwrap_or(0)),
                _ => Err(no_file(name)),
            }
        });
        match found {
            Ok(length) => Ok(Some(length)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The names in a directory, sorted; none if it is not there.
    pub fn names(&self, path: &Path) -> Result<Vec<OsString>> {
        let directory = match self.directory(path, Missing::Left) {
            Err(error) if is_absent(&error) => return Ok(Vec::new()),
            opened => opened?,
        };
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&directory)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Gives a file a second name, which must be free. Directories above it are made.
    pub fn link(&self, file: &Path, path: &Path) -> Result<()> {
        let (from, old) = self.parent(file, Missing::Left)?;
        if kind(&from, old)? == Some(FileKind::Other) {
            return Err(no_file(old));
        }
        let (to, new) = self.parent(path, Missing::Made)?;
        Ok(rustix::fs::linkat(from, old, to, new, AtFlags::empty())?)
    }

    /// Makes a symbolic link under a name that must be free. Directories above it are made.
    pub fn symlink(&self, target: &Path, path: &Path) -> Result<()> {
        let (at, name) = self.parent(path, Missing::Made)?;
        Ok(rustix::fs::symlinkat(target, at, name)?)
    }

    /// Where a symbolic link leads; `None` if there is nothing of that name.
    pub fn link_target(&self, path: &Path) -> Result<Option<PathBuf>> {
        let found = self.parent(path, Missing::Left).and_then(|(at, name)| {
            let target = rustix::fs::readlinkat(at, name, Vec::new())?;
            Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
        });
        match found {
            Ok(target) => Ok(Some(target)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A directory of it, to be worked in.
    pub fn below(&self, path: &Path) -> Result<Beneath> {
        Ok(Beneath { root: self.directory(path, Missing::Made)?.into() })
    }

    /// Moves a file or a directory. What is there under the new name is replaced, as far as the
    /// system does that.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let (from, old) = self.parent(from, Missing::Left)?;
        let (to, new) = self.parent(to, Missing::Left)?;
        Ok(rustix::fs::renameat(from, old, to, new)?)
    }

    /// Removes a file, or a link itself.
    pub fn remove_file(&self, path: &Path) -> Result<()> {
        let (at, name) = self.parent(path, Missing::Left)?;
        Ok(rustix::fs::unlinkat(at, name, AtFlags::empty())?)
    }

    /// Removes a directory that is empty.
    pub fn remove_directory(&self, path: &Path) -> Result<()> {
        let (at, name) = self.parent(path, Missing::Left)?;
        Ok(rustix::fs::unlinkat(at, name, AtFlags::REMOVEDIR)?)
    }

    /// The directory that a path lies in, and its name there.
    fn parent<'a>(&self, path: &'a Path, missing: Missing) -> Result<(OwnedFd, &'a OsStr)> {
        let name = path.file_name().ok_or_else(|| odd(path))?;
        let above = path.parent().unwrap_or(Path::new(""));
        Ok((self.directory(above, missing)?, name))
    }

    /// Walks to a directory, step by step.
    fn directory(&self, path: &Path, missing: Missing) -> Result<OwnedFd> {
        let mut at: OwnedFd = self.root.try_clone()?.into();
        for component in path.components() {
            let name = match component {
                Component::Normal(name) => name,
                Component::CurDir => continue,
                _ => return Err(odd(path)),
            };
            at = step(&at, name, missing)?;
        }
        Ok(at)
    }
}

/// Opens a file to be written, making it if it is not there. A symbolic link in its place is
/// neither followed nor replaced. What the file holds stays until the caller cuts it off.
pub fn open_or_make(path: &Path, mode: u32) -> Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::from_raw_mode(mode)) {
        Err(Errno::LOOP) => Err(Error::new(
            ErrorKind::PermissionDenied,
            "it is a symbolic link, which is not followed; remove it, or name another file",
        )),
        opened => Ok(opened?.into()),
    }
}

/// What is done about a directory that is not there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Left,
    Made,
}

fn step(at: &OwnedFd, name: &OsStr, missing: Missing) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || rustix::fs::openat(at, name, flags, Mode::empty());
    match open() {
        Err(Errno::NOENT) if missing == Missing::Made => {
            match rustix::fs::mkdirat(at, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            Ok(open()?)
        }
        Err(Errno::NOTDIR | Errno::LOOP) if kind(at, name)? == Some(FileKind::Other) => {
            let name = name.display();
            let why =
                format!("{name} is a symbolic link, or no file at all; links are not followed");
            Err(Error::new(ErrorKind::PermissionDenied, why))
        }
        opened => Ok(opened?),
    }
}

/// What a name stands for in a directory, itself, and not what it points to.
fn kind(at: &OwnedFd, name: &OsStr) -> Result<Option<FileKind>> {
    match rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
        Ok(found) => Ok(Some(match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => FileKind::File,
            FileType::Directory => FileKind::Directory,
            _ => FileKind::Other,
        })),
    }
}

fn is_absent(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn no_file(name: &OsStr) -> Error {
    let why = format!("{} is no file; links are not followed", name.display());
    Error::new(ErrorKind::PermissionDenied, why)
}

fn odd(path: &Path) -> Error {
    let why = format!("{} does not lead below its directory", path.display());
    Error::new(ErrorKind::InvalidInput, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn below() -> (tempfile::TempDir, Beneath) {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("root")).unwrap();
        let beneath = Beneath::open(&place.path().join("root")).unwrap();
        (place, beneath)
    }

    #[test]
    fn files_are_written_moved_and_removed_below_the_root() {
        let (place, beneath) = below();
        let (one, two) = (Path::new("a/b/one"), Path::new("a/two"));
        beneath.write(one, b"1").unwrap();
        beneath.write(one, b"2").unwrap();
        assert_eq!(std::fs::read(place.path().join("root/a/b/one")).unwrap(), b"2");
        assert_eq!(beneath.kind(one).unwrap(), Some(FileKind::File));
        assert_eq!(beneath.kind(Path::new("a/b")).unwrap(), Some(FileKind::Directory));
        assert_eq!(beneath.kind(Path::new("a/b/one/more")).unwrap(), None);
        beneath.rename(one, two).unwrap();
        beneath.remove_directory(Path::new("a/b")).unwrap();
        beneath.remove_file(two).unwrap();
        assert_eq!(beneath.kind(two).unwrap(), None);
        for odd in ["../x", "/etc/x", "a/../../x", "..", ""] {
            assert!(beneath.write(Path::new(odd), b"x").is_err(), "{odd}");
        }
    }

    #[test]
    fn files_are_read_linked_and_listed_below_the_root() {
        let (place, beneath) = below();
        let root = place.path().join("root");
        let (one, two) = (Path::new("a/one"), Path::new("b/c/two"));
        beneath.create(one).unwrap().write_all(b"12").unwrap();
        beneath.link(one, two).unwrap();
        assert_eq!(beneath.read(two).unwrap(), b"12");
        assert_eq!(beneath.length(two).unwrap(), Some(2));
        assert_eq!(beneath.length(Path::new("b/x/y")).unwrap(), None);
        let taken = beneath.link(one, two).unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::AlreadyExists);
        beneath.symlink(Path::new("../a"), Path::new("b/away")).unwrap();
        let target = beneath.link_target(Path::new("b/away")).unwrap();
        assert_eq!(target.as_deref(), Some(Path::new("../a")));
        assert_eq!(beneath.link_target(Path::new("b/none")).unwrap(), None);
        assert_eq!(beneath.names(Path::new("b")).unwrap(), ["away", "c"]);
        assert!(beneath.names(Path::new("none")).unwrap().is_empty());
        assert_eq!(beneath.below(Path::new("b/c")).unwrap().read(Path::new("two")).unwrap(), b"12");
        // What is no file is neither read nor linked, nor what lies behind a link.
        symlink(root.join("a/one"), root.join("link")).unwrap();
        for odd in ["link", "b/away/one", "b"] {
            assert!(beneath.read(Path::new(odd)).is_err(), "{odd}");
            assert!(beneath.length(Path::new(odd)).is_err(), "{odd}");
        }
        assert!(beneath.link(Path::new("link"), Path::new("new")).is_err());
        assert!(beneath.names(Path::new("b/away")).is_err());
        assert_eq!(beneath.kind(Path::new("new")).unwrap(), None);
    }

    #[test]
    fn a_link_in_the_place_of_a_file_is_not_written_through() {
        let place = tempfile::tempdir().unwrap();
        let (victim, link) = (place.path().join("victim"), place.path().join("link"));
        std::fs::write(&victim, "mine").unwrap();
        symlink(&victim, &link).unwrap();
        let refused = open_or_make(&link, 0o600).unwrap_err().to_string();
        assert!(refused.contains("symbolic link"), "{refused}");
        open_or_make(&place.path().join("new"), 0o600).unwrap().write_all(b"1").unwrap();
        open_or_make(&victim, 0o600).unwrap();
        assert_eq!(std::fs::read(&victim).unwrap(), b"mine", "it is cut off by the caller");
    }

    #[test]
    fn links_are_neither_followed_on_the_way_nor_at_the_end() {
        let (place, beneath) = below();
        let (root, victim) = (place.path().join("root"), place.path().join("victim"));
        std::fs::create_dir(place.path().join("outside")).unwrap();
        std::fs::write(&victim, "mine").unwrap();
        symlink(place.path().join("outside"), root.join("away")).unwrap();
        symlink(&victim, root.join("page")).unwrap();
        symlink(&victim, root.join("new%unfinished")).unwrap();
        let refused = beneath.write(Path::new("away/x"), b"x").unwrap_err();
        assert!(refused.to_string().contains("symbolic link"), "{refused}");
        assert!(beneath.make_directory(Path::new("away/deep")).is_err());
        assert!(beneath.remove_file(Path::new("away/x")).is_err());
        // What stands at the end is replaced, and what it pointed to stays.
        beneath.write(Path::new("page"), b"page").unwrap();
        beneath.write(Path::new("new"), b"new").unwrap();
        assert_eq!(std::fs::read(&victim).unwrap(), b"mine");
        assert_eq!(std::fs::read(root.join("page")).unwrap(), b"page");
        assert!(root.join("new").symlink_metadata().unwrap().is_file());
        assert_eq!(std::fs::read_dir(place.path().join("outside")).unwrap().count(), 0);
    }
}
