//! What belongs to a crawl: a decision on each link, with a reason that `why` can
//! repeat.
//!
//! Pure: the same link, hops and settings always give the same verdict, so a
//! document that was cut comes back to life when the settings change and it is
//! named again. Relies on canonical URLs. Invariant: no decision costs more than
//! linear time in the URL (regular expressions are compiled with a size limit).

use crate::trap::{self, Trap};
use page::domain::SuffixList;
use page::ids::DocHash;
use page::url::{host_of, origin_of};
use regex::{RegexSet, RegexSetBuilder};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;
use store::chunkfile::document::DocumentRole;
use store::tables::queue::ReasonCode;

/// Bytes a compiled set of expressions may take.
const PATTERNS_BYTES_MAX: usize = 1 << 20;
/// Expressions of one kind.
const PATTERNS_MAX: usize = 1_000;

/// How far a crawl reaches from its seeds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Reach {
    /// The hosts of the seeds, with their ports.
    #[default]
    Host,
    /// The registered domains of the seeds, with all hosts under them.
    Domain,
    /// What begins with a seed's URL up to its last slash.
    Prefix,
    Any,
}

/// What a job says about its scope.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScopeRules {
    /// How far it reaches.
    pub reach: Reach,
    /// If there are any, a URL must match one of these.
    pub include: Vec<String>,
    /// A URL that matches one of these is left out.
    pub exclude: Vec<String>,
    /// A page whose title or text matches one of these is not kept.
    pub exclude_content: Vec<String>,
    /// If there are any, only documents of these types are taken: `text/html`, `text/*`.
    pub media_types: Vec<String>,
    /// Links from the nearest seed: a hop filter, which the job's distances are held
    /// against, not a URL.
    pub hops_max: Option<i64>,
}

impl ScopeRules {
    /// Refuses expressions that cannot be used.
    pub fn check(&self) -> Result<(), BadRule> {
        compile("--include", &self.include)?;
        compile("--exclude", &self.exclude)?;
        compile("--exclude-content", &self.exclude_content)?;
        let is_one = |text: &str| {
            text.split_once('/').is_some_and(|(kind, rest)| {
                let plain = |word: &str| !word.is_empty() && !word.contains(['/', ';', ' ', '*']);
                plain(kind) && (plain(rest) || rest == "*")
            })
        };
        match self.media_types.iter().find(|text| !is_one(text)) {
            Some(text) => Err(BadRule {
                what: "--media-type",
                reason: format!(
                    "{text:?} is not a media type; write one such as text/html or text/*"
                ),
            }),
            None => Ok(()),
        }
    }
}

/// Why a link does not belong. The code goes into the queue's `reason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Beyond the reach of the seeds.
    Reach,
    /// No `include` expression matches.
    NotIncluded,
    /// The `exclude` expression of this number matches.
    Excluded(usize),
    /// Looks like a page that makes more of its kind for ever.
    Trap(Trap),
}

impl Cut {
    /// The reason as the queue keeps it. What a wider setting or a shorter path can
    /// lift is told apart from what it cannot.
    pub fn code(self) -> ReasonCode {
        match self {
            Cut::Reach | Cut::NotIncluded | Cut::Excluded(_) => ReasonCode::Scope,
            Cut::Trap(_) => ReasonCode::Trap,
        }
    }
}

/// The compiled scope of a run.
#[derive(Debug)]
pub struct Scope {
    rules: ScopeRules,
    suffixes: Arc<SuffixList>,
    /// Origins, domains or prefixes of the seeds, by the reach.
    inside: BTreeSet<String>,
    include: Option<RegexSet>,
    exclude: RegexSet,
    exclude_content: RegexSet,
    content_rules: Option<String>,
}

/// A rule that cannot be used, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} cannot be used: {reason}")]
#[allow(missing_docs)]
pub struct BadRule {
    pub what: &'static str,
    pub reason: String,
}

