//! Text as the outside reads it: white space collapsed, control characters gone,
//! cut at a byte limit, and split into words.
//!
//! Relies on nothing but `char`. Invariant: what [`CollapsedText`] holds has no
//! control character but single line breaks, no leading, trailing or doubled
//! white space, and never more bytes than its limit; so collapsing is idempotent.

/// Collects pieces of text into one, collapsing white space as they come.
///
/// A page's text arrives in pieces (one for each run between two tags), and
/// neither a word nor a run of white space ends with its piece.
#[derive(Debug)]
pub struct CollapsedText {
    text: String,
    bytes_max: usize,
    pending: PendingSpace,
    full: bool,
}

/// White space that was read and is written only when a word follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PendingSpace {
    Nothing,
    Space,
    Line,
}

impl CollapsedText {
    /// An empty text that will hold at most `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> CollapsedText {
        CollapsedText {
            text: String::new(),
            bytes_max,
            pending: PendingSpace::Nothing,
            full: false,
        }
    }

    /// An empty text with room for `bytes` bytes made beforehand.
    pub fn with_room(bytes_max: usize, bytes: usize) -> CollapsedText {
        let text = String::with_capacity(bytes.min(bytes_max));
        CollapsedText { text, ..CollapsedText::new(bytes_max) }
    }

    /// Appends a piece; white space at its ends joins that of its neighbours.
    pub fn push(&mut self, piece: &str) {
        let bytes = piece.as_bytes();
        let class = |at: usize| bytes.get(at).map(|&byte| CLASS[usize::from(byte)]);
        let mut at = 0;
        while let Some(found) = class(at) {
            at += match found {
                ByteClass::Word => {
                    // Words with single spaces between them are copied in one go.
                    let start = at;
                    at += plain_words(&bytes[at..]);
                    while class(at) == Some(ByteClass::Word)
                        || (bytes.get(at) == Some(&b' ') && class(at + 1) == Some(ByteClass::Word))
                    {
                        at += 1;
                    }
                    self.words(&piece[start..at]);
                    0
                }
                ByteClass::Space => {
                    self.space();
                    1
                }
                ByteClass::Control => 1,
                ByteClass::Look => self.wide(&piece[at..]),
            };
        }
    }

    /// Ends a word: what follows is apart from what came before.
    pub fn space(&mut self) {
        self.pending = self.pending.max(PendingSpace::Space);
    }

    /// Ends a block: what follows stands on a new line.
    pub fn line(&mut self) {
        self.pending = PendingSpace::Line;
    }

    /// Whether no word has come yet.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether the limit cut something off.
    pub fn is_cut(&self) -> bool {
        self.full
    }

    /// The text so far.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text, without white space at its end.
    pub fn into_string(self) -> String {
        self.text
    }

    /// Takes the first character of `rest`, which may be white space or a control
    /// character outside ASCII, and says how many bytes it has.
    fn wide(&mut self, rest: &str) -> usize {
        let Some(first) = rest.chars().next() else { return rest.len() };
        let len = first.len_utf8();
        if first.is_whitespace() {
            self.space();
        } else if !first.is_control() {
            self.words(&rest[..len]);
        }
        len
    }

    /// Appends words that begin and end with a word.
    fn words(&mut self, words: &str) {
        if self.full {
            return;
        }
        let separated = self.pending != PendingSpace::Nothing && !self.text.is_empty();
        let room = self.bytes_max.saturating_sub(self.text.len() + usize::from(separated));
        let mut kept = words;
        if words.len() > room {
            kept = words[..words.floor_char_boundary(room)].trim_end_matches(' ');
            self.full = true;
        }
        if kept.is_empty() {
            return;
        }
        if separated {
            self.text.push(if self.pending == PendingSpace::Line { '\n' } else { ' ' });
        }
        self.pending = PendingSpace::Nothing;
        self.text.push_str(kept);
    }
}

/// `text` with white space collapsed to single spaces, cut to `bytes_max` bytes.
pub fn collapse(text: &str, bytes_max: usize) -> String {
    let mut collapsed = CollapsedText::new(bytes_max);
    collapsed.push(text);
    collapsed.into_string()
}

/// How many bytes of `text`, which begins with a word, are printable ASCII without two
/// spaces in a row, so far as a look at eight bytes at a time can tell. The last of them is
/// part of a word.
fn plain_words(text: &[u8]) -> usize {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = EACH << 7;
    let mut at = 0;
    while let Some(&eight) = text.get(at..).and_then(<[u8]>::first_chunk) {
        let eight = u64::from_le_bytes(eight);
        // The high bit of a byte is set by what is not ASCII, below a space, or DEL.
        let below_space = eight.wrapping_sub(EACH * 0x20);
        let above_tilde = eight.wrapping_add(EACH);
        if (eight | below_space | above_tilde) & HIGH != 0 {
            break;
        }
        let spaces = !((eight ^ (EACH * 0x20)) + EACH * 0x7f) & HIGH;
        if spaces & (spaces >> 8) != 0 {
            break;
        }
        // A space at the end is looked at again with what follows it.
        at += if spaces >> 63 == 1 { 7 } else { 8 };
    }
    at
}

