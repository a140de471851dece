//! What the reactor knows of each member.

use crate::mirror::digest::Digest;
use crate::mirror::kind::{Extension, Kind, page_path};
use crate::mirror::sealed::{self, open};
use crate::mirror::settings::Names;
use crate::mirror::spider::content_type;
use crate::mirror::versions::Versions;
use page::mirror::names::HashName;
use page::mirror::xfile::{Content, Node, NodeKind, Operation};
use serde::{Deserialize, Serialize};
use store::Result;

/// A document of the mirror.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::mirror) struct ReactorMember {
    pub(in crate::mirror) url: String,
    pub(in crate::mirror) kind: Kind,
    /// The original bytes.
    pub(in crate::mirror) sha256: Digest,
    media_type: String,
    charset: Option<String>,
}

impl ReactorMember {
    /// The member that a node of an x-file tells of; `None` if there is none at its URL.
    pub(super) fn of(node: &Node) -> Option<ReactorMember> {
        let Content::Stored(stored) = &node.content else { return None };
        if node.operation == Operation::Remove {
            return None;
        }
        Some(ReactorMember {
            url: node.url.clone(),
            kind: Kind::of(&stored.media_type, node.kind == Some(NodeKind::Requisite)),
            sha256: stored.sha256.into(),
            media_type: stored.media_type.clone(),
            charset: stored.charset.clone(),
        })
    }

    pub(super) fn hash(&self) -> HashName {
        HashName::of(&self.url)
    }

    pub(super) fn extension(&self) -> Extension {
        Extension::of(&self.media_type)
    }

    pub(super) fn content_type(&self) -> String {
        content_type(&self.media_type, self.charset.as_deref())
    }

    /// Its path below the webroot, if that follows from its URL.
    pub(super) fn path(&self, names: Names) -> Option<String> {
        let is_named_by_url = self.kind.is_named_by_url();
        is_named_by_url.then(|| page_path(&self.url, self.extension(), names))
    }
}

/// The members of a bucket, by hash name.
pub(in crate::mirror) fn members(
    versions: &Versions<'_>,
    bucket: usize,
) -> Result<Vec<ReactorMember>> {
    match versions.read(bucket)? {
        Some(file) => open(sealed::Kind::ReactorMembers, &file.bytes, &file.path),
        None => Ok(Vec::new()),
    }
}

/// The first eight bytes of a hash name: by them reference lists know URLs. Two URLs that share
/// them make a page be made anew for nothing.
pub(super) fn short(hash: &HashName) -> u64 {
    u64::from_be_bytes(hash.as_bytes()[..8].try_into().expect("it has 16 bytes"))
}
