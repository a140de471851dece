//! The rules that close a pattern, their limits, and what people are told.
//!
//! Invariant: a rule's code is stored and never changes its meaning.

use page::bytesize::human_bytes;
use store::tables::traps::TrapRow;

/// Indexes of sitemaps in a row that are followed. sitemaps.org allows no index to name another;
/// sites that do it have one level more.
pub const INDEX_DEPTH_MAX: u8 = 3;
/// Pages that a host may have more for each link to it from a page of another host.
pub const PAGES_PER_LINK: i64 = 100;

/// When patterns close. The numbers are for one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetLimits {
    /// Tallies kept in memory, of all jobs; the smallest go first. Some 400 bytes each,
    /// and 8 KiB more for those of patterns and hosts with 50 documents or more.
    pub tallies_max: usize,
    /// A pattern is not closed for stale documents before so many were fetched: at a
    /// request a second, eight minutes of a host's time, and more than a good site has
    /// of empty or doubled pages in a row.
    pub stale_documents: i64,
    /// Nor, for documents far from every seed that are alike, before so many of them.
    pub deep_documents: i64,
    /// Nor for documents that are only alike before so many: results of draws and names
    /// without a word about them are alike too.
    pub alike_documents: i64,
    /// A document is deep if more than so many links from a seed: where archives stop
    /// altogether (Heritrix, `TooManyHopsDecideRule`).
    pub deep_hops: i64,
    /// The queries of a path are not taken for an explosion before so many pages with
    /// three parameters or more.
    pub combined_documents: u64,
    /// Pages without news that others of their kind may name in a host or domain; the
    /// good pages there add to it.
    pub suspects_max: i64,
    /// Hosts under a registered domain from which on new ones are refused, if the
    /// first pages of the recent ones said nothing new: more than a company has.
    pub stale_hosts: u64,
    /// Hosts under a registered domain in any case. Each costs a robots.txt and is
    /// polite to itself only. Those who give a host to each customer have more, but
    /// most of them are public suffixes, where this does not count.
    pub hosts_max: u64,
    /// Sitemaps of a host that indexes may name: as many as list 250 million pages. Without a limit
    /// an index that names indexes is followed for ever. As many are read, whoever names them.
    pub lists_max: i64,
    /// Bytes of sitemaps of a host that are read, unpacked: they list some ten million pages, which
    /// are four months of a host's time at a request a second. Without a limit the number alone
    /// would allow 250 GB.
    pub list_bytes_max: i64,
    /// A tally is saved from so many documents on; what is smaller is soon counted
    /// again. Links from other hosts weigh ten documents each, a megabyte of lists one.
    pub saved_documents: i64,
}

impl Default for BudgetLimits {
    fn default() -> BudgetLimits {
        BudgetLimits {
            tallies_max: 10_000,
            stale_documents: 500,
            deep_documents: 500,
            alike_documents: 1_000,
            deep_hops: 20,
            combined_documents: 500,
            suspects_max: 300,
            stale_hosts: 2_000,
            hosts_max: 50_000,
            lists_max: 5_000,
            list_bytes_max: 2_000_000_000,
            saved_documents: 100,
        }
    }
}

/// What a document said beside those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Novelty {
    /// It says something that no other page has said.
    Fresh,
    /// What others of its pattern said, but for a word or some numbers, as the days of a
    /// calendar do.
    Alike,
    /// Nothing: no text, one that the domain has had, or nearly one.
    Stale,
}

/// How the name of the sitemaps that a host's indexes name ends; no URL has such a path.
pub(super) const LISTS: &str = "/<sitemaps>";
/// How the name of a host's sitemaps that were read ends.
pub(super) const READ_LISTS: &str = "/<sitemaps read>";
/// How the name of the sitemaps ends that are too many indexes away.
pub(super) const NESTED_LISTS: &str = "/<nested sitemaps>";

