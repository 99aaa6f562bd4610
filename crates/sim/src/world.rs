//! A world: schedulers, servers and workers as processes over one store, and the machines of the
//! workers.

use crate::net::{Network, Port};
use crate::os::{Os, SimHost};
use crate::process::{Body, Process};
use crate::roles;
use crate::sim::Sim;
use fencepost_core::lease::Lease;
use fencepost_core::time::Span;
use fencepost_engine::error::EngineError;
use fencepost_engine::operations::dag_files::{self, DagFile, ReadDag};
use fencepost_store::query::{installation, pool};
use fencepost_worker::clock::ClockKind;
use fencepost_worker::supervisor::{Identity, Settings, Supervisor};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How many of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub schedulers: usize,
    pub servers: usize,
    pub workers: usize,
    pub slots: u32,
    /// Of the leases of workers, in seconds: shorter than the default, so that they run out.
    pub worker_ttl: i64,
}

impl Shape {
    /// One of each.
    pub const ONE: Self = Self { schedulers: 1, servers: 1, workers: 1, slots: 8, worker_ttl: 90 };
}

/// The processes of a world. Clones are the same.
#[derive(Clone)]
pub struct World {
    pub sim: Sim,
    pub schedulers: Vec<Process>,
    pub servers: Vec<Process>,
    pub workers: Vec<Worker>,
}

/// A worker with its machine and its way to the servers. Clones are the same.
#[derive(Clone)]
pub struct Worker {
    pub process: Process,
    pub os: Os,
    pub net: Network,
    /// Sent true: the incarnation that runs stops in order.
    pub stop: Arc<watch::Sender<bool>>,
    parts: WorkerParts,
    restart: Duration,
}

impl Worker {
    /// One more process in the home of this one, which lives: what the lock of a home prevents.
    pub fn rival(&self) -> Process {
        let parts = WorkerParts {
            name: format!("{} rival", self.parts.name),
            stop: Arc::new(watch::channel(false).0),
            ..self.parts.clone()
        };
        let (name, trace) = (parts.name.clone(), parts.sim.trace.clone());
        Process::start(&name, &trace, self.restart, move |number| worker_body(&parts, number))
    }
}

/// What is given to the incarnations of a worker.
#[derive(Clone)]
struct WorkerParts {
    sim: Sim,
    name: String,
    home: String,
    os: Os,
    net: Network,
    shape: Shape,
    stop: Arc<watch::Sender<bool>>,
}

/// The rows of a fresh installation, and its DAG files.
pub async fn prepare(sim: &Sim, files: &[&str], pools: &[(&str, i64)]) -> Result<(), EngineError> {
    let cx = sim.quiet_cx("prepare");
    let tx = cx.store.begin("prepare").await?;
    installation::make(&tx, "simulated").await?;
    pool::make(&tx, "default_pool", 128, "").await?;
    for (name, slots) in pools {
        pool::make(&tx, name, *slots, "").await?;
    }
    installation::raise_epoch(&tx, 1).await?;
    tx.commit().await?;
    let names: Vec<String> = (0..files.len()).map(|n| format!("dag{n}.yaml")).collect();
    let present = names.iter().cloned().collect();
    for (name, text) in names.iter().zip(files) {
        let content = read(name, text).map_err(serde_json::Value::String);
        if let Err(why) = &content {
            sim.trace.violate(format!("{name} cannot be read: {why}"));
        }
        let file = DagFile { fileloc: name.clone(), content };
        dag_files::load(&cx, &[file], &present).await?;
    }
    Ok(())
}

fn read(name: &str, text: &str) -> Result<ReadDag, String> {
    let parsed = fencepost_dagfile::parse(text.as_bytes(), name);
    let dag = parsed.dag.ok_or_else(|| format!("{:?}", parsed.diagnostics))?;
    Ok(ReadDag::new(dag, text.into(), |dag| {
        (fencepost_dagfile::content_hash(dag), fencepost_dagfile::ir(dag))
    }))
}