/// What a byte of UTF-8 means to [`CollapsedText::push`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum ByteClass {
    Word,
    Space,
    Control,
    /// A lead byte below which there is white space or a control character:
    /// U+0080 to U+00BF, U+1000 to U+3FFF. All others only lead words.
    Look,
}

const CLASS: [ByteClass; 256] = classes();

const fn classes() -> [ByteClass; 256] {
    let mut table = [ByteClass::Word; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte {
            0x09..=0x0d | 0x20 => ByteClass::Space,
            0x00..=0x1f | 0x7f => ByteClass::Control,
            0xc2 | 0xe1 | 0xe2 | 0xe3 => ByteClass::Look,
            _ => ByteClass::Word,
        };
        byte += 1;
    }
    table
}

/// Calls `found` with a 64-bit hash of every token of `text`, in order.
///
/// A token is a run of letters and digits in lower case, or, in scripts written
/// without spaces (Han, Kana), each pair of neighbouring characters.
pub fn for_each_token(text: &str, mut found: impl FnMut(u64)) {
    let bytes = text.as_bytes();
    // Only a word with characters outside ASCII is copied, in lower case.
    let mut word = String::new();
    let mut ideograph: Option<char> = None;
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        while bytes.get(at).is_some_and(|&byte| LETTER_OR_DIGIT[usize::from(byte)]) {
            at += 1;
        }
        let plain = &text[start..at];
        if !plain.is_empty() {
            ideograph = None;
        }
        if bytes.get(at).is_none_or(u8::is_ascii) {
            if word.is_empty() && !plain.is_empty() {
                found(hash_of_word(&bytes[start..], plain.len(), LOWER_CASE));
            } else {
                push_lower(&mut word, plain);
                finish_word(&mut word, &mut found);
            }
            ideograph = None;
            at += 1;
            continue;
        }
        push_lower(&mut word, plain);
        let Some(ch) = text[at..].chars().next() else { break };
        at += ch.len_utf8();
        let previous = ideograph.take();
        if is_ideograph(ch) {
            finish_word(&mut word, &mut found);
            ideograph = Some(ch);
            if let Some(previous) = previous {
                word.extend([previous, ch]);
                finish_word(&mut word, &mut found);
            }
        } else if ch.is_alphanumeric() {
            word.extend(ch.to_lowercase());
        } else {
            finish_word(&mut word, &mut found);
        }
    }
    finish_word(&mut word, &mut found);
}

/// Whether a byte is an ASCII letter or digit: one look for three comparisons.
const LETTER_OR_DIGIT: [bool; 256] = letters_and_digits();

const fn letters_and_digits() -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0u8;
    while byte < 128 {
        table[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    table
}

fn push_lower(word: &mut String, plain: &str) {
    word.extend(plain.chars().map(|ch| ch.to_ascii_lowercase()));
}

fn finish_word(word: &mut String, found: &mut impl FnMut(u64)) {
    if !word.is_empty() {
        found(hash_of_word(word.as_bytes(), word.len(), 0));
        word.clear();
    }
}

/// The bit that tells a small ASCII letter from a capital, in eight bytes. Digits have it too.
const LOWER_CASE: u64 = 0x2020_2020_2020_2020;

/// Hashes the word that begins `text` and has `len` bytes, eight bytes at a time,
/// setting the bits of `lower_case` in each eight; the last eight are filled up with
/// spaces. Frozen: SimHashes made with it are stored.
fn hash_of_word(text: &[u8], len: usize, lower_case: u64) -> u64 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = len as u64;
    let mut add = |eight: u64| {
        hash = (hash.rotate_left(5) ^ (eight | lower_case)).wrapping_mul(MULTIPLIER);
    };
    let (eights, tail) = text[..len].as_chunks::<8>();
    eights.iter().for_each(|&eight| add(u64::from_le_bytes(eight)));
    add(match text[len - tail.len()..].first_chunk::<8>() {
        // Reading on past the word and blanking is quicker than copying its few bytes.
        Some(&eight) => {
            let beyond = u64::MAX << (8 * tail.len());
            (u64::from_le_bytes(eight) & !beyond) | (LOWER_CASE & beyond)
        }
        None => {
            let mut eight = [b' '; 8];
            eight[..tail.len()].copy_from_slice(tail);
            u64::from_le_bytes(eight)
        }
    });
    mix(hash)
}

/// Scripts whose words are not separated by spaces.
fn is_ideograph(ch: char) -> bool {
    matches!(ch,
        '\u{3040}'..='\u{30ff}'        // Hiragana, Katakana
        | '\u{31f0}'..='\u{31ff}'      // Katakana extensions
        | '\u{3400}'..='\u{4dbf}'      // Han extension A
        | '\u{4e00}'..='\u{9fff}'      // Han
        | '\u{f900}'..='\u{faff}'      // compatibility Han
        | '\u{20000}'..='\u{323af}')
}

/// The 64-bit finaliser of MurmurHash3: a bijection that spreads every bit.
pub(crate) fn mix(mut value: u64) -> u64 {
    value ^= value >> 33;
    value = value.wrapping_mul(0xff51_afd7_ed55_8ccd);
    value ^= value >> 33;
    value = value.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    value ^ (value >> 33)
}

#[cfg(test)]
mod tests;
