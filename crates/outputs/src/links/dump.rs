//! The index as the query table of Webindex: lines `row|family|qualifier|value`.
//!
//! URIs lie by the hashes of their names, and an in-link knows its page by number; so lines
//! are sorted, and in-links meet the URIs of their pages by being sorted too (`join`).
//! Nothing is looked up one by one. What is said of a URI comes from its own row, its
//! in-links and its page: the rows of rankings repeat that, and `links verify` compares them.
//!
//! Rows and qualifiers are written so that a line has one meaning (`cells::escaped`): `\`,
//! the ends of lines and NUL are escaped with a `\`, and `|` is `\x7c`. An anchor is escaped
//! in the same way but for `|`, which cannot be mistaken there: what stands behind the third
//! `|` is the value, and with sequence numbers what stands behind the last one is the number.
//! JSON stands as it is, since it has neither ends of lines nor NUL.
//!
//! Invariants: lines come in the bytewise order of row, family and qualifier as printed, and
//! no two have all three in common; they tell of one moment, as far as the map can show one;
//! memory is bounded whatever there is ([`SORT_BYTES`], a few times, and the longest line).

mod cells;
mod join;

use super::bulk::SORT_BYTES;
use super::bulk::external_sort::{Merge, Sorter};
use super::fold::decode_domain;
use super::index::LinkIndex;
use super::keys;
use super::node::Node;
use super::pages::Page;
use cells::QueryTableCell;
use join::InlinkJoiner;
use std::path::{Path, PathBuf};
use store::ids::Part;
use store::sorted::{Pair, Span, View};
use store::{Error, Result};

/// Rows of URIs and domains that are read at a time.
const ROWS_STEP: usize = 4_096;
/// Pages that are read at a time: they are large.
const PAGES_STEP: usize = 256;
/// Bytes of a value in one record; a page with many links is longer than a record may be.
const PIECE_BYTES: usize = 256 << 10;
/// Stands between the fields of a record, before every byte that a field has.
const END: u8 = 0;

/// How rows are laid out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Layout {
    /// As Webindex wrote them at last: ranks have rows of their own.
    #[default]
    Webindex,
    /// As its documentation of tables has them: ranks are columns of their domain.
    Seed003,
    /// As its first design had them: ranked by score, and with rows for the best of all.
    Seed000,
}

impl Layout {
    /// All layouts, in the order in which help lists them.
    pub const ALL: [Layout; 3] = [Layout::Webindex, Layout::Seed003, Layout::Seed000];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Layout::Webindex => "webindex",
            Layout::Seed003 => "seed003",
            Layout::Seed000 => "seed000",
        }
    }

    /// The layout of this name.
    pub fn parse(name: &str) -> Option<Layout> {
        Layout::ALL.into_iter().find(|layout| layout.name() == name)
    }
}

/// What is printed of the index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dump {
    /// How rows are laid out.
    pub layout: Layout,
    /// Whether a fifth column has the number of the change that wrote the cell. Numbers
    /// are those of a part, and all cells of a row of a page or a domain are of one part.
    pub with_seq: bool,
}

/// Where lines are sorted, and in how much memory.
#[derive(Debug, Clone)]
struct Scratch {
    directory: PathBuf,
    bytes: usize,
}

impl Scratch {
    fn sorter(&self) -> Result<Sorter> {
        Sorter::new(&self.directory, self.bytes, whole)
    }
}

/// A line has little in common with the one before it that could be left out.
fn whole(_: &[u8], record: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(record);
}

impl Dump {
    /// Prints the index, a line at a time and without its end, with files in a directory.
    pub fn write(
        &self,
        index: &LinkIndex,
        scratch: &Path,
        out: &mut dyn FnMut(&str) -> Result<()>,
    ) -> Result<()> {
        let scratch = Scratch { directory: scratch.to_owned(), bytes: SORT_BYTES };
        self.write_sorted(index, scratch, out)
    }

    fn write_sorted(
        &self,
        index: &LinkIndex,
        scratch: Scratch,
        out: &mut dyn FnMut(&str) -> Result<()>,
    ) -> Result<()> {
        let (dump, parts) = (*self, index.parts());
        // One look for all, so that counts fit lists. It may be taken again, and then
        // begins with files of its own.
        let lines = index.read(move |view| {
            let mut reading =
                DumpReader { view, dump, lines: scratch.sorter()?, record: Vec::new() };
            let mut joining = InlinkJoiner::new(scratch.sorter()?);
            for part in Part::all(parts) {
                reading.domains(part)?;
                reading.nodes(part, &mut joining)?;
            }
            let mut joined = joining.finish()?;
            for part in Part::all(parts) {
                reading.pages(part, &mut joined)?;
            }
            joined.rest(&mut |cell| reading.put(cell))?;
            Ok(reading.lines)
        })?;
        print(lines.finish()?, out)
    }
}

/// What is read, and the lines it makes.
struct DumpReader<'a> {
    view: &'a dyn View,
    dump: Dump,
    lines: Sorter,
    /// Used again for every record.
    record: Vec<u8>,
}

