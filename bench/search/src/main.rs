//! `search-bench DATA JUDGED SITE`: the search index of a crawled data directory beside a
//! plain tantivy index of the same texts, how fast it answers, and how well.

mod corpus;
mod judged;

use anyhow::{Context, Result};
use corpus::{Corpus, Text};
use cpu_time::ProcessTime;
use judged::Judged;
use outputs::links::{LinkIndex, keys};
use outputs::search::ask::plan::Weights;
use outputs::search::ask::{IndexSearcher, Question};
use outputs::search::anchor_text;
use outputs::search::schema::{IndexedDocument, DocumentKey};
use outputs::search::server::{SearchServer, Shards};
use outputs::search::indexed_links::Target;
use outputs::search::writer::Writer;
use page::domain::SuffixList;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use store::datadir::DataDir;
use store::objects::{Location, Objects};
use store::sorted::{EmbeddedMap, MapLocation};
use store::tables::settings;
use tantivy::schema::{STORED, STRING, Schema, TEXT};
use tantivy::{Index, IndexWriter, doc};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Documents between two commits, as a crawl in full swing makes them.
const COMMIT_EVERY: usize = 2_000;
/// How long questions are asked for.
const SUSTAINED: Duration = Duration::from_secs(10);

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let data = args.next().context("which data directory?")?;
    let judged = args.next().context("which judged questions?")?;
    let site = args.next().context("which site are they of?")?;
    let held = DataDir::open(Path::new(&data), 16, 0)?;
    let objects = Objects::open(&Location::Directory(held.layout().objects()))?;
    let list = held.db().read(settings::suffix_list)?;
    let place = MapLocation { path: held.layout().links(), families: keys::FAMILIES };
    let parts = held.db().read(settings::parts)?;
    let links = LinkIndex::new(Arc::new(EmbeddedMap::open(&place)?), parts);

    let corpus = corpus::read(held.db(), &objects)?;
    println!("{} documents, {:.1} MB of text", corpus.texts.len(), corpus.bytes() as f64 / 1e6);
    let work = tempfile::tempdir()?;
    let plain = plain_index(&corpus, &work.path().join("plain"))?;
    let ours = our_index(&corpus, &work.path().join("ours"), &links, &list)?;
    println!("plain tantivy (title and text): {:.2} CPU-s, {:.1} MB", plain.0, plain.1);
    println!("ours (with headings, URL, links, access): {:.2} CPU-s, {:.1} MB", ours.0, ours.1);
    println!("ours / plain: {:.2} (at most 1.25)", ours.0 / plain.0);
    drop(corpus);

    let cache = work.path().join("served");
    let server = SearchServer::new(held.db().clone(), objects, cache);
    let shards = server.refresh()?;
    let questions = judged::read(Path::new(&judged), &site)?;
    let asker = Asker { server: &server, shards: &shards, links: &links };
    asker.relevance(&questions)?;
    asker.speed(&questions)?;
    asker.sustained(&questions)
}

/// CPU seconds and megabytes of a plain index of titles and texts.
fn plain_index(corpus: &Corpus, home: &Path) -> Result<(f64, f64)> {
    std::fs::create_dir_all(home)?;
    let began = ProcessTime::now();
    let mut to = Schema::builder();
    let url = to.add_text_field("url", STRING | STORED);
    let title = to.add_text_field("title", TEXT | STORED);
    let body = to.add_text_field("body", TEXT | STORED);
    let index = Index::create_in_dir(home, to.build())?;
    let mut writer: IndexWriter = index.writer_with_num_threads(1, 64 << 20)?;
    for (at, text) in corpus.texts.iter().enumerate() {
        let facts = text.facts();
        writer.add_document(doc!(url => text.record.docid.as_str(), title => facts.title.as_str(), body => facts.text.as_str()))?;
        if at % COMMIT_EVERY == COMMIT_EVERY - 1 {
            writer.commit()?;
        }
    }
    writer.commit()?;
    writer.wait_merging_threads()?;
    Ok((began.elapsed().as_secs_f64(), megabytes(home)?))
}

/// The same of ours.
fn our_index(
    corpus: &Corpus,
    home: &Path,
    links: &LinkIndex,
    list: &SuffixList,
) -> Result<(f64, f64)> {
    std::fs::create_dir_all(home)?;
    let began = ProcessTime::now();
    let mut writer = Writer::open(home)?;
    for texts in corpus.texts.chunks(COMMIT_EVERY) {
        let target = |text: &Text| anchor_text::target(links, list, &text.record.docid);
        let anchor_text = anchor_text::of(links, &texts.iter().map(target).collect::<Vec<_>>())?;
        for (text, anchor_text) in texts.iter().zip(&anchor_text) {
            let key = DocumentKey { connection: text.connection, hash: text.record.dochash };
            let (record, facts) = (&text.record, text.facts());
            let entry = IndexedDocument { key, place: text.place, record, facts, anchor_text };
            let document = writer.fields.document(&entry, list);
            writer.put(key, document)?;
        }
        writer.commit()?;
    }
    writer.settle()?;
    Ok((began.elapsed().as_secs_f64(), megabytes(home)?))
}

