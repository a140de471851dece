//! What is counted of one pattern, of a family of patterns, of a host or of a
//! registered domain, and when that is closed.
//!
//! Invariant: whether a tally is closed follows from what a row of `traps` holds, so
//! one that was read back closes the same links. Counts of different things are not
//! kept; what they have closed stays so after a restart, what they have not is counted
//! anew.

use super::distinct::{Combinations, Hosts};
use super::rules::{BudgetLimits, BudgetRule, ClosedPattern, Level, Novelty};
use super::vocabulary::Vocabulary;
use page::fingerprint::{NEAR_BITS, distance};
use store::ids::{BinId, JobId, Part};
use store::tables::traps::TrapRow;

/// Recent documents that a share is about: each counts one part in so many.
const RECENT: i64 = 128;
/// All of them, in the unit of shares.
const ALL: i64 = 1_000_000;
/// From this share of stale documents on, nearly all of them are.
const STALE_SHARE: i64 = 950_000;
/// From this share of alike documents on, nearly all of them are. Lower, because a
/// vocabulary begins anew at times, and takes a year of a calendar for news then.
const ALIKE_SHARE: i64 = 800_000;
/// What is closed opens again when no more than this share speaks against it, so that
/// it does not swing to and fro.
const OPEN_SHARE: i64 = 500_000;
/// Up to this share of stale documents, a pattern is good.
const GOOD_SHARE: i64 = 200_000;
/// Documents that prove a pattern good, if nearly all of the recent ones are.
const PROVEN_DOCUMENTS: i64 = 20;
/// Documents with news for which one more suspect is borne with.
const FRESH_FOR_SUSPECT: i64 = 10;
/// Documents that a link from another host weighs when it is asked what is worth saving.
const LINK_WEIGHT: i64 = 10;
/// Bytes of lists that weigh as much as a document.
const BYTES_WEIGHT: i64 = 1_000_000;

/// Documents from which on the words of a text are looked at. Rules ask for hundreds,
/// and most patterns never have as many as this.
const VOCABULARY_DOCUMENTS: i64 = 50;

/// Texts that a new one is compared with. The more there are, the likelier it is that
/// an honest page comes near one of them by chance: where one word of a hundred is a
/// page's own, 41 % of the pages are near the one before, 84 % near one of four and 94 %
/// near one of eight (1,000 pages with menus of 2,000 words).
const TEXTS: usize = 4;
/// Texts whose SimHashes differ in more bits than this have much of their own, so their
/// words need no look: 90 % of the months of a calendar with 20 words around them are
/// within it, and 2 % of the pages of which half is their own.
const LIKE_BITS: u32 = 12;
/// Of a text that is not longer, a SimHash tells nothing: two numbers are much of it.
const SHORT_TEXT_BYTES: usize = 512;

/// The last few texts.
#[derive(Debug, Default)]
pub(super) struct Texts {
    simhashes: [u64; TEXTS],
    count: usize,
}

impl Texts {
    /// Remembers a text in place of the oldest.
    pub fn push(&mut self, simhash: u64) {
        self.simhashes[self.count % TEXTS] = simhash;
        self.count += 1;
    }

    /// In how many bits a text differs from the nearest of these; `None` if there are
    /// none.
    pub fn distance(&self, simhash: u64) -> Option<u32> {
        let known = &self.simhashes[..self.count.min(TEXTS)];
        known.iter().map(|other| distance(simhash, *other)).min()
    }
}

/// Where something is counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct TallyPlace {
    pub part: Part,
    pub job: JobId,
    pub bin: BinId,
}

/// What is counted of a pattern, a host or a domain.
#[derive(Debug)]
// tidy: wide a row of `traps` and what is worked out from it, counted together
pub(super) struct Tally {
    pub part: Part,
    pub job: JobId,
    pub bin: BinId,
    pub pattern: Box<str>,
    pub level: Level,
    pub documents: i64,
    pub stale: i64,
    pub deep: i64,
    /// Stale documents that no page with news had named.
    pub suspects: i64,
    /// Of a host: links to it from pages of other hosts.
    pub outside: i64,
    /// Of a host: pages that it may have without such links, as its job said last; `None` after
    /// a restart.
    pub host_pages: Option<i64>,
    /// Of sitemaps: bytes that were read.
    pub bytes: i64,
    /// Shares of the recent documents, in millionths.
    pub recent_stale: i64,
    pub recent_alike: i64,
    pub closed: Option<BudgetRule>,
    /// The last texts: of a host, those of pages that began a pattern.
    pub texts: Texts,
    /// When it last changed, on the clock of the documents.
    pub used: u64,
    /// Whether it is to be saved.
    pub changed: bool,
    /// Whether a row keeps it, which must not be left with what was true before.
    pub has_row: bool,
    /// What its texts were made of, once there are some.
    pub vocabulary: Option<Box<Vocabulary>>,
    pub combinations: Option<Box<Combinations>>,
    /// Hosts that have come, and about how many.
    pub hosts: Option<Box<Hosts>>,
    pub host_count: u64,
}

