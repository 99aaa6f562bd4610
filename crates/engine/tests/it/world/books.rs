//! The books: what the store keeps beside the truth must follow from the truth.
//!
//! `doctor` looks for broken promises; this looks for sums that do not add up (the counts of
//! upstream ends, of what is left of a run, of holds) and for instances that nothing moves on.

use super::World;
use super::views::shown;
use fencepost_core::plan::forward::{self, Gates, Move};
use fencepost_core::state::{RunState, TiState};
use fencepost_core::time::Timestamp;
use fencepost_core::trigger_rule::UpstreamCounts;
use fencepost_engine::catalog::Version;
use fencepost_engine::doctor;
use fencepost_store::query::dag;
use fencepost_store::query::run::{self, Run};
use fencepost_store::query::task_instance::{self, Ti};
use std::collections::BTreeMap;
use std::sync::Arc;

const ALL: u32 = 100_000;

impl World {
    /// The audit and the sums.
    pub(crate) async fn check(&self) {
        let findings = {
            let _unseen = self.faults.unseen();
            doctor::examine(&self.cx).await.unwrap()
        };
        assert_eq!(findings.violations, vec![], "the audit has found something");
        self.backfills_within_limits().await;
        let _unseen = self.faults.unseen();
        let tx = self.cx.store.read("test").await.unwrap();
        for row in dag::list(&tx, "", ALL).await.unwrap() {
            let last = (Timestamp::from_micros(i64::MAX), i64::MAX);
            let runs = run::list(&tx, &row.dag_id, last, ALL).await.unwrap();
            let running = runs.iter().filter(|run| run.state == RunState::Running);
            let active = running.filter(|run| run.backfill_pk.is_none()).count();
            // A limit that was lowered drains.
            let is_over = i64::try_from(active).unwrap() > row.max_active_runs;
            let lowered = self.lowered.contains(&row.dag_id);
            assert!(!is_over || lowered, "{active} active runs of {}", row.dag_id);
            for run in runs {
                let Ok(version) = self.cx.catalog.version(&tx, run.version_pk).await else {
                    continue;
                };
                let tis = task_instance::list(&tx, run.run_pk, (-1, -1), ALL).await.unwrap();
                sums(&run, &version, &tis);
            }
        }
    }

    /// No backfill has more runs under way than it may.
    pub(crate) async fn backfills_within_limits(&self) {
        for of in self.backfills().await {
            let key = of.backfill_pk;
            assert!(of.running <= of.max_active_runs, "{} runs of backfill {key}", of.running);
        }
    }

    async fn version(&self, run: &Run) -> Option<Arc<Version>> {
        let _unseen = self.faults.unseen();
        let tx = self.cx.store.read("test").await.unwrap();
        self.cx.catalog.version(&tx, run.version_pk).await.ok()
    }

    /// Once nothing moves: every instance of a running run waits for something that comes.
    pub(crate) async fn no_ghost(&self) {
        for run in self.all_runs().await {
            let Some(version) = self.version(&run).await else { continue };
            if run.state != RunState::Running {
                continue;
            }
            let tis = self.tis_of(&run).await;
            let counts = counted(&version, &tis);
            for ti in tis.iter().filter(|ti| ti.state == TiState::None) {
                let task = fencepost_core::dag::TaskIndex(ti.key.task_index);
                let up = counts[&ti.key.task_index];
                let past = version.dag.tasks[task.at()].depends_on_past;
                let gates = Gates { past_ok: past.then_some(false), ..Gates::default() };
                let next = forward::decide(&version.dag, task, &up, gates);
                let waits = matches!(next, Move::Wait | Move::WaitForPast);
                assert!(waits, "nothing moves {} of {} on: {next:?}", shown(ti), run.run_id);
            }
        }
    }
}

/// The ends of upstream instances that are counted, by task.
fn counted(version: &Version, tis: &[Ti]) -> BTreeMap<u32, UpstreamCounts> {
    let mut out: BTreeMap<u32, UpstreamCounts> = BTreeMap::new();
    for (index, task) in (0_u32..).zip(&version.dag.tasks) {
        let is_upstream = |ti: &&Ti| task.depends_on.iter().any(|up| up.0 == ti.key.task_index);
        let own = out.entry(index).or_default();
        own.total = u32::try_from(tis.iter().filter(is_upstream).count()).unwrap();
        for ti in tis.iter().filter(|ti| ti.state.is_finished() && !ti.forward_due) {
            if task.depends_on.iter().any(|up| up.0 == ti.key.task_index) {
                forward::count(own, ti.state);
            }
        }
    }
    out
}

fn sums(run: &Run, version: &Version, tis: &[Ti]) {
    if tis.is_empty() {
        return;
    }
    let counts = counted(version, tis);
    let mut heads: BTreeMap<u32, &Ti> = BTreeMap::new();
    for ti in tis {
        heads.entry(ti.key.task_index).or_insert(ti);
        assert!(ti.state.is_finished() || !ti.forward_due, "{} is due and not over", shown(ti));
        let timed = ti.state == TiState::UpForRetry;
        assert_eq!(ti.retry_at.is_some(), timed, "the timer of {} ({})", shown(ti), ti.state);
    }
    for (task, head) in heads {
        assert_eq!(head.upstream, counts[&task], "the counts of {} in {}", shown(head), run.run_id);
    }
    if run.state == RunState::Running {
        let left = tis.iter().filter(|ti| !ti.state.is_finished() || ti.forward_due).count();
        assert_eq!(run.unfinished, i64::try_from(left).unwrap(), "what is left of {}", run.run_id);
    }
}
