//! Settings that are legal and surprise later: the gotchas that operators of other schedulers have met.

use super::{Finding, Severity, lease_settings, spans};
use crate::config::Settings;
use crate::config::keys::share;
use fencepost_core::time::Span;

/// Slots of the pool that every installation begins with.
const DEFAULT_POOL: u32 = 128;
/// Servers gather beats for a tenth of a second before they write them.
const GATHERED: Span = Span::from_millis(100);
/// Roles bound a transaction by what their lease leaves after its self-fence; below this little fits in.
const TRANSACTION_LEAST: Span = Span::from_secs(2);
/// What systemd waits before it kills, as the unit of docs/production.md says; and Kubernetes and Docker, by default.
const SYSTEMD_GRACE: Span = Span::from_secs(60);
const CONTAINER_GRACE: Span = Span::from_secs(30);
/// A failover of a database takes about this long.
const FAILOVER: Span = Span::from_secs(30);

fn doubt(keys: &[&str], message: String, mend: String) -> Finding {
    let keys = keys.iter().map(ToString::to_string).collect();
    Finding { severity: Severity::Warning, keys, message, mend }
}

/// Each of them.
pub(super) fn all(settings: &Settings) -> Vec<Finding> {
    let each = [
        scan,
        start_timeout,
        adoption_timeout,
        gathered,
        short_lease,
        drain_within_grace,
        drain_within_lease,
        stop_within_grace,
        stop_within_fence,
        ramp,
        brake,
        logs_after_runs,
        runs_too_short,
        jobs_before_leases,
        ping,
        ping_faster_than_scans,
        insecure_for_nothing,
    ];
    let mut found: Vec<Finding> = each.iter().filter_map(|check| check(settings)).collect();
    found.extend(["scheduler", "server"].iter().filter_map(|role| transactions(settings, role)));
    found
}

/// A lease can be seen to be over only by several looks within it.
fn scan(settings: &Settings) -> Option<Finding> {
    let scan = settings.span("scheduler.scan_interval")?;
    let ttls = ["scheduler", "server", "triggerer", "worker"].map(|section| {
        let key = format!("{section}.lease_ttl");
        (settings.span(&key).unwrap_or(Span::MAX), key)
    });
    let (shortest, key) = ttls.into_iter().min()?;
    let most = Span::from_micros(shortest.as_micros() / 10);
    (scan > most).then(|| {
        doubt(
            &["scheduler.scan_interval", &key],
            format!("scheduler.scan_interval {scan} is more than a tenth of {key} {shortest}"),
            format!("scheduler.scan_interval = \"{most}\" or less"),
        )
    })
}

/// A claim is taken back before its worker had a chance to say that it is there.
fn start_timeout(settings: &Settings) -> Option<Finding> {
    let [timeout, beat] =
        spans(settings, ["scheduler.start_timeout", "worker.heartbeat_interval"])?;
    let least = beat.times(6);
    (timeout < least).then(|| {
        doubt(
            &["scheduler.start_timeout", "worker.heartbeat_interval"],
            format!(
                "scheduler.start_timeout {timeout} is over before a worker has said what it holds \
                 (every sixth worker.heartbeat_interval {beat})"
            ),
            format!("scheduler.start_timeout = \"{least}\" or more"),
        )
    })
}

/// The orphan check against the health threshold: an orphan must have had time to be vouched for.
fn adoption_timeout(settings: &Settings) -> Option<Finding> {
    let [timeout, ttl] = spans(settings, ["scheduler.adoption_timeout", "scheduler.lease_ttl"])?;
    (timeout < ttl).then(|| {
        doubt(
            &["scheduler.adoption_timeout", "scheduler.lease_ttl"],
            format!(
                "scheduler.adoption_timeout {timeout} is shorter than scheduler.lease_ttl {ttl}: \
                 work would be taken back before who took it over has a settled lease"
            ),
            format!("scheduler.adoption_timeout = \"{ttl}\" or more"),
        )
    })
}

