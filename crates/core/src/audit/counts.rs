//! Counters against the rows that they count (I7): each end is counted once, by the heads of its
//! downstream tasks and by its run.

use super::{AuditRun, AuditTask, AuditTi, Index, Snapshot, Violation, violation};
use crate::plan::forward;
use crate::state::RunState;
use crate::trigger_rule::UpstreamCounts;
use std::collections::BTreeMap;

pub(super) fn check(index: &Index<'_>, snapshot: &Snapshot, found: &mut Vec<Violation>) {
    let mut waited_for: BTreeMap<i64, i64> = BTreeMap::new();
    for ti in &snapshot.tis {
        *waited_for.entry(ti.run).or_default() += i64::from(!is_counted(ti));
    }
    for run in &snapshot.runs {
        let left = waited_for.get(&run.run).copied().unwrap_or(0);
        unfinished(run, left, found);
    }
    for task in &snapshot.tasks {
        upstreams(index, task, found);
    }
}

fn is_counted(ti: &AuditTi) -> bool {
    ti.state.is_finished() && !ti.forward_due
}

/// Too high, and the run never ends; too low, and it ends early.
fn unfinished(run: &AuditRun, left: i64, found: &mut Vec<Violation>) {
    if run.state == RunState::Running && run.unfinished != left {
        let what = format!("counts {} unfinished instances, {left} are left", run.unfinished);
        found.push(violation("I7", &run.name, what));
    }
    if run.state == RunState::Running && left == 0 {
        found.push(violation("I24", &run.name, "has nothing left and is not over".into()));
    }
}

fn upstreams(index: &Index<'_>, task: &AuditTask, found: &mut Vec<Violation>) {
    let Some(head) = index.instances(task.run, task.task).first() else { return };
    let mut counts = UpstreamCounts::default();
    for up in &task.upstreams {
        for ti in index.instances(task.run, *up) {
            counts.total += 1;
            if is_counted(ti) {
                forward::count(&mut counts, ti.state);
            }
        }
    }
    if head.upstream != counts {
        let shown = |c: &UpstreamCounts| {
            format!(
                "{}/{} ({} success, {} failed, {} skipped, {} upstream_failed, {} removed)",
                c.done(),
                c.total,
                c.success,
                c.failed,
                c.skipped,
                c.upstream_failed,
                c.removed
            )
        };
        let what =
            format!("counts {} upstreams as done, {} are", shown(&head.upstream), shown(&counts));
        found.push(violation("I7", &head.name, what));
    }
}
