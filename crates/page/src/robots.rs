//! robots.txt: may this agent fetch this URL, and which line says so.
//!
//! RFC 9309, with the answers Google's open-source matcher gives wherever the
//! RFC leaves room: the longest matching pattern wins, `Allow` wins a tie, and
//! common spelling mistakes are understood. Works on bytes, because nothing
//! promises that the file is UTF-8. Relies on the caller for fetching;
//! [`answer`] says what each HTTP answer means.
//!
//! Invariant: the cost of a verdict is linear in the size of the file plus the
//! length of the URL for each rule, whatever the patterns are: no backtracking.

pub mod answer;
mod matching;
mod parse;

use std::borrow::Cow;
use std::ops::Range;

use matching::{Path, Pattern};

/// Only this many bytes of the file count (RFC 9309 asks for at least 500 KiB).
pub const BODY_BYTES_MAX: usize = 512_000;
/// A longer line is cut here, as Google's parser does: 8 times the longest URL
/// that browsers took, less one byte.
pub const LINE_BYTES_MAX: usize = 2_083 * 8 - 1;
/// A longer `Crawl-delay` is taken as this one: a day.
pub const CRAWL_DELAY_MS_MAX: u64 = 24 * 60 * 60 * 1_000;

/// A robots.txt, parsed: its groups of rules, crawl delays and sitemaps.
#[derive(Debug, Clone, Default)]
pub struct Robots {
    /// Rule lines as written, and patterns that had to be escaped, end to end.
    arena: Vec<u8>,
    /// Every `User-agent` line, in order.
    agents: Vec<Agent>,
    groups: Vec<Group>,
    rules: Vec<StoredRule>,
    delays: Vec<Delay>,
    sitemaps: Vec<String>,
    /// Nothing is allowed and no line of a file says so: the file is unreachable.
    closed: bool,
}

/// Whom a `User-agent` line names.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Agent {
    Any,
    Token(Box<str>),
}

impl Agent {
    fn is(&self, product: &str) -> bool {
        matches!(self, Agent::Token(token) if token.eq_ignore_ascii_case(product))
    }
}

/// Consecutive agent lines and the rules that follow them.
#[derive(Debug, Clone)]
struct Group {
    agents: Range<usize>,
    rules: Range<usize>,
}

/// A `Crawl-delay`, for the agents named just before it.
#[derive(Debug, Clone)]
struct Delay {
    agents: Range<usize>,
    ms: u64,
}

#[derive(Debug, Clone)]
struct StoredRule {
    kind: RuleKind,
    line: u32,
    /// The line as written, in the arena.
    text: Range<usize>,
    /// The normalised pattern, in the arena; often a part of `text`.
    pattern: Range<usize>,
}

/// What a rule does with the URLs it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleKind {
    /// The URL may be fetched.
    Allow,
    /// The URL may not be fetched.
    Disallow,
}

/// The line that decided.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Rule<'a> {
    /// Its number in the file, from 1.
    pub line: u32,
    /// The line as written, without comment and surrounding white space.
    pub text: Cow<'a, str>,
    pub kind: RuleKind,
    /// The agent by whose name the group applies: a product token or `*`.
    pub agent: &'a str,
}

/// The answer for one URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict<'a> {
    /// Whether the URL may be fetched.
    pub allowed: bool,
    /// The line that decided; none when no line speaks of the URL.
    pub rule: Option<Rule<'a>>,
}

impl Robots {
    /// Reads a robots.txt. Every input is one: what is not understood is skipped.
    pub fn parse(body: &[u8]) -> Robots {
        parse::parse(body)
    }

    /// The file of a host that has none: everything is allowed.
    pub fn allow_all() -> Robots {
        Robots::default()
    }

    /// The file of a host whose robots.txt cannot be had: nothing is allowed.
    pub fn disallow_all() -> Robots {
        Robots { closed: true, ..Robots::default() }
    }

