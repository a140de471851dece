//! Sites without end, each with 200 real pages among its traps. At most 5,000
//! pages are fetched, all real ones are found, and the trap has a name.

use super::{Answer, BudgetRule, Outcome, crawl, number, words};
use std::collections::BTreeSet;

const REAL: usize = 200;
const FETCHED_MAX: usize = 5_000;
/// Where a crawl is stopped, to see by how much it fails.
const PAGES_MAX: usize = 12_000;
const HOST: &str = "http://www.trap-site.com";
/// From here on, real pages are events that only the calendar knows, if there is one.
const EVENTS: usize = 180;

/// The kinds of traps a real page leads to.
#[derive(Clone, Copy, PartialEq)]
enum Trap {
    Calendar,
    Months,
    Facets,
    Sessions,
    Subdomains,
    NotFound,
    Walk,
}

/// A site with such traps, whose pages name so many more.
struct Site<'a> {
    traps: &'a [Trap],
    width: usize,
}

/// What stands around the text of every page.
fn framed(text: &str) -> String {
    format!("{} {text} {}", words("menu", 60), words("footer", 20))
}

/// Words as a step of a path, or several.
fn name(of: &str, count: usize, between: &str) -> String {
    words(of, count).replace(' ', between)
}

/// The path of a real page: some are numbered, some have a name of their own.
fn real_path(index: usize) -> String {
    match index {
        0 => "/".to_owned(),
        1..80 => format!("/story/{index}"),
        80..EVENTS => format!("/{}", name(&format!("title {index}"), 3, "-")),
        _ => format!("/event/{}", name(&format!("event {index}"), 2, "-")),
    }
}

fn real_index(path: &str) -> Option<usize> {
    (0..REAL).find(|index| real_path(*index) == path)
}

fn real_text(index: usize) -> String {
    framed(&words(&format!("real {index}"), 90))
}

/// The real pages once more, under a session id that is new in each link.
fn session_link(of: &str) -> String {
    let page = number(of) % EVENTS as u64;
    let id = number(&format!("session {of}")) | 1 << 63;
    format!("{HOST}/s/{id:016x}{}", real_path(page as usize))
}

/// What a real page links of a trap.
fn entrance(trap: Trap, index: usize) -> String {
    match trap {
        Trap::Calendar => format!("{HOST}/calendar/2024/5"),
        Trap::Months => format!("{HOST}/months/{}/{}", 2020 + index % 9, index % 12 + 1),
        Trap::Facets => format!("{HOST}/shop"),
        Trap::Sessions => session_link(&index.to_string()),
        Trap::Subdomains => {
            format!("http://{}.trap-site.com/", name(&format!("sub {index}"), 1, ""))
        }
        Trap::NotFound => format!("{HOST}/missing-{}", name(&format!("gone {index}"), 1, "")),
        Trap::Walk => format!("{HOST}/walk/{}", name(&format!("walk {index}"), 1, "")),
    }
}

