//! Loads one file: one thread reads and judges its records, another applies them in batches.
//!
//! With every batch the index keeps the [`FileMark`] behind its last record. Invariants: what
//! a mark stands for is applied, so that whatever ends the process, the next load goes on
//! behind the last batch and comes to the same; what is in memory is three batches at most;
//! what can be read before a damage is loaded.

use super::mark::{self, FileMark};
use super::records::{ConversionRules, RecordMeaning};
use super::source::SourceFile;
use ::crawl::connectors::warc::archive::stream::Spot;
use outputs::links::index::AppliedChanges;
use outputs::links::{ChangeBatch, LinkIndex, Mark, What, follow};
use page::domain::SuffixList;
use page::outlinks::LinkPolicy;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;
use store::tables::leases::Lease;

/// Batches that wait for their turn: one, so that reading and applying go on side by side.
const WAITING_MAX: usize = 1;
/// How often it is looked whether to stop while a batch is being read.
const GLANCE: Duration = Duration::from_millis(100);
/// How often progress is told, in records.
const TELL_EVERY: u64 = 64;

/// What a batch holds at most.
#[derive(Debug, Clone, Copy)]
pub struct BatchLimits {
    pub pages: usize,
    /// Links: a batch is closed by the page that brings it there.
    pub links: usize,
    /// Records, also those that mean nothing: passing over them is work, too.
    pub records: u64,
}

impl Default for BatchLimits {
    fn default() -> BatchLimits {
        BatchLimits { pages: follow::PAGES_MAX, links: follow::LINKS_MAX, records: 100_000 }
    }
}

/// What loading works with.
pub struct LoadContext<'a> {
    pub index: &'a LinkIndex,
    /// The leases of its parts, if others may change it, too.
    pub leases: &'a [Lease],
    pub list: &'a SuffixList,
    pub policy: LinkPolicy,
    /// Whether to begin at the beginning, whatever was loaded.
    pub again: bool,
    /// What a batch holds.
    pub limits: BatchLimits,
    /// Whether to stop, after so many batches.
    pub stop: &'a dyn Fn(u64) -> bool,
    /// Who is told of progress.
    pub watch: &'a (dyn Fn(&Read) + Sync),
}

/// What was read of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Read {
    pub records: u64,
    /// Records that cannot be read.
    pub unreadable: u64,
    /// Captures of pages that were there.
    pub pages: u64,
    /// Captures of pages that were not.
    pub gone: u64,
    /// Links of the pages.
    pub links: u64,
    /// Bytes of the file that are behind, as far as is known.
    pub offset: u64,
}

impl Read {
    fn with(self, other: Read) -> Read {
        Read {
            records: self.records + other.records,
            unreadable: self.unreadable + other.unreadable,
            pages: self.pages + other.pages,
            gone: self.gone + other.gone,
            links: self.links + other.links,
            offset: other.offset,
        }
    }
}

/// What became of a file.
#[derive(Debug)]
pub struct LoadedFile {
    /// Records that were loaded by an earlier process.
    pub before: u64,
    /// What was read and is in the index.
    pub read: Read,
    /// What it came to.
    pub applied: AppliedChanges,
    pub ended: LoadOutcome,
}

/// How loading a file ended.
#[derive(Debug, PartialEq, Eq)]
pub enum LoadOutcome {
    /// All of it is in the index.
    Finished,
    /// All of it was already.
    Already,
    Stopped,
    /// It is damaged, or cannot be read.
    Failed(String),
}

/// Loads a file, or goes on with it. An error is one of the index.
pub fn load(context: &LoadContext<'_>, source: &SourceFile) -> store::Result<LoadedFile> {
    let key = mark::key(&source.path);
    let kept = context.index.file_mark(&key)?.filter(|_| !context.again);
    let kept = kept.and_then(|kept| FileMark::read(&kept, source.stamp, context.policy));
    let mark = kept.unwrap_or_else(|| FileMark::new(source.stamp, context.policy));
    let mut loaded = LoadedFile {
        before: mark.records,
        read: Read::default(),
        applied: AppliedChanges::default(),
        ended: LoadOutcome::Stopped,
    };
    if mark.finished {
        loaded.ended = LoadOutcome::Already;
        return Ok(loaded);
    }
    let rules =
        ConversionRules { policy: context.policy, list: context.list, is_wat: source.is_wat };
    let (send, filled) = sync_channel(WAITING_MAX);
    let over = AtomicBool::new(false);
    let (limits, watch, over) = (context.limits, context.watch, &over);
    std::thread::scope(|scope| {
        let filling = FileLoader {
            source,
            rules,
            limits,
            watch,
            key,
            over,
            send,
            mark,
            full: Full::default(),
        };
        scope.spawn(move || filling.run());
        let outcome = apply(context, &filled, &mut loaded);
        // The reader is waited for, and must neither read on nor wait for its turn.
        over.store(true, Ordering::SeqCst);
        drop(filled);
        outcome
    })?;
    Ok(loaded)
}

