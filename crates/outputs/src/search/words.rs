//! Words of texts, as they are indexed and as they are asked for.
//!
//! Words are runs of letters and digits, in lower case and without accents. Chinese,
//! Japanese and Korean have no spaces to go by: a run of their characters becomes its pairs,
//! and its last character alone, so that every pair and every single character is found.
//!
//! Invariant: a text that is asked for has the words that the same text has in the index.

use tantivy::tokenizer::{AsciiFoldingFilter, TextAnalyzer, Token, TokenStream, Tokenizer};

/// The analyser's name in the schema.
pub const ANALYSER: &str = "words";
/// Bytes of a word; what is longer is data, and nobody asks for it.
pub const WORD_BYTES_MAX: usize = 64;

/// The analyser of texts.
pub fn analyser() -> TextAnalyzer {
    TextAnalyzer::builder(Words::default()).filter(AsciiFoldingFilter).build()
}

/// What is asked for in place of a piece of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TermMatch {
    /// Words that follow each other; most often it is one.
    Words(Vec<String>),
    /// One character of a language without spaces: whatever begins with it.
    Beginning(String),
}

/// What is asked for, of a piece of a question without white space, or of a phrase.
pub fn term_match(text: &str) -> Option<TermMatch> {
    let mut analyser = analyser();
    let mut stream = analyser.token_stream(text);
    let mut words: Vec<(usize, String)> = Vec::new();
    while let Some(token) = stream.next() {
        words.push((token.position, token.text.clone()));
    }
    let is_single = |word: &str| word.chars().count() == 1 && word.chars().all(is_dense);
    if let [(_, only)] = words.as_slice()
        && is_single(only)
    {
        return Some(TermMatch::Beginning(only.clone()));
    }
    // The last character of a run is in its last pair.
    let in_pair = |at: usize| {
        at > 0
            && is_single(&words[at].1)
            && words[at - 1].1.chars().all(is_dense)
            && words[at - 1].1.ends_with(words[at].1.as_str())
    };
    let kept: Vec<String> =
        (0..words.len()).filter(|at| !in_pair(*at)).map(|at| words[at].1.clone()).collect();
    (!kept.is_empty()).then_some(TermMatch::Words(kept))
}

/// Whether a character is of a language that is written without spaces.
fn is_dense(c: char) -> bool {
    matches!(u32::from(c),
        0x1100..=0x11FF | 0x3040..=0x30FF | 0x3130..=0x318F | 0x31F0..=0x31FF
        | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xAC00..=0xD7AF | 0xF900..=0xFAFF
        | 0xFF66..=0xFF9D | 0x2_0000..=0x2_FA1F | 0x3_0000..=0x3_23AF)
}

/// Splits texts into words.
#[derive(Clone, Default)]
pub struct Words {
    token: Token,
}

/// The words of one text.
pub struct WordStream<'a> {
    text: &'a str,
    at: usize,
    token: &'a mut Token,
}

impl Tokenizer for Words {
    type TokenStream<'a> = WordStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> WordStream<'a> {
        self.token.reset();
        WordStream { text, at: 0, token: &mut self.token }
    }
}

