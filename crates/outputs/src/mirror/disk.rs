//! The files of a mirror: every write, link, rename and sync goes through here.
//!
//! Relies on [`Beneath`] for never leaving the directory. Invariant: a file becomes visible
//! complete, by a rename or a link; each step that makes something visible is counted, and in
//! tests any of them can fail.

use super::digest::{Digest, Digesting};
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use store::beneath::{Beneath, FileKind, UNFINISHED};
use store::{Error, Result};

/// Where the blobs are.
pub(super) const BLOBS: &str = "blobs";
/// Where files lie that are being written and are named by what is in them.
const WRITING: &str = "writing";
/// Bytes that are collected before they are written.
const BUFFER_BYTES: usize = 128 << 10;

/// Whether writes are synced. What tests end is the process, not the machine.
const SYNCS: bool = cfg!(not(test));

/// The directory of a mirror.
pub(super) struct Disk {
    root: Beneath,
    dir: PathBuf,
    /// Names of files that are being written; threads write the same blob at the same time.
    next: AtomicU64,
    bytes_written: AtomicU64,
    #[cfg(test)]
    pub(super) faults: faults::Faults,
}

impl Disk {
    pub(super) fn open(dir: &Path) -> Result<Disk> {
        let failed = |error| Error::io(dir, error);
        std::fs::create_dir_all(dir).map_err(failed)?;
        Ok(Disk {
            root: Beneath::open(dir).map_err(failed)?,
            dir: dir.to_owned(),
            next: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
            #[cfg(test)]
            faults: faults::Faults::default(),
        })
    }

    /// Where a path of the mirror is, for messages.
    pub(super) fn place(&self, path: impl AsRef<Path>) -> PathBuf {
        self.dir.join(path)
    }

    /// Bytes that went into files since it was opened.
    pub(super) fn bytes_written(&self) -> u64 {
        self.bytes_written.load(Ordering::Relaxed)
    }

    fn failed(&self, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Error {
        let path = self.place(path);
        move |error| Error::io(path, error)
    }

    /// A step that others can see the result of.
    fn step(&self) -> io::Result<()> {
        #[cfg(test)]
        self.faults.step()?;
        Ok(())
    }

    /// Writes a file: readers see all of it or nothing.
    pub(super) fn write(&self, path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
        let path = path.as_ref();
        self.bytes_written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.step().and_then(|()| self.root.write(path, bytes)).map_err(self.failed(path))
    }

    /// Writes a file, and returns when it is on the disk with its name.
    pub(super) fn write_durably(&self, path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
        let path = path.as_ref();
        self.write(path, bytes)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        self.step()
            .and_then(|()| match SYNCS {
                true => {
                    self.root.open_file(path)?.sync_all()?;
                    self.root.below(folder)?.root().sync_all()
                }
                false => Ok(()),
            })
            .map_err(self.failed(path))
    }

    /// Puts all that was written on the disk.
    pub(super) fn sync(&self) -> Result<()> {
        self.step()
            .and_then(|()| if SYNCS { Ok(rustix::fs::syncfs(self.root.root())?) } else { Ok(()) })
            .map_err(self.failed(""))
    }

    /// A file that is written piece by piece and has no name yet.
    pub(super) fn begin(&self) -> Result<Unnamed<'_>> {
        let path = self.unused();
        let file = self.root.create(&path).map_err(self.failed(&path))?;
        let out = Digesting::new(BufWriter::with_capacity(BUFFER_BYTES, file));
        Ok(Unnamed { disk: self, path, out })
    }

    fn unused(&self) -> PathBuf {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        Path::new(WRITING).join(number.to_string())
    }

    /// Keeps bytes under their digest, unless they are there.
    pub(super) fn keep(&self, bytes: &[u8]) -> Result<Digest> {
        let digest = Digest::of(bytes);
        let path = blob_path(&digest);
        // What a loss of power or a bad disk has damaged is written again.
        if self.length(&path)? == Some(bytes.len() as u64) && self.read(&path)? == bytes {
            return Ok(digest);
        }
        let unfinished = self.unused();
        self.bytes_written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.root
            .create(&unfinished)
            .and_then(|mut file| file.write_all(bytes))
            .map_err(self.failed(&path))?;
        self.rename(&unfinished, &path)?;
        Ok(digest)
    }

    /// The bytes of a blob. What has another digest is never returned.
    pub(super) fn blob(&self, digest: &Digest) -> Result<Vec<u8>> {
        let bytes = self.read(blob_path(digest))?;
        if Digest::of(&bytes) != *digest {
            return Err(self.damaged(digest));
        }
        Ok(bytes)
    }

