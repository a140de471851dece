//! White space, words and bounds of running text.

use super::*;
use proptest::prelude::*;

#[test]
fn white_space_of_every_kind_becomes_one_space() {
    let text = " \t a\u{a0}b\r\n\u{2003}c\u{3000}\u{85}d\u{2028} ";
    assert_eq!(collapse(text, 100), "a b c d");
}

#[test]
fn control_characters_vanish_without_splitting_a_word() {
    assert_eq!(collapse("a\0b\u{7f}c\u{9b}d\u{1b}[0m", 100), "abcd[0m");
}

#[test]
fn a_word_may_come_in_pieces_and_a_block_ends_a_line() {
    let mut text = CollapsedText::new(100);
    text.line();
    text.push("hel");
    text.push("lo ");
    text.line();
    text.space();
    text.push(" world");
    text.line();
    assert_eq!(text.as_str(), "hello\nworld");
    assert!(!text.is_cut());
}

#[test]
fn the_limit_cuts_on_a_character_and_says_so() {
    let mut text = CollapsedText::new(5);
    text.push("ab éé z");
    assert_eq!(text.as_str(), "ab é");
    assert!(text.is_cut());
    text.push("more");
    assert_eq!(text.into_string(), "ab é");
}

#[test]
fn a_text_that_just_fits_is_not_cut() {
    let mut text = CollapsedText::new(5);
    text.push("ab cd  ");
    assert_eq!(text.as_str(), "ab cd");
    assert!(!text.is_cut());
}

fn count(text: &str) -> usize {
    let mut tokens = 0;
    for_each_token(text, |_| tokens += 1);
    tokens
}

fn hashes(text: &str) -> Vec<u64> {
    let mut all = Vec::new();
    for_each_token(text, |hash| all.push(hash));
    all
}

#[test]
fn words_are_runs_of_letters_and_digits_whatever_their_case() {
    assert_eq!(hashes("Über-Straße 42!"), hashes("über straße, 42"));
    assert_eq!(count("Über-Straße 42!"), 3);
    assert_eq!(count(" ... "), 0);
}

#[test]
fn a_word_has_one_hash_wherever_it_stands() {
    assert_eq!(hashes("Tokyo2020")[0], hashes("tokyo2020東京")[0]);
    assert_eq!(hashes("abcdefghij")[0], hashes("ABCDEFGHIJ—x")[0]);
    assert_eq!(hashes("東京 x")[0], hashes("a東京")[1]);
    assert_ne!(hashes("abcdefgh"), hashes("abcdefg"));
    assert_ne!(hashes("а"), hashes("р"));
}

#[test]
fn han_and_kana_are_taken_in_pairs() {
    assert_eq!(count("東京都"), 2);
    assert_eq!(count("Tokyo東京都2020"), 4);
    assert_eq!(count("한국어 문서"), 2);
}

proptest! {
    #[test]
    fn collapsing_is_splitting_at_white_space_and_joining(text in "[ -~]{0,40}[a ~\\x7f\t\r\n\u{e9}\u{a0}\u{85}\u{3000}\0-\u{1f}]{0,20}[a-c ]{0,40}") {
        let shown: String = text.chars().filter(|ch| ch.is_whitespace() || !ch.is_control()).collect();
        let expected: Vec<_> = shown.split_whitespace().collect();
        prop_assert_eq!(collapse(&text, usize::MAX), expected.join(" "));
    }

    #[test]
    fn collapsing_is_idempotent_bounded_and_clean(text in any::<String>(), limit in 0usize..60) {
        let once = collapse(&text, limit);
        prop_assert!(once.len() <= limit);
        prop_assert_eq!(&collapse(&once, limit), &once);
        prop_assert!(!once.chars().any(char::is_control));
        prop_assert_eq!(once.split_whitespace().collect::<Vec<_>>().join(" "), once);
    }

    #[test]
    fn pieces_give_what_the_whole_gives(text in any::<String>(), cut in 0usize..40) {
        let cut = text.floor_char_boundary(cut.min(text.len()));
        let mut pieces = CollapsedText::new(1000);
        pieces.push(&text[..cut]);
        pieces.push(&text[cut..]);
        prop_assert_eq!(pieces.into_string(), collapse(&text, 1000));
    }
}
