//! The whole index made anew from what is committed.
//!
//! Invariant: what is published answers until the new index has everything; each shard is
//! replaced at once, and whoever follows goes on from there ([`super::follow`]).

use super::follow::SearchIndexConsumer;
use super::shard::PublishContext;
use crate::follow::{Consumer, PartWork};
use store::Result;
use store::ids::{CommitNumber, Part};
use store::tables::leases::{self, Lease};
use store::tables::shards;

/// Makes the index anew, under the leases of all parts. Returns how many documents it has.
pub fn rebuild(context: &PublishContext, leases: &[Lease]) -> Result<i64> {
    rebuild_with(SearchIndexConsumer::anew(context.clone())?, context, leases)
}

/// The same, by an index that makes its shards anew.
pub(super) fn rebuild_with(
    mut search: SearchIndexConsumer,
    context: &PublishContext,
    leases: &[Lease],
) -> Result<i64> {
    let db = &context.claimant.db;
    let mut homes: Vec<Part> = leases.iter().map(|it| context.shard_of(it.part)).collect();
    homes.dedup();
    let mut documents = 0;
    for home in homes {
        let mut work = Vec::new();
        for lease in leases.iter().filter(|it| context.shard_of(it.part) == home) {
            let part = lease.part;
            let head = db.read(move |tx| leases::last_commit(tx, part, "crawl"))?;
            if head > CommitNumber::NONE {
                work.push(PartWork { lease: lease.clone(), at: CommitNumber::NONE, head });
            }
        }
        if !work.is_empty() {
            search.apply(&work)?;
        }
        documents += db.read(move |tx| shards::current(tx, home))?.map_or(0, |it| it.documents);
    }
    Ok(documents)
}
