//! A place that this process works on: its rows, its objects, and its indexes.
//!
//! Invariant: a data directory is held by one process at a time, and as long as anything of it
//! is used.

use super::link_index::PlaceLinkIndex;
use super::search_index::PlaceSearchIndex;
use crate::catalog;
use crate::verbs::context::VerbContext;
use crate::verbs::crawl::hosted_runs::HostedCrawls;
use outputs::links::LinkIndex;
use outputs::rights::Claimant;
use outputs::search::shard::PublishContext;
use std::path::Path;
use std::sync::Arc;
use store::datadir::{DataDir, Layout};
use store::objects::{Location, Objects};
use store::socket::SocketListener;
use store::{Db, clock};

/// A place that this process works on.
pub struct OpenPlace {
    pub db: Db,
    pub objects: Objects,
    /// Its link index, opened when it is first needed.
    link_index: Arc<PlaceLinkIndex>,
    /// Its search index, likewise.
    search_index: Arc<PlaceSearchIndex>,
    // Declared last and so dropped last: the directory's lock outlives all use of it.
    directory: Option<DataDir>,
}

impl OpenPlace {
    /// Holds a data directory, and makes or upgrades it first.
    pub fn open(root: &Path, parts: u32) -> anyhow::Result<OpenPlace> {
        let directory = DataDir::open(root, parts, clock::now_ms())?;
        catalog::register_new(directory.db(), clock::now_ms())?;
        let objects = Objects::open(&Location::Directory(directory.layout().objects()))?;
        let (db, layout) = (directory.db().clone(), directory.layout());
        let link_index = Arc::new(PlaceLinkIndex::new(&db, Some(layout)));
        let search_index =
            PlaceSearchIndex::new(&db, Some(objects.clone()), Some(layout), link_index.clone());
        let search_index = Arc::new(search_index);
        Ok(OpenPlace { db, objects, link_index, search_index, directory: Some(directory) })
    }

    /// A database that others may work on, too.
    pub(super) fn of_database(db: Db, objects: Objects) -> OpenPlace {
        let link_index = Arc::new(PlaceLinkIndex::new(&db, None));
        let search_index =
            PlaceSearchIndex::new(&db, Some(objects.clone()), None, link_index.clone());
        OpenPlace { db, objects, link_index, search_index: Arc::new(search_index), directory: None }
    }

    pub fn link_index(&self) -> store::Result<LinkIndex> {
        self.link_index.open()
    }

    pub fn search_index(&self) -> &Arc<PlaceSearchIndex> {
        &self.search_index
    }

    /// What its search index is written with.
    pub fn search_means(&self, claimant: &Claimant) -> store::Result<PublishContext> {
        Ok(PublishContext {
            claimant: claimant.clone(),
            objects: self.objects.clone(),
            home: self.search_index.home()?.join("written").join(&claimant.node_name),
            spans_parts: self.search_index.spans_parts(),
            links: Some(self.link_index()?),
            checked: self.search_index.checked().clone(),
        })
    }

    /// What verbs are answered from by this process, which is doing something.
    pub fn context(&self, doing: &str) -> VerbContext {
        let context =
            VerbContext::new(self.db.clone(), self.link_index.clone(), self.search_index.clone());
        VerbContext { doing: Some(doing.to_owned()), ..context }
    }

    /// Where things are, if it is a data directory.
    pub fn layout(&self) -> Option<&Layout> {
        self.directory.as_ref().map(DataDir::layout)
    }

    /// Answers other commands for as long as the result lives. A database is asked
    /// directly, so there is nothing to listen for.
    pub fn listen(&self, doing: &str) -> store::Result<Option<SocketListener>> {
        self.listen_and_host(doing, None)
    }

    /// The same, for a process that works on all jobs: it takes crawls of other commands over.
    pub fn listen_and_host(
        &self,
        doing: &str,
        hosted: Option<Arc<HostedCrawls>>,
    ) -> store::Result<Option<SocketListener>> {
        let Some(layout) = self.layout() else { return Ok(None) };
        VerbContext { hosted, ..self.context(doing) }.listen(layout).map(Some)
    }
}
