//! DAG files become versions. Equal content makes no second version; a file that vanished makes
//! its DAG inactive, while its runs go on.

use crate::Cx;
use crate::error::EngineError;
use crate::log;
use crate::scheduler::first_look;
use fencepost_core::asset::Condition;
use fencepost_core::dag::Dag;
use fencepost_core::schedule::{Calendar, Schedule};
use fencepost_core::time::Timestamp;
use fencepost_store::Tx;
use fencepost_store::query::asset::uses::{self, Use};
use fencepost_store::query::dag::{self, DagRow, NewVersion};
use fencepost_store::query::event::{self, Event};
use serde_json::Value;
use std::collections::BTreeSet;

/// What a file was read as.
#[derive(Debug, Clone, PartialEq)]
pub struct DagFile {
    /// Its path below the DAG folder.
    pub fileloc: String,
    pub content: Result<ReadDag, Value>,
}

/// A DAG as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadDag {
    pub dag: Dag,
    pub content_hash: String,
    ir: Value,
    source: String,
    /// The DAG that carries out its `run` callbacks.
    companion: Option<Box<Self>>,
}

impl ReadDag {
    /// A DAG and its companion; `encode` gives the hash of a DAG's content, and its IR.
    pub fn new(dag: Dag, source: String, encode: impl Fn(&Dag) -> (String, Value)) -> Self {
        let alone = |dag: Dag, source| {
            let (content_hash, ir) = encode(&dag);
            Self { dag, content_hash, ir, source, companion: None }
        };
        let companion = dag.companion().map(|dag| Box::new(alone(dag, String::new())));
        Self { companion, ..alone(dag, source) }
    }

    fn all(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(self.companion.as_deref())
    }
}

/// What became of the files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loaded {
    pub new_versions: Vec<String>,
    pub deactivated: Vec<String>,
    pub broken: Vec<String>,
}

/// Takes files that are new or changed, and forgets those that neither this scheduler has (`present`)
/// nor another live one: a folder that is incomplete or wrong switches nothing off.
pub async fn load(
    cx: &Cx,
    changed: &[DagFile],
    present: &BTreeSet<String>,
) -> Result<Loaded, EngineError> {
    let tx = cx.store.begin("load_dag_files").await?;
    dag::lock_files(&tx).await?;
    let mut loaded = Loaded::default();
    for file in changed {
        match &file.content {
            Ok(read) => {
                let mut taking = Taking { cx, tx: &tx, present, loaded: &mut loaded };
                taking.take(file, read).await?;
            }
            Err(errors) => {
                dag::set_import_error(&tx, &file.fileloc, Some(errors)).await?;
                loaded.broken.push(file.fileloc.clone());
            }
        }
    }
    let own = cx.own.as_ref().map(|own| own.job_id);
    if let Some(own) = own {
        dag::set_present(&tx, own, present).await?;
    }
    let elsewhere: BTreeSet<String> = dag::present_elsewhere(&tx, own).await?.into_iter().collect();
    for known in dag::files(&tx).await? {
        if !present.contains(&known) && !elsewhere.contains(&known) {
            dag::set_import_error(&tx, &known, None).await?;
            loaded.deactivated.extend(dag::deactivate(&tx, &known, &[]).await?);
        }
    }
    let lines = loaded.deactivated.iter().map(|dag_id| line("dag_deactivated", dag_id, ""));
    event::append(&tx, lines.collect()).await?;
    tx.commit().await?;
    if !loaded.new_versions.is_empty() {
        cx.wakes.engine();
    }
    Ok(loaded)
}

/// What the taking of one file works with.
struct Taking<'a> {
    cx: &'a Cx,
    tx: &'a Tx,
    present: &'a BTreeSet<String>,
    loaded: &'a mut Loaded,
}

impl Taking<'_> {
    /// Takes the DAG of a file, with its companion.
    async fn take(&mut self, file: &DagFile, read: &ReadDag) -> Result<(), EngineError> {
        let tx = self.tx;
        let mut known = Vec::new();
        for read in read.all() {
            let existing = dag::lock(tx, read.dag.dag_id.as_str()).await?;
            if let Some(errors) = self.defined_elsewhere(file, read, existing.as_ref()) {
                dag::set_import_error(tx, &file.fileloc, Some(&errors)).await?;
                self.loaded.broken.push(file.fileloc.clone());
                return Ok(());
            }
            known.push((read, existing));
        }
        dag::set_import_error(tx, &file.fileloc, None).await?;
        let ids: Vec<&str> = read.all().map(|read| read.dag.dag_id.as_str()).collect();
        self.loaded.deactivated.extend(dag::deactivate(tx, &file.fileloc, &ids).await?);
        for (read, existing) in known {
            self.take_one(file, read, existing).await?;
        }
        Ok(())
    }

    fn defined_elsewhere(
        &self,
        file: &DagFile,
        read: &ReadDag,
        existing: Option<&DagRow>,
    ) -> Option<Value> {
        let other = existing.filter(|row| row.is_active && row.fileloc != file.fileloc)?;
        let dag_id = read.dag.dag_id.as_str();
        self.present.contains(&other.fileloc).then(|| {
            serde_json::json!([{
                "path": file.fileloc, "line": 1, "column": 1, "severity": "error",
                "code": "duplicate-dag",
                "message": format!("`{dag_id}` is defined in {} already", other.fileloc),
                "hint": "give one of them another dag_id",
            }])
        })
    }

    async fn take_one(
        &mut self,
        file: &DagFile,
        read: &ReadDag,
        existing: Option<DagRow>,
    ) -> Result<(), EngineError> {
        let Self { cx, tx, loaded, .. } = self;
        let dag_id = read.dag.dag_id.as_str();
        let newest = dag::versions(tx, dag_id, 1).await?.into_iter().next();
        let same = newest.as_ref().is_some_and(|v| v.content_hash == read.content_hash);
        let unchanged = existing.as_ref().is_some_and(|row| row.is_active);
        if same && unchanged && existing.as_ref().is_some_and(|row| row.fileloc == file.fileloc) {
            return Ok(());
        }
        let (version, version_pk) = match newest {
            Some(newest) if same => (newest.version, newest.version_pk),
            newest => {
                let version = newest.map_or(1, |newest| newest.version + 1);
                let (hash, ir) = (&read.content_hash, &read.ir);
                let source = &read.source;
                let new = NewVersion { dag_id, version, content_hash: hash, ir, source };
                loaded.new_versions.push(dag_id.to_owned());
                (version, dag::insert_version(tx, new).await?)
            }
        };
        let (slot_cursor, next_slot_at) = place(cx, tx, &read.dag, existing.as_ref()).await?;
        let mut row = row(tx, file, &read.dag, existing, (version, version_pk));
        (row.slot_cursor, row.next_slot_at) = (slot_cursor, next_slot_at);
        dag::upsert(tx, &row).await?;
        note_assets(tx, &read.dag).await?;
        let what = line("dag_version", dag_id, &format!("version {version} from {}", file.fileloc));
        event::append(tx, vec![what]).await?;
        Ok(())
    }
}

