//! How many different things there were, in a few bytes, and whether the parameters
//! of a path multiply without end.
//!
//! Linear counting (Whang and others, 1990): each thing sets one of so many bits, and
//! the share of bits left unset tells how many there were, to a few per cent.
//! Invariant: the size is fixed, whatever comes.

use super::pattern::parameters;
use super::vocabulary::mix;

/// A count of different things in `64 * WORDS` bits; it can tell about five times as
/// many things as it has bits from more.
#[derive(Debug)]
pub(super) struct Distinct<const WORDS: usize> {
    words: [u64; WORDS],
}

impl<const WORDS: usize> Distinct<WORDS> {
    const BITS: u64 = 64 * WORDS as u64;

    pub fn new() -> Self {
        Distinct { words: [0; WORDS] }
    }

    /// Counts a thing, by its hash.
    pub fn add(&mut self, hash: u64) {
        let bit = mix(hash) % Self::BITS;
        let word = usize::try_from(bit / 64).expect("a word of an array has a small number");
        self.words[word] |= 1 << (bit % 64);
    }

    /// About how many different things there were; `None` when they are too many to
    /// tell.
    pub fn count(&self) -> Option<u64> {
        let unset: u64 = self.words.iter().map(|word| u64::from(word.count_zeros())).sum();
        if unset == 0 {
            return None;
        }
        let bits = Self::BITS as f64;
        Some((bits * (bits / unset as f64).ln()).round() as u64)
    }
}

/// Bits for the hosts of a domain: enough to tell 50,000 to two per cent.
pub(super) type Hosts = Distinct<256>;
/// Bits for the values of a parameter: enough to tell some hundreds from many.
type Values = Distinct<2>;

/// Names of parameters that are told apart for one path.
const NAMES_MAX: usize = 32;
/// Parameters from which on a page counts as a combination: a number, a page of it and
/// an order are what honest pages have.
pub(super) const COMBINED_MIN: usize = 3;
/// How many times as many pages as three parameters explain there may be: the order of
/// parameters, which may double a page or two, is no explosion.
const EXPLAINED_TIMES: u64 = 4;

/// What the parameters of one path have been, on pages with three or more of them.
///
/// A number in a query has as many values as there are pages. Facets have a few values
/// each and are combined, so that there are more pages than any three parameters have
/// combinations. Dates (year, month, day) and tables of two or three dimensions are
/// explained by three.
#[derive(Debug, Default)]
pub(super) struct Combinations {
    documents: u64,
    names: Vec<(u64, Values)>,
}

impl Combinations {
    /// Counts a page by its query.
    pub fn add(&mut self, query: &str) {
        self.documents += 1;
        for (name, value) in parameters(query) {
            let name = hash(name);
            let known = self.names.iter().position(|(other, _)| *other == name);
            let place = match known {
                Some(place) => place,
                None if self.names.len() < NAMES_MAX => {
                    self.names.push((name, Values::new()));
                    self.names.len() - 1
                }
                None => continue,
            };
            self.names[place].1.add(hash(value));
        }
    }

    /// Whether there are more pages than three parameters explain; `None` while fewer
    /// than `documents_min` were counted.
    pub fn explode(&self, documents_min: u64) -> Option<bool> {
        if self.documents < documents_min {
            return None;
        }
        let mut most = [1u64; COMBINED_MIN];
        for (_, values) in &self.names {
            // So many values are what a number has, and a number explains everything.
            let Some(count) = values.count() else { return Some(false) };
            let least = most.iter_mut().min().expect("there are three");
            *least = (*least).max(count);
        }
        let explained: u64 = most.iter().product();
        Some(self.documents > EXPLAINED_TIMES * explained)
    }
}

/// FNV-1a. Who makes values collide makes an explosion of their own look worse.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_things_are_counted_closely() {
        let mut hosts = Hosts::new();
        for (up_to, slack) in [(0, 0), (10, 1), (2_000, 60), (50_000, 2_500)] {
            (0..up_to).for_each(|number| hosts.add(number));
            let count = hosts.count().unwrap();
            assert!(count.abs_diff(up_to) <= slack, "{count} for {up_to}");
        }
        (0..1_000_000).for_each(|number| hosts.add(number));
        assert_eq!(hosts.count(), None, "too many to tell");
    }

    fn explode(queries: impl Iterator<Item = String>) -> bool {
        let mut combinations = Combinations::default();
        queries.for_each(|query| combinations.add(&query));
        combinations.explode(1_000).expect("there are enough")
    }

    #[test]
    fn facets_are_more_than_three_parameters_explain() {
        let facets = (0..4_000u32).map(|n| {
            let value = |facet: u32| (n >> (2 * facet)) & 3;
            let pairs: Vec<String> = (0..6).map(|f| format!("facet{f}={}", value(f))).collect();
            pairs.join("&")
        });
        assert!(explode(facets));
    }

    #[test]
    fn numbers_dates_and_tables_are_explained() {
        let numbered = (0..20_000).map(|n| {
            format!("option=com_content&view=article&lang={}&Itemid={}&id={n}", n % 2, n % 9)
        });
        assert!(!explode(numbered));
        let days =
            (0..10_000).map(|n| format!("y={}&m={}&d={}&view=day", n / 372, n / 31 % 12, n % 31));
        assert!(!explode(days));
        let table =
            (0..30_000).map(|n| format!("from={}&to={}&by={}&unit=km", n % 60, n / 60 % 60, n % 7));
        assert!(!explode(table));
    }

    #[test]
    fn few_pages_say_nothing() {
        let mut combinations = Combinations::default();
        (0..999).for_each(|_| combinations.add("a=1&b=2&c=3"));
        assert_eq!(combinations.explode(1_000), None);
        combinations.add("a=1&b=2&c=3");
        assert_eq!(combinations.explode(1_000), Some(true));
    }
}
