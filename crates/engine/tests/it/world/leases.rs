//! Several processes with leases: workers that beat, a server that is heard, schedulers that watch.

use super::surroundings;
use super::worker::{Desk, Hand, Worker};
use super::{World, passes::Turn};
use fencepost_core::hook::{HookVerdict, Hooks};
use fencepost_core::id::{JobId, Token};
use fencepost_core::lease::{Lease, LeaseSettings};
use fencepost_core::liveness::Phase;
use fencepost_core::state::JobKind;
use fencepost_core::time::Span;
use fencepost_core::verdict::{Death, Ending};
use fencepost_engine::error::EngineError;
use fencepost_engine::liveness::{Beat, Watch, renew};
use fencepost_engine::operations::register::{Identity, register};
use fencepost_engine::{Cx, Pass};
use fencepost_store::query::incident::{self, Incident};
use fencepost_store::query::job::{self, Job};
use fencepost_store::query::lease::{self, Declaration, Renewed};
use std::sync::Arc;

pub(crate) const TTL: Span = Span::from_secs(30);
pub(crate) const BEAT: Span = Span::from_secs(5);
pub(crate) const SCAN: Span = Span::from_secs(2);

/// The lease of a worker of these tests: 30 s, a beat every 5 s.
pub(crate) fn lease() -> Lease {
    let settings = LeaseSettings {
        lease_ttl: TTL,
        heartbeat_interval: BEAT,
        self_fence: None,
        kill_grace: None,
        margin: None,
    };
    settings.check().unwrap()
}

/// Declares a job lost as somebody would who observed it long enough, and works it off.
pub(crate) async fn declare_lost(cx: &Cx, job: JobId, renew_seq: i64) {
    declare(cx, job, renew_seq).await;
    let mut watch = Watch::default();
    watch.pass(cx).await.unwrap();
}

/// The declaration alone.
pub(crate) async fn declare(cx: &Cx, job: JobId, renew_seq: i64) {
    let tx = cx.store.begin("declare").await.unwrap();
    lease::lock(&tx, job).await.unwrap();
    let declaration = Declaration {
        job,
        renew_seq,
        window: TTL,
        death: "alone",
        evidence: "{}".into(),
        at: tx.now(),
    };
    assert!(lease::declare(&tx, &declaration).await.unwrap());
    tx.commit().await.unwrap();
}

/// A job that only beats.
#[derive(Debug, Clone)]
pub(crate) struct Beater {
    pub(crate) job: JobId,
    seq: i64,
    pub(crate) is_paused: bool,
}

/// A scheduler's watch, with a context of its own.
pub(crate) struct Watcher {
    pub(crate) cx: Cx,
    pub(crate) watch: Watch,
    pub(crate) is_paused: bool,
}

impl Worker {
    pub(crate) fn leased(name: &str, slots: u32) -> Self {
        Self { lease: Some(lease()), ..Self::new(name, &["default"], slots) }
    }

    /// Beats when it is time, and learns that its job is over.
    pub(super) async fn beat(&mut self, desk: &mut Desk<'_>) -> Result<usize, EngineError> {
        let (Some(job), Some(holder)) = (self.job, self.holder.as_mut()) else { return Ok(0) };
        let now = (desk.cx.env.boottime)();
        if self.beaten_at.is_some_and(|last| now.since(last) < BEAT) {
            return Ok(0);
        }
        let beat = holder.beat(now);
        self.beaten_at = Some(now);
        let sent = Beat { job, seq: beat.seq, loop_age: Span::ZERO };
        match renew(desk.cx, &[sent]).await?.first() {
            Some((_, Renewed::Yes)) => holder.acknowledged(beat),
            Some((_, Renewed::Over(_) | Renewed::Unknown)) => return self.over(desk).await,
            Some((_, Renewed::Old)) | None => {}
        }
        let started =
            |(token, hand): (&Token, &Hand)| matches!(hand, Hand::Started).then_some(*token);
        for token in self.hands.iter().filter_map(started).collect::<Vec<_>>() {
            self.push(desk, token);
        }
        Ok(0)
    }

    /// Its job is lost: it ends what still runs, reports it, and is a new job from then on.
    async fn over(&mut self, desk: &mut Desk<'_>) -> Result<usize, EngineError> {
        for token in self.hands.keys() {
            desk.machine.end(*token, Ending::Gone(Death::Orderly));
        }
        self.report(desk).await?;
        self.forget();
        Ok(1)
    }

    /// The deadline of a process is that of its worker's lease.
    pub(super) fn push(&self, desk: &mut Desk<'_>, token: Token) {
        if let Some(holder) = &self.holder {
            desk.machine.deadlines.insert(token, holder.ends_at());
        }
    }

