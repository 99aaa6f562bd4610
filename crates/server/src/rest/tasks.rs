//! Task instances: list, show, explain, outputs.

use super::answer::{Answer, Done};
use super::call::{Call, states};
use super::cursor;
use super::dag_view::time;
use super::failure::Failure;
use super::target::At;
use super::task_view;
use fencepost_api::rest::{Explain, Gate, GateStatus, Output, Outputs, TaskQuery};
use fencepost_core::plan::runs::NOT_MAPPED;
use fencepost_core::state::TiState;
use fencepost_engine::explain::{self, Explanation};
use fencepost_store::Tx;
use fencepost_store::query::listing::tasks::{self, FIRST};
use fencepost_store::query::task_instance::{self, Ti, TiKey};
use std::collections::BTreeMap;

pub(super) async fn list(call: &Call) -> Done {
    let query: TaskQuery = call.query()?;
    let limit = cursor::limit(query.limit);
    let states = states("state", query.state.as_deref(), TiState::parse)?;
    let (mut place, mut after) = (0, FIRST);
    if let Some([task, map_index]) = cursor::read::<2>("tasks", query.cursor.as_deref())? {
        place = usize::try_from(cursor::number(&task)?).unwrap_or(usize::MAX);
        after = cursor::number(&map_index)?;
    }
    let tx = call.read().await?;
    let at = At::of(call, &tx).await?;
    let order = match &query.task_id {
        // A list of a task that does not exist is empty, as lists are.
        Some(task_id) => at.version.task_index(task_id).into_iter().collect(),
        None => at.order(),
    };
    let wanted = Wanted { at: &at, order: &order, states: &states, most: limit + 1 };
    let keys = wanted.keys(&tx, place, after).await?;
    let places: BTreeMap<u32, usize> =
        order.iter().enumerate().map(|(place, index)| (*index, place)).collect();
    let (keys, next) = cursor::cut(keys, limit, |key| {
        let place = places.get(&key.task_index).copied().unwrap_or(0);
        cursor::write("tasks", &[&place.to_string(), &key.map_index.to_string()])
    });
    let found = rows(&tx, &at, &keys).await?;
    Answer::ok(&cursor::page(task_view::instances(&tx, &at, found).await?, next))
}

async fn rows(tx: &Tx, at: &At, keys: &[TiKey]) -> Result<Vec<Ti>, Failure> {
    if at.is_unmade() {
        return Ok(keys.iter().filter_map(|key| at.unmade(*key)).collect());
    }
    Ok(task_instance::get(tx, keys).await?)
}

/// A walk over a run's instances in the order of its tasks.
struct Wanted<'a> {
    at: &'a At,
    order: &'a [u32],
    states: &'a str,
    most: u32,
}

impl Wanted<'_> {
    /// Up to `most` keys from a place on: (place of a task in the order, after a map index).
    ///
    /// Tasks are asked for in bundles that hold as many instances as are wanted, so what a page
    /// costs depends on its size and on what the filter passes over, not on the run.
    async fn keys(&self, tx: &Tx, place: usize, after: i64) -> Result<Vec<TiKey>, Failure> {
        let most = cursor::count(self.most);
        let mut found = Vec::new();
        let mut rest = self.order.get(place..).unwrap_or_default();
        let mut after = after;
        while found.len() < most && !rest.is_empty() {
            let bundle = self.bundle(rest);
            let tasks: Vec<(u32, i64)> = rest[..bundle]
                .iter()
                .enumerate()
                .map(|(n, index)| (*index, if n == 0 { after } else { FIRST }))
                .collect();
            if self.at.is_unmade() {
                found.extend(tasks.iter().flat_map(|task| self.unmade(*task)));
            } else {
                let pk = self.at.run.run_pk;
                found.extend(tasks::keys(tx, pk, &tasks, self.states, self.most).await?);
            }
            rest = &rest[bundle..];
            after = FIRST;
        }
        found.truncate(most);
        Ok(found)
    }

    /// How many of the next tasks have as many instances as are wanted together; at least one.
    fn bundle(&self, rest: &[u32]) -> usize {
        let mut instances = 0;
        let full = rest.iter().position(|index| {
            instances += self.at.instances(*index).map_or(1, |made| made.count);
            instances >= self.most
        });
        full.map_or(rest.len(), |last| last + 1)
    }

    fn unmade(&self, (task_index, after): (u32, i64)) -> Vec<TiKey> {
        let filter_has = self.states.is_empty() || self.states.contains(",none,");
        let Some(made) = self.at.instances(task_index).filter(|_| filter_has) else {
            return Vec::new();
        };
        let first = i64::from(made.first).max(after + 1);
        let end = i64::from(made.first) + i64::from(made.count);
        (first..end)
            .take(cursor::count(self.most))
            .filter_map(|index| i32::try_from(index).ok())
            .map(|map_index| TiKey { run_pk: self.at.run.run_pk, task_index, map_index })
            .collect()
    }
}

