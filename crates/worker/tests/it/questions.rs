//! What a worker makes of a server's words: it is asked about an attempt that it knows nothing of, while
//! the reply to its claim is still on its way; and there is an epoch that it does not come to.

use crate::bench::{Bench, shim_exe};
use fencepost_api::execution::{
    Answer, Assignment, Beat, Beaten, Ended, ExecutionApi, LogAnswer, LogPiece, Poll, Polled,
    RefusedReason, Register, Registered, Reply, Report, Says, Start, TakeOver, Work,
};
use fencepost_core::guard::{Guard, Guards};
use fencepost_core::hook::Hooks;
use fencepost_core::lease::LeaseSettings;
use fencepost_core::time::Span;
use fencepost_worker::attempt::{AttemptHost, HomeBoot, OsHost};
use fencepost_worker::clock::ClockKind;
use fencepost_worker::supervisor::{Identity, Settings, Supervisor, archived};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

const ASKED: &str = "549755813889";
pub(crate) const NEXT: &str = "549755813890";

/// A server that plays its part.
pub(crate) struct Server {
    /// The answer to the n-th beat.
    answer: fn(usize) -> Beaten,
    /// It has nothing more to do, and says so at once.
    is_eager: bool,
    /// It assigns one attempt that runs this, and once more when its end was reported; starts are accepted.
    pub(crate) forgets: Option<Vec<String>>,
    polls: Mutex<u32>,
    /// Polls so far, at each beat.
    polls_at_beat: watch::Sender<Vec<u32>>,
    pub(crate) beats: Mutex<Vec<Beat>>,
    pub(crate) reports: watch::Sender<Vec<Report>>,
    starts: watch::Sender<Vec<Start>>,
}

fn assignment(token: &str) -> Assignment {
    Assignment {
        token: token.into(),
        attempt_id: token.into(),
        dag_id: "d".into(),
        run_id: "r".into(),
        task_id: "t".into(),
        map_index: -1,
        try_number: 1,
        attempt_number: 1,
        work: Ok(Work {
            secrets: Vec::new(),
            connections: Vec::new(),
            masked: Vec::new(),
            python: None,
            argv: vec!["true".into()],
            script: None,
            env: Vec::new(),
            params: serde_json::Value::Null,
            inputs: serde_json::Value::Null,
            asset_events: None,
            working_dir: None,
            run_as_user: None,
            containment: "auto".into(),
            resources: None,
            execution_timeout_ms: None,
            stall_timeout_ms: None,
            kill_grace_ms: None,
            keeps: false,
            graceful_exit_codes: Vec::new(),
            checkpoint: None,
            defer_event: None,
            outputs: Vec::new(),
        }),
        credential: None,
    }
}

impl Server {
    async fn polled(&self) -> Polled {
        let turn = {
            let mut polls = self.polls.lock().unwrap();
            *polls += 1;
            *polls
        };
        let assignments = match turn {
            1 | 2 if self.forgets.is_some() => {
                let mut reports = self.reports.subscribe();
                let ended = usize::try_from(turn - 1).unwrap();
                reports.wait_for(|reports| reports.len() >= ended).await.unwrap();
                let mut again = assignment(NEXT);
                again.work.as_mut().unwrap().argv = self.forgets.clone().unwrap();
                vec![again]
            }
            // Claimed long ago; the reply comes after the worker's answer.
            1 => {
                let mut reports = self.reports.subscribe();
                reports.wait_for(|reports| !reports.is_empty()).await.unwrap();
                vec![assignment(ASKED)]
            }
            2 => vec![assignment(NEXT)],
            // Nothing yet; it asks again.
            _ if self.is_eager => {
                let patience = Duration::from_millis(10);
                let _ = tokio::time::timeout(patience, std::future::pending::<()>()).await;
                Vec::new()
            }
            _ => std::future::pending().await,
        };
        Polled { assignments, stops: Vec::new() }
    }
}