fn gathered(settings: &Settings) -> Option<Finding> {
    let beat = settings.span("worker.heartbeat_interval")?;
    let least = GATHERED.times(10);
    (beat < least).then(|| {
        doubt(
            &["worker.heartbeat_interval"],
            format!(
                "worker.heartbeat_interval {beat} is close to the {GATHERED} for which servers \
                 gather beats: it costs transactions and finds nothing sooner"
            ),
            format!("worker.heartbeat_interval = \"{least}\" or more"),
        )
    })
}

fn short_lease(settings: &Settings) -> Option<Finding> {
    let ttl = settings.span("worker.lease_ttl")?;
    let fence = lease_settings(settings, "worker").check().ok()?.self_fence;
    (fence < FAILOVER).then(|| {
        doubt(
            &["worker.lease_ttl", "worker.self_fence"],
            format!(
                "worker.lease_ttl {ttl}: a store that is away for {fence}, as in a failover, costs \
                 every running task"
            ),
            "worker.lease_ttl = \"60s\" or more".into(),
        )
    })
}

fn drain_within_grace(settings: &Settings) -> Option<Finding> {
    let drain = settings.span("worker.drain_timeout")?;
    (drain > SYSTEMD_GRACE).then(|| {
        doubt(
            &["worker.drain_timeout", "TimeoutStopSec"],
            format!(
                "worker.drain_timeout {drain} is longer than TimeoutStopSec {SYSTEMD_GRACE} of the \
                 documented unit: systemd kills the worker while it waits"
            ),
            format!(
                "worker.drain_timeout = \"{SYSTEMD_GRACE}\" or less, or a longer TimeoutStopSec"
            ),
        )
    })
}

fn drain_within_lease(settings: &Settings) -> Option<Finding> {
    let [drain, ttl] = spans(settings, ["worker.drain_timeout", "worker.lease_ttl"])?;
    (drain > ttl).then(|| {
        doubt(
            &["worker.drain_timeout", "worker.lease_ttl"],
            format!("worker.drain_timeout {drain} is longer than worker.lease_ttl {ttl}"),
            format!("worker.drain_timeout = \"{ttl}\" or less"),
        )
    })
}

fn stop_within_grace(settings: &Settings) -> Option<Finding> {
    let stop = settings.span("worker.stop_timeout")?;
    (stop >= CONTAINER_GRACE).then(|| {
        doubt(
            &["worker.stop_timeout", "terminationGracePeriodSeconds"],
            format!(
                "worker.stop_timeout {stop} is not below terminationGracePeriodSeconds \
                 {CONTAINER_GRACE}: containers are killed before their tasks are reported"
            ),
            "worker.stop_timeout = \"25s\" or less, or a longer terminationGracePeriodSeconds"
                .into(),
        )
    })
}

fn stop_within_fence(settings: &Settings) -> Option<Finding> {
    let stop = settings.span("worker.stop_timeout")?;
    let fence = lease_settings(settings, "worker").check().ok()?.self_fence;
    (stop > fence).then(|| {
        doubt(
            &["worker.stop_timeout", "worker.self_fence"],
            format!("worker.stop_timeout {stop} is longer than worker.self_fence {fence}"),
            format!("worker.stop_timeout = \"{fence}\" or less"),
        )
    })
}

/// A ramp that begins above where it may go is none.
fn ramp(settings: &Settings) -> Option<Finding> {
    let most: u32 = settings.text("recovery.max_rate")?.replace('_', "").parse().ok()?;
    let initial = settings.text("recovery.initial").and_then(share)?;
    let first = (DEFAULT_POOL * initial / 100).max(1);
    (most < first).then(|| {
        doubt(
            &["recovery.max_rate", "recovery.initial"],
            format!(
                "recovery.max_rate {most} is below what recovery.initial {initial}% of a pool of \
                 {DEFAULT_POOL} slots begins with"
            ),
            format!("recovery.max_rate = {first} or more"),
        )
    })
}

/// The brake must be able to engage, and not at the loss of one rack.
fn brake(settings: &Settings) -> Option<Finding> {
    let percent = settings.text("scheduler.mass_loss_threshold").and_then(share)?;
    let (what, mend) = match percent {
        0..10 => ("holds up the recovery of almost any loss for one more TTL", "\"20%\" or more"),
        100.. => {
            ("can never be passed: many false deaths at once are taken for true", "\"90%\" or less")
        }
        _ => return None,
    };
    Some(doubt(
        &["scheduler.mass_loss_threshold"],
        format!("scheduler.mass_loss_threshold {percent}% {what}"),
        format!("scheduler.mass_loss_threshold = {mend}"),
    ))
}

