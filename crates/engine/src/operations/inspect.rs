//! The classic questions of 02:40: which schedulers live, what is a zombie, what is an orphan, what
//! waits on a trigger, and is there a ghost. Read from the store alone, so they are answered also
//! while no scheduler lives.

mod callbacks;
pub(crate) mod triggers;

use super::workers::liveness;
use crate::Cx;
use crate::doctor;
use crate::error::{EngineError, Refusal};
use fencepost_core::state::{AttemptState, JobKind, JobState};
use fencepost_core::time::Timestamp;
use fencepost_store::Tx;
use fencepost_store::query::attempt::{self, Attempt, afterwards};
use fencepost_store::query::job::{self, Job};
use fencepost_store::query::run;
use fencepost_store::query::task_instance;
use std::collections::BTreeMap;

/// A question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    Schedulers,
    Zombies,
    Orphans,
    Triggers,
    Callbacks,
    Ghosts,
}

impl Question {
    /// Every question.
    pub const ALL: [Self; 6] = [
        Self::Schedulers,
        Self::Zombies,
        Self::Orphans,
        Self::Triggers,
        Self::Callbacks,
        Self::Ghosts,
    ];

    /// The word of the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Schedulers => "schedulers",
            Self::Zombies => "zombies",
            Self::Orphans => "orphans",
            Self::Triggers => "triggers",
            Self::Callbacks => "callbacks",
            Self::Ghosts => "ghosts",
        }
    }

    /// The question of that word.
    pub fn parse(word: &str) -> Result<Self, EngineError> {
        let found = Self::ALL.into_iter().find(|question| question.as_str() == word);
        found.ok_or_else(|| {
            let all: Vec<&str> = Self::ALL.iter().map(|question| question.as_str()).collect();
            Refusal::Invalid(format!("`{word}` is no question; ask for {}", all.join(", "))).into()
        })
    }
}

/// Something found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub subject: String,
    pub state: String,
    pub since: Option<Timestamp>,
    pub owner: Option<String>,
    /// What is the matter, and what happens next by itself.
    pub detail: String,
}

const PAGE: u32 = 500;

/// The answer to a question.
pub async fn inspect(cx: &Cx, question: Question) -> Result<Vec<Found>, EngineError> {
    match question {
        Question::Schedulers => schedulers(cx).await,
        Question::Zombies => {
            let mut found = attempts(cx, zombie).await?;
            found.extend(doubts(cx).await?);
            Ok(found)
        }
        Question::Orphans => attempts(cx, orphan).await,
        Question::Triggers => triggers::triggers(cx).await,
        Question::Callbacks => callbacks::callbacks(cx).await,
        Question::Ghosts => ghosts(cx).await,
    }
}

async fn schedulers(cx: &Cx) -> Result<Vec<Found>, EngineError> {
    let tx = cx.store.read("inspect").await?;
    let jobs = job::live(&tx).await?;
    let now = tx.now();
    // A standalone has a worker's job only, and schedules under it.
    let own = |job: &&Job| {
        job.kind == JobKind::Scheduler || (job.kind == JobKind::Worker && job.lease_ttl.is_none())
    };
    Ok(jobs.iter().filter(own).map(|job| scheduler(job, now)).collect())
}

fn scheduler(job: &Job, now: Timestamp) -> Found {
    let lease = job.lease_ttl.map_or_else(
        || "no lease: held by its home's lock".to_owned(),
        |ttl| {
            let end = job.renewed_at.plus(ttl);
            if end > now {
                format!("lease for {} more", end.since(now).in_secs())
            } else {
                format!("lease over since {}", now.since(end).in_secs())
            }
        },
    );
    Found {
        subject: format!("{}@{}", job.name, job.host),
        state: liveness(job, now).into(),
        since: Some(job.started_at),
        owner: Some(job.job_id.to_string()),
        detail: format!("{lease}; epoch {}; last turn {} ago", job.epoch, job.loop_age.in_secs()),
    }
}

/// What is the matter with an attempt, if anything is.
type Judge = fn(&Attempt, Option<&Job>, Timestamp) -> Option<String>;

