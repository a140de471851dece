//! The rules of a site: what belongs to a mirror, what is a column, a list, an article, and how
//! its pages are cleaned. A person writes them, in TOML; the program never does.
//!
//! Relies on regular expressions for URLs and on the CSS selectors of lol_html for elements.
//! Invariant: rules that were read can be used: every pattern and selector in them is valid,
//! and every mistake is told with its line.

mod matching;
mod parts;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::Spanned;

pub use self::matching::{MatchedLink, PageMatches, Role};
pub use self::parts::{Address, Css, Pattern};
use super::digest::ContentDigest;
use super::error::Error;

/// Bytes of a rules file; the longest part of it is the table of texts for images.
pub const RULES_BYTES_MAX: usize = 4 << 20;
/// Columns, lists, articles, or rules of the reactor.
pub const SECTIONS_MAX: usize = 500;
/// Seeds, and patterns of a scope.
pub const PATTERNS_MAX: usize = 1_000;
/// Texts for images.
pub const ALT_TEXTS_MAX: usize = 100_000;
/// Source pages of a list or an article, unless a rule says otherwise.
pub const LIST_PAGES: u32 = 100;
/// The same of an article.
pub const ARTICLE_PAGES: u32 = 10;

/// The rules of a site.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// Who is responsible for them.
    pub editor: String,
    /// What the site is.
    pub info: String,
    /// The encoding of pages that do not say theirs.
    pub codec: Option<String>,
    /// Where the mirror begins.
    pub seeds: Vec<Address>,
    /// What belongs to it.
    pub scope: Scope,
    /// Columns: pages whose links lead to columns or lists.
    pub column: Vec<Spanned<Column>>,
    /// Lists: pages whose links lead to articles.
    pub list: Vec<Spanned<List>>,
    /// Articles.
    pub article: Vec<Spanned<Article>>,
    /// How pages are cleaned. By default nothing is: a mirror looks like its original.
    pub reactor: Reactor,
}

/// What belongs to a mirror: what no pattern of `exclude` matches, and one of `include`, if
/// there are some.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Scope {
    pub include: Vec<Pattern>,
    pub exclude: Vec<Pattern>,
}

/// A page whose links lead to columns or lists.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Column {
    /// What it is called, instead of its title.
    pub name: Option<String>,
    /// Where it is.
    pub url: Option<Address>,
    /// Or what its URL looks like.
    pub pattern: Option<Pattern>,
    /// The links to what is below it; without, all.
    pub items: Option<Css>,
    /// How often it is asked again, in seconds.
    pub refresh_s: Option<u64>,
}

/// A page whose links lead to articles.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct List {
    /// What it is called, instead of its title.
    pub name: Option<String>,
    /// Where it is.
    pub url: Option<Address>,
    /// Or what its URL looks like.
    pub pattern: Option<Pattern>,
    /// The links to articles; without, all that lead to one.
    pub items: Option<Css>,
    /// The link to its next page.
    pub next: Option<Css>,
    /// Pages of it that are read.
    pub pages_max: Option<u32>,
    /// How its articles are sorted.
    pub order: Order,
    /// How often it is asked again, in seconds.
    pub refresh_s: Option<u64>,
}

/// How the articles of a list are sorted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// As the site has them.
    #[default]
    AsListed,
    /// By their dates, the newest first.
    NewestFirst,
}

/// A page with a text.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Article {
    /// What its URL looks like.
    pub pattern: Option<Pattern>,
    /// Or an element that only articles have.
    pub selector: Option<Css>,
    /// Its title.
    pub title: Option<Css>,
    /// Who wrote it.
    pub author: Option<Css>,
    /// When.
    pub date: Option<Css>,
    /// Its text.
    pub body: Option<Css>,
    /// What in its text is none of it.
    pub drop: Vec<Css>,
    /// The link to its next page.
    pub next: Option<Css>,
    /// Pages of it that are read.
    pub pages_max: Option<u32>,
}

/// How pages are cleaned.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools)] // Independent switches, each a line of the file.
pub struct Reactor {
    /// Drops what readers of screens cannot use: comments, scripts, styles, applets, frames,
    /// objects, images without a text, empty canvases, films without subtitles.
    pub accessible: bool,
    /// Puts standard elements for those that are no more: `center`, `tt`, `dir`, `menu`; drops `font`.
    pub standard_markup: bool,
    /// Says what is meant: `em` for `i`, `strong` for `b`.
    pub semantic_tags: bool,
    /// Puts each sentence into a `span` whose `id` is the hash of its text.
    pub split_sentences: bool,
    /// The title of links that lead to other sites.
    pub notice: Option<String>,
    /// Texts for images without one, by the image's URL or the SHA-256 of its bytes.
    pub alt: BTreeMap<String, String>,
    /// Further rules, in order.
    pub rule: Vec<Spanned<ReactorRule>>,
}

