//! What pages and answers ask of robots: `<meta name=robots>` and `X-Robots-Tag`.
//!
//! Relies on nothing else. Invariant: an unknown word asks for nothing, and asking
//! twice is asking once; so the order of tags and headers does not matter.

use crate::facts::Directives;

/// Reads the value of one `X-Robots-Tag` header, as it is meant for `agent`.
///
/// `otherbot: noindex, nofollow` names whom it is meant for; the name holds up to
/// the next name or the end of the header.
pub fn from_header(value: &str, agent: &str) -> Directives {
    let mut directives = Directives::default();
    let mut meant_for_us = true;
    for part in value.split(',') {
        let mut words = part;
        if let Some((name, rest)) = part.split_once(':') {
            let name = name.trim();
            if is_rule_with_value(name) {
                if meant_for_us {
                    add_rule(&mut directives, part);
                }
                continue;
            }
            if is_agent_name(name) {
                meant_for_us = name == "*" || name.eq_ignore_ascii_case(agent);
                words = rest;
            }
        }
        if meant_for_us {
            add_rule(&mut directives, words);
        }
    }
    directives
}

/// Reads the content of a `<meta name=robots>`.
pub(super) fn from_meta(content: &str) -> Directives {
    let mut directives = Directives::default();
    for part in content.split([',', ';']) {
        add_rule(&mut directives, part);
    }
    directives
}

/// Adds one rule, or several written without commas.
fn add_rule(directives: &mut Directives, rule: &str) {
    if let Some((name, value)) = rule.split_once(':') {
        let no_snippet = name.trim().eq_ignore_ascii_case("max-snippet") && value.trim() == "0";
        directives.nosnippet |= no_snippet;
        return;
    }
    for word in rule.split_ascii_whitespace() {
        let is = |name: &str| word.eq_ignore_ascii_case(name);
        directives.noindex |= is("noindex") || is("none");
        directives.nofollow |= is("nofollow") || is("none");
        directives.noarchive |= is("noarchive") || is("nocache");
        directives.nosnippet |= is("nosnippet");
    }
}

fn is_rule_with_value(name: &str) -> bool {
    ["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"]
        .iter()
        .any(|rule| name.eq_ignore_ascii_case(rule))
}

/// A product name; a piece of a date such as `25-Jun-10 15` is none.
fn is_agent_name(name: &str) -> bool {
    name == "*"
        || (name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte)))
}
