//! Worksheets of Office: a line for each row, its cells in order.
//!
//! Most text stands once in a file of its own, and cells refer to it by number. Invariant:
//! at most [`STRINGS_MAX`] such texts of [`STRINGS_BYTES_MAX`] bytes in all are held.

use super::archive::Archive;
use super::parts::ExtractedText;
use super::xml::{XmlEvent, attribute, walk};
use std::ops::ControlFlow;

const STRINGS: &str = "xl/sharedStrings.xml";
/// Texts that cells refer to.
const STRINGS_MAX: usize = 1_000_000;
/// Bytes of these texts.
const STRINGS_BYTES_MAX: usize = 32 << 20;

/// Takes the text of all worksheets in.
pub(super) fn read(archive: &mut Archive<'_>, extracted: &mut ExtractedText) -> bool {
    let is_sheet = |name: &&String| name.starts_with("xl/worksheets/") && name.ends_with(".xml");
    let names: Vec<String> = archive.names.iter().filter(is_sheet).cloned().collect();
    let (strings, mut whole) = strings(archive);
    for name in &names {
        whole &= archive.part(name).is_some_and(|file| sheet(file, &strings, extracted));
        if extracted.is_full() {
            break;
        }
    }
    extracted.cut |= !whole || archive.is_spent();
    !names.is_empty()
}

fn strings(archive: &mut Archive<'_>) -> (Vec<String>, bool) {
    let (mut strings, mut bytes) = (Vec::new(), 0);
    // Without the file there are none.
    let Some(file) = archive.part(STRINGS) else { return (strings, true) };
    let (mut text, mut in_text, mut in_phonetic) = (String::new(), false, false);
    let mut is_cut = false;
    let whole = walk(file, |piece| {
        match piece {
            XmlEvent::Start(start) => match start.local_name().as_ref() {
                "t" => in_text = true,
                "rPh" => in_phonetic = true,
                _ => {}
            },
            XmlEvent::Text(more) if in_text && !in_phonetic => text.push_str(more),
            XmlEvent::End("t") => in_text = false,
            XmlEvent::End("rPh") => in_phonetic = false,
            XmlEvent::End("si") => {
                bytes += text.len();
                strings.push(std::mem::take(&mut text));
            }
            _ => {}
        }
        is_cut = strings.len() >= STRINGS_MAX || bytes + text.len() > STRINGS_BYTES_MAX;
        if is_cut { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    (strings, whole && !is_cut)
}

fn sheet(file: impl std::io::BufRead, strings: &[String], extracted: &mut ExtractedText) -> bool {
    let (mut refers, mut in_value) = (false, false);
    let mut value = String::new();
    walk(file, |piece| {
        match piece {
            XmlEvent::Start(start) => match start.local_name().as_ref() {
                "c" => refers = attribute(start, "t").as_deref() == Some("s"),
                "v" | "t" => in_value = true,
                _ => {}
            },
            XmlEvent::Text(more) if in_value && value.len() < super::TEXT_BYTES_MAX => {
                value.push_str(more);
            }
            XmlEvent::End("v" | "t") => in_value = false,
            XmlEvent::End("c") => {
                let number = || value.trim().parse::<usize>().ok();
                match refers {
                    true => {
                        extracted.say(number().and_then(|it| strings.get(it)).map_or("", |it| it))
                    }
                    false => extracted.say(&value),
                }
                extracted.space();
                value.clear();
            }
            XmlEvent::End("row") => extracted.line(),
            _ => {}
        }
        if extracted.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
}