impl Site<'_> {
    fn answer(&self, url: &str) -> Answer {
        let Some(path_and_query) = url.strip_prefix(HOST) else {
            return self.subdomain(page::url::host_of(url));
        };
        let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
        if let Some(index) = real_index(path) {
            return self.real_page(index);
        }
        match path.split('/').nth(1) {
            Some("calendar") => self.calendar(path),
            Some("months") => months(path),
            Some("shop") => shop(query),
            Some("s") => self.session(path),
            Some("walk") => self.walk(path),
            _ => self.not_found(path),
        }
    }

    fn links(&self, link: impl FnMut(usize) -> String) -> Vec<String> {
        (0..self.width).map(link).collect()
    }

    /// A real page leads to the next ones, some of them one by one into the depth, and
    /// into every trap.
    fn real_page(&self, index: usize) -> Answer {
        let mut links = vec![format!("{HOST}/")];
        let further = if index < 50 { [index * 2 + 1, index * 2 + 2] } else { [index + 1; 2] };
        let further = further.into_iter().filter(|next| *next < EVENTS);
        links.extend(further.map(|next| format!("{HOST}{}", real_path(next))));
        if !self.traps.contains(&Trap::Calendar) {
            links.extend((EVENTS..REAL).map(|event| format!("{HOST}{}", real_path(event))));
        }
        links.extend(self.traps.iter().map(|trap| entrance(*trap, index)));
        Answer { text: real_text(index), links }
    }

    /// A calendar of months and days, without begin or end. Twenty events are in it.
    fn calendar(&self, path: &str) -> Answer {
        const NAMES: &str = "January February March April May June July August September October \
                             November December";
        let numbers: Vec<i64> = path.split('/').filter_map(|step| step.parse().ok()).collect();
        let (year, month) = (numbers[0], numbers[1]);
        let name = NAMES.split(' ').nth(month as usize - 1).unwrap();
        let of = |months: i64| {
            let count = year * 12 + month - 1 + months;
            format!("{HOST}/calendar/{}/{}", count.div_euclid(12), count.rem_euclid(12) + 1)
        };
        let mut links: Vec<String> = [-1, 1].map(of).to_vec();
        if self.width > 10 {
            links.extend([-12, 12].map(of));
        }
        if let Some(day) = numbers.get(2) {
            links.extend((day % 28 != 0).then(|| format!("{}/{}", of(0), day + 1)));
            let text = format!("{day} {name} {year} no events on this day of {name} {year}");
            return Answer { text: framed(&text), links };
        }
        links.extend((1..=28).map(|day| format!("{}/{day}", of(0))));
        let ahead = usize::try_from((year - 2024) * 12 + month - 5).ok();
        let event = ahead.map(|ahead| EVENTS + ahead).filter(|event| *event < REAL);
        links.extend(event.map(|event| format!("{HOST}{}", real_path(event))));
        let events = event.map_or("no events".into(), |event| words(&format!("event {event}"), 12));
        let days: Vec<String> = (1..=28).map(|day| day.to_string()).collect();
        let text = format!("{name} {year} Mon Tue Wed Thu Fri Sat Sun {} {events}", days.join(" "));
        Answer { text: framed(&text), links }
    }

    fn session(&self, path: &str) -> Answer {
        let inner = &path["/s/0123456789abcdef".len()..];
        let text = real_index(inner).map_or_else(String::new, real_text);
        Answer { text, links: self.links(|n| session_link(&format!("{path} {n}"))) }
    }

    /// Every name under the domain answers, and names more.
    fn subdomain(&self, host: &str) -> Answer {
        let link = |n| format!("http://{}.trap-site.com/", name(&format!("{host} {n}"), 2, "-"));
        let mut links = self.links(link);
        links.push(format!("http://{host}/about"));
        Answer { text: framed("welcome to our network of sites"), links }
    }

    /// What is missing answers with a page like any other, whose links are missing too.
    fn not_found(&self, path: &str) -> Answer {
        let link = |n| format!("{HOST}/missing-{}", name(&format!("{path} {n}"), 2, "/"));
        let text = framed("we are sorry but this page could not be found");
        Answer { text, links: self.links(link) }
    }

    /// Ways of all lengths and shapes, each with a counter of visitors.
    fn walk(&self, path: &str) -> Answer {
        let link = |n| {
            let steps = number(&format!("{path} {n}")) as usize % 6 + 1;
            format!("{HOST}/walk/{}", name(&format!("{path} {n}"), steps, "/"))
        };
        let text = format!("you are visitor {} of this way {}", number(path), words("way", 300));
        Answer { text: framed(&text), links: self.links(link) }
    }
}

/// A calendar of one sentence, in which two numbers are much.
fn months(path: &str) -> Answer {
    let numbers: Vec<i64> = path.split('/').filter_map(|step| step.parse().ok()).collect();
    let (year, month) = (numbers[0], numbers[1]);
    let of = |months: i64| {
        let count = year * 12 + month - 1 + months;
        format!("{HOST}/months/{}/{}", count.div_euclid(12), count.rem_euclid(12) + 1)
    };
    let text = format!("Nothing is planned for month {month} of the year {year}. Come back later.");
    Answer { text, links: [-1, 1].map(of).to_vec() }
}

