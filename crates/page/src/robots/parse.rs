//! Reading: lines to groups, rules, delays and sitemaps.
//!
//! Invariant: what a line means depends on that line and on whether rules have
//! stood between the last agent lines and it; nothing else is remembered. Rules
//! before the first agent belong to nobody and are skipped.

use std::borrow::Cow;
use std::ops::Range;

use super::matching::{normalise, unescape};
use super::{
    Agent, BODY_BYTES_MAX, CRAWL_DELAY_MS_MAX, Delay, Group, LINE_BYTES_MAX, Robots, RuleKind,
    StoredRule,
};

/// The mark some editors put in front of UTF-8; a part of it is skipped too.
const BYTE_ORDER_MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];

pub(super) fn parse(body: &[u8]) -> Robots {
    let body = within_limit(body);
    let marks = body.iter().zip(BYTE_ORDER_MARK).take_while(|(byte, mark)| *byte == mark).count();
    let mut reader = RobotsParser::default();
    let mut rest = &body[marks..];
    let mut number = 0;
    loop {
        let end = memchr::memchr2(b'\n', b'\r', rest);
        number += 1;
        reader.line(number, &rest[..end.unwrap_or(rest.len())]);
        let Some(end) = end else { break };
        let is_crlf = rest[end..].starts_with(b"\r\n");
        rest = &rest[end + 1 + usize::from(is_crlf)..];
    }
    reader.robots.arena.shrink_to_fit();
    reader.robots
}

/// The bytes that count. A line that the limit cuts in two is left out: half a
/// rule is not what the site wrote, and half an `Allow` allows too much.
fn within_limit(body: &[u8]) -> &[u8] {
    let Some(next) = body.get(BODY_BYTES_MAX) else { return body };
    let kept = &body[..BODY_BYTES_MAX];
    if matches!(next, b'\n' | b'\r') {
        return kept;
    }
    let last_end = memchr::memrchr2(b'\n', b'\r', kept);
    &kept[..last_end.map_or(0, |at| at + 1)]
}

#[derive(Default)]
struct RobotsParser {
    robots: Robots,
    /// Where the agents of the current group begin.
    group_agents: usize,
    /// Rules have followed the current agents: the next agent begins a group.
    group_has_rules: bool,
    /// Where the agents that the next `Crawl-delay` is for begin.
    delay_agents: usize,
    /// A delay or a rule has followed them.
    delay_is_over: bool,
}

impl RobotsParser {
    fn line(&mut self, number: u32, line: &[u8]) {
        let line = &line[..line.len().min(LINE_BYTES_MAX)];
        // A NUL ends a line for Google's parser; a `#` ends it for everybody.
        let end = memchr::memchr2(0, b'#', line).unwrap_or(line.len());
        let text = trim(&line[..end]);
        let Some((key, value)) = key_and_value(text) else { return };
        match RobotsKey::of(key) {
            RobotsKey::Agent => self.agent(value),
            RobotsKey::Rule(kind) => self.rule(kind, number, text, value),
            RobotsKey::Sitemap => self.sitemap(value),
            RobotsKey::CrawlDelay => self.crawl_delay(value),
            RobotsKey::Unknown => {}
        }
    }

    fn agent(&mut self, value: &[u8]) {
        let count = self.robots.agents.len();
        if self.group_has_rules {
            self.group_agents = count;
            self.group_has_rules = false;
        }
        if self.delay_is_over {
            self.delay_agents = count;
            self.delay_is_over = false;
        }
        self.robots.agents.push(agent(value));
    }

    fn rule(&mut self, kind: RuleKind, line: u32, text: &[u8], value: &[u8]) {
        let agents = self.group_agents..self.robots.agents.len();
        if agents.is_empty() {
            return;
        }
        let count = self.robots.rules.len();
        if !self.group_has_rules {
            self.group_has_rules = true;
            self.robots.groups.push(Group { agents, rules: count..count });
        }
        self.delay_is_over = true;
        let text_at = self.keep(text);
        let pattern = match (kind, normalise(value)) {
            (RuleKind::Disallow, pattern) => match unescape(&pattern) {
                Cow::Borrowed(_) => pattern,
                Cow::Owned(plain) => Cow::Owned(plain),
            },
            (RuleKind::Allow, pattern) => pattern,
        };
        let pattern = match pattern {
            // The value is the tail of the text, so it is in the arena already.
            Cow::Borrowed(value) => text_at.end - value.len()..text_at.end,
            Cow::Owned(pattern) => self.keep(&pattern),
        };
        self.robots.rules.push(StoredRule { kind, line, text: text_at, pattern });
        if let Some(group) = self.robots.groups.last_mut() {
            group.rules.end = count + 1;
        }
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.robots.arena.len();
        self.robots.arena.extend_from_slice(bytes);
        start..self.robots.arena.len()
    }

