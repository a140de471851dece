//! Readers beside a writer that takes its time.

use super::{PARTS, each_engine, uri};
use crate::links::changes::{ChangeBatch, PageChange, PageContent, What};
use crate::links::index::LinkIndex;
use crate::links::queries;
use page::facts::{LinkKind, Rel};
use page::outlinks::OutLink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::Result;
use store::ids::Part;
use store::sorted::{BulkReplacement, Pair, SortedMap, SortedRows, Span, View, ViewReader, Work};
use store::tables::leases::Lease;

const PATIENCE: Duration = Duration::from_secs(40);

/// Whoever looks something up first, once it is set, stays there until it is let go.
struct Trap {
    is_set: AtomicBool,
    caught: Mutex<Sender<()>>,
    let_go: Mutex<Receiver<()>>,
}

impl Trap {
    fn pass(&self) {
        if self.is_set.swap(false, Ordering::SeqCst) {
            self.caught.lock().unwrap().send(()).unwrap();
            let _ = self.let_go.lock().unwrap().recv_timeout(PATIENCE);
        }
    }
}

/// A map with a trap in it.
struct Trapped {
    inner: Arc<dyn SortedMap>,
    trap: Arc<Trap>,
}

struct TrappedView<'a> {
    inner: &'a dyn View,
    trap: &'a Trap,
}

impl View for TrappedView<'_> {
    fn get_many(&self, part: Part, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>> {
        self.trap.pass();
        self.inner.get_many(part, keys)
    }

    fn scan(&self, part: Part, span: &Span, limit: usize) -> Result<Vec<Pair>> {
        self.inner.scan(part, span, limit)
    }
}

impl SortedMap for Trapped {
    fn spans_parts(&self) -> bool {
        self.inner.spans_parts()
    }

    fn change(&self, part: Part, lease: Option<&Lease>, work: Work) -> Result<()> {
        let trap = self.trap.clone();
        let work: Work =
            Arc::new(move |inner: &dyn View| work(&TrappedView { inner, trap: &trap }));
        self.inner.change(part, lease, work)
    }

    fn look(&self, mut look: ViewReader) -> Result<()> {
        let trap = self.trap.clone();
        self.inner.look(Box::new(move |inner: &dyn View| look(&TrappedView { inner, trap: &trap })))
    }

    fn replace(&self, what: &BulkReplacement<'_>, rows: &mut SortedRows<'_>) -> Result<()> {
        self.inner.replace(what, rows)
    }

    fn disk_bytes(&self) -> Result<u64> {
        self.inner.disk_bytes()
    }

    fn compact(&self) -> Result<()> {
        self.inner.compact()
    }
}

/// A page that links to another.
fn page(from: u8, to: u8) -> ChangeBatch {
    let links = vec![OutLink {
        uri: uri(to),
        anchor: "there".into(),
        kind: LinkKind::A,
        rel: Rel::default(),
    }];
    let what = What::Page(Box::new(PageContent { links, ..PageContent::default() }));
    let change = PageChange { uri: uri(from), date_ms: 1_000, job: 1, in_order: true, what };
    ChangeBatch { changes: vec![change], marks: vec![] }
}

#[test]
fn a_reader_is_answered_while_a_writer_is_planning() {
    each_engine(|inner| {
        let ((caught, is_caught), (let_go, is_let_go)) = (channel(), channel());
        let trap = Arc::new(Trap {
            is_set: AtomicBool::new(false),
            caught: Mutex::new(caught),
            let_go: Mutex::new(is_let_go),
        });
        let index = LinkIndex::new(Arc::new(Trapped { inner, trap: trap.clone() }), PARTS);
        index.apply(page(0, 1), &[]).unwrap();
        trap.is_set.store(true, Ordering::SeqCst);
        let writer = {
            let index = index.clone();
            std::thread::spawn(move || index.apply(page(2, 1), &[]).unwrap())
        };
        is_caught.recv_timeout(PATIENCE).expect("the writer looks pages up");
        let (answer, answered) = channel();
        let reader = {
            let index = index.clone();
            std::thread::spawn(move || {
                let part = index.part_of(&uri(1));
                let found = index.read(move |view| queries::find(view, part, &uri(1))).unwrap();
                answer.send(found.map(|it| it.node.incount)).unwrap();
            })
        };
        let found = answered.recv_timeout(PATIENCE / 4);
        let_go.send(()).unwrap();
        writer.join().unwrap();
        reader.join().unwrap();
        assert_eq!(found, Ok(Some(1)), "it was answered before the writer went on");
        let part = index.part_of(&uri(1));
        let found = index.read(move |view| queries::find(view, part, &uri(1))).unwrap();
        assert_eq!(found.map(|it| it.node.incount), Some(2));
    });
}
