//! The link index of a place, opened when it is first needed.
//!
//! A data directory has its own files for it, which one process has open at a time: whoever
//! holds the directory. A database has it in its rows. Invariant: it is opened once in a
//! process, however many ask for it.

use outputs::links::{LinkIndex, keys};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use store::datadir::Layout;
use store::dialect::Dialect;
use store::sorted::{Embedded, InRows, Place, SortedMap, moving};
use store::tables::settings;
use store::{Db, Error, Result};

/// The link index of a place.
pub struct Linked {
    db: Db,
    /// Where its files are, if it has some that this process may open.
    files: Option<Layout>,
    opened: Mutex<Option<LinkIndex>>,
}

impl Linked {
    /// Of a directory that this process holds, or of a database.
    pub fn new(db: &Db, layout: Option<&Layout>) -> Linked {
        let files = layout.cloned();
        Linked { db: db.clone(), files, opened: Mutex::new(None) }
    }

    /// An index that is open already, wherever it is.
    #[cfg(test)]
    pub fn opened(db: &Db, index: LinkIndex) -> Linked {
        Linked { db: db.clone(), files: None, opened: Mutex::new(Some(index)) }
    }

    /// The index.
    pub fn open(&self) -> Result<LinkIndex> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = &*opened {
            return Ok(index.clone());
        }
        let map: Arc<dyn SortedMap> = match (&self.files, self.db.dialect()) {
            (Some(layout), _) => self.open_files(layout)?,
            (None, Dialect::Postgres) => Arc::new(InRows::new(&self.db)),
            (None, Dialect::Sqlite) => {
                return Err(Error::Refused(
                    "the link index can only be read by the process that holds the directory"
                        .into(),
                ));
            }
        };
        let index = LinkIndex::new(map, self.db.read(settings::parts)?);
        *opened = Some(index.clone());
        Ok(index)
    }

    /// The files, and what a backup has brought is read in first.
    fn open_files(&self, layout: &Layout) -> Result<Arc<dyn SortedMap>> {
        let place = Place { path: layout.links(), families: keys::FAMILIES };
        let map: Arc<dyn SortedMap> = Arc::new(Embedded::open(&place)?);
        let written = layout.written_links();
        if written.is_file() {
            let parts = self.db.read(settings::parts)?;
            moving::import(&*map, (keys::FAMILIES, parts), &written)?;
            std::fs::remove_file(&written).map_err(|error| Error::io(&written, error))?;
        }
        Ok(map)
    }

    /// Whether there is an index, or was never a need for one.
    fn is_there(&self) -> bool {
        self.files.as_ref().is_none_or(Layout::has_links)
    }

    /// Writes it into a file; `false` if there is none.
    pub fn export(&self, path: &Path) -> Result<bool> {
        if !self.is_there() {
            return Ok(false);
        }
        let index = self.open()?;
        moving::export(&**index.map(), (keys::FAMILIES, index.parts()), path)?;
        Ok(true)
    }

    /// Copies it to another place, if there is one.
    pub fn copy_to(&self, target: &Linked) -> Result<()> {
        if !self.is_there() {
            return Ok(());
        }
        let (from, to) = (self.open()?, target.open()?);
        moving::copy(&**from.map(), &**to.map(), (keys::FAMILIES, from.parts()))
    }
}
