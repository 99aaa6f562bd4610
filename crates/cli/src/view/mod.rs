//! How each resource looks: which columns of a list, which lines of its page.

mod asset;
pub(crate) mod attempt;
mod backfill;
mod callback;
mod dag;
mod event;
mod held;
mod incident;
mod kept;
pub(crate) mod run;
mod system;
mod task;
mod worker;

use crate::output::paint::Paint;
use crate::output::table::Cell;
use fencepost_core::id::Token;

/// A fencing token as people read it: `7-48211`.
pub(crate) fn token(decimal: Option<&str>) -> Cell {
    Cell::or_dash(decimal.map(readable))
}

/// The same in the middle of a sentence.
fn readable(decimal: &str) -> String {
    decimal.parse::<Token>().map_or_else(|_| decimal.to_owned(), |token| token.to_string())
}

/// `load`, or `load[emea]`, `load[3]` when mapped.
pub(crate) fn task_label(task_id: &str, map_index: i32, label: Option<&str>) -> String {
    match (map_index, label) {
        (..0, _) => task_id.into(),
        (_, Some(label)) if !label.is_empty() => format!("{task_id}[{label}]"),
        (index, _) => format!("{task_id}[{index}]"),
    }
}

/// A task instance in an address.
pub(crate) fn task_path(task_id: &str, map_index: i32) -> String {
    if map_index < 0 { task_id.into() } else { format!("{task_id};{map_index}") }
}

/// Something that is only worth a look when it is true.
fn flag(on: bool, word: &'static str) -> Cell {
    if on { Cell::painted(word, Paint::Alert) } else { Cell::or_dash(None::<String>) }
}
