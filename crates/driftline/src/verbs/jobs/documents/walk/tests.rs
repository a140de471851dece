//! Every filter finds what it must and nothing else, in one answer or in many.

use super::*;
use page::domain::SuffixList;
use page::ids::DocHash;
use std::collections::BTreeSet;
use store::ids::{ChunkId, ConnectionId, DocumentId, JobId, NodeId, QueueId, Run};
use store::tables::documents::{self, Document};
use store::tables::leases::{self, LeaseRequest};
use store::tables::queue::{
    self, AddContext, Candidate, Reason, ReasonCode, SettledDocument, Settlement,
};
use store::tables::{chunks, jobs};
use store::testing::{self, both_databases};
use store::{Error, Result};

const PARTS: u32 = 4;
const RUN: Run = Run(1);
/// Documents of each host.
const EACH: i64 = 30;
const HOSTS: [&str; 3] = ["a.example", "www.a.example", "b.example"];

fn job() -> Job {
    Job::new(JobId(1), "job", ConnectionId(1))
}

fn candidate(host: &str, number: i64, id: i64) -> Candidate {
    Candidate {
        priority: 0.5,
        hops: 1,
        cut: (number % 6 == 4).then_some(ReasonCode::Scope),
        ..testing::candidate(id, format!("http://{host}/{number}"), host)
    }
}

/// Of each host, a sixth in every state.
fn fill(db: &Db) -> Result<()> {
    db.write(|tx| settings::freeze(tx, PARTS))?;
    db.write(|tx| jobs::save(tx, &job(), 1))?;
    for (index, host) in HOSTS.iter().enumerate() {
        let domain = SuffixList::bundled().grouping_domain(host);
        let part = Part(part_of(Some(domain), host, PARTS).into());
        fill_host(db, host, part, 1_000 * (index as i64 + 1))?;
    }
    Ok(())
}

fn fill_host(db: &Db, host: &'static str, part: Part, first: i64) -> Result<()> {
    let place = Place { part, job: JobId(1) };
    let asking = LeaseRequest {
        node: NodeId(first),
        node_name: "n".into(),
        now_ms: 0,
        lease_ms: 1,
        skew_ms: -10,
    };
    let lease = db
        .write(move |tx| leases::take(tx, part, "crawl", &asking))?
        .ok_or_else(|| Error::Refused("the lease is free".into()))?;
    db.write(move |tx| {
        let all: Vec<Candidate> = (0..EACH).map(|n| candidate(host, n, first + n)).collect();
        queue::add(
            tx,
            AddContext { place, run: RUN, now_ms: 5, room: None, requisites: Default::default() },
            &all,
        )?;
        for (chunk, kinds) in [(ChunkId(first), 1..=3), (ChunkId(first + 1), 5..=5)] {
            chunks::open(tx, &lease, chunk, JobId(1), RUN, 0)?;
            let ids: Vec<QueueId> = (0..EACH)
                .filter(|n| kinds.contains(&(n % 6)))
                .map(|n| QueueId(first + n))
                .collect();
            let peeked = queue::load(tx, place, &ids)?;
            queue::claim(tx, place, chunk, peeked)?;
        }
        let settled: Vec<SettledDocument> = (0..EACH).filter_map(|n| settled(first, n)).collect();
        queue::settle(tx, place, ChunkId(first), RUN, &settled)?;
        let documents: Vec<Document> = (0..EACH).filter_map(|n| document(host, first, n)).collect();
        documents::save(tx, part, ConnectionId(1), &documents)
    })
}

fn settled(first: i64, number: i64) -> Option<SettledDocument> {
    let reason = Reason::new("http-503", None);
    let to = match number % 6 {
        1 => Settlement::Retry { check_ms: 9, failcount: None, failtime: None, reason },
        2 => Settlement::Done,
        3 => Settlement::Failed(reason),
        _ => return None,
    };
    Some(SettledDocument { id: QueueId(first + number), generation: 1, to })
}

fn document(host: &str, first: i64, number: i64) -> Option<Document> {
    let status = match number % 6 {
        2 => 200,
        3 => 503,
        _ => return None,
    };
    let docid = format!("http://{host}/{number}");
    let id = DocumentId(first + number);
    let mut document = Document::new(id, DocHash::of(&docid), docid, 5);
    document.http_status = Some(status);
    Some(document)
}