impl World {
    /// Starts all processes. One that ends is started again after `restart`.
    pub fn start(sim: &Sim, shape: Shape, restart: Duration) -> Self {
        let schedulers = (0..shape.schedulers).map(|n| {
            let (sim, name) = (sim.clone(), format!("scheduler{n}"));
            let own = name.clone();
            let body = move |number| roles::scheduler(&sim, &own, number);
            (name, body)
        });
        let trace = &sim.trace;
        let schedulers =
            schedulers.map(|(name, body)| Process::start(&name, trace, restart, body)).collect();
        let ports: Vec<Port> = (0..shape.servers).map(|_| Port::default()).collect();
        let servers = ports.iter().enumerate().map(|(n, port)| {
            let (sim, name, port) = (sim.clone(), format!("server{n}"), port.clone());
            let own = name.clone();
            let body = move |number| roles::server(&sim, &own, number, port.clone());
            Process::start(&name, trace, restart, body)
        });
        let servers = servers.collect();
        let workers = (0..shape.workers).map(|n| worker(sim, n, (shape, restart), &ports));
        let workers = workers.collect();
        Self { sim: sim.clone(), schedulers, servers, workers }
    }

    /// Every process.
    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        let workers = self.workers.iter().map(|worker| &worker.process);
        self.schedulers.iter().chain(&self.servers).chain(workers)
    }

    /// The machines.
    pub fn machines(&self) -> Vec<Os> {
        self.workers.iter().map(|worker| worker.os.clone()).collect()
    }
}

fn worker(sim: &Sim, n: usize, (shape, restart): (Shape, Duration), ports: &[Port]) -> Worker {
    let name = format!("worker{n}");
    let os = Os::new(&format!("host{n}"), sim);
    let net = Network::new(&name, ports, &sim.random, &sim.trace);
    let stop = Arc::new(watch::channel(false).0);
    let parts = WorkerParts {
        sim: sim.clone(),
        name: name.clone(),
        home: format!("home-of-{name}"),
        os: os.clone(),
        net: net.clone(),
        shape,
        stop: Arc::clone(&stop),
    };
    let own = parts.clone();
    let body = move |number| worker_body(&own, number);
    let process = Process::start(&name, &sim.trace, restart, body);
    Worker { process, os, net, stop, parts, restart }
}

fn worker_body(parts: &WorkerParts, number: u32) -> Body {
    let WorkerParts { sim, name, os, net, .. } = parts;
    let who = Identity {
        job_id: roles::job_id(sim, name, number).to_string(),
        name: name.clone(),
        host: os.name().to_owned(),
        pid: number,
        pid_start: number.into(),
        boot_id: os.boot_id(),
        machine_id: os.name().to_owned(),
        home_id: parts.home.clone(),
        version: "simulated".into(),
    };
    sim.trace.note(|| format!("{name} is job {}", who.job_id));
    let worker = Supervisor::new(
        Arc::new(net.clone()),
        Arc::new(SimHost(os.clone())),
        settings(parts),
        who,
        sim.hooks(name),
    );
    let stop = Arc::clone(&parts.stop);
    Box::pin(async move {
        stop.send_replace(false);
        match worker.run(stop.subscribe()).await {
            Ok(left) => format!("in order, {} left running", left.len()),
            Err(problem) => format!("{problem:?}"),
        }
    })
}

fn settings(parts: &WorkerParts) -> Settings {
    let time = parts.sim.time;
    let (sim, name) = (parts.sim.clone(), format!("{} again", parts.name));
    let jobs = std::sync::atomic::AtomicU32::new(0);
    let fresh_job_id = move || {
        let number = jobs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        roles::job_id(&sim, &name, number).to_string()
    };
    let lease = roles::worker_lease(parts.shape.worker_ttl).ok();
    let part = |of: fn(&Lease) -> Span| lease.as_ref().map_or(Duration::ZERO, |l| of(l).to_std());
    Settings {
        home: Path::new("/sim").join(parts.os.name()),
        queues: vec!["default".into()],
        slots: parts.shape.slots,
        heartbeat_interval: Duration::from_secs(5),
        lease,
        beats: None,
        fresh_job_id: Arc::new(fresh_job_id),
        orphan_ttl: Duration::from_hours(24),
        kill_grace: part(|lease| lease.kill_grace),
        margin: part(|lease| lease.margin),
        drain_timeout: Duration::from_secs(30),
        stop_timeout: None,
        log_limit: 1 << 20,
        containment: "auto".into(),
        host_env: Vec::new(),
        ships_logs: false,
        python: fencepost_worker::supervisor::Python::default(),
        api: None,
        clock: ClockKind::Boottime,
        now_ns: Arc::new(move || time.nanos()),
        guards: parts.sim.options.guards,
    }
}