/// What a tally is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// A pattern, as in `a.example/product/#`.
    Pattern,
    /// All queries of a path, or all that is under an id: `a.example/list?*`,
    /// `a.example/s/#/*`.
    Family,
    /// A whole host, as in `a.example/*`.
    Host,
    /// A registered domain: `*.example.com`.
    Domain,
    /// What indexes of sitemaps of a host name: `a.example/<sitemaps>`.
    Lists,
    /// Sitemaps of a host that were read: `a.example/<sitemaps read>`.
    ReadLists,
    /// What indexes of a host name that is nested too deeply: `a.example/<nested sitemaps>`.
    NestedLists,
}

impl Level {
    /// What the name of a tally says. A pattern has no star of its own.
    pub fn of(name: &str) -> Level {
        if name.starts_with("*.") {
            return Level::Domain;
        }
        let lists = [
            (LISTS, Level::Lists),
            (READ_LISTS, Level::ReadLists),
            (NESTED_LISTS, Level::NestedLists),
        ];
        if let Some((_, level)) = lists.into_iter().find(|(end, _)| name.ends_with(end)) {
            return level;
        }
        match name.strip_suffix("/*") {
            Some(host) if !host.contains('/') => Level::Host,
            Some(_) => Level::Family,
            None if name.ends_with("?*") => Level::Family,
            None => Level::Pattern,
        }
    }
}

/// Why links are no longer followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetRule {
    /// Nearly all recent documents of the pattern said nothing new.
    Stale,
    /// Very many were fetched that are nearly the same, and such a page names more.
    Alike,
    /// Many were fetched far from every seed that are nearly the same, and such a page
    /// names more.
    Deep,
    /// The parameters of a path are combined without end.
    Combinations,
    /// Pages that said nothing new name others without end.
    Suspects,
    /// Very many hosts of a domain, and the recent ones said nothing new.
    StaleHosts,
    /// More hosts of a domain than one crawl follows.
    Hosts,
    /// More sitemaps than a host may have.
    Lists,
    /// Indexes of sitemaps that name indexes that name indexes.
    ListDepth,
    /// More bytes of sitemaps than are read of a host.
    ListBytes,
    /// More pages than a host may have that no seed names and others hardly link to.
    Unlinked,
}

impl BudgetRule {
    const EACH: [BudgetRule; 11] = [
        BudgetRule::Stale,
        BudgetRule::Alike,
        BudgetRule::Deep,
        BudgetRule::Combinations,
        BudgetRule::Suspects,
        BudgetRule::StaleHosts,
        BudgetRule::Hosts,
        BudgetRule::Lists,
        BudgetRule::ListDepth,
        BudgetRule::ListBytes,
        BudgetRule::Unlinked,
    ];

    /// Its name in the table.
    pub fn code(self) -> &'static str {
        match self {
            BudgetRule::Stale => "stale",
            BudgetRule::Alike => "alike",
            BudgetRule::Deep => "deep",
            BudgetRule::Combinations => "combinations",
            BudgetRule::Suspects => "suspects",
            BudgetRule::StaleHosts => "stale hosts",
            BudgetRule::Hosts => "hosts",
            BudgetRule::Lists => "lists",
            BudgetRule::ListDepth => "list-depth",
            BudgetRule::ListBytes => "list-bytes",
            BudgetRule::Unlinked => "unlinked",
        }
    }

    /// The rule of a name; a newer program's rule is not known.
    pub fn from_code(code: &str) -> Option<BudgetRule> {
        BudgetRule::EACH.into_iter().find(|rule| rule.code() == code)
    }
}

/// A closed pattern, and the rule that closed it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ClosedPattern {
    /// The pattern, or what stands for a family of patterns, a host or a domain.
    pub pattern: String,
    pub rule: BudgetRule,
    /// Documents that were fetched of it.
    pub documents: i64,
    /// Of a host: links to it from pages of other hosts.
    pub outside: i64,
    /// Of sitemaps: their bytes.
    pub bytes: i64,
}

