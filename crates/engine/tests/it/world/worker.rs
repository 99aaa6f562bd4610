//! A worker that follows the protocol of the real one, step by step, without processes.
//!
//! Its memory (what it holds, its job) is lost by `forget`; what its shims know is in `Machine`.

use super::faults::Faults;
use super::machine::{Machine, What};
use super::{Act, Script};
use fencepost_core::hook::HookVerdict;
use fencepost_core::id::{JobId, Token};
use fencepost_core::lease::Lease;
use fencepost_core::liveness::Holder;
use fencepost_core::state::{AttemptState, JobKind};
use fencepost_core::time::BootInstant;
use fencepost_core::verdict::Ending;
use fencepost_engine::Cx;
use fencepost_engine::error::EngineError;
use fencepost_engine::facts::Facts;
use fencepost_engine::operations::claim::{Wants, claim};
use fencepost_engine::operations::register::{HandedOver, Identity, register};
use fencepost_engine::operations::report::{EndReport, report};
use fencepost_engine::operations::start::{StartRequest, start};
use fencepost_engine::operations::take_over::{Found, Said, take_over};
use fencepost_engine::operations::{Answer, Refused};
use fencepost_store::StoreErrorKind;
use fencepost_store::query::attempt::Attempt;
use std::collections::BTreeMap;

/// What it knows of a claim.
#[derive(Debug, Clone)]
pub(super) enum Hand {
    /// To be started under this start id.
    Claimed { what: What, start_id: String },
    /// A shim has it, or had it.
    Started,
    /// The predecessor left it, and its answer is owed.
    HandedOver(Box<Option<What>>),
    /// A stop came for one that has no process.
    NeverRan,
}

#[derive(Debug, Clone)]
pub(crate) struct Worker {
    pub(crate) name: String,
    pub(crate) queues: Vec<String>,
    pub(crate) slots: u32,
    pub(crate) is_paused: bool,
    pub(crate) job: Option<JobId>,
    pub(super) is_registered: bool,
    pub(super) hands: BTreeMap<Token, Hand>,
    /// With one it beats, and everything that it started ends with its lease.
    pub(crate) lease: Option<Lease>,
    pub(super) holder: Option<Holder>,
    pub(super) beaten_at: Option<BootInstant>,
    pub(super) starts: u32,
    /// Every answer other than "accepted", with what it was an answer to.
    pub(crate) refusals: Vec<(Token, Refused)>,
    /// The home's count.
    pub(super) registrations: i64,
}

impl Worker {
    pub(crate) fn new(name: &str, queues: &[&str], slots: u32) -> Self {
        Self {
            name: name.into(),
            queues: queues.iter().map(ToString::to_string).collect(),
            slots,
            is_paused: false,
            job: None,
            is_registered: false,
            hands: BTreeMap::new(),
            lease: None,
            holder: None,
            beaten_at: None,
            starts: 0,
            registrations: 0,
            refusals: Vec::new(),
        }
    }

    /// A new process in the same home.
    pub(crate) fn forget(&mut self) {
        self.job = None;
        self.is_registered = false;
        self.hands.clear();
        self.holder = None;
        self.beaten_at = None;
    }

    /// One look for everything that it does; how much it did.
    pub(crate) async fn step(&mut self, desk: &mut Desk<'_>) -> Result<usize, EngineError> {
        if self.is_paused {
            return Ok(0);
        }
        let mut did = self.register(desk).await?;
        did += self.beat(desk).await?;
        if !self.is_acting(desk) {
            return Ok(did + self.report(desk).await?);
        }
        did += self.answer(desk).await?;
        did += self.start(desk).await?;
        did += self.report(desk).await?;
        did += self.claim(desk).await?;
        Ok(did + self.start(desk).await?)
    }

