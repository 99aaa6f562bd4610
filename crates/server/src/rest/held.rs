//! Task instances that wait for a person: the list, and the decision.

use super::answer::{Answer, Done};
use super::call::Call;
use super::failure::Failure;
use super::runs::{check_text, keep_reason};
use super::target::At;
use super::{attempts, cursor, task_view};
use fencepost_api::rest::{ListQuery, Resolve};
use fencepost_engine::catalog::Version;
use fencepost_engine::operations::held::{self, Decision};
use fencepost_engine::operations::run_control::AttemptRef;
use fencepost_store::query::run;
use fencepost_store::query::task_instance::{self, Ti, TiKey};
use std::collections::BTreeMap;
use std::sync::Arc;

const FIRST: TiKey = TiKey { run_pk: 0, task_index: 0, map_index: i32::MIN };

pub(super) async fn list(call: &Call) -> Done {
    let query: ListQuery = call.query()?;
    let limit = cursor::limit(query.limit);
    let after = match cursor::read::<3>("held", query.cursor.as_deref())? {
        Some([run, task, map]) => TiKey {
            run_pk: cursor::number(&run)?,
            task_index: u32::try_from(cursor::number(&task)?).unwrap_or(u32::MAX),
            map_index: i32::try_from(cursor::number(&map)?).unwrap_or(i32::MAX),
        },
        None => FIRST,
    };
    let tx = call.read().await?;
    let found = task_instance::held(&tx, after, limit + 1).await?;
    let (found, next) = cursor::cut(found, limit, |ti| {
        let TiKey { run_pk, task_index, map_index } = ti.key;
        let place = [run_pk.to_string(), task_index.to_string(), map_index.to_string()];
        cursor::write("held", &place.each_ref().map(String::as_str))
    });
    let mut by_run: BTreeMap<i64, Vec<Ti>> = BTreeMap::new();
    for ti in found {
        by_run.entry(ti.key.run_pk).or_default().push(ti);
    }
    let pks: Vec<i64> = by_run.keys().copied().collect();
    let mut rows = Vec::new();
    for run in run::by_pks(&tx, &pks).await? {
        let own = by_run.remove(&run.run_pk).unwrap_or_default();
        let version = match call.cx().catalog.version(&tx, run.version_pk).await {
            Ok(version) => version,
            // What waits for a person is shown, whatever else cannot be.
            Err(error) => {
                error.of_one_version()?;
                let stand_in = Version::unreadable(run.version_pk, &run.dag_id);
                let Some(stand_in) = stand_in else { continue };
                Arc::new(stand_in)
            }
        };
        rows.extend(task_view::held(&tx, &At { run, version }, own).await?);
    }
    Answer::ok(&cursor::page(rows, next))
}

pub(super) async fn resolve(call: &Call) -> Done {
    let body: Resolve = call.body()?;
    check_text("/reason", body.reason.as_deref())?;
    let Some(decision) = Decision::parse(&body.decision) else {
        return Err(Failure::field("/as", "success, failed or rerun"));
    };
    let request = held::Resolve {
        attempt: AttemptRef::parse(call.arg(0))?,
        decision,
        confirm_dead: body.confirm_dead,
        by: call.by().into(),
        reason: body.reason.clone(),
    };
    let found = held::resolve(call.cx(), &request).await?;
    keep_reason(call, attempts::about(found), body.reason).await?;
    attempts::show(call).await
}
