//! XML as a row of tags and texts, owned and bounded.

use std::io::{self, BufRead, Read};

use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use crate::mirror::Error;

/// Attributes of one element; ours have a dozen.
const ATTRIBUTES_MAX: usize = 64;
/// Elements in each other, beyond what any reader here allows.
const DEPTH_MAX: usize = 1_024;
/// Bytes of a piece beside what its value may have: a character takes up to seven.
const PIECE_BYTES_PER_BYTE: usize = 8;

/// The next piece of a document.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::mirror) enum Piece {
    Start {
        name: String,
        attributes: Attributes,
    },
    Text(String),
    End,
    /// Behind the root element.
    Eof,
}

/// The attributes of an element.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::mirror) struct Attributes(Vec<(String, String)>);

impl Attributes {
    pub(in crate::mirror) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

/// Reads a document piece by piece.
pub(in crate::mirror) struct Pieces<R> {
    reader: Reader<Bounded<R>>,
    buffer: Vec<u8>,
    depth: usize,
    had_root: bool,
    value_bytes_max: usize,
}

impl<R: BufRead> Pieces<R> {
    /// A reader that takes no text or attribute of more than `value_bytes_max` bytes.
    pub(in crate::mirror) fn new(source: R, value_bytes_max: usize) -> Pieces<R> {
        let piece_bytes_max = PIECE_BYTES_PER_BYTE * value_bytes_max + 4_096;
        let bounded = Bounded { source, piece_bytes: 0, piece_bytes_max };
        let mut reader = Reader::from_reader(bounded);
        reader.config_mut().expand_empty_elements = true;
        Pieces { reader, buffer: Vec::new(), depth: 0, had_root: false, value_bytes_max }
    }

    /// Where reading is.
    pub(in crate::mirror) fn malformed(&self, what: impl Into<String>) -> Error {
        Error::Malformed { at: self.reader.buffer_position(), what: what.into() }
    }

    /// The next tag or text; text comes in as many pieces as there are references in it.
    pub(in crate::mirror) fn next(&mut self) -> Result<Piece, Error> {
        loop {
            self.buffer.clear();
            self.reader.get_mut().piece_bytes = 0;
            let event = match self.reader.read_event_into(&mut self.buffer) {
                Ok(event) => event,
                Err(quick_xml::Error::Io(error)) if error.kind() == io::ErrorKind::FileTooLarge => {
                    return Err(too_large(self.value_bytes_max));
                }
                Err(error) => return Err(malformed(&self.reader, &error.to_string())),
            };
            let piece = match event {
                Event::Start(_) if self.depth == 0 && self.had_root => {
                    return Err(malformed(&self.reader, "a second root"));
                }
                Event::Start(_) if self.depth >= DEPTH_MAX => {
                    return Err(Error::TooLarge {
                        what: "elements in each other",
                        limit: DEPTH_MAX,
                    });
                }
                Event::Start(start) => {
                    (self.depth, self.had_root) = (self.depth + 1, true);
                    let attributes = attributes(&start, self.value_bytes_max);
                    let attributes = attributes.map_err(|what| malformed(&self.reader, &what))?;
                    Piece::Start { name: start.name().as_ref().to_owned(), attributes }
                }
                Event::End(_) => {
                    self.depth = self.depth.saturating_sub(1);
                    Piece::End
                }
                Event::Text(text) => Piece::Text(with_line_ends(&text)),
                Event::CData(text) => Piece::Text(with_line_ends(&text)),
                Event::GeneralRef(reference) => match resolved(&reference) {
                    Some(text) => Piece::Text(text),
                    None => return Err(malformed(&self.reader, "an entity of its own")),
                },
                Event::DocType(_) => return Err(malformed(&self.reader, "a document type")),
                Event::Decl(declaration) => match declaration.encoding() {
                    Some(Ok(name)) if !name.eq_ignore_ascii_case("utf-8") => {
                        return Err(malformed(&self.reader, "an encoding other than UTF-8"));
                    }
                    _ => continue,
                },
                Event::Eof if self.depth > 0 || !self.had_root => {
                    return Err(malformed(&self.reader, "it ends early"));
                }
                Event::Eof => Piece::Eof,
                Event::Comment(_) | Event::PI(_) | Event::Empty(_) => continue,
            };
            match piece {
                Piece::Text(text) if self.depth == 0 => {
                    if !text.trim_start_matches('\u{feff}').trim_ascii().is_empty() {
                        return Err(malformed(&self.reader, "text outside of the root"));
                    }
                }
                piece => return Ok(piece),
            }
        }
    }

    /// The text of the element that has just begun, to its end. What is in further elements is
    /// passed over.
    pub(in crate::mirror) fn text(&mut self) -> Result<String, Error> {
        let (mut value, mut inner) = (String::new(), 0_usize);
        loop {
            match self.next()? {
                Piece::Text(text) if inner == 0 => {
                    value.push_str(&text);
                    if value.len() > self.value_bytes_max * PIECE_BYTES_PER_BYTE {
                        return Err(too_large(self.value_bytes_max));
                    }
                }
                Piece::Text(_) => {}
                Piece::Start { .. } => inner += 1,
                Piece::End if inner == 0 => return Ok(value),
                Piece::End => inner -= 1,
                Piece::Eof => return Err(self.malformed("it ends early")),
            }
        }
    }

    /// The text of the element that has just begun, characters that XML cannot hold restored
    /// where the writer was one of ours.
    pub(in crate::mirror) fn value(&mut self, is_ours: bool) -> Result<String, Error> {
        let text = self.text()?;
        let value = if is_ours { super::decoded(&text).into_owned() } else { text };
        if value.len() > self.value_bytes_max {
            return Err(too_large(self.value_bytes_max));
        }
        Ok(value)
    }
}

/// Line ends as XML has them.
fn with_line_ends(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// What a reference stands for, unless a document would have to say so.
fn resolved(reference: &BytesRef<'_>) -> Option<String> {
    match reference.resolve_char_ref() {
        Ok(Some(ch)) => Some(ch.to_string()),
        _ => resolve_predefined_entity(reference).map(str::to_owned),
    }
}

fn too_large(value_bytes_max: usize) -> Error {
    Error::TooLarge { what: "bytes of a value", limit: value_bytes_max }
}

fn malformed<R>(reader: &Reader<R>, what: &str) -> Error {
    Error::Malformed { at: reader.buffer_position(), what: what.to_owned() }
}

fn attributes(start: &BytesStart<'_>, bytes_max: usize) -> Result<Attributes, String> {
    let mut all = Vec::new();
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let value =
            attribute.normalized_value(XmlVersion::Implicit1_0).map_err(|it| it.to_string())?;
        let value = super::decoded(&value);
        if all.len() == ATTRIBUTES_MAX || value.len() > bytes_max {
            return Err("an element with too many or too long attributes".to_owned());
        }
        all.push((attribute.key.as_ref().to_owned(), value.into_owned()));
    }
    Ok(Attributes(all))
}

/// A source of which no more than a number of bytes is read for one piece.
struct Bounded<R> {
    source: R,
    piece_bytes: usize,
    piece_bytes_max: usize,
}

impl<R: BufRead> BufRead for Bounded<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.piece_bytes > self.piece_bytes_max {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        self.source.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.piece_bytes += bytes;
        self.source.consume(bytes);
    }
}

impl<R: BufRead> Read for Bounded<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?.read(out)?;
        self.consume(bytes);
        Ok(bytes)
    }
}