impl ExecutionApi for Server {
    fn register(&self, _request: Register) -> Reply<'_, Registered> {
        Box::pin(async { Ok(Registered { handed_over: Vec::new(), credential: None }) })
    }
    fn take_over(&self, _request: TakeOver) -> Reply<'_, Answer> {
        Box::pin(async { Ok(Answer::Accepted) })
    }
    fn poll(&self, _request: Poll) -> Reply<'_, Polled> {
        Box::pin(async { Ok(self.polled().await) })
    }
    fn start(&self, _job_id: &str, starts: Vec<Start>) -> Reply<'_, Vec<Answer>> {
        let no = Answer::Refused { reason: RefusedReason::Superseded, detail: String::new() };
        let answer = if self.forgets.is_some() { Answer::Accepted } else { no };
        let answers = vec![answer; starts.len()];
        self.starts.send_modify(|all| all.extend(starts));
        Box::pin(async { Ok(answers) })
    }
    fn report(&self, _job_id: &str, reports: Vec<Report>) -> Reply<'_, Vec<Answer>> {
        let answers = vec![Answer::Accepted; reports.len()];
        self.reports.send_modify(|all| all.extend(reports));
        Box::pin(async { Ok(answers) })
    }
    fn beat(&self, request: Beat) -> Reply<'_, Beaten> {
        let mut beats = self.beats.lock().unwrap();
        beats.push(request);
        let beaten = (self.answer)(beats.len());
        self.polls_at_beat.send_modify(|all| all.push(*self.polls.lock().unwrap()));
        Box::pin(async { Ok(beaten) })
    }
    fn release(&self, _job_id: &str, _tokens: Vec<String>) -> Reply<'_, Vec<Answer>> {
        Box::pin(async { Ok(Vec::new()) })
    }
    fn leave(&self, _job_id: &str) -> Reply<'_, ()> {
        Box::pin(async { Ok(()) })
    }
    fn logs(&self, _job_id: &str, _pieces: Vec<LogPiece>) -> Reply<'_, Vec<LogAnswer>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

fn settings(home: &Path) -> Settings {
    Settings {
        home: home.to_owned(),
        queues: vec!["default".into()],
        slots: 8,
        heartbeat_interval: Duration::from_millis(100),
        lease: None,
        beats: None,
        fresh_job_id: Arc::new(String::new),
        orphan_ttl: Duration::from_hours(1),
        kill_grace: Duration::from_secs(1),
        margin: Duration::from_secs(1),
        drain_timeout: Duration::from_millis(100),
        stop_timeout: None,
        log_limit: 1 << 20,
        containment: "group".into(),
        host_env: Vec::new(),
        api: None,
        ships_logs: false,
        python: fencepost_worker::supervisor::Python::default(),
        guards: Guards::all(),
        clock: ClockKind::Monotonic,
        now_ns: Arc::new(|| ClockKind::Monotonic.now_ns()),
    }
}

fn identity() -> Identity {
    Identity {
        job_id: "019ca6d8-14fd-737b-ab33-15f7bcff0a55".into(),
        name: "w".into(),
        host: "h".into(),
        pid: 1,
        pid_start: 1,
        boot_id: "boot".into(),
        machine_id: "machine".into(),
        home_id: "home".into(),
        version: "test".into(),
    }
}

/// A worker of that server, in a new home.
pub(crate) fn worker(
    bench: &Bench,
    server: &Arc<Server>,
    change: impl FnOnce(&mut Settings),
) -> Supervisor {
    worker_with(bench, server, change, shim_exe(), |host| Arc::new(host))
}

/// Likewise, with that program for its shims, and attempts seen through something.
pub(crate) fn worker_with(
    bench: &Bench,
    server: &Arc<Server>,
    change: impl FnOnce(&mut Settings),
    shim: std::path::PathBuf,
    through: impl FnOnce(OsHost) -> Arc<dyn AttemptHost>,
) -> Supervisor {
    let home = bench.file("home");
    std::fs::create_dir_all(home.join("attempts")).unwrap();
    std::fs::write(home.join("epoch"), "2\n").unwrap();
    let host = OsHost::new(&home.join("attempts"), shim, vec![], HomeBoot::Same).unwrap();
    let api: Arc<dyn ExecutionApi> = Arc::<Server>::clone(server);
    let mut settings = settings(&home);
    change(&mut settings);
    Supervisor::new(api, through(host), settings, identity(), Hooks::none())
}

