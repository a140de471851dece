//! What is remembered of single texts and links: which texts a domain has said, which
//! links pages without news have named, and which hosts others link to.
//!
//! Tables in which a hash says its own place, and what is newer takes it. So they
//! are fixed in size, cost one look, and forget the oldest by chance. Forgetting makes
//! a text look new or a link look trusted, which lets more in, never less; a host of which
//! links are forgotten before its first page has come is linked to by those that come after.

use page::ids::DocHash;
use store::ids::{BinId, JobId};

/// Texts that are remembered, of all jobs and domains: a megabyte.
const TEXTS_MAX: usize = 1 << 17;
/// Links that are remembered, of all jobs: half a megabyte.
const LINKS_MAX: usize = 1 << 16;
/// Hosts that are linked to and of which nothing was fetched so far, of all jobs: half a megabyte.
const HOSTS_MAX: usize = 1 << 15;
/// The bits of a text's entry that hold the length of its shortest address.
const LENGTH_MASK: u64 = (1 << 16) - 1;

/// Carries every bit of a number into the upper ones, which are kept.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Whether a text has come before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repetition {
    New,
    /// Yes, at an address that is not longer.
    Again,
    /// Yes, but at longer addresses only. Of two addresses with one text, the longer
    /// one has a session or an order in it, whichever is met first; the shorter one is
    /// the page.
    Shorter,
}

#[derive(Debug)]
pub(super) struct Memory {
    texts: Box<[u64]>,
    links: Box<[u64]>,
    /// Hosts, and how many links there are to each.
    hosts: Box<[(u64, i64)]>,
}

impl Memory {
    pub fn new() -> Memory {
        Memory {
            texts: vec![0; TEXTS_MAX].into_boxed_slice(),
            links: vec![0; LINKS_MAX].into_boxed_slice(),
            hosts: vec![(0, 0); HOSTS_MAX].into_boxed_slice(),
        }
    }

    /// Remembers a text that `whose` has said at an address of so many bytes.
    pub fn meet_text(&mut self, whose: u64, hash: [u8; 16], url_bytes: usize) -> Repetition {
        let text = (short(hash) ^ whose).wrapping_mul(SPREAD);
        let entry = &mut self.texts[place(text, TEXTS_MAX)];
        let length = (url_bytes as u64).min(LENGTH_MASK);
        let repetition = match *entry {
            before if before | LENGTH_MASK != text | LENGTH_MASK => Repetition::New,
            before if length < before & LENGTH_MASK => Repetition::Shorter,
            _ => Repetition::Again,
        };
        if repetition != Repetition::Again {
            *entry = text & !LENGTH_MASK | length;
        }
        repetition
    }

    /// Counts a link to a host of which nothing was fetched so far.
    pub fn link_outside(&mut self, job: JobId, host: BinId) {
        let host = host_of(job, host);
        let entry = &mut self.hosts[place(host, HOSTS_MAX)];
        if entry.0 != host {
            *entry = (host, 0);
        }
        entry.1 += 1;
    }

    /// The links to a host that were counted, which are forgotten here.
    pub fn take_outside(&mut self, job: JobId, host: BinId) -> i64 {
        let host = host_of(job, host);
        let entry = &mut self.hosts[place(host, HOSTS_MAX)];
        if entry.0 == host { std::mem::take(entry).1 } else { 0 }
    }

    /// Remembers that a page without news has named a document.
    pub fn suspect(&mut self, job: JobId, document: DocHash) {
        let link = link_of(job, document);
        self.links[place(link, LINKS_MAX)] = link;
    }

    /// Forgets it: a page with news has named the document too.
    pub fn trust(&mut self, job: JobId, document: DocHash) {
        let link = link_of(job, document);
        let entry = &mut self.links[place(link, LINKS_MAX)];
        if *entry == link {
            *entry = 0;
        }
    }

