//! The good hosts: a tree of pages on each, and the clock that is the measurement.
//!
//! Invariant: a page counts once, however often it is asked for.

use crate::whole;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::time::Instant;

/// Pages that each page leads to in the tree, so that a few steps reach all of them.
const CHILDREN: u64 = 8;
/// Words of a page, and of the language.
const WORDS: u64 = 400;
const LANGUAGE: u64 = 20_000;

/// The good hosts, and which of their pages were asked for.
pub struct Good {
    pub hosts: u64,
    pages: u64,
    asked: Mutex<Asked>,
}

struct Asked {
    pages: Vec<bool>,
    left: u64,
    began: Option<Instant>,
}

impl Good {
    pub fn new(hosts: u64, pages: u64) -> Good {
        let left = hosts * pages;
        let seen = vec![false; usize::try_from(left).unwrap_or(0)];
        Good { hosts, pages, asked: Mutex::new(Asked { pages: seen, left, began: None }) }
    }

    pub fn answer(&self, host: u64, path: &str) -> String {
        let number = match path {
            "/" => Some(0),
            path => path.strip_prefix("/page/").and_then(|it| it.parse::<u64>().ok()),
        };
        let Some(number) = number.filter(|number| *number < self.pages) else {
            return whole("404 Not Found", "", "");
        };
        self.count(host * self.pages + number);
        whole("200 OK", "Content-Type: text/html; charset=utf-8\r\n", &self.page(host, number))
    }

    fn count(&self, page: u64) {
        let Ok(mut asked) = self.asked.lock() else { return };
        let began = *asked.began.get_or_insert_with(Instant::now);
        let Some(seen) = usize::try_from(page).ok().and_then(|at| asked.pages.get_mut(at)) else {
            return;
        };
        if !std::mem::replace(seen, true) {
            asked.left -= 1;
            if asked.left == 0 {
                println!("seconds {:.3}", began.elapsed().as_secs_f64());
            }
        }
    }

    fn page(&self, host: u64, number: u64) -> String {
        let mut text =
            format!("<!doctype html><title>Page {number}</title><h1>{host} {number}</h1>");
        let children = number * CHILDREN + 1..=number * CHILDREN + CHILDREN;
        for child in children.filter(|it| *it < self.pages) {
            let _ = write!(text, "<a href=\"/page/{child}\">page {child}</a> ");
        }
        text.push_str("<p>");
        for place in 0..WORDS {
            let random = mixed(host * self.pages + number, place);
            // Few words are frequent, as in a language.
            let word = (random % LANGUAGE) * (random >> 32 & 0xffff) >> 16;
            let _ = write!(text, "w{word:x} ");
        }
        text
    }
}

/// A number that looks random, of two (splitmix64).
fn mixed(one: u64, other: u64) -> u64 {
    let mut it =
        one.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ other.wrapping_mul(0xd1b5_4a32_d192_ed03);
    it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    it ^ (it >> 31)
}