impl Scope {
    /// Compiles the rules for canonical seed URLs.
    pub fn new<'a>(
        rules: &ScopeRules,
        seeds: impl IntoIterator<Item = &'a str>,
        suffixes: Arc<SuffixList>,
    ) -> Result<Scope, BadRule> {
        let include = compile("--include", &rules.include)?;
        let exclude = compile("--exclude", &rules.exclude)?;
        let exclude_content = compile("--exclude-content", &rules.exclude_content)?;
        let inside = seeds
            .into_iter()
            .map(|seed| match rules.reach {
                Reach::Host => origin_of(seed).to_owned(),
                Reach::Domain => suffixes.grouping_domain(host_of(seed)).to_owned(),
                Reach::Prefix => prefix_of(seed).to_owned(),
                Reach::Any => String::new(),
            })
            .collect();
        let include = (!rules.include.is_empty()).then_some(include);
        let of_content = &rules.exclude_content;
        let content_rules =
            (!of_content.is_empty()).then(|| DocHash::of(&of_content.join("\n")).to_hex());
        let rules = rules.clone();
        Ok(Scope { rules, suffixes, inside, include, exclude, exclude_content, content_rules })
    }

    /// Whether a canonical URL at a distance belongs; if not, why.
    pub fn judge(&self, url: &str, hops: i64) -> Result<(), Cut> {
        if !self.reaches(url) {
            return Err(Cut::Reach);
        }
        // A seed is named by a person: only the reach of the other seeds and the
        // excludes can speak against it.
        if let Some(number) = self.exclude.matches(url).iter().next() {
            return Err(Cut::Excluded(number));
        }
        if hops > 0 && self.include.as_ref().is_some_and(|include| !include.is_match(url)) {
            return Err(Cut::NotIncluded);
        }
        match trap::shape(url) {
            Some(trap) if hops > 0 => Err(Cut::Trap(trap)),
            _ => Ok(()),
        }
    }

    /// Whether a canonical URL that pages need belongs, wherever it is; if not, why.
    pub fn judge_requisite(&self, url: &str) -> Result<(), Cut> {
        if let Some(number) = self.exclude.matches(url).iter().next() {
            return Err(Cut::Excluded(number));
        }
        trap::shape(url).map_or(Ok(()), |trap| Err(Cut::Trap(trap)))
    }

    /// Whether a canonical URL belongs as a page, or as a requisite; if not, why.
    pub fn judge_as(&self, role: DocumentRole, url: &str, hops: i64) -> Result<(), Cut> {
        match role {
            DocumentRole::Page => self.judge(url, hops),
            DocumentRole::Requisite => self.judge_requisite(url),
        }
    }

    /// The expression that keeps a page out because of what it says.
    pub fn judge_content(&self, title: &str, text: &str) -> Option<&str> {
        let found = |words: &str| self.exclude_content.matches(words).iter().next();
        let number = found(title).or_else(|| found(text))?;
        self.rules.exclude_content.get(number).map(String::as_str)
    }

    /// What the pages that were kept have passed, if there is anything to pass.
    pub fn content_rules(&self) -> Option<&str> {
        self.content_rules.as_deref()
    }

    fn reaches(&self, url: &str) -> bool {
        match self.rules.reach {
            Reach::Any => true,
            Reach::Host => self.inside.contains(origin_of(url)),
            Reach::Domain => self.inside.contains(self.suffixes.grouping_domain(host_of(url))),
            Reach::Prefix => self.inside.iter().any(|prefix| url.starts_with(prefix.as_str())),
        }
    }

    /// A cut in words, for `why`.
    pub fn explain(&self, cut: Cut) -> String {
        match cut {
            Cut::Reach => {
                let inside: Vec<&str> = self.inside.iter().take(3).map(String::as_str).collect();
                format!("it is outside the crawl, which stays within {}", inside.join(", "))
            }
            Cut::NotIncluded => "no --include expression matches it".to_owned(),
            Cut::Excluded(number) => {
                let pattern = self.rules.exclude.get(number).map_or("", String::as_str);
                format!("--exclude {pattern:?} matches it")
            }
            Cut::Trap(trap) => trap.explain().to_owned(),
        }
    }
}

fn compile(what: &'static str, patterns: &[String]) -> Result<RegexSet, BadRule> {
    if patterns.len() > PATTERNS_MAX {
        let reason = format!("there are {}, at most {PATTERNS_MAX} are allowed", patterns.len());
        return Err(BadRule { what, reason });
    }
    RegexSetBuilder::new(patterns)
        .size_limit(PATTERNS_BYTES_MAX)
        .build()
        .map_err(|error| BadRule { what, reason: error.to_string() })
}

/// A URL up to its last slash: the directory of a page.
fn prefix_of(url: &str) -> &str {
    let path_end = url.find('?').unwrap_or(url.len());
    match url[..path_end].rfind('/') {
        Some(slash) => &url[..=slash],
        None => url,
    }
}

#[cfg(test)]
mod tests;
