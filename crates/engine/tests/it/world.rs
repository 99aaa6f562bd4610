//! A small world around the engine: everything that it gets from outside, under the test's control.
//!
//! What survives a crash (the store's file, the processes of tasks, the ledger) is kept apart from
//! what does not (the context with its caches, the workers' memories). After every turn the audit
//! of the store and the books (see `books`) must find nothing.

mod books;
mod by_hand;
mod faults;
mod leases;
mod machine;
mod passes;
mod post;
mod surroundings;
mod views;
mod worker;

pub(crate) use faults::{Faults, Kind, Trip};
pub(crate) use leases::{BEAT, SCAN, TTL, declare, declare_lost, lease};
pub(crate) use machine::{Act, Machine, What, defers, exit, gone, says, stay};
pub(crate) use passes::Seen;
pub(crate) use post::{Delivering, Post};
pub(crate) use surroundings::{Place, Random};
pub(crate) use views::{kind_of, shown};
pub(crate) use worker::{Desk, Worker, end_report};

use fencepost_core::state::{Reprocess, TiState};
use fencepost_core::time::{Span, Timestamp};
use fencepost_engine::error::EngineError;
use fencepost_engine::operations::backfill::BackfillRequest;
use fencepost_engine::operations::clear::{ClearRequest, Cleared, clear};
use fencepost_engine::operations::dag_files::{self, DagFile, Loaded, ReadDag};
use fencepost_engine::operations::mark::{MarkRequest, mark};
use fencepost_engine::operations::run_control;
use fencepost_engine::operations::trigger::{TriggerRequest, trigger};
use fencepost_engine::{Cx, Settings};
use fencepost_store::Store;
use fencepost_store::query::run::Run;
use fencepost_store::query::{installation, pool};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use surroundings::Clock;

/// What each process of a task does.
pub(crate) type Script = Arc<dyn Fn(&What) -> Act + Send + Sync>;

pub(crate) struct World {
    pub(crate) cx: Cx,
    pub(crate) clock: Clock,
    pub(crate) faults: Faults,
    pub(crate) random: Random,
    pub(crate) workers: Vec<Worker>,
    pub(crate) machine: Machine,
    pub(crate) script: Script,
    /// What the outbox was asked to do.
    pub(crate) effects: Arc<Mutex<Vec<String>>>,
    /// DAG files that exist.
    pub(crate) present: BTreeSet<String>,
    /// Versions that contain one of these texts cannot be decoded.
    pub(crate) undecodable: Arc<Mutex<BTreeSet<String>>>,
    /// DAGs whose `max_active_runs` was lowered while more were active.
    pub(crate) lowered: BTreeSet<String>,
    /// The books are looked at after each turn; a test that plays many worlds does so itself.
    pub(crate) checks: bool,
    /// What triggerers see.
    pub(crate) looker: Seen,
    /// Whoever is told.
    pub(crate) post: Post,
    /// Schedulers that watch leases, and servers that are heard: none in a standalone.
    pub(crate) watchers: Vec<leases::Watcher>,
    pub(crate) servers: Vec<leases::Beater>,
    settings: Settings,
    epoch: u32,
    pub(crate) place: Place,
}

impl World {
    /// A world with one DAG file per text, named `dag0.yaml`, `dag1.yaml`, ..., and one worker.
    pub(crate) async fn of(files: &[&str]) -> Self {
        Self::with(files, Self::settings(), 1).await
    }

    /// The ramp of recovered work is the subject of its own tests: in the others it lets all go at once.
    pub(crate) fn settings() -> Settings {
        Settings { recovery_initial: 100, ..Settings::default() }
    }

    pub(crate) async fn with(files: &[&str], settings: Settings, seed: u64) -> Self {
        Self::at(Place::new(), files, settings, seed).await
    }

