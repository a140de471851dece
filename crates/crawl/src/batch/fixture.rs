//! Documents for the tests of those who settle them.

use page::ids::DocHash;
use store::chunkfile::document::DocumentRole;
use store::ids::{BinId, QueueId, Run};
use store::tables::queue::{Action, Entry, State};

/// A document that was claimed and never looked at.
pub fn entry(id: i64) -> Entry {
    let docid = format!("http://a.example/{id}");
    Entry {
        id: QueueId(id),
        bin: BinId(1),
        dochash: DocHash::of(&docid),
        docid,
        action: Action::Fetch,
        hops: 1,
        redirects: 0,
        state: State::Active,
        seen_run: Run(1),
        seed_run: None,
        done_run: None,
        generation: 1,
        failcount: None,
        failtime: None,
        list_depth: 0,
        parent_part: None,
        role: DocumentRole::Page,
        unlinked: false,
        needed_run: None,
        levels: 0,
    }
}
