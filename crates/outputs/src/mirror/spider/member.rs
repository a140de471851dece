//! What the spider knows of each member: by it, it tells an addition from an update.

use crate::mirror::Mirror;
use crate::mirror::digest::Digest;
use crate::mirror::sealed::{Kind, open};
use crate::mirror::versions::Versions;
use page::mirror::names::HashName;
use serde::{Deserialize, Serialize};
use store::Result;

/// A document of the mirror.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::mirror) struct Member {
    pub(in crate::mirror) url: String,
    pub(in crate::mirror) title: String,
    pub(in crate::mirror) sha256: Digest,
    pub(in crate::mirror) length: u64,
    pub(in crate::mirror) media_type: String,
    pub(in crate::mirror) charset: Option<String>,
    pub(in crate::mirror) status: Option<u16>,
    pub(in crate::mirror) is_requisite: bool,
    pub(in crate::mirror) last_modified_ms: Option<i64>,
    pub(in crate::mirror) etag: Option<String>,
    /// The columns that it is in, from the site down; none for a requisite.
    pub(in crate::mirror) columns: Vec<ColumnName>,
    /// What it leads to, if it is a column or a list by the rules.
    pub(in crate::mirror) section: Option<Section>,
    /// The title that was delivered with it.
    pub(in crate::mirror) given_title: Option<String>,
}

/// What the rules say of a column or a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::mirror) struct Section {
    pub(in crate::mirror) name: String,
    /// The hash names of what it leads to.
    pub(in crate::mirror) items: Vec<[u8; 16]>,
}

/// A column by what pages say of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::mirror) struct ColumnName {
    pub(in crate::mirror) url: String,
    pub(in crate::mirror) name: String,
}

impl Member {
    pub(in crate::mirror) fn hash(&self) -> HashName {
        HashName::of(&self.url)
    }

    /// The header `Content-Type` again.
    pub(in crate::mirror) fn content_type(&self) -> String {
        content_type(&self.media_type, self.charset.as_deref())
    }

    /// Whether both are the same as far as a mirror shows them.
    pub(super) fn is_same(&self, other: &Member) -> bool {
        self.sha256 == other.sha256
            && self.media_type == other.media_type
            && self.charset == other.charset
            && self.is_requisite == other.is_requisite
            && self.title == other.title
            && self.columns == other.columns
            && self.section == other.section
    }

    /// Finds its title and its columns by the rules.
    pub(super) fn place(&mut self, mirror: &Mirror, bytes: &[u8]) {
        let given = self.given_title.clone().unwrap_or_default();
        if self.is_requisite {
            self.title = given;
            return;
        }
        let place = super::place::place(mirror, self, bytes);
        self.columns = place.columns;
        self.section = place.section;
        self.title = match place.title {
            title if title.is_empty() => given,
            title => title,
        };
    }
}

/// The header `Content-Type` of a media type and an encoding.
pub(in crate::mirror) fn content_type(media_type: &str, charset: Option<&str>) -> String {
    match charset {
        Some(charset) => format!("{media_type}; charset={charset}"),
        None => media_type.to_owned(),
    }
}

/// The members of a bucket, by hash name.
pub(in crate::mirror) fn members(versions: &Versions<'_>, bucket: usize) -> Result<Vec<Member>> {
    match versions.read(bucket)? {
        Some(file) => open(Kind::SpiderMembers, &file.bytes, &file.path),
        None => Ok(Vec::new()),
    }
}