pub(super) async fn show(call: &Call) -> Done {
    let tx = call.read().await?;
    let at = At::of(call, &tx).await?;
    let named = at.named(call.arg(2))?;
    let ti = at.one(&tx, &named).await?;
    match task_view::instances(&tx, &at, vec![ti]).await?.pop() {
        Some(instance) => Answer::ok(&instance),
        None => Err(at.no_task(&named.task_id)),
    }
}

pub(super) async fn outputs(call: &Call) -> Done {
    let tx = call.read().await?;
    let at = At::of(call, &tx).await?;
    let named = at.named(call.arg(2))?;
    let ti = at.one(&tx, &named).await?;
    let found = tasks::outputs(&tx, ti.key).await?;
    let token = found.first().and_then(|output| output.token);
    let outputs = found.into_iter().map(|o| Output { name: o.name, value: o.value }).collect();
    Answer::ok(&Outputs {
        task_id: ti.task_id,
        map_index: ti.key.map_index,
        token: token.map(|token| token.as_i64().to_string()),
        outputs,
    })
}

pub(super) async fn explain_dag(call: &Call) -> Done {
    let found = explain::explain_dag(call.cx(), call.arg(0)).await?;
    Answer::ok(&wire(found, None))
}

pub(super) async fn explain_run(call: &Call) -> Done {
    let found = explain::explain(call.cx(), call.arg(0), call.arg(1), None).await?;
    Answer::ok(&wire(found, None))
}

pub(super) async fn explain(call: &Call) -> Done {
    let named = {
        let tx = call.read().await?;
        At::of(call, &tx).await?.named(call.arg(2))?
    };
    let task = Some((named.task_id.as_str(), named.map_index));
    let found = explain::explain(call.cx(), call.arg(0), call.arg(1), task).await?;
    Answer::ok(&wire(found, Some((named.task_id.clone(), named.map_index))))
}

fn wire(found: Explanation, asked: Option<(String, Option<i32>)>) -> Explain {
    let shown = found.ti.as_ref().map(|ti| ti.key.map_index);
    let (task_id, map_index) = match asked {
        Some((task_id, index)) => (Some(task_id), index.or(shown).unwrap_or(NOT_MAPPED)),
        None => (None, NOT_MAPPED),
    };
    Explain {
        dag_id: found.dag_id,
        run_id: found.run.map(|run| run.run_id),
        task_id,
        map_index,
        state: found.state,
        since: time(found.since),
        summary: found.summary,
        gates: found.gates.into_iter().map(gate).collect(),
        next: found.next,
    }
}

fn gate(gate: explain::Gate) -> Gate {
    Gate {
        code: gate.code.into(),
        status: match gate.status {
            explain::GateStatus::Passed => GateStatus::Passed,
            explain::GateStatus::Blocking => GateStatus::Blocking,
            explain::GateStatus::NotReached => GateStatus::NotReached,
        },
        text: gate.text,
        holders: gate.holders,
    }
}
