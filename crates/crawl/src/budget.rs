//! Budgets by host and pattern: counting that keeps a crawl from drowning in
//! pages without end, and never cuts a good site for being large.
//!
//! `trap` judges a URL by its shape; here it is judged by what came of others like it.
//! Each fetched document is counted ([`Budgets::fetched`]) in the tallies of its
//! [`pattern`], of its family, of its host and of its registered domain;
//! each new link is judged by them ([`Budgets::judge`]). Two things decide: what
//! documents say that others have not said, and what the page said that names a link.
//! A page with news may name what it likes; pages without any are what traps are made
//! of. `rules` has the limits and their reasons, `tally` the shares that count as
//! "nearly all".
//!
//! Not thread-safe, no clock, no I/O. The holder of a part restores what was saved
//! when it takes the lease and saves what has changed with each commit. Invariants:
//! memory is bounded by [`BudgetLimits::tallies_max`] and the tables of `memory`; a link from
//! a seed list is never closed; tallies that were saved and restored give the same verdicts.

mod distinct;
mod lists;
mod memory;
mod pattern;
mod rules;
mod seen;
mod tallies;
mod tally;
mod vocabulary;

pub use lists::counted_lists;
pub use pattern::pattern;
pub use rules::{
    BudgetLimits, BudgetRule, ClosedPattern, INDEX_DEPTH_MAX, Novelty, PAGES_PER_LINK,
};
pub use seen::{
    CandidateLink, ContentDigest, FetchedDocument, ListIndex, LookKind, NO_LIMIT, ReadList,
};

use distinct::COMBINED_MIN;
use memory::{Memory, Repetition};
use page::domain::SuffixList;
use page::ids::{DocHash, bin_of};
use page::url::{host_of, path_of};
use pattern::Shape;
use rules::Level;
use std::sync::Arc;
use store::ids::{BinId, JobId, Part};
use store::tables::traps::TrapRow;
use tallies::{Tallies, TallyKey};
use tally::{Tally, TallyPlace};

/// Links that a host has which a seed leads to by redirects: more than anybody follows.
const SEED_LINKS: i64 = 1_000_000_000;

/// What was counted, and what it closes.
#[derive(Debug)]
pub struct Budgets {
    limits: BudgetLimits,
    suffixes: Arc<SuffixList>,
    tallies: Tallies,
    memory: Memory,
    shape: Shape,
}

/// The tallies of one document.
struct TallyKeys {
    pattern: TallyKey,
    family: Option<TallyKey>,
    host: TallyKey,
    domain: TallyKey,
}

/// What is counted of one document.
#[derive(Clone, Copy)]
struct DocumentTally {
    novelty: Novelty,
    is_deep: bool,
    /// Whether it has no news, and a page without news has named it.
    is_suspect: bool,
    simhash: Option<u64>,
}

impl DocumentTally {
    /// In the tally of its pattern or family.
    fn count(self, tally: &mut Tally) {
        tally.count(self.novelty, self.is_deep);
        tally.weigh(self.novelty);
        self.keep_text(tally);
    }

    /// In the tally of its host or domain.
    fn count_place(self, tally: &mut Tally) {
        tally.count(self.novelty, self.is_deep);
        tally.suspects += i64::from(self.is_suspect);
    }

    fn keep_text(self, tally: &mut Tally) {
        self.simhash.into_iter().for_each(|simhash| tally.texts.push(simhash));
    }
}

impl Budgets {
    /// Budgets that have counted nothing.
    pub fn new(limits: BudgetLimits, suffixes: Arc<SuffixList>) -> Budgets {
        Budgets {
            limits,
            suffixes,
            tallies: Tallies::new(limits),
            memory: Memory::new(),
            shape: Shape::default(),
        }
    }

