//! Lists page by page, both ways: a cursor stands between two entries.
//!
//! A cursor is opaque to whoever carries it: a direction and the key of the entry it stands
//! behind or before. Invariant: following `next` to the end and `previous` back shows every
//! entry once each way while nothing changes; no page costs more than itself.

use data_encoding::BASE64URL_NOPAD;
use store::{Error, Result};

/// Entries of a page at most.
pub const LIMIT_MAX: usize = 10_000;
/// Bytes of a cursor's key: the longest URI and its rank.
const KEY_BYTES_MAX: usize = 16 << 10;

/// Where a page begins, and how long it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paging {
    /// The most entries that a page has.
    pub limit: usize,
    /// From here; from the beginning if nothing is said.
    pub at: Option<At>,
}

/// A place in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct At {
    /// The entry it stands behind, or before when it goes backwards.
    pub key: Vec<u8>,
    /// Whether the page ends here instead of beginning.
    pub backwards: bool,
}

/// A page of a list.
#[derive(
    Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[allow(missing_docs)]
pub struct Listing<T> {
    pub items: Vec<T>,
    /// The cursor of the page behind it, if there is one.
    pub next: Option<String>,
    /// The cursor of the page before it, if there is one.
    pub previous: Option<String>,
}

impl Paging {
    /// A page from the beginning, or from where a cursor stands.
    pub fn new(limit: usize, cursor: Option<&str>) -> Result<Paging> {
        let at = cursor.map(At::parse).transpose()?;
        Ok(Paging { limit: limit.clamp(1, LIMIT_MAX), at })
    }

    /// Whether it is read from its end.
    pub fn backwards(&self) -> bool {
        self.at.as_ref().is_some_and(|at| at.backwards)
    }

    /// One entry more than is shown tells whether there are more.
    pub fn wanted(&self) -> usize {
        self.limit + 1
    }

    /// The page, from up to [`Paging::wanted`] entries with their keys, in the order they
    /// were read.
    pub fn listing<T>(&self, found: Vec<(Vec<u8>, T)>) -> Listing<T> {
        self.listing_up_to(found, None)
    }

    /// The same of a list that was looked at up to the key `stopped` and not to its end:
    /// there may be more behind it, however little was found.
    pub fn listing_up_to<T>(
        &self,
        mut found: Vec<(Vec<u8>, T)>,
        stopped: Option<Vec<u8>>,
    ) -> Listing<T> {
        let is_cut = found.len() > self.limit;
        found.truncate(self.limit);
        let backwards = self.backwards();
        let last = if is_cut { found.last().map(|(key, _)| key.clone()) } else { stopped };
        let far = last.map(|key| At { key, backwards }.to_text());
        let near = self.at.as_ref().map(|at| match found.first() {
            Some((key, _)) => At { key: key.clone(), backwards: !backwards }.to_text(),
            None => at.turned().to_text(),
        });
        let (next, previous) = if backwards { (near, far) } else { (far, near) };
        if backwards {
            found.reverse();
        }
        Listing { items: found.into_iter().map(|(_, item)| item).collect(), next, previous }
    }
}

impl At {
    /// The same place, looked at the other way: what is seen begins with the entry that the
    /// cursor stands behind or before.
    fn turned(&self) -> At {
        let mut key = self.key.clone();
        if !self.backwards {
            key.push(0);
        } else if let Some(last @ 1..) = key.pop() {
            // No entry lies between: keys are of one length, or end in text, which has no 255.
            key.extend([last - 1, u8::MAX]);
        }
        At { key, backwards: !self.backwards }
    }

    fn to_text(&self) -> String {
        let direction = if self.backwards { 'p' } else { 'n' };
        format!("{direction}{}", BASE64URL_NOPAD.encode(&self.key))
    }

    fn parse(text: &str) -> Result<At> {
        let bad = || {
            Error::Refused(format!(
                "{text:?} is not a cursor; use the one that an earlier answer gave"
            ))
        };
        let (direction, key) = text.split_at_checked(1).ok_or_else(bad)?;
        let backwards = match direction {
            "n" => false,
            "p" => true,
            _ => return Err(bad()),
        };
        let key = BASE64URL_NOPAD.decode(key.as_bytes()).map_err(|_| bad())?;
        if key.len() > KEY_BYTES_MAX {
            return Err(bad());
        }
        Ok(At { key, backwards })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of the numbers from 0 to 9.
    fn page(paging: &Paging) -> Listing<u8> {
        let all: Vec<u8> = (0..10).collect();
        let found: Vec<u8> = match &paging.at {
            None => all,
            Some(at) if at.backwards => {
                all.into_iter().rev().filter(|it| [*it][..] < at.key[..]).collect()
            }
            Some(at) => all.into_iter().filter(|it| [*it][..] > at.key[..]).collect(),
        };
        let found = found.into_iter().take(paging.wanted()).map(|it| (vec![it], it)).collect();
        paging.listing(found)
    }

    #[test]
    fn a_list_is_walked_to_its_end_and_back() {
        for limit in 1..12 {
            let mut seen: Vec<u8> = Vec::new();
            let mut listing = page(&Paging::new(limit, None).unwrap());
            assert_eq!(listing.previous, None);
            loop {
                seen.extend(&listing.items);
                let Some(next) = &listing.next else { break };
                listing = page(&Paging::new(limit, Some(next)).unwrap());
            }
            assert_eq!(seen, (0..10).collect::<Vec<u8>>());
            let mut back = listing.items.clone();
            while let Some(previous) = &listing.previous {
                listing = page(&Paging::new(limit, Some(previous)).unwrap());
                back = [listing.items.clone(), back].concat();
            }
            assert_eq!(back, (0..10).collect::<Vec<u8>>(), "{limit}");
        }
    }

    #[test]
    fn an_empty_page_leads_back_to_what_is_before_it() {
        for (backwards, key, expected) in [(false, 9, vec![8, 9]), (true, 0, vec![0, 1])] {
            let at = At { key: vec![key], backwards }.to_text();
            let empty = Paging::new(2, Some(&at)).unwrap().listing_up_to::<u8>(Vec::new(), None);
            let back = if backwards { &empty.next } else { &empty.previous };
            assert_eq!([&empty.next, &empty.previous].into_iter().flatten().count(), 1);
            let back = page(&Paging::new(2, back.as_deref()).unwrap());
            assert_eq!(back.items, expected);
        }
    }

    #[test]
    fn what_is_no_cursor_is_refused() {
        for text in ["", "x", "qAA", "n!", "ü", "nA"] {
            assert!(Paging::new(5, Some(text)).is_err(), "{text:?}");
        }
        assert_eq!(Paging::new(0, None).unwrap().limit, 1);
    }
}
