//! The facts of one task instance that templates and environments are made from.

use crate::catalog::{Catalog, Version};
use crate::error::EngineError;
use fencepost_store::Tx;
use fencepost_store::query::run::Run;
use fencepost_store::query::task_instance::Ti;
use fencepost_store::query::xcom;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is known of a task instance when it is evaluated or rendered.
#[derive(Debug, Clone)]
pub struct Facts {
    pub version: Arc<Version>,
    pub run: Run,
    pub ti: Ti,
    /// Outputs by task and name; those of a mapped task are lists in the order of map indexes.
    pub outputs: BTreeMap<String, Map<String, Value>>,
    /// The attempt: its id, its number, and how the one before it ended.
    pub attempt: Option<AttemptFacts>,
}

/// What is known of the attempt.
#[derive(Debug, Clone)]
pub struct AttemptFacts {
    pub attempt_id: String,
    pub token: fencepost_core::id::Token,
    pub number: u32,
    pub prev_outcome: String,
    /// The last checkpoint of the attempts before it, in hexadecimal.
    pub checkpoint: Option<String>,
}

/// Loads the outputs that a task may speak of: those of its direct upstreams, and of all its
/// ancestors if one of its templates mentions `outputs` or `xcom`.
pub async fn outputs_for(
    tx: &Tx,
    version: &Version,
    run_pk: i64,
    task_index: u32,
) -> Result<BTreeMap<String, Map<String, Value>>, EngineError> {
    let tasks: Vec<u32> = version.inputs_of(task_index);
    let mut out: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for found in xcom::of_tasks(tx, run_pk, &tasks).await? {
        let Some(task) = version.dag.tasks.get(found.task_index as usize) else { continue };
        let names = out.entry(task.task_id.as_str().to_owned()).or_default();
        if task.expand.is_empty() {
            names.insert(found.name, found.value);
        } else if let Value::Array(list) =
            names.entry(found.name).or_insert_with(|| Value::Array(Vec::new()))
        {
            list.push(found.value);
        }
    }
    Ok(out)
}

/// Loads everything about one instance.
pub async fn load(tx: &Tx, catalog: &Catalog, run: Run, ti: Ti) -> Result<Facts, EngineError> {
    let version = catalog.version(tx, run.version_pk).await?;
    let outputs = outputs_for(tx, &version, run.run_pk, ti.key.task_index).await?;
    Ok(Facts { version, run, ti, outputs, attempt: None })
}
