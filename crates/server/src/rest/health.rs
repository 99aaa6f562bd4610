//! Health: of the process, and of what it is made of. Health is progress, not only a heartbeat.

use super::answer::{Answer, Done};
use super::call::Call;
use super::dag_view::time;
use fencepost_api::rest::{Health, HealthComponent};
use fencepost_core::state::JobKind;
use fencepost_core::time::{Span, Timestamp};
use fencepost_engine::drive;
use fencepost_store::query::job;
use std::sync::PoisonError;

const OK: &str = "ok";
const DEGRADED: &str = "degraded";
const DOWN: &str = "down";

/// The passes of the loop.
const PASSES: [&str; 4] = ["scheduler", "dispatcher", "reaper", "outbox"];
/// Scans that a loop may miss, and what a long transaction may take besides.
const SCANS: i64 = 5;
const GRACE: Span = Span::from_secs(10);

/// This process answers.
pub(super) fn live(call: &Call) -> Done {
    let version = call.server.state.version.clone();
    Answer::ok(&Health { status: OK.into(), version, components: Vec::new() })
}

/// Everything that it takes to run tasks; 503 unless all of it is well.
pub(super) async fn ready(call: &Call) -> Done {
    let mut components = vec![store(call).await];
    if call.cx().store.is_shared() {
        components.push(scheduler(call).await);
    } else {
        components.extend(passes(call));
    }
    components.push(worker(call).await);
    let worst = [DOWN, DEGRADED]
        .into_iter()
        .find(|word| components.iter().any(|component| component.status == *word));
    let status = worst.unwrap_or(OK);
    if call.principal.is_none() {
        // Texts of errors name paths and files: for those who are let in.
        for component in &mut components {
            component.detail = None;
        }
    }
    let version = call.server.state.version.clone();
    let health = Health { status: status.into(), version, components };
    Answer::with_status(if status == OK { 200 } else { 503 }, &health)
}

fn component(role: &str, name: &str, trouble: Option<(&str, String)>) -> HealthComponent {
    let (status, detail) = match trouble {
        Some((status, detail)) => (status, Some(detail)),
        None => (OK, None),
    };
    HealthComponent {
        role: role.into(),
        name: name.into(),
        status: status.into(),
        last_turn_at: None,
        age_ms: None,
        detail,
    }
}

async fn store(call: &Call) -> HealthComponent {
    let answer = async {
        let tx = call.cx().store.read("health").await?;
        job::live(&tx).await.map(drop)
    };
    let trouble = answer.await.err().map(|error| (DOWN, error.to_string()));
    let name = if call.cx().store.is_shared() { "postgres" } else { "sqlite" };
    component("store", name, trouble)
}

/// Among many processes the passes run elsewhere: somebody must be there who runs them.
async fn scheduler(call: &Call) -> HealthComponent {
    let found = async {
        let tx = call.cx().store.read("health").await?;
        job::live(&tx).await
    };
    let jobs = found.await.unwrap_or_default();
    if let Some(job) = jobs.iter().find(|job| job.kind == JobKind::Scheduler) {
        return component("scheduler", &job.name, None);
    }
    let why = (DEGRADED, "no scheduler is registered".to_owned());
    component("scheduler", "scheduler", Some(why))
}

fn passes(call: &Call) -> Vec<HealthComponent> {
    let now = call.cx().store.clock().now();
    let late = call.cx().settings.scan_interval.times(SCANS).plus(GRACE);
    let known = call.server.state.health.lock().unwrap_or_else(PoisonError::into_inner).clone();
    PASSES.iter().map(|pass| of_pass(pass, &known, now, late)).collect()
}

fn of_pass(pass: &str, known: &drive::Health, now: Timestamp, late: Span) -> HealthComponent {
    let age = known.last_turn_at.map(|at| now.since(at).max(Span::ZERO));
    let trouble = match (known.failing.get(pass), age) {
        (Some(why), _) => Some((DEGRADED, why.clone())),
        (None, None) => Some((DEGRADED, "its loop has not come round yet".into())),
        (None, Some(age)) if age > late && known.failing.is_empty() => {
            Some((DOWN, format!("its loop last came round {age} ago")))
        }
        (None, Some(_)) => None,
    };
    HealthComponent {
        last_turn_at: time(known.last_turn_at),
        age_ms: age.and_then(|age| u64::try_from(age.as_millis()).ok()),
        ..component(pass, pass, trouble)
    }
}

async fn worker(call: &Call) -> HealthComponent {
    if let Some(why) = (call.server.state.worker_trouble)() {
        return component("worker", "worker", Some((DEGRADED, why)));
    }
    let found = async {
        let tx = call.cx().store.read("health").await?;
        job::live(&tx).await
    };
    let jobs = found.await.unwrap_or_default();
    match jobs.iter().find(|job| job.kind == JobKind::Worker) {
        Some(job) => component("worker", &job.name, None),
        None => component("worker", "worker", Some((DEGRADED, "no worker is registered".into()))),
    }
}