impl DumpReader<'_> {
    fn domains(&mut self, part: Part) -> Result<()> {
        let prefix = keys::domain("");
        let mut rows = RowBatches { part, span: Span::prefix(&prefix), step: ROWS_STEP };
        while let Some(step) = rows.next(self.view)? {
            for (key, value) in &step {
                let domain = std::str::from_utf8(&key[prefix.len()..])
                    .map_err(|_| Error::corrupt("a domain", "its key is broken"))?;
                let (pages, seq) = decode_domain(value)?;
                let (layout, pages) = (self.dump.layout, cells::Count { count: pages, seq });
                cells::of_domain(layout, domain, pages, &mut |cell| self.put(cell))?;
            }
        }
        Ok(())
    }

    /// URIs, and their in-links on the way to their pages.
    fn nodes(&mut self, part: Part, joining: &mut InlinkJoiner) -> Result<()> {
        let span = Span::prefix(&[keys::NODES.byte]);
        let mut rows = RowBatches { part, span, step: ROWS_STEP };
        while let Some(step) = rows.next(self.view)? {
            for (_, value) in &step {
                let node = Node::decode(value)?;
                if !node.counts() {
                    continue;
                }
                let layout = self.dump.layout;
                cells::of_node(layout, &node, &mut |cell| self.put(cell))?;
                joining.push_inlinks(self.view, part, &node)?;
            }
        }
        Ok(())
    }

    /// Pages, and the in-links that come from them.
    fn pages(&mut self, part: Part, joined: &mut join::JoinedInlinks) -> Result<()> {
        let span = Span::prefix(&[keys::PAGES.byte]);
        let mut rows = RowBatches { part, span, step: PAGES_STEP };
        while let Some(step) = rows.next(self.view)? {
            for (key, value) in &step {
                let number = keys::read_number(&key[1..])
                    .ok_or_else(|| Error::corrupt("a page", "its key is broken"))?;
                let page = Page::decode(value)?;
                let source = keys::PageRef { part, number };
                joined.up_to(source, &page.uri, &mut |cell| self.put(cell))?;
                if page.is_there() {
                    let layout = self.dump.layout;
                    cells::of_page(layout, page, &mut |cell| self.put(cell))?;
                }
            }
        }
        Ok(())
    }

    /// Takes a cell for printing: its fields, and its value in pieces.
    fn put(&mut self, cell: &QueryTableCell<'_>) -> Result<()> {
        let mut value = match cell.is_text {
            true => cells::escaped(cell.value, false).into_owned(),
            false => cell.value.to_owned(),
        };
        if self.dump.with_seq {
            value.push('|');
            value.push_str(&cell.seq.to_string());
        }
        self.record.clear();
        for field in [cell.row, cell.family, cell.qualifier] {
            self.record.extend_from_slice(cells::escaped(field, true).as_bytes());
            self.record.push(END);
        }
        let head = self.record.len();
        let pieces = value.as_bytes().chunks(PIECE_BYTES);
        // A value without bytes is a piece too.
        let pieces = pieces.chain(value.is_empty().then_some(&[][..]));
        for (number, piece) in (0u32..).zip(pieces) {
            self.record.truncate(head);
            self.record.extend_from_slice(&number.to_be_bytes());
            self.record.extend_from_slice(piece);
            self.lines.push(&self.record)?;
        }
        Ok(())
    }
}

/// Rows of a part, so many at a time.
struct RowBatches {
    part: Part,
    span: Span,
    step: usize,
}

impl RowBatches {
    /// The next of them; `None` behind the last.
    fn next(&mut self, view: &dyn View) -> Result<Option<Vec<Pair>>> {
        let rows = view.scan(self.part, &self.span, self.step)?;
        let Some((last, _)) = rows.last() else { return Ok(None) };
        self.span = self.span.clone().behind(last);
        Ok(Some(rows))
    }
}

/// Joins the pieces of each line, and prints it.
fn print(mut lines: Merge, out: &mut dyn FnMut(&str) -> Result<()>) -> Result<()> {
    let broken = || Error::corrupt("a line of the dump", "its record is broken");
    let (mut record, mut line) = (Vec::new(), Vec::new());
    let mut emit = |line: &[u8]| match line {
        [] => Ok(()),
        line => out(std::str::from_utf8(line).map_err(|_| broken())?),
    };
    while lines.next(&mut record)? {
        let mut fields = record.splitn(4, |byte| *byte == END);
        let (row, family, qualifier) = (fields.next(), fields.next(), fields.next());
        let piece = fields.next().and_then(|rest| rest.split_first_chunk::<4>());
        let (Some(row), Some(family), Some(qualifier), Some((number, piece))) =
            (row, family, qualifier, piece)
        else {
            return Err(broken());
        };
        if u32::from_be_bytes(*number) == 0 {
            emit(&line)?;
            line.clear();
            for field in [row, family, qualifier] {
                line.extend_from_slice(field);
                line.push(b'|');
            }
        }
        line.extend_from_slice(piece);
    }
    emit(&line)
}

#[cfg(test)]
mod tests;
