//! Serves searches: opens what is published of every shard, and newer versions as they
//! appear.
//!
//! Knows versions and objects alone, not who builds them. Invariants: an answer is of one
//! version of every shard; a version is opened beside the one that answers, which goes on
//! answering until the other is ready, however long its files take to come; at most one
//! opens at a time; no file is opened that is not what was published, and an index with such a
//! file answers nothing until it is made anew.

use super::file_checks::{self, CheckedFiles};
use super::files::VersionFiles;
use super::schema::{Fields, analysers};
use super::writer::{Cursors, failed};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::ids::{CommitNumber, Part};
use store::objects::{ObjectPath, Objects};
use store::panics::caught;
use store::tables::cursors::{self, Lag};
use store::tables::settings::PARTS_MAX;
use store::tables::shards::{self, File};
use store::{Db, Error, Result};
use tantivy::directory::MmapDirectory;
use tantivy::{Index, ReloadPolicy, Searcher};

/// How often a version is looked up again whose files were collected meanwhile.
const TRIES_MAX: usize = 5;
/// How long nobody tries again to fetch a version after it could not be fetched.
const FETCH_PAUSE: Duration = Duration::from_secs(1);

/// All shards as they are at one moment.
#[derive(Clone, Default)]
pub struct Shards {
    opened: Arc<BTreeMap<Part, OpenedShard>>,
}

/// A shard that was opened.
#[derive(Clone)]
struct OpenedShard {
    version: i64,
    searcher: Searcher,
    /// The commits that are in.
    cursors: Cursors,
}

impl Shards {
    /// Who searches each shard.
    pub fn searchers(&self) -> impl Iterator<Item = &Searcher> {
        self.opened.values().map(|it| &it.searcher)
    }

    /// Documents in all of them.
    pub fn documents(&self) -> u64 {
        self.searchers().map(Searcher::num_docs).sum()
    }

    /// The last commit of each part that is in.
    fn reached(&self) -> BTreeMap<Part, CommitNumber> {
        self.opened.values().flat_map(|it| it.cursors.parts()).collect()
    }

    fn are(&self, versions: &[(Part, i64)]) -> bool {
        let is_opened = |(part, version): &(Part, i64)| {
            self.opened.get(part).is_some_and(|it| it.version == *version)
        };
        versions.len() == self.opened.len() && versions.iter().all(is_opened)
    }
}

/// What a question is answered from.
#[allow(missing_docs)]
pub struct ServedIndex {
    pub shards: Shards,
    /// How far they are behind the crawl.
    pub lag: Lag,
}

/// Opens published shards, keeps them up to date and answers questions from them.
#[allow(missing_docs)]
pub struct SearchServer {
    pub fields: Fields,
    opener: Arc<Opener>,
    /// The thread that fetches a version, if there was one.
    fetching: Mutex<Option<JoinHandle<()>>>,
    /// The versions that were read again because the library panicked.
    suspected: Mutex<Vec<(Part, i64)>>,
}

impl SearchServer {
    /// A server that has opened nothing yet.
    pub fn new(db: Db, objects: Objects, cache: PathBuf) -> SearchServer {
        SearchServer::knowing(db, objects, cache, CheckedFiles::default())
    }

    /// The same, with what whoever writes the index in this process knows of its files.
    pub fn knowing(
        db: Db,
        objects: Objects,
        cache: PathBuf,
        checked: CheckedFiles,
    ) -> SearchServer {
        let (shards, places, failed_at, is_over) = Default::default();
        let opener = Opener { db, objects, cache, shards, places, checked, failed_at, is_over };
        let (fields, fetching, suspected) = Default::default();
        SearchServer { fields, opener: Arc::new(opener), fetching, suspected }
    }

    /// What was opened last.
    pub fn shards(&self) -> Shards {
        self.opener.shards()
    }

    /// Opens what is newer than what was opened, and returns all. Waits until all of it is
    /// there.
    pub fn refresh(&self) -> Result<Shards> {
        self.opener.refresh()
    }

