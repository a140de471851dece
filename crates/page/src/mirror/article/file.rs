//! The XML file of an article.

use std::io::{BufRead, Write};

use super::{Article, BODY_BYTES_MAX, FORMAT, REFERENCES_MAX, Reference};
use crate::mirror::error::Error;
use crate::mirror::names::HashName;
use crate::mirror::xml::{Piece, Pieces, Writer};

/// Writes an article; the same article is always the same bytes.
pub fn write<W: Write>(article: &Article, out: W) -> Result<W, Error> {
    if article.references.len() > REFERENCES_MAX {
        return Err(Error::TooLarge { what: "references", limit: REFERENCES_MAX });
    }
    let mut xml = Writer::new(out, BODY_BYTES_MAX)?;
    xml.open("article", &[("format", Some(FORMAT.to_string()))])?;
    xml.element("ptitle", &article.page_title)?;
    xml.element("title", &article.title)?;
    xml.element("url", &article.url)?;
    xml.element("author", &article.author)?;
    let last_modified = article.last_modified_ms.map(|ms| ms.to_string());
    xml.element("lastModified", last_modified.as_deref().unwrap_or(""))?;
    xml.element("bodyData", &article.body)?;
    xml.open("hashData", &[])?;
    for reference in &article.references {
        xml.open("hashNode", &[])?;
        xml.element("hash", &HashName::of(&reference.absolute_url).to_string())?;
        xml.element("absoluteUrl", &reference.absolute_url)?;
        xml.element("originalUrl", &reference.original_url)?;
        xml.close("hashNode")?;
    }
    xml.close("hashData")?;
    xml.close("article")?;
    xml.finish()
}

/// Reads an article.
pub fn read(source: impl BufRead) -> Result<Article, Error> {
    let mut pieces = Pieces::new(source, BODY_BYTES_MAX);
    let attributes = loop {
        match pieces.next()? {
            Piece::Start { name, attributes } if name == "article" => break attributes,
            Piece::Start { .. } => return Err(pieces.malformed("the root is not article")),
            _ => {}
        }
    };
    let format = attributes.get("format");
    if let Some(found) = format.filter(|it| *it != FORMAT.to_string()) {
        return Err(Error::UnknownFormat { found: found.to_owned(), known: FORMAT });
    }
    let is_ours = format.is_some();
    let mut article = Article::default();
    loop {
        match pieces.next()? {
            Piece::Start { name, .. } if name == "hashData" => {
                references(&mut pieces, is_ours, &mut article.references)?;
            }
            Piece::Start { name, .. } => {
                let value = pieces.value(is_ours)?;
                match name.as_str() {
                    "ptitle" => article.page_title = value,
                    "title" => article.title = value,
                    "url" => article.url = value,
                    "author" => article.author = value,
                    "bodyData" => article.body = value,
                    "lastModified" if value.trim().is_empty() => {}
                    "lastModified" => {
                        let ms = value.trim().parse();
                        let ms = ms.map_err(|_| pieces.malformed("lastModified is no number"))?;
                        article.last_modified_ms = Some(ms);
                    }
                    _ => {}
                }
            }
            Piece::Eof => return Ok(article),
            Piece::Text(_) | Piece::End => {}
        }
    }
}

fn references<R: BufRead>(
    pieces: &mut Pieces<R>,
    is_ours: bool,
    list: &mut Vec<Reference>,
) -> Result<(), Error> {
    let mut in_node = false;
    loop {
        match pieces.next()? {
            Piece::Start { name, .. } if name == "hashNode" && !in_node => {
                if list.len() == REFERENCES_MAX {
                    return Err(Error::TooLarge { what: "references", limit: REFERENCES_MAX });
                }
                in_node = true;
                let empty = String::new;
                list.push(Reference { absolute_url: empty(), original_url: empty() });
            }
            Piece::Start { name, .. } => {
                let value = pieces.value(is_ours)?;
                let Some(reference) = list.last_mut().filter(|_| in_node) else { continue };
                match name.as_str() {
                    "absoluteUrl" => reference.absolute_url = value,
                    "originalUrl" => reference.original_url = value,
                    _ => {}
                }
            }
            Piece::End if in_node => in_node = false,
            Piece::End => return Ok(()),
            Piece::Text(_) => {}
            Piece::Eof => return Err(pieces.malformed("it ends early")),
        }
    }
}
