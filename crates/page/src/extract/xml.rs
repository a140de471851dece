//! XML as a row of tags and texts.
//!
//! Relies on quick-xml, which expands no entity but the five that XML has, and opens no
//! other file. Invariants: the state is one event and a number of open elements, however
//! deep they are; text outside of the root is passed over.

use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use std::io::BufRead;
use std::ops::ControlFlow;

/// What comes next in a file.
pub(super) enum XmlEvent<'a> {
    Start(&'a BytesStart<'a>),
    /// An element ends, by its local name.
    End(&'a str),
    Text(&'a str),
}

/// Goes over a file. False if it ends before its root does, or is no XML from some place on.
pub(super) fn walk(file: impl BufRead, mut visit: impl FnMut(XmlEvent) -> ControlFlow<()>) -> bool {
    let mut reader = Reader::from_reader(file);
    let config = reader.config_mut();
    config.expand_empty_elements = true;
    config.allow_dangling_amp = true;
    config.check_end_names = false;
    let (mut buffer, mut depth, mut is_any) = (Vec::new(), 0_usize, false);
    loop {
        buffer.clear();
        let flow = match reader.read_event_into(&mut buffer) {
            Ok(Event::Start(start)) => {
                (depth, is_any) = (depth + 1, true);
                visit(XmlEvent::Start(&start))
            }
            Ok(Event::End(end)) => {
                depth = depth.saturating_sub(1);
                visit(XmlEvent::End(end.local_name().as_ref()))
            }
            Ok(Event::Eof) => return depth == 0 && is_any,
            Err(_) => return false,
            Ok(_) if depth == 0 => ControlFlow::Continue(()),
            Ok(Event::Text(text)) => visit(XmlEvent::Text(&text)),
            Ok(Event::CData(text)) => visit(XmlEvent::Text(&text)),
            Ok(Event::GeneralRef(reference)) => match reference.resolve_char_ref() {
                Ok(Some(ch)) => visit(XmlEvent::Text(ch.encode_utf8(&mut [0; 4]))),
                // One of a document's own, which nobody expands.
                _ => visit(XmlEvent::Text(resolve_predefined_entity(&reference).unwrap_or(" "))),
            },
            Ok(_) => ControlFlow::Continue(()),
        };
        if flow.is_break() {
            return true;
        }
    }
}

/// The value of an attribute, by its local name.
pub(super) fn attribute(start: &BytesStart<'_>, name: &str) -> Option<String> {
    // Checking each name against all others would take the square of their number.
    let mut attributes = start.attributes();
    let found = attributes
        .with_checks(false)
        .filter_map(Result::ok)
        .find(|it| it.key.local_name().as_ref() == name)?;
    Some(found.normalized_value(XmlVersion::Implicit1_0).ok()?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walked(xml: &str) -> (String, bool) {
        let mut out = String::new();
        let whole = walk(xml.as_bytes(), |piece| {
            match piece {
                XmlEvent::Start(start) => {
                    out.push_str(&format!("<{}", start.local_name().as_ref()));
                    out.extend(attribute(start, "k").map(|value| format!("={value}")));
                }
                XmlEvent::End(name) => out.push_str(&format!("/{name}")),
                XmlEvent::Text(text) => out.push_str(text),
            }
            ControlFlow::Continue(())
        });
        (out, whole)
    }

    #[test]
    fn tags_and_texts_come_in_order_and_entities_are_not_expanded() {
        let xml = "<?xml version='1.0'?><!DOCTYPE a [<!ENTITY e 'boom'>]>before\
                   <x:a y:k='1 &amp; 2'>t&#233;&lt;&e;<b/><![CDATA[<c>]]></x:a>";
        assert_eq!(walked(xml), ("<a=1 & 2té< <b/b<c>/a".to_owned(), true));
    }

    #[test]
    fn what_is_cut_off_or_no_xml_is_told() {
        assert_eq!(walked("<a>text<b"), ("<atext".to_owned(), false));
        assert!(!walked("<a>text").1 && !walked("").1 && !walked("no xml").1);
    }

    #[test]
    fn depth_costs_nothing() {
        assert!(walk(&*[b"<a>".repeat(500_000), b"</a>".repeat(500_000)].concat(), |_| {
            ControlFlow::Continue(())
        }));
    }
}
