//! Runs that events of assets make.
//!
//! A DAG's queue is rows, each taken by one run, for ever: a run is made and takes all that is queued for its DAG in
//! one transaction under the DAG's lock (of an asset with very many the oldest). So an event makes no second run, whatever crashes and however many
//! schedulers look; and what is queued while the DAG is paused, has its runs waiting, or lacks another asset stays there
//! for the next run: nothing is remembered elsewhere that could be forgotten.

use super::create::{AHEAD, default_params};
use super::start::AGAIN;
use crate::catalog::Version;
use crate::error::EngineError;
use crate::log;
use crate::operations::trigger::letters;
use crate::{Cx, Report};
use fencepost_core::state::RunType;
use fencepost_core::time::Span;
use fencepost_store::Tx;
use fencepost_store::query::asset::{self, Queued};
use fencepost_store::query::dag::{self, DagRow};
use fencepost_store::query::event;
use fencepost_store::query::run::{self, NewRun};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Assets that are looked at in one page.
const PAGE: u32 = 1_000;
/// When a DAG whose runs wait already is looked at again.
const LATER: Span = Span::from_secs(5);

pub(super) async fn create_runs(cx: &Cx) -> Result<Report, EngineError> {
    let mut report = Report::default();
    for (dag_id, assets) in waiting(cx).await? {
        match create_for(cx, &dag_id, &assets, &mut report).await {
            Ok(made) => report.moved += usize::from(made),
            // A DAG that cannot be read stops only itself.
            Err(error) => {
                let why = error.of_one_version()?;
                report.troubles.push(format!("{dag_id}: {why}"));
            }
        }
    }
    Ok(report)
}

/// The assets with queued events, by DAG. It is read beside the writers: mostly there is nothing to do.
async fn waiting(cx: &Cx) -> Result<BTreeMap<String, BTreeSet<String>>, EngineError> {
    let look = cx.store.read("look_for_asset_events").await?;
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let (mut dag_id, mut name) = (String::new(), String::new());
    loop {
        let page = asset::waiting(&look, (&dag_id, &name), PAGE).await?;
        let is_last = page.len() < PAGE as usize;
        for (of, asset) in page {
            (dag_id, name) = (of.clone(), asset.clone());
            found.entry(of).or_default().insert(asset);
        }
        if is_last {
            return Ok(found);
        }
    }
}

/// Makes the run of a DAG whose condition seems to be met; whether it did.
async fn create_for(
    cx: &Cx,
    dag_id: &str,
    assets: &BTreeSet<String>,
    report: &mut Report,
) -> Result<bool, EngineError> {
    let look = cx.store.read("look_at_asset_schedule").await?;
    let Some(row) = dag::get(&look, dag_id).await? else { return Ok(false) };
    let version = cx.catalog.version(&look, row.version_pk).await?;
    drop(look);
    if !is_met(&version, assets) {
        return Ok(false);
    }
    let tx = cx.store.begin("create_asset_run").await?;
    let Some(row) = dag::take(&tx, dag_id).await? else {
        let next_due = Some(tx.now().plus(AGAIN));
        report.merge(Report { next_due, ..Report::default() });
        return Ok(false);
    };
    if row.is_paused || !row.is_active {
        return Ok(false);
    }
    let room = row.max_active_runs + AHEAD - run::count_waiting_for_assets(&tx, dag_id).await?;
    if room <= 0 {
        let next_due = Some(tx.now().plus(LATER));
        report.merge(Report { next_due, ..Report::default() });
        return Ok(false);
    }
    // Under the lock, by the version that counts now.
    let version = cx.catalog.version(&tx, row.version_pk).await?;
    let queued = asset::queued(&tx, dag_id).await?;
    let assets = queued.iter().map(|one| one.asset.clone()).collect();
    if !is_met(&version, &assets) || !make(cx, &tx, (&row, &version), &queued).await? {
        return Ok(false);
    }
    tx.commit().await?;
    Ok(true)
}

fn is_met(version: &Version, assets: &BTreeSet<String>) -> bool {
    version.dag.timing.schedule.assets().is_some_and(|condition| condition.is_met(assets))
}

/// Makes a run that takes what is queued. Its data interval spans those of the runs that produced it, as in
/// Airflow.
async fn make(
    cx: &Cx,
    tx: &Tx,
    (row, version): (&DagRow, &Version),
    queued: &[Queued],
) -> Result<bool, EngineError> {
    let now = tx.now();
    let start = queued.iter().map(|one| one.interval_start).min();
    let end = queued.iter().map(|one| one.interval_end).max();
    let run_id = format!("asset_triggered__{now}_{}", letters((cx.env.random)()));
    let new = NewRun {
        dag_id: row.dag_id.clone(),
        run_id: run_id.clone(),
        version_pk: row.version_pk,
        run_type: RunType::AssetTriggered,
        logical_date: None,
        interval: start.zip(end),
        run_after: now,
        conf: Value::Object(Map::new()),
        params: default_params(&version.dag),
        note: None,
        triggered_by: log::SCHEDULER.into(),
        calls: version.dag.calls(),
        alert_at: version.dag.alert_at(RunType::AssetTriggered, now, now),
    };
    if run::insert(tx, &[new]).await? != [true] {
        return Ok(false);
    }
    let Some(found) = run::get(tx, &row.dag_id, &run_id).await? else { return Ok(false) };
    let taken = asset::take(tx, &row.dag_id, found.run_pk, queued).await?;
    let mut line = log::run(&found, "run_created", "queued", log::SCHEDULER, "assets");
    let names: Vec<&str> = queued.iter().map(|one| one.asset.as_str()).collect();
    line.evidence = Some(json!({ "events": taken, "assets": names }));
    event::append(tx, vec![line]).await?;
    Ok(true)
}
