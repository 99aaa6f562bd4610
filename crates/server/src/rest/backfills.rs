//! Backfills: make, preview, list, show, pause, resume, cancel.

use super::answer::{Answer, Done};
use super::call::Call;
use super::cursor;
use super::dag_view::{narrow, time};
use super::failure::Failure;
use super::runs::{check_text, keep_reason};
use fencepost_api::problem::ProblemCode;
use fencepost_api::rest::{
    Action, Backfill, BackfillCreate, BackfillExisting, BackfillPreview, BackfillProgress,
    BackfillQuery, DryRun,
};
use fencepost_core::state::{Reprocess, RunState, SlotAction};
use fencepost_engine::operations::backfill::{self, BackfillRequest, Preview};
use fencepost_store::Tx;
use fencepost_store::query::backfill as rows;
use fencepost_store::query::event::Event;
use serde_json::Value;

/// As in Airflow.
const MAX_ACTIVE_RUNS: u32 = 10;

pub(super) async fn create(call: &Call) -> Done {
    let asked: DryRun = call.query()?;
    if asked.dry_run {
        return preview(call).await;
    }
    let made = backfill::create(call.cx(), &request(call)?).await?;
    let tx = call.read().await?;
    Answer::with_status(201, &wire(&tx, made).await?)
}

pub(super) async fn preview(call: &Call) -> Done {
    let found = backfill::preview(call.cx(), &request(call)?).await?;
    Answer::ok(&wire_preview(&found))
}

fn request(call: &Call) -> Result<BackfillRequest, Failure> {
    let body: BackfillCreate = call.body()?;
    for (pointer, text) in
        [("/dag_id", &body.dag_id), ("/from_date", &body.from_date), ("/to_date", &body.to_date)]
    {
        if text.trim().is_empty() {
            return Err(Failure::field(pointer, "must be there"));
        }
    }
    if !matches!(body.conf, Value::Null | Value::Object(_)) {
        return Err(Failure::field("/conf", "must be an object"));
    }
    let word = body.reprocess_behavior.as_deref().unwrap_or(Reprocess::None.as_str());
    let reprocess = Reprocess::parse(word).ok_or_else(|| {
        Failure::field("/reprocess_behavior", "must be one of none, failed, completed")
    })?;
    Ok(BackfillRequest {
        dag_id: body.dag_id,
        from_date: body.from_date,
        to_date: body.to_date,
        reprocess,
        max_active_runs: body.max_active_runs.unwrap_or(MAX_ACTIVE_RUNS),
        backwards: body.run_backwards,
        params: body.params,
        conf: body.conf,
        by: call.by().into(),
    })
}

fn wire_preview(found: &Preview) -> BackfillPreview {
    let existing = found.existing.iter().map(|((state, action), n)| BackfillExisting {
        state: state.to_string(),
        action: action.to_string(),
        count: wide(*n),
    });
    BackfillPreview {
        slots: wide(found.slots),
        existing: existing.collect(),
        missing: wide(found.missing),
        runs: wide(found.starts()),
        text: found.text(),
    }
}

fn wide(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

pub(super) async fn list(call: &Call) -> Done {
    let query: BackfillQuery = call.query()?;
    let limit = cursor::limit(query.limit);
    let before = match cursor::read::<1>("backfills", query.cursor.as_deref())? {
        Some([id]) => cursor::number(&id)?,
        None => i64::MAX,
    };
    let of = (query.dag_id.as_deref().unwrap_or_default(), query.open);
    let tx = call.read().await?;
    let found = rows::page(&tx, before, of, limit + 1).await?;
    let place = |one: &rows::Backfill| cursor::write("backfills", &[&one.backfill_pk.to_string()]);
    let (found, next) = cursor::cut(found, limit, place);
    let mut items = Vec::new();
    for one in found {
        items.push(wire(&tx, one).await?);
    }
    Answer::ok(&cursor::page(items, next))
}

pub(super) async fn show(call: &Call) -> Done {
    let key = key(call)?;
    let tx = call.read().await?;
    let found = backfill::found(&tx, key).await?;
    Answer::ok(&wire(&tx, found).await?)
}

pub(super) async fn pause(call: &Call, paused: bool) -> Done {
    let action = action(call)?;
    let of = backfill::pause(call.cx(), key(call)?, paused, call.by()).await?;
    keep_reason(call, about(&of), action.reason).await?;
    show(call).await
}

pub(super) async fn cancel(call: &Call) -> Done {
    let action = action(call)?;
    let of = backfill::cancel(call.cx(), key(call)?, call.by()).await?;
    keep_reason(call, about(&of), action.reason).await?;
    show(call).await
}

fn action(call: &Call) -> Result<Action, Failure> {
    let action: Action = call.body()?;
    check_text("/reason", action.reason.as_deref())?;
    Ok(action)
}

fn about(of: &rows::Backfill) -> Event {
    Event { dag_id: Some(of.dag_id.clone()), ..Event::default() }
}

/// The number that the address names.
fn key(call: &Call) -> Result<i64, Failure> {
    let name = call.arg(0);
    name.parse().map_err(|_| {
        Failure::new(ProblemCode::NoSuchBackfill, format!("there is no backfill `{name}`"))
            .suggest("see  fencepost backfill list")
    })
}

async fn wire(tx: &Tx, of: rows::Backfill) -> Result<Backfill, Failure> {
    Ok(Backfill {
        id: u64::try_from(of.backfill_pk).unwrap_or(0),
        state: of.state.to_string(),
        paused: of.paused,
        from_date: of.from_date.to_string(),
        to_date: of.to_date.to_string(),
        reprocess_behavior: of.reprocess.to_string(),
        max_active_runs: narrow(of.max_active_runs),
        run_backwards: of.backwards,
        progress: progress(&of, &rows::counts(tx, of.backfill_pk).await?),
        created_at: of.created_at.to_string(),
        ended_at: time(of.ended_at),
        dag_id: of.dag_id,
        params: of.params,
        created_by: of.created_by,
    })
}

fn progress(of: &rows::Backfill, counts: &[rows::SlotCount]) -> BackfillProgress {
    let mut out =
        BackfillProgress { slots: u64::try_from(of.slots).unwrap_or(0), ..Default::default() };
    for found in counts {
        let count = u64::try_from(found.count).unwrap_or(0);
        match found.action {
            SlotAction::Created => out.created += count,
            SlotAction::Rerun => out.rerun += count,
            SlotAction::Kept | SlotAction::InFlight => {
                out.kept += count;
                continue;
            }
        }
        match found.state {
            Some(RunState::Queued) => out.queued += count,
            Some(RunState::Running) => out.running += count,
            Some(RunState::Success) => out.success += count,
            Some(RunState::Failed) => out.failed += count,
            Some(RunState::Cancelled) => out.cancelled += count,
            Some(RunState::Missed) | None => {}
        }
    }
    out
}
