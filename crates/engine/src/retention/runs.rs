//! Runs that ended long ago, DAG by DAG, the oldest first.

use super::sweep::Found;
use crate::Cx;
use crate::error::EngineError;
use fencepost_core::retention::{Bounds, Kept, run};
use fencepost_core::time::{Span, Timestamp};
use fencepost_store::Tx;
use fencepost_store::query::event::{self, Event};
use fencepost_store::query::retention::{self, OldRun, rows};
use std::collections::VecDeque;

/// DAGs whose versions are read for what they say, in one transaction.
const UNREAD: u32 = 20;
/// DAGs of one page.
const DAGS: u32 = 50;
/// Runs of one transaction at most: each is looked at closely.
const RUNS: u32 = 50;
/// Before every end that is stored.
const START: (Timestamp, i64) = (Timestamp::from_micros(i64::MIN), 0);

/// One transaction of the walk, and by what it goes.
pub(super) struct Turn<'a> {
    pub(super) cx: &'a Cx,
    pub(super) tx: &'a Tx,
    pub(super) bounds: Bounds,
    /// Most runs that are looked at.
    pub(super) most: u32,
    pub(super) is_dry: bool,
    /// A rule that is off.
    pub(super) ignores: Option<Kept>,
}

/// A place in the walk.
#[derive(Debug)]
pub(super) struct Runs {
    /// The last DAG whose version was asked for how long it keeps its runs; `None`: all were.
    unread: Option<String>,
    /// The last DAG that was found.
    found: String,
    dags: VecDeque<(String, Option<Span>)>,
    /// In the first of them.
    run: (Timestamp, i64),
}

impl Default for Runs {
    fn default() -> Self {
        let unread = Some(String::new());
        Self { unread, found: String::new(), dags: VecDeque::new(), run: START }
    }
}

impl Runs {
    /// One transaction's worth; whether there is more.
    pub(super) async fn step(
        &mut self,
        turn: &Turn<'_>,
        found: &mut Found,
    ) -> Result<bool, EngineError> {
        if let Some(after) = self.unread.take() {
            self.unread = learn(turn, &after, found).await?;
            return Ok(true);
        }
        if self.dags.is_empty() {
            self.dags = retention::dags(turn.tx, &turn.bounds, &self.found, DAGS).await?.into();
            let Some((last, _)) = self.dags.back() else { return Ok(false) };
            self.found.clone_from(last);
            self.run = START;
        }
        let mut room = turn.most.min(RUNS);
        while let Some((dag_id, own)) = self.dags.front().filter(|_| room > 0) {
            let before = turn.bounds.of_dag(*own);
            let page = retention::runs(turn.tx, dag_id, before, self.run, room).await?;
            let (count, last) = (page.len(), page.last().map(|r| (r.ended_at, r.run_pk)));
            let gone = choose(turn, page, found);
            if turn.is_dry {
                count_rows(turn.tx, &gone, found).await?;
            } else if !gone.is_empty() {
                let removed = forget(turn, dag_id, before, &gone).await?;
                found.gone("runs", removed);
            }
            match last {
                Some(last) if count == room as usize => self.run = last,
                _ => {
                    self.dags.pop_front();
                    self.run = START;
                }
            }
            room = room.saturating_sub(u32::try_from(count).unwrap_or(room).max(1));
        }
        Ok(true)
    }
}

/// Writes down how long DAGs keep their runs; after which of them there are more. What is not known keeps
/// all its runs.
async fn learn(
    turn: &Turn<'_>,
    after: &str,
    found: &mut Found,
) -> Result<Option<String>, EngineError> {
    let tx = turn.tx;
    let page = retention::unread(tx, after, UNREAD).await?;
    for (dag_id, version_pk) in &page {
        match turn.cx.catalog.version(tx, *version_pk).await {
            Ok(_) if turn.is_dry => {
                let text =
                    format!("{dag_id}: its own retention is not read yet, its runs count as kept");
                found.troubles.push(text);
            }
            Ok(version) => {
                retention::set_keep(tx, dag_id, *version_pk, version.dag.retention).await?;
            }
            // It stops only itself.
            Err(error) => found.troubles.push(format!("{dag_id}: {}", error.of_one_version()?)),
        }
    }
    let is_last = page.len() < UNREAD as usize;
    Ok(page.into_iter().next_back().map(|(dag_id, _)| dag_id).filter(|_| !is_last))
}

/// The runs that may go.
fn choose(turn: &Turn<'_>, page: Vec<OldRun>, found: &mut Found) -> Vec<OldRun> {
    let mut gone = Vec::new();
    for old in page {
        match run(&old.facts) {
            Err(why) if turn.ignores != Some(why) => found.kept("runs", why),
            _ => gone.push(old),
        }
    }
    gone
}

async fn count_rows(tx: &Tx, gone: &[OldRun], found: &mut Found) -> Result<(), EngineError> {
    found.gone("runs", gone.len() as u64);
    for old in gone {
        for (what, count) in rows::size(tx, old.run_pk).await? {
            found.gone(what, count);
        }
    }
    Ok(())
}

/// Removes the runs' rows, and the log says which; how many.
async fn forget(
    turn: &Turn<'_>,
    dag_id: &str,
    before: Timestamp,
    gone: &[OldRun],
) -> Result<u64, EngineError> {
    let count = retention::drop_runs(turn.tx, &gone.iter().collect::<Vec<_>>()).await?;
    let names: Vec<&str> = gone.iter().map(|old| old.run_id.as_str()).collect();
    let line = Event {
        kind: "runs_pruned",
        dag_id: Some(dag_id.into()),
        actor: turn.cx.actor().into(),
        reason: Some(format!("{count} runs that ended before {before}")),
        evidence: Some(serde_json::json!({ "runs": names })),
        ..Event::default()
    };
    event::append(turn.tx, vec![line]).await?;
    Ok(count)
}
