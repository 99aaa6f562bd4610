//! The facts of one task instance that templates and environments are made from.

use crate::catalog::{Catalog, Version};
use crate::error::EngineError;
use fencepost_core::callback::Occasion;
use fencepost_core::kept;
use fencepost_store::Tx;
use fencepost_store::query::run::Run;
use fencepost_store::query::task_instance::Ti;
use fencepost_store::query::vault::{self, Sealed};
use fencepost_store::query::xcom::{self, Xcom};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is known of a task instance when it is evaluated or rendered.
#[derive(Debug, Clone)]
pub struct Facts {
    pub version: Arc<Version>,
    pub run: Run,
    pub ti: Ti,
    /// Outputs by task and name; those of a mapped task are lists in the order of map indexes.
    pub outputs: Outputs,
    /// What is kept for its task, sealed.
    pub kept: Vec<Sealed>,
    /// What made the run, by asset ([`crate::assets::triggering`]).
    pub asset_events: Map<String, Value>,
    /// The attempt: its id, its number, and how the one before it ended.
    pub attempt: Option<AttemptFacts>,
    /// What happened: for callbacks only.
    pub telling: Option<Telling>,
}

/// What a callback tells.
#[derive(Debug, Clone)]
pub struct Telling {
    pub occasion: Occasion,
    pub reason: String,
    pub run_url: String,
    /// False: it happened to the run, and the instance of these facts is nobody.
    pub is_of_instance: bool,
    pub try_number: u32,
    /// Of the attempt that it happened to, if there was one.
    pub attempt_id: Option<String>,
    pub token: Option<fencepost_core::id::Token>,
    /// How a loss is known.
    pub evidence: Option<Value>,
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
    /// What a resumed process is told.
    pub event: Option<Value>,
}

/// Outputs by task and name.
pub type Outputs = BTreeMap<String, Map<String, Value>>;

/// Tasks of one run whose outputs are read one by one; beyond that the whole run's are read.
const FEW: usize = 64;

/// A task whose inputs are wanted.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    pub version: &'a Version,
    pub run_pk: i64,
    pub task_index: u32,
}

/// Loads the outputs that tasks may speak of, for each reader in their order: those of its direct
/// upstreams, and of all its ancestors if one of its templates mentions `outputs` or `xcom`. What
/// several readers want is read once.
pub async fn outputs_for(tx: &Tx, readers: &[Reader<'_>]) -> Result<Vec<Outputs>, EngineError> {
    let inputs: Vec<Vec<u32>> =
        readers.iter().map(|reader| reader.version.inputs_of(reader.task_index)).collect();
    let mut wanted: BTreeMap<i64, BTreeSet<u32>> = BTreeMap::new();
    for (reader, inputs) in readers.iter().zip(&inputs) {
        wanted.entry(reader.run_pk).or_default().extend(inputs);
    }
    let mut found: BTreeMap<(i64, u32), Vec<Xcom>> = BTreeMap::new();
    for one in load_outputs(tx, &wanted).await? {
        found.entry((one.run_pk, one.task_index)).or_default().push(one);
    }
    let of = |(reader, inputs): (&Reader<'_>, &Vec<u32>)| {
        let mut out = Outputs::new();
        for input in inputs {
            let own = found.get(&(reader.run_pk, *input)).map_or(&[][..], Vec::as_slice);
            gather(&mut out, reader.version, *input, own);
        }
        out
    };
    Ok(readers.iter().zip(&inputs).map(of).collect())
}

/// Loads what is kept for tasks, for each reader in their order. Most tasks use nothing of it, and then
/// the store is not asked.
pub async fn kept_for(tx: &Tx, readers: &[Reader<'_>]) -> Result<Vec<Vec<Sealed>>, EngineError> {
    let names = |reader: &Reader<'_>| {
        let of_task = reader.version.kept.get(reader.task_index as usize);
        of_task.cloned().unwrap_or_default()
    };
    let wanted: Vec<Vec<kept::Name>> = readers.iter().map(names).collect();
    let all: BTreeSet<&kept::Name> = wanted.iter().flatten().collect();
    if all.is_empty() {
        return Ok(vec![Vec::new(); readers.len()]);
    }
    let all: Vec<&kept::Name> = all.into_iter().collect();
    let found = vault::sealed(tx, &all).await?;
    let of = |wanted: Vec<kept::Name>| {
        let is_wanted = |one: &&Sealed| {
            wanted.iter().any(|(kind, name)| (*kind, name) == (one.kind, &one.name))
        };
        found.iter().filter(is_wanted).cloned().collect()
    };
    Ok(wanted.into_iter().map(of).collect())
}

async fn load_outputs(
    tx: &Tx,
    wanted: &BTreeMap<i64, BTreeSet<u32>>,
) -> Result<Vec<Xcom>, EngineError> {
    let mut few: Vec<(i64, u32)> = Vec::new();
    let mut found = Vec::new();
    for (run_pk, tasks) in wanted {
        if tasks.len() > FEW {
            found.extend(xcom::of_run(tx, *run_pk).await?);
        } else {
            few.extend(tasks.iter().map(|task| (*run_pk, *task)));
        }
    }
    found.extend(xcom::of_tasks(tx, &few).await?);
    Ok(found)
}

/// Outputs of one task; those of a mapped one become lists.
fn gather(out: &mut Outputs, version: &Version, task_index: u32, found: &[Xcom]) {
    let Some(task) = version.dag.tasks.get(task_index as usize) else { return };
    if found.is_empty() {
        return;
    }
    let names = out.entry(task.task_id.as_str().to_owned()).or_default();
    for one in found {
        if task.expand.is_empty() {
            names.insert(one.name.clone(), one.value.clone());
        } else if let Value::Array(list) =
            names.entry(one.name.clone()).or_insert_with(|| Value::Array(Vec::new()))
        {
            list.push(one.value.clone());
        }
    }
}

/// Loads everything about one instance.
pub async fn load(tx: &Tx, catalog: &Catalog, run: Run, ti: Ti) -> Result<Facts, EngineError> {
    let version = catalog.version(tx, run.version_pk).await?;
    let reader = Reader { version: &version, run_pk: run.run_pk, task_index: ti.key.task_index };
    let outputs = outputs_for(tx, &[reader]).await?.pop().unwrap_or_default();
    let kept = kept_for(tx, &[reader]).await?.pop().unwrap_or_default();
    let asset_events = crate::assets::triggering(tx, &run).await?;
    Ok(Facts { version, run, ti, outputs, kept, asset_events, attempt: None, telling: None })
}