    /// Whether its lease lets it act; if not, what it started is ended.
    pub(super) fn is_acting(&self, desk: &mut Desk<'_>) -> bool {
        let now = (desk.cx.env.boottime)();
        let acting = self.holder.as_ref().is_none_or(|holder| holder.phase(now) == Phase::Acting);
        if !acting {
            for token in self.hands.keys() {
                desk.machine.end(*token, Ending::Gone(Death::Orderly));
            }
        }
        acting
    }
}

impl World {
    /// Workers with leases, one server that beats, and so many schedulers that watch.
    pub(crate) async fn shared(files: &[&str], workers: &[&str], watchers: usize) -> Self {
        let mut world = Self::of(files).await;
        world.share(workers, watchers).await;
        world
    }

    pub(crate) async fn share(&mut self, workers: &[&str], watchers: usize) {
        self.workers = workers.iter().map(|name| Worker::leased(name, 8)).collect();
        for _ in 0..watchers {
            let (cx, watch) = (self.cx.clone(), Watch::default());
            self.watchers.push(Watcher { cx, watch, is_paused: false });
        }
        let server = self.register(JobKind::Server, "server").await;
        self.servers.push(server);
        self.settle().await;
    }

    /// Registers a job that only beats.
    pub(crate) async fn register(&self, kind: JobKind, name: &str) -> Beater {
        let job = self.cx.env.job_id();
        let worker = Worker::leased(name, 0);
        let who = Identity { kind, ..worker.identity(job) };
        register(&self.cx, &who).await.unwrap();
        Beater { job, seq: 0, is_paused: false }
    }

    /// Another process on the same store, with hooks of its own.
    pub(crate) fn other(&self, hooks: Hooks) -> Cx {
        let store = self.place.open(&self.clock, hooks).unwrap();
        let env = surroundings::env(&self.clock, &self.random, &self.undecodable);
        Cx::new(store, env, self.cx.settings)
    }

    /// Another scheduler that watches, on which `act` happens whenever it passes `point`: as if
    /// somebody else came first just then.
    pub(crate) fn raced<F: Future<Output = ()> + 'static>(
        &mut self,
        point: &'static str,
        act: impl Fn(Cx) -> F + Send + Sync + 'static,
    ) {
        let (cx, watch) = (self.raced_cx(point, act), Watch::default());
        self.watchers.push(Watcher { cx, watch, is_paused: false });
    }

    /// A process on whose way something happens at a point.
    pub(crate) fn raced_cx<F: Future<Output = ()> + 'static>(
        &self,
        point: &'static str,
        act: impl Fn(Cx) -> F + Send + Sync + 'static,
    ) -> Cx {
        // Its connections must not live in the runtime that stands still meanwhile.
        let (cx, act) = (self.other(Hooks::none()), Arc::new(act));
        let hooks = Hooks::new(move |passed| {
            if passed == point {
                let (cx, act) = (cx.clone(), Arc::clone(&act));
                surroundings::apart(move || act(cx));
            }
            HookVerdict::Go
        });
        self.other(hooks)
    }

    /// Servers beat, and schedulers watch.
    pub(crate) async fn watch(&mut self) -> Turn {
        let mut turn = Turn::default();
        for server in self.servers.iter_mut().filter(|server| !server.is_paused) {
            server.seq += 1;
            let beat = Beat { job: server.job, seq: server.seq, loop_age: Span::ZERO };
            if let Err(error) = renew(&self.cx, &[beat]).await {
                turn.errors.push(format!("server: {error}"));
            }
        }
        for watcher in self.watchers.iter_mut().filter(|watcher| !watcher.is_paused) {
            match watcher.watch.pass(&watcher.cx).await {
                Ok(report) => {
                    turn.moved += report.moved;
                    turn.troubles.extend(report.troubles);
                }
                Err(error) => turn.errors.push(format!("watch: {error}")),
            }
        }
        self.machine.expire(self.clock.boottime());
        turn
    }

    /// Lets time pass in steps of a scan, with a turn at each.
    pub(crate) async fn live(&mut self, span: Span) {
        let end = self.clock.boottime().plus(span);
        while self.clock.boottime() < end {
            self.pass_time(SCAN);
            self.settle().await;
        }
    }

    /// Lets time pass until a job is declared lost; how long that took.
    pub(crate) async fn until_lost(&mut self, job: JobId) -> Span {
        let began = self.clock.boottime();
        for _ in 0..200 {
            if self.job(job).await.state == fencepost_core::state::JobState::Lost {
                return self.clock.boottime().since(began);
            }
            self.pass_time(SCAN);
            self.settle().await;
        }
        panic!("job {job} is never declared lost");
    }

    pub(crate) async fn job(&self, job: JobId) -> Job {
        let tx = self.cx.store.read("test").await.unwrap();
        job::get(&tx, job).await.unwrap().unwrap()
    }

    pub(crate) async fn incidents(&self) -> Vec<Incident> {
        let tx = self.cx.store.read("test").await.unwrap();
        incident::page(&tx, i64::MAX, 1_000).await.unwrap()
    }
}
