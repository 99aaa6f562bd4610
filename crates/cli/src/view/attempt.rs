//! Attempts: a row for every dispatch, and the page of one with its evidence.

use super::{task_label, token};
use crate::output::paint::Paint;
use crate::output::span::{between, clock, date_time};
use crate::output::table::Cell;
use crate::output::{Column, Detail, Row};
use Column::{Always, Wide};
use fencepost_api::rest::{Attempt, Evidence};
use fencepost_core::time::Timestamp;

/// `replaces 1`, `first`.
fn why(attempt: &Attempt) -> String {
    match attempt.replaces {
        Some(number) => format!("{} {number}", attempt.why),
        None => attempt.why.clone(),
    }
}

fn worker(attempt: &Attempt) -> Cell {
    match (&attempt.worker, &attempt.host) {
        (Some(worker), Some(host)) => format!("{worker}@{host}").into(),
        (worker, _) => Cell::or_dash(worker.as_ref()),
    }
}

/// The outcome, with the reason where it adds something; the state while it has none.
fn outcome(attempt: &Attempt) -> Cell {
    let word = attempt.outcome.as_deref().unwrap_or(&attempt.state);
    match &attempt.reason {
        Some(reason) if reason != "exit" => Cell::state_with(word, &format!("{word}: {reason}")),
        _ => Cell::state(word),
    }
}

/// `0`, `SIG 9`, `?` when nobody knows.
fn exit(attempt: &Attempt) -> Cell {
    match (attempt.exit_code, attempt.signal, attempt.outcome.as_deref()) {
        (Some(code), ..) => code.to_string().into(),
        (None, Some(signal), _) => format!("signal {signal}").into(),
        (None, None, Some("lost")) => Cell::painted("?", Paint::Alert),
        (None, None, _) => Cell::or_dash(None::<String>),
    }
}

fn counted(attempt: &Attempt) -> Cell {
    Cell::or_dash(attempt.counted_as.as_ref().filter(|word| *word != "none"))
}

impl Row for Attempt {
    const COLUMNS: &'static [Column] = &[
        Always("TRY"),
        Always("ATTEMPT"),
        Always("TOKEN"),
        Always("WHY"),
        Always("WORKER"),
        Always("STARTED"),
        Always("ENDED"),
        Always("OUTCOME"),
        Always("EXIT"),
        Always("COUNTED"),
        Wide("CONTAINMENT"),
        Wide("REFUSED"),
        Wide("EVIDENCE"),
        Wide("ATTEMPT ID"),
    ];
    fn cells(&self, now: Timestamp) -> Vec<Cell> {
        vec![
            self.try_number.to_string().into(),
            self.attempt_number.to_string().into(),
            token(Some(&self.token)),
            why(self).into(),
            worker(self),
            clock(self.started_at.as_deref(), now).into(),
            clock(self.ended_at.as_deref(), now).into(),
            outcome(self),
            exit(self),
            counted(self),
            Cell::or_dash(self.containment.as_ref()),
            Cell::or_dash(Some(self.refused_writes).filter(|count| *count > 0)),
            Cell::or_dash(self.evidence.as_ref().map(|evidence| &evidence.kind)),
            self.attempt_id.as_str().into(),
        ]
    }
    fn name(&self) -> String {
        self.attempt_id.clone()
    }
}

/// An attempt among those of all instances of a mapped task.
#[derive(Debug, serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct OfMapped(Attempt);

impl Row for OfMapped {
    const COLUMNS: &'static [Column] = &[
        Always("TASK"),
        Always("TRY"),
        Always("ATTEMPT"),
        Always("TOKEN"),
        Always("WHY"),
        Always("WORKER"),
        Always("STARTED"),
        Always("ENDED"),
        Always("OUTCOME"),
        Always("EXIT"),
        Always("COUNTED"),
        Wide("CONTAINMENT"),
        Wide("REFUSED"),
        Wide("EVIDENCE"),
        Wide("ATTEMPT ID"),
    ];
    fn cells(&self, now: Timestamp) -> Vec<Cell> {
        let label = task_label(&self.0.task_id, self.0.map_index, None);
        let mut cells = vec![Cell::painted(label, Paint::Strong)];
        cells.extend(self.0.cells(now));
        cells
    }
    fn name(&self) -> String {
        Row::name(&self.0)
    }
}

