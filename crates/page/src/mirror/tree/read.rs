//! Reading a tree of nodes as events.

use std::io::BufRead;

use super::{DEPTH_MAX, NODES_MAX, VALUE_BYTES_MAX, too_deep, too_many};
use crate::mirror::Error;
use crate::mirror::xml::{Attributes, Piece, Pieces};

/// Elements of one node or site beside its list.
const FIELDS_MAX: usize = 32;

/// The attributes and elements of a site or a node.
#[derive(Debug, Default)]
pub(in crate::mirror) struct Fields {
    pub(in crate::mirror) attributes: Attributes,
    elements: Vec<(String, String)>,
}

impl Fields {
    /// Takes the text of an element.
    pub(in crate::mirror) fn take(&mut self, name: &str) -> Option<String> {
        let found = self.elements.iter_mut().find(|(found, _)| found == name)?;
        Some(std::mem::take(&mut found.1))
    }

    fn push(&mut self, name: String, value: String) -> Result<(), String> {
        if self.elements.len() == FIELDS_MAX {
            return Err("too many elements".to_owned());
        }
        if self.elements.iter().any(|(found, _)| *found == name) {
            return Err(format!("{name} twice"));
        }
        self.elements.push((name, value));
        Ok(())
    }
}

/// What comes next in a tree.
#[derive(Debug)]
pub(in crate::mirror) enum Event {
    /// A node begins; what follows until it closes is in its list.
    Open(Fields),
    Close,
}

/// Reads a tree of nodes.
pub(in crate::mirror) struct TreeReader<R> {
    pieces: Pieces<R>,
    is_ours: bool,
    /// The first node's, until it is told of.
    first: Option<Attributes>,
    /// For each open node, whether its list is open.
    lists: Vec<bool>,
    nodes: usize,
    /// Whether the node told of last has no list, and is to be closed.
    is_closing: bool,
}

/// What ends the elements of a site or a node.
enum Stop {
    Node(Attributes),
    List,
    End,
}

impl<R: BufRead> TreeReader<R> {
    /// Reads up to the first node; the fields are those of the site.
    pub(in crate::mirror) fn new(source: R) -> Result<(TreeReader<R>, Fields), Error> {
        let mut pieces = Pieces::new(source, VALUE_BYTES_MAX);
        let attributes = loop {
            match pieces.next()? {
                Piece::Start { name, attributes } if name == "website" => break attributes,
                Piece::Start { .. } => return Err(pieces.malformed("the root is not website")),
                _ => {}
            }
        };
        let is_ours = attributes.get("format").is_some();
        let (lists, nodes) = (Vec::new(), 0);
        let mut tree = TreeReader { pieces, is_ours, first: None, lists, nodes, is_closing: false };
        let mut site = Fields { attributes, ..Fields::default() };
        match tree.elements(&mut site)? {
            Stop::Node(attributes) => tree.first = Some(attributes),
            Stop::List | Stop::End => return Err(tree.malformed("a site without a node")),
        }
        Ok((tree, site))
    }

    /// An error at the place where reading is.
    pub(in crate::mirror) fn malformed(&self, what: impl Into<String>) -> Error {
        self.pieces.malformed(what)
    }

    /// The next event; `None` behind the whole document.
    pub(in crate::mirror) fn next(&mut self) -> Result<Option<Event>, Error> {
        if std::mem::take(&mut self.is_closing) {
            self.lists.pop();
            return Ok(Some(Event::Close));
        }
        if let Some(attributes) = self.first.take() {
            return self.open(attributes);
        }
        loop {
            match self.pieces.next()? {
                Piece::Text(_) => {}
                Piece::Start { name, attributes } => match self.lists.last() {
                    Some(true) if name == "node" => return self.open(attributes),
                    Some(false) if name == "nodeList" => {
                        return Err(self.malformed("a second list"));
                    }
                    None if name == "node" => return Err(self.malformed("a second first node")),
                    _ => {
                        self.pieces.text()?;
                    }
                },
                Piece::End => match self.lists.last_mut() {
                    // The list ends, then its node.
                    Some(is_open) if *is_open => *is_open = false,
                    Some(_) => {
                        self.lists.pop();
                        return Ok(Some(Event::Close));
                    }
                    None => {}
                },
                Piece::Eof => return Ok(None),
            }
        }
    }

    /// Reads the elements of a node whose tag has been read.
    fn open(&mut self, attributes: Attributes) -> Result<Option<Event>, Error> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(too_many());
        }
        if self.lists.len() == DEPTH_MAX {
            return Err(too_deep());
        }
        let mut fields = Fields { attributes, ..Fields::default() };
        match self.elements(&mut fields)? {
            Stop::List => self.lists.push(true),
            Stop::End => {
                self.lists.push(false);
                self.is_closing = true;
            }
            Stop::Node(_) => return Err(self.malformed("a node outside of a list")),
        }
        Ok(Some(Event::Open(fields)))
    }

    fn elements(&mut self, fields: &mut Fields) -> Result<Stop, Error> {
        loop {
            match self.pieces.next()? {
                Piece::Start { name, attributes } if name == "node" => {
                    return Ok(Stop::Node(attributes));
                }
                Piece::Start { name, .. } if name == "nodeList" => return Ok(Stop::List),
                Piece::Start { name, .. } => {
                    let value = self.pieces.value(self.is_ours)?;
                    fields.push(name, value).map_err(|what| self.malformed(what))?;
                }
                Piece::End => return Ok(Stop::End),
                Piece::Text(_) => {}
                Piece::Eof => return Err(self.malformed("it ends early")),
            }
        }
    }
}