impl Tally {
    pub fn new(place: TallyPlace, level: Level, pattern: &str) -> Tally {
        let TallyPlace { part, job, bin } = place;
        Tally {
            part,
            job,
            bin,
            pattern: pattern.into(),
            level,
            documents: 0,
            stale: 0,
            deep: 0,
            suspects: 0,
            outside: 0,
            host_pages: None,
            bytes: 0,
            recent_stale: 0,
            recent_alike: 0,
            closed: None,
            texts: Texts::default(),
            used: 0,
            changed: false,
            has_row: false,
            vocabulary: None,
            combinations: None,
            hosts: None,
            host_count: 0,
        }
    }

    pub fn count(&mut self, novelty: Novelty, is_deep: bool) {
        self.documents += 1;
        self.stale += i64::from(novelty == Novelty::Stale);
        self.deep += i64::from(is_deep);
    }

    /// Moves the shares of the recent documents towards a new one. The first ones
    /// weigh more, so that a share is right from the start.
    pub fn weigh(&mut self, novelty: Novelty) {
        let weight = self.documents.clamp(1, RECENT);
        let towards = |share: i64, holds: bool| {
            let target = if holds { ALL } else { 0 };
            share + (target - share) / weight
        };
        self.recent_stale = towards(self.recent_stale, novelty == Novelty::Stale);
        self.recent_alike = towards(self.recent_alike, novelty != Novelty::Fresh);
    }

    /// Counts a host whose first document has come.
    pub fn add_host(&mut self, host: BinId) {
        let hosts = self.hosts.get_or_insert_with(|| Box::new(Hosts::new()));
        hosts.add(host.0.cast_unsigned());
        self.host_count = hosts.count().unwrap_or(u64::MAX);
    }

    /// What a text says beside those before it; `None` if it is the first.
    pub fn novelty(&mut self, simhash: u64, text: &str) -> Option<Novelty> {
        let distance = self.texts.distance(simhash)?;
        let is_near = distance <= NEAR_BITS;
        let may_be_alike = distance <= LIKE_BITS || text.len() <= SHORT_TEXT_BYTES;
        let has_news = if self.documents < VOCABULARY_DOCUMENTS || !may_be_alike {
            !is_near
        } else {
            let vocabulary = self.vocabulary.get_or_insert_with(|| Box::new(Vocabulary::new()));
            // One that is nearly another's double is taken in whole, to know the next.
            vocabulary.has_news(text, is_near)
        };
        // The first page of a pattern is compared with those of other patterns: if it
        // says what they say, it is not one of a series but another door to nowhere.
        let is_stale = is_near || self.level == Level::Host;
        Some(match has_news {
            true => Novelty::Fresh,
            false if is_stale => Novelty::Stale,
            false => Novelty::Alike,
        })
    }

    /// Documents that had something new to say.
    fn fresh(&self) -> i64 {
        self.documents - self.stale
    }

    /// Whether so many documents were good that another one probably is.
    pub fn is_proven(&self) -> bool {
        let is_good = self.closed.is_none() && self.recent_stale <= GOOD_SHARE;
        self.documents >= PROVEN_DOCUMENTS && is_good
    }

    /// What a document of the pattern is worth as a source of links.
    pub fn effective_novelty(&self, novelty: Novelty) -> Novelty {
        if novelty == Novelty::Stale && self.recent_stale > GOOD_SHARE {
            Novelty::Stale
        } else if self.recent_alike > OPEN_SHARE {
            Novelty::Alike
        } else {
            Novelty::Fresh
        }
    }

    /// Whether pages without news have named as many others like them as is borne with.
    pub fn is_out_of_trust(&self, limits: &BudgetLimits) -> bool {
        self.suspects >= limits.suspects_max + self.fresh() / FRESH_FOR_SUSPECT
    }

    /// Whether a host has as many pages as it may have with the links that there are to it.
    pub fn is_unlinked(&self, host_pages: i64) -> bool {
        self.documents >= ClosedPattern::pages_allowed(host_pages, self.outside)
    }

    /// Whether it is worth a row.
    pub fn is_saved(&self, limits: &BudgetLimits) -> bool {
        let links = self.outside.saturating_mul(LINK_WEIGHT);
        let weight = self.documents.saturating_add(links) + self.bytes / BYTES_WEIGHT;
        weight >= limits.saved_documents || self.closed.is_some() || self.has_row
    }

