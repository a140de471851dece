//! Listings: what is in a folder of the webroot.
//!
//! Invariant: a listing's digest is its name, so that the same folder is the same listing,
//! wherever and whenever.

use crate::mirror::digest::Digest;
use crate::mirror::disk::Disk;
use crate::mirror::sealed::{Kind, open, seal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use store::{Error, Result};

pub(in crate::mirror) const DIR: &str = "listings";

/// What a name in a folder stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::mirror) enum Entry {
    File(Digest),
    Folder(Digest),
}

/// A name in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Named {
    name: String,
    entry: Entry,
}

/// A folder, by names.
pub(in crate::mirror) type Listing = BTreeMap<String, Entry>;

pub(in crate::mirror) fn path(digest: &Digest) -> String {
    format!("{DIR}/{digest}")
}

/// The listing of this digest.
pub(in crate::mirror) fn read(disk: &Disk, digest: &Digest) -> Result<Listing> {
    let path = path(digest);
    let bytes = disk.read(&path)?;
    let what = disk.place(path).display().to_string();
    if Digest::of(&bytes) != *digest {
        return Err(Error::corrupt(what, "its bytes do not have the SHA-256 of its name"));
    }
    let named: Vec<Named> = open(Kind::Listing, &bytes, &what)?;
    Ok(named.into_iter().map(|it| (it.name, it.entry)).collect())
}

/// Keeps a listing under its digest.
pub(in crate::mirror) fn keep(disk: &Disk, listing: &Listing) -> Result<Digest> {
    let named: Vec<Named> =
        listing.iter().map(|(name, entry)| Named { name: name.clone(), entry: *entry }).collect();
    let bytes = seal(Kind::Listing, &named);
    let digest = Digest::of(&bytes);
    let path = path(&digest);
    if disk.length(&path)? != Some(bytes.len() as u64) {
        disk.write(path, &bytes)?;
    }
    Ok(digest)
}
