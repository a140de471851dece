//! Who hears of which documents of a batch: outputs that take requisites, and others.

use super::*;
use crate::job::fixture::{attended, work};
use page::facts::Facts;
use store::chunkfile::document::Fetch;
use store::ids::{CommitNumber, DocumentId, IdMaker, NodeId, Part};
use store::tables::ingests::Decision;
use store::testing::both_databases;

const PART: Part = Part(1);
const TAKES: ConnectionId = ConnectionId(10);
const TAKES_NONE: ConnectionId = ConnectionId(11);
const URLS: [&str; 2] = ["http://a.example/page", "http://a.example/style.css"];

fn job() -> JobWork {
    let outlet = |connection, requisites| Outlet {
        connection,
        name: "out".into(),
        version: "v".into(),
        transformations: String::new(),
        bodies: false,
        requisites,
        former: false,
    };
    let mut attended = attended(1);
    attended.outlets = vec![outlet(TAKES, true), outlet(TAKES_NONE, false)];
    JobWork::new(&attended, &work(1).shared).expect("a definition that is right")
}

/// A batch that has read a page, and another document in a role.
fn batch(role: DocumentRole, change: Change) -> Batch {
    let mut batch = Batch::default();
    for (url, role, id) in [(URLS[0], DocumentRole::Page, 1), (URLS[1], role, 2)] {
        let mut document = Document::new(DocumentId(id), DocHash::of(url), url.to_owned(), 0);
        document.content_hash = Some(vec![7; 16]);
        document.role = role;
        if role.is_requisite() {
            batch.job.requisites.insert(document.dochash);
        }
        let record = DocumentRecord::new(url, 7, change);
        let (facts, fetch) = (Some(Facts::default()), Some(Fetch::default()));
        batch.record(DocumentRecord { role, facts, fetch, ..record });
        batch.documents.push(document);
    }
    batch
}

/// What outputs must hear of the two documents.
type Heard = [[Option<Decision>; 2]; 2];

fn heard(tx: &mut Tx<'_>, job: &JobWork) -> Result<Heard> {
    let keys = URLS.map(DocHash::of);
    let mut of = |output| {
        let rows = ingests::load(tx, PART, output, job.connection, &keys)?;
        let decision = |key| {
            let row = rows.iter().find(|row| row.dochash == key)?;
            row.pending.as_ref().map(|it| it.decision)
        };
        Ok::<_, store::Error>(keys.map(decision))
    };
    Ok([of(TAKES)?, of(TAKES_NONE)?])
}

fn committed(db: &store::Db, seq: i64, role: DocumentRole, change: Change) -> Result<Heard> {
    let ids = IdMaker::new(NodeId(seq)).expect("a node");
    let (job, batch) = (job(), batch(role, change));
    db.write(move |tx| {
        let at = IngestCommit { ids: &ids, part: PART, seq: CommitNumber(seq), now_ms: seq };
        commit(tx, at, &job, &batch)?;
        heard(tx, &job)
    })
}

#[test]
fn only_outputs_that_take_requisites_hear_of_them() {
    both_databases(|db| {
        let add = Some(Decision::Add);
        let first = committed(db, 1, DocumentRole::Requisite, Change::Add)?;
        assert_eq!(first, [[add, add], [add, None]]);
        let page = committed(db, 2, DocumentRole::Page, Change::Update)?;
        assert_eq!(page, [[add, add], [add, add]], "it is one for all of them now");
        let again = committed(db, 3, DocumentRole::Requisite, Change::Update)?;
        let remove = Some(Decision::Remove);
        assert_eq!(again, [[add, add], [add, remove]], "whoever takes none loses it");
        Ok(())
    });
}
