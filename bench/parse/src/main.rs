//! What parsing a page costs, beside the least a link extractor can cost.
//!
//! `parse-bench DIR [PAGES]` loads up to PAGES `.html` files of DIR (3,000, evenly
//! spread) and measures, in alternating rounds and in CPU time,
//! the floor (lol_html, five selectors, `Url::join`, each `href` once),
//! `page::html::links_only`, `page::html::extract`, the same with the page's requisites,
//! and `page::mirror::rewrite::page` with every reference leading to a member.

use std::cell::RefCell;
use std::error::Error;
use std::hint::black_box;
use std::path::{Path, PathBuf};

use cpu_time::ProcessTime;
use lol_html::{HtmlRewriter, Settings, element};
use page::html::{Input, extract, links_only};
use page::mirror::rewrite::{self, Document, Target};
use page::url::Policy;
use url::Url;

// The same allocator for all, the one the program ships with.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const ROUNDS: usize = 7;
const PAGES: usize = 3_000;

struct Page {
    url: String,
    body: Vec<u8>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("usage: parse-bench DIR [PAGES]")?;
    let wanted = arguments.next().map_or(Ok(PAGES), |text| text.parse())?;
    let pages = load(Path::new(&directory), wanted)?;
    let bytes: usize = pages.iter().map(|page| page.body.len()).sum();

    let policy = Policy::default();
    let measured: [(&str, &dyn Fn(&Page) -> usize); 5] = [
        ("floor", &|page| floor(&page.body, &page.url)),
        ("links_only", &|page| links_only(&Input::new(&page.body, &page.url, &policy)).len()),
        ("extract", &|page| extract(&Input::new(&page.body, &page.url, &policy)).links.len()),
        ("requisites", &|page| {
            let input = Input::new(&page.body, &page.url, &policy);
            let facts = extract(&Input { requisites: true, ..input });
            facts.links.len() + facts.requisites.len()
        }),
        ("rewrite", &|page| {
            let document = Document { body: &page.body, url: &page.url, content_type: None };
            let mut count = 0;
            black_box(rewrite::page(&document, None, &mut |_, _| {
                count += 1;
                Target::Member("../00/d41d8cd98f00b204e9800998ecf8427e.html".to_owned())
            }));
            count
        }),
    ];
    let mut seconds = [const { Vec::new() }; 5];
    let mut links = [0; 5];
    for _ in 0..ROUNDS {
        for (at, (_, run)) in measured.iter().enumerate() {
            let start = ProcessTime::now();
            links[at] = pages.iter().map(|page| black_box(run(page))).sum();
            seconds[at].push(start.elapsed().as_secs_f64());
        }
    }

    println!("{} pages, {:.1} MB, {ROUNDS} rounds", pages.len(), bytes as f64 / 1e6);
    let count = pages.len() as f64;
    let medians = seconds.map(median);
    for (at, (name, _)) in measured.iter().enumerate() {
        println!(
            "{name:10} {:7.1} MB/s {:7.1} µs/page {:6.1} links/page",
            bytes as f64 / 1e6 / medians[at],
            medians[at] * 1e6 / count,
            links[at] as f64 / count,
        );
    }
    println!("links_only / floor: {:.2}", medians[1] / medians[0]);
    println!("extract / floor: {:.2}", medians[2] / medians[0]);
    println!("extract with requisites / extract: {:.3}", medians[3] / medians[2]);
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn load(directory: &Path, wanted: usize) -> Result<Vec<Page>, Box<dyn Error>> {
    let mut paths = Vec::new();
    collect(directory, &mut paths)?;
    paths.sort();
    let wanted = wanted.min(paths.len());
    let mut pages = Vec::with_capacity(wanted);
    for number in 0..wanted {
        let path = &paths[number * paths.len() / wanted];
        let name = path.strip_prefix(directory)?.to_string_lossy();
        pages.push(Page {
            url: format!("http://127.0.0.1:8801/{name}"),
            body: std::fs::read(path)?,
        });
    }
    Ok(pages)
}

fn collect(directory: &Path, paths: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, paths)?;
        } else if path.is_file() && path.extension().is_some_and(|end| end == "html") {
            paths.push(path);
        }
    }
    Ok(())
}

/// The least that finding and resolving a page's links costs with these libraries.
fn floor(body: &[u8], url: &str) -> usize {
    let hrefs = RefCell::new(Vec::new());
    let base = RefCell::new(None);
    let settings = Settings::new()
        .append_element_content_handler(element!("a[href], area[href]", |element| {
            hrefs.borrow_mut().extend(element.get_attribute("href"));
            Ok(())
        }))
        .append_element_content_handler(element!("iframe[src], frame[src]", |element| {
            hrefs.borrow_mut().extend(element.get_attribute("src"));
            Ok(())
        }))
        .append_element_content_handler(element!("base[href]", |element| {
            let mut base = base.borrow_mut();
            if base.is_none() {
                *base = element.get_attribute("href");
            }
            Ok(())
        }));
    {
        let mut parser = HtmlRewriter::new(settings, |_: &[u8]| {});
        // A page on which it stops early counts as far as it got.
        if parser.write(body).is_ok() {
            let _ = parser.end();
        }
    }

    let Ok(mut document) = Url::parse(url) else { return 0 };
    if let Some(joined) = base.into_inner().and_then(|href: String| document.join(&href).ok()) {
        document = joined;
    }
    let hrefs = hrefs.into_inner();
    let mut seen = ahash::AHashSet::new();
    let mut links: Vec<Box<str>> = Vec::with_capacity(hrefs.len());
    for href in &hrefs {
        let href = href.split('#').next().unwrap_or_default();
        if href.is_empty() || !seen.insert(href) {
            continue;
        }
        if let Ok(mut link) = document.join(href.trim()) {
            link.set_fragment(None);
            links.push(String::from(link).into_boxed_str());
        }
    }
    black_box(links).len()
}
