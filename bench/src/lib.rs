//! What the benches share. Here: an engine driven by hand, with a worker that claims and completes without
//! starting processes. So the figures are those of the engine and the store.

pub mod cluster;
pub mod floor;
pub mod history;
pub mod roles;
pub mod statements;
pub mod stores;
pub mod watched;

use fencepost_core::id::{JobId, Token};
use fencepost_core::state::JobKind;
use fencepost_core::time::BootInstant;
use fencepost_core::verdict::Ending;
use fencepost_dagfile::{content_hash, from_ir, ir, parse};
use fencepost_engine::dispatcher::Dispatcher;
use fencepost_engine::env::Env;
use fencepost_engine::operations::dag_files::{self, DagFile, ReadDag};
use fencepost_engine::operations::register::{self, Identity};
use fencepost_engine::operations::report::{self, EndReport};
use fencepost_engine::operations::start::{self, StartRequest};
use fencepost_engine::operations::trigger::{self, TriggerRequest};
use fencepost_engine::operations::{Answer, claim};
use fencepost_engine::reaper::Reaper;
use fencepost_engine::scheduler::Scheduler;
use fencepost_engine::{Cx, Pass, Settings};
use fencepost_server::render::Renderer;
use fencepost_store::Store;
use fencepost_store::query::{installation, pool};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Attempts that the worker takes at a time.
const BATCH: u32 = 128;

/// An engine, and the worker that drives it.
pub struct Rig {
    pub cx: Cx,
    pub job: JobId,
    starts: u64,
}

/// The instant.
#[expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
pub fn instant() -> Instant {
    Instant::now()
}

/// Waits.
#[expect(clippy::disallowed_methods, reason = "a bench waits")]
pub async fn pause(span: Duration) {
    tokio::time::sleep(span).await;
}

/// Prints a line of a table.
#[expect(clippy::print_stdout, reason = "a bench prints its table")]
pub fn out(line: &str) {
    println!("{line}");
}

/// The number after an argument of that name.
pub fn argument(name: &str) -> Option<usize> {
    let mut arguments = std::env::args();
    arguments.find(|argument| argument == name)?;
    arguments.next()?.parse().ok()
}

/// Whether there is an argument of that name.
pub fn is_asked(name: &str) -> bool {
    std::env::args().any(|argument| argument == name)
}

pub(crate) fn wall() -> fencepost_core::time::Timestamp {
    #[expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
    let now = std::time::SystemTime::now();
    let micros = now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_micros();
    fencepost_core::time::Timestamp::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}

