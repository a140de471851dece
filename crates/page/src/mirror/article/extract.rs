//! From a page to its article: by rules, or by the elements that pages commonly have.

use lol_html::Selector;
use url::Url;

use super::body::{Cleaning, clean};
use super::{Article, date_in};
use crate::charset;
use crate::facts::SHORT_TEXT_BYTES_MAX;
use crate::mirror::rules::{self, Rules};
use crate::mirror::select::{Selected, first_text, select};

/// A page to be read.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// The bytes as they came.
    pub body: &'a [u8],
    /// Where it is.
    pub url: &'a str,
    /// Its header `Content-Type`.
    pub content_type: Option<&'a str>,
    /// Its title, as the facts have it.
    pub title: &'a str,
    /// Its header `Last-Modified`, in milliseconds, if it had one.
    pub last_modified_ms: Option<i64>,
}

/// Where articles say what they are, the surest first.
const TITLES: [&str; 4] =
    ["meta[property=\"og:title\"]", "[itemprop=\"headline\"]", "article h1", "h1"];
const AUTHORS: [&str; 4] =
    ["meta[name=\"author\"]", "[itemprop=\"author\"]", "[rel=\"author\"]", ".author"];
const DATES: [&str; 5] = [
    "meta[property=\"article:modified_time\"]",
    "meta[property=\"article:published_time\"]",
    "[itemprop=\"dateModified\"]",
    "[itemprop=\"datePublished\"]",
    "time[datetime]",
];
const BODIES: [&str; 6] =
    ["[itemprop=\"articleBody\"]", "article", "main", "[role=\"main\"]", "#content", ".content"];

/// The article that a page holds.
pub fn extract(page: &Page<'_>, rules: Option<&Rules>) -> Article {
    let encoding = charset::decide(page.body, page.content_type).encoding;
    let html = charset::decode(page.body, encoding);
    let rule = rules.and_then(|rules| rules.article_of(page.url, &html));
    let Ok(base) = Url::parse(page.url) else { return Article::default() };
    let found = Found::new(&html, rule);
    let date = found.date.first().and_then(|it| date_in(it.value.as_deref().unwrap_or(&it.text)));
    let title = first_text(&found.title).unwrap_or_else(|| page.title.to_owned());
    let is_page = found.body.is_none();
    let inner = found.body.map_or(&*html, |it| html.get(it.inner).unwrap_or(""));
    let drop = rule.map(|it| it.drop.iter().map(|css| css.selector()).collect());
    let (body, references) =
        clean(inner, &Cleaning { base: &base, drop: drop.unwrap_or_default(), is_page });
    Article {
        page_title: cut(page.title),
        title: cut(&title),
        url: page.url.to_owned(),
        author: cut(&first_text(&found.author).unwrap_or_default()),
        last_modified_ms: date.or(page.last_modified_ms),
        body,
        references,
    }
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(SHORT_TEXT_BYTES_MAX)].to_owned()
}

/// What was found of an article in its page.
struct Found {
    title: Vec<Selected>,
    author: Vec<Selected>,
    date: Vec<Selected>,
    body: Option<Selected>,
}

impl Found {
    fn new(html: &str, rule: Option<&rules::Article>) -> Found {
        let of_rule = |css: Option<&rules::Css>, usual: &[&str]| -> Vec<Selector> {
            match css {
                Some(css) => vec![css.selector().clone()],
                None => usual.iter().map(|it| constant(it)).collect(),
            }
        };
        let fields: [Vec<Selector>; 4] = [
            of_rule(rule.and_then(|it| it.title.as_ref()), &TITLES),
            of_rule(rule.and_then(|it| it.author.as_ref()), &AUTHORS),
            of_rule(rule.and_then(|it| it.date.as_ref()), &DATES),
            of_rule(rule.and_then(|it| it.body.as_ref()), &BODIES),
        ];
        let all: Vec<&Selector> = fields.iter().flatten().collect();
        let mut found = select(html, &all).into_iter();
        // The first selector that found something is the surest.
        let mut surest = |selectors: &[Selector]| -> Vec<Selected> {
            let lists: Vec<_> = found.by_ref().take(selectors.len()).collect();
            lists.into_iter().find(|list| list.iter().any(says_something)).unwrap_or_default()
        };
        let [title, author, date, body] = fields.each_ref().map(|it| surest(it));
        Found { title, author, date, body: body.into_iter().find(says_something) }
    }
}

fn says_something(selected: &Selected) -> bool {
    !selected.text.is_empty() || selected.value.as_ref().is_some_and(|it| !it.trim().is_empty())
}

fn constant(selector: &str) -> Selector {
    selector.parse().expect("this selector is a constant and tested")
}
