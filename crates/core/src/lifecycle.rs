//! Every legal change of state, in one table per kind of thing. Nothing else may write a state.
//!
//! A change is asked for as an event. The answer is the next state or a [`Rejected`]: `Stale` (a
//! newer attempt exists: the caller is fenced), `Duplicate` (it has happened already: answer as
//! the first time) or `Illegal` (a bug: log it, apply nothing).

mod attempt;
mod job;
mod run;
mod ti;

pub use attempt::{AttemptEvent, attempt_next};
pub use job::{JobEvent, job_next};
pub use run::{RunEvent, run_next};
pub use ti::{TiEvent, TiRecord, step, ti_next};

use core::fmt::Write as _;

/// Why an event changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// The event carries a token that is not the current one.
    #[error("superseded: a newer attempt exists")]
    Stale,
    /// The thing is already where the event leads.
    #[error("already done")]
    Duplicate,
    /// No row of the table allows it.
    #[error("this change of state is not legal")]
    Illegal,
}

/// A row of a table: the event, the states that it may come from, and where it leads.
pub(crate) type Row<S, E> = (E, &'static [S], S);

/// Looks an event up: the next state, `Duplicate` if it is there already, else `Illegal`.
pub(crate) fn look_up<S: Copy + PartialEq, E: Copy + PartialEq>(
    table: &[Row<S, E>],
    state: S,
    event: E,
) -> Result<S, Rejected> {
    let rows = || table.iter().filter(|(of, _, _)| *of == event);
    match rows().find(|(_, from, _)| from.contains(&state)) {
        Some((_, _, to)) => Ok(*to),
        None if rows().any(|(_, _, to)| *to == state) => Err(Rejected::Duplicate),
        None => Err(Rejected::Illegal),
    }
}

/// The tables as text, for `docs/generated/state-machines.md`.
pub fn describe() -> String {
    let mut text = String::from(
        "# State machines\n\nGenerated from `crates/core/src/lifecycle`; do not edit.\n",
    );
    describe_table(&mut text, "Task instance", ti::TABLE);
    describe_table(&mut text, "Attempt", attempt::TABLE);
    describe_table(&mut text, "Run", run::TABLE);
    describe_table(&mut text, "Job", job::TABLE);
    text
}

fn describe_table<S: core::fmt::Debug, E: core::fmt::Debug>(
    text: &mut String,
    title: &str,
    table: &[Row<S, E>],
) {
    // Writing to a String cannot fail.
    let _ = write!(text, "\n## {title}\n\n| event | from | to |\n|---|---|---|\n");
    for (event, from, to) in table {
        let from: Vec<String> = from.iter().map(|s| format!("{s:?}")).collect();
        let _ = writeln!(text, "| {event:?} | {} | {to:?} |", from.join(", "));
    }
}
