//! Any text as one that XML 1.0 can hold, and back.

use std::borrow::Cow;

/// Bytes of `_xHHHH_`.
const ESCAPE_BYTES: usize = 7;

/// `value` without characters that XML cannot hold.
pub(in crate::mirror) fn encoded(value: &str) -> Cow<'_, str> {
    let needs_none =
        |(at, ch): (usize, char)| !is_forbidden(ch) && (ch != '_' || !looks_escaped(&value[at..]));
    if value.char_indices().all(needs_none) {
        return Cow::Borrowed(value);
    }
    let mut out = String::with_capacity(value.len() + 64);
    for (at, ch) in value.char_indices() {
        if is_forbidden(ch) {
            out.push_str(&format!("_x{:04X}_", u32::from(ch)));
        } else if ch == '_' && looks_escaped(&value[at..]) {
            out.push_str("_x005F_");
        } else {
            out.push(ch);
        }
    }
    Cow::Owned(out)
}

/// The text that was encoded.
pub(in crate::mirror) fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains("_x") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('_') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        match escape_at(rest) {
            Some(ch) => {
                out.push(ch);
                rest = &rest[ESCAPE_BYTES..];
            }
            None => {
                out.push('_');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Whether a text begins as an escape does. What ends it may be the beginning of another.
fn looks_escaped(text: &str) -> bool {
    text.strip_prefix("_x").and_then(|rest| rest.get(..4)).is_some_and(are_digits)
}

fn are_digits(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F'))
}

/// The character that `_xHHHH_` at the beginning of `text` stands for, if it is one that is
/// written so.
fn escape_at(text: &str) -> Option<char> {
    let digits = text.strip_prefix("_x")?.get(..4)?;
    if !are_digits(digits) || text.as_bytes().get(6) != Some(&b'_') {
        return None;
    }
    let ch = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
    (is_forbidden(ch) || ch == '_').then_some(ch)
}

/// Whether XML 1.0 has no place for it, not even as a character reference.
fn is_forbidden(ch: char) -> bool {
    matches!(ch, '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_xml_cannot_hold_is_written_as_spreadsheets_do() {
        for (value, text) in [
            ("a\0b\u{1b}\u{ffff}", "a_x0000_b_x001B__xFFFF_"),
            ("_x0000_", "_x005F_x0000_"),
            ("_x005F_", "_x005F_x005F_"),
            ("_x0041_ _x001b_ _x12", "_x005F_x0041_ _x001b_ _x12"),
            // A text that only became an escape by what was escaped behind it.
            ("_x0002\0", "_x005F_x0002_x0000_"),
            ("\t\r\né", "\t\r\né"),
        ] {
            assert_eq!(encoded(value), text);
            assert_eq!(decoded(text), value);
        }
    }

    proptest! {
        #[test]
        fn every_text_comes_back(value in "([\0-\x1f_x0-9A-F]|_x00|_x0002|_x001B_|_x005F_|é|\u{ffff}){0,12}") {
            let text = encoded(&value).into_owned();
            prop_assert!(!text.chars().any(is_forbidden));
            prop_assert_eq!(decoded(&text), value);
        }
    }
}
