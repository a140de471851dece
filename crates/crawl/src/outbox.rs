//! What the documents of a batch send to documents of other parts, in two phases: what is about
//! to be sent is written down before any other part hears of it, and that all of it was sent is
//! written in the transaction of the own part, which comes last.
//!
//! Worked out before the commit, from what the part's holder alone changes. Invariant: whatever
//! was sent stands in the sender's row before it is sent; so nothing is sent that nobody would
//! ever take back.

use page::ids::DocHash;
use std::collections::BTreeMap;
use store::ids::Part;
use store::tables::leases::{self, Lease};
use store::{Db, Result, Tx};

/// Messages `M` to other documents, and the rows `R` that say what a document has sent.
#[derive(Debug)]
pub struct Outbox<M, R> {
    by_part: BTreeMap<Part, Vec<M>>,
    /// What documents have sent when all of it is sent.
    sent: Vec<(DocHash, R)>,
    /// The same and what they had sent before: as long as not all is sent.
    sending: Vec<(DocHash, R)>,
}

impl<M, R> Default for Outbox<M, R> {
    fn default() -> Outbox<M, R> {
        Outbox { by_part: BTreeMap::new(), sent: Vec::new(), sending: Vec::new() }
    }
}

impl<M, R> Outbox<M, R> {
    /// Puts messages to a part in.
    pub fn send(&mut self, part: Part, messages: impl IntoIterator<Item = M>) {
        let mut messages = messages.into_iter().peekable();
        if messages.peek().is_some() {
            self.by_part.entry(part).or_default().extend(messages);
        }
    }

    /// Notes what a document has sent when all is sent, and what it may have sent until then.
    pub fn note(&mut self, document: DocHash, sent: R, sending: R) {
        self.sent.push((document, sent));
        self.sending.push((document, sending));
    }

    /// The parts that hear something.
    pub fn parts(&self) -> impl Iterator<Item = Part> {
        self.by_part.keys().copied()
    }

    /// What a part hears.
    pub fn to(&self, part: Part) -> &[M] {
        self.by_part.get(&part).map_or(&[], Vec::as_slice)
    }

    /// What is written with the messages to the own part.
    pub fn sent(&self) -> &[(DocHash, R)] {
        &self.sent
    }
}

impl<M, R: Send + Sync + 'static> Outbox<M, R> {
    /// Writes down what is about to be sent to other parts, under the lease of the own.
    pub fn announce(
        &mut self,
        db: &Db,
        lease: &Lease,
        save: impl Fn(&mut Tx<'_>, &[(DocHash, R)]) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let sending = std::mem::take(&mut self.sending);
        if self.parts().all(|part| part == lease.part) {
            return Ok(());
        }
        let lease = lease.clone();
        db.write(move |tx| {
            leases::fence(tx, &lease)?;
            save(tx, &sending)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use store::ids::NodeId;
    use store::tables::leases::LeaseRequest;
    use store::tables::settings;
    use store::testing::both_databases;

    fn outbox(to: Part) -> Outbox<&'static str, u8> {
        let mut outbox = Outbox::default();
        outbox.send(to, ["hello"]);
        outbox.send(Part(9), []);
        outbox.note(DocHash::of("a"), 1, 3);
        outbox
    }

    #[test]
    fn what_goes_to_other_parts_is_written_down_before_and_what_stays_is_not() {
        both_databases(|db| {
            let lease = db.write(|tx| {
                settings::freeze(tx, 4)?;
                let (node, node_name) = (NodeId(1), "one".into());
                let asking =
                    LeaseRequest { node, node_name, now_ms: 0, lease_ms: 1_000, skew_ms: 0 };
                leases::take(tx, Part(1), "crawl", &asking)
            })?;
            let lease = lease.expect("nobody has it");
            for (to, expected) in [(Part(1), vec![]), (Part(2), vec![(DocHash::of("a"), 3)])] {
                let written = Arc::new(Mutex::new(Vec::new()));
                let mut outbox = outbox(to);
                let saved = written.clone();
                outbox.announce(db, &lease, move |_, rows| {
                    *saved.lock().unwrap() = rows.to_vec();
                    Ok(())
                })?;
                assert_eq!(*written.lock().unwrap(), expected);
                assert_eq!(outbox.parts().collect::<Vec<_>>(), [to], "the other has no message");
                assert_eq!((outbox.to(to), outbox.to(Part(9))), (&["hello"][..], &[][..]));
                assert_eq!(outbox.sent(), [(DocHash::of("a"), 1)]);
            }
            Ok(())
        });
    }
}
