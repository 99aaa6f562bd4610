//! The installation: version, audit, configuration.

use super::answer::{Answer, Done};
use super::call::Call;
use super::cursor;
use fencepost_api::rest::{ConfigValue, Doctor, ListQuery, Version, Violation};
use fencepost_core::time::Timestamp;
use fencepost_engine::doctor;
use fencepost_store::SCHEMA_VERSION;
use fencepost_store::query::installation;
use std::sync::PoisonError;

pub(super) async fn version(call: &Call) -> Done {
    let tx = call.read().await?;
    let own = installation::load(&tx).await?;
    Answer::ok(&Version {
        version: call.server.state.version.clone(),
        api: "v1".into(),
        store: if call.cx().store.is_shared() { "postgresql" } else { "sqlite" }.into(),
        schema: u32::try_from(SCHEMA_VERSION).unwrap_or(u32::MAX),
        epoch: own.as_ref().map_or(0, |own| own.epoch),
        installation_id: own.map(|own| own.installation_id).unwrap_or_default(),
        started_at: call.server.state.started_at.to_string(),
    })
}

pub(super) async fn doctor(call: &Call) -> Done {
    let found = doctor::examine(call.cx()).await?;
    let at = call.cx().store.clock().now();
    let mut report = doctor_report(found, at);
    report.remarks.extend(remarks(call));
    Answer::ok(&report)
}

/// Findings as they are told.
pub fn doctor_report(found: doctor::Findings, at: Timestamp) -> Doctor {
    let violations = found.violations.into_iter().map(|violation| Violation {
        invariant: violation.invariant.to_owned(),
        sentence: name_of(violation.invariant).to_owned(),
        subject: violation.subject,
        detail: violation.what,
    });
    Doctor {
        at: at.to_string(),
        runs_checked: u64::try_from(found.runs).unwrap_or(u64::MAX),
        attempts_checked: u64::try_from(found.attempts).unwrap_or(u64::MAX),
        violations: violations.collect(),
        remarks: untold(found.dead_callbacks).into_iter().collect(),
    }
}

/// Of callbacks that nobody tries any more.
fn untold(count: u64) -> Option<String> {
    let dead = match count {
        0 => return None,
        1 => "1 callback is dead: its receiver was".to_owned(),
        count => format!("{count} callbacks are dead: their receivers were"),
    };
    Some(format!("{dead} not told, and nobody tries again (fencepost callbacks list --state dead)"))
}

/// The names of 1-semantics section 8.
fn name_of(invariant: &str) -> &'static str {
    match invariant {
        "I1" => "single owner",
        "I2" => "tokens rise",
        "I3" => "fenced result",
        "I4" => "terminal is absorbing",
        "I5" => "no overlap",
        "I7" => "one effect per success",
        "I8" => "budgets are exact",
        "I13" => "cancel is final",
        "I14" => "limits hold",
        "I15" => "timers are rows",
        "I17" => "schedule exactness",
        "I24" => "no ghost, no loss",
        "I29" => "poison is held",
        "I32" => "quiescence",
        "I34" => "nothing silent",
        _ => "an invariant",
    }
}

/// What is not wrong in the store, but keeps work from going on.
fn remarks(call: &Call) -> Vec<String> {
    let state = &call.server.state;
    let mut remarks: Vec<String> = Vec::new();
    let health = state.health.lock().unwrap_or_else(PoisonError::into_inner);
    remarks.extend(health.failing.iter().map(|(pass, why)| format!("{pass} fails: {why}")));
    drop(health);
    remarks.extend((state.worker_trouble)().map(|why| format!("worker: {why}")));
    remarks
}

pub(super) fn config(call: &Call) -> Done {
    let query: ListQuery = call.query()?;
    let limit = cursor::limit(query.limit);
    let [after] = cursor::read("config", query.cursor.as_deref())?.unwrap_or_default();
    let mut rows: Vec<&ConfigValue> = call.server.state.config.iter().collect();
    rows.sort_by(|a, b| a.key.cmp(&b.key));
    rows.retain(|row| row.key > after);
    let (rows, next) = cursor::cut(rows, limit, |row| cursor::write("config", &[&row.key]));
    Answer::ok(&cursor::page(rows, next))
}
