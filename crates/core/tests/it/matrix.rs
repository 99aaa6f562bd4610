//! Tables of expectations that a person can read: a row per event, a cell per state.
//!
//! A cell is the mark of the state that the event leads to, `=` where it is a duplicate, and `.`
//! where it is illegal.

use fencepost_core::lifecycle::Rejected;
use std::collections::BTreeSet;
use std::fmt::Debug;

/// A column: the mark of a state in the cells, and the state.
pub(crate) type Column<S> = (char, S);

/// Compares a table with what `next` answers, for every state and every event.
pub(crate) fn check<S, E>(
    columns: &[Column<S>],
    events: &[E],
    table: &str,
    next: impl Fn(S, E) -> Result<S, Rejected>,
) where
    S: Copy + PartialEq + Debug,
    E: Copy + Debug,
{
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default().to_owned();
        let cells: Vec<&str> = words.collect();
        assert_eq!(cells.len(), columns.len(), "{name}: a cell for every state");
        let event = events.iter().find(|event| format!("{event:?}") == name);
        let event = *event.unwrap_or_else(|| panic!("there is no event {name}"));
        for ((mark, state), cell) in columns.iter().zip(cells) {
            let answer = shown(columns, next(*state, event));
            assert_eq!(answer, cell, "{name} in {state:?} (column {mark})");
        }
        assert!(seen.insert(name.clone()), "{name} stands twice in the table");
    }
    assert_eq!(seen.len(), events.len(), "an event without a row: {seen:?}");
}

fn shown<S: PartialEq>(columns: &[Column<S>], answer: Result<S, Rejected>) -> String {
    match answer {
        Ok(to) => columns.iter().find(|(_, state)| *state == to).map_or('?', |(mark, _)| *mark),
        Err(Rejected::Duplicate) => '=',
        Err(Rejected::Illegal) => '.',
        Err(Rejected::Stale) => '!',
    }
    .to_string()
}
