//! What the link index costs, from an empty directory on: load, questions, updates, rebuild.
//!
//! `links-bench [PAGES] [DIRECTORY]` loads a made-up web of PAGES pages with about 15 links
//! each (see `web`), asks it questions, tells it of pages that changed, rebuilds it and
//! verifies it. Everything is durable when it is told: each batch is synced. With a
//! directory it leaves `edges.csv` there, for others to compute the same.

mod measure;
mod web;

use anyhow::Result;
use measure::{Taken, Watch, percentiles, rss_mb};
use outputs::links::paging::Paging;
use outputs::links::rankings::By;
use outputs::links::{ChangeBatch, LinkIndex, What, index::AppliedChanges, keys, queries, rebuild, rankings, verify};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::sorted::{EmbeddedMap, MapLocation};
use web::Web;

/// As in the program.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// As in a new data directory.
const PARTS: u32 = 16;
/// Pages of a batch.
const BATCH: u64 = 10_000;
/// Questions of each kind.
const QUESTIONS: u64 = 2_000;
/// Entries of an answer.
const PAGE: usize = 25;
/// Webindex, on 80 cores of 2016: links a second and core, and bytes a link.
const ORIGINAL: (f64, f64) = (154.0, 159.0);

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let pages: u64 = args.next().map_or(Ok(100_000), |it| it.parse())?;
    let kept = args.next().map(PathBuf::from);
    let directory = tempdir()?;
    let web = Web { pages };
    if let Some(kept) = &kept {
        write_edges(&web, &kept.join("edges.csv"))?;
    }
    let place = MapLocation { path: directory.join("links"), families: keys::FAMILIES };
    let index = LinkIndex::new(Arc::new(EmbeddedMap::open(&place)?), PARTS);
    let outcome = run(&web, &index, &directory);
    drop(index);
    std::fs::remove_dir_all(&directory)?;
    outcome
}

fn run(web: &Web, index: &LinkIndex, directory: &Path) -> Result<()> {
    let generator = generator(web);
    let (links, load) = load(web, index)?;
    println!(
        "load: {links} links of {} pages in {:.1} s, {:.1} CPU-s: {}; the generator's share is {:.0} %",
        web.pages,
        load.wall,
        load.cpu,
        load.rates(links),
        generator * links as f64 / load.cpu * 100.0
    );
    println!("      {:.0} times the original's {} links/s and core", links as f64 / load.cpu / ORIGINAL.0, ORIGINAL.0);
    let watch = Watch::start();
    index.map().compact()?;
    let bytes = index.map().disk_bytes()? as f64 / links as f64;
    println!("disk: {bytes:.1} bytes a link after compaction ({:.1} s); the original had {}", watch.read().wall, ORIGINAL.1);
    questions(web, index)?;
    let hundredth = update(web, index, 100)?;
    let share = hundredth.cpu / load.cpu * 100.0;
    println!("1 % of the pages told again, 10 % of their links changed: {:.2} CPU-s, {share:.1} % of the load", hundredth.cpu);
    let fifth = update(web, index, 5)?;
    println!("20 % of the pages likewise: {:.1} s, {:.1} CPU-s", fifth.wall, fifth.cpu);
    let watch = Watch::start();
    let computed = rebuild::rebuild(index, directory, &[])?;
    let rebuilt = watch.read();
    println!("rebuild: {:.1} s, {:.1} CPU-s: {}", rebuilt.wall, rebuilt.cpu, rebuilt.rates(computed.links));
    let crossover = rebuilt.cpu / (fifth.cpu * 5.0) * 100.0;
    println!("crossover: above {crossover:.0} % of changed pages a rebuild costs less than updates");
    let watch = Watch::start();
    let verified = verify::verify(index, directory, &mut |what| println!("      {what}"))?;
    println!("verify: {:.1} s, {} differences in {} URIs", watch.read().wall, verified.differences, computed.uris);
    println!("memory: {} MB at most", rss_mb());
    anyhow::ensure!(verified.differences == 0, "the index is not what its pages say");
    Ok(())
}

/// CPU-seconds that the made-up web itself costs, a link.
fn generator(web: &Web) -> f64 {
    let watch = Watch::start();
    let mut links = 0;
    for page in (0..web.pages).step_by(50) {
        if let What::Page(content) = web.change(page, 0).what {
            links += content.links.len();
        }
    }
    watch.read().cpu / links as f64
}

