//! One walk over everything that is old.

use super::runs::{Runs, Turn};
use crate::Cx;
use crate::error::EngineError;
use fencepost_core::retention::{ANSWERS, Bounds, Kept, Pace, job};
use fencepost_core::state::AttemptState;
use fencepost_core::time::Timestamp;
use fencepost_store::query::retention::logs::OldPiece;
use fencepost_store::query::retention::{jobs, logs, rest, rows};
use fencepost_store::query::{callback, idempotency, outbox};
use fencepost_store::{StoreError, Tx};
use std::collections::{BTreeMap, VecDeque};

/// What a sweep can go over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Logs of attempts, which may go before their runs.
    Logs,
    /// Ended runs with their instances, attempts, outputs, events and logs.
    Runs,
    Incidents,
    /// Ended processes, and homes that nobody uses.
    Jobs,
    /// Events that are of no run, events of assets that nobody waits for, and what is known of backfills that are over; their runs stay.
    Events,
    /// Answers to requests with an idempotency key.
    Answers,
    /// Credentials that let nobody in.
    Tokens,
}

impl Kind {
    /// Each, in the order in which they go: what points to another before that.
    pub const ALL: &'static [Self] = &[
        Self::Logs,
        Self::Runs,
        Self::Incidents,
        Self::Jobs,
        Self::Events,
        Self::Answers,
        Self::Tokens,
    ];

    /// Its name on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Logs => "logs",
            Self::Runs => "runs",
            Self::Incidents => "incidents",
            Self::Jobs => "jobs",
            Self::Events => "events",
            Self::Answers => "answers",
            Self::Tokens => "tokens",
        }
    }

    /// The kind of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == text)
    }
}

/// What a sweep has come across so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Rows that went (or would), by what they are.
    pub removed: BTreeMap<&'static str, u64>,
    /// Old enough, and stay: of what, and why.
    pub kept: BTreeMap<(&'static str, Kept), u64>,
    /// What could not be looked at.
    pub troubles: Vec<String>,
}

impl Found {
    pub(super) fn gone(&mut self, what: &'static str, count: u64) {
        if count > 0 {
            *self.removed.entry(what).or_default() += count;
        }
    }

    pub(super) fn kept(&mut self, what: &'static str, why: Kept) {
        *self.kept.entry((what, why)).or_default() += 1;
    }

    /// All rows together.
    pub fn total(&self) -> u64 {
        self.removed.values().sum()
    }
}

/// A part of a kind that is walked in pages.
#[derive(Debug)]
enum Stage {
    Logs((i64, i64, i64)),
    Runs(Runs),
    Rows,
    Incidents(i64),
    Jobs(Timestamp, String),
    Homes(String),
    Events(i64),
    Backfills,
    Callbacks,
    Assets,
    Answers,
    Tokens,
}

/// The walk.
#[derive(Debug)]
pub struct Sweep {
    bounds: Bounds,
    stages: VecDeque<Stage>,
    pace: Pace,
    is_dry: bool,
    /// A rule that is off: for the tests that show what it is for.
    ignores: Option<Kept>,
    found: Found,
}

/// Most bytes of logs that go at a time.
const BYTES: u64 = 4 << 20;
/// Answers that are removed at a time, by the statement itself.
const ANSWERS_AT_ONCE: u64 = 200;
/// Before every instant that is stored.
const START: Timestamp = Timestamp::from_micros(i64::MIN);

impl Sweep {
    /// Over these kinds.
    pub fn new(bounds: Bounds, kinds: &[Kind]) -> Self {
        let stages =
            Kind::ALL.iter().filter(|kind| kinds.contains(kind)).flat_map(|kind| stages(*kind));
        Self {
            bounds,
            stages: stages.collect(),
            pace: Pace::default(),
            is_dry: false,
            ignores: None,
            found: Found::default(),
        }
    }

    /// Only looks.
    pub fn dry(mut self) -> Self {
        self.is_dry = true;
        self
    }

