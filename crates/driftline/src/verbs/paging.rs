//! Limits that all lists have in common, whichever face shows them.

use outputs::links::paging::Paging;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Entries of one answer at most: with the longest URLs it fits through a socket.
pub const LIST_LIMIT_MAX: u32 = 1_000;

/// Times are milliseconds since 1970, up to the year 9999.
pub const TIME_MS_MAX: i64 = 253_402_300_799_999;

/// Entries of a list of the link index where no limit is given.
pub const LINK_LIST_LIMIT: u32 = 25;

/// Entries of most lists where no limit is given.
pub fn usual_limit() -> u32 {
    100
}

/// Which page of a list of the link index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LinkListPage {
    /// Number of entries to list
    #[schemars(range(min = 1, max = LIST_LIMIT_MAX))]
    pub limit: u32,
    /// Cursor of the next or previous page, from an earlier answer
    pub cursor: Option<String>,
}

impl Default for LinkListPage {
    fn default() -> LinkListPage {
        LinkListPage { limit: LINK_LIST_LIMIT, cursor: None }
    }
}

impl LinkListPage {
    pub fn paging(&self) -> store::Result<Paging> {
        Paging::new(self.limit.min(LIST_LIMIT_MAX) as usize, self.cursor.as_deref())
    }
}
