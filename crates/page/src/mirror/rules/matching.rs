//! What rules match on a page: for the mirror, and for a person who tries them.

use lol_html::Selector;
use url::Url;

use super::{Article, Column, Css, List, Rules};
use crate::mirror::article::date_in;
use crate::mirror::select::{Selected, first_text, select};

/// What a page is by the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Role {
    Column,
    List,
    Article,
}

/// A link that a selector matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchedLink {
    /// Where it leads.
    pub url: String,
    /// Its text.
    pub text: String,
    /// What is there by its URL.
    pub role: Option<Role>,
    /// Whether it belongs to the mirror.
    pub is_in_scope: bool,
}

/// What the rules match on a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageMatches {
    /// Whether it belongs to the mirror.
    pub is_in_scope: bool,
    /// The pattern that decided so.
    pub scope_pattern: Option<String>,
    /// What it is.
    pub role: Option<Role>,
    /// What the rule calls it.
    pub name: Option<String>,
    /// What a column or list leads to.
    pub items: Vec<MatchedLink>,
    /// Its next page.
    pub next: Option<String>,
    /// The title of an article.
    pub title: Option<String>,
    /// Who wrote it.
    pub author: Option<String>,
    /// When, as written.
    pub date: Option<String>,
    /// When, in milliseconds, if that could be read.
    pub date_ms: Option<i64>,
    /// The beginning of its text.
    pub body: Option<String>,
    /// Selectors that are in use for this page and matched nothing.
    pub unmatched: Vec<String>,
}

