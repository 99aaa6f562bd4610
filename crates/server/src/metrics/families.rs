//! Every family of the document: names, help, labels.
//!
//! Labels are bounded: states, kinds and reasons by the vocabulary, pools and queues by what people made.

use super::pulse::Pulse;
use super::text::{Kind, Sample, Text};
use fencepost_core::state::AttemptState;
use fencepost_core::time::{Span, Timestamp};
use fencepost_engine::meters::{FAMILIES, GAUGES, Meters};
use fencepost_store::query::vitals::{Jobs, age};
use std::collections::BTreeMap;

const KINDS: [&str; 3] = ["worker", "scheduler", "server"];

/// What the store says.
pub(super) fn of_store(text: &mut Text, pulse: &Pulse) {
    jobs(text, pulse);
    work(text, pulse);
    recovery(text, pulse);
    pools(text, pulse);
    effects(text, pulse);
}

#[rustfmt::skip]
fn jobs(text: &mut Text, pulse: &Pulse) {
    let count = |job: &Jobs| number(job.count);
    let all: Vec<(&str, &str, f64)> =
        KINDS.iter().flat_map(|kind| ["running", "draining"].map(|state| {
            let own = pulse.jobs.iter().find(|job| job.kind == *kind && job.state == state);
            (*kind, state, own.map_or(0.0, count))
        })).collect();
    text.family(Kind::Gauge, "fencepost_jobs", "Processes whose lease is not over.",
        all.iter().map(|(kind, state, count)| (vec![("kind", *kind), ("state", *state)], *count)));
    let oldest = |of: fn(&Jobs) -> Timestamp| by_kind(pulse, move |job| seconds(age(pulse.now, of(job))));
    text.family(Kind::Gauge, "fencepost_oldest_heartbeat_age_seconds", "Age of the oldest last beat of a living process.",
        labelled("kind", &oldest(|job| job.beat_at)));
    text.family(Kind::Gauge, "fencepost_oldest_turn_age_seconds", "Age of the oldest last turn of a living process's main loop: progress, not only beats.",
        labelled("kind", &oldest(|job| job.turned_at)));
    let expiring = |kind: &str| pulse.jobs.iter().filter(|job| job.kind == kind).map(|job| number(job.expiring)).sum();
    let expiring: BTreeMap<&str, f64> = KINDS.iter().map(|kind| (*kind, expiring(kind))).collect();
    text.family(Kind::Gauge, "fencepost_leases_expiring", "Leases of which less than a third is left.", labelled("kind", &expiring));
    let figures = &pulse.figures;
    text.gauge("fencepost_detached_workers", "Workers that stopped and left running tasks to their successor.", number(figures.detached));
    text.gauge("fencepost_departed_jobs", "Jobs that are over and whose attempts are being worked off.", number(figures.departed));
}

/// The worst of each kind, over its states.
fn by_kind(pulse: &Pulse, of: impl Fn(&Jobs) -> f64) -> BTreeMap<&str, f64> {
    let mut found: BTreeMap<&str, f64> = BTreeMap::new();
    for job in &pulse.jobs {
        let worst = found.entry(job.kind.as_str()).or_default();
        *worst = worst.max(of(job));
    }
    found
}