    /// Whether a blob has the digest of its name.
    pub(super) fn verify(&self, digest: &Digest) -> Result<bool> {
        let path = blob_path(digest);
        let mut file = self.open_file(&path)?;
        let mut digesting = Digesting::new(io::sink());
        io::copy(&mut file, &mut digesting).map_err(self.failed(path))?;
        Ok(digesting.finish().digest == *digest)
    }

    /// A blob to be read piece by piece.
    pub(super) fn open_blob(&self, digest: &Digest) -> Result<File> {
        if !self.verify(digest)? {
            return Err(self.damaged(digest));
        }
        self.open_file(blob_path(digest))
    }

    fn damaged(&self, digest: &Digest) -> Error {
        let what = self.place(blob_path(digest)).display().to_string();
        Error::corrupt(what, "its bytes do not have the SHA-256 of its name")
    }

    pub(super) fn read(&self, path: impl AsRef<Path>) -> Result<Vec<u8>> {
        self.root.read(path.as_ref()).map_err(self.failed(path))
    }

    /// The bytes of a file that may be missing.
    pub(super) fn read_if_there(&self, path: impl AsRef<Path>) -> Result<Option<Vec<u8>>> {
        match self.root.read(path.as_ref()) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed(path)(error)),
        }
    }

    pub(super) fn open_file(&self, path: impl AsRef<Path>) -> Result<File> {
        self.root.open_file(path.as_ref()).map_err(self.failed(path))
    }

    pub(super) fn length(&self, path: impl AsRef<Path>) -> Result<Option<u64>> {
        self.root.length(path.as_ref()).map_err(self.failed(path))
    }

    pub(super) fn kind(&self, path: impl AsRef<Path>) -> Result<Option<FileKind>> {
        self.root.kind(path.as_ref()).map_err(self.failed(path))
    }

    /// The names in a directory, sorted, without those of files that are being written.
    pub(super) fn names(&self, path: impl AsRef<Path>) -> Result<Vec<String>> {
        let names = self.root.names(path.as_ref()).map_err(self.failed(path))?;
        // What is not even text is none of ours.
        let names = names.into_iter().filter_map(|name| name.into_string().ok());
        Ok(names.filter(|name| !name.ends_with(UNFINISHED)).collect())
    }

    pub(super) fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<()> {
        let (from, to) = (from.as_ref(), to.as_ref());
        self.step()
            .and_then(|()| match self.root.rename(from, to) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    self.root.make_directory(to.parent().unwrap_or(Path::new("")))?;
                    self.root.rename(from, to)
                }
                renamed => renamed,
            })
            .map_err(self.failed(to))
    }

    /// Gives a blob a second name. A file system allows a file only so many; then it is copied.
    pub(super) fn link_blob(&self, digest: &Digest, path: impl AsRef<Path>) -> Result<()> {
        let (blob, path) = (blob_path(digest), path.as_ref());
        let linked = self.step().and_then(|()| self.root.link(Path::new(&blob), path));
        match linked {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let other = self.unused();
                match self.root.link(Path::new(&blob), &other) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::TooManyLinks => {
                        return self.write(path, &self.blob(digest)?);
                    }
                    Err(error) => return Err(self.failed(blob)(error)),
                }
                self.rename(&other, path)?;
                // Where both are names of one file already, renaming does nothing.
                self.remove(&other)
            }
            Err(error) if error.kind() == ErrorKind::TooManyLinks => {
                self.write(path, &self.blob(digest)?)
            }
            Err(error) => Err(self.failed(path)(error)),
        }
    }

    /// Makes a symbolic link, in the place of one that is there.
    pub(super) fn symlink(&self, target: &str, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let other = self.unused();
        self.remove(&other)?;
        self.step()
            .and_then(|()| self.root.symlink(Path::new(target), &other))
            .map_err(self.failed(path))?;
        self.rename(&other, path)
    }

    /// Makes a symbolic link under a name that must be free.
    pub(super) fn new_symlink(&self, target: &str, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        self.step()
            .and_then(|()| self.root.symlink(Path::new(target), path))
            .map_err(self.failed(path))
    }

    pub(super) fn link_target(&self, path: impl AsRef<Path>) -> Result<Option<String>> {
        let target = self.root.link_target(path.as_ref()).map_err(self.failed(path))?;
        Ok(target.and_then(|target| target.into_os_string().into_string().ok()))
    }

    pub(super) fn make_directory(&self, path: impl AsRef<Path>) -> Result<()> {
        self.root.make_directory(path.as_ref()).map_err(self.failed(path))
    }

    /// Removes a file or a link, if it is there.
    pub(super) fn remove(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        match self.step().and_then(|()| self.root.remove_file(path)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.failed(path)(error)),
            _ => Ok(()),
        }
    }

    /// Removes a directory of files and links, if it is there.
    pub(super) fn remove_directory(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        for name in self.root.names(path).map_err(self.failed(path))? {
            self.remove(path.join(name))?;
        }
        match self.step().and_then(|()| self.root.remove_directory(path)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.failed(path)(error)),
            _ => Ok(()),
        }
    }

    /// Removes what a process left that broke off.
    pub(super) fn remove_unfinished(&self) -> Result<()> {
        for name in self.root.names(Path::new(WRITING)).map_err(self.failed(WRITING))? {
            let path = Path::new(WRITING).join(name);
            match self.root.kind(&path).map_err(self.failed(&path))? {
                Some(FileKind::Directory) => self.remove_directory(&path)?,
                _ => self.remove(&path)?,
            }
        }
        Ok(())
    }

    /// A directory that has no name yet; it is filled, and then renamed.
    pub(super) fn begin_directory(&self) -> Result<PathBuf> {
        let path = self.unused();
        self.make_directory(&path)?;
        Ok(path)
    }
}

