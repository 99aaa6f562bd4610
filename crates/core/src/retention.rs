//! What may be forgotten, and when: which ended runs, jobs and logs are old enough, and which stay although
//! they are, since something still rests on them.
//!
//! Invariants: nothing goes that is not over, or of which processes may still run; the run that the next one
//! looks back at (`depends_on_past`) stays, and so does the newest of each DAG. That a slot never comes
//! twice does not rest on runs at all: the schedule's place is a column of the DAG, which is kept.
//! Deliberately absent: the order of the deletions and their transactions, which are the engine's.

use crate::state::RunState;
use crate::time::{Span, Timestamp};
use core::fmt;

/// How long things are kept after their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Ended runs with everything of theirs, where the DAG says nothing else.
    pub runs: Span,
    /// Logs of ended attempts.
    pub logs: Span,
    /// Rows of ended processes.
    pub jobs: Span,
    /// Events that are of no run, incidents, backfills, and credentials that let nobody in.
    pub events: Span,
}

impl Default for Keep {
    fn default() -> Self {
        let days = |n: i64| Span::from_hours(24 * n);
        Self { runs: days(90), logs: days(30), jobs: days(7), events: days(90) }
    }
}

/// Answers to requests with an idempotency key are kept this long.
pub const ANSWERS: Span = Span::from_hours(24);

/// Until when things must have ended to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub now: Timestamp,
    /// Of runs whose DAG says nothing.
    pub runs: Timestamp,
    /// Nothing that ended later goes, whatever a DAG says.
    pub latest: Timestamp,
    pub logs: Timestamp,
    pub jobs: Timestamp,
    pub events: Timestamp,
}

impl Bounds {
    /// As the settings say.
    pub fn of(keep: &Keep, now: Timestamp) -> Self {
        let before = |span: Span| now.minus(span);
        Self {
            now,
            runs: before(keep.runs),
            latest: now,
            logs: before(keep.logs),
            jobs: before(keep.jobs),
            events: before(keep.events),
        }
    }

    /// Everything that ended before an instant. A DAG that keeps its runs longer keeps them all the same.
    pub const fn before(at: Timestamp, now: Timestamp) -> Self {
        Self { now, runs: at, latest: at, logs: at, jobs: at, events: at }
    }

    /// Until when a run of a DAG must have ended; `own`: what the DAG says.
    pub fn of_dag(&self, own: Option<Span>) -> Timestamp {
        own.map_or(self.runs, |own| self.now.minus(own).min(self.latest))
    }
}

/// Why something that is old enough stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kept {
    /// A run that is not over.
    NotOver,
    /// Processes of it may still run.
    MayStillRun,
    /// The newest run of its DAG.
    Newest,
    /// The run before one that is not over, or that does not exist yet.
    Previous,
    /// A job that an attempt, an incident or a predecessor points to.
    Referred,
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotOver => "not over",
            Self::MayStillRun => "processes may still run (attempts confirm-dead)",
            Self::Newest => "the newest run of its DAG",
            Self::Previous => "the run that the next one looks back at",
            Self::Referred => "an attempt, an incident or a predecessor points to it",
        })
    }
}

/// What decides about a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunFacts {
    pub state: RunState,
    /// No run of its DAG is due later.
    pub is_newest: bool,
    /// It has a logical date, so that a later one may look back at it.
    pub is_dated: bool,
    /// The state of the next run by logical date, if there is one.
    pub next: Option<RunState>,
    /// An attempt of it may still run, or holds slots.
    pub may_still_run: bool,
}

/// Whether a run that is old enough may go.
pub fn run(facts: &RunFacts) -> Result<(), Kept> {
    let is_needed = match facts.next {
        None => facts.is_dated && facts.state != RunState::Missed,
        Some(next) => facts.is_dated && !next.is_finished(),
    };
    match facts {
        _ if !facts.state.is_finished() => Err(Kept::NotOver),
        _ if facts.may_still_run => Err(Kept::MayStillRun),
        _ if facts.is_newest => Err(Kept::Newest),
        _ if is_needed => Err(Kept::Previous),
        _ => Ok(()),
    }
}

/// What decides about a job that ended long ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobFacts {
    pub has_attempts: bool,
    pub has_incident: bool,
    pub has_predecessor: bool,
}