    /// Counts a document. Returns what it is worth as a source of links.
    pub fn fetched(&mut self, seen: &FetchedDocument<'_>) -> Novelty {
        self.shape.read(seen.url);
        let suffixes = Arc::clone(&self.suffixes);
        let domain = suffixes.grouping_domain(host_of(seen.url));
        let domain_hash = self.tallies.hash(domain);
        let keys = self.keys(seen, domain_hash);
        let repetition = self.meet_text(seen, domain_hash);
        if seen.look != LookKind::First {
            self.count_host(seen, &keys, |_| ());
            // Its links were judged when it was read first; if it is the same, there is
            // no reason to think better of them now.
            let novelty = if seen.look == LookKind::Same { Novelty::Stale } else { Novelty::Fresh };
            return self.effective_novelty(&keys, novelty);
        }
        let page = self.look_at(seen, &keys, repetition);
        let is_new_host = self.tallies.get(&keys.host).is_none();
        let is_new_pattern = self.tallies.get(&keys.pattern).is_none();
        self.count_pattern(seen, &keys, page);
        self.count_host(seen, &keys, |tally| {
            page.count_place(tally);
            if is_new_pattern {
                page.keep_text(tally);
            }
        });
        let make = || {
            let bin = BinId(bin_of(domain));
            let place = TallyPlace { part: seen.part, job: seen.job, bin };
            Tally::new(place, Level::Domain, &domain_name(domain))
        };
        self.tallies.count(keys.domain, make, |tally| {
            page.count_place(tally);
            if is_new_host {
                tally.weigh(page.novelty);
                tally.add_host(seen.bin);
            }
        });
        self.effective_novelty(&keys, page.novelty)
    }

    fn effective_novelty(&self, keys: &TallyKeys, novelty: Novelty) -> Novelty {
        self.tallies.get(&keys.pattern).map_or(novelty, |tally| tally.effective_novelty(novelty))
    }

    fn keys(&self, seen: &FetchedDocument<'_>, domain_hash: u64) -> TallyKeys {
        let FetchedDocument { job, bin, .. } = *seen;
        let key = |name: &str| TallyKey::Name(job, bin, self.tallies.hash(name));
        let family = Some(&self.shape.family).filter(|family| !family.is_empty());
        TallyKeys {
            pattern: key(&self.shape.pattern),
            family: family.map(|family| key(family)),
            host: TallyKey::Host(job, bin),
            domain: TallyKey::Domain(job, domain_hash),
        }
    }

    fn meet_text(&mut self, seen: &FetchedDocument<'_>, domain_hash: u64) -> Repetition {
        let hash = match seen.content {
            ContentDigest::Words { hash, .. } | ContentDigest::Bytes(hash) => hash,
            ContentDigest::Nothing => [0; 16],
        };
        self.memory.meet_text(domain_hash ^ seen.job.0.cast_unsigned(), hash, seen.url.len())
    }

    fn look_at(
        &mut self,
        seen: &FetchedDocument<'_>,
        keys: &TallyKeys,
        repetition: Repetition,
    ) -> DocumentTally {
        let simhash = match seen.content {
            ContentDigest::Words { simhash, .. } => Some(simhash),
            ContentDigest::Bytes(_) | ContentDigest::Nothing => None,
        };
        let novelty = match (repetition, seen.content) {
            (Repetition::Again, _) => Novelty::Stale,
            (Repetition::New, ContentDigest::Words { text, simhash, .. }) => {
                self.novelty(keys, simhash, text)
            }
            (Repetition::New | Repetition::Shorter, _) => Novelty::Fresh,
        };
        let is_deep = seen.hops > self.limits.deep_hops;
        let is_suspect =
            novelty == Novelty::Stale && self.memory.is_suspect(seen.job, seen.dochash);
        DocumentTally { novelty, is_deep, is_suspect, simhash }
    }

    fn count_pattern(&mut self, seen: &FetchedDocument<'_>, keys: &TallyKeys, page: DocumentTally) {
        let Shape { pattern, family, parameters, .. } = &self.shape;
        let place = TallyPlace { part: seen.part, job: seen.job, bin: seen.bin };
        let make = || Tally::new(place, Level::Pattern, pattern);
        self.tallies.count(keys.pattern, make, |tally| page.count(tally));
        let Some(key) = keys.family else { return };
        let make = || Tally::new(place, Level::Family, family);
        self.tallies.count(key, make, |tally| {
            page.count(tally);
            if *parameters >= COMBINED_MIN {
                tally.combinations.get_or_insert_default().add(query_of(seen.url));
            }
        });
    }