impl WordStream<'_> {
    /// The next character that belongs to a word, and where it begins.
    fn begin(&mut self) -> Option<(usize, char)> {
        let bytes = self.text.as_bytes();
        loop {
            let byte = *bytes.get(self.at)?;
            if byte.is_ascii_alphanumeric() {
                return Some((self.at, char::from(byte)));
            }
            if byte.is_ascii() {
                self.at += 1;
                continue;
            }
            let c = self.text[self.at..].chars().next()?;
            if c.is_alphanumeric() {
                return Some((self.at, c));
            }
            self.at += c.len_utf8();
        }
    }

    /// Takes the rest of a word that begins here. False if it is too long to be one.
    fn word(&mut self) -> bool {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            if byte.is_ascii_alphanumeric() {
                if self.token.text.len() <= WORD_BYTES_MAX {
                    self.token.text.push(char::from(byte.to_ascii_lowercase()));
                }
                self.at += 1;
                continue;
            }
            if byte.is_ascii() {
                break;
            }
            let Some(c) = self.text[self.at..].chars().next() else { break };
            if !c.is_alphanumeric() && !is_mark(c) || is_dense(c) {
                break;
            }
            if self.token.text.len() <= WORD_BYTES_MAX && !is_mark(c) {
                self.token.text.extend(c.to_lowercase());
            }
            self.at += c.len_utf8();
        }
        self.token.text.len() <= WORD_BYTES_MAX
    }

    /// Takes a pair of a run, or its last character alone.
    fn pair(&mut self, first: char) {
        self.token.text.push(first);
        self.at += first.len_utf8();
        let second = self.text[self.at..].chars().next().filter(|c| is_dense(*c));
        self.token.offset_to = self.at + second.map_or(0, char::len_utf8);
        self.token.text.extend(second);
    }
}

/// A combining accent, which is part of the letter before it and does not count.
fn is_mark(c: char) -> bool {
    matches!(u32::from(c), 0x0300..=0x036F)
}

impl TokenStream for WordStream<'_> {
    fn advance(&mut self) -> bool {
        while let Some((from, first)) = self.begin() {
            self.token.text.clear();
            self.token.position = self.token.position.wrapping_add(1);
            self.token.offset_from = from;
            if is_dense(first) {
                self.pair(first);
                return true;
            }
            let is_word = self.word();
            self.token.offset_to = self.at;
            if is_word {
                return true;
            }
        }
        false
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str) -> Vec<String> {
        let mut analyser = analyser();
        let mut stream = analyser.token_stream(text);
        let mut words = Vec::new();
        while let Some(token) = stream.next() {
            assert!(text.is_char_boundary(token.offset_from), "{text}");
            assert!(text.is_char_boundary(token.offset_to), "{text}");
            words.push(token.text.clone());
        }
        words
    }

    #[test]
    fn words_are_in_lower_case_and_without_accents() {
        assert_eq!(words("Hello, Wörld! e\u{301}t\u{e9} C3PO"), ["hello", "world", "ete", "c3po"]);
        assert_eq!(words("std::collections::HashMap"), ["std", "collections", "hashmap"]);
        assert_eq!(words("  \u{200b} .. "), [""; 0]);
        assert_eq!(words("Приве́т, Straße"), ["привет", "strasse"]);
    }

    #[test]
    fn languages_without_spaces_become_pairs() {
        assert_eq!(words("東京都"), ["東京", "京都", "都"]);
        assert_eq!(words("Rustは速い"), ["rust", "は速", "速い", "い"]);
        assert_eq!(words("한국어 책"), ["한국", "국어", "어", "책"]);
    }

    #[test]
    fn what_is_too_long_is_no_word_but_has_a_place() {
        let long = "x".repeat(WORD_BYTES_MAX + 1);
        assert_eq!(words(&format!("a {long} b")), ["a", "b"]);
        let mut analyser = analyser();
        let text = format!("a {long} b");
        let mut stream = analyser.token_stream(&text);
        let mut places = Vec::new();
        while let Some(token) = stream.next() {
            places.push(token.position);
        }
        assert_eq!(places, [0, 2]);
    }

    #[test]
    fn a_question_asks_for_what_is_indexed() {
        let of =
            |words: &[&str]| Some(TermMatch::Words(words.iter().map(|it| (*it).into()).collect()));
        assert_eq!(term_match("Hello"), of(&["hello"]));
        assert_eq!(term_match("wi-fi"), of(&["wi", "fi"]));
        assert_eq!(term_match("東京都"), of(&["東京", "京都"]));
        assert_eq!(term_match("東"), Some(TermMatch::Beginning("東".into())));
        assert_eq!(term_match("..."), None);
        assert_eq!(term_match("X"), of(&["x"]));
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(text in "\\PC{0,80}") {
            words(&text);
            term_match(&text);
        }
    }
}
