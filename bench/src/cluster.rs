//! An installation as it is deployed, without processes: a scheduler and a server on one store, each
//! with its own connections, and drivers that claim, start and complete over the execution API
//! without running anything.

use crate::stores::Place;
use crate::{Rig, instant};
use anyhow::Context as _;
use fencepost_api::execution::{
    Answer, Ended, ExecutionApi, Poll, Register, Report as EndReport, Start,
};
use fencepost_api::problem::Problem;
use fencepost_engine::dispatcher::Dispatcher;
use fencepost_engine::drive::{SharedHealth, drive};
use fencepost_engine::reaper::Reaper;
use fencepost_engine::scheduler::Scheduler;
use fencepost_engine::{Cx, Pass, Settings};
use fencepost_server::execution::Execution;
use fencepost_server::render::Renderer;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Attempts that a driver takes at a time.
const BATCH: u32 = 100;

/// The roles of an installation. On SQLite they share one handle, as a standalone's do.
pub struct Cluster {
    pub rig: Rig,
    server: Cx,
}

impl Cluster {
    /// Opens the store and prepares it, with a pool of that many slots.
    pub async fn new(place: &Place, slots: i64) -> anyhow::Result<Self> {
        let rig = Rig::on(place.open("scheduler").await?, slots).await?;
        let server = match place {
            Place::Sqlite(_) => rig.cx.clone(),
            Place::Postgres(_) => {
                Cx::new(place.open("server").await?, rig.cx.env.clone(), Settings::default())
            }
        };
        Ok(Self { rig, server })
    }

    /// Runs scheduler and drivers until so many instances are completed; how long it took.
    pub async fn complete(&self, instances: usize, drivers: usize) -> anyhow::Result<Duration> {
        let (stop, stopped) = watch::channel(false);
        let passes: Vec<Box<dyn Pass>> =
            vec![Box::new(Scheduler), Box::new(Dispatcher), Box::new(Reaper)];
        let health = SharedHealth::default();
        let done = Arc::new(AtomicUsize::new(0));
        let began = instant();
        let scheduler =
            tokio::spawn(drive(self.rig.cx.clone(), passes, Arc::clone(&health), stopped));
        let mut all = tokio::task::JoinSet::new();
        for n in 0..drivers {
            let api = Arc::new(Execution::new(self.server.clone(), Renderer::without_keys()));
            let driver = Driver::new(api, self.rig.cx.env.job_id().to_string());
            let done = Arc::clone(&done);
            all.spawn(async move { driver.run(n, &done, instances).await });
        }
        while let Some(driver) = all.join_next().await {
            driver??;
        }
        let took = began.elapsed();
        stop.send(true).context("the scheduler has ended")?;
        self.rig.cx.wakes.engine();
        scheduler.await?;
        Ok(took)
    }
}

/// A worker that runs nothing.
pub struct Driver {
    api: Arc<dyn ExecutionApi>,
    job_id: String,
    starts: u64,
    lease_ttl_ms: Option<i64>,
}

fn failed(problem: Problem) -> anyhow::Error {
    anyhow::anyhow!("{problem:?}")
}

impl Driver {
    /// One that is not registered yet.
    pub fn new(api: Arc<dyn ExecutionApi>, job_id: String) -> Self {
        Self { api, job_id, starts: 0, lease_ttl_ms: None }
    }

    /// The same with the lease that workers have by default.
    pub fn leased(self) -> Self {
        Self { lease_ttl_ms: Some(300_000), ..self }
    }

    pub fn job_id(&self) -> &str {
        &self.job_id
    }

    /// Registers it, under a number.
    pub async fn register(&self, n: usize) -> anyhow::Result<()> {
        self.api.register(self.registration(n)).await.map(drop).map_err(failed)
    }

    async fn run(mut self, n: usize, done: &AtomicUsize, instances: usize) -> anyhow::Result<()> {
        self.register(n).await?;
        let mut last_work = instant();
        while done.load(Ordering::Relaxed) < instances {
            let polled = self.api.poll(self.poll()).await.map_err(failed)?;
            let tokens: Vec<String> = polled.assignments.into_iter().map(|a| a.token).collect();
            if tokens.is_empty() {
                anyhow::ensure!(!is_stuck(last_work), "nothing to do for too long");
                continue;
            }
            last_work = instant();
            let starts = tokens.iter().map(|token| self.start(token)).collect();
            accepted(self.api.start(&self.job_id, starts).await.map_err(failed)?)?;
            let reports = tokens.iter().map(|token| report(token)).collect();
            accepted(self.api.report(&self.job_id, reports).await.map_err(failed)?)?;
            done.fetch_add(tokens.len(), Ordering::Relaxed);
        }
        Ok(())
    }

    fn registration(&self, n: usize) -> Register {
        Register {
            job_id: self.job_id.clone(),
            name: format!("driver-{n}"),
            host: "bench".into(),
            pid: 1,
            pid_start: 1,
            boot_id: "boot".into(),
            machine_id: "machine".into(),
            home_id: format!("home-{}", self.job_id),
            registration: 0,
            version: "0".into(),
            queues: vec!["default".into()],
            slots: BATCH,
            lease_ttl_ms: self.lease_ttl_ms,
        }
    }

    fn poll(&self) -> Poll {
        Poll {
            job_id: self.job_id.clone(),
            call: 0,
            held: Vec::new(),
            free_slots: BATCH,
            queues: vec!["default".into()],
            wait_ms: 200,
            known_stops: Vec::new(),
        }
    }

    fn start(&mut self, token: &str) -> Start {
        self.starts += 1;
        let start_id = format!("{}:{}", self.job_id, self.starts);
        Start { token: token.into(), start_id, boot_id: "boot".into(), call: 0 }
    }
}

fn is_stuck(since: Instant) -> bool {
    since.elapsed() > Duration::from_mins(1)
}

fn report(token: &str) -> EndReport {
    EndReport {
        token: token.into(),
        ended: Ended::Exit { code: 0 },
        asked: None,
        outputs: Vec::new(),
        level: None,
        message: None,
        oom: false,
        checkpoint: None,
    }
}

fn accepted(answers: Vec<Answer>) -> anyhow::Result<()> {
    let refused = answers.iter().find(|answer| **answer != Answer::Accepted);
    refused.map_or(Ok(()), |answer| Err(anyhow::anyhow!("refused: {answer:?}")))
}