    /// Whether `agent` may fetch `url`.
    ///
    /// `agent` is a product token or a user-agent header that begins with one
    /// (`Driftline/0.1 (+https://…)`). `url` is absolute or a path with query.
    /// Its non-ASCII characters must be percent-encoded already, as they are in
    /// canonical URLs: Google compares them so, and so do the tests of the RFC.
    pub fn verdict(&self, agent: &str, url: &str) -> Verdict<'_> {
        if self.closed {
            return Verdict { allowed: false, rule: None };
        }
        let path = Path::of(url);
        let plain = path.plain();
        let whom = self.scope(agent);
        let mut best_allow = BestMatch::default();
        let mut best_disallow = BestMatch::default();
        for group in &self.groups {
            let Some(name) = self.agents[group.agents.clone()].iter().find(|a| whom.is(a)) else {
                continue;
            };
            for rule in &self.rules[group.rules.clone()] {
                let pattern = Pattern::new(&self.arena[rule.pattern.clone()]);
                match rule.kind {
                    RuleKind::Allow => best_allow.offer(pattern.allows(&path), rule, name),
                    RuleKind::Disallow => best_disallow.offer(pattern.matches(&plain), rule, name),
                }
            }
        }
        let allowed = best_disallow.length <= best_allow.length;
        let best = if allowed { best_allow } else { best_disallow };
        Verdict { allowed, rule: best.rule.map(|(rule, agent)| self.show(rule, agent)) }
    }

    /// How long `agent` is asked to wait between two requests.
    ///
    /// The longest delay of the groups that apply, or none. As with rules, a
    /// group that names the agent replaces the group for `*`.
    pub fn crawl_delay_ms(&self, agent: &str) -> Option<u64> {
        let whom = self.scope(agent);
        let applies = |delay: &&Delay| self.agents[delay.agents.clone()].iter().any(|a| whom.is(a));
        self.delays.iter().filter(applies).map(|delay| delay.ms).max()
    }

    /// The sitemaps the file names, as written and in order.
    pub fn sitemaps(&self) -> impl Iterator<Item = &str> {
        self.sitemaps.iter().map(String::as_str)
    }

    /// Groups that name the agent if there are any, else those for everybody.
    /// A name without a single rule counts too: it frees the agent from `*`.
    fn scope<'a>(&self, agent: &'a str) -> AgentScope<'a> {
        let product = product_token(agent);
        let named = self.agents.iter().any(|a| a.is(product));
        if named { AgentScope::Named(product) } else { AgentScope::Everybody }
    }

    fn show<'a>(&'a self, rule: &StoredRule, agent: &'a Agent) -> Rule<'a> {
        Rule {
            line: rule.line,
            text: String::from_utf8_lossy(&self.arena[rule.text.clone()]),
            kind: rule.kind,
            agent: match agent {
                Agent::Any => "*",
                Agent::Token(token) => token,
            },
        }
    }
}

/// The name an agent goes by in robots.txt: what stands before its version.
///
/// The rest is compared whole. A token of the file ends at the first character
/// that is not a letter, `-` or `_`; an agent called `XYZ123bot` is therefore
/// not the one that `User-agent: XYZ123bot` names, and Google says the same.
fn product_token(agent: &str) -> &str {
    agent.split('/').next().unwrap_or_default().trim()
}

enum AgentScope<'a> {
    Named(&'a str),
    Everybody,
}

impl AgentScope<'_> {
    fn is(&self, agent: &Agent) -> bool {
        match self {
            AgentScope::Named(product) => agent.is(product),
            AgentScope::Everybody => *agent == Agent::Any,
        }
    }
}

/// The longest match so far; of equals, the first. Length 0 is no match: an
/// empty `Disallow` allows everything, which is also what no rule at all does.
#[derive(Default)]
struct BestMatch<'a> {
    length: usize,
    rule: Option<(&'a StoredRule, &'a Agent)>,
}

impl<'a> BestMatch<'a> {
    fn offer(&mut self, matched: Option<usize>, rule: &'a StoredRule, agent: &'a Agent) {
        let Some(length) = matched else { return };
        if length > self.length {
            *self = BestMatch { length, rule: Some((rule, agent)) };
        }
    }
}

#[cfg(test)]
mod google_tests;
#[cfg(test)]
mod tests;