/// A log without its run cannot be found.
fn logs_after_runs(settings: &Settings) -> Option<Finding> {
    let [runs, logs] = spans(settings, ["retention.runs", "retention.logs"])?;
    (logs > runs).then(|| {
        doubt(
            &["retention.logs", "retention.runs"],
            format!("retention.logs {logs} is longer than retention.runs {runs}"),
            format!("retention.logs = \"{runs}\" or less"),
        )
    })
}

/// `--if-not-exists` knows a run as long as it is there.
fn runs_too_short(settings: &Settings) -> Option<Finding> {
    let runs = settings.span("retention.runs")?;
    let least = Span::from_hours(24);
    (runs < least).then(|| {
        doubt(
            &["retention.runs"],
            format!(
                "retention.runs {runs}: a trigger of the same run id later than that makes the run \
                 once more"
            ),
            "retention.runs = \"24h\" or more".into(),
        )
    })
}

/// What is forgotten while it may still be asked about.
fn jobs_before_leases(settings: &Settings) -> Option<Finding> {
    let [jobs, ttl] = spans(settings, ["retention.jobs", "worker.lease_ttl"])?;
    let least = ttl.times(2);
    (jobs < least).then(|| {
        doubt(
            &["retention.jobs", "worker.lease_ttl"],
            format!("retention.jobs {jobs} is shorter than two worker.lease_ttl {ttl}"),
            format!("retention.jobs = \"{least}\" or more"),
        )
    })
}

fn ping(settings: &Settings) -> Option<Finding> {
    let set = settings.all().any(|(key, setting)| {
        key.name == "alerts.ping_interval" && setting.place.origin() != "default"
    });
    (set && settings.text("alerts.ping_url").is_none()).then(|| {
        doubt(
            &["alerts.ping_interval", "alerts.ping_url"],
            "alerts.ping_interval is set, but there is no alerts.ping_url to call".into(),
            "alerts.ping_url = \"http://HOST/PATH\"".into(),
        )
    })
}

/// A ping says that passes make progress; there is none to tell of between two scans.
fn ping_faster_than_scans(settings: &Settings) -> Option<Finding> {
    settings.text("alerts.ping_url")?;
    let ping = settings.span("alerts.ping_interval")?;
    let scan = settings.span("scheduler.scan_interval").unwrap_or(Span::from_secs(2));
    let least = scan.times(2);
    (ping < least).then(|| {
        doubt(
            &["alerts.ping_interval", "scheduler.scan_interval"],
            format!(
                "alerts.ping_interval {ping} is less than two scheduler.scan_interval {scan}: a \
                 quiet scheduler would look silent"
            ),
            format!("alerts.ping_interval = \"{least}\" or more"),
        )
    })
}

fn insecure_for_nothing(settings: &Settings) -> Option<Finding> {
    let is_insecure = settings.text("server.insecure") == Some("true");
    (is_insecure && settings.text("server.tls_cert").is_some()).then(|| {
        doubt(
            &["server.insecure", "server.tls_cert"],
            "server.insecure is set, and server.tls_cert too: it has no effect".into(),
            "server.insecure = \"false\"".into(),
        )
    })
}

/// Statements and transactions end within what the lease leaves after its self-fence.
fn transactions(settings: &Settings, role: &str) -> Option<Finding> {
    let lease = lease_settings(settings, role).check().ok()?;
    let left = Span::from_micros(lease.lease_ttl.as_micros() - lease.self_fence.as_micros());
    let key = format!("{role}.lease_ttl");
    (left < TRANSACTION_LEAST).then(|| {
        doubt(
            &[&key, "statement_timeout"],
            format!(
                "{key} {} leaves {left} between its self-fence and its end: each of its \
                 transactions, statement_timeout included, must be shorter",
                lease.lease_ttl
            ),
            format!("{key} = \"10s\" or more"),
        )
    })
}
