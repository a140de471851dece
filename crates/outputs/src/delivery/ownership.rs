//! Who owns the URIs that a batch of decisions concerns, as far as claims tell.
//!
//! Relies on `tables::claims`. What is read here may be out of date the moment after: whoever
//! acts on it looks again afterwards ([`Handover`](super::handover::Handover)).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use store::ids::{ConnectionId, Part};
use store::tables::claims::{self, Claim, ClaimingDocument, Homes, LEAVING};
use store::tables::ingests::Ingest;
use store::tables::leases::{self, Lease};
use store::{Db, Result};

use page::ids::DocHash;

/// A URI, and where the claims on it lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Uri {
    pub text: String,
    pub hash: Vec<u8>,
    home: Part,
}

impl Uri {
    pub fn new(homes: &Homes, text: &str) -> Uri {
        let hash = DocHash::of(text).0.to_vec();
        Uri { text: text.to_owned(), hash, home: homes.of(text) }
    }
}

/// The document of a row, as claims name it.
pub(super) fn claimant(row: &Ingest, part: Part) -> ClaimingDocument {
    ClaimingDocument { connection: row.connection, dochash: row.dochash, part }
}

/// Hashes of URIs by the parts in which the claims on them lie.
pub(super) type ByHome = BTreeMap<Part, BTreeSet<Vec<u8>>>;

/// URIs by their homes.
pub(super) fn by_home<'a>(uris: impl Iterator<Item = &'a Uri>) -> ByHome {
    let mut homes = ByHome::new();
    for uri in uris {
        homes.entry(uri.home).or_default().insert(uri.hash.clone());
    }
    homes
}

/// Claims on the URIs of a batch, as last read.
#[derive(Debug, Default)]
pub(super) struct ClaimView {
    by_uri: HashMap<Vec<u8>, Vec<Claim>>,
}

impl ClaimView {
    /// Reads the claims on URIs, in one snapshot.
    pub fn read(&mut self, db: &Db, output: ConnectionId, uris: ByHome) -> Result<()> {
        if uris.is_empty() {
            return Ok(());
        }
        let found = db.read(move |tx| {
            let mut found = Vec::new();
            for (home, hashes) in &uris {
                let hashes: Vec<Vec<u8>> = hashes.iter().cloned().collect();
                let claims = claims::load(tx, *home, output, &hashes)?;
                found.push((hashes, claims));
            }
            Ok(found)
        })?;
        for (hashes, claims) in found {
            self.replace(hashes, claims);
        }
        Ok(())
    }

    fn replace(&mut self, hashes: Vec<Vec<u8>>, claims: Vec<Claim>) {
        for hash in hashes {
            self.by_uri.insert(hash, Vec::new());
        }
        for claim in claims {
            self.by_uri.entry(claim.uri_hash.clone()).or_default().push(claim);
        }
    }

    fn of(&self, uri: &Uri) -> &[Claim] {
        self.by_uri.get(&uri.hash).map_or(&[], Vec::as_slice)
    }

    /// Who owns a URI.
    pub fn owner(&self, uri: &Uri) -> Option<ClaimingDocument> {
        claims::owner(self.of(uri)).map(|it| it.by)
    }

    /// Whether a document claims a URI.
    pub fn has(&self, uri: &Uri, by: ClaimingDocument) -> bool {
        self.of(uri).iter().any(|it| it.by == by && it.ordinal > LEAVING)
    }

    /// Whether a document has not left a URI altogether: it claims it, or is leaving.
    pub fn is_known(&self, uri: &Uri, by: ClaimingDocument) -> bool {
        self.of(uri).iter().any(|it| it.by == by)
    }

    /// Whether others claim a URI, too.
    pub fn is_contested(&self, uri: &Uri, by: ClaimingDocument) -> bool {
        self.of(uri).iter().any(|it| it.by != by && it.ordinal > LEAVING)
    }

    /// The claim of a document that comes after all that are known.
    fn next(&self, uri: &Uri, by: ClaimingDocument) -> Claim {
        let last = self.of(uri).iter().map(|it| it.ordinal).max().unwrap_or(LEAVING);
        Claim { uri_hash: uri.hash.clone(), by, ordinal: last + 1 }
    }
}

/// Claims that are to be written and dropped, by the parts in which they lie.
#[derive(Debug, Default)]
pub(super) struct ClaimChanges {
    by_home: BTreeMap<Part, HomeChanges>,
}

#[derive(Debug, Clone, Default)]
struct HomeChanges {
    added: Vec<Claim>,
    dropped: Vec<(Vec<u8>, ClaimingDocument)>,
}

impl ClaimChanges {
    /// A document claims a URI, unless it does so already.
    pub fn add(&mut self, view: &ClaimView, uri: &Uri, by: ClaimingDocument) {
        if !view.has(uri, by) {
            let added = &mut self.by_home.entry(uri.home).or_default().added;
            let before = added.iter().filter(|it| it.uri_hash == uri.hash).count();
            let claim = view.next(uri, by);
            let ordinal = claim.ordinal + i64::try_from(before).unwrap_or(0);
            added.push(Claim { ordinal, ..claim });
        }
    }

    /// A document is leaving a URI: it owns nothing, but what follows is not done.
    pub fn leave(&mut self, view: &ClaimView, uri: &Uri, by: ClaimingDocument) {
        if view.has(uri, by) || !view.is_known(uri, by) {
            let claim = Claim { uri_hash: uri.hash.clone(), by, ordinal: LEAVING };
            self.by_home.entry(uri.home).or_default().added.push(claim);
        }
    }

    /// A document has left a URI.
    pub fn remove(&mut self, view: &ClaimView, uri: &Uri, by: ClaimingDocument) {
        if view.is_known(uri, by) {
            self.by_home.entry(uri.home).or_default().dropped.push((uri.hash.clone(), by));
        }
    }

    /// Writes them part by part, under the lease of the claimants' own, and shows in the
    /// view what is there then. Whatever is repeated finds itself done.
    pub fn write(
        self,
        db: &Db,
        lease: &Lease,
        output: ConnectionId,
        view: &mut ClaimView,
    ) -> Result<()> {
        for (home, changes) in self.by_home {
            let lease = lease.clone();
            let (hashes, claims) = db.write(move |tx| {
                // What is claimed must not come after what the next holder claims.
                leases::fence(tx, &lease)?;
                claims::remove(tx, home, output, &changes.dropped)?;
                claims::save(tx, home, output, &changes.added)?;
                let added = changes.added.iter().map(|it| &it.uri_hash);
                let dropped = changes.dropped.iter().map(|it| &it.0);
                let hashes: BTreeSet<Vec<u8>> = added.chain(dropped).cloned().collect();
                let hashes: Vec<Vec<u8>> = hashes.into_iter().collect();
                let claims = claims::load(tx, home, output, &hashes)?;
                Ok((hashes, claims))
            })?;
            view.replace(hashes, claims);
        }
        Ok(())
    }
}
