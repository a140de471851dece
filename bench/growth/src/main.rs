//! A site of any size for crawls that come back: `growth-bench PORT PAGES` serves pages that
//! are computed from their number and the day, so nothing is stored and every run is the same.
//!
//! Page `n` leads to eight pages of its own (a tree, so that all are found), to its neighbours
//! and to a few others. A tenth of the pages changes from one day to the next;
//! `GET /day/N` says which day it is. Validators are exact: what has not changed is a 304.
//! One page in fifty is a redirect, one in fifty is missing, as on real sites.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Pages that each page leads to in the tree.
const CHILDREN: u64 = 8;
/// One page in so many changes from one day to the next.
const CHANGES_ONE_IN: u64 = 10;
/// One page in so many is a redirect, and another one is missing.
const BARE_ONE_IN: u64 = 50;
/// Words of a page, and of the language.
const WORDS: u64 = 400;
const LANGUAGE: u64 = 20_000;

struct Site {
    pages: u64,
    day: AtomicU64,
}

/// What a request asks for.
struct Request {
    path: String,
    etag: Option<String>,
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1).map(|it| it.parse::<u64>().ok());
    let (Some(Some(port)), Some(Some(pages))) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: growth-bench PORT PAGES");
        std::process::exit(2);
    };
    let site = Arc::new(Site { pages, day: AtomicU64::new(0) });
    let listener = TcpListener::bind(("127.0.0.1", u16::try_from(port).unwrap_or(0)))?;
    println!("ready");
    for stream in listener.incoming() {
        let (stream, site) = (stream?, site.clone());
        std::thread::spawn(move || serve(&site, stream));
    }
    Ok(())
}

/// Answers the requests of a connection until it ends.
fn serve(site: &Site, stream: TcpStream) -> Option<()> {
    let _ = stream.set_nodelay(true);
    let mut input = BufReader::new(stream.try_clone().ok()?);
    let mut output = stream;
    loop {
        let request = read(&mut input)?;
        output.write_all(site.answer(&request).as_bytes()).ok()?;
    }
}

fn read(input: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    input.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut etag = None;
    loop {
        line.clear();
        input.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
        match line.trim_end().split_once(": ") {
            None => return Some(Request { path, etag }),
            Some((name, value)) if name.eq_ignore_ascii_case("if-none-match") => {
                etag = Some(value.to_owned());
            }
            Some(_) => {}
        }
    }
}

impl Site {
    fn answer(&self, request: &Request) -> String {
        if let Some(day) = request.path.strip_prefix("/day/") {
            self.day.store(day.parse().unwrap_or(0), Ordering::SeqCst);
            return whole("200 OK", "", "");
        }
        let number = match request.path.as_str() {
            "/" => Some(0),
            path => path.strip_prefix("/page/").and_then(|it| it.parse::<u64>().ok()),
        };
        let Some(number) = number.filter(|number| *number < self.pages) else {
            return whole("404 Not Found", "", "");
        };
        if number > 0 && number % BARE_ONE_IN == 7 {
            return whole("404 Not Found", "", "");
        }
        if number > 0 && number % BARE_ONE_IN == 8 {
            let to = format!("Location: /page/{}\r\n", number - 2);
            return whole("301 Moved Permanently", &to, "");
        }
        let version = self.version(number);
        let etag = format!("\"{number}-{version}\"");
        let head = format!("ETag: {etag}\r\nContent-Type: text/html; charset=utf-8\r\n");
        if request.etag.as_ref() == Some(&etag) {
            return format!("HTTP/1.1 304 Not Modified\r\n{head}\r\n");
        }
        whole("200 OK", &head, &self.page(number, version))
    }

    /// The last day on which a page has changed.
    fn version(&self, number: u64) -> u64 {
        let today = self.day.load(Ordering::SeqCst);
        let changes = |day: &u64| mixed(number, *day) % CHANGES_ONE_IN == 0;
        (1..=today).rev().find(changes).unwrap_or(0)
    }

    fn page(&self, number: u64, version: u64) -> String {
        let mut text = format!("<!doctype html><title>Page {number}</title><h1>{number}</h1>");
        for child in (number * CHILDREN + 1..=number * CHILDREN + CHILDREN)
            .chain([number + 1, number.saturating_sub(1)])
            .chain((0..6).map(|it| mixed(number, 1_000 + it) % self.pages))
            .filter(|it| *it < self.pages)
        {
            let _ = write!(text, "<a href=\"/page/{child}\">page {child}</a> ");
        }
        text.push_str("<p>");
        for place in 0..WORDS {
            // A page says nearly the same in every version.
            let seed = if place % 20 == 0 { version } else { 0 };
            let random = mixed(number * 1_000 + place, seed);
            // Few words are frequent, as in a language.
            let word = (random % LANGUAGE) * (random >> 32 & 0xffff) >> 16;
            let _ = write!(text, "w{word:x} ");
        }
        text
    }
}

fn whole(status: &str, head: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{head}Content-Length: {length}\r\n\r\n{body}")
}

/// A number that looks random, of two (splitmix64).
fn mixed(one: u64, other: u64) -> u64 {
    let mut it = one.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ other.wrapping_mul(0xd1b5_4a32_d192_ed03);
    it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    it ^ (it >> 31)
}
