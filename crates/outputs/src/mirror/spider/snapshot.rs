//! Snapshots: x-files that add all that there is, for whoever begins later.
//!
//! X-files go when no generation needs them; a snapshot stands for those up to its number.
//! Invariant: a snapshot and the x-files behind it give what all x-files give.

use super::MEMBERS;
use super::columns::Columns;
use super::fold::{States, nodes, write};
use super::member::members;
use super::publish::cursor;
use crate::mirror::versions::{BUCKETS, Versions};
use crate::mirror::{Mirror, x_files};
use page::mirror::xfile::{Header, Publication};
use store::Result;

/// Writes a snapshot as of the newest x-file. The caller sees to it that nothing is published
/// meanwhile.
pub(in crate::mirror) fn snapshot(mirror: &Mirror) -> Result<()> {
    let number = cursor(mirror)?.number;
    let new = Versions::open(&mirror.disk, MEMBERS, number)?;
    let mut after = Columns::default();
    for bucket in 0..BUCKETS {
        members(&new, bucket)?.iter().for_each(|member| after.observe(member));
    }
    after.finish();
    if after.root().is_none() {
        // A mirror without pages: its few x-files are as good.
        return Ok(());
    }
    let states = States { old: None, new: &new };
    let nodes = nodes(mirror, &Columns::default(), &mut after, &states)?;
    let header = x_files::open(&mirror.disk, number)?.reader.header().clone();
    let publication = header.publication.map(|publication| Publication {
        previous: None,
        base: number,
        ..publication
    });
    let written = write(mirror, number, &Header { publication, ..header }, nodes)?;
    x_files::publish_snapshot(&mirror.disk, number, written)
}