    /// What a question is answered from. If something newer is published that has to be
    /// fetched, this is what was opened before, and the newer one is fetched beside.
    pub fn current(&self, now_ms: i64) -> Result<ServedIndex> {
        let read = move |tx: &mut store::Tx<'_>| {
            let versions = shards::versions(tx, PARTS_MAX)?;
            Ok((versions, cursors::lag(tx, cursors::SEARCH, now_ms)?))
        };
        let (versions, lag) = self.opener.db.read(read)?;
        let before = self.shards();
        if before.are(&versions) {
            return Ok(ServedIndex { shards: before, lag });
        }
        // With nothing to answer from, the first question waits.
        let shards = match before.opened.is_empty() {
            true => self.refresh()?,
            false => self.catch_up()?,
        };
        let (opened, reached) = (shards.clone(), shards.reached());
        let lag = self.opener.db.read(move |tx| {
            // How far the newest version is, its cursor says, whatever was published with it.
            match opened.are(&shards::versions(tx, PARTS_MAX)?) {
                true => cursors::lag(tx, cursors::SEARCH, now_ms),
                false => cursors::lag_behind(tx, &reached, now_ms),
            }
        })?;
        Ok(ServedIndex { shards, lag })
    }

    /// Opens what is newer if its files are here; otherwise has them fetched, without waiting
    /// for it. Returns what is opened now.
    pub fn catch_up(&self) -> Result<Shards> {
        match self.opener.is_local()? {
            true => self.opener.refresh_unless_busy(),
            false => {
                self.fetch_beside()?;
                Ok(self.shards())
            }
        }
    }

    /// Fetches newer versions on a thread of its own, unless one is at it, or has failed just
    /// now. Whoever waits for [`Self::refresh`] hears why.
    fn fetch_beside(&self) -> Result<()> {
        let mut fetching = self.fetching.lock().unwrap_or_else(PoisonError::into_inner);
        let is_busy = fetching.as_ref().is_some_and(|thread| !thread.is_finished());
        if is_busy || self.opener.is_resting() {
            return Ok(());
        }
        let opener = self.opener.clone();
        let thread = std::thread::Builder::new().name("search-fetch".into()).spawn(move || {
            let is_failed = opener.refresh().is_err();
            *opener.failed_at() = is_failed.then(Instant::now);
        });
        *fetching = Some(thread.map_err(|error| Error::io("search-fetch", error))?);
        Ok(())
    }
}

impl Drop for SearchServer {
    /// The thread ends behind the file that it fetches. It is not waited for: a store that does
    /// not answer would hold up the end of the process.
    fn drop(&mut self) {
        self.opener.is_over.store(true, Ordering::Relaxed);
    }
}

/// Opens versions of shards.
struct Opener {
    db: Db,
    objects: Objects,
    /// Where objects are brought that cannot be read where they are.
    cache: PathBuf,
    shards: RwLock<Shards>,
    /// Directories of files, by shard; whoever has it opens versions.
    places: Mutex<Places>,
    /// Files that are known to be what was published.
    checked: CheckedFiles,
    /// When versions could not be fetched.
    failed_at: Mutex<Option<Instant>>,
    /// Whether nobody needs them any more.
    is_over: AtomicBool,
}

type Places = HashMap<Part, MmapDirectory>;

