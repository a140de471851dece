//! Registered domains: the part of a host name that somebody registered.
//!
//! Relies on the public suffix list (<https://publicsuffix.org>, Mozilla Public
//! License 2.0), whose text is bundled unchanged as `data/public_suffix_list.dat`.
//! A data directory keeps the text of the list it was made with and loads that, so
//! an upgrade of the program moves no document to another part.
//!
//! Hosts are expected as canonical URLs spell them: lower case, punycode, no
//! trailing dot. The list answers for Unicode labels and for capitals too.
//!
//! The list is kept as one flat map from name to the rules that end there, with
//! every parent of a rule marked. A lookup walks the host from the right and stops
//! at the first unknown name: two or three probes for nearly every host, nothing
//! allocated. Wildcards are honoured beside deeper rules, which a trie that
//! descends without turning back gets wrong.
//!
//! Invariant: an answer is a slice of the host that was asked about.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::net::Ipv4Addr;
use std::sync::OnceLock;

use crate::url::hash::quick_hash;

/// The list as it was when this program was made; write it into new data directories.
pub const BUNDLED_TEXT: &str = include_str!("../data/public_suffix_list.dat");

/// A list larger than this is not a public suffix list (today's has 340 KB).
pub const LIST_BYTES_MAX: usize = 8 << 20;

/// Why a text is not a public suffix list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    #[error("public suffix list has {0} bytes, more than {LIST_BYTES_MAX}")]
    TooLong(usize),
    #[error("public suffix list is not UTF-8")]
    NotUtf8,
    /// A line that is no rule.
    #[error("public suffix list line {line} is not a rule")]
    Rule {
        /// The line's number, from 1.
        line: usize,
    },
    /// Nothing but comments: a truncated download, most likely.
    #[error("public suffix list has no rules")]
    Empty,
}

/// The rules that end at one name, as bits.
type Rules = u8;
/// The name is a suffix.
const PLAIN: Rules = 1;
/// Every child of the name is a suffix (`*.name`).
const WILDCARD: Rules = 2;
/// The name is registered although its parent has a wildcard (`!name`).
const EXCEPTION: Rules = 4;
/// Some longer name has a rule.
const PARENT: Rules = 8;

/// A public suffix list, ICANN and private section together.
#[derive(Debug, Clone)]
pub struct SuffixList {
    rules: HashMap<Box<str>, Rules, BuildHasherDefault<NameHasher>>,
}

/// The table holds the list's names only, so nobody outside can fill it with
/// collisions, and a quick hash is good enough.
#[derive(Debug, Default)]
struct NameHasher(u64);

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        // The table wants good bits at both ends.
        let hash = u64::from(quick_hash(bytes));
        self.0 = hash << 32 | hash;
    }

    fn write_u8(&mut self, _end_of_text: u8) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Where the public suffix of a host begins, and whether the list names it.
struct Suffix {
    start: usize,
    listed: bool,
}

