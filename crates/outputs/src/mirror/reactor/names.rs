//! The names of all members, compact and sorted: what references are looked up in.
//!
//! Invariant: 19 bytes a member and 32 a requisite; no strings.

use crate::mirror::digest::Digest;
use crate::mirror::kind::{Extension, Kind, asset_path, page_path};
use crate::mirror::settings::Names;
use page::mirror::names::HashName;

/// In `requisite`: the member is named by its URL.
const NAMED_BY_URL: u32 = u32::MAX;

/// The names of all members.
#[derive(Debug, Default)]
pub(super) struct NameTable {
    hashes: Vec<HashName>,
    extensions: Vec<Extension>,
    requisites: Vec<u32>,
    digests: Vec<Digest>,
}

/// The file of a requisite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AssetFile {
    pub(super) name: Digest,
    pub(super) extension: Extension,
}

impl AssetFile {
    pub(super) fn path(&self) -> String {
        asset_path(&self.name, self.extension)
    }
}

impl NameTable {
    /// Adds a member behind all others. A style sheet gets its name later.
    pub(super) fn push(
        &mut self,
        hash: HashName,
        kind: Kind,
        extension: Extension,
        original: Digest,
    ) {
        debug_assert!(self.hashes.last().is_none_or(|last| *last < hash), "members come in order");
        self.hashes.push(hash);
        self.extensions.push(extension);
        self.requisites.push(match kind.is_named_by_url() {
            true => NAMED_BY_URL,
            false => {
                self.digests.push(original);
                u32::try_from(self.digests.len() - 1).expect("fewer requisites than 2^32")
            }
        });
    }

    /// Names a style sheet.
    pub(super) fn set(&mut self, hash: &HashName, name: Digest) {
        if let Ok(at) = self.hashes.binary_search(hash)
            && let Some(digest) = self.digests.get_mut(self.requisites[at] as usize)
        {
            *digest = name;
        }
    }

    /// The path below the webroot of the member at a URL.
    pub(super) fn path(&self, url: &str, hash: &HashName, names: Names) -> Option<String> {
        let at = self.hashes.binary_search(hash).ok()?;
        let extension = self.extensions[at];
        Some(match self.requisites[at] {
            NAMED_BY_URL if names == Names::Hash => hash.path(&format!(".{}", extension.as_str())),
            NAMED_BY_URL => page_path(url, extension, names),
            requisite => asset_path(&self.digests[requisite as usize], extension),
        })
    }

    /// The digest of the requisite at a URL.
    pub(super) fn requisite(&self, hash: &HashName) -> Option<&Digest> {
        let at = self.hashes.binary_search(hash).ok()?;
        self.digests.get(self.requisites[at] as usize)
    }

    /// The files of all requisites, sorted.
    pub(super) fn assets(&self) -> Vec<AssetFile> {
        let requisites = self.requisites.iter().zip(&self.extensions);
        let mut assets: Vec<AssetFile> = requisites
            .filter(|(requisite, _)| **requisite != NAMED_BY_URL)
            .map(|(requisite, extension)| AssetFile {
                name: self.digests[*requisite as usize],
                extension: *extension,
            })
            .collect();
        assets.sort_unstable();
        assets.dedup();
        assets
    }
}