/// Applies what was read until there is no more, or somebody says stop.
fn apply(
    context: &LoadContext<'_>,
    filled: &std::sync::mpsc::Receiver<Full>,
    loaded: &mut LoadedFile,
) -> store::Result<()> {
    let mut batches = 0;
    loop {
        if (context.stop)(batches) {
            return Ok(());
        }
        let full = match filled.recv_timeout(GLANCE) {
            Ok(full) => full,
            Err(RecvTimeoutError::Timeout) => continue,
            // It has panicked, which the end of its scope tells.
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        let applied = context.index.apply(full.batch, context.leases)?;
        loaded.applied = loaded.applied.with(applied);
        loaded.read = loaded.read.with(full.read);
        batches += 1;
        if let Some(ended) = full.ended {
            loaded.ended = ended;
            return Ok(());
        }
    }
}

/// A batch, and what was read for it.
#[derive(Default)]
struct Full {
    batch: ChangeBatch,
    read: Read,
    /// Set with the last one.
    ended: Option<LoadOutcome>,
}

/// Reads a file, batch by batch.
struct FileLoader<'a> {
    source: &'a SourceFile,
    rules: ConversionRules<'a>,
    limits: BatchLimits,
    watch: &'a (dyn Fn(&Read) + Sync),
    key: Vec<u8>,
    over: &'a AtomicBool,
    send: SyncSender<Full>,
    mark: FileMark,
    full: Full,
}

impl FileLoader<'_> {
    fn run(mut self) {
        let mut all = Read::default();
        let items = match self.source.open(self.mark.spot()) {
            Ok(items) => items,
            Err(fault) => return self.fail(&fault.to_string()),
        };
        for found in items {
            if self.over.load(Ordering::SeqCst) {
                return;
            }
            let (item, behind) = match found {
                Ok(found) => found,
                Err(fault) => return self.fail(&fault.to_string()),
            };
            self.take(self.rules.judge(&item), behind);
            if self.is_full() {
                all = all.with(self.full.read);
                if !self.pass_on() {
                    return;
                }
            }
            if self.mark.records.is_multiple_of(TELL_EVERY) {
                (self.watch)(&all.with(Read { offset: behind.offset, ..self.full.read }));
            }
        }
        self.mark.finished = true;
        self.full.ended = Some(LoadOutcome::Finished);
        self.pass_on();
    }

    fn take(&mut self, meaning: RecordMeaning, behind: Spot) {
        self.mark.step(behind);
        let read = &mut self.full.read;
        read.records += 1;
        read.offset = behind.offset;
        match meaning {
            RecordMeaning::Nothing => {}
            RecordMeaning::Unreadable => read.unreadable += 1,
            RecordMeaning::Change(change) => {
                match &change.what {
                    What::Page(content) => {
                        read.pages += 1;
                        read.links += content.links.len() as u64;
                    }
                    What::Gone(_) | What::Missing { .. } | What::Seen => read.gone += 1,
                }
                self.full.batch.changes.push(*change);
            }
        }
    }

    fn is_full(&self) -> bool {
        let Full { batch, read, .. } = &self.full;
        batch.changes.len() >= self.limits.pages
            || read.links >= self.limits.links as u64
            || read.records >= self.limits.records
    }

    /// Passes the batch on with its mark. `false` if nobody wants it any more.
    fn pass_on(&mut self) -> bool {
        let mut full = std::mem::take(&mut self.full);
        // In an archive captures come as they were crawled, and several crawls may be in
        // one; for the index they come in the order they happened.
        full.batch.changes.sort_by_key(|change| change.date_ms);
        let (key, value) = (self.key.clone(), self.mark.encode());
        full.batch.marks.push(Mark::File { key, value });
        self.send.send(full).is_ok()
    }

    /// Passes on what was read before the damage, and says where that is.
    fn fail(mut self, reason: &str) {
        let Spot { offset, passed } = self.mark.spot();
        let place = if passed == 0 { "at" } else { "behind" };
        let number = self.mark.records + 1;
        self.full.ended = Some(LoadOutcome::Failed(format!(
            "record {number}, {place} byte {offset}, cannot be read: {reason}; everything before \
             it is loaded; get an intact copy of the file and load that"
        )));
        self.pass_on();
    }
}
