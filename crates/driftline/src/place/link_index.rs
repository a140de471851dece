//! The link index of a place, opened when it is first needed.
//!
//! A data directory has its own files for it, which one process has open at a time: whoever
//! holds the directory. Of a directory that cannot be written nobody holds, its files are read
//! through a mirror of this process. A database has it in its rows. Invariant: it is opened
//! once in a process, however many ask for it.

use super::temporary::OwnDirectory;
use outputs::links::{LinkIndex, keys};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use store::datadir::Layout;
use store::dialect::Dialect;
use store::sorted::{EmbeddedMap, InRows, MapLocation, SortedMap, transfer};
use store::tables::settings;
use store::{Db, Error, Result};

/// The link index of a place.
pub struct PlaceLinkIndex {
    db: Db,
    files: IndexFiles,
    opened: Mutex<Option<LinkIndex>>,
}

/// Where the files of a link index are.
enum IndexFiles {
    /// It has none, or none that this process may open.
    None,
    /// In a directory that this process holds.
    Held(Layout),
    /// In a directory that cannot be written: a mirror of them is made when it is opened.
    ReadOnly(Layout, OnceLock<OwnDirectory>),
}

impl PlaceLinkIndex {
    /// Of a directory that this process holds, or of a database.
    pub fn new(db: &Db, layout: Option<&Layout>) -> PlaceLinkIndex {
        let files = layout.cloned().map_or(IndexFiles::None, IndexFiles::Held);
        PlaceLinkIndex { db: db.clone(), files, opened: Mutex::new(None) }
    }

    /// Of a directory that cannot be written.
    pub fn read_only(db: &Db, layout: &Layout) -> PlaceLinkIndex {
        let files = IndexFiles::ReadOnly(layout.clone(), OnceLock::new());
        PlaceLinkIndex { db: db.clone(), files, opened: Mutex::new(None) }
    }

    /// An index that is open already, wherever it is.
    #[cfg(test)]
    pub fn opened(db: &Db, index: LinkIndex) -> PlaceLinkIndex {
        PlaceLinkIndex { db: db.clone(), files: IndexFiles::None, opened: Mutex::new(Some(index)) }
    }

    pub fn open(&self) -> Result<LinkIndex> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = &*opened {
            return Ok(index.clone());
        }
        let map: Arc<dyn SortedMap> = match (&self.files, self.db.dialect()) {
            (IndexFiles::Held(layout), _) => self.open_files(layout)?,
            (IndexFiles::ReadOnly(layout, mirror), _) => self.open_mirror(layout, mirror)?,
            (IndexFiles::None, Dialect::Postgres) => Arc::new(InRows::new(&self.db)),
            (IndexFiles::None, Dialect::Sqlite) => {
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
        let place = MapLocation { path: layout.links(), families: keys::FAMILIES };
        let map: Arc<dyn SortedMap> = Arc::new(EmbeddedMap::open(&place)?);
        store::ours::claim(&place.path);
        let written = layout.written_links();
        if self.import(&*map, &written)? {
            std::fs::remove_file(&written).map_err(|error| Error::io(&written, error))?;
        }
        Ok(map)
    }

    /// A mirror of the files, and what a backup has brought is read into that.
    fn open_mirror(
        &self,
        layout: &Layout,
        mirror: &OnceLock<OwnDirectory>,
    ) -> Result<Arc<dyn SortedMap>> {
        let made = OwnDirectory::for_links();
        let made = made.map_err(|error| {
            Error::Refused(format!(
                "{} cannot be written, so its link index is read through files in a temporary \
                 directory, and none can be made: {error}; name another place with TMPDIR",
                layout.root().display()
            ))
        })?;
        // Not beside the directory's own lock: a map has one, too.
        let scratch = mirror.get_or_init(|| made).path().join("mirror");
        std::fs::create_dir_all(&scratch).map_err(|error| Error::io(&scratch, error))?;
        let place = MapLocation { path: layout.links(), families: keys::FAMILIES };
        let map: Arc<dyn SortedMap> = Arc::new(EmbeddedMap::open_mirror(&place, &scratch)?);
        self.import(&*map, &layout.written_links())?;
        Ok(map)
    }

    /// Reads in what a backup has written; `false` if it has written nothing.
    fn import(&self, map: &dyn SortedMap, written: &Path) -> Result<bool> {
        if !written.is_file() {
            return Ok(false);
        }
        let parts = self.db.read(settings::parts)?;
        transfer::import(map, keys::FAMILIES, parts, written)?;
        Ok(true)
    }

    /// Whether there is an index, or was never a need for one.
    fn is_there(&self) -> bool {
        match &self.files {
            IndexFiles::Held(layout) | IndexFiles::ReadOnly(layout, _) => layout.has_links(),
            IndexFiles::None => true,
        }
    }

    /// Writes it into a file; `false` if there is none.
    pub fn export(&self, path: &Path) -> Result<bool> {
        if !self.is_there() {
            return Ok(false);
        }
        let index = self.open()?;
        transfer::export(&**index.map(), keys::FAMILIES, index.parts(), path)?;
        Ok(true)
    }

    /// Copies it to another place, if there is one.
    pub fn copy_to(&self, target: &PlaceLinkIndex) -> Result<()> {
        if !self.is_there() {
            return Ok(());
        }
        let (from, to) = (self.open()?, target.open()?);
        transfer::copy(&**from.map(), &**to.map(), keys::FAMILIES, from.parts())
    }
}