/// Walks to the end with pages of `limit`, and checks that nothing comes twice.
fn all(db: &Db, filter: &DocumentFilter, limit: usize) -> BTreeSet<String> {
    let (mut urls, mut cursor) = (BTreeSet::new(), None);
    loop {
        let found =
            walk(db, &job(), &DocumentWalk { filter, cursor: cursor.as_deref() }, limit).unwrap();
        assert!(found.rows.len() <= limit);
        for row in found.rows {
            assert!(urls.insert(row.docid.clone()), "{} came twice", row.docid);
        }
        match found.cursor {
            Some(next) => cursor = Some(next),
            None => return urls,
        }
    }
}

fn expected(keep: impl Fn(&str, i64) -> bool) -> BTreeSet<String> {
    let url = |host: &str, number: i64| format!("http://{host}/{number}");
    HOSTS
        .iter()
        .flat_map(|host| (0..EACH).map(move |number| (*host, number)))
        .filter(|(host, number)| keep(host, *number))
        .map(|(host, number)| url(host, number))
        .collect()
}

#[test]
fn every_filter_finds_what_it_must_in_pages_of_any_size() {
    let with = |change: fn(&mut DocumentFilter)| {
        let mut filter = DocumentFilter::default();
        change(&mut filter);
        filter
    };
    both_databases(|db| {
        fill(db)?;
        for limit in [1, 7, 1_000] {
            let found = |change| all(db, &with(change), limit);
            assert_eq!(found(|_| {}), expected(|_, _| true));
            for (index, state) in
                ["ready", "waiting", "done", "failed", "cut", "active"].iter().enumerate()
            {
                let filter =
                    DocumentFilter { state: Some((*state).into()), ..DocumentFilter::default() };
                let want = expected(|_, number| number % 6 == index as i64);
                assert_eq!(all(db, &filter, limit), want, "{state}");
            }
            let host = found(|it| it.host = Some("WWW.A.example:80".into()));
            assert_eq!(host, expected(|host, _| host == "www.a.example"));
            let trouble = found(|it| it.reason = Some("http-503".into()));
            assert_eq!(trouble, expected(|_, number| matches!(number % 6, 1 | 3)));
            let missing = found(|it| it.status = Some(503));
            assert_eq!(missing, expected(|_, number| number % 6 == 3));
            let some = found(|it| {
                it.contains = Some("/2".into());
                it.state = Some("done".into());
                it.host = Some("a.example".into());
            });
            let wanted = |number: i64| number % 6 == 2 && number.to_string().starts_with('2');
            assert_eq!(some, expected(|host, number| host == "a.example" && wanted(number)));
        }
        Ok(())
    });
}

#[test]
fn a_cursor_goes_with_its_question_only() {
    both_databases(|db| {
        fill(db)?;
        let done = DocumentFilter { state: Some("done".into()), ..DocumentFilter::default() };
        let first = walk(db, &job(), &DocumentWalk { filter: &done, cursor: None }, 1).unwrap();
        let cursor = first.cursor.unwrap();
        let refused = |filter: &DocumentFilter, cursor: &str| {
            let found = walk(db, &job(), &DocumentWalk { filter, cursor: Some(cursor) }, 1);
            found.err().expect("it is refused").to_string()
        };
        assert!(refused(&DocumentFilter::default(), &cursor).contains("other filters"));
        assert!(refused(&done, &cursor[1..]).contains("cannot be read"));
        assert!(refused(&done, &"A".repeat(5_000)).contains("too long"));
        Ok(())
    });
}

#[test]
fn hosts_are_named_as_people_write_them() {
    for text in ["a.example", "A.example:8080", "http://a.example/x", " a.example/ "] {
        assert_eq!(host_name(text), "a.example", "{text}");
    }
    assert_eq!(host_name("[::1]:80"), "[::1]");
    assert_eq!(host_name("München.example"), "xn--mnchen-3ya.example");
    assert_eq!(host_name("a b"), "a b", "a name that nobody has is looked for as it is");
}
