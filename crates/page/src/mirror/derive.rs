//! What a page is in a site without rules: by breadcrumbs, navigation, and the path of its URL.
//!
//! Breadcrumbs are taken from JSON-LD, then from elements that are marked as such, then from the
//! directories of the URL. Relies on [`super::select`]. Invariant: a page always has a place:
//! below its last breadcrumb, or below the site.

#[cfg(test)]
mod tests;

use lol_html::Selector;
use serde_json::Value;
use url::Url;

use super::rules::Role;
use super::select::{Selected, select};
use crate::facts::SHORT_TEXT_BYTES_MAX;
use crate::text::collapse;

/// Steps from the site to a page.
pub const BREADCRUMBS_MAX: usize = 20;
/// Links of a site's navigation.
pub const NAVIGATION_MAX: usize = 200;
/// Bytes of JSON-LD that are read; `serde_json` bounds its depth.
const JSON_BYTES_MAX: usize = 256 << 10;
/// Items of JSON-LD that are looked at.
const JSON_ITEMS_MAX: usize = 1_000;

/// What is derived of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Derived {
    /// What it is.
    pub role: Role,
    /// The way from the site to the page, without the page itself.
    pub breadcrumbs: Vec<Step>,
    /// The links of the site's navigation: its columns.
    pub navigation: Vec<Step>,
}

impl Derived {
    /// What the page stands below.
    pub fn column(&self) -> Option<&Step> {
        self.breadcrumbs.last()
    }
}

/// A named page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Where it is.
    pub url: String,
    /// What it is called; empty when only its URL is known.
    pub name: String,
}

const JSON_LD: &str = "script[type=\"application/ld+json\"]";
const MARKED: &str = "[itemtype*=\"BreadcrumbList\"] a[href], [aria-label=\"breadcrumb\" i] a[href], \
    [aria-label=\"breadcrumbs\" i] a[href], [class*=\"breadcrumb\" i] a[href], \
    [id*=\"breadcrumb\" i] a[href]";
const NAVIGATION: &str = "nav a[href], [role=\"navigation\"] a[href]";
const KIND: &str = "meta[property=\"og:type\"]";
const ARTICLES: &str = "article, [itemprop=\"articleBody\"], [itemtype$=\"Article\"]";

/// What the page at `url` is.
pub fn derive(url: &str, html: &str) -> Derived {
    let selectors = [JSON_LD, MARKED, NAVIGATION, KIND, ARTICLES].map(constant);
    let found = select(html, &selectors.each_ref());
    let [json_ld, marked, navigation, kind, articles] = found.as_slice() else {
        return Derived { role: Role::List, breadcrumbs: Vec::new(), navigation: Vec::new() };
    };
    let Ok(base) = Url::parse(url) else {
        return Derived { role: Role::List, breadcrumbs: Vec::new(), navigation: Vec::new() };
    };
    let json = JsonLd::read(html, json_ld, &base);
    let mut breadcrumbs = json.breadcrumbs;
    if breadcrumbs.is_empty() {
        breadcrumbs = steps(marked, &base, BREADCRUMBS_MAX);
    }
    breadcrumbs.retain(|step| !is_same_page(&step.url, &base));
    if breadcrumbs.is_empty() {
        breadcrumbs = directories(&base);
    }
    breadcrumbs.truncate(BREADCRUMBS_MAX);
    let says_article = json.is_article
        || articles.len() == 1
        || kind.iter().any(|it| it.value.as_deref() == Some("article"));
    let role = match is_directory(&base) {
        _ if base.path() == "/" && base.query().is_none() => Role::Column,
        true if !says_article => Role::List,
        _ => Role::Article,
    };
    Derived { role, breadcrumbs, navigation: steps(navigation, &base, NAVIGATION_MAX) }
}

fn constant(selector: &str) -> Selector {
    selector.parse().expect("this selector is a constant and tested")
}

