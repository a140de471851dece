//! What the texts of a pattern have been made of: whether one says something that they
//! did not, however long the menu around it is.
//!
//! Three words in a row are remembered, with their numbers and with all numbers taken
//! for one. So the days of a calendar soon have nothing new however far they go, while
//! the name of a product among a thousand words of menu is new, and so is a table of
//! measurements. A SimHash shows neither: it is about the share of a text. A Bloom
//! filter, which forgets all when it is full enough to err; so a text may look newer
//! than it is.

use std::ops::ControlFlow;

/// Words of 64 bits: 8 KiB hold the menus of a site, and some hundred texts beside.
const WORDS: usize = 1_024;
const BITS: u64 = 64 * WORDS as u64;
/// With more bits than this, more than one new triple of sixteen would look known.
const SET_MAX: u64 = BITS / 4;
/// A text is read up to here: bounded, and more than a menu.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// A longer word is several: where words are not kept apart, sentences would be one.
const WORD_BYTES_MAX: usize = 24;
/// New triples of words from which on a text says something: three new words between
/// others, as the name of a product or under a picture. Two may be the path that a page
/// complains not to know.
const WORD_NEWS_MIN: usize = 5;
/// The same for triples that only their numbers make new: a date has up to five in each
/// place where it stands, a counter three.
const NUMBER_NEWS_MIN: usize = 20;

/// Where the hash of a word begins; also the hash of a number without its digits.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// Triples of words that have come.
#[derive(Debug)]
pub(super) struct Vocabulary {
    bits: [u64; WORDS],
    set: u64,
}

impl Vocabulary {
    pub fn new() -> Vocabulary {
        Vocabulary { bits: [0; WORDS], set: 0 }
    }

    /// Takes in a text, all of it or up to its news. Returns whether it has any.
    pub fn has_news(&mut self, text: &str, takes_all: bool) -> bool {
        if self.set > SET_MAX {
            *self = Vocabulary::new();
        }
        let (mut word_news, mut number_news) = (0, 0);
        let (mut plain, mut exact) = ([0; 3], [0; 3]);
        let bytes = &text.as_bytes()[..text.len().min(TEXT_BYTES_MAX)];
        let mut has_news = false;
        let _ = try_each_word(bytes, |word| {
            plain = [plain[1], plain[2], word.plain];
            exact = [exact[1], exact[2], word.exact];
            word_news += usize::from(self.insert(triple(plain)));
            if exact != plain {
                number_news += usize::from(self.insert(triple(exact)));
            }
            has_news = word_news >= WORD_NEWS_MIN || number_news >= NUMBER_NEWS_MIN;
            if has_news && !takes_all { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        has_news
    }

    /// Returns whether it was not there.
    fn insert(&mut self, hash: u64) -> bool {
        let before = self.set;
        for bit in [hash % BITS, (hash >> 32) % BITS] {
            let word = &mut self.bits[(bit / 64) as usize];
            self.set += !*word >> (bit % 64) & 1;
            *word |= 1 << (bit % 64);
        }
        self.set > before
    }
}

/// Hashes of a word in lower case, without its digits and with them.
struct Word {
    plain: u64,
    exact: u64,
}

/// Hands out words until it is told to stop.
fn try_each_word(text: &[u8], mut each: impl FnMut(Word) -> ControlFlow<()>) -> ControlFlow<()> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
    let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    for run in text.split(|byte| !is_part(*byte)).filter(|run| !run.is_empty()) {
        for bytes in run.chunks(WORD_BYTES_MAX) {
            let mut word = Word { plain: BASIS, exact: BASIS };
            for byte in bytes.iter().map(u8::to_ascii_lowercase) {
                word.exact = add(word.exact, byte);
                word.plain = if byte.is_ascii_digit() { word.plain } else { add(word.plain, byte) };
            }
            each(word)?;
        }
    }
    ControlFlow::Continue(())
}

fn triple([first, second, third]: [u64; 3]) -> u64 {
    mix(first.rotate_left(42) ^ second.rotate_left(21) ^ third)
}

/// Spreads a hash over all bits (the finaliser of MurmurHash3).
pub(super) fn mix(mut value: u64) -> u64 {
    value = (value ^ value >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    value = (value ^ value >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    value ^ value >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many words that do not come again.
    fn words(of: usize, count: usize) -> String {
        let letters = |number: usize| -> String {
            number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
        };
        let words: Vec<String> = (0..count).map(|n| letters(of * 10_000 + n + 1)).collect();
        words.join(" ")
    }

    #[test]
    fn a_few_words_under_a_long_menu_are_news_and_a_counter_is_not() {
        const PAGES: usize = 500;
        let menu = words(0, 1_000);
        let visit = |n: usize| format!("visitor {n} {menu} of {}", n * 7);
        let product = |n: usize| format!("{menu} {} {menu}", words(n, 4));
        for takes_all in [true, false] {
            let mut it = Vocabulary::new();
            assert!(it.has_news(&menu, true));
            assert!(!it.has_news(&menu, takes_all));
            let news = (0..PAGES).filter(|n| it.has_news(&visit(*n), takes_all)).count();
            // Once in a while all is forgotten, and the menu itself is news.
            assert!(news < PAGES / 50, "{news} visits have news");
            let news = (1..=PAGES).filter(|n| it.has_news(&product(*n), takes_all)).count();
            assert!(news > PAGES - PAGES / 50, "{news} products have news");
        }
    }

    #[test]
    fn a_calendar_soon_has_nothing_new_and_a_table_of_numbers_has() {
        const NAMES: [&str; 7] = ["January", "February", "March", "April", "May", "June", "July"];
        let mut it = Vocabulary::new();
        let month = |n: usize| format!("{} {} no events in {0} {1}", NAMES[n % 7], 2000 + n / 7);
        let news = (0..2_000).filter(|number| it.has_news(&month(*number), false)).count();
        assert!(news < 100, "{news} of 2000 months have news");
        let row = |n: usize| format!("{} {} {}", n * 37 % 101, n * 53 % 97, n * 71 % 89);
        let table = |n: usize| -> String { (0..9).map(|m| row(n * 9 + m) + " mm ").collect() };
        let news = (0..2_000).filter(|number| it.has_news(&table(*number), false)).count();
        assert!(news > 1_900, "{news} of 2000 tables have news");
    }

    #[test]
    fn a_text_without_spaces_is_told_from_another() {
        let mut it = Vocabulary::new();
        let text = "何か新しいことを言う文章は空白なしで書かれることがある".repeat(4);
        assert!(it.has_news(&text, true));
        assert!(!it.has_news(&text, true));
        assert!(it.has_news(&text.replace('新', "古"), true));
    }

    #[test]
    fn a_text_is_taken_in_up_to_its_news_or_whole() {
        let text = words(7, 100);
        let mut it = Vocabulary::new();
        let rounds = (0..100).take_while(|_| it.has_news(&text, false)).count();
        assert!((15..=25).contains(&rounds), "five new triples at a time: {rounds}");
        let mut it = Vocabulary::new();
        assert!(it.has_news(&text, true) && !it.has_news(&text, false));
    }

    #[test]
    fn a_text_of_any_size_is_read_within_bounds() {
        let mut it = Vocabulary::new();
        let menu = words(0, 20_000);
        assert!(menu.len() > TEXT_BYTES_MAX);
        assert!(it.has_news(&menu, true), "so much fills it");
        assert!(it.has_news(&menu, true), "and it begins anew");
        assert!(!it.has_news("", true));
    }
}
