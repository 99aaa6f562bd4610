//! What waits for a person or for evidence: where it is, what is known, and what decides it.

use super::task_label;
use crate::output::paint::Paint;
use crate::output::span::age;
use crate::output::table::Cell;
use crate::output::{Column, Row};
use Column::{Always, Wide};
use fencepost_api::rest::HeldTask;
use fencepost_core::time::Timestamp;

/// What is known of the end of its last attempt.
fn evidence(task: &HeldTask) -> String {
    let reason = task.reason.as_deref().unwrap_or("held");
    let worker = task.worker.as_deref().unwrap_or("its worker");
    match &task.evidence {
        None => reason.into(),
        Some(known) if known.kind == "expiry" => {
            format!("{reason}: lease expired; worker {worker} silent")
        }
        Some(known) => format!("{reason}: {}", known.kind),
    }
}

/// The command that decides it, whole.
fn action(task: &HeldTask) -> String {
    let name = task_label(&task.task_id, task.map_index, None);
    let name = if task.map_index < 0 { name } else { format!("'{name}'") };
    match (&*task.reason.clone().unwrap_or_default(), &task.token) {
        ("awaiting_evidence", Some(token)) => format!("fencepost attempts confirm-dead {token}"),
        _ => format!(
            "fencepost held resolve {} {} {name} --as success|failed|rerun --reason TEXT",
            task.dag_id, task.run_id
        ),
    }
}

impl Row for HeldTask {
    const COLUMNS: &'static [Column] = &[
        Always("DAG"),
        Always("RUN"),
        Always("TASK"),
        Always("SINCE"),
        Always("EVIDENCE"),
        Wide("TOKEN"),
        Wide("ATTEMPTS"),
        Always("ACTION"),
    ];
    fn cells(&self, now: Timestamp) -> Vec<Cell> {
        let name = task_label(&self.task_id, self.map_index, self.map_label.as_deref());
        vec![
            self.dag_id.as_str().into(),
            self.run_id.as_str().into(),
            Cell::painted(name, Paint::Strong),
            age(self.since.as_deref(), now).into(),
            evidence(self).into(),
            super::token(self.token.as_deref()),
            self.attempt_count.to_string().into(),
            action(self).into(),
        ]
    }
    fn name(&self) -> String {
        format!(
            "{}/{}/{}",
            self.dag_id,
            self.run_id,
            super::task_path(&self.task_id, self.map_index)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_api::rest::Evidence;

    #[test]
    fn a_row_says_where_it_is_what_is_known_and_what_decides_it() {
        let mut held = HeldTask {
            dag_id: "sales".into(),
            run_id: "r".into(),
            task_id: "charge".into(),
            map_index: 2,
            map_label: None,
            state: "held".into(),
            reason: Some("awaiting_person".into()),
            since: Some("2026-09-22T05:10:04.000Z".into()),
            try_number: 1,
            attempt_count: 1,
            token: Some("549755813890".into()),
            attempt_id: None,
            worker: Some("w-3".into()),
            evidence: Some(Evidence { kind: "expiry".into(), ..Evidence::default() }),
        };
        assert_eq!(evidence(&held), "awaiting_person: lease expired; worker w-3 silent");
        let text =
            "fencepost held resolve sales r 'charge[2]' --as success|failed|rerun --reason TEXT";
        assert_eq!(action(&held), text);
        assert_eq!(Row::name(&held), "sales/r/charge;2");
        (held.reason, held.evidence) = (Some("awaiting_evidence".into()), None);
        assert_eq!(evidence(&held), "awaiting_evidence");
        assert_eq!(action(&held), "fencepost attempts confirm-dead 549755813890");
    }
}
