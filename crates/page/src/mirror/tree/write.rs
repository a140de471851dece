//! Writing a tree of nodes, one at a time.

use std::io::Write;

use super::{DEPTH_MAX, NODES_MAX, VALUE_BYTES_MAX, too_deep, too_many};
use crate::mirror::Error;
use crate::mirror::xml::{Attribute, Writer};

/// An element of a node or site: its name and its text.
pub(in crate::mirror) type Element<'a> = (&'static str, &'a str);

/// Writes a tree of nodes.
pub(in crate::mirror) struct TreeWriter<W> {
    xml: Writer<W>,
    /// For each open node, whether its list has been begun.
    lists: Vec<bool>,
    nodes: usize,
}

impl<W: Write> TreeWriter<W> {
    /// A writer that has written what there is to say of the site.
    pub(in crate::mirror) fn new(
        out: W,
        attributes: &[Attribute],
        elements: &[Element<'_>],
    ) -> Result<TreeWriter<W>, Error> {
        let mut xml = Writer::new(out, VALUE_BYTES_MAX)?;
        xml.open("website", attributes)?;
        elements.iter().try_for_each(|(name, text)| xml.element(name, text))?;
        Ok(TreeWriter { xml, lists: Vec::new(), nodes: 0 })
    }

    /// Begins a node; those that follow until it is closed stand in its list.
    pub(in crate::mirror) fn open(
        &mut self,
        attributes: &[Attribute],
        elements: &[Element<'_>],
    ) -> Result<(), Error> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(too_many());
        }
        if self.lists.len() == DEPTH_MAX {
            return Err(too_deep());
        }
        if let Some(has_list) = self.lists.last_mut()
            && !std::mem::replace(has_list, true)
        {
            self.xml.open("nodeList", &[])?;
        }
        self.xml.open("node", attributes)?;
        elements.iter().try_for_each(|(name, text)| self.xml.element(name, text))?;
        self.lists.push(false);
        Ok(())
    }

    /// Ends a node.
    pub(in crate::mirror) fn close(&mut self) -> Result<(), Error> {
        if self.lists.pop() == Some(true) {
            self.xml.close("nodeList")?;
        }
        self.xml.close("node")
    }

    /// Ends the document, and whatever nodes are open; gives what was written to.
    pub(in crate::mirror) fn finish(mut self) -> Result<W, Error> {
        while !self.lists.is_empty() {
            self.close()?;
        }
        self.xml.close("website")?;
        self.xml.finish()
    }
}