    fn sitemap(&mut self, value: &[u8]) {
        if !value.is_empty() {
            self.robots.sitemaps.push(String::from_utf8_lossy(value).into_owned());
        }
    }

    /// Crawl-delay is no rule of the RFC and begins no new group of rules; but
    /// `a, delay, b, delay` gives each agent its own delay.
    fn crawl_delay(&mut self, value: &[u8]) {
        let agents = self.delay_agents..self.robots.agents.len();
        let Some(ms) = seconds_to_ms(value) else { return };
        if !agents.is_empty() {
            self.delay_is_over = true;
            self.robots.delays.push(Delay { agents, ms });
        }
    }
}

/// `key: value`, or `key value` when the colon was forgotten and there are just
/// these two words.
fn key_and_value(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let split = match memchr::memchr(b':', text) {
        Some(colon) => colon,
        None => {
            let blank = text.iter().position(is_blank)?;
            let two_words = !trim(&text[blank..]).iter().any(is_blank);
            two_words.then_some(blank)?
        }
    };
    let key = trim(&text[..split]);
    (!key.is_empty()).then(|| (key, trim(&text[split + 1..])))
}

enum RobotsKey {
    Agent,
    Rule(RuleKind),
    Sitemap,
    CrawlDelay,
    Unknown,
}

impl RobotsKey {
    /// Only the beginning counts, in any case, and frequent slips are accepted.
    fn of(key: &[u8]) -> RobotsKey {
        let begins = |names: &[&str]| {
            names.iter().any(|name| {
                key.get(..name.len()).is_some_and(|k| k.eq_ignore_ascii_case(name.as_bytes()))
            })
        };
        if begins(&["user-agent", "useragent", "user agent"]) {
            RobotsKey::Agent
        } else if begins(&["allow"]) {
            RobotsKey::Rule(RuleKind::Allow)
        } else if begins(&["disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"])
        {
            RobotsKey::Rule(RuleKind::Disallow)
        } else if begins(&["sitemap", "site-map"]) {
            RobotsKey::Sitemap
        } else if begins(&["crawl-delay", "crawldelay", "crawl delay"]) {
            RobotsKey::CrawlDelay
        } else {
            RobotsKey::Unknown
        }
    }
}

/// `*` alone or before white space is everybody; otherwise the token ends at the
/// first character a product token cannot have.
fn agent(value: &[u8]) -> Agent {
    let everybody = value.first() == Some(&b'*') && value.get(1).is_none_or(is_space);
    if everybody {
        return Agent::Any;
    }
    let in_token = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_');
    let token = value.iter().copied().take_while(in_token).map(char::from);
    Agent::Token(token.collect::<String>().into_boxed_str())
}

/// Decimal seconds, rounded up to whole milliseconds. Anything else is nothing.
fn seconds_to_ms(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = text.len() > usize::from(text.contains('.'));
    if !is_number || !digits(whole) || !digits(fraction) {
        return None;
    }
    let seconds = whole
        .bytes()
        .fold(0_u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
    let thousandths = fraction
        .bytes()
        .chain(std::iter::repeat(b'0'))
        .take(3)
        .fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    let more = fraction.bytes().skip(3).any(|digit| digit != b'0');
    let ms = seconds.saturating_mul(1_000).saturating_add(thousandths + u64::from(more));
    Some(ms.min(CRAWL_DELAY_MS_MAX))
}

/// White space as C's `isspace` has it: Rust's ASCII set lacks the vertical tab.
fn is_space(byte: &u8) -> bool {
    byte.is_ascii_whitespace() || *byte == 0x0B
}

fn trim(bytes: &[u8]) -> &[u8] {
    let Some(start) = bytes.iter().position(|byte| !is_space(byte)) else { return b"" };
    let end = bytes.iter().rposition(|byte| !is_space(byte)).map_or(start, |last| last + 1);
    &bytes[start..end]
}
