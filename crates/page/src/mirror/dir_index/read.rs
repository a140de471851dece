//! Reading a directory index.

use std::io::BufRead;

use super::{DirIndex, FORMAT, IndexHeader, IndexNode, PlaceId, Position};
use crate::mirror::Error;
use crate::mirror::digest::ContentDigest;
use crate::mirror::names::HashName;
use crate::mirror::tree::{Event, Fields, TreeReader};
use crate::mirror::values::{content, kind, parsed, required, with};
use crate::mirror::xml::Attributes;

impl DirIndex {
    /// Reads `dir.xml`.
    pub fn read(source: impl BufRead) -> Result<DirIndex, Error> {
        let (mut tree, mut fields) = TreeReader::new(source)?;
        let attributes = &fields.attributes;
        if let Some(found) = attributes.get("format").filter(|it| *it != FORMAT.to_string()) {
            return Err(Error::UnknownFormat { found: found.to_owned(), known: FORMAT });
        }
        let position = position(attributes).map_err(|what| tree.malformed(what))?;
        let mut element = |name| fields.take(name).unwrap_or_default();
        let [editor, info, codec] = ["editor", "info", "codec"].map(&mut element);
        let mut index = DirIndex::new(IndexHeader { editor, info, codec, position });
        let mut open: Vec<PlaceId> = Vec::new();
        while let Some(event) = tree.next()? {
            match event {
                Event::Open(fields) => {
                    let parent = open.last().copied();
                    let node = node(fields, index.order_behind(parent));
                    let node = node.map_err(|what| tree.malformed(what))?;
                    if index.id(node.hash_name).is_some() {
                        return Err(tree.malformed(format!("{} twice", node.url)));
                    }
                    open.push(index.insert(node, parent));
                }
                Event::Close => {
                    open.pop();
                }
            }
        }
        Ok(index)
    }
}

fn position(attributes: &Attributes) -> Result<Option<Position>, String> {
    let Some(epoch) = attributes.get("epoch") else { return Ok(None) };
    Ok(Some(Position {
        epoch: epoch.to_owned(),
        number: required("number", parsed(attributes, "number")?)?,
        sha256: required("sha256", with(attributes, "sha256", ContentDigest::parse)?)?,
    }))
}

/// A node; one of others, which says nothing of its order, stands behind those before it.
fn node(mut fields: Fields, order_behind: i64) -> Result<IndexNode, String> {
    let url = fields.take("url").filter(|url| !url.is_empty());
    let url = required("url", url)?;
    let hash_name = HashName::of(&url);
    let written = fields.take("hashName");
    if written.is_some_and(|text| HashName::parse(text.trim()) != Some(hash_name)) {
        return Err(format!("hashName is not that of {url}"));
    }
    let title = fields.take("title").unwrap_or_default();
    let name = fields.take("name").filter(|name| !name.is_empty()).unwrap_or(title);
    let refresh_rate = fields.take("refreshRate").unwrap_or_default();
    let attributes = &fields.attributes;
    Ok(IndexNode {
        name,
        hash_name,
        kind: kind(attributes)?,
        order: parsed(attributes, "order")?.unwrap_or(order_behind),
        // Others write what they like here.
        refresh_rate_s: refresh_rate.trim().parse().ok(),
        content: content(attributes)?,
        last_modified_ms: parsed(attributes, "lastModified")?,
        etag: attributes.get("etag").map(str::to_owned),
        url,
    })
}