async fn attempts(cx: &Cx, judge: Judge) -> Result<Vec<Found>, EngineError> {
    let tx = cx.store.read("inspect").await?;
    let mut found = Vec::new();
    let mut owners: BTreeMap<String, Option<Job>> = BTreeMap::new();
    let mut after = (String::new(), 0);
    loop {
        let page = attempt::in_hands(&tx, (&after.0, after.1), PAGE).await?;
        for own in &page {
            let job = own.job_id.map(|job| job.to_string());
            after = (job.unwrap_or_default(), own.token.as_i64());
            let owner = owner(&tx, &mut owners, own).await?;
            if let Some(detail) = judge(own, owner.as_ref(), tx.now()) {
                found.push(finding(&tx, own, detail).await?);
            }
        }
        if page.len() < PAGE as usize {
            return Ok(found);
        }
    }
}

/// What was closed without a proof that its processes are gone.
async fn doubts(cx: &Cx) -> Result<Vec<Found>, EngineError> {
    let tx = cx.store.read("inspect").await?;
    let tokens = afterwards::doubts(&tx, PAGE).await?;
    let mut found = Vec::new();
    for own in attempt::get(&tx, &tokens).await? {
        let detail = "closed when its lease ended, and may still run: its own late report, a \
                      successor in its home or a person (confirm-dead) ends the doubt";
        found.push(finding(&tx, &own, detail.into()).await?);
    }
    Ok(found)
}

async fn owner(
    tx: &Tx,
    known: &mut BTreeMap<String, Option<Job>>,
    own: &Attempt,
) -> Result<Option<Job>, EngineError> {
    let Some(id) = own.job_id else { return Ok(None) };
    let key = id.to_string();
    if !known.contains_key(&key) {
        known.insert(key.clone(), job::get(tx, id).await?);
    }
    Ok(known.get(&key).cloned().flatten())
}

/// Its worker's lease is over, or it was closed, while its processes may still run.
fn zombie(own: &Attempt, owner: Option<&Job>, now: Timestamp) -> Option<String> {
    if own.state == AttemptState::LostOpen {
        return Some("lost, and may still run: evidence or a person closes it".into());
    }
    let owner = owner?;
    match liveness(owner, now) {
        "lost" => Some("its worker is lost: a scheduler's next pass replaces it".into()),
        "detached" => Some(
            "its worker stopped and left it to its shim: a successor in its home \
                            takes it up, or its lease ends"
                .into(),
        ),
        "silent" => Some(format!(
            "no beat of its worker since {}: a suspicion, its lease is not over",
            owner.renewed_at
        )),
        _ => None,
    }
}

/// Claimed by a job that is over, and not settled yet.
fn orphan(own: &Attempt, owner: Option<&Job>, _now: Timestamp) -> Option<String> {
    if own.state == AttemptState::Queued {
        return None;
    }
    match owner {
        None => Some("no job has it: a scheduler's next pass settles it".into()),
        Some(job) if job.state == JobState::Lost => {
            Some(format!("its worker {} is lost: a scheduler's next pass settles it", job.name))
        }
        Some(job) if job.state == JobState::Stopped && job.succeeded_by.is_none() => {
            Some(format!("its worker {} has stopped and has no successor yet", job.name))
        }
        Some(_) => None,
    }
}

async fn finding(tx: &Tx, own: &Attempt, detail: String) -> Result<Found, EngineError> {
    let run = run::by_pks(tx, &[own.ti.run_pk]).await?.pop();
    let ti = task_instance::get(tx, &[own.ti]).await?.pop();
    let name = |text: Option<String>| text.unwrap_or_else(|| "?".into());
    let (run, task) = (run.map(|run| run.run_id), ti.map(|ti| ti.task_id));
    Ok(Found {
        subject: format!("{}/{}/{}", own.dag_id, name(run), name(task)),
        state: own.state.to_string(),
        since: own.started_at.or(own.claimed_at),
        owner: own.worker.clone(),
        detail: format!("attempt {}: {detail}", own.token),
    })
}

/// There must never be one: what the audit finds of I24.
async fn ghosts(cx: &Cx) -> Result<Vec<Found>, EngineError> {
    let found = doctor::examine(cx).await?.violations;
    let ghosts = found.into_iter().filter(|violation| violation.invariant == "I24");
    Ok(ghosts
        .map(|violation| Found {
            subject: violation.subject,
            state: "ghost".into(),
            since: None,
            owner: None,
            detail: violation.what,
        })
        .collect())
}