    fn count_host(
        &mut self,
        seen: &FetchedDocument<'_>,
        keys: &TallyKeys,
        change: impl FnOnce(&mut Tally),
    ) {
        let place = TallyPlace { part: seen.part, job: seen.job, bin: seen.bin };
        let make = || Tally::new(place, Level::Host, &host_name(host_of(seen.url)));
        let linked = self.memory.take_outside(seen.job, seen.bin);
        let is_named_elsewhere = seen.look == LookKind::First && seen.is_named_elsewhere;
        self.tallies.count(keys.host, make, |tally| {
            tally.host_pages = Some(seen.host_pages);
            tally.outside += linked + i64::from(is_named_elsewhere);
            if seen.hops <= 0 && seen.host_pages != NO_LIMIT {
                tally.outside = tally.outside.max(SEED_LINKS);
            }
            change(tally);
        });
    }

    /// Counts a link to a host from a page of another host.
    pub fn link_outside(&mut self, job: JobId, bin: BinId) {
        let key = TallyKey::Host(job, bin);
        match self.tallies.get(&key) {
            Some(_) => self.tallies.change(key, |tally| tally.outside += 1),
            None => self.memory.link_outside(job, bin),
        }
    }

    /// What a text says beside the last few of its pattern; if it is the first of that,
    /// of its family, or else of its host.
    fn novelty(&mut self, keys: &TallyKeys, simhash: u64, text: &str) -> Novelty {
        for key in [Some(keys.pattern), keys.family, Some(keys.host)].iter().flatten() {
            let tally = self.tallies.get_mut(key);
            if let Some(novelty) = tally.and_then(|tally| tally.novelty(simhash, text)) {
                return novelty;
            }
        }
        Novelty::Fresh
    }

    /// Whether a link is not to be followed, and why.
    ///
    /// To be asked of each link that is new or was closed before, and once more, with
    /// no source, before a document is fetched: the queue may hold thousands of a
    /// pattern that has closed since.
    pub fn judge(&mut self, link: &CandidateLink<'_>) -> Option<ClosedPattern> {
        if link.hops <= 0 {
            return None;
        }
        if let Some(closed) = self.judge_queued_list(link) {
            return Some(closed);
        }
        self.shape.read(link.url);
        let pattern = self.tallies.get(&TallyKey::Name(
            link.job,
            link.bin,
            self.tallies.hash(&self.shape.pattern),
        ));
        let is_proven = pattern.is_some_and(Tally::is_proven);
        let closed = pattern.and_then(|tally| self.closed_for(link, tally));
        let closed = closed.or_else(|| self.judge_family(link, is_proven));
        let closed = closed.or_else(|| self.judge_place(link, is_proven));
        let closed = closed.or_else(|| self.judge_pages(link));
        match link.from {
            Some(Novelty::Stale) if closed.is_none() && !is_proven => {
                self.memory.suspect(link.job, link.dochash);
            }
            Some(Novelty::Fresh) => self.vouch(link.job, link.dochash),
            _ => {}
        }
        closed
    }

    /// Takes note that a page with news names a document that is known already: what
    /// only pages without news had named is trusted then. Costs next to nothing.
    pub fn vouch(&mut self, job: JobId, document: DocHash) {
        self.memory.trust(job, document);
    }

    /// The verdict of a pattern or a family.
    fn closed_for(&self, link: &CandidateLink<'_>, tally: &Tally) -> Option<ClosedPattern> {
        let rule = tally.closed?;
        let from_alike = matches!(link.from, Some(Novelty::Alike | Novelty::Stale));
        let closes = match rule {
            BudgetRule::Stale => true,
            BudgetRule::Alike => from_alike,
            BudgetRule::Deep => from_alike && link.hops > self.limits.deep_hops,
            BudgetRule::Combinations => self.shape.parameters >= COMBINED_MIN,
            BudgetRule::Suspects
            | BudgetRule::StaleHosts
            | BudgetRule::Hosts
            | BudgetRule::Unlinked => false,
            BudgetRule::Lists | BudgetRule::ListDepth | BudgetRule::ListBytes => false,
        };
        closes.then(|| closed_by(tally, rule))
    }

