//! What tests look at: states, runs, attempts, events. No point is passed.

use super::World;
use fencepost_core::id::Token;
use fencepost_core::state::{RunState, TiState};
use fencepost_core::time::Timestamp;
use fencepost_store::Tx;
use fencepost_store::query::attempt::{self, Attempt};
use fencepost_store::query::backfill::{self, Backfill};
use fencepost_store::query::dag;
use fencepost_store::query::event::Logged;
use fencepost_store::query::listing::events::{self, EventFilter};
use fencepost_store::query::pool::{self, Pool};
use fencepost_store::query::run::{self, Run};
use fencepost_store::query::task_instance::{self, Ti};
use fencepost_store::query::trigger::{self, Trigger};
use fencepost_store::query::xcom;
use std::collections::BTreeMap;

const ALL: u32 = 100_000;

impl World {
    async fn look(&self) -> Tx {
        let _unseen = self.faults.unseen();
        self.cx.store.read("test").await.unwrap()
    }

    /// Runs of all DAGs, in the order in which they were made.
    pub(crate) async fn all_runs(&self) -> Vec<Run> {
        let tx = self.look().await;
        let _unseen = self.faults.unseen();
        let mut out = Vec::new();
        for row in dag::list(&tx, "", ALL).await.unwrap() {
            let last = (Timestamp::from_micros(i64::MAX), i64::MAX);
            out.extend(run::list(&tx, &row.dag_id, last, ALL).await.unwrap());
        }
        out.sort_by_key(|run| run.run_pk);
        out
    }

    pub(crate) async fn run(&self, dag_id: &str, run_id: &str) -> Run {
        let runs = self.all_runs().await;
        let found = runs.iter().find(|run| run.dag_id == dag_id && run.run_id == run_id);
        found.unwrap_or_else(|| panic!("no run {run_id}: {runs:?}")).clone()
    }

    /// All backfills, the oldest first.
    pub(crate) async fn backfills(&self) -> Vec<Backfill> {
        let tx = self.look().await;
        let _unseen = self.faults.unseen();
        let mut all = backfill::page(&tx, i64::MAX, ("", false), ALL).await.unwrap();
        all.reverse();
        all
    }

    /// All triggers.
    pub(crate) async fn triggers(&self) -> Vec<Trigger> {
        let tx = self.look().await;
        let _unseen = self.faults.unseen();
        trigger::list(&tx, 0, ALL).await.unwrap()
    }

    /// Runs that are queued or running.
    pub(crate) async fn unfinished_runs(&self) -> Vec<String> {
        let open = |run: &&Run| !run.state.is_finished();
        self.all_runs().await.iter().filter(open).map(|run| run.run_id.clone()).collect()
    }

    pub(crate) async fn tis_of(&self, run: &Run) -> Vec<Ti> {
        let tx = self.look().await;
        let _unseen = self.faults.unseen();
        task_instance::list(&tx, run.run_pk, (-1, -1), ALL).await.unwrap()
    }

    pub(crate) async fn ti(&self, dag_id: &str, run_id: &str, name: &str) -> Ti {
        let run = self.run(dag_id, run_id).await;
        let tis = self.tis_of(&run).await;
        tis.into_iter().find(|ti| shown(ti) == name).unwrap_or_else(|| panic!("no task {name}"))
    }

    /// `success: a success, b[0] failed`.
    pub(crate) async fn shown(&self, dag_id: &str, run_id: &str) -> String {
        let run = self.run(dag_id, run_id).await;
        let tis = self.tis_of(&run).await;
        let list: Vec<String> =
            tis.iter().map(|ti| format!("{} {}", shown(ti), ti.state)).collect();
        format!("{}: {}", run.state, list.join(", "))
    }

    /// `success`, or `failed (lost)`: state and reason.
    pub(crate) async fn why(&self, dag_id: &str, run_id: &str, name: &str) -> String {
        let ti = self.ti(dag_id, run_id, name).await;
        format!("{} ({})", ti.state, ti.reason.unwrap_or_default())
    }

    pub(crate) async fn attempts(&self, dag_id: &str, run_id: &str, name: &str) -> Vec<Attempt> {
        self.attempts_of(&self.ti(dag_id, run_id, name).await).await
    }

    pub(crate) async fn attempts_of(&self, ti: &Ti) -> Vec<Attempt> {
        let tx = self.look().await;
        let _unseen = self.faults.unseen();
        attempt::of_ti(&tx, ti.key).await.unwrap()
    }

    /// `lost infra, success none`: the outcomes of an instance's attempts, and what they cost.
    pub(crate) async fn outcomes(&self, dag_id: &str, run_id: &str, name: &str) -> String {
        let word = |a: &Attempt| match a.outcome {
            Some(outcome) => {
                format!("{outcome} {}", a.counted_as.map_or("?", |counted| counted.as_str()))
            }
            None => a.state.to_string(),
        };
        let list: Vec<String> =
            self.attempts(dag_id, run_id, name).await.iter().map(word).collect();
        list.join(", ")
    }

    pub(crate) async fn attempt(&self, token: Token) -> Attempt {
        let tx = self.look().await;
        let _unseen = self.faults.unseen();
        attempt::get(&tx, &[token]).await.unwrap().pop().unwrap()
    }

    pub(crate) async fn run_states(&self, dag_id: &str) -> Vec<(String, RunState)> {
        let runs = self.all_runs().await;
        let own = runs.into_iter().filter(|run| run.dag_id == dag_id);
        own.map(|run| (run.run_id, run.state)).collect()
    }

    pub(crate) async fn count(&self, state: TiState) -> usize {
        let mut count = 0;
        for run in self.all_runs().await {
            count += self.tis_of(&run).await.iter().filter(|ti| ti.state == state).count();
        }
        count
    }

    pub(crate) async fn pools(&self) -> BTreeMap<String, Pool> {
        let tx = self.look().await;
        let _unseen = self.faults.unseen();
        let list = pool::list(&tx).await.unwrap();
        list.into_iter().map(|pool| (pool.name.clone(), pool)).collect()
    }

    pub(crate) async fn dag(&self, dag_id: &str) -> dag::DagRow {
        let tx = self.look().await;
        let _unseen = self.faults.unseen();
        dag::get(&tx, dag_id).await.unwrap().unwrap()
    }

    pub(crate) async fn events(&self) -> Vec<Logged> {
        let tx = self.look().await;
        let _unseen = self.faults.unseen();
        events::page(&tx, 0, &EventFilter::default(), ALL).await.unwrap()
    }

    /// `name=value` of an instance's outputs.
    pub(crate) async fn outputs(&self, dag_id: &str, run_id: &str, task_id: &str) -> Vec<String> {
        let ti = self.ti(dag_id, run_id, task_id).await;
        let tx = self.look().await;
        let _unseen = self.faults.unseen();
        let found = xcom::of_tasks(&tx, &[(ti.key.run_pk, ti.key.task_index)]).await.unwrap();
        found.iter().map(|x| format!("{}={}", x.name, x.value)).collect()
    }
}

/// `task`, or `task[3]`.
pub(crate) fn shown(ti: &Ti) -> String {
    if ti.key.map_index < 0 {
        ti.task_id.clone()
    } else {
        format!("{}[{}]", ti.task_id, ti.key.map_index)
    }
}

/// Ids of runs that events and callbacks made are drawn anew each time.
pub(crate) fn kind_of(run_id: &str) -> &str {
    let drawn = ["asset_triggered__", "callback__"];
    drawn.into_iter().find(|kind| run_id.starts_with(kind)).unwrap_or(run_id)
}