pub(crate) fn server(answer: fn(usize) -> Beaten, is_eager: bool) -> Arc<Server> {
    Arc::new(Server {
        answer,
        is_eager,
        forgets: None,
        // An eager one has given out everything already.
        polls: Mutex::new(if is_eager { 2 } else { 0 }),
        polls_at_beat: watch::Sender::default(),
        beats: Mutex::default(),
        reports: watch::Sender::default(),
        starts: watch::Sender::default(),
    })
}

#[tokio::test]
async fn one_that_never_ran_never_starts_whatever_reply_still_arrives() {
    let bench = Bench::new();
    let asks = |_| Beaten {
        questions: vec![ASKED.to_owned()],
        epoch: 3,
        is_reconciled: true,
        ..Beaten::default()
    };
    let server = server(asks, false);
    let worker = worker(&bench, &server, |_| {});
    let (_stop, stopped) = watch::channel(false);
    let worker = tokio::spawn(worker.run(stopped));
    let mut starts = server.starts.subscribe();
    let next = starts.wait_for(|starts| starts.iter().any(|start| start.token == NEXT));
    tokio::time::timeout(Duration::from_mins(1), next).await.unwrap().unwrap();
    let started: Vec<String> = starts.borrow().iter().map(|start| start.token.clone()).collect();
    assert_eq!(started, [NEXT], "the late reply started it after all");
    let said = server.reports.borrow()[0].clone();
    assert_eq!((said.token.as_str(), &said.ended), (ASKED, &Ended::NeverRan));
    // The first inventory is whole, and says what the home has seen; a new epoch is kept there.
    let first = server.beats.lock().unwrap()[0].clone();
    assert_eq!((first.says, first.epoch, first.reconciles), (Says::All, 2, true));
    assert!(first.call < starts.borrow()[0].call, "calls are numbered in one row");
    assert_eq!(std::fs::read_to_string(bench.file("home").join("epoch")).unwrap(), "3\n");
    worker.abort();
}

#[tokio::test]
async fn what_ended_in_its_home_is_not_executed_again_though_the_store_has_forgotten_it() {
    let bench = Bench::new();
    let quiet = |_| Beaten { epoch: 2, is_reconciled: true, ..Beaten::default() };
    let server = server(quiet, false);
    // Its first poll is answered with what ended under an earlier worker.
    *server.polls.lock().unwrap() = 1;
    let worker = worker(&bench, &server, |_| {});
    std::fs::create_dir_all(archived(&bench.file("home"), NEXT)).unwrap();
    let (_stop, stopped) = watch::channel(false);
    let worker = tokio::spawn(worker.run(stopped));
    let mut reports = server.reports.subscribe();
    let told = reports.wait_for(|reports| !reports.is_empty());
    let told =
        tokio::time::timeout(Duration::from_mins(1), told).await.unwrap().unwrap()[0].clone();
    assert_eq!((told.token.as_str(), &told.ended), (NEXT, &Ended::NeverRan));
    assert!(server.starts.borrow().is_empty(), "it was started once more");
    worker.abort();
}

/// The store has forgotten start and end of an attempt, and knows its claim: what its worker remembers of
/// it is told again under the same token, and nothing is executed a second time.
#[tokio::test]
async fn an_end_that_the_store_has_forgotten_is_told_again() {
    let bench = Bench::new();
    let quiet = |_| Beaten { epoch: 2, is_reconciled: true, ..Beaten::default() };
    let mut server = Arc::into_inner(server(quiet, false)).unwrap();
    // A second execution would fail.
    let folder = bench.file("once").to_string_lossy().into_owned();
    server.forgets = Some(vec!["mkdir".into(), folder]);
    let server = Arc::new(server);
    let worker = worker(&bench, &server, |_| {});
    let (_stop, stopped) = watch::channel(false);
    let worker = tokio::spawn(worker.run(stopped));
    let mut reports = server.reports.subscribe();
    let told = reports.wait_for(|reports| reports.len() >= 2);
    let told = tokio::time::timeout(Duration::from_mins(1), told).await.unwrap().unwrap().clone();
    assert_eq!((told[0].token.as_str(), &told[0].ended), (NEXT, &Ended::Exit { code: 0 }));
    assert_eq!(told[1], told[0]);
    let starts = server.starts.borrow().clone();
    assert_eq!(starts.len(), 2);
    assert_ne!(starts[0].start_id, starts[1].start_id);
    worker.abort();
}