    /// A world whose store is in that place.
    pub(crate) async fn at(place: Place, files: &[&str], settings: Settings, seed: u64) -> Self {
        let clock = Clock::at("2026-03-01T00:00:00Z");
        let (faults, random) = (Faults::default(), Random::of(seed));
        let undecodable = Arc::default();
        let store = place.open(&clock, faults.hooks()).unwrap();
        let env = surroundings::env(&clock, &random, &undecodable);
        let mut world = Self {
            cx: Cx::new(store, env, settings),
            clock,
            faults,
            random,
            workers: vec![Worker::new("one", &["default"], 8)],
            machine: Machine::default(),
            script: Arc::new(|_| exit(0)),
            effects: Arc::default(),
            present: BTreeSet::new(),
            undecodable,
            lowered: BTreeSet::new(),
            checks: true,
            looker: Seen::default(),
            post: Post::default(),
            watchers: Vec::new(),
            servers: Vec::new(),
            settings,
            epoch: 0,
            place,
        };
        world.prepare().await.unwrap();
        for (n, text) in files.iter().enumerate() {
            world.load(&format!("dag{n}.yaml"), text).await;
        }
        world
    }

    /// Another world that begins where this one, which has done nothing but load files, stands.
    /// (Worlds on a server are not copied.)
    pub(crate) fn fork(&self) -> Self {
        let folder = surroundings::folder();
        let Place::Folder(own) = &self.place else { panic!("a world of a file is copied") };
        for entry in std::fs::read_dir(own.path()).unwrap() {
            let from = entry.unwrap().path();
            std::fs::copy(&from, folder.path().join(from.file_name().unwrap())).unwrap();
        }
        let (clock, faults) = (Clock::standing_at(self.now()), Faults::default());
        let (random, undecodable) = (Random::of(1), Arc::default());
        let place = Place::Folder(folder);
        let store = place.open(&clock, faults.hooks()).unwrap();
        let env = surroundings::env(&clock, &random, &undecodable);
        Self {
            cx: Cx::new(store, env, self.settings),
            clock,
            faults,
            random,
            workers: self.workers.clone(),
            machine: Machine::default(),
            script: Arc::clone(&self.script),
            effects: Arc::default(),
            present: self.present.clone(),
            undecodable,
            lowered: BTreeSet::new(),
            checks: false,
            looker: Seen::default(),
            post: Post::default(),
            watchers: Vec::new(),
            servers: Vec::new(),
            settings: self.settings,
            epoch: self.epoch,
            place,
        }
    }

    /// What another process works with, on the same store.
    pub(crate) fn another(&self, locks: bool) -> Cx {
        let hooks = fencepost_core::hook::Hooks::none();
        let store = self.place.open_with(&self.clock, hooks, locks).unwrap();
        let env = surroundings::env(&self.clock, &self.random, &self.undecodable);
        Cx::new(store, env, self.settings)
    }

