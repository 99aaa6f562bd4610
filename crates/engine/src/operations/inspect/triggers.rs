//! What waits on a trigger: what for, who looks, and when it is over.

use super::{Found, PAGE};
use crate::Cx;
use crate::error::EngineError;
use fencepost_core::state::JobState;
use fencepost_core::wait::{Memory, Waiting};
use fencepost_store::query::trigger::{self, Trigger};
use fencepost_store::query::{job, run, task_instance};
use std::collections::BTreeMap;

/// Every trigger, in the order of their tokens.
pub(super) async fn triggers(cx: &Cx) -> Result<Vec<Found>, EngineError> {
    let tx = cx.store.read("inspect").await?;
    let mut names: BTreeMap<String, (String, bool)> = BTreeMap::new();
    let mut found = Vec::new();
    let mut after = 0;
    loop {
        let page = trigger::list(&tx, after, PAGE).await?;
        let mut pks: Vec<i64> = page.iter().map(|trigger| trigger.ti.run_pk).collect();
        pks.sort_unstable();
        pks.dedup();
        let runs: BTreeMap<i64, String> =
            run::by_pks(&tx, &pks).await?.into_iter().map(|run| (run.run_pk, run.run_id)).collect();
        let keys: Vec<_> = page.iter().map(|trigger| trigger.ti).collect();
        let tis: BTreeMap<_, _> = task_instance::get(&tx, &keys)
            .await?
            .into_iter()
            .map(|ti| (ti.key, ti.task_id))
            .collect();
        for one in &page {
            after = one.token.as_i64();
            if !one.job_id.is_empty() && !names.contains_key(&one.job_id) {
                let id = one.job_id.parse().ok();
                let owner = match id {
                    Some(id) => job::get(&tx, id).await?,
                    None => None,
                };
                let alive =
                    |job: &job::Job| matches!(job.state, JobState::Running | JobState::Draining);
                let known = owner.map_or_else(
                    || (one.job_id.clone(), false),
                    |job| (format!("{}@{}", job.name, job.host), alive(&job)),
                );
                names.insert(one.job_id.clone(), known);
            }
            let place = (runs.get(&one.ti.run_pk), tis.get(&one.ti));
            found.push(line(one, place, names.get(&one.job_id)));
        }
        if page.len() < PAGE as usize {
            return Ok(found);
        }
    }
}

fn line(
    one: &Trigger,
    (run, task): (Option<&String>, Option<&String>),
    owner: Option<&(String, bool)>,
) -> Found {
    let name = |text: Option<&String>| text.map_or("?", String::as_str).to_owned();
    let index = one.ti.map_index;
    let index = if index < 0 { String::new() } else { format!("[{index}]") };
    let state = match owner {
        Some((_, true)) => "watched",
        Some((_, false)) => "orphan",
        None if one.next_at.is_some() => "free",
        None => "waiting",
    };
    Found {
        subject: format!("{}/{}/{}{index}", one.dag_id, name(run), name(task)),
        state: state.into(),
        since: Some(one.created_at),
        owner: owner.map(|(name, _)| name.clone()),
        detail: detail(one),
    }
}

/// What it waits for, the next look, the deadline: a sentence.
pub(crate) fn detail(one: &Trigger) -> String {
    let what = match Waiting::from_json(&one.wait) {
        Ok(waiting) => waiting.wait.describe(),
        Err(error) => format!("cannot be read: {error}"),
    };
    let mut parts = vec![what];
    if let Some(at) = one.next_at {
        let memory = Memory::from_json(&one.memory);
        let last = if memory.last.is_empty() { "no look yet" } else { memory.last.as_str() };
        parts.push(format!("{} looks, the last: {last}; next at {at}", memory.looks));
    }
    match one.deadline_at {
        Some(at) => parts.push(format!("gives up at {at}")),
        None => parts.push("has no timeout".into()),
    }
    parts.join("; ")
}
