//! The part that a URI lives in: that of its domain, as for documents.
//!
//! Invariant: for a document of the web this is the part that the crawl keeps it in.

use page::domain::is_ip;
use page::ids::part_of;
use page::outlinks::domain_of;
use std::collections::HashMap;
use store::ids::Part;

/// Domains whose parts are remembered before all are forgotten.
const REMEMBERED_MAX: usize = 100_000;

/// Finds parts, and remembers those of domains.
#[derive(Debug, Clone)]
pub struct Parts {
    count: u32,
    known: HashMap<Box<str>, Part>,
}

impl Parts {
    /// For a database with so many parts.
    pub fn new(count: u32) -> Parts {
        Parts { count, known: HashMap::new() }
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The part of a URI.
    pub fn of(&mut self, uri: &str) -> Part {
        let reversed = domain_of(uri);
        if let Some(part) = self.known.get(reversed) {
            return *part;
        }
        if self.known.len() >= REMEMBERED_MAX {
            self.known.clear();
        }
        let part = of_domain(reversed, self.count);
        self.known.insert(reversed.into(), part);
        part
    }
}

/// The part of a domain, given by its reversed name.
pub fn of_domain(reversed: &str, parts: u32) -> Part {
    let domain = turned(reversed);
    Part(part_of(Some(&domain), &domain, parts).into())
}

/// A domain from its reversed name, or the other way.
pub fn turned(domain: &str) -> String {
    if is_ip(domain) {
        return domain.to_owned();
    }
    let labels: Vec<&str> = domain.rsplit('.').collect();
    labels.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use page::domain::SuffixList;
    use page::uri::Uri;

    #[test]
    fn a_uri_lives_where_the_crawl_keeps_its_document() {
        let list = SuffixList::bundled();
        let mut parts = Parts::new(16);
        for url in [
            "https://www.example.co.uk/a",
            "http://127.0.0.1:8801/x",
            "http://localhost/",
            "http://[::1]/",
            "https://a.b.github.io/",
        ] {
            let uri = Uri::canonical(url, list).unwrap().to_uri();
            let host = page::url::host_of(url);
            let expected = part_of(Some(list.grouping_domain(host)), url, 16);
            assert_eq!(parts.of(&uri), Part(expected.into()), "{url}");
        }
    }
}