impl Rig {
    /// On a store that is migrated and empty.
    pub async fn on(store: Store, slots: i64) -> anyhow::Result<Self> {
        let random = AtomicU64::new(1);
        let (evaluate, value, render) = Renderer::without_keys().functions();
        let env = Env {
            wall: Arc::new(wall),
            boottime: Arc::new(|| BootInstant::from_micros(wall().as_micros())),
            random: Arc::new(move || {
                random.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed).rotate_left(17)
            }),
            decode: Arc::new(|ir| from_ir(ir).map_err(|error| error.to_string())),
            evaluate,
            value,
            render,
        };
        let cx = Cx::new(store, env, Settings::default());
        let tx = cx.store.begin("prepare").await?;
        installation::make(&tx, "bench").await?;
        pool::make(&tx, "default_pool", slots, "").await?;
        tx.commit().await?;
        let job = cx.env.job_id();
        let rig = Self { cx, job, starts: 0 };
        register::register(&rig.cx, &rig.identity()).await?;
        Ok(rig)
    }

    fn identity(&self) -> Identity {
        Identity {
            job_id: self.job,
            kind: JobKind::Worker,
            name: "bench".into(),
            host: "bench".into(),
            pid: 1,
            pid_start: 1,
            boot_id: "boot".into(),
            machine_id: "machine".into(),
            home_id: "home".into(),
            registration: 0,
            version: "0".into(),
            queues: vec!["default".into()],
            slots: 128,
            lease_ttl: None,
        }
    }

    /// Loads a DAG file.
    pub async fn load(&self, dag_id: &str, yaml: &str) -> anyhow::Result<()> {
        let fileloc = format!("{dag_id}.yaml");
        let parsed = parse(yaml.as_bytes(), &fileloc);
        let dag = parsed.dag.ok_or_else(|| anyhow::anyhow!("{:?}", parsed.diagnostics))?;
        let read = ReadDag::new(dag, yaml.into(), |dag| (content_hash(dag), ir(dag)));
        let present = BTreeSet::from([fileloc.clone()]);
        dag_files::load(&self.cx, &[DagFile { fileloc, content: Ok(read) }], &present).await?;
        Ok(())
    }

    /// Triggers a run.
    pub async fn trigger(&self, dag_id: &str) -> anyhow::Result<()> {
        let request =
            TriggerRequest { dag_id: dag_id.into(), by: "bench".into(), ..Default::default() };
        trigger::trigger(&self.cx, request).await?;
        Ok(())
    }

    /// Triggers so many runs of a DAG and completes them; the task instances completed, and how long.
    pub async fn runs(&mut self, dag_id: &str, count: usize) -> anyhow::Result<(usize, Duration)> {
        for _ in 0..count {
            self.trigger(dag_id).await?;
        }
        let ran = self.run_dry().await?;
        anyhow::ensure!(ran.0 > 0, "nothing ran");
        Ok(ran)
    }

    /// The same, as microseconds per instance.
    pub async fn cost(&mut self, dag_id: &str, count: usize) -> anyhow::Result<f64> {
        let (done, took) = self.runs(dag_id, count).await?;
        Ok(micros_per(done, took))
    }

    /// Turns passes and worker until nothing moves; the task instances completed, and how long.
    async fn run_dry(&mut self) -> anyhow::Result<(usize, Duration)> {
        let began = instant();
        let mut done = 0;
        loop {
            let mut moved = Scheduler.pass(&self.cx).await?.moved;
            moved += Dispatcher.pass(&self.cx).await?.moved;
            moved += Reaper.pass(&self.cx).await?.moved;
            let completed = self.complete(BATCH).await?;
            done += completed;
            if moved + completed == 0 {
                return Ok((done, began.elapsed()));
            }
        }
    }

    /// Claims, starts and completes one batch; how many.
    async fn complete(&mut self, batch: u32) -> anyhow::Result<usize> {
        let queues = ["default".to_owned()];
        let wants = claim::Wants { call: 0, held: &[], queues: &queues, free_slots: batch };
        let work = claim::claim(&self.cx, self.job, &wants).await?;
        let tokens: Vec<Token> = work.claimed.iter().map(|(attempt, _)| attempt.token).collect();
        if tokens.is_empty() {
            return Ok(0);
        }
        let renderer = Renderer::without_keys();
        for (_, facts) in &work.claimed {
            let facts = facts.as_ref().map_err(|why| anyhow::anyhow!("{why}"))?;
            renderer.work(facts).map_err(|e| anyhow::anyhow!("{e}"))?;
        }
        let starts: Vec<StartRequest> = tokens
            .iter()
            .map(|token| {
                self.starts += 1;
                let (start_id, boot_id) = (self.starts.to_string(), "boot".into());
                StartRequest { token: *token, start_id, boot_id, call: 0 }
            })
            .collect();
        start::start(&self.cx, self.job, &starts).await?;
        let reports = tokens.iter().map(|token| ended(*token)).collect();
        let answers = report::report(&self.cx, self.job, reports).await?;
        anyhow::ensure!(answers.iter().all(|a| *a == Answer::Accepted), "refused: {answers:?}");
        Ok(tokens.len())
    }
}

/// The report of a success.
pub fn ended(token: Token) -> EndReport {
    EndReport {
        token,
        ending: Ending::Exit(0),
        asked: None,
        outputs: Vec::new(),
        level: None,
        message: None,
        exit_code: Some(0),
        signal: None,
        evidence: None,
        checkpoint: None,
        digest: token.to_string(),
    }
}

/// A DAG of a root, `width` tasks below it, and a join of them all.
pub fn fan(width: usize) -> String {
    let mut yaml =
        String::from("max_active_tasks: 100000\ntasks:\n  root: {command: [\"true\"]}\n");
    for n in 0..width {
        yaml.push_str(&format!("  t{n:05}: {{command: [\"true\"], depends_on: [root]}}\n"));
    }
    let all: Vec<String> = (0..width).map(|n| format!("t{n:05}")).collect();
    yaml.push_str(&format!("  join: {{command: [\"true\"], depends_on: [{}]}}\n", all.join(", ")));
    yaml
}

/// A DAG of `length` tasks, each after the one before it.
pub fn chain(length: usize) -> String {
    let mut yaml = String::from("tasks:\n  t00000: {command: [\"true\"]}\n");
    for n in 1..length {
        let before = n - 1;
        yaml.push_str(&format!("  t{n:05}: {{command: [\"true\"], depends_on: [t{before:05}]}}\n"));
    }
    yaml
}

/// Microseconds a task instance.
pub fn micros_per(done: usize, took: Duration) -> f64 {
    took.as_secs_f64() * 1e6 / done.max(1) as f64
}

/// The smallest of some figures: what the machine can do when nobody else uses it.
pub fn best(figures: &[f64]) -> f64 {
    figures.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The largest of some figures.
pub fn most(figures: &[f64]) -> f64 {
    figures.iter().copied().fold(0.0, f64::max)
}

/// A DAG of `width` tasks that know nothing of each other.
pub fn independent(width: usize) -> String {
    let mut yaml = String::from("max_active_tasks: 1000000\nmax_active_runs: 1000\ntasks:\n");
    for n in 0..width {
        yaml.push_str(&format!("  t{n:05}: {{command: [\"true\"]}}\n"));
    }
    yaml
}

/// A DAG of ten tasks: a root, eight below it, and a join.
pub fn ten_tasks() -> String {
    format!("max_active_runs: 100000\n{}", fan(8))
}
