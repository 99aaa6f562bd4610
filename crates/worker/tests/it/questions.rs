//! A worker is asked about an attempt that it knows nothing of, while the reply to its claim is still on
//! its way: what it answers is final.

use crate::bench::{Bench, shim_exe};
use fencepost_api::execution::{
    Answer, Assignment, Beat, Beaten, Ended, ExecutionApi, LogAnswer, LogPiece, Poll, Polled,
    RefusedReason, Register, Registered, Reply, Report, Says, Start, TakeOver,
};
use fencepost_core::guard::Guards;
use fencepost_core::hook::Hooks;
use fencepost_worker::attempt::{HomeBoot, OsHost};
use fencepost_worker::clock::ClockKind;
use fencepost_worker::supervisor::{Identity, Settings, Supervisor};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

const ASKED: &str = "549755813889";
const NEXT: &str = "549755813890";

/// A server that plays its part.
struct Server {
    polls: Mutex<u32>,
    beats: Mutex<Vec<Beat>>,
    reports: watch::Sender<Vec<Report>>,
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
        work: Err("it is never run".into()),
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
            // Claimed long ago; the reply comes after the worker's answer.
            1 => {
                let mut reports = self.reports.subscribe();
                reports.wait_for(|reports| !reports.is_empty()).await.unwrap();
                vec![assignment(ASKED)]
            }
            2 => vec![assignment(NEXT)],
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
        let answers = vec![no; starts.len()];
        self.starts.send_modify(|all| all.extend(starts));
        Box::pin(async { Ok(answers) })
    }
    fn report(&self, _job_id: &str, reports: Vec<Report>) -> Reply<'_, Vec<Answer>> {
        let answers = vec![Answer::Accepted; reports.len()];
        self.reports.send_modify(|all| all.extend(reports));
        Box::pin(async { Ok(answers) })
    }
    fn beat(&self, request: Beat) -> Reply<'_, Beaten> {
        self.beats.lock().unwrap().push(request);
        let questions = vec![ASKED.to_owned()];
        let beaten = Beaten { questions, epoch: 3, is_reconciled: true, ..Beaten::default() };
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
        log_limit: 1 << 20,
        containment: "group".into(),
        host_env: Vec::new(),
        api: None,
        ships_logs: false,
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

#[tokio::test]
async fn one_that_never_ran_never_starts_whatever_reply_still_arrives() {
    let bench = Bench::new();
    let home = bench.file("home");
    std::fs::create_dir_all(home.join("attempts")).unwrap();
    std::fs::write(home.join("epoch"), "2\n").unwrap();
    let server = Arc::new(Server {
        polls: Mutex::default(),
        beats: Mutex::default(),
        reports: watch::Sender::default(),
        starts: watch::Sender::default(),
    });
    let host = OsHost::new(&home.join("attempts"), shim_exe(), vec![], HomeBoot::Same).unwrap();
    let api: Arc<dyn ExecutionApi> = Arc::<Server>::clone(&server);
    let worker = Supervisor::new(api, Arc::new(host), settings(&home), identity(), Hooks::none());
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
    assert_eq!(std::fs::read_to_string(home.join("epoch")).unwrap(), "3\n");
    worker.abort();
}