/// Writes down which assets a DAG names. Events that are queued for it are kept, but those of assets that its schedule
/// names no more.
async fn note_assets(tx: &Tx, dag: &Dag) -> Result<(), EngineError> {
    let dag_id = dag.dag_id.as_str();
    let of = |role: &str, task_id: &str, asset: &str| Use {
        asset: asset.into(),
        role: role.into(),
        dag_id: dag_id.into(),
        task_id: task_id.into(),
    };
    let condition = dag.timing.schedule.assets();
    let named = condition.map(Condition::assets).unwrap_or_default();
    let mut all: Vec<Use> = named.into_iter().map(|asset| of("consumer", "", asset)).collect();
    for task in &dag.tasks {
        let task_id = task.task_id.as_str();
        all.extend(task.outlets.iter().map(|asset| of("producer", task_id, asset)));
        all.extend(task.inlets.iter().map(|asset| of("inlet", task_id, asset)));
    }
    uses::replace(tx, dag_id, &all).await?;
    let dropped = uses::unqueue(tx, dag_id).await?;
    if dropped > 0 {
        let why = format!("{dropped} queued events of assets that the schedule names no more");
        event::append(tx, vec![line("asset_events_dropped", dag_id, &why)]).await?;
    }
    Ok(())
}

/// The place of a schedule, and when to look at it. A DAG that runs on with the same schedule keeps
/// both: a slot that is due in this very moment is not lost to an edit of something else.
async fn place(
    cx: &Cx,
    tx: &Tx,
    dag: &Dag,
    existing: Option<&DagRow>,
) -> Result<(Option<Timestamp>, Option<Timestamp>), EngineError> {
    if let Some(row) = existing.filter(|row| row.is_active && !row.is_paused) {
        match cx.catalog.version(tx, row.version_pk).await {
            Ok(old) if old.dag.timing == dag.timing => {
                return Ok((row.slot_cursor, row.next_slot_at));
            }
            Ok(_) => {}
            Err(error) => drop(error.of_one_version()?),
        }
    }
    let cursor = existing.and_then(|row| row.slot_cursor);
    Ok(Calendar::new(&dag.timing)
        .map_or((cursor, None), |c| first_look(&c, dag.timing.catchup, cursor, tx.now())))
}

fn row(
    tx: &Tx,
    file: &DagFile,
    dag: &Dag,
    existing: Option<DagRow>,
    version: (i64, i64),
) -> DagRow {
    let now = tx.now();
    DagRow {
        dag_id: dag.dag_id.as_str().into(),
        version: version.0,
        version_pk: version.1,
        is_paused: existing.as_ref().map_or(dag.is_paused_upon_creation, |row| row.is_paused),
        is_active: true,
        fileloc: file.fileloc.clone(),
        owner: dag.owner.clone(),
        tags: Value::from(dag.tags.clone()),
        description: dag.description.clone(),
        schedule: schedule_text(&dag.timing.schedule),
        max_active_runs: dag.limits.max_active_runs.into(),
        max_active_tasks: dag.limits.max_active_tasks.into(),
        slot_cursor: None,
        next_slot_at: None,
        created_at: existing.as_ref().map_or(now, |row| row.created_at),
        updated_at: now,
        paused_by: existing.and_then(|row| row.paused_by),
    }
}

/// The schedule as people read it.
fn schedule_text(schedule: &Schedule) -> String {
    match schedule {
        Schedule::Manual => String::new(),
        Schedule::Cron(list) => list.join(", "),
        Schedule::Every(span) => format!("every {span}"),
        Schedule::At(at) => format!("at {at}"),
        Schedule::Assets(condition) => format!("assets: {condition}"),
    }
}

fn line(kind: &'static str, dag_id: &str, reason: &str) -> Event {
    Event {
        kind,
        dag_id: Some(dag_id.into()),
        actor: log::SCHEDULER.into(),
        reason: (!reason.is_empty()).then(|| reason.into()),
        ..Event::default()
    }
}
