//! Checking a mirror: every digest, every link, every cursor.
//!
//! Invariant: reads only; what is damaged is named, one problem a file.

use super::assembler::folders;
use super::assembler::listing::{self, Entry};
use super::digest::Digest;
use super::disk::BLOBS;
use super::{Mirror, assembler, generations, parser, reactor, spider, x_files};
use std::collections::HashSet;
use store::beneath::FileKind;
use store::{Error, Result};

/// Problems that are named; more of the same kind say nothing new.
const PROBLEMS_MAX: usize = 1_000;

/// What a check has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// Files whose bytes were read.
    pub files: u64,
    /// What is damaged, a sentence each.
    pub problems: Vec<String>,
}

/// Checks all of a mirror.
pub fn check(mirror: &Mirror) -> Result<Checked> {
    let _alone = mirror.stop_all();
    let mut checking = Checking { mirror, checked: Checked::default(), seen: HashSet::new() };
    checking.x_files()?;
    checking.cursors();
    checking.indexes();
    checking.blobs()?;
    checking.generations()?;
    Ok(checking.checked)
}

struct Checking<'m> {
    mirror: &'m Mirror,
    checked: Checked,
    /// Listings that were read.
    seen: HashSet<Digest>,
}

impl Checking<'_> {
    /// Notes what went wrong, and goes on.
    fn note<T>(&mut self, outcome: Result<T>) -> Option<T> {
        outcome.map_err(|error| self.problem(error.to_string())).ok()
    }

    fn problem(&mut self, problem: String) {
        if self.checked.problems.len() < PROBLEMS_MAX {
            self.checked.problems.push(problem);
        }
    }

    fn x_files(&mut self) -> Result<()> {
        let numbers = x_files::numbers(&self.mirror.disk)?;
        for pair in numbers.windows(2).filter(|pair| pair[0] + 1 != pair[1]) {
            self.problem(format!("x-files between {} and {} are missing", pair[0], pair[1]));
        }
        for number in numbers {
            let read = x_files::digests(&self.mirror.disk, number, &mut |_| {});
            self.note(read);
            self.checked.files += 1;
        }
        for number in x_files::snapshots(&self.mirror.disk)? {
            let read = x_files::snapshot_digests(&self.mirror.disk, number, &mut |_| {});
            self.note(read);
            self.checked.files += 1;
        }
        Ok(())
    }

    fn cursors(&mut self) {
        let newest = x_files::newest(&self.mirror.disk);
        let newest = self.note(newest).unwrap_or(0);
        let cursors = [
            ("spider", spider::cursor(self.mirror).map(|it| it.number)),
            ("parser", parser::cursor(self.mirror)),
            ("reactor", reactor::cursor(self.mirror).map(|it| it.number)),
            ("assembler", assembler::cursor(self.mirror).map(|it| it.number)),
        ];
        for (module, cursor) in cursors {
            if let Some(number) = self.note(cursor)
                && number > newest
            {
                self.problem(format!(
                    "the cursor of the {module} is at {number}, and the newest x-file is {newest}"
                ));
            }
        }
    }

    fn indexes(&mut self) {
        let mut needed = Vec::new();
        let found = spider::digests(self.mirror, &mut |digest| needed.push(*digest));
        self.note(found);
        let found = reactor::digests(self.mirror, &mut |digest| needed.push(*digest));
        self.note(found);
        needed.sort_unstable();
        needed.dedup();
        for digest in needed {
            self.blob_is_there(&digest);
        }
    }

    fn blob_is_there(&mut self, digest: &Digest) {
        let path = super::disk::blob_path(digest);
        let place = self.mirror.disk.place(&path).display().to_string();
        match self.mirror.disk.length(&path) {
            Ok(Some(_)) => {}
            Ok(None) => self.problem(format!("{place} is missing")),
            Err(error) => self.problem(error.to_string()),
        }
    }

    fn blobs(&mut self) -> Result<()> {
        let disk = &self.mirror.disk;
        for folder in disk.names(BLOBS)? {
            for name in disk.names(format!("{BLOBS}/{folder}"))? {
                let path = format!("{BLOBS}/{folder}/{name}");
                let read =
                    match Digest::parse(&name).filter(|it| it.path() == path[BLOBS.len() + 1..]) {
                        Some(digest) => disk.blob(&digest).map(drop),
                        None => Err(Error::corrupt(
                            disk.place(&path).display().to_string(),
                            "it is no blob of a mirror",
                        )),
                    };
                self.note(read);
                self.checked.files += 1;
            }
        }
        Ok(())
    }

    fn generations(&mut self) -> Result<()> {
        let generations = generations::list(self.mirror);
        for generation in self.note(generations).unwrap_or_default() {
            if let Some(root) = self.note(generation.root()) {
                self.tree(root);
            }
        }
        Ok(())
    }

    /// Checks the folders of a generation that no other has shown yet.
    fn tree(&mut self, root: Digest) {
        let mut open = vec![root];
        while let Some(digest) = open.pop() {
            if !self.seen.insert(digest) {
                continue;
            }
            let read = listing::read(&self.mirror.disk, &digest);
            let Some(listing) = self.note(read) else { continue };
            self.checked.files += 1;
            for (name, entry) in &listing {
                let path = format!("{}/{name}", folders::path(&digest));
                self.entry(&path, *entry);
                if let Entry::Folder(folder) = entry {
                    open.push(*folder);
                }
            }
        }
    }

    /// Checks what a name in a folder stands for.
    fn entry(&mut self, path: &str, entry: Entry) {
        let disk = &self.mirror.disk;
        let place = disk.place(path).display().to_string();
        match entry {
            Entry::File(digest) => {
                let blob = disk.length(super::disk::blob_path(&digest));
                let file = disk.length(path);
                let (Some(blob), Some(file)) = (self.note(blob), self.note(file)) else { return };
                if file.is_none() || blob.is_some() && blob != file {
                    self.problem(format!("{place} is missing or has another length than its blob"));
                }
            }
            Entry::Folder(digest) => {
                let target = disk.link_target(path);
                let is_there = disk.kind(folders::path(&digest));
                let Some(target) = self.note(target) else { return };
                let Some(kind) = self.note(is_there) else { return };
                if target != Some(format!("../{digest}")) || kind != Some(FileKind::Directory) {
                    self.problem(format!("{place} does not lead to its folder"));
                }
            }
        }
    }
}