    pub(crate) fn identity(&self, job_id: JobId) -> Identity {
        Identity {
            job_id,
            kind: JobKind::Worker,
            name: self.name.clone(),
            host: "host".into(),
            pid: 1,
            pid_start: 1,
            boot_id: "boot".into(),
            machine_id: "machine".into(),
            home_id: format!("home-{}", self.name),
            registration: self.registrations,
            version: "test".into(),
            queues: self.queues.clone(),
            slots: self.slots,
            lease_ttl: self.lease.map(|lease| lease.lease_ttl),
        }
    }

    async fn register(&mut self, desk: &mut Desk<'_>) -> Result<usize, EngineError> {
        if self.is_registered {
            return Ok(0);
        }
        if self.job.is_none() {
            self.registrations += 1;
        }
        // A lost answer is asked for again under the same id.
        let job_id = *self.job.get_or_insert_with(|| desk.cx.env.job_id());
        let sent = (desk.cx.env.boottime)();
        let handed = register(desk.cx, &self.identity(job_id)).await?;
        let guards = desk.cx.settings.guards;
        self.holder = self.lease.map(|lease| Holder::new(lease, sent, guards));
        self.is_registered = true;
        for HandedOver { attempt, facts } in handed {
            let what = facts.ok().map(|facts| told(&attempt, &facts));
            self.hands.insert(attempt.token, Hand::HandedOver(Box::new(what)));
        }
        Ok(1)
    }

    /// Says what became of each claim of the predecessor.
    async fn answer(&mut self, desk: &mut Desk<'_>) -> Result<usize, EngineError> {
        let Some(job) = self.job else { return Ok(0) };
        let owed = self.hands.iter().filter_map(|(token, hand)| match hand {
            Hand::HandedOver(what) => Some((*token, what.as_ref().clone())),
            Hand::Claimed { .. } | Hand::Started | Hand::NeverRan => None,
        });
        let owed: Vec<(Token, Option<What>)> = owed.collect();
        for (token, what) in &owed {
            let has_process = desk.machine.get(*token).is_some();
            let found = if has_process {
                Found::Running { level: "group".into() }
            } else {
                Found::NeverRan
            };
            let said = Said { token: *token, call: 0, found };
            let answer = take_over(desk.cx, job, &said).await?;
            let next = match (answer, what) {
                (Answer::Refused(why, _), _) => {
                    self.refusals.push((*token, why));
                    self.hands.remove(token);
                    continue;
                }
                (Answer::Accepted, _) if has_process => Hand::Started,
                (Answer::Accepted, Some(what)) => {
                    Hand::Claimed { what: what.clone(), start_id: self.start_id() }
                }
                (Answer::Accepted, None) => Hand::NeverRan,
            };
            self.hands.insert(*token, next);
        }
        Ok(owed.len())
    }

    fn start_id(&mut self) -> String {
        self.starts += 1;
        format!("{}-{}", self.name, self.starts)
    }

    /// Execs what the store lets it start.
    async fn start(&mut self, desk: &mut Desk<'_>) -> Result<usize, EngineError> {
        let Some(job) = self.job else { return Ok(0) };
        let mut requests = Vec::new();
        for (token, hand) in &self.hands {
            if let Hand::Claimed { start_id, .. } = hand {
                let (start_id, boot_id) = (start_id.clone(), "boot".into());
                requests.push(StartRequest { token: *token, start_id, boot_id, call: 0 });
            }
        }
        if requests.is_empty() {
            return Ok(0);
        }
        let answers = start(desk.cx, job, &requests).await?;
        for (request, answer) in requests.iter().zip(&answers) {
            let Some(Hand::Claimed { what, .. }) = self.hands.get(&request.token).cloned() else {
                continue;
            };
            if let Answer::Refused(why, _) = answer {
                self.refusals.push((request.token, *why));
                self.hands.remove(&request.token);
                // One that is to be stopped and has no process: nothing of it will ever run.
                if *why == Refused::NotRunning {
                    self.hands.insert(request.token, Hand::NeverRan);
                }
                continue;
            }
            desk.pass("worker:before_exec")?;
            let act = (desk.script)(&what);
            desk.machine.exec(request.token, what, act);
            self.push(desk, request.token);
            self.hands.insert(request.token, Hand::Started);
            desk.pass("worker:after_exec")?;
        }
        Ok(requests.len())
    }