/// Forty products, five facets of four values and an order, in any combination. What a
/// page says is what is left of the products, and so nearly always new.
fn shop(query: &str) -> Answer {
    const NAMES: [&str; 6] = ["brand", "color", "material", "order", "size", "style"];
    let chosen: Vec<(&str, &str)> =
        query.split('&').filter_map(|parameter| parameter.split_once('=')).collect();
    let mut links = Vec::new();
    for name in NAMES {
        let others = chosen.iter().filter(|(other, _)| *other != name);
        let others: Vec<String> = others.map(|(name, value)| format!("{name}={value}&")).collect();
        let link = |value| format!("{HOST}/shop?{}{name}={value}", others.concat());
        links.extend((0..4).map(link));
    }
    let fits = |product: &u64| {
        chosen.iter().all(|(name, value)| {
            *name == "order" || number(&format!("{product}{name}")) % 4 <= value.parse().unwrap()
        })
    };
    let mut left: Vec<u64> = (0..40).filter(fits).collect();
    left.sort_by_key(|product| number(&format!("{product}{query}")));
    let names: Vec<String> = left.iter().map(|it| words(&format!("product {it}"), 8)).collect();
    Answer { text: framed(&format!("{query} {}", names.join(" "))), links }
}

fn explore(traps: &[Trap], width: usize) -> Outcome {
    let site = Site { traps, width };
    let outcome = crawl(&format!("{HOST}/"), PAGES_MAX, |url| site.answer(url));
    let paths = outcome.fetched.iter().filter_map(|url| url.strip_prefix(HOST));
    let real: BTreeSet<usize> = paths.filter_map(real_index).collect();
    println!("{} fetched, {} real\n{}", outcome.fetched.len(), real.len(), outcome.report());
    assert_eq!(real.len(), REAL, "real pages found");
    assert!(outcome.fetched.len() <= FETCHED_MAX, "{} fetched", outcome.fetched.len());
    outcome
}

/// Explores one trap, whose pages name many more, and sees what it is called.
fn explore_one(trap: Trap, pattern: &str, rule: BudgetRule) {
    let outcome = explore(&[trap], 20);
    let is_named = |name: &str| name == format!("{pattern} {}", rule.code());
    assert!(outcome.closed.keys().any(|name| is_named(name)), "{}", outcome.report());
}

#[test]
fn a_site_of_all_traps_ends() {
    use Trap::{Calendar, Facets, NotFound, Sessions, Subdomains, Walk};
    explore(&[Calendar, Facets, Sessions, Subdomains, NotFound, Walk], 6);
}

#[test]
fn a_calendar_ends() {
    explore_one(Trap::Calendar, "www.trap-site.com/calendar/#/#/#", BudgetRule::Alike);
}

#[test]
fn a_calendar_of_one_sentence_ends() {
    explore_one(Trap::Months, "www.trap-site.com/months/#/#", BudgetRule::Deep);
}

#[test]
fn facets_end() {
    explore_one(Trap::Facets, "www.trap-site.com/shop?*", BudgetRule::Combinations);
}

#[test]
fn session_ids_end() {
    explore_one(Trap::Sessions, "www.trap-site.com/s/#/*", BudgetRule::Stale);
}

#[test]
fn subdomains_end() {
    explore_one(Trap::Subdomains, "*.trap-site.com", BudgetRule::Suspects);
}

#[test]
fn pages_that_are_missing_end() {
    explore_one(Trap::NotFound, "www.trap-site.com/*", BudgetRule::Suspects);
}

#[test]
fn a_walk_of_all_shapes_ends() {
    explore_one(Trap::Walk, "www.trap-site.com/*", BudgetRule::Suspects);
}