/// The path of a blob.
pub(super) fn blob_path(digest: &Digest) -> String {
    format!("{BLOBS}/{}", digest.path())
}

/// A file that is being written and has no name yet.
pub(super) struct Unnamed<'d> {
    disk: &'d Disk,
    path: PathBuf,
    out: Digesting<BufWriter<File>>,
}

/// A file that was written and has no name yet.
pub(super) struct Written<'d> {
    disk: &'d Disk,
    path: PathBuf,
    pub(super) digest: Digest,
    pub(super) length: u64,
}

impl<'d> Unnamed<'d> {
    /// Ends the file.
    pub(super) fn finish(self) -> Result<Written<'d>> {
        let done = self.out.finish();
        self.disk.bytes_written.fetch_add(done.length, Ordering::Relaxed);
        let mut file = done.inner;
        self.disk.step().and_then(|()| file.flush()).map_err(self.disk.failed(&self.path))?;
        Ok(Written { disk: self.disk, path: self.path, digest: done.digest, length: done.length })
    }

    /// Ends the file and opens it for those who made it; nobody else ever sees it.
    pub(super) fn reopen(self) -> Result<File> {
        let written = self.finish()?;
        let file = written.disk.open_file(&written.path)?;
        written.discard()?;
        Ok(file)
    }
}

impl Write for Unnamed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Written<'_> {
    /// Gives it its name.
    pub(super) fn name(self, path: impl AsRef<Path>) -> Result<()> {
        self.disk.rename(&self.path, path)
    }

    /// Makes it a blob.
    pub(super) fn into_blob(self) -> Result<Digest> {
        let path = blob_path(&self.digest);
        if self.disk.length(&path)? == Some(self.length) && self.disk.verify(&self.digest)? {
            let digest = self.digest;
            self.discard()?;
            return Ok(digest);
        }
        self.disk.rename(&self.path, path)?;
        Ok(self.digest)
    }

    pub(super) fn discard(self) -> Result<()> {
        self.disk.remove(&self.path)
    }
}

#[cfg(test)]
pub(super) mod faults {
    //! A disk that fails at a chosen step, and at all that follow, as for a process that ended.

    use std::io;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[derive(Default)]
    pub(in crate::mirror) struct Faults {
        steps: AtomicU64,
        /// The first step that fails, counted from 1; 0 for none.
        first: AtomicU64,
        is_full: std::sync::atomic::AtomicBool,
    }

    impl Faults {
        pub(in crate::mirror) fn fail_from(&self, step: u64) {
            self.first.store(step, Ordering::Relaxed);
            self.steps.store(0, Ordering::Relaxed);
        }

        pub(in crate::mirror) fn be_full(&self) {
            self.is_full.store(true, Ordering::Relaxed);
        }

        pub(super) fn step(&self) -> io::Result<()> {
            let step = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
            let first = self.first.load(Ordering::Relaxed);
            if first == 0 || step < first {
                return Ok(());
            }
            if self.is_full.load(Ordering::Relaxed) {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            Err(io::Error::other("the fault that the test asked for"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More names than ext4 allows a file.
    const NAMES: usize = 65_100;

    #[test]
    fn a_blob_can_have_more_names_than_the_file_system_allows() {
        let place = tempfile::tempdir().unwrap();
        let disk = Disk::open(place.path()).unwrap();
        let digest = disk.keep(b"the same").unwrap();
        for at in 0..NAMES {
            disk.link_blob(&digest, format!("names/{at}")).unwrap();
        }
        assert_eq!(disk.read(format!("names/{}", NAMES - 1)).unwrap(), b"the same");
        disk.link_blob(&digest, "names/0").unwrap();
    }
}