    pub(super) async fn report(&mut self, desk: &mut Desk<'_>) -> Result<usize, EngineError> {
        let Some(job) = self.job else { return Ok(0) };
        let never_ran = Act { ending: Some(Ending::NeverRan), ..super::stay() };
        let mut reports = Vec::new();
        for (token, hand) in &self.hands {
            let act = match hand {
                Hand::Started => desk.machine.get(*token).map(|process| process.act.clone()),
                Hand::NeverRan => Some(never_ran.clone()),
                Hand::Claimed { .. } | Hand::HandedOver(_) => None,
            };
            reports.extend(act.and_then(|act| end_report(*token, &act)));
        }
        if reports.is_empty() {
            return Ok(0);
        }
        let answers = report(desk.cx, job, reports.clone()).await?;
        desk.pass("worker:before_forget")?;
        for (report, answer) in reports.iter().zip(answers) {
            self.hands.remove(&report.token);
            if let Answer::Refused(why, _) = answer {
                self.refusals.push((report.token, why));
            }
        }
        Ok(reports.len())
    }

    async fn claim(&mut self, desk: &mut Desk<'_>) -> Result<usize, EngineError> {
        let Some(job) = self.job else { return Ok(0) };
        let held: Vec<Token> = self.hands.keys().copied().collect();
        let busy = u32::try_from(held.len()).unwrap();
        let free_slots = self.slots.saturating_sub(busy);
        let wants = Wants { call: 0, held: &held, queues: &self.queues, free_slots };
        let work = claim(desk.cx, job, &wants).await?;
        let mut did = 0;
        for (attempt, facts) in work.claimed {
            did += 1;
            let start_id = self.start_id();
            let hand = match facts {
                Ok(facts) => Hand::Claimed { what: told(&attempt, &facts), start_id },
                Err(_) => Hand::NeverRan,
            };
            self.hands.insert(attempt.token, hand);
        }
        assert!(self.hands.len() <= self.slots as usize, "{} holds too much", self.name);
        for attempt in work.stopping {
            assert_eq!(attempt.state, AttemptState::Stopping);
            if desk.machine.running().contains(&attempt.token) {
                desk.machine.end(attempt.token, Ending::Stopped);
                did += 1;
            }
        }
        Ok(did)
    }
}

fn told(attempt: &Attempt, facts: &Facts) -> What {
    let what = What::of(facts);
    assert_eq!(what.attempt, attempt.attempt_number);
    what
}

/// What is reported of a process that has ended.
pub(crate) fn end_report(token: Token, act: &Act) -> Option<EndReport> {
    let ending = act.ending.clone()?;
    let digest = format!("{token} {ending:?} {:?}", act.outputs);
    let evidence = matches!(ending, Ending::Gone(_)).then(|| "exit_status".to_owned());
    let exit_code = if let Ending::Exit(code) = ending { Some(code.into()) } else { None };
    Some(EndReport {
        token,
        ending,
        asked: act.asked.clone(),
        outputs: act.outputs.clone(),
        level: Some("group".into()),
        message: None,
        exit_code,
        signal: None,
        evidence,
        checkpoint: None,
        digest,
    })
}

/// What a worker works with.
pub(crate) struct Desk<'a> {
    pub(crate) cx: &'a Cx,
    pub(crate) machine: &'a mut Machine,
    pub(crate) script: &'a Script,
    pub(crate) faults: &'a Faults,
}

impl Desk<'_> {
    fn pass(&self, point: &str) -> Result<(), EngineError> {
        // Only a crash stops a worker between two of its own steps.
        if self.faults.pass(point) == HookVerdict::Go || !self.faults.is_down() {
            return Ok(());
        }
        let kind = StoreErrorKind::Unavailable;
        Err(fencepost_store::StoreError::new(kind, "worker", "it is dead").into())
    }
}