impl ClosedPattern {
    /// What a stored tally says to people; `None` if it is open.
    pub fn of(row: &TrapRow) -> Option<ClosedPattern> {
        let rule = row.rule.as_deref().and_then(BudgetRule::from_code)?;
        let TrapRow { documents, outside, bytes, .. } = *row;
        Some(ClosedPattern { pattern: row.pattern.clone(), rule, documents, outside, bytes })
    }

    /// Pages that a host may have which has as many links from other hosts.
    pub(super) fn pages_allowed(host_pages: i64, outside: i64) -> i64 {
        host_pages.saturating_add(outside.saturating_mul(PAGES_PER_LINK))
    }

    /// Whether it would be closed just as well if a host might have so many pages; a rule that
    /// does not count them does not ask.
    pub fn holds_with(&self, host_pages: i64) -> bool {
        self.rule != BudgetRule::Unlinked
            || self.documents >= ClosedPattern::pages_allowed(host_pages, self.outside)
    }

    /// The reason in words, for `why` and `hosts`.
    pub fn explain(&self) -> String {
        let ClosedPattern { pattern, rule, documents, outside, bytes } = self;
        let was =
            format!("it looks like a crawler trap: {documents} pages like {pattern} were fetched");
        match rule {
            BudgetRule::Stale => format!("{was}, and nearly all of the last ones had nothing new"),
            BudgetRule::Alike => format!(
                "{was}, nearly all of the last ones differ in a few words only, and such a page \
                 links to it"
            ),
            BudgetRule::Deep => format!(
                "{was}, many of them far from every seed, nearly all of the last ones differ in a \
                 few words only, and such a page links to it"
            ),
            BudgetRule::Combinations => {
                format!("{was}, which only combine a few parameters in new ways")
            }
            BudgetRule::Suspects => {
                format!("{was}, too many of them had nothing new, and such a page links to it")
            }
            BudgetRule::StaleHosts => format!(
                "{was} on very many hosts, and nearly all of the last hosts started with nothing \
                 new"
            ),
            BudgetRule::Hosts => {
                format!("{was} on more hosts than a crawl follows under one domain")
            }
            BudgetRule::Lists => {
                format!("{was} or queued, and sitemap indexes keep listing more")
            }
            BudgetRule::ListDepth => format!(
                "sitemap indexes are nested more than {INDEX_DEPTH_MAX} deep: {documents} lists \
                 like {pattern} were not followed"
            ),
            BudgetRule::ListBytes => format!(
                "{was}, and with {} they exceed the limit for the sitemaps of a host",
                human_bytes(*bytes)
            ),
            BudgetRule::Unlinked => format!(
                "{was}, no seed is at this host, and pages of other hosts link to it {outside} \
                 times: it may have host_pages (--host-pages) and {PAGES_PER_LINK} more for each \
                 such link"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_found_by_its_code_and_speaks_of_its_pattern() {
        for rule in BudgetRule::EACH {
            assert_eq!(BudgetRule::from_code(rule.code()), Some(rule));
            let pattern = "a.example/#".into();
            let words =
                ClosedPattern { pattern, rule, documents: 512, outside: 3, bytes: 9 }.explain();
            assert!(words.contains("512") && words.contains(" like a.example/# were"), "{words}");
        }
        assert_eq!(BudgetRule::from_code("of a newer program"), None);
    }

    #[test]
    fn names_tell_what_they_are_about() {
        for (name, level) in [
            ("a.example/product/#", Level::Pattern),
            ("a.example/", Level::Pattern),
            ("a.example/list?*", Level::Family),
            ("a.example/s/#/*", Level::Family),
            ("a.example/s-#a/*", Level::Family),
            ("a.example/*", Level::Host),
            ("*.a.example", Level::Domain),
            ("a.example/<sitemaps>", Level::Lists),
            ("a.example/<sitemaps read>", Level::ReadLists),
            ("a.example/<nested sitemaps>", Level::NestedLists),
        ] {
            assert_eq!(Level::of(name), level, "{name}");
        }
    }
}
