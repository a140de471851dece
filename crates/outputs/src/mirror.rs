//! A mirror on disk: a browsable copy of a site that is brought up to date by numbered x-files.
//!
//! Four modules work one after the other, each at a cursor of its own, and meet in x-files only:
//! [`spider`] takes in what was fetched and publishes it, [`parser`] makes articles, [`reactor`]
//! what the mirror shows, [`assembler`] generations of the webroot. What a file holds, and what
//! it is called, is computed by `page::mirror`; `docs/decisions/mirror.md` says where things are
//! and why that is safe. Relies on [`disk`] for all that is written. Invariant: whenever the
//! process ends, the webroot shows one whole generation, and running the modules again goes on
//! where they were, with the same bytes.

pub mod assembler;
pub mod check;
mod cursor;
mod digest;
mod disk;
pub mod generations;
mod kind;
mod lists;
mod lock;
pub mod parser;
pub mod reactor;
mod sealed;
pub mod settings;
mod sorter;
pub mod spider;
pub mod sweep;
#[cfg(test)]
mod tests;
mod threads;
mod versions;
mod x_files;

pub use self::digest::Digest;
pub use self::settings::{MirrorSettings, Names};

use self::disk::Disk;
use self::lock::Lock;
use page::mirror::rules::Rules;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak,
};
use store::{Error, Result};

/// The site's rules; read, never written.
const RULES: &str = "rules.toml";
/// What the mirror was told last, for whoever opens it by its directory alone.
const SETTINGS: &str = "settings.toml";

/// An open mirror. Its process is the only one that works on it.
pub struct Mirror {
    disk: Disk,
    settings: MirrorSettings,
    rules: Option<SiteRules>,
    /// Modules hold it to read, sweeping to write.
    work: RwLock<()>,
    spider: Mutex<()>,
    /// Held while an entry of the journal gets its number.
    journal: Mutex<()>,
    parser: Mutex<()>,
    reactor: Mutex<()>,
    assembler: Mutex<()>,
    // Dropped last.
    _lock: Lock,
}

/// The site's rules, if it has some.
struct SiteRules {
    rules: Rules,
    digest: Digest,
}

/// How far a module has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// The x-file that its results are as of; 0 before the first.
    pub number: u64,
    /// X-files that were applied.
    pub x_files: u64,
    /// Nodes or files that were made anew.
    pub changed: u64,
}

/// The right to work as one of the modules.
struct Working<'m> {
    _work: RwLockReadGuard<'m, ()>,
    _module: MutexGuard<'m, ()>,
}

impl Mirror {
    /// Opens the mirror in a directory, which is made if it is not there.
    pub fn open(dir: &Path, settings: &MirrorSettings) -> Result<Mirror> {
        let disk = Disk::open(dir)?;
        let lock = Lock::take(dir)?;
        disk.remove_unfinished()?;
        keep_settings(&disk, settings)?;
        let rules = read_rules(&disk)?;
        Ok(Mirror {
            disk,
            settings: settings.clone(),
            rules,
            work: RwLock::new(()),
            spider: Mutex::new(()),
            journal: Mutex::new(()),
            parser: Mutex::new(()),
            reactor: Mutex::new(()),
            assembler: Mutex::new(()),
            _lock: lock,
        })
    }

    /// Opens a mirror that is there, with the settings that it was given last.
    pub fn reopen(dir: &Path) -> Result<Mirror> {
        let path = dir.join(SETTINGS);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Error::Refused(format!("there is no mirror in {}", dir.display())));
            }
            Err(error) => return Err(Error::io(path, error)),
        };
        let settings: MirrorSettings = toml::from_str(&text)
            .map_err(|error| Error::Refused(format!("{}: {error}", path.display())))?;
        Mirror::open(dir, &settings)
    }

    /// The mirror in a directory as this process has it open already, or opened now.
    ///
    /// Connections of several parts work on one mirror at the same time.
    pub fn open_shared(dir: &Path, settings: &MirrorSettings) -> Result<Arc<Mirror>> {
        static OPEN: Mutex<BTreeMap<PathBuf, Weak<Mirror>>> = Mutex::new(BTreeMap::new());
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, mirror| mirror.strong_count() > 0);
        let known = open.get(dir).and_then(Weak::upgrade);
        if let Some(mirror) = known.filter(|mirror| mirror.settings == *settings) {
            return Ok(mirror);
        }
        let mirror = Arc::new(Mirror::open(dir, settings)?);
        open.insert(dir.to_owned(), Arc::downgrade(&mirror));
        Ok(mirror)
    }

    /// Bytes that were written into files since it was opened.
    pub fn bytes_written(&self) -> u64 {
        self.disk.bytes_written()
    }

    fn rules(&self) -> Option<&Rules> {
        self.rules.as_ref().map(|it| &it.rules)
    }

    fn rules_digest(&self) -> Option<Digest> {
        self.rules.as_ref().map(|it| it.digest)
    }

    /// Who answers for it, as its x-files say.
    fn editor(&self) -> String {
        let editor = self.rules().map(|rules| &rules.editor).filter(|it| !it.is_empty());
        editor.unwrap_or(&self.settings.editor).clone()
    }

    /// What its site is, as its x-files say.
    fn info(&self) -> String {
        self.rules().map(|rules| rules.info.clone()).unwrap_or_default()
    }

    fn begin<'m>(&'m self, module: &'m Mutex<()>) -> Working<'m> {
        // Nothing that a panic could have left half done is in memory.
        Working {
            _work: self.work.read().unwrap_or_else(PoisonError::into_inner),
            _module: module.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Deliveries come from several threads, and beside the modules.
    fn begin_delivery(&self) -> RwLockReadGuard<'_, ()> {
        self.work.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop_all(&self) -> RwLockWriteGuard<'_, ()> {
        self.work.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes the settings, unless they are what is there.
fn keep_settings(disk: &Disk, settings: &MirrorSettings) -> Result<()> {
    let text = toml::to_string(settings).map_err(|error| Error::invariant(error.to_string()))?;
    if disk.read_if_there(SETTINGS)?.is_some_and(|known| known == text.as_bytes()) {
        return Ok(());
    }
    disk.write_durably(SETTINGS, text.as_bytes())
}

fn read_rules(disk: &Disk) -> Result<Option<SiteRules>> {
    let Some(bytes) = disk.read_if_there(RULES)? else { return Ok(None) };
    let refused = |why: String| Error::Refused(format!("{}: {why}", disk.place(RULES).display()));
    let text = String::from_utf8(bytes).map_err(|error| refused(error.to_string()))?;
    let rules = Rules::parse(&text).map_err(|error| refused(error.to_string()))?;
    let digest = rules.digest().into();
    Ok(Some(SiteRules { rules, digest }))
}