/// What is done with the elements that a selector matches: exactly one thing.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReactorRule {
    /// Which elements.
    pub on: Option<Css>,
    /// Only those that lead inside of the site, or outside.
    pub leads: Option<Leads>,
    /// Takes the element away with all that is in it.
    pub drop: bool,
    /// Takes its tags away.
    pub unwrap: bool,
    /// Gives it another name.
    pub replace: Option<String>,
    /// Sets attributes; an empty value takes one away.
    pub set: BTreeMap<String, String>,
    /// Appends HTML to its content.
    pub append: Option<String>,
}

/// Where an element leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Leads {
    Inside,
    Outside,
}

impl Rules {
    /// Reads a rules file.
    pub fn parse(text: &str) -> Result<Rules, Error> {
        if text.len() > RULES_BYTES_MAX {
            return Err(Error::TooLarge { what: "bytes of rules", limit: RULES_BYTES_MAX });
        }
        let rules: Rules = toml::from_str(text)
            .map_err(|error| Error::Rules(error.to_string().trim_end().to_owned()))?;
        rules.check_counts()?;
        rules.check_sections(text)?;
        Ok(rules)
    }

    /// The digest of what they say: blanks and comments do not change it.
    pub fn digest(&self) -> ContentDigest {
        let json = serde_json::to_vec(self).expect("rules are texts, numbers and lists of them");
        ContentDigest::of(&json)
    }

    fn check_counts(&self) -> Result<(), Error> {
        for (what, count, limit) in [
            ("seeds", self.seeds.len(), PATTERNS_MAX),
            ("patterns to include", self.scope.include.len(), PATTERNS_MAX),
            ("patterns to exclude", self.scope.exclude.len(), PATTERNS_MAX),
            ("columns", self.column.len(), SECTIONS_MAX),
            ("lists", self.list.len(), SECTIONS_MAX),
            ("articles", self.article.len(), SECTIONS_MAX),
            ("rules of the reactor", self.reactor.rule.len(), SECTIONS_MAX),
            ("texts for images", self.reactor.alt.len(), ALT_TEXTS_MAX),
        ] {
            if count > limit {
                return Err(Error::TooLarge { what, limit });
            }
        }
        Ok(())
    }

    /// Sections that are valid TOML and cannot be meant so.
    fn check_sections(&self, text: &str) -> Result<(), Error> {
        let refuse = |at: usize, what: &str| {
            let line = text.get(..at).unwrap_or(text).matches('\n').count() + 1;
            Err(Error::Rules(format!("line {line}: {what}")))
        };
        for column in &self.column {
            if column.get_ref().url.is_none() && column.get_ref().pattern.is_none() {
                return refuse(column.span().start, "a column without url or pattern");
            }
        }
        for list in &self.list {
            if list.get_ref().url.is_none() && list.get_ref().pattern.is_none() {
                return refuse(list.span().start, "a list without url or pattern");
            }
        }
        for article in &self.article {
            if article.get_ref().pattern.is_none() && article.get_ref().selector.is_none() {
                return refuse(article.span().start, "an article without pattern or selector");
            }
        }
        for spanned in &self.reactor.rule {
            let rule = spanned.get_ref();
            let actions = [
                rule.drop,
                rule.unwrap,
                rule.replace.is_some(),
                !rule.set.is_empty(),
                rule.append.is_some(),
            ];
            if rule.on.is_none() {
                return refuse(spanned.span().start, "a rule of the reactor without on");
            }
            if actions.into_iter().filter(|is_there| *is_there).count() != 1 {
                let what = "a rule of the reactor does one of drop, unwrap, replace, set, append";
                return refuse(spanned.span().start, what);
            }
            if rule.set.keys().chain(&rule.replace).any(|name| !is_name(name)) {
                return refuse(spanned.span().start, "no name of an element or attribute");
            }
        }
        Ok(())
    }
}

/// Whether an element or attribute can be called so.
fn is_name(name: &str) -> bool {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b':');
    name.starts_with(|first: char| first.is_ascii_alphabetic()) && name.bytes().all(is_safe)
}
