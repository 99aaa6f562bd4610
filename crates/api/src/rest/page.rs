//! Lists: pages with an opaque cursor.

use serde::{Deserialize, Serialize};

/// One page of a list. `next_cursor` is null on the last one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub next_cursor: Option<String>,
    /// How many there are in all, where that is cheap to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
}

impl<T> Page<T> {
    /// The only page of a list.
    pub fn whole(items: Vec<T>) -> Self {
        Self { items, next_cursor: None, total: None }
    }
}

/// What every list accepts. Lists with filters have a query of their own that repeats these
/// fields (a flattened struct in a query string would read numbers as text).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ListQuery {
    /// Most items of a page; default 50, at most 1,000.
    pub limit: Option<u32>,
    pub cursor: Option<String>,
}

/// `?dry_run=true` on clear, mark and pause: the answer says what would be done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DryRun {
    pub dry_run: bool,
}
