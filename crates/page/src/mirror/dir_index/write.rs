//! Writing a directory index.

use std::io::Write;

use super::{DirIndex, FORMAT, IndexNode};
use crate::mirror::Error;
use crate::mirror::tree::TreeWriter;
use crate::mirror::xfile::Content;
use crate::mirror::xml::Attribute;

impl DirIndex {
    /// Writes `dir.xml`; the same index is always the same bytes.
    pub fn write<W: Write>(&self, out: W) -> Result<W, Error> {
        let header = &self.header;
        let position = header.position.as_ref();
        let attributes = [
            ("format", Some(FORMAT.to_string())),
            ("epoch", position.map(|it| it.epoch.clone())),
            ("number", position.map(|it| it.number.to_string())),
            ("sha256", position.map(|it| it.sha256.to_string())),
        ];
        let elements = [
            ("editor", header.editor.as_str()),
            ("info", header.info.as_str()),
            ("codec", header.codec.as_str()),
        ];
        let mut tree = TreeWriter::new(out, &attributes, &elements)?;
        let mut open = 0;
        for visited in self.walk() {
            while open > visited.level {
                tree.close()?;
                open -= 1;
            }
            write_node(&mut tree, visited.node, visited.level)?;
            open += 1;
        }
        tree.finish()
    }
}

fn write_node<W: Write>(
    tree: &mut TreeWriter<W>,
    node: &IndexNode,
    level: usize,
) -> Result<(), Error> {
    let refresh_rate = node.refresh_rate_s.map(|it| it.to_string()).unwrap_or_default();
    let hash_name = node.hash_name.to_string();
    let level = level.to_string();
    let elements = [
        ("title", node.name.as_str()),
        ("name", node.name.as_str()),
        ("url", node.url.as_str()),
        ("refreshRate", refresh_rate.as_str()),
        ("hashName", hash_name.as_str()),
        ("level", level.as_str()),
    ];
    tree.open(&attributes(node), &elements)
}

fn attributes(node: &IndexNode) -> Vec<Attribute> {
    let stored = match &node.content {
        Content::Stored(stored) => Some(stored),
        Content::Unknown | Content::Pending => None,
    };
    vec![
        ("kind", node.kind.map(|it| it.as_str().to_owned())),
        ("order", Some(node.order.to_string())),
        ("content", stored.map(|it| it.sha256.to_string())),
        ("length", stored.map(|it| it.length.to_string())),
        ("mediaType", stored.map(|it| it.media_type.clone())),
        ("charset", stored.and_then(|it| it.charset.clone())),
        ("status", stored.and_then(|it| it.status).map(|it| it.to_string())),
        ("fetched", stored.and_then(|it| it.fetched_ms).map(|it| it.to_string())),
        ("lastModified", node.last_modified_ms.map(|it| it.to_string())),
        ("etag", node.etag.clone()),
    ]
}