/// The same by another process in its home: it finds there what its predecessor has said.
#[tokio::test]
async fn a_restarted_worker_tells_the_end_again_that_its_predecessor_has_told() {
    let bench = Bench::new();
    let quiet = |_| Beaten { epoch: 2, is_reconciled: true, ..Beaten::default() };
    let folder = bench.file("once").to_string_lossy().into_owned();
    for _ in 0..2 {
        // The second one's store knows nothing of the first execution, and another would fail.
        let mut server = Arc::into_inner(server(quiet, false)).unwrap();
        server.forgets = Some(vec!["mkdir".into(), folder.clone()]);
        let server = Arc::new(server);
        let worker = worker(&bench, &server, |_| {});
        let (_stop, stopped) = watch::channel(false);
        let worker = tokio::spawn(worker.run(stopped));
        let mut reports = server.reports.subscribe();
        let told = reports.wait_for(|reports| !reports.is_empty());
        let told =
            tokio::time::timeout(Duration::from_mins(1), told).await.unwrap().unwrap()[0].clone();
        assert_eq!((told.token.as_str(), &told.ended), (NEXT, &Ended::Exit { code: 0 }));
        assert!(!server.starts.borrow().is_empty(), "it is started to be reported");
        let kept = archived(&bench.file("home"), NEXT).join("report");
        while !kept.exists() {
            tokio::task::yield_now().await;
        }
        worker.abort();
        let _ = worker.await;
    }
}

/// Whether a worker that beats in an epoch, and does not come to it, ceases to ask for work.
async fn ceases(guards: Guards) -> bool {
    const ENOUGH: usize = 30;
    let bench = Bench::new();
    let epochs = |beat| Beaten {
        epoch: if beat < 5 { 2 } else { 3 },
        is_reconciled: beat < 5,
        ..Beaten::default()
    };
    let server = server(epochs, true);
    let secs = |secs| Some(Span::from_secs(secs));
    let lease = LeaseSettings {
        lease_ttl: Span::from_secs(5),
        heartbeat_interval: Span::from_millis(100),
        self_fence: secs(2),
        kill_grace: secs(1),
        margin: secs(1),
    };
    let worker = worker(&bench, &server, |settings| {
        settings.lease = Some(lease.check().unwrap());
        settings.guards = guards;
    });
    let (_stop, stopped) = watch::channel(false);
    let worker = tokio::spawn(worker.run(stopped));
    let mut polls = server.polls_at_beat.subscribe();
    // Beats without one poll between them; or so many that its lease would have been over long ago.
    let ends = |all: &Vec<u32>| {
        let last = all.iter().rev().take(ENOUGH);
        all.len() > 8 * ENOUGH
            || (all.len() > ENOUGH && last.collect::<BTreeSet<&u32>>().len() == 1)
    };
    let seen = tokio::time::timeout(Duration::from_mins(2), polls.wait_for(ends)).await;
    let seen = seen.unwrap().unwrap().len();
    worker.abort();
    seen <= 8 * ENOUGH
}

#[tokio::test]
async fn a_worker_that_does_not_come_to_an_epoch_ceases_to_act_with_its_lease() {
    assert!(ceases(Guards::all()).await);
}

#[tokio::test]
async fn without_reconciliation_its_beats_prolong_its_lease_all_the_same() {
    assert!(!ceases(Guards::all().without(Guard::EpochReconciliation)).await);
}
