//! Writing an x-file, node by node.

use std::io::Write;

use super::publication::{PARTS_MAX, Publication, cut_to_text};
use super::{Content, FORMAT, Header, Node, WebSite};
use crate::mirror::Error;
use crate::mirror::tree::TreeWriter;
use crate::mirror::xml::Attribute;

/// Writes an x-file of any number of nodes while they come.
pub struct Writer<W> {
    tree: TreeWriter<W>,
}

impl<W: Write> Writer<W> {
    /// A writer that has written the header.
    pub fn new(out: W, header: &Header) -> Result<Writer<W>, Error> {
        let mut attributes = vec![("format", text(FORMAT))];
        if let Some(publication) = &header.publication {
            attributes.extend(site_attributes(publication)?);
        }
        let elements = [("editor", header.editor.as_str()), ("info", header.info.as_str())];
        Ok(Writer { tree: TreeWriter::new(out, &attributes, &elements)? })
    }

    /// Begins a node. Its own list is not looked at: what is opened until it is closed is below it.
    pub fn open(&mut self, node: &Node) -> Result<(), Error> {
        let hash_name = node.hash_name.to_string();
        let elements = [
            ("name", node.name.as_str()),
            ("url", node.url.as_str()),
            ("type", node.operation.as_str()),
            ("hashName", hash_name.as_str()),
        ];
        self.tree.open(&node_attributes(node), &elements)
    }

    /// Ends the node that was begun last and is open.
    pub fn close(&mut self) -> Result<(), Error> {
        self.tree.close()
    }

    /// Ends the x-file; gives what was written to.
    pub fn finish(self) -> Result<W, Error> {
        self.tree.finish()
    }
}

/// Writes a whole x-file.
pub fn write<W: Write>(site: &WebSite, out: W) -> Result<W, Error> {
    let mut writer = Writer::new(out, &site.header)?;
    writer.open(&site.node)?;
    let mut lists = vec![site.node.node_list.iter()];
    while let Some(list) = lists.last_mut() {
        match list.next() {
            Some(node) => {
                writer.open(node)?;
                lists.push(node.node_list.iter());
            }
            None => {
                writer.close()?;
                lists.pop();
            }
        }
    }
    writer.finish()
}

fn text(value: impl ToString) -> Option<String> {
    Some(value.to_string())
}

fn site_attributes(publication: &Publication) -> Result<Vec<Attribute>, Error> {
    if publication.cut.len() > PARTS_MAX {
        return Err(Error::TooLarge { what: "parts of a cut", limit: PARTS_MAX });
    }
    let previous = publication.previous;
    Ok(vec![
        ("epoch", text(&publication.epoch)),
        ("number", text(publication.number)),
        ("stage", text(publication.stage.as_str())),
        ("previous", previous.map(|it| it.number.to_string())),
        ("previousSha256", previous.map(|it| it.sha256.to_string())),
        ("base", text(publication.base)),
        ("oldest", text(publication.oldest)),
        ("started", text(publication.started_ms)),
        ("completed", publication.completed_ms.map(|it| it.to_string())),
        ("producer", text(&publication.producer)),
        ("rules", publication.rules.map(|it| it.to_string())),
        ("outcome", text(publication.outcome.as_str())),
        ("cut", text(cut_to_text(&publication.cut))),
    ])
}

fn node_attributes(node: &Node) -> Vec<Attribute> {
    let stored = match &node.content {
        Content::Stored(stored) => Some(stored),
        Content::Unknown | Content::Pending => None,
    };
    let content = match &node.content {
        Content::Unknown => None,
        Content::Pending => text("pending"),
        Content::Stored(stored) => text(stored.sha256),
    };
    let removal = node.removal;
    vec![
        ("kind", node.kind.map(|it| it.as_str().to_owned())),
        ("order", node.order.map(|it| it.to_string())),
        ("covered", node.is_covered.then(|| "true".to_owned())),
        ("refreshRate", node.refresh_rate_s.map(|it| it.to_string())),
        ("content", content),
        ("length", stored.map(|it| it.length.to_string())),
        ("mediaType", stored.map(|it| it.media_type.clone())),
        ("charset", stored.and_then(|it| it.charset.clone())),
        ("status", stored.and_then(|it| it.status).map(|it| it.to_string())),
        ("fetched", stored.and_then(|it| it.fetched_ms).map(|it| it.to_string())),
        ("lastModified", node.last_modified_ms.map(|it| it.to_string())),
        ("etag", node.etag.clone()),
        ("reason", removal.map(|it| it.reason.as_str().to_owned())),
        ("firstMissing", removal.map(|it| it.first_missing_ms.to_string())),
        ("confirmations", removal.map(|it| it.confirmations.to_string())),
        ("previousUrl", node.previous_url.clone()),
    ]
}