/// The rule that a page falls under.
enum Rule<'r> {
    Column(&'r Column),
    List(&'r List),
    Article(&'r Article),
}

impl Rule<'_> {
    fn role(&self) -> Role {
        match self {
            Rule::Column(_) => Role::Column,
            Rule::List(_) => Role::List,
            Rule::Article(_) => Role::Article,
        }
    }
}

impl Rules {
    /// Whether a URL belongs to the mirror, and the pattern that says so.
    pub fn scope_of(&self, url: &str) -> (bool, Option<&str>) {
        if let Some(pattern) = self.scope.exclude.iter().find(|it| it.is_match(url)) {
            return (false, Some(pattern.as_str()));
        }
        let included = self.scope.include.iter().find(|it| it.is_match(url));
        (self.scope.include.is_empty() || included.is_some(), included.map(|it| it.as_str()))
    }

    /// What a page is by its URL: an address that is named before a pattern, and columns before
    /// lists before articles.
    pub fn role_of_url(&self, url: &str) -> Option<Role> {
        self.rule_of_url(url).map(|rule| rule.role())
    }

    fn rule_of_url(&self, url: &str) -> Option<Rule<'_>> {
        let columns = || self.column.iter().map(|it| it.get_ref());
        let lists = || self.list.iter().map(|it| it.get_ref());
        let is_named = |address: &Option<super::Address>| {
            address.as_ref().is_some_and(|address| address.as_str() == url)
        };
        let looks_so = |pattern: &Option<super::Pattern>| {
            pattern.as_ref().is_some_and(|pattern| pattern.is_match(url))
        };
        if let Some(column) = columns().find(|it| is_named(&it.url)) {
            return Some(Rule::Column(column));
        }
        if let Some(list) = lists().find(|it| is_named(&it.url)) {
            return Some(Rule::List(list));
        }
        if let Some(column) = columns().find(|it| looks_so(&it.pattern)) {
            return Some(Rule::Column(column));
        }
        if let Some(list) = lists().find(|it| looks_so(&it.pattern)) {
            return Some(Rule::List(list));
        }
        let mut articles = self.article.iter().map(|it| it.get_ref());
        articles.find(|it| looks_so(&it.pattern)).map(Rule::Article)
    }

    /// The rule for the article that a page is, if it is one.
    pub(in crate::mirror) fn article_of(&self, url: &str, html: &str) -> Option<&Article> {
        match self.rule_of(url, html)? {
            Rule::Article(article) => Some(article),
            Rule::Column(_) | Rule::List(_) => None,
        }
    }

    /// The rule for a page: by its URL, or by an element that only articles have.
    fn rule_of(&self, url: &str, html: &str) -> Option<Rule<'_>> {
        if let Some(rule) = self.rule_of_url(url) {
            return Some(rule);
        }
        let articles = self.article.iter().map(|it| it.get_ref());
        let marked: Vec<(&Article, &Selector)> =
            articles.filter_map(|it| Some((it, it.selector.as_ref()?.selector()))).collect();
        if marked.is_empty() {
            return None;
        }
        let selectors: Vec<&Selector> = marked.iter().map(|(_, selector)| *selector).collect();
        let found = select(html, &selectors);
        let at = found.iter().position(|selected| !selected.is_empty())?;
        Some(Rule::Article(marked[at].0))
    }

    /// What the rules match on the page at `url`.
    pub fn matches(&self, url: &str, html: &str) -> PageMatches {
        let (is_in_scope, pattern) = self.scope_of(url);
        let mut matches = PageMatches {
            is_in_scope,
            scope_pattern: pattern.map(str::to_owned),
            ..PageMatches::default()
        };
        let Some(rule) = self.rule_of(url, html) else { return matches };
        matches.role = Some(rule.role());
        let mut used = Used { html, matches };
        match rule {
            Rule::Column(column) => {
                used.matches.name = column.name.clone();
                let [items] = used.find([&column.items]);
                used.matches.items = self.links(url, &items);
            }
            Rule::List(list) => {
                used.matches.name = list.name.clone();
                let [items, next] = used.find([&list.items, &list.next]);
                used.matches.items = self.links(url, &items);
                used.matches.next = self.links(url, &next).into_iter().next().map(|it| it.url);
            }
            Rule::Article(article) => {
                let selectors =
                    [&article.title, &article.author, &article.date, &article.body, &article.next];
                let [title, author, date, body, next] = used.find(selectors);
                let matches = &mut used.matches;
                matches.title = first_text(&title);
                matches.author = first_text(&author);
                matches.date = date.first().map(|it| it.value.clone().unwrap_or(it.text.clone()));
                matches.date_ms = matches.date.as_deref().and_then(date_in);
                matches.body = first_text(&body);
                matches.next = self.links(url, &next).into_iter().next().map(|it| it.url);
            }
        }
        used.matches
    }

    fn links(&self, url: &str, selected: &[Selected]) -> Vec<MatchedLink> {
        let Ok(base) = Url::parse(url) else { return Vec::new() };
        let link = |it: &Selected| {
            let url = String::from(crate::url::join(&base, it.href.as_deref()?)?);
            let (role, is_in_scope) = (self.role_of_url(&url), self.scope_of(&url).0);
            Some(MatchedLink { url, text: it.text.clone(), role, is_in_scope })
        };
        selected.iter().filter_map(link).collect()
    }
}

/// Selectors as they are used on a page.
struct Used<'h> {
    html: &'h str,
    matches: PageMatches,
}

impl Used<'_> {
    /// What each selector matches; those that match nothing are noted.
    fn find<const N: usize>(&mut self, selectors: [&Option<Css>; N]) -> [Vec<Selected>; N] {
        let given: Vec<&Css> = selectors.iter().filter_map(|it| it.as_ref()).collect();
        let compiled: Vec<&Selector> = given.iter().map(|it| it.selector()).collect();
        let found = select(self.html, &compiled);
        for (css, selected) in given.iter().zip(&found) {
            if selected.is_empty() {
                self.matches.unmatched.push(css.as_str().to_owned());
            }
        }
        let mut found = found.into_iter();
        selectors.map(|css| css.as_ref().and_then(|_| found.next()).unwrap_or_default())
    }
}