/// Whether a URL looks like one of a list of pages.
fn is_directory(url: &Url) -> bool {
    let last = url.path().rsplit('/').next().unwrap_or("");
    let stem = last.split('.').next().unwrap_or("");
    last.is_empty() || matches!(stem, "index" | "default" | "list" | "archive")
}

fn is_same_page(url: &str, page: &Url) -> bool {
    let without_fragment = |url: &str| url.split('#').next().unwrap_or("").to_owned();
    without_fragment(url) == without_fragment(page.as_str())
}

/// Links as steps, each URL once, within the site.
fn steps(links: &[Selected], base: &Url, steps_max: usize) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for link in links {
        let Some(href) = link.href.as_deref().filter(|href| !href.trim().is_empty()) else {
            continue;
        };
        let Some(url) = crate::url::join(base, href) else { continue };
        let is_inside = url.host_str() == base.host_str() && !url.cannot_be_a_base();
        let url = String::from(url);
        if is_inside && steps.len() < steps_max && steps.iter().all(|step| step.url != url) {
            steps.push(Step { url, name: link.text.clone() });
        }
    }
    steps
}

/// The directories of a URL, from the site on.
fn directories(url: &Url) -> Vec<Step> {
    let mut directory = url.clone();
    directory.set_query(None);
    directory.set_fragment(None);
    let path = url.path();
    let ends = path.match_indices('/').map(|(at, _)| &path[..=at]);
    let above = ends.filter(|end| *end != path).take(BREADCRUMBS_MAX);
    above
        .map(|end| {
            directory.set_path(end);
            Step { url: directory.to_string(), name: String::new() }
        })
        .collect()
}

/// What JSON-LD says of a page.
#[derive(Default)]
struct JsonLd {
    breadcrumbs: Vec<Step>,
    is_article: bool,
}

impl JsonLd {
    fn read(html: &str, scripts: &[Selected], base: &Url) -> JsonLd {
        let mut said = JsonLd::default();
        let mut looked_at = 0;
        for script in scripts {
            let text = html.get(script.inner.clone()).filter(|it| it.len() <= JSON_BYTES_MAX);
            let Some(root) = text.and_then(|text| serde_json::from_str::<Value>(text).ok()) else {
                continue;
            };
            let mut pending = vec![&root];
            while let Some(value) = pending.pop() {
                looked_at += 1;
                if looked_at > JSON_ITEMS_MAX {
                    return said;
                }
                match value {
                    Value::Array(items) => pending.extend(items.iter().rev()),
                    Value::Object(item) => {
                        said.item(value, base);
                        pending.extend(item.get("@graph"));
                    }
                    _ => {}
                }
            }
        }
        said
    }

    fn item(&mut self, item: &Value, base: &Url) {
        let kinds: Vec<&str> = match &item["@type"] {
            Value::String(kind) => vec![kind],
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => return,
        };
        self.is_article |= kinds.iter().any(|it| it.ends_with("Article") || *it == "BlogPosting");
        if !kinds.contains(&"BreadcrumbList") || !self.breadcrumbs.is_empty() {
            return;
        }
        let Some(elements) = item["itemListElement"].as_array() else { return };
        let mut placed: Vec<(i64, Step)> = Vec::new();
        for (at, element) in elements.iter().take(BREADCRUMBS_MAX).enumerate() {
            let place = element["position"].as_i64().unwrap_or(at as i64 + 1);
            let target = &element["item"];
            let href = target
                .as_str()
                .or_else(|| target["@id"].as_str())
                .or_else(|| target["url"].as_str());
            let name = element["name"].as_str().or_else(|| target["name"].as_str()).unwrap_or("");
            let Some(url) = href.and_then(|href| crate::url::join(base, href)) else { continue };
            let name = collapse(&htmlize::unescape(name), SHORT_TEXT_BYTES_MAX);
            placed.push((place, Step { url: url.into(), name }));
        }
        placed.sort_by_key(|(place, _)| *place);
        self.breadcrumbs = placed.into_iter().map(|(_, step)| step).collect();
    }
}
