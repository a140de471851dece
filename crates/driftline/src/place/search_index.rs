//! The search index of a place, opened when it is first asked.
//!
//! What is published is read where the objects are, or brought into a cache; what is newer
//! is opened with the next question, or fetched beside it. Invariant: it is opened once in a
//! process, however many ask.

use super::link_index::PlaceLinkIndex;
use super::temporary::OwnDirectory;
use crate::refusal::{OrRefuse, refusal};
use anyhow::Context;
use outputs::search::anchor_text;
use outputs::search::ask::plan::Weights;
use outputs::search::ask::{Answer, AnswerFailure, IndexSearcher, Question};
use outputs::search::file_checks::CheckedFiles;
use outputs::search::indexed_links::Target;
use outputs::search::server::{SearchServer, ServedIndex};
use outputs::search::verify::{ShardVerifyResult, VerifyContext};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use store::datadir::Layout;
use store::dialect::Dialect;
use store::objects::Objects;
use store::tables::connections;
use store::{Db, Error, clock};

/// The search index of a place.
pub struct PlaceSearchIndex {
    db: Db,
    /// Its objects, if this process knows where they are.
    objects: Option<Objects>,
    home: Home,
    link_index: Arc<PlaceLinkIndex>,
    opened: Mutex<Option<Arc<SearchServer>>>,
    /// Files that this process has read and found to be what was published.
    checked: CheckedFiles,
}

/// Where files of the index are that are not in the objects.
enum Home {
    /// In the data directory.
    Kept(PathBuf),
    /// Where this process puts them, when it first has some, and takes them away.
    Own(OnceLock<OwnDirectory>),
}

impl PlaceSearchIndex {
    /// Of a directory or a database.
    pub fn new(
        db: &Db,
        objects: Option<Objects>,
        layout: Option<&Layout>,
        link_index: Arc<PlaceLinkIndex>,
    ) -> PlaceSearchIndex {
        let home = match layout {
            Some(layout) => Home::Kept(layout.search()),
            None => Home::Own(OnceLock::new()),
        };
        let (opened, checked) = Default::default();
        PlaceSearchIndex { db: db.clone(), objects, home, link_index, opened, checked }
    }

    /// What this process knows of the index's files, for whoever writes them.
    pub fn checked(&self) -> &CheckedFiles {
        &self.checked
    }

    /// Where writers and caches have their files.
    pub fn home(&self) -> store::Result<&Path> {
        match &self.home {
            Home::Kept(path) => Ok(path),
            Home::Own(own) => {
                if let Some(own) = own.get() {
                    return Ok(own.path());
                }
                let made = OwnDirectory::for_search();
                let made = made.map_err(|error| Error::io(std::env::temp_dir(), error))?;
                Ok(own.get_or_init(|| made).path())
            }
        }
    }

    /// Whether one shard covers all parts: a directory has one writer for all of them.
    pub fn spans_parts(&self) -> bool {
        self.db.dialect() == Dialect::Sqlite
    }

    fn open(&self) -> anyhow::Result<Arc<SearchServer>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = &*opened {
            return Ok(opened.clone());
        }
        let objects = self.objects.clone().or_refuse(
            || "the search index is in the database's objects; give their location with --objects",
        )?;
        let (cache, checked) = (self.home()?.join("served"), self.checked.clone());
        let now = Arc::new(SearchServer::knowing(self.db.clone(), objects, cache, checked));
        *opened = Some(now.clone());
        Ok(now)
    }

    /// Opens what was published since, or has it fetched; nobody waits for that.
    pub fn catch_up(&self) {
        // If this cannot be done now, the next question tries again.
        if let Ok(opened) = self.open() {
            let _ = opened.catch_up();
        }
    }

    /// Reads the files of what is published, and compares it with what is committed; with the
    /// stored facts too if that is wanted.
    pub fn verify(
        &self,
        is_full: bool,
        report: &mut dyn FnMut(&str),
    ) -> anyhow::Result<ShardVerifyResult> {
        let opened = self.open()?;
        let objects = self.objects.as_ref().context("the location of the objects is not known")?;
        let damaged_files = opened.verify_files(report)?;
        if damaged_files > 0 {
            // The library cannot be trusted with them.
            let differences = damaged_files;
            return Ok(ShardVerifyResult {
                differences,
                damaged_files,
                ..ShardVerifyResult::default()
            });
        }
        let (shards, fields) = (opened.refresh()?, &opened.fields);
        let verifying = VerifyContext { db: &self.db, objects, shards: &shards, fields };
        let is_damage = |error: &store::Error| matches!(error, store::Error::Corrupt { .. });
        Ok(opened.guarded(is_damage, || verifying.verify(is_full, report))??)
    }

    /// Answers a question about what is published, as far as it is here.
    pub fn answer(&self, question: &Question) -> anyhow::Result<Answer> {
        let opened = self.open()?;
        let ServedIndex { shards, lag } = opened.current(clock::now_ms())?;
        let in_links =
            |targets: &[Option<Target>]| anchor_text::in_links(&self.link_index.open()?, targets);
        let fields = &opened.fields;
        // What connections say now counts, whatever they said when documents were indexed.
        let secured = match &question.tokens {
            Some(_) => self.db.read(connections::secured)?,
            None => Vec::new(),
        };
        let asking = IndexSearcher {
            shards: &shards,
            fields,
            weights: Weights::default(),
            in_links: &in_links,
            secured: &secured,
            lag,
        };
        let is_damage = |error: &AnswerFailure| {
            matches!(error, AnswerFailure::Store(store::Error::Corrupt { .. }))
        };
        opened.guarded(is_damage, || asking.answer(question))?.map_err(|error| match error {
            AnswerFailure::Refused(refused) => refusal(refused).into(),
            AnswerFailure::Store(error) => anyhow::Error::new(error),
        })
    }
}