/// An attempt among those of all DAGs (`fencepost ps`).
#[derive(Debug, serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct Active(Attempt);

impl Row for Active {
    const COLUMNS: &'static [Column] = &[
        Always("DAG"),
        Always("RUN"),
        Always("TASK"),
        Always("STATE"),
        Always("TRY"),
        Always("TOKEN"),
        Always("WORKER"),
        Always("RUNNING"),
        Wide("CONTAINMENT"),
        Wide("ATTEMPT ID"),
    ];
    fn cells(&self, now: Timestamp) -> Vec<Cell> {
        let attempt = &self.0;
        vec![
            attempt.dag_id.as_str().into(),
            attempt.run_id.as_str().into(),
            Cell::painted(task_label(&attempt.task_id, attempt.map_index, None), Paint::Strong),
            Cell::state(&attempt.state),
            attempt.try_number.to_string().into(),
            token(Some(&attempt.token)),
            worker(attempt),
            between(attempt.started_at.as_deref(), attempt.ended_at.as_deref(), now).into(),
            Cell::or_dash(attempt.containment.as_ref()),
            attempt.attempt_id.as_str().into(),
        ]
    }
    fn name(&self) -> String {
        self.0.attempt_id.clone()
    }
}

impl Detail for Attempt {
    fn lines(&self, now: Timestamp) -> Vec<(&'static str, Cell)> {
        let (started, ended) = (self.started_at.as_deref(), self.ended_at.as_deref());
        let mut lines = vec![
            ("Attempt", self.attempt_id.as_str().into()),
            ("Token", token(Some(&self.token))),
            ("DAG", self.dag_id.as_str().into()),
            ("Run", self.run_id.as_str().into()),
            ("Task", Cell::painted(task_label(&self.task_id, self.map_index, None), Paint::Strong)),
            ("Number", format!("{} (try {})", self.attempt_number, self.try_number).into()),
            ("Why", why(self).into()),
            ("State", Cell::state(&self.state)),
            ("Outcome", outcome(self)),
            ("Exit", exit(self)),
            ("Message", Cell::or_dash(self.message.as_ref())),
            ("Counted as", counted(self)),
            ("Worker", worker(self)),
            ("Containment", Cell::or_dash(self.containment.as_ref())),
            ("Queued", date_time(Some(&self.queued_at)).into()),
            ("Claimed", date_time(self.claimed_at.as_deref()).into()),
            ("Started", date_time(started).into()),
            ("Ended", date_time(ended).into()),
            ("Duration", between(started, ended, now).into()),
            ("Lease until", date_time(self.lease_expires_at.as_deref()).into()),
        ];
        if self.refused_writes > 0 {
            let text = format!("{} late writes: fencepost attempts events", self.refused_writes);
            lines.push(("Refused", Cell::painted(text, Paint::Alert)));
        }
        if self.may_still_run {
            lines.push((
                "Warning",
                Cell::painted("its processes may still be running", Paint::Alert),
            ));
        }
        lines.extend(self.evidence.iter().flat_map(evidence_lines));
        lines
    }
    fn name(&self) -> String {
        self.attempt_id.clone()
    }
}

fn evidence_lines(evidence: &Evidence) -> Vec<(&'static str, Cell)> {
    let term = evidence.term.map(|term| format!(", term {term}")).unwrap_or_default();
    let by = evidence.declared_by.as_ref().map(|by| format!(" by {by}{term}")).unwrap_or_default();
    let mut lines = vec![(
        "Evidence",
        Cell::from(format!("{} at {}{by}", evidence.kind, date_time(Some(&evidence.at)))),
    )];
    for (name, value) in [
        ("  job", evidence.job.clone()),
        ("  last beat", evidence.last_heartbeat_at.as_deref().map(|at| date_time(Some(at)))),
        ("  lease end", evidence.lease_expires_at.as_deref().map(|at| date_time(Some(at)))),
        ("  detail", evidence.detail.clone()),
    ] {
        lines.extend(value.map(|value| (name, Cell::from(value))));
    }
    lines
}