fn megabytes(home: &Path) -> Result<f64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(home)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes as f64 / 1e6)
}

struct Asker<'a> {
    server: &'a SearchServer,
    shards: &'a Shards,
    links: &'a LinkIndex,
}

impl Asker<'_> {
    fn ask(&self, question: &Question, weights: Weights) -> Result<Vec<String>> {
        let in_links = |targets: &[Option<Target>]| anchor_text::in_links(self.links, targets);
        let fields = &self.server.fields;
        let (secured, lag) = (&[], Default::default());
        let shards = self.shards;
        let asking = IndexSearcher { shards, fields, weights, in_links: &in_links, secured, lag };
        let answer = asking.answer(question)?;
        Ok(answer.hits.into_iter().map(|hit| hit.url).collect())
    }

    /// How well questions are answered, in several ways.
    fn relevance(&self, questions: &[Judged]) -> Result<()> {
        let usual = Weights::default();
        let mut variants = vec![
            ("as it is", usual),
            ("without the words of links", Weights { anchors: 0.0, ..usual }),
            ("without the number of links", Weights { links: 0.0, ..usual }),
            ("without phrases", Weights { together: 0.0, ..usual }),
            ("plain BM25 of texts", Weights::plain()),
            ("plain BM25 of titles and texts", Weights { title: 1.0, ..Weights::plain() }),
        ];
        if std::env::var_os("TUNE").is_some() {
            variants.extend(tuned(usual));
        }
        println!("nDCG@10 over {} questions:", questions.len());
        for (name, weights) in variants {
            let mut sum = 0.0;
            for judged in questions {
                let found = self.ask(&judged.question(), weights)?;
                let gain = judged.ndcg(&found);
                if std::env::var_os("SHOW").is_some() && name == "as it is" && gain < 0.5 {
                    println!("    {gain:.2} {}: {:?}", judged.text, found.iter().take(3).collect::<Vec<_>>());
                }
                sum += gain;
            }
            println!("  {:.4}  {name}", sum / questions.len() as f64);
        }
        Ok(())
    }

    /// How long an answer takes, hot, one at a time.
    fn speed(&self, questions: &[Judged]) -> Result<()> {
        let mut times = Vec::new();
        for round in 0..4 {
            for judged in questions {
                let began = Instant::now();
                self.ask(&judged.question(), Weights::default())?;
                if round > 0 {
                    times.push(began.elapsed());
                }
            }
        }
        let (median, p95, p99) = ranks(&mut times);
        println!("one at a time: median {median:.1} ms, p95 {p95:.1} ms (under 30), p99 {p99:.1} ms");
        Ok(())
    }

    /// How many answers a second two threads give.
    fn sustained(&self, questions: &[Judged]) -> Result<()> {
        let next = AtomicUsize::new(0);
        let began = Instant::now();
        let mut times: Vec<Duration> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let mut times = Vec::new();
                        while began.elapsed() < SUSTAINED {
                            let at = next.fetch_add(1, Ordering::Relaxed) % questions.len();
                            let asked = Instant::now();
                            let found = self.ask(&questions[at].question(), Weights::default());
                            assert!(found.is_ok());
                            times.push(asked.elapsed());
                        }
                        times
                    })
                })
                .collect();
            threads.into_iter().flat_map(|it| it.join().expect("a thread")).collect()
        });
        let rate = times.len() as f64 / began.elapsed().as_secs_f64();
        let (median, _, p99) = ranks(&mut times);
        println!("two threads: {rate:.0} a second (at least 200), median {median:.1} ms, p99 {p99:.1} ms (under 100)");
        Ok(())
    }
}

/// Other weights to try.
fn tuned(usual: Weights) -> Vec<(&'static str, Weights)> {
    let mut all = Vec::new();
    for title in [2.0, 4.0, 6.0] {
        all.push((&*format!("title {title}").leak(), Weights { title, ..usual }));
    }
    for headings in [0.0, 0.5, 1.0, 3.0] {
        all.push((&*format!("headings {headings}").leak(), Weights { headings, ..usual }));
    }
    for address in [0.0, 0.5, 1.0, 3.0] {
        all.push((&*format!("address {address}").leak(), Weights { address, ..usual }));
    }
    for anchors in [0.5, 1.0, 2.0, 3.0, 4.0] {
        all.push((&*format!("anchors {anchors}").leak(), Weights { anchors, ..usual }));
    }
    for together in [0.25, 1.0, 2.0] {
        all.push((&*format!("together {together}").leak(), Weights { together, ..usual }));
    }
    for links in [0.1, 0.2, 0.3, 0.6, 0.8] {
        all.push((&*format!("links {links}").leak(), Weights { links, ..usual }));
    }
    for body in [0.25, 0.5, 2.0] {
        all.push((&*format!("body {body}").leak(), Weights { body, ..usual }));
    }
    all
}

/// Median, p95 and p99 in milliseconds.
fn ranks(times: &mut [Duration]) -> (f64, f64, f64) {
    times.sort();
    let of = |share: f64| {
        let at = ((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1));
        times.get(at).map_or(0.0, |it| it.as_secs_f64() * 1e3)
    };
    (of(0.5), of(0.95), of(0.99))
}