    /// Goes by all rules but one. For tests.
    pub fn ignoring(mut self, rule: Kept) -> Self {
        self.ignores = Some(rule);
        self
    }

    /// What it has come across.
    pub const fn found(&self) -> &Found {
        &self.found
    }

    /// The same, at its end.
    pub fn into_found(self) -> Found {
        self.found
    }

    /// One short transaction; whether there is more.
    pub async fn step(&mut self, cx: &Cx) -> Result<bool, EngineError> {
        let Some(mut stage) = self.stages.pop_front() else { return Ok(false) };
        let began = (cx.env.boottime)();
        // What a transaction that fails has counted is not counted.
        let before = self.found.clone();
        match self.stage(cx, &mut stage).await {
            Ok(true) => self.stages.push_front(stage),
            Ok(false) => {}
            Err(error) => {
                self.found = before;
                self.stages.push_front(stage.again());
                self.pace = self.pace.after(fencepost_core::time::Span::MAX);
                return Err(error);
            }
        }
        self.pace = self.pace.after((cx.env.boottime)().since(began));
        Ok(!self.stages.is_empty())
    }

    async fn stage(&mut self, cx: &Cx, stage: &mut Stage) -> Result<bool, EngineError> {
        let op = "retention";
        let tx = if self.is_dry { cx.store.read(op).await? } else { cx.store.begin(op).await? };
        let goes_on = match stage {
            Stage::Logs(after) => self.logs(&tx, after).await?,
            Stage::Runs(runs) => {
                let (bounds, most) = (self.bounds, self.pace.rows());
                let (is_dry, ignores) = (self.is_dry, self.ignores);
                let turn = Turn { cx, tx: &tx, bounds, most, is_dry, ignores };
                runs.step(&turn, &mut self.found).await?
            }
            Stage::Rows => self.rows(cx, &tx).await?,
            Stage::Incidents(after) => self.incidents(&tx, after).await?,
            Stage::Jobs(at, after) => self.jobs(&tx, at, after).await?,
            Stage::Homes(after) => self.homes(&tx, after).await?,
            Stage::Events(after) => self.events(&tx, after).await?,
            Stage::Backfills => self.backfills(&tx).await?,
            Stage::Callbacks => self.callbacks(&tx).await?,
            Stage::Assets => self.assets(&tx).await?,
            Stage::Answers => self.answers(&tx).await?,
            Stage::Tokens => self.tokens(&tx).await?,
        };
        if !self.is_dry {
            tx.commit().await?;
        }
        Ok(goes_on)
    }

    /// Pieces are in the order in which their attempts were dispatched: from the first one that was
    /// dispatched too late on, all were.
    async fn logs(&mut self, tx: &Tx, after: &mut (i64, i64, i64)) -> Result<bool, StoreError> {
        let most = self.pace.rows();
        let page = logs::pieces(tx, *after, most).await?;
        let before = self.bounds.logs;
        let is_late = |piece: &OldPiece| piece.attempt.is_some_and(|a| a.queued_at >= before);
        let is_old = |piece: &OldPiece| {
            piece.attempt.is_none_or(|a| {
                a.state == AttemptState::Ended && a.ended_at.is_some_and(|at| at < before)
            })
        };
        let (mut old, mut bytes, mut goes_on) =
            (Vec::new(), 0, page.len() as u64 == u64::from(most));
        for piece in &page {
            if is_late(piece) {
                goes_on = false;
                break;
            }
            *after = piece.place;
            if is_old(piece) {
                bytes += piece.size;
                old.push(piece);
            }
            if bytes >= BYTES {
                goes_on = true;
                break;
            }
        }
        let gone = if self.is_dry { old.len() as u64 } else { logs::drop_pieces(tx, &old).await? };
        self.found.gone("log pieces", gone);
        Ok(goes_on)
    }

