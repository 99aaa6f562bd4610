//! Changes to task instances: preview, question, change.

use crate::client::Client;
use crate::cx::Cx;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::output::typed;
use fencepost_api::rest::routes::Route;
use fencepost_api::rest::{Change, ChangePlan, DryRun};
use serde::Serialize;
use std::collections::BTreeSet;

/// Shows what `body` would do, asks, and does it.
pub(super) fn carry_out(
    cx: &Cx,
    client: &Client,
    (route, args): (Route, &[&str]),
    verb: &str,
    body: &impl Serialize,
) -> Outcome {
    let preview = client.send(route, args, &DryRun { dry_run: true }, body)?;
    if cx.global.dry_run {
        let plan: ChangePlan = typed(preview.clone())?;
        cx.out.remark(&headline(&plan, &format!("would {verb}")));
        return print(cx, client, &preview);
    }
    let plan: ChangePlan = typed(preview)?;
    if plan.changes.iter().all(|change| change.to.is_none()) {
        cx.out.remark(&format!("nothing to {verb}"));
        return cx.out.data(&plan).map(|_| Exit::Done);
    }
    cx.out.remark(&headline(&plan, verb));
    for line in lines(&plan) {
        cx.out.remark(&line);
    }
    cx.confirm("Go on?")?;
    let done = client.send(route, args, &DryRun::default(), body)?;
    cx.out.remark("done");
    if cx.out.format.is_data() { print(cx, client, &done) } else { Ok(Exit::Done) }
}

fn headline(plan: &ChangePlan, verb: &str) -> String {
    let count = plan.changes.iter().filter(|change| change.to.is_some()).count();
    let version = match plan.version {
        latest if latest == plan.latest_version => format!("v{latest}"),
        own => format!("the run's own v{own}; the newest is v{}", plan.latest_version),
    };
    let plural = if count == 1 { "" } else { "s" };
    let runs = match runs(plan) {
        0 | 1 => format!("{} {}", plan.dag_id, plan.run_id),
        many => format!("{} in {many} runs", plan.dag_id),
    };
    format!(
        "{verb} {count} task instance{plural} of {runs} ({version}; old attempts and logs are kept)"
    )
}

fn runs(plan: &ChangePlan) -> usize {
    let changed = plan.changes.iter().filter(|change| change.to.is_some());
    changed.map(|change| &change.run_id).collect::<BTreeSet<_>>().len()
}

/// Shown in groups where there are several runs.
fn lines(plan: &ChangePlan) -> Vec<String> {
    let mut lines = Vec::new();
    let mut last = &plan.run_id;
    for change in &plan.changes {
        if change.run_id != *last {
            lines.push(change.run_id.clone());
            last = &change.run_id;
        }
        lines.push(line(change));
    }
    lines
}

fn line(change: &Change) -> String {
    if change.task_id.is_empty() {
        let why = change.reason.as_deref().unwrap_or_default();
        return format!("  the run is {} and stays as it is: {why}", change.from);
    }
    let task = crate::view::task_label(&change.task_id, change.map_index, None);
    let reason = change.reason.as_ref().map(|reason| format!("  ({reason})")).unwrap_or_default();
    let key = if change.new_key { "  new idempotency key" } else { "" };
    match &change.to {
        Some(to) => format!("  {task}: {} → {to}{key}{reason}", change.from),
        None => format!("  {task}: {} is kept{reason}", change.from),
    }
}

pub(super) fn print(cx: &Cx, client: &Client, plan: &serde_json::Value) -> Outcome {
    if cx.out.data(plan)? {
        return Ok(Exit::Done);
    }
    let changes = plan["changes"].as_array().cloned().unwrap_or_default();
    cx.out.list::<Change>(changes, client.now())?;
    Ok(Exit::Done)
}
