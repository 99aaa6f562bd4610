//! Time, randomness, the template engine, and a folder for the store.

use fencepost_core::dag::{Dag, Elements};
use fencepost_core::hook::Hooks;
use fencepost_core::plan::runs::map_element;
use fencepost_core::time::{BootInstant, Span, Timestamp};
use fencepost_dagfile::template::{Context, Happened, HappenedTo, evaluate, render, value_of};
use fencepost_engine::env::Env;
use fencepost_engine::facts::{Facts, Telling};
use fencepost_store::{PgOptions, Store, StoreClock, StoreError, migrate_postgres};
use fencepost_testing::Database;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use tempfile::TempDir;

/// A clock that stands still until it is moved: the store's wall clock, and this host's boot time.
#[derive(Clone)]
pub(crate) struct Clock {
    wall: Arc<AtomicI64>,
    boot: Arc<AtomicI64>,
}

impl Clock {
    pub(crate) fn at(text: &str) -> Self {
        Self::standing_at(text.parse().unwrap())
    }
    pub(crate) fn standing_at(at: Timestamp) -> Self {
        Self { wall: Arc::new(AtomicI64::new(at.as_micros())), boot: Arc::default() }
    }
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.wall.load(Ordering::SeqCst))
    }
    pub(crate) fn boottime(&self) -> BootInstant {
        BootInstant::from_micros(self.boot.load(Ordering::SeqCst))
    }
    pub(crate) fn step(&self, span: Span) {
        self.wall.fetch_add(span.as_micros(), Ordering::SeqCst);
        self.boot.fetch_add(span.as_micros(), Ordering::SeqCst);
    }
    /// Sets the store's clock only, as a person or a time server does.
    pub(crate) fn jump(&self, span: Span) {
        self.wall.fetch_add(span.as_micros(), Ordering::SeqCst);
    }
    pub(crate) fn set(&self, at: Timestamp) {
        self.step(at.since(self.now()));
    }
}

/// Numbers that follow from a seed (SplitMix64). Clones draw from the same row.
#[derive(Clone)]
pub(crate) struct Random(Arc<Mutex<u64>>);