#[rustfmt::skip]
fn work(text: &mut Text, pulse: &Pulse) {
    let queued: i64 = pulse.queued.iter().map(|one| one.count).sum();
    let mut states: BTreeMap<&str, f64> = [AttemptState::Claimed, AttemptState::Running, AttemptState::Stopping, AttemptState::LostOpen]
        .iter().map(|state| (state.as_str(), 0.0)).collect();
    states.insert("queued", number(queued));
    states.extend(pulse.open.iter().map(|(state, count)| (state.as_str(), number(*count))));
    text.family(Kind::Gauge, "fencepost_attempts", "Attempts that have not ended.", labelled("state", &states));
    let (mut depth, mut oldest): (BTreeMap<&str, f64>, BTreeMap<&str, f64>) = Default::default();
    for one in &pulse.queued {
        *depth.entry(&one.queue).or_default() += number(one.count);
        let worst = oldest.entry(&one.queue).or_default();
        *worst = worst.max(seconds(age(pulse.now, one.oldest_at)));
    }
    text.family(Kind::Gauge, "fencepost_queued_attempts", "Attempts that wait for a worker.", labelled("queue", &depth));
    text.family(Kind::Gauge, "fencepost_oldest_queued_age_seconds", "How long the oldest of them has waited.", labelled("queue", &oldest));
    let unserved: BTreeMap<&str, f64> = depth.iter()
        .map(|(queue, count)| (*queue, if pulse.served.contains(*queue) { 0.0 } else { *count })).collect();
    text.family(Kind::Gauge, "fencepost_unserved_attempts", "Those of them, recovered ones too, whose queue no running worker serves.", labelled("queue", &unserved));
    let scheduled: BTreeMap<&str, f64> = pulse.scheduled.iter().map(|one| (one.pool.as_str(), number(one.count))).collect();
    let waits = pulse.scheduled.iter().filter_map(|one| Some((one.pool.as_str(), seconds(age(pulse.now, one.oldest_at?)))));
    text.family(Kind::Gauge, "fencepost_scheduled_tasks", "Task instances that wait for a slot or a limit.", labelled("pool", &scheduled));
    text.family(Kind::Gauge, "fencepost_oldest_scheduled_age_seconds", "How long the oldest of them has waited.", labelled("pool", &waits.collect()));
    let runs: BTreeMap<&str, f64> = pulse.runs.iter().map(|(state, count)| (state.as_str(), number(*count))).collect();
    text.family(Kind::Gauge, "fencepost_runs", "DAG runs that have not ended.", labelled("state", &runs));
    let late = |at: Option<Timestamp>| at.map_or(0.0, |at| seconds(age(pulse.now, at)));
    text.gauge("fencepost_schedule_lag_seconds", "How overdue the most overdue slot of a schedule is.", late(pulse.figures.next_slot_at));
    text.gauge("fencepost_retry_lag_seconds", "How overdue the most overdue retry is.", late(pulse.figures.next_retry_at));
}

#[rustfmt::skip]
fn recovery(text: &mut Text, pulse: &Pulse) {
    let mut held: BTreeMap<&str, f64> = ["awaiting_person", "awaiting_evidence", "poison", "other"].iter().map(|reason| (*reason, 0.0)).collect();
    for (reason, count) in &pulse.held {
        let reason = if held.contains_key(reason.as_str()) { reason.as_str() } else { "other" };
        *held.entry(reason).or_default() += number(*count);
    }
    text.family(Kind::Gauge, "fencepost_held", "Task instances that wait for a person or for evidence.", labelled("reason", &held));
    let open = pulse.open.iter().find(|(state, _)| state == "lost_open").map_or(0, |(_, count)| *count);
    text.gauge("fencepost_may_still_run", "Lost attempts of which nobody knows whether their processes are gone.", number(open + pulse.figures.may_run));
    let mut waiting: BTreeMap<&str, f64> = pulse.ramps.iter().map(|(pool, _)| (pool.as_str(), 0.0)).collect();
    for one in pulse.queued.iter().filter(|one| !one.ramp.is_empty()) {
        *waiting.entry(&one.ramp).or_default() += number(one.count);
    }
    text.family(Kind::Gauge, "fencepost_ramp_backlog", "Recovered attempts that wait for their pool's ramp.", labelled("pool", &waiting));
    text.family(Kind::Gauge, "fencepost_ramp_rate", "Starts a second that a pool's ramp lets go; none: no ramp is in force.",
        pulse.ramps.iter().map(|(pool, rate)| (vec![("pool", pool.as_str())], *rate)));
    text.family(Kind::Counter, "fencepost_incidents_total", "Incidents that were ever opened.", [(vec![], number(pulse.figures.incidents))]);
    text.gauge("fencepost_incidents_open", "Incidents that are not closed.", number(pulse.figures.incidents_open));
    let Some(standing) = pulse.standing else { return };
    let is_behind = standing.reconciled != standing.epoch || !standing.is_same_server;
    text.gauge("fencepost_epoch", "The installation's epoch.", f64::from(standing.epoch));
    text.gauge("fencepost_epoch_reconciling", "1 while nothing is dispatched because workers have to come to a new epoch.", f64::from(u8::from(is_behind)));
    let since = if is_behind { seconds(age(pulse.now, standing.epoch_at)) } else { 0.0 };
    text.gauge("fencepost_epoch_reconciling_seconds", "For how long.", since);
}

