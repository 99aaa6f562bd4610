//! Which events a DAG with a schedule by assets waits for.

use super::Gates;
use crate::Cx;
use crate::error::EngineError;
use fencepost_store::Tx;
use fencepost_store::query::asset::{self, Queued, view};
use fencepost_store::query::dag::DagRow;
use std::collections::BTreeSet;

/// Whether the DAG runs by events of assets, and if so, which are missing.
pub(super) async fn asset_gate(
    cx: &Cx,
    tx: &Tx,
    row: &DagRow,
    gates: &mut Gates,
) -> Result<bool, EngineError> {
    let version = match cx.catalog.version(tx, row.version_pk).await {
        Ok(version) => version,
        Err(error) => {
            error.of_one_version()?;
            return Ok(false);
        }
    };
    let Some(condition) = version.dag.timing.schedule.assets() else { return Ok(false) };
    let queued = asset::queued(tx, &row.dag_id).await?;
    let names: BTreeSet<String> = queued.iter().map(|one| one.asset.clone()).collect();
    let Some(missing) = condition.missing(&names) else {
        let text = format!("events are there ({}): the next pass makes a run", there(&queued));
        gates.add(CODE, true, text);
        return Ok(true);
    };
    let mut text = format!("waits for events of {missing}");
    if !queued.is_empty() {
        text.push_str(&format!("; there are {}", there(&queued)));
    }
    let mut first = None;
    for name in missing.assets() {
        let producers = view::get(tx, name).await?.map_or(0, |asset| asset.producers);
        if producers == 0 {
            text.push_str(&format!("; no task produces {name}"));
        }
        first.get_or_insert(name);
    }
    if gates.add(CODE, false, text) {
        gates.advise(format!("fencepost assets emit {}", first.unwrap_or_default()));
    }
    Ok(true)
}

const CODE: &str = "assets_missing";

/// What is queued, in words.
fn there(queued: &[Queued]) -> String {
    let one = |one: &Queued| format!("{} of {} since {}", one.count, one.asset, one.first_at);
    queued.iter().map(one).collect::<Vec<_>>().join(", ")
}