    fn judge_family(&self, link: &CandidateLink<'_>, is_proven: bool) -> Option<ClosedPattern> {
        if self.shape.family.is_empty() {
            return None;
        }
        let tally = self.tallies.get(&TallyKey::Name(
            link.job,
            link.bin,
            self.tallies.hash(&self.shape.family),
        ))?;
        // What is good in a family, such as `index.php?id`, does not
        // suffer from the rest.
        let is_spared = is_proven && tally.closed != Some(BudgetRule::Combinations);
        if is_spared { None } else { self.closed_for(link, tally) }
    }

    /// The verdict of the host and the domain.
    fn judge_place(&self, link: &CandidateLink<'_>, is_proven: bool) -> Option<ClosedPattern> {
        let host = self.tallies.get(&TallyKey::Host(link.job, link.bin));
        let may_be_suspect = !is_proven && matches!(link.from, Some(Novelty::Stale) | None);
        if host.is_some() && !may_be_suspect {
            return None;
        }
        let name = self.suffixes.grouping_domain(host_of(link.url));
        let domain = self.tallies.get(&TallyKey::Domain(link.job, self.tallies.hash(name)));
        if host.is_none()
            && let Some(domain) = domain
            && let Some(rule @ (BudgetRule::Hosts | BudgetRule::StaleHosts)) = domain.closed
        {
            return Some(closed_by(domain, rule));
        }
        let places = [host, domain].into_iter().flatten();
        let distrustful = places.into_iter().find(|tally| tally.is_out_of_trust(&self.limits))?;
        let is_suspect = || link.from.is_some() || self.memory.is_suspect(link.job, link.dochash);
        (may_be_suspect && is_suspect()).then(|| closed_by(distrustful, BudgetRule::Suspects))
    }

    /// The verdict of the number of pages that the host has.
    fn judge_pages(&self, link: &CandidateLink<'_>) -> Option<ClosedPattern> {
        let host = self.tallies.get(&TallyKey::Host(link.job, link.bin))?;
        host.is_unlinked(link.host_pages).then(|| closed_by(host, BudgetRule::Unlinked))
    }

    /// The tallies of a part that have changed since they were last taken, to be saved
    /// with its commit. If that fails, they are taken again when they change again.
    pub fn take_changed(&mut self, part: Part) -> Vec<TrapRow> {
        self.tallies.take_changed(part)
    }

    /// Takes in tallies of a part that were saved, in place of those that are there.
    pub fn restore(&mut self, part: Part, rows: &[TrapRow]) {
        self.tallies.restore(part, rows);
    }

    /// Forgets a part, whose lease is somebody else's now.
    pub fn forget(&mut self, part: Part) {
        self.tallies.forget(part);
    }

    /// How many tallies there are.
    pub fn tallies(&self) -> usize {
        self.tallies.len()
    }
}

/// The names under which a document is counted, with the bin of each: of its pattern,
/// its family, its host and its domain, in the order in which they are asked.
pub fn counted_as(url: &str, suffixes: &SuffixList) -> Vec<(BinId, String)> {
    let mut shape = Shape::default();
    shape.read(url);
    let host = host_of(url);
    let domain = suffixes.grouping_domain(host);
    let bin = BinId(bin_of(host));
    let names = [shape.pattern, shape.family, host_name(host)];
    let mut names: Vec<(BinId, String)> =
        names.into_iter().filter(|name| !name.is_empty()).map(|name| (bin, name)).collect();
    names.push((BinId(bin_of(domain)), domain_name(domain)));
    names
}

fn host_name(host: &str) -> String {
    format!("{host}/*")
}

fn domain_name(domain: &str) -> String {
    format!("*.{domain}")
}

fn closed_by(tally: &Tally, rule: BudgetRule) -> ClosedPattern {
    let Tally { documents, outside, bytes, .. } = *tally;
    ClosedPattern { pattern: tally.pattern.to_string(), rule, documents, outside, bytes }
}

fn query_of(url: &str) -> &str {
    path_of(url).split_once('?').map_or("", |(_, query)| query)
}

#[cfg(test)]
mod tests;
