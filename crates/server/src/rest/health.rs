//! Health: of the process, and of what it is made of. Health is progress, not only a heartbeat.

use super::answer::{Answer, Done};
use super::call::Call;
use super::dag_view::time;
use fencepost_api::rest::{Health, HealthComponent};
use fencepost_core::state::JobKind;
use fencepost_core::time::{Span, Timestamp};
use fencepost_engine::drive;
use fencepost_engine::operations::workers::liveness;
use fencepost_store::query::job::{self, Job};
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

/// Everything that it takes to run tasks; 503 if the store, or all of a role, is not well.
pub(super) async fn ready(call: &Call) -> Done {
    let (store, jobs) = store(call).await;
    let mut components = vec![store];
    if call.cx().store.is_shared() {
        components.extend(roles(&jobs, call.cx().store.clock().now()));
    } else {
        components.extend(passes(call));
        components.push(worker(call, &jobs));
    }
    let serves = components.iter().all(|one| {
        let mut own = components.iter().filter(|other| other.role == one.role);
        own.any(|other| other.status == OK)
    });
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
    Answer::with_status(if serves { 200 } else { 503 }, &health)
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

/// The store, and the jobs that are believed alive in it.
async fn store(call: &Call) -> (HealthComponent, Vec<Job>) {
    let answer = async {
        let tx = call.cx().store.read("health").await?;
        job::live(&tx).await
    };
    let name = if call.cx().store.is_shared() { "postgres" } else { "sqlite" };
    match answer.await {
        Ok(jobs) => (component("store", name, None), jobs),
        Err(error) => (component("store", name, Some((DOWN, error.to_string()))), Vec::new()),
    }
}

/// Each process of an installation of many, by what its beats say; a role that nobody has is missed.
fn roles(jobs: &[Job], now: Timestamp) -> Vec<HealthComponent> {
    let mut found = Vec::new();
    for kind in [JobKind::Scheduler, JobKind::Server, JobKind::Worker] {
        let own = jobs.iter().filter(|job| job.kind == kind);
        let before = found.len();
        found.extend(own.map(|job| of_job(job, now)));
        if found.len() == before {
            let why = format!("no {kind} is registered");
            found.push(component(kind.as_str(), "-", Some((DOWN, why))));
        }
    }
    found
}

fn of_job(job: &Job, now: Timestamp) -> HealthComponent {
    let turned = job.renewed_at.minus(job.loop_age);
    let age = now.since(turned).max(Span::ZERO);
    let beat = now.since(job.renewed_at).in_secs();
    let trouble = match liveness(job, now) {
        "silent" => Some((DOWN, format!("its last beat came {beat} ago"))),
        "stalled" => Some((DEGRADED, format!("its loop last came round {} ago", age.in_secs()))),
        "draining" => Some((DEGRADED, "it is draining: it takes nothing more".to_owned())),
        _ => None,
    };
    HealthComponent {
        last_turn_at: time(Some(turned)),
        age_ms: u64::try_from(age.as_millis()).ok(),
        ..component(job.kind.as_str(), &job.name, trouble)
    }
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

fn worker(call: &Call, jobs: &[Job]) -> HealthComponent {
    if let Some(why) = (call.server.state.worker_trouble)() {
        return component("worker", "worker", Some((DEGRADED, why)));
    }
    match jobs.iter().find(|job| job.kind == JobKind::Worker) {
        Some(job) => component("worker", &job.name, None),
        None => component("worker", "worker", Some((DEGRADED, "no worker is registered".into()))),
    }
}
