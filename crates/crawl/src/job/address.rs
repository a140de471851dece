//! What all jobs of a database share, and where a URL lives because of it.

use crate::extract::Extractor;
use page::domain::SuffixList;
use page::ids::{bin_of, part_of};
use page::url::host_of;
use std::net::SocketAddr;
use std::sync::Arc;
use store::ids::{BinId, Part};
use store::panics::Faults;

/// What all jobs of a database share.
#[derive(Clone)]
pub struct CrawlEnvironment {
    /// The frozen public suffix list.
    pub suffixes: Arc<SuffixList>,
    /// The number of parts.
    pub parts: u32,
    /// The random name of the database.
    pub installation: [u8; 16],
    /// Where this program and its stores listen: no crawl may go there.
    pub own: Vec<SocketAddr>,
    /// Has documents read that are neither HTML nor text.
    pub extractor: Arc<Extractor>,
    /// Faults that tests inject.
    pub faults: Faults,
}

/// Where a URL lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Address<'a> {
    pub part: Part,
    pub bin: BinId,
    pub host: &'a str,
}

impl CrawlEnvironment {
    /// The part and the bin of a canonical URL.
    pub fn address<'a>(&self, url: &'a str) -> Address<'a> {
        let host = host_of(url);
        let domain = self.suffixes.grouping_domain(host);
        let part = Part(part_of(Some(domain), url, self.parts).into());
        Address { part, bin: BinId(bin_of(host)), host }
    }
}
