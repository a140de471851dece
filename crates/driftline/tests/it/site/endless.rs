//! Traps among the pages of a generated site: pages that make more of their kind
//! for ever.
//!
//! Each has its own first step of the path, so that `Traffic::by_first_step` tells what
//! was spent on it. Their texts are nearly the same within a kind, as they are in life.
//! Invariant: every trap page leads to at least one that was not there before, and back
//! to a real page.

use std::fmt::Write;

use super::pages::{Plan, hash};
use driftline::loopback_web::{Answer, Request};

/// Facets of the shop, each with as many values.
const FACETS: usize = 8;

/// The links of a real page into the traps, one kind for each page in turn. A session
/// id in a link to a real page is a trap only for whoever takes it for another page.
pub fn write_links(plan: &Plan, page: usize, port: u16, html: &mut String) {
    let host = plan.host(page);
    let next = Some(page + plan.hosts.len()).filter(|next| *next < plan.pages).unwrap_or(page);
    let link = match page % 7 {
        0 => format!("/calendar/{}/{}", 2020 + page % 9, 1 + page % 12),
        1 => format!("/shop?f{}=v{}", page % FACETS, page % 3),
        2 => "/deep/again/".to_owned(),
        3 => format!("/lost/{page}"),
        4 => format!("/lobby?visit={}", hash(page as u64, 3) % 1_000_000),
        5 if has_name(host) => format!("//n{page}.{host}:{port}/"),
        _ => format!("/p/{next}?PHPSESSID={:016x}", hash(page as u64, 5)),
    };
    let _ = writeln!(html, "<li><a href=\"{link}\">more</a></li>");
}

/// The trap at a path, if one is there.
pub fn answer(plan: &Plan, request: &Request) -> Option<Answer> {
    if !plan.hosts.contains(&request.host) {
        return subdomain(plan, request);
    }
    let path = request.path_alone();
    let query = request.query().unwrap_or_default();
    let mut steps = path.split('/').skip(1);
    let (text, links) = match steps.next()? {
        "calendar" => calendar(steps.next()?.parse().ok()?, steps.next()?.parse().ok()?),
        "shop" => shop(query),
        "deep" => (
            "You have not arrived yet. Go on, it is not far.".to_owned(),
            vec!["again/".to_owned(), "again/and/".to_owned()],
        ),
        "lost" => lost(path),
        "lobby" => lobby(query),
        _ => return None,
    };
    let home = plan.first_of(&request.host)?;
    Some(page(&text, &links, home))
}

fn has_name(host: &str) -> bool {
    host.parse::<std::net::Ipv4Addr>().is_err()
}

/// Months without end in both directions, with nothing in them.
fn calendar(year: u32, month: u32) -> (String, Vec<String>) {
    let at = |months: u32| format!("/calendar/{}/{}", months / 12, months % 12 + 1);
    let months = year.saturating_mul(12).saturating_add(month.saturating_sub(1));
    let text = format!("Nothing is planned for month {month} of the year {year}. Come back later.");
    (text, vec![at(months.saturating_sub(1)), at(months.saturating_add(1))])
}

/// Every choice can be added to those made, in any order, again and again.
fn shop(query: &str) -> (String, Vec<String>) {
    let text = "Forty lamps match your choice. Narrow it down by colour, size or price.";
    let choices = (0..FACETS).map(|facet| {
        let value = hash(query.len() as u64, facet as u64) % FACETS as u64;
        let joint = if query.is_empty() { "" } else { "&" };
        format!("/shop?{query}{joint}f{facet}=v{value}")
    });
    (text.to_owned(), choices.collect())
}

/// Says 200 where it means 404, and is never short of suggestions.
fn lost(path: &str) -> (String, Vec<String>) {
    let seed = path.bytes().fold(0, |sum, byte| hash(sum, u64::from(byte)));
    let links = (0..5).map(|n| format!("/lost/{:08x}", hash(seed, n) >> 32)).collect();
    ("Sorry, we could not find that page. Perhaps one of these helps.".to_owned(), links)
}

/// Gives every visit a number, in a parameter that nobody knows.
fn lobby(query: &str) -> (String, Vec<String>) {
    let seed = query.bytes().fold(1, |sum, byte| hash(sum, u64::from(byte)));
    let links = (0..3).map(|n| format!("/lobby?visit={}", hash(seed, n) % 1_000_000_000));
    ("Welcome to the lobby. Take a seat until you are called.".to_owned(), links.collect())
}

/// Hosts under the first host, as many as anybody wants.
fn subdomain(plan: &Plan, request: &Request) -> Option<Answer> {
    let parent = plan.hosts.iter().find(|known| {
        request.host.strip_suffix(known.as_str()).is_some_and(|label| label.ends_with('.'))
    })?;
    let seed = request.host.bytes().fold(2, |sum, byte| hash(sum, u64::from(byte)));
    let port = request.port();
    let other = |n: u64| format!("http://n{:08x}.{parent}:{port}/", hash(seed, n) >> 32);
    let text = "This member has not written anything yet.";
    let home = format!("http://{parent}:{port}{}", plan.first_of(parent)?);
    Some(page(text, &[other(0), other(1)], home))
}

fn page(text: &str, links: &[String], home: String) -> Answer {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><title>{text}</title></head>\n\
         <body><p>{text}</p>\n<ul>\n"
    );
    for link in links.iter().chain([&home]) {
        let link = link.replace('&', "&amp;");
        let _ = writeln!(html, "<li><a href=\"{link}\">go on</a></li>");
    }
    html.push_str("</ul></body></html>\n");
    Answer::html(html)
}