    /// Decides anew what closes it, after something was counted.
    pub fn settle(&mut self, limits: &BudgetLimits) {
        self.closed = match self.level {
            Level::Pattern => self.closed_by_stale(limits).or_else(|| self.closed_by_alike(limits)),
            Level::Family => {
                self.closed_by_combinations(limits).or_else(|| self.closed_by_stale(limits))
            }
            Level::Host => self.closed_by_suspects(limits).or_else(|| self.closed_by_pages()),
            Level::Lists => self.closed_by_number(limits),
            Level::ReadLists => {
                let is_large = self.bytes >= limits.list_bytes_max;
                is_large.then_some(BudgetRule::ListBytes).or_else(|| self.closed_by_number(limits))
            }
            Level::NestedLists => (self.documents > 0).then_some(BudgetRule::ListDepth),
            Level::Domain => {
                self.closed_by_hosts(limits).or_else(|| self.closed_by_suspects(limits))
            }
        };
    }

    /// Whether a share is as large as a rule demands; less is enough to keep what the
    /// rule has closed.
    fn holds(&self, rule: BudgetRule, share: i64, demanded: i64) -> bool {
        if self.closed == Some(rule) { share > OPEN_SHARE } else { share >= demanded }
    }

    fn closed_by_stale(&self, limits: &BudgetLimits) -> Option<BudgetRule> {
        let is_stale = self.documents >= limits.stale_documents
            && self.holds(BudgetRule::Stale, self.recent_stale, STALE_SHARE);
        is_stale.then_some(BudgetRule::Stale)
    }

    fn closed_by_alike(&self, limits: &BudgetLimits) -> Option<BudgetRule> {
        let is_alike = self.documents >= limits.alike_documents
            && self.holds(BudgetRule::Alike, self.recent_alike, ALIKE_SHARE);
        let is_deep = self.deep >= limits.deep_documents
            && self.holds(BudgetRule::Deep, self.recent_alike, ALIKE_SHARE);
        is_alike.then_some(BudgetRule::Alike).or(is_deep.then_some(BudgetRule::Deep))
    }

    fn closed_by_combinations(&self, limits: &BudgetLimits) -> Option<BudgetRule> {
        let counted = self.combinations.as_ref();
        let verdict = counted.and_then(|it| it.explode(limits.combined_documents));
        let was = self.closed == Some(BudgetRule::Combinations);
        verdict.unwrap_or(was).then_some(BudgetRule::Combinations)
    }

    fn closed_by_suspects(&self, limits: &BudgetLimits) -> Option<BudgetRule> {
        self.is_out_of_trust(limits).then_some(BudgetRule::Suspects)
    }

    fn closed_by_pages(&self) -> Option<BudgetRule> {
        let were_too_many = self.closed == Some(BudgetRule::Unlinked);
        let are_too_many = self.host_pages.map_or(were_too_many, |most| self.is_unlinked(most));
        are_too_many.then_some(BudgetRule::Unlinked)
    }

    fn closed_by_number(&self, limits: &BudgetLimits) -> Option<BudgetRule> {
        (self.documents >= limits.lists_max).then_some(BudgetRule::Lists)
    }

    fn closed_by_hosts(&self, limits: &BudgetLimits) -> Option<BudgetRule> {
        let were_too_many = self.closed == Some(BudgetRule::Hosts);
        if were_too_many || self.host_count >= limits.hosts_max {
            return Some(BudgetRule::Hosts);
        }
        let were_many = self.closed == Some(BudgetRule::StaleHosts);
        let is_stale = (were_many || self.host_count >= limits.stale_hosts)
            && self.holds(BudgetRule::StaleHosts, self.recent_stale, STALE_SHARE);
        is_stale.then_some(BudgetRule::StaleHosts)
    }

    /// The row that keeps it.
    pub fn to_row(&self) -> TrapRow {
        TrapRow {
            job: self.job,
            bin: self.bin,
            pattern: self.pattern.to_string(),
            documents: self.documents,
            stale: self.stale,
            deep: self.deep,
            suspects: self.suspects,
            recent_stale: self.recent_stale,
            recent_alike: self.recent_alike,
            rule: self.closed.map(|rule| rule.code().to_owned()),
            outside: self.outside,
            bytes: self.bytes,
        }
    }

    /// What a row has kept.
    pub fn from_row(part: Part, row: &TrapRow) -> Tally {
        let level = Level::of(&row.pattern);
        Tally {
            documents: row.documents,
            stale: row.stale,
            deep: row.deep,
            suspects: row.suspects,
            recent_stale: row.recent_stale,
            recent_alike: row.recent_alike,
            closed: row.rule.as_deref().and_then(BudgetRule::from_code),
            outside: row.outside,
            bytes: row.bytes,
            has_row: true,
            ..Tally::new(TallyPlace { part, job: row.job, bin: row.bin }, level, &row.pattern)
        }
    }
}

#[cfg(test)]
mod tests;