    async fn rows(&mut self, cx: &Cx, tx: &Tx) -> Result<bool, StoreError> {
        if self.is_dry {
            return Ok(false);
        }
        let Some(run_pk) = rows::left(tx).await? else { return Ok(false) };
        let removed = rows::remove(tx, run_pk, self.pace.rows()).await?;
        // Files are beside the store only where one process is everything.
        if !cx.store.is_shared() && !removed.attempts.is_empty() {
            let tokens: Vec<String> =
                removed.attempts.iter().map(|token| token.as_i64().to_string()).collect();
            outbox::insert(tx, "purge_logs", &serde_json::json!(tokens)).await?;
        }
        self.found.gone("log pieces", removed.logs);
        self.found.gone("events", removed.events);
        self.found.gone("outputs", removed.outputs);
        self.found.gone("attempts", removed.attempts.len() as u64);
        self.found.gone("task instances", removed.instances);
        Ok(true)
    }

    async fn incidents(&mut self, tx: &Tx, after: &mut i64) -> Result<bool, StoreError> {
        let most = self.pace.rows();
        let page = jobs::incidents(tx, *after, most).await?;
        let goes_on = page.len() as u64 == u64::from(most);
        let mut old = Vec::new();
        for (id, at, is_needed) in page {
            *after = id;
            if at >= self.bounds.events {
                continue;
            }
            if is_needed {
                self.found.kept("incidents", Kept::Referred);
            } else {
                old.push(id);
            }
        }
        let dry = old.len() as u64;
        let gone = if self.is_dry { dry } else { jobs::drop_incidents(tx, &old).await? };
        self.found.gone("incidents", gone);
        Ok(goes_on)
    }

    async fn jobs(
        &mut self,
        tx: &Tx,
        at: &mut Timestamp,
        after: &mut String,
    ) -> Result<bool, StoreError> {
        let most = self.pace.rows();
        let page = jobs::jobs(tx, self.bounds.jobs, (*at, after), most).await?;
        let mut old = Vec::new();
        for found in &page {
            match job(&found.facts) {
                Err(why) if self.ignores != Some(why) => self.found.kept("jobs", why),
                _ => old.push(found),
            }
        }
        let gone = if self.is_dry { old.len() as u64 } else { jobs::drop_jobs(tx, &old).await? };
        self.found.gone("jobs", gone);
        let Some(last) = page.last() else { return Ok(false) };
        (*at, *after) = (last.ended_at, last.job_id.clone());
        Ok(page.len() as u64 == u64::from(most))
    }

    async fn homes(&mut self, tx: &Tx, after: &mut String) -> Result<bool, StoreError> {
        let most = self.pace.rows();
        let page = jobs::homes(tx, after, most).await?;
        let unused: Vec<&jobs::Home> = page.iter().filter(|home| !home.is_used).collect();
        let dry = unused.len() as u64;
        let gone = if self.is_dry { dry } else { jobs::drop_homes(tx, &unused).await? };
        self.found.gone("homes", gone);
        let Some(last) = page.last() else { return Ok(false) };
        after.clone_from(&last.home_id);
        Ok(page.len() as u64 == u64::from(most))
    }

    async fn events(&mut self, tx: &Tx, after: &mut i64) -> Result<bool, StoreError> {
        let (most, before) = (self.pace.rows(), self.bounds.events);
        if !self.is_dry {
            let gone = rest::drop_events(tx, before, most).await?;
            self.found.gone("events", gone);
            return Ok(gone == u64::from(most));
        }
        let page = rest::events(tx, *after, most).await?;
        let old = page.iter().filter(|(_, at)| *at < before).count() as u64;
        self.found.gone("events", old);
        *after = page.last().map_or(*after, |(seq, _)| *seq);
        Ok(old == u64::from(most))
    }

