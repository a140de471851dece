//! Where a page stands in the structure of its site: its title, its columns, and what it leads to
//! if it is a column by the rules.
//!
//! Invariant: a function of the one page and the rules, so that it is the same in whatever order
//! pages come.

use super::cut;
use super::member::{ColumnName, Member, Section};
use crate::mirror::Mirror;
use crate::mirror::kind::Kind;
use page::charset;
use page::mirror::VALUE_BYTES_MAX;
use page::mirror::derive::derive;
use page::mirror::names::HashName;
use page::mirror::rules::{Role, Rules};
use url::Url;

/// Columns in each other; x-files allow more than that.
const COLUMNS_MAX: usize = 24;

#[derive(Default)]
pub(super) struct Place {
    /// Empty if nothing says it.
    pub(super) title: String,
    pub(super) columns: Vec<ColumnName>,
    pub(super) section: Option<Section>,
}

/// The place of a page.
pub(super) fn place(mirror: &Mirror, member: &Member, bytes: &[u8]) -> Place {
    let rules = mirror.rules().filter(|rules| has_structure(rules));
    let site = site_of(&member.url);
    if Kind::of(&member.media_type, false) != Kind::Page {
        let columns = if rules.is_some() { Vec::new() } else { vec![site] };
        return Place { columns, ..Place::default() };
    }
    let content_type = member.content_type();
    let encoding = charset::decide(bytes, Some(&content_type)).encoding;
    let html = charset::decode(bytes, encoding);
    match rules {
        Some(rules) => by_rules(rules, &member.url, &html),
        None => derived(&member.url, &html, site),
    }
}

/// Whether rules say what is a column, and not only how pages are cleaned.
fn has_structure(rules: &Rules) -> bool {
    !rules.column.is_empty() || !rules.list.is_empty()
}

fn by_rules(rules: &Rules, url: &str, html: &str) -> Place {
    let matches = rules.matches(url, html);
    let is_section = matches!(matches.role, Some(Role::Column | Role::List));
    let items = matches.items.iter().filter(|item| item.is_in_scope);
    let items: Vec<[u8; 16]> = items
        .map(|item| &item.url)
        .chain(&matches.next)
        .map(|url| *HashName::of(url).as_bytes())
        .collect();
    let section =
        is_section.then(|| Section { name: cut(&matches.name.unwrap_or_default()), items });
    Place { title: cut(&matches.title.unwrap_or_default()), columns: Vec::new(), section }
}

fn derived(url: &str, html: &str, site: ColumnName) -> Place {
    let derived = derive(url, html);
    let mut columns = vec![site];
    for step in derived.breadcrumbs {
        let is_taken = columns.iter().any(|column| column.url == step.url);
        let is_usable = step.url.len() <= VALUE_BYTES_MAX && !step.url.contains(char::is_control);
        if !is_taken && is_usable && columns.len() < COLUMNS_MAX {
            columns.push(ColumnName { url: step.url, name: cut(&step.name) });
        }
    }
    Place { columns, ..Place::default() }
}

/// The site of a URL, as the root of its columns.
pub(super) fn site_of(url: &str) -> ColumnName {
    let parsed = Url::parse(url).ok().filter(Url::has_host);
    match parsed {
        Some(parsed) => ColumnName {
            url: parsed[..url::Position::BeforePath].to_owned() + "/",
            name: parsed.host_str().map(cut).unwrap_or_default(),
        },
        None => ColumnName { url: url.to_owned(), name: String::new() },
    }
}