    /// The rows that a start writes: a new epoch each time.
    async fn prepare(&mut self) -> Result<(), EngineError> {
        let tx = self.cx.store.begin("prepare").await?;
        installation::make(&tx, "test").await?;
        pool::make(&tx, "default_pool", 128, "").await?;
        self.epoch += 1;
        installation::raise_epoch(&tx, self.epoch).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Everything in memory is gone, and another process opens the same file.
    pub(crate) async fn restart(&mut self) {
        self.faults.up();
        let store: Store = self.place.open(&self.clock, self.faults.hooks()).unwrap();
        let env = surroundings::env(&self.clock, &self.random, &self.undecodable);
        self.cx = Cx::new(store, env, self.settings);
        for worker in &mut self.workers {
            worker.forget();
        }
        // A second crash may fall into the start itself.
        while self.prepare().await.is_err() {
            self.faults.up();
        }
    }

    /// Writes a DAG file and loads it.
    pub(crate) async fn load(&mut self, name: &str, text: &str) -> Loaded {
        self.present.insert(name.into());
        let file = DagFile { fileloc: name.into(), content: Ok(read(name, text)) };
        dag_files::load(&self.cx, &[file], &self.present).await.unwrap()
    }

    /// Removes a DAG file.
    pub(crate) async fn remove(&mut self, name: &str) -> Loaded {
        self.present.remove(name);
        dag_files::load(&self.cx, &[], &self.present).await.unwrap()
    }

    pub(crate) fn script(&mut self, script: impl Fn(&What) -> Act + Send + Sync + 'static) {
        self.script = Arc::new(script);
    }

    pub(crate) async fn trigger(&self, dag_id: &str, run_id: &str) -> Run {
        trigger(&self.cx, request(dag_id, run_id)).await.unwrap()
    }

    pub(crate) async fn cancel(&self, dag_id: &str, run_id: &str) {
        run_control::cancel(&self.cx, dag_id, run_id, false, "me").await.unwrap();
    }

    /// Clears tasks of a run (none named: all).
    pub(crate) async fn clear(&self, dag_id: &str, run_id: &str, tasks: &[&str]) -> Vec<Cleared> {
        self.clear_by(ClearRequest { tasks: names(tasks), ..clears(dag_id, run_id) }).await
    }

    pub(crate) async fn clear_by(&self, request: ClearRequest) -> Vec<Cleared> {
        clear(&self.cx, &request).await.unwrap()
    }

    /// Marks a task (`task` or `task[3]`).
    pub(crate) async fn mark(&self, dag_id: &str, run_id: &str, name: &str, state: TiState) {
        let (task_id, map_index) = match name.split_once('[') {
            Some((task, rest)) => (task, Some(rest.trim_end_matches(']').parse().unwrap())),
            None => (name, None),
        };
        let request = MarkRequest {
            dag_id: dag_id.into(),
            run_id: run_id.into(),
            task_id: task_id.into(),
            map_index,
            state,
            dry_run: false,
            only_held: false,
            by: "me".into(),
        };
        mark(&self.cx, &request).await.unwrap();
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn pass_time(&self, span: Span) {
        self.clock.step(span);
    }
}

pub(crate) fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

/// A clear of a whole run.
pub(crate) fn clears(dag_id: &str, run_id: &str) -> ClearRequest {
    ClearRequest {
        dag_id: dag_id.into(),
        run_id: run_id.into(),
        by: "me".into(),
        ..ClearRequest::default()
    }
}

/// A backfill of all slots between two dates, one at a time.
pub(crate) fn backfills(dag_id: &str, from: &str, to: &str) -> BackfillRequest {
    BackfillRequest {
        dag_id: dag_id.into(),
        from_date: from.into(),
        to_date: to.into(),
        reprocess: Reprocess::None,
        max_active_runs: 1,
        backwards: false,
        params: serde_json::Map::new(),
        conf: serde_json::Value::Null,
        by: "me".into(),
    }
}

/// A run of that name, now.
pub(crate) fn request(dag_id: &str, run_id: &str) -> TriggerRequest {
    TriggerRequest {
        dag_id: dag_id.into(),
        run_id: Some(run_id.into()),
        by: "me".into(),
        ..TriggerRequest::default()
    }
}

/// A DAG file as the DAG folder hands it in.
pub(crate) fn read(name: &str, text: &str) -> ReadDag {
    let parsed = fencepost_dagfile::parse(text.as_bytes(), name);
    let dag = parsed.dag.unwrap_or_else(|| panic!("{:?}\n{text}", parsed.diagnostics));
    ReadDag::new(dag, text.into(), |dag| {
        (fencepost_dagfile::content_hash(dag), fencepost_dagfile::ir(dag))
    })
}

/// Counts of words, for assertions about many instances.
pub(crate) fn tally<'a>(words: impl IntoIterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
    let mut out = BTreeMap::new();
    for word in words {
        *out.entry(word).or_default() += 1;
    }
    out
}