impl Random {
    pub(crate) fn of(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))))
    }
    pub(crate) fn next(&self) -> u64 {
        let mut state = self.0.lock().unwrap();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub(crate) fn below(&self, end: usize) -> usize {
        usize::try_from(self.next() % (end.max(1) as u64)).unwrap()
    }
    pub(crate) fn chance(&self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}

/// A folder in memory where there is one: a sync of the disk is not what is tested here.
pub(crate) fn folder() -> TempDir {
    let in_memory = Path::new("/dev/shm");
    if in_memory.is_dir() {
        tempfile::tempdir_in(in_memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

/// Where a world's store is. With `FENCEPOST_TEST_STORE=postgres` it is a database of its own on a
/// temporary server, so the same tests show that both stores do the same.
pub(crate) enum Place {
    Folder(TempDir),
    Database(Database),
}

impl Place {
    #[expect(clippy::disallowed_methods, reason = "a person chooses the store of all tests")]
    pub(crate) fn new() -> Self {
        let chosen = std::env::var("FENCEPOST_TEST_STORE");
        if chosen.is_ok_and(|name| name == "postgres") { Self::database() } else { Self::folder() }
    }

    pub(crate) fn folder() -> Self {
        Self::Folder(folder())
    }

    pub(crate) fn database() -> Self {
        let name = fencepost_store::schema_checksum();
        let made = Database::from_template(&name[..16], |url| {
            let url = url.to_owned();
            apart(move || async move { migrate_postgres(&url, options(None)).await.unwrap() });
        });
        Self::Database(made.unwrap())
    }

    pub(crate) fn open(&self, clock: &Clock, hooks: Hooks) -> Result<Store, StoreError> {
        self.open_with(clock, hooks, true)
    }

    /// `locks`: what is decided on is locked (PostgreSQL).
    pub(crate) fn open_with(
        &self,
        clock: &Clock,
        hooks: Hooks,
        locks: bool,
    ) -> Result<Store, StoreError> {
        let clock = clock.clone();
        let clock = StoreClock::new(move || clock.now());
        match self {
            Self::Folder(folder) => {
                Store::open_sqlite(&folder.path().join("store.db"), clock, hooks)
            }
            Self::Database(database) => {
                let url = database.url().to_owned();
                apart(move || async move {
                    let options = PgOptions { locks, ..options(Some(clock)) };
                    Store::open_postgres(&url, options, hooks).await
                })
            }
        }
    }
}

fn options(clock: Option<StoreClock>) -> PgOptions {
    // A busy machine may let a test wait in the middle of a transaction for longer than a role.
    let guard = Span::from_mins(1);
    PgOptions { clock, guard, ..PgOptions::new("fencepost-test", || Span::ZERO) }
}

/// Runs a future from code that is not async, on a runtime that stays: connections live in it.
pub(crate) fn apart<T: Send + 'static, F: Future<Output = T>>(
    work: impl FnOnce() -> F + Send + 'static,
) -> T {
    static STAYS: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
    });
    std::thread::spawn(move || STAYS.block_on(work())).join().unwrap()
}

pub(crate) fn env(
    clock: &Clock,
    random: &Random,
    undecodable: &Arc<Mutex<BTreeSet<String>>>,
) -> Env {
    let (random, undecodable) = (random.clone(), Arc::clone(undecodable));
    let (clock, boot) = (clock.clone(), clock.clone());
    Env {
        wall: Arc::new(move || clock.now()),
        boottime: Arc::new(move || boot.boottime()),
        random: Arc::new(move || random.next()),
        decode: Arc::new(move |ir| {
            let text = ir.to_string();
            let broken = undecodable.lock().unwrap();
            if let Some(mark) = broken.iter().find(|mark| text.contains(mark.as_str())) {
                return Err(format!("{mark}: of another age"));
            }
            let dag = fencepost_dagfile::from_ir(ir).map_err(|error| error.to_string())?;
            Ok(emptied(dag))
        }),
        evaluate: Arc::new(condition),
        value: Arc::new(|key, expression, facts| {
            value_of(key, expression, &context(facts)).map_err(|error| error.to_string())
        }),
        render: Arc::new(|text, facts| {
            render("wait", text, &context(facts)).map_err(|error| error.to_string())
        }),
    }
}

/// No file can say an empty list; lists of other sources will be able to.
fn emptied(mut dag: Dag) -> Dag {
    if dag.description == "empty lists" {
        for task in &mut dag.tasks {
            for (_, elements) in &mut task.expand {
                *elements = Elements::List(Vec::new());
            }
        }
    }
    dag
}

fn condition(expression: &str, facts: &Facts) -> Result<bool, String> {
    evaluate(expression, &context(facts)).map_err(|error| error.to_string())
}

fn context(facts: &Facts) -> Context {
    let object = |value: &serde_json::Value| value.as_object().cloned().unwrap_or_default();
    let task = &facts.version.dag.tasks[facts.ti.key.task_index as usize];
    Context {
        dag_id: facts.run.dag_id.clone(),
        task_id: facts.ti.task_id.clone(),
        run_id: facts.run.run_id.clone(),
        run_type: facts.run.run_type.as_str().into(),
        logical_date: facts.run.logical_date,
        params: object(&facts.run.params),
        conf: object(&facts.run.conf),
        outputs: facts.outputs.clone(),
        mapped: map_element(task, facts.ti.key.map_index).into_iter().collect(),
        happened: facts.telling.as_ref().map(|telling| happened(telling, facts)),
        ..Context::default()
    }
}

fn happened(telling: &Telling, facts: &Facts) -> Happened {
    Happened {
        occasion: telling.occasion.as_str().into(),
        reason: telling.reason.clone(),
        run_url: telling.run_url.clone(),
        instance: telling.is_of_instance.then(|| HappenedTo {
            try_number: telling.try_number,
            max_tries: facts.ti.max_tries,
            attempt_id: telling.attempt_id.clone(),
            fencing_token: telling.token.map(|token| token.as_i64().to_string()),
            lost_evidence: telling.evidence.clone(),
        }),
    }
}
