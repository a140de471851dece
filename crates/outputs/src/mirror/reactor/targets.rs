//! Where the references of a document lead, and which URLs they are.

use super::members::short;
use super::names::NameTable;
use crate::mirror::settings::Names;
use page::mirror::names::{HashName, relative_reference};
use page::mirror::rewrite::Target;
use page::url::{Policy, canonical};
use url::Url;

/// How addresses are made canonical before they are looked up a second time: as crawls do.
const POLICY: Policy =
    Policy { keep_fragment: true, drop_session_ids: true, drop_tracking: true, ..Policy::NOTHING };

/// Answers for one document where its references lead.
pub(super) struct Targets<'n> {
    table: &'n NameTable,
    names: Names,
    /// The path of the document's file.
    from: String,
    host: Option<String>,
    /// Short hashes of all URLs that it asked for.
    asked: Vec<u64>,
}

impl<'n> Targets<'n> {
    pub(super) fn new(table: &'n NameTable, names: Names, url: &str, from: String) -> Targets<'n> {
        let host = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
        Targets { table, names, from, host, asked: Vec::new() }
    }

    pub(super) fn of(&mut self, url: &Url) -> Target {
        if let Some(path) = self.member(url.as_str()) {
            return Target::Member(relative_reference(&self.from, &path));
        }
        if let Ok(other) = canonical(url.as_str(), &POLICY)
            && other != url.as_str()
            && let Some(path) = self.member(&other)
        {
            return Target::Member(relative_reference(&self.from, &path));
        }
        match url.host_str() == self.host.as_deref() {
            true => Target::Missing,
            false => Target::Outside,
        }
    }

    fn member(&mut self, url: &str) -> Option<String> {
        let hash = HashName::of(url);
        self.asked.push(short(&hash));
        self.table.path(url, &hash, self.names)
    }

    /// The URLs that it asked for, each once, as they are stored.
    pub(super) fn into_references(mut self) -> Vec<[u8; 8]> {
        self.asked.sort_unstable();
        self.asked.dedup();
        self.asked.into_iter().map(u64::to_be_bytes).collect()
    }
}
