//! Reading an x-file, node by node.

use std::io::BufRead;

use super::publication::{Outcome, Previous, Publication, Stage, cut_of_text};
use super::{FORMAT, Header, Node, Operation, Removal, RemovalReason, WebSite};
use crate::mirror::Error;
use crate::mirror::digest::ContentDigest;
use crate::mirror::names::HashName;
use crate::mirror::tree::{self, Fields, TreeReader};
use crate::mirror::values::{content, kind, parsed, required, with};
use crate::mirror::xml::Attributes;

/// What comes next in an x-file.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// A node begins, its list still empty; what follows until it closes is below it.
    Open(Box<Node>),
    /// The node that is open ends.
    Close,
}

/// Reads an x-file of any number of nodes one at a time.
pub struct Reader<R> {
    tree: TreeReader<R>,
    header: Header,
}

impl<R: BufRead> Reader<R> {
    /// Reads the header.
    pub fn new(source: R) -> Result<Reader<R>, Error> {
        let (tree, mut fields) = TreeReader::new(source)?;
        let attributes = &fields.attributes;
        if let Some(found) = attributes.get("format").filter(|it| *it != FORMAT.to_string()) {
            return Err(Error::UnknownFormat { found: found.to_owned(), known: FORMAT });
        }
        let is_numbered = attributes.get("number").is_some();
        let publication = is_numbered.then(|| publication(attributes)).transpose();
        let publication = publication.map_err(|what| tree.malformed(what))?;
        let editor = fields.take("editor").unwrap_or_default();
        let info = fields.take("info").unwrap_or_default();
        Ok(Reader { tree, header: Header { editor, info, publication } })
    }

    /// What the x-file says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The next event; `None` behind a whole x-file.
    #[allow(clippy::should_implement_trait)] // An error ends it; an iterator would go on.
    pub fn next(&mut self) -> Result<Option<Event>, Error> {
        Ok(match self.tree.next()? {
            Some(tree::Event::Open(fields)) => Some(Event::Open(Box::new(self.node(fields)?))),
            Some(tree::Event::Close) => Some(Event::Close),
            None => None,
        })
    }

    fn node(&self, mut fields: Fields) -> Result<Node, Error> {
        let missing = |name: &str| self.tree.malformed(format!("a node without {name}"));
        let url = fields.take("url").filter(|url| !url.is_empty()).ok_or_else(|| missing("url"))?;
        let word = fields.take("type").ok_or_else(|| missing("type"))?;
        let operation = Operation::parse(word.trim()).ok_or(Error::UnknownOperation(word))?;
        let hash_name = HashName::of(&url);
        let is_its_own = |text: &String| HashName::parse(text.trim()) == Some(hash_name);
        if fields.take("hashName").is_some_and(|text| !is_its_own(&text)) {
            return Err(self.tree.malformed(format!("hashName is not that of {url}")));
        }
        let name = fields.take("name").unwrap_or_default();
        let node = Node { name, ..Node::new(&url, "", operation) };
        node_of(&fields.attributes, node).map_err(|what| self.tree.malformed(what))
    }
}

/// Reads a whole x-file.
pub fn read(source: impl BufRead) -> Result<WebSite, Error> {
    let mut reader = Reader::new(source)?;
    let mut open: Vec<Node> = Vec::new();
    let mut root = None;
    while let Some(event) = reader.next()? {
        match event {
            Event::Open(node) => open.push(*node),
            Event::Close => {
                let Some(node) = open.pop() else { continue };
                match open.last_mut() {
                    Some(parent) => parent.node_list.push(node),
                    None => root = Some(node),
                }
            }
        }
    }
    let node = root.ok_or_else(|| reader.tree.malformed("a site without a node"))?;
    Ok(WebSite { header: reader.header, node })
}

fn publication(attributes: &Attributes) -> Result<Publication, String> {
    let owned = |name: &str| required(name, attributes.get(name).map(str::to_owned));
    let number = |name: &str| required(name, parsed(attributes, name)?);
    let previous = parsed(attributes, "previous")?;
    let previous_sha256 = with(attributes, "previousSha256", ContentDigest::parse)?;
    let previous = match (previous, previous_sha256) {
        (Some(number), Some(sha256)) => Some(Previous { number, sha256 }),
        (None, None) => None,
        _ => return Err("previous without its digest, or the other way round".to_owned()),
    };
    Ok(Publication {
        epoch: owned("epoch")?,
        number: number("number")?,
        stage: required("stage", with(attributes, "stage", Stage::parse)?)?,
        previous,
        base: number("base")?,
        oldest: number("oldest")?,
        started_ms: required("started", parsed(attributes, "started")?)?,
        completed_ms: parsed(attributes, "completed")?,
        producer: owned("producer")?,
        rules: with(attributes, "rules", ContentDigest::parse)?,
        outcome: required("outcome", with(attributes, "outcome", Outcome::parse)?)?,
        cut: required("cut", with(attributes, "cut", cut_of_text)?)?,
    })
}

fn node_of(attributes: &Attributes, node: Node) -> Result<Node, String> {
    Ok(Node {
        kind: kind(attributes)?,
        order: parsed(attributes, "order")?,
        is_covered: with(attributes, "covered", |it| it.parse().ok())?.unwrap_or(false),
        refresh_rate_s: parsed(attributes, "refreshRate")?,
        content: content(attributes)?,
        last_modified_ms: parsed(attributes, "lastModified")?,
        etag: attributes.get("etag").map(str::to_owned),
        removal: removal(attributes)?,
        previous_url: attributes.get("previousUrl").map(str::to_owned),
        ..node
    })
}

fn removal(attributes: &Attributes) -> Result<Option<Removal>, String> {
    let Some(reason) = with(attributes, "reason", RemovalReason::parse)? else { return Ok(None) };
    Ok(Some(Removal {
        reason,
        first_missing_ms: required("firstMissing", parsed(attributes, "firstMissing")?)?,
        confirmations: required("confirmations", parsed(attributes, "confirmations")?)?,
    }))
}