impl Opener {
    fn shards(&self) -> Shards {
        self.shards.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn failed_at(&self) -> MutexGuard<'_, Option<Instant>> {
        self.failed_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether fetching has failed just now.
    fn is_resting(&self) -> bool {
        self.failed_at().is_some_and(|at| at.elapsed() < FETCH_PAUSE)
    }

    /// Whether files of shards can be read where they are.
    fn is_local(&self) -> Result<bool> {
        Ok(self.objects.file_of(&ObjectPath::parse("shards/0")?).is_some())
    }

    fn refresh(&self) -> Result<Shards> {
        self.open_newer(&mut self.places.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Opens what is newer; if somebody is at it, what was opened before will do.
    fn refresh_unless_busy(&self) -> Result<Shards> {
        match self.places.try_lock() {
            Ok(mut places) => self.open_newer(&mut places),
            Err(TryLockError::Poisoned(places)) => self.open_newer(&mut places.into_inner()),
            Err(TryLockError::WouldBlock) => Ok(self.shards()),
        }
    }

    fn open_newer(&self, places: &mut Places) -> Result<Shards> {
        let versions = self.db.read(|tx| shards::versions(tx, PARTS_MAX))?;
        let before = self.shards();
        if before.are(&versions) {
            return Ok(before);
        }
        let mut opened = BTreeMap::new();
        for (part, version) in versions {
            let known = before.opened.get(&part).filter(|it| it.version == version);
            let found = match known {
                Some(known) => Some(known.clone()),
                None => self.open(part, places)?,
            };
            opened.extend(found.map(|it| (part, it)));
        }
        let now = Shards { opened: Arc::new(opened) };
        *self.shards.write().unwrap_or_else(PoisonError::into_inner) = now.clone();
        Ok(now)
    }

    /// Opens the newest version of a shard, if there is one.
    fn open(&self, part: Part, places: &mut Places) -> Result<Option<OpenedShard>> {
        let mut tries = 0;
        loop {
            let read = move |tx: &mut store::Tx<'_>| {
                Ok((shards::current(tx, part)?, shards::files(tx, part)?))
            };
            let (Some(shard), files) = self.db.read(read)? else { return Ok(None) };
            let at = self.place(part)?;
            let outcome = self.names(part, &at, &files).and_then(|names| {
                let place = match places.get(&part) {
                    Some(place) => place.clone(),
                    None => {
                        let place = MmapDirectory::open(&at);
                        let place = place.map_err(|error| failed(&at, error.into()))?;
                        places.insert(part, place.clone());
                        place
                    }
                };
                let files = VersionFiles::new(place, names, &shard.description.meta);
                let opened = caught(|| searcher(&at, files));
                let opened = opened.map_err(|panic| file_checks::panicked(part, &panic)).flatten();
                opened.map(|(searcher, cursors)| OpenedShard {
                    version: shard.version,
                    searcher,
                    cursors,
                })
            });
            match outcome {
                Ok(opened) => return Ok(Some(opened)),
                // Somebody was faster: what was looked up is not the newest any more.
                Err(_) if tries < TRIES_MAX && self.is_newer(part, shard.version)? => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn is_newer(&self, part: Part, version: i64) -> Result<bool> {
        let now = self.db.read(move |tx| shards::current(tx, part))?;
        Ok(now.is_none_or(|it| it.version != version))
    }

    /// The directory that has a shard's files.
    fn place(&self, part: Part) -> Result<PathBuf> {
        let name = ObjectPath::parse(&format!("shards/{part}"))?;
        let at = self.objects.file_of(&name).unwrap_or_else(|| self.cache.join(part.0.to_string()));
        fs::create_dir_all(&at).map_err(|error| Error::io(&at, error))?;
        Ok(at)
    }

    /// The names of files there. Those in a bucket are brought, and those that are not
    /// needed any more are removed.
    fn names(&self, part: Part, at: &Path, files: &[File]) -> Result<HashMap<PathBuf, PathBuf>> {
        let mut names = HashMap::new();
        for file in files {
            let path = ObjectPath::parse(&file.path)?;
            let name = name_of(file).to_owned();
            let is_copy = self.objects.file_of(&path).is_none();
            if is_copy && self.checked.check(part, file, &at.join(&name)).is_err() {
                if self.is_over.load(Ordering::Relaxed) {
                    let reason = "the search server has ended".to_owned();
                    return Err(Error::Conflict { reason });
                }
                let coming = at.join(format!("{name}.coming"));
                let _ = fs::remove_file(&coming);
                self.objects.fetch_file(&path, &coming)?;
                fs::rename(&coming, at.join(&name)).map_err(|error| Error::io(at, error))?;
            }
            self.checked.check(part, file, &at.join(&name))?;
            names.insert(PathBuf::from(&file.name), PathBuf::from(name));
        }
        self.checked.keep(part, files);
        if !at.starts_with(&self.cache) {
            return Ok(names);
        }
        for entry in fs::read_dir(at).into_iter().flatten().flatten() {
            if !names.values().any(|name| *name == *entry.file_name()) {
                // Whoever has it open goes on reading it.
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(names)
    }
}

impl SearchServer {
    /// Reads every file of what is published, whatever is known of it, and tells which are not
    /// what was published. Returns how many.
    pub fn verify_files(&self, report: &mut dyn FnMut(&str)) -> Result<u64> {
        let mut damaged = 0;
        for (part, _) in self.opener.db.read(|tx| shards::versions(tx, PARTS_MAX))? {
            for file in self.opener.db.read(move |tx| shards::files(tx, part))? {
                match self.verify_file(part, &file) {
                    Err(error @ Error::Corrupt { .. }) => {
                        damaged += 1;
                        report(&error.to_string());
                    }
                    read => read?,
                }
            }
        }
        Ok(damaged)
    }

    /// Reads the object of a file: what others would be brought, whatever is here.
    fn verify_file(&self, part: Part, file: &File) -> Result<()> {
        let path = ObjectPath::parse(&file.path)?;
        if let Some(at) = self.opener.objects.file_of(&path) {
            return file_checks::read_whole(part, file, &at);
        }
        file_checks::compare(part, file, &self.opener.objects.get(&path)?)
    }

    /// Runs a question. If the library panics over it or calls the index damaged, the files that
    /// answer are read again, once for each version: either one of them is damaged, and named, or
    /// the library has a bug.
    pub fn guarded<T, E>(
        &self,
        is_damage: impl FnOnce(&E) -> bool,
        answer: impl FnOnce() -> std::result::Result<T, E>,
    ) -> Result<std::result::Result<T, E>> {
        match caught(answer) {
            Ok(Err(error)) if is_damage(&error) => {
                self.read_again()?;
                Ok(Err(error))
            }
            Ok(answered) => Ok(answered),
            Err(panic) => {
                self.read_again()?;
                let reason = format!("the search library failed over this question ({panic})");
                Err(Error::Internal { reason })
            }
        }
    }

    /// Reads the files that answer, if they are suspected for the first time; fails with the name
    /// of one that is damaged.
    fn read_again(&self) -> Result<()> {
        let versions: Vec<(Part, i64)> =
            self.shards().opened.iter().map(|(part, it)| (*part, it.version)).collect();
        let mut suspected = self.suspected.lock().unwrap_or_else(PoisonError::into_inner);
        if *suspected != versions {
            for (part, _) in &versions {
                let (part, at) = (*part, self.opener.place(*part)?);
                for file in self.opener.db.read(move |tx| shards::files(tx, part))? {
                    file_checks::read_whole(part, &file, &at.join(name_of(&file)))?;
                }
            }
            *suspected = versions;
        }
        Ok(())
    }
}

/// The name of a file where it is served from.
fn name_of(file: &File) -> &str {
    file.path.rsplit('/').next().unwrap_or(&file.path)
}

/// A version of a shard, opened, and the commits that are in.
fn searcher(at: &Path, files: VersionFiles) -> Result<(Searcher, Cursors)> {
    let mut index = Index::open(files).map_err(|error| failed(at, error))?;
    index.set_tokenizers(analysers());
    let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into();
    let reader: tantivy::IndexReader = reader.map_err(|error| failed(at, error))?;
    let meta = index.load_metas().map_err(|error| failed(at, error))?;
    Ok((reader.searcher(), Cursors::of_payload(at, meta.payload.as_deref())?))
}