    /// Whether pages without news have named a document, and no others have.
    pub fn is_suspect(&self, job: JobId, document: DocHash) -> bool {
        let link = link_of(job, document);
        self.links[place(link, LINKS_MAX)] == link
    }
}

fn host_of(job: JobId, host: BinId) -> u64 {
    (host.0.cast_unsigned() ^ job.0.cast_unsigned().rotate_left(32)).wrapping_mul(SPREAD)
}

fn link_of(job: JobId, document: DocHash) -> u64 {
    short(document.0) ^ job.0.cast_unsigned()
}

/// Half of a hash is enough where a collision costs next to nothing.
fn short(hash: [u8; 16]) -> u64 {
    let [first, .., last] = hash.as_chunks::<8>().0 else { return 0 };
    u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(32)
}

/// The place of an entry. The upper bits, because the lower ones may hold a length.
fn place(entry: u64, places: usize) -> usize {
    let bits = places.trailing_zeros();
    usize::try_from(entry >> (64 - bits)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use page::ids::hash128;

    #[test]
    fn a_text_is_known_again_to_those_who_said_it() {
        let mut memory = Memory::new();
        let text = hash128(b"a text");
        assert_eq!(memory.meet_text(1, text, 30), Repetition::New);
        assert_eq!(memory.meet_text(1, text, 30), Repetition::Again);
        assert_eq!(memory.meet_text(2, text, 30), Repetition::New, "somebody else");
        assert_eq!(memory.meet_text(1, hash128(b"another"), 30), Repetition::New);
    }

    #[test]
    fn the_shortest_address_of_a_text_is_not_a_double() {
        use Repetition::{Again, New, Shorter};
        let mut memory = Memory::new();
        let text = hash128(b"a text");
        let repetition = [50, 60, 40, 40, 45, 50, 39].map(|bytes| memory.meet_text(1, text, bytes));
        assert_eq!(repetition, [New, Again, Shorter, Again, Again, Again, Shorter]);
    }

    #[test]
    fn the_newer_of_two_texts_takes_the_place() {
        let mut memory = Memory::new();
        let texts: Vec<[u8; 16]> =
            (0..4 * TEXTS_MAX).map(|number| hash128(&number.to_le_bytes())).collect();
        for text in &texts {
            assert_eq!(memory.meet_text(0, *text, 9), Repetition::New);
        }
        assert_eq!(memory.meet_text(0, texts[texts.len() - 1], 9), Repetition::Again);
        let mut is_known = |text: &&[u8; 16]| memory.meet_text(0, **text, 9) == Repetition::Again;
        let known = texts.iter().filter(|text| is_known(text)).count();
        assert!(known < TEXTS_MAX, "{known} of {} are known", texts.len());
    }

    #[test]
    fn suspects_are_known_by_job_until_they_are_trusted() {
        let mut memory = Memory::new();
        let [first, second] = ["http://a.example/", "http://b.example/"].map(DocHash::of);
        memory.suspect(JobId(1), first);
        assert!(memory.is_suspect(JobId(1), first));
        assert!(!memory.is_suspect(JobId(2), first));
        assert!(!memory.is_suspect(JobId(1), second));
        memory.trust(JobId(2), first);
        assert!(memory.is_suspect(JobId(1), first));
        memory.trust(JobId(1), first);
        assert!(!memory.is_suspect(JobId(1), first));
    }

    #[test]
    fn links_to_a_host_are_counted_by_job_until_they_are_taken() {
        let mut memory = Memory::new();
        for _ in 0..3 {
            memory.link_outside(JobId(1), BinId(7));
        }
        memory.link_outside(JobId(2), BinId(7));
        assert_eq!(memory.take_outside(JobId(1), BinId(8)), 0);
        assert_eq!(memory.take_outside(JobId(1), BinId(7)), 3);
        assert_eq!(memory.take_outside(JobId(1), BinId(7)), 0);
        assert_eq!(memory.take_outside(JobId(2), BinId(7)), 1);
    }
}