    async fn backfills(&mut self, tx: &Tx) -> Result<bool, StoreError> {
        let (most, before) = (self.pace.rows(), self.bounds.events);
        if self.is_dry {
            let old = rest::backfills(tx, before).await?;
            self.found.gone("backfills", old);
            return Ok(false);
        }
        let slots = rest::drop_backfill_slots(tx, before, most).await?;
        self.found.gone("backfill slots", slots);
        if slots == u64::from(most) {
            return Ok(true);
        }
        let gone = rest::drop_backfills(tx, before, most).await?;
        self.found.gone("backfills", gone);
        Ok(gone == u64::from(most))
    }

    async fn callbacks(&mut self, tx: &Tx) -> Result<bool, StoreError> {
        let (most, before) = (self.pace.rows(), self.bounds.events);
        if self.is_dry {
            let old = callback::count_ended(tx, before).await?;
            self.found.gone("callbacks", old);
            return Ok(false);
        }
        let gone = callback::prune(tx, before, most).await?;
        self.found.gone("callbacks", gone);
        Ok(gone == u64::from(most))
    }

    /// An event stays as long as a queue or a run has it; the queue of a DAG whose file is gone is no reason.
    async fn assets(&mut self, tx: &Tx) -> Result<bool, StoreError> {
        let (most, before) = (self.pace.rows(), self.bounds.events);
        if self.is_dry {
            let old = rest::asset_events(tx, before).await?;
            self.found.gone("asset events", old);
            return Ok(false);
        }
        let unqueued = rest::drop_asset_queue(tx, before, most).await?;
        if unqueued == u64::from(most) {
            return Ok(true);
        }
        let gone = rest::drop_asset_events(tx, before, most).await?;
        self.found.gone("asset events", gone);
        Ok(gone == u64::from(most))
    }

    async fn answers(&mut self, tx: &Tx) -> Result<bool, StoreError> {
        if self.is_dry {
            let old = rest::answers(tx, tx.now().minus(ANSWERS)).await?;
            self.found.gone("answers", old);
            return Ok(false);
        }
        let gone = idempotency::prune(tx, ANSWERS).await?;
        self.found.gone("answers", gone);
        Ok(gone == ANSWERS_AT_ONCE)
    }

    async fn tokens(&mut self, tx: &Tx) -> Result<bool, StoreError> {
        let (most, before) = (self.pace.rows(), self.bounds.events);
        if self.is_dry {
            let old = rest::tokens(tx, before).await?;
            self.found.gone("tokens", old);
            return Ok(false);
        }
        let gone = rest::drop_tokens(tx, before, most).await?;
        self.found.gone("tokens", gone);
        Ok(gone == u64::from(most))
    }
}

/// The first pages of a kind.
fn stages(kind: Kind) -> Vec<Stage> {
    match kind {
        Kind::Logs => vec![Stage::Logs((0, 0, -1))],
        Kind::Runs => vec![Stage::Runs(Runs::default()), Stage::Rows],
        Kind::Incidents => vec![Stage::Incidents(0)],
        Kind::Jobs => vec![Stage::Jobs(START, String::new()), Stage::Homes(String::new())],
        Kind::Events => {
            vec![Stage::Events(0), Stage::Backfills, Stage::Callbacks, Stage::Assets]
        }
        Kind::Answers => vec![Stage::Answers],
        Kind::Tokens => vec![Stage::Tokens],
    }
}

impl Stage {
    /// The same after a transaction that failed: what it had skipped is looked at again.
    fn again(self) -> Self {
        match self {
            Self::Logs(_) => Self::Logs((0, 0, -1)),
            Self::Runs(_) => Self::Runs(Runs::default()),
            Self::Incidents(_) => Self::Incidents(0),
            Self::Jobs(..) => Self::Jobs(START, String::new()),
            Self::Homes(_) => Self::Homes(String::new()),
            Self::Events(_) => Self::Events(0),
            rest @ (Self::Rows
            | Self::Backfills
            | Self::Callbacks
            | Self::Assets
            | Self::Answers
            | Self::Tokens) => rest,
        }
    }
}