fn load(web: &Web, index: &LinkIndex) -> Result<(u64, Taken)> {
    let watch = Watch::start();
    let (mut links, mut tenth, mut rates) = (0, (Watch::start(), 0), Vec::new());
    let mut done = 0;
    while done < web.pages {
        let end = (done + BATCH).min(web.pages);
        let applied = tell(web, index, done..end, 0)?;
        links += applied.added;
        tenth.1 += applied.added;
        if end * 10 / web.pages > done * 10 / web.pages {
            let taken = tenth.0.read();
            println!("{:>5} %: {}, {} MB", end * 100 / web.pages, taken.rates(tenth.1), rss_mb());
            rates.push((tenth.1 as f64 / taken.wall, tenth.1 as f64 / taken.cpu));
            tenth = (Watch::start(), 0);
        }
        done = end;
    }
    let taken = watch.read();
    if let (Some(first), Some(last)) = (rates.first(), rates.last()) {
        println!(
            "      the last tenth ran at {:.0} % of the first by the clock, {:.0} % by processor time",
            last.0 / first.0 * 100.0,
            last.1 / first.1 * 100.0
        );
    }
    Ok((links, taken))
}

fn tell(web: &Web, index: &LinkIndex, pages: impl Iterator<Item = u64>, version: u64) -> Result<AppliedChanges> {
    let changes = pages.map(|page| web.change(page, version)).collect();
    Ok(index.apply(ChangeBatch { changes, marks: Vec::new() }, &[])?)
}

/// Tells of every so-and-so-manyth page again, in another version each time.
fn update(web: &Web, index: &LinkIndex, step: u64) -> Result<Taken> {
    let watch = Watch::start();
    let mut pages = (0..web.pages).step_by(step as usize).peekable();
    while pages.peek().is_some() {
        let batch: Vec<u64> = pages.by_ref().take(BATCH as usize).collect();
        tell(web, index, batch.into_iter(), step)?;
    }
    Ok(watch.read())
}

fn questions(web: &Web, index: &LinkIndex) -> Result<()> {
    let paging = Paging::new(PAGE, None)?;
    let ask = |name: &str, question: &dyn Fn(u64) -> Result<()>| -> Result<()> {
        let mut times = Vec::new();
        for number in 0..QUESTIONS {
            let watch = Watch::start();
            question(number)?;
            times.push(watch.read().wall * 1e3);
        }
        let (median, worst) = percentiles(times);
        println!("      {name:<42} p50 {median:>7.2} ms, p99 {worst:>7.2} ms");
        Ok(())
    };
    println!("questions, {PAGE} entries each:");
    // Every page links to some: targets as they are met, the famous ones most often.
    let target = |number: u64| {
        let targets = web.targets(number.wrapping_mul(7_919) % web.pages, 0);
        web.uri(targets[number as usize % targets.len()])
    };
    ask("in-links of a page", &|number| {
        let (uri, paging) = (target(number), paging.clone());
        let part = index.part_of(&uri);
        index.read(move |view| {
            let Some(known) = queries::find(view, part, &uri)? else { return Ok(()) };
            queries::inlinks(view, &known, &queries::Filter::default(), &paging).map(|_| ())
        })?;
        Ok(())
    })?;
    ask("out-links of a page", &|number| {
        let (uri, paging) = (web.uri(number.wrapping_mul(7_919) % web.pages), paging.clone());
        let part = index.part_of(&uri);
        index.read(move |view| {
            let Some(known) = queries::find(view, part, &uri)? else { return Ok(()) };
            let Some((page, seen_ms)) = queries::page_of(view, &known)? else { return Ok(()) };
            queries::outlinks(&page, seen_ms, &paging);
            Ok(())
        })?;
        Ok(())
    })?;
    ask("most linked pages, by turns incount and score", &|number| {
        let by = if number % 2 == 0 { By::Incount } else { By::Score };
        let paging = paging.clone();
        index.read(move |view| rankings::top(view, PARTS, by, &paging).map(|_| ()))?;
        Ok(())
    })?;
    ask("most linked pages of a domain", &|number| {
        let uri = target(number);
        let domain: Vec<&str> = page::outlinks::domain_of(&uri).rsplit('.').collect();
        let (domain, paging) = (domain.join("."), paging.clone());
        index.read(move |view| {
            rankings::top_of_domain(view, PARTS, &domain, By::Incount, &paging).map(|_| ())
        })?;
        Ok(())
    })?;
    ask("domains by pages", &|_| {
        let paging = paging.clone();
        index.read(move |view| rankings::domains(view, PARTS, &paging).map(|_| ()))?;
        Ok(())
    })
}

/// All links as numbers, for others to count.
fn write_edges(web: &Web, path: &Path) -> Result<()> {
    let mut out = std::io::BufWriter::new(std::fs::File::create(path)?);
    for page in 0..web.pages {
        for target in web.targets(page, 0) {
            writeln!(out, "{page},{target}")?;
        }
    }
    Ok(out.flush()?)
}

fn tempdir() -> Result<PathBuf> {
    let path = std::env::temp_dir().join(format!("links-bench-{}", std::process::id()));
    std::fs::create_dir_all(&path)?;
    Ok(path)
}