/// Whether a job that is old enough may go.
pub const fn job(facts: &JobFacts) -> Result<(), Kept> {
    if facts.has_attempts || facts.has_incident || facts.has_predecessor {
        return Err(Kept::Referred);
    }
    Ok(())
}

/// How many rows go at a time: as many as are removed in the time that a batch may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    rows: u32,
}

/// A batch takes at most so long, or the next one is smaller.
const LONGEST: Span = Span::from_millis(50);
/// Most rows of a batch.
const MOST: u32 = 500;
const FEWEST: u32 = 10;

impl Default for Pace {
    fn default() -> Self {
        Self { rows: 100 }
    }
}

impl Pace {
    /// Rows of the next batch.
    pub const fn rows(self) -> u32 {
        self.rows
    }

    /// The pace after a batch that took so long.
    pub fn after(self, took: Span) -> Self {
        let rows = if took > LONGEST { self.rows / 2 } else { self.rows.saturating_mul(2) };
        Self { rows: rows.clamp(FEWEST, MOST) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OVER: RunFacts = RunFacts {
        state: RunState::Success,
        is_newest: false,
        is_dated: true,
        next: Some(RunState::Failed),
        may_still_run: false,
    };

    #[test]
    fn an_old_run_goes_unless_something_rests_on_it() {
        assert_eq!(run(&OVER), Ok(()));
        for state in [RunState::Queued, RunState::Running] {
            assert_eq!(run(&RunFacts { state, ..OVER }), Err(Kept::NotOver));
            assert_eq!(run(&RunFacts { next: Some(state), ..OVER }), Err(Kept::Previous));
        }
        assert_eq!(run(&RunFacts { may_still_run: true, ..OVER }), Err(Kept::MayStillRun));
        assert_eq!(run(&RunFacts { is_newest: true, ..OVER }), Err(Kept::Newest));
        assert_eq!(run(&RunFacts { next: None, ..OVER }), Err(Kept::Previous));
        let undated = RunFacts { next: None, is_dated: false, ..OVER };
        assert_eq!(run(&undated), Ok(()), "nothing looks back at a run without a date");
        let missed = RunFacts { next: None, state: RunState::Missed, ..OVER };
        assert_eq!(run(&missed), Ok(()), "nor at one that was missed");
    }

    #[test]
    fn a_dag_that_keeps_its_runs_for_another_time_has_its_own_bound() {
        let days = |n: i64| Span::from_hours(24 * n);
        let now = Timestamp::from_micros(days(1_000).as_micros());
        let bounds = Bounds::of(&Keep::default(), now);
        assert_eq!(bounds.of_dag(None), now.minus(days(90)));
        assert_eq!(bounds.of_dag(Some(days(7))), now.minus(days(7)));
        assert_eq!(bounds.of_dag(Some(days(365))), now.minus(days(365)));
        // A person's instant: longer is kept, shorter does not reach beyond it.
        let bounds = Bounds::before(now.minus(days(30)), now);
        assert_eq!(bounds.of_dag(None), now.minus(days(30)));
        assert_eq!(bounds.of_dag(Some(days(7))), now.minus(days(30)));
        assert_eq!(bounds.of_dag(Some(days(365))), now.minus(days(365)));
    }

    #[test]
    fn a_job_stays_while_anything_points_to_it() {
        let none = JobFacts { has_attempts: false, has_incident: false, has_predecessor: false };
        assert_eq!(job(&none), Ok(()));
        for facts in [
            JobFacts { has_attempts: true, ..none },
            JobFacts { has_incident: true, ..none },
            JobFacts { has_predecessor: true, ..none },
        ] {
            assert_eq!(job(&facts), Err(Kept::Referred));
        }
    }

    #[test]
    fn the_pace_follows_the_time_that_a_batch_takes_within_bounds() {
        let slow = Span::from_millis(80);
        let mut pace = Pace::default();
        assert_eq!(pace.after(slow).rows(), 50);
        for _ in 0..20 {
            pace = pace.after(Span::from_millis(3));
        }
        assert_eq!(pace.rows(), 500);
        for _ in 0..20 {
            pace = pace.after(slow);
        }
        assert_eq!(pace.rows(), 10);
    }
}