#[rustfmt::skip]
fn pools(text: &mut Text, pulse: &Pulse) {
    let of = |value: fn(&fencepost_store::query::pool::Pool) -> i64| -> BTreeMap<&str, f64> {
        pulse.pools.iter().map(|pool| (pool.name.as_str(), number(value(pool)))).collect()
    };
    text.family(Kind::Gauge, "fencepost_pool_slots", "Slots of a pool.", labelled("pool", &of(|pool| pool.slots)));
    text.family(Kind::Gauge, "fencepost_pool_slots_used", "Slots that attempts hold.", labelled("pool", &of(|pool| pool.held)));
}

#[rustfmt::skip]
fn effects(text: &mut Text, pulse: &Pulse) {
    let effects = pulse.effects;
    text.gauge("fencepost_outbox_waiting", "Effects that are not carried out yet.", number(effects.waiting));
    text.gauge("fencepost_outbox_failing", "Effects that have failed at least once.", number(effects.failing));
    text.gauge("fencepost_outbox_dead", "Effects that nobody will carry out: given up, or failed ten times.", number(effects.dead));
    let oldest = effects.oldest_at.map_or(0.0, |at| seconds(age(pulse.now, at)));
    text.gauge("fencepost_outbox_oldest_age_seconds", "How long the oldest of them has waited.", oldest);
    let callbacks = pulse.callbacks;
    text.gauge("fencepost_callbacks_waiting", "Callbacks that have not arrived yet.", number(callbacks.due));
    text.gauge("fencepost_callbacks_failing", "Those of them that have failed at least once.", number(callbacks.failing));
    text.gauge("fencepost_callbacks_dead", "Callbacks that nobody tries to deliver any more, until a person asks for another round.", number(callbacks.dead));
    let oldest = callbacks.oldest_at.map_or(0.0, |at| seconds(age(pulse.now, at)));
    text.gauge("fencepost_callbacks_oldest_age_seconds", "How long the oldest of those that wait has waited.", oldest);
}

/// What this process counted itself.
#[rustfmt::skip]
pub(super) fn of_process(text: &mut Text, meters: &Meters) {
    let counts = meters.counts();
    for family in FAMILIES {
        let own = counts.iter().filter(|((name, _), _)| *name == family.name);
        let samples = own.map(|((_, label), count)| {
            let labels = if family.label.is_empty() { vec![] } else { vec![(family.label, label.as_str())] };
            (labels, whole(*count))
        });
        text.family(Kind::Counter, family.name, family.help, samples);
    }
    let gauges = meters.gauges();
    for (name, help) in GAUGES {
        if let Some(value) = gauges.get(name) {
            text.gauge(name, help, whole(*value));
        }
    }
    let passes = meters.passes();
    let of = |value: fn(&fencepost_engine::meters::Durations) -> f64| -> BTreeMap<&str, f64> {
        passes.iter().map(|(pass, own)| (*pass, value(own))).collect()
    };
    text.family(Kind::Counter, "fencepost_pass_turns_total", "Turns of each pass.", labelled("pass", &of(|own| whole(own.turns))));
    text.family(Kind::Counter, "fencepost_pass_failures_total", "Turns that failed, wholly or for some rows.", labelled("pass", &of(|own| whole(own.failed))));
    text.family(Kind::Counter, "fencepost_pass_seconds_total", "Time that each pass took.", labelled("pass", &of(|own| seconds(own.whole))));
}

fn labelled<'a>(label: &'static str, values: &BTreeMap<&'a str, f64>) -> Vec<Sample<'a>> {
    values.iter().map(|(text, value)| (vec![(label, *text)], *value)).collect()
}

fn seconds(span: Span) -> f64 {
    number(span.as_micros()) / 1_000_000.0
}

#[expect(clippy::cast_precision_loss, reason = "figures for people, far below 2^53")]
fn number(count: i64) -> f64 {
    count as f64
}

#[expect(clippy::cast_precision_loss, reason = "figures for people, far below 2^53")]
fn whole(count: u64) -> f64 {
    count as f64
}