impl SuffixList {
    /// The bundled list, parsed once.
    pub fn bundled() -> &'static SuffixList {
        static BUNDLED: OnceLock<SuffixList> = OnceLock::new();
        BUNDLED.get_or_init(|| {
            SuffixList::parse(BUNDLED_TEXT.as_bytes()).expect("a test parses the bundled list")
        })
    }

    /// Reads the text of a list, as published.
    pub fn parse(bytes: &[u8]) -> Result<SuffixList, Error> {
        if bytes.len() > LIST_BYTES_MAX {
            return Err(Error::TooLong(bytes.len()));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| Error::NotUtf8)?;
        let mut list = SuffixList { rules: HashMap::default() };
        for (index, line) in text.lines().enumerate() {
            let Some(rule) = line.split_whitespace().next() else { continue };
            if !rule.starts_with("//") {
                list.add(rule).ok_or(Error::Rule { line: index + 1 })?;
            }
        }
        if list.rules.is_empty() { Err(Error::Empty) } else { Ok(list) }
    }

    fn add(&mut self, rule: &str) -> Option<()> {
        let (name, kind) = if let Some(name) = rule.strip_prefix("*.") {
            (name, WILDCARD)
        } else if let Some(name) = rule.strip_prefix('!') {
            (name, EXCEPTION)
        } else {
            (rule, PLAIN)
        };
        let name = name.to_lowercase();
        let well_formed = name.split('.').all(|label| !label.is_empty() && label != "*");
        let has_parent = name.contains('.');
        if !well_formed || (kind == EXCEPTION && !has_parent) {
            return None;
        }
        self.mark(&name, kind);
        if !name.is_ascii() {
            // Hosts arrive in punycode; the same converter is used for both.
            let ::url::Host::Domain(ascii) = ::url::Host::parse(&name).ok()? else { return None };
            self.mark(&ascii, kind);
        }
        Some(())
    }

    fn mark(&mut self, name: &str, kind: Rules) {
        *self.rules.entry(name.into()).or_default() |= kind;
        for (dot, _) in name.match_indices('.') {
            *self.rules.entry(name[dot + 1..].into()).or_default() |= PARENT;
        }
    }

    /// The registered domain of a host: its public suffix and one label more.
    ///
    /// A suffix itself has none, nor has an IP address. Under a top-level domain
    /// that the list does not name, the last two labels are it (the algorithm's
    /// default rule `*`).
    pub fn registered_domain<'h>(&self, host: &'h str) -> Option<&'h str> {
        let suffix = self.suffix(host)?;
        with_one_more_label(host, suffix.start)
    }

    /// The registered domain of a host under a suffix that the list names: what the
    /// link index demands of a host.
    pub fn listed_domain<'h>(&self, host: &'h str) -> Option<&'h str> {
        let suffix = self.suffix(host).filter(|suffix| suffix.listed)?;
        with_one_more_label(host, suffix.start)
    }

    /// The name that documents of a host are grouped by: its registered domain, or
    /// the host itself when it has none (an IP address, `localhost`, a bare suffix).
    ///
    /// This is what `ids::part_of` wants for a web page: a host is never split.
    pub fn grouping_domain<'h>(&self, host: &'h str) -> &'h str {
        self.registered_domain(host).unwrap_or(host)
    }

    /// None for what is no host name: an address, an empty name, an empty label.
    fn suffix(&self, host: &str) -> Option<Suffix> {
        let mut before = b'.';
        let mut has_capitals = false;
        for byte in host.bytes() {
            if byte == b'.' && before == b'.' {
                return None;
            }
            has_capitals |= byte.is_ascii_uppercase();
            before = byte;
        }
        if before == b'.' || is_ip(host) {
            return None;
        }
        if has_capitals {
            // Lengths stay the same, so the position holds for the original.
            return Some(self.suffix_of_lower(&host.to_ascii_lowercase()));
        }
        Some(self.suffix_of_lower(host))
    }

    fn suffix_of_lower(&self, host: &str) -> Suffix {
        let mut start = label_before(host, host.len());
        // The default rule: the last label, whatever it is.
        let mut found = Suffix { start, listed: false };
        let mut child_is_suffix = false;
        loop {
            let rules = self.rules.get(&host[start..]).copied().unwrap_or(0);
            if rules & EXCEPTION != 0 {
                let parent = start + host[start..].find('.').map_or(0, |dot| dot + 1);
                return Suffix { start: parent, listed: true };
            }
            if child_is_suffix || rules & PLAIN != 0 {
                found = Suffix { start, listed: true };
            }
            child_is_suffix = rules & WILDCARD != 0;
            let ends_here = rules & (PARENT | WILDCARD) == 0;
            if ends_here || start == 0 {
                return found;
            }
            start = label_before(host, start - 1);
        }
    }
}

/// Whether a host, as a URL spells it, is an address and not a name.
pub fn is_ip(host: &str) -> bool {
    let ends_in_digit = host.ends_with(|last: char| last.is_ascii_digit());
    host.starts_with('[') || (ends_in_digit && host.parse::<Ipv4Addr>().is_ok())
}

/// Where the label begins that ends at `end`.
fn label_before(host: &str, end: usize) -> usize {
    host.as_bytes()[..end].iter().rposition(|byte| *byte == b'.').map_or(0, |dot| dot + 1)
}

fn with_one_more_label(host: &str, suffix_start: usize) -> Option<&str> {
    let dot = suffix_start.checked_sub(1)?;
    Some(&host[label_before(host, dot)..])
}

#[cfg(test)]
mod tests;
