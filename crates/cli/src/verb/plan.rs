//! Changes to task instances: preview, question, change.

use crate::client::Client;
use crate::cx::Cx;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::output::typed;
use fencepost_api::rest::routes::Route;
use fencepost_api::rest::{Change, ChangePlan, DryRun};
use serde::Serialize;

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
    for change in &plan.changes {
        cx.out.remark(&line(change));
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
        own => format!("the run's own v{own}; --latest for v{}", plan.latest_version),
    };
    let plural = if count == 1 { "" } else { "s" };
    format!(
        "{verb} {count} task instance{plural} of {} {} ({version}; old attempts and logs are kept)",
        plan.dag_id, plan.run_id
    )
}

fn line(change: &Change) -> String {
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
