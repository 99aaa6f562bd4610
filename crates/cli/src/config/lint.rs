//! Contradictions between keys: the inequalities that make a lease safe, and settings that have
//! no effect. Each finding names both keys and the value to write.

use super::Settings;
use fencepost_core::lease::{LeaseError, LeaseSettings};
use fencepost_core::time::Span;

/// A contradiction.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Finding {
    pub(crate) keys: Vec<String>,
    pub(crate) message: String,
    /// The line to write.
    pub(crate) mend: String,
}

/// Every contradiction.
pub(crate) fn lint(settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    for section in ["worker", "scheduler", "server", "triggerer"] {
        findings.extend(lease(settings, section));
    }
    findings.extend(scan(settings));
    findings.extend(retention(settings));
    findings.extend(ping(settings));
    findings
}

/// The settings of a role's lease, as the roles themselves read them.
pub(crate) fn lease_settings(settings: &Settings, section: &str) -> LeaseSettings {
    let of = |key: &str| settings.span(&format!("{section}.{key}"));
    let beat = of("heartbeat_interval").or_else(|| settings.span("scheduler.heartbeat_interval"));
    LeaseSettings {
        lease_ttl: of("lease_ttl").unwrap_or(Span::ZERO),
        heartbeat_interval: beat.unwrap_or(Span::from_secs(5)),
        self_fence: of("self_fence"),
        kill_grace: of("kill_grace"),
        margin: of("margin"),
    }
}

/// `self_fence + kill_grace + margin <= lease_ttl` and `heartbeat_interval <= self_fence / 3`.
fn lease(settings: &Settings, section: &str) -> Option<Finding> {
    let error = lease_settings(settings, section).check().err()?;
    let own = |key: &str| format!("{section}.{key}");
    let beat = match section {
        "worker" => own("heartbeat_interval"),
        _ => "scheduler.heartbeat_interval".into(),
    };
    Some(match error {
        LeaseError::SlowBeat { interval, self_fence, mend } => Finding {
            message: format!(
                "{beat} {interval} is more than a third of the time after which the holder stops \
                 itself ({} {self_fence})",
                own("self_fence")
            ),
            mend: format!("{beat} = \"{mend}\" or less"),
            keys: vec![beat, own(if section == "worker" { "self_fence" } else { "lease_ttl" })],
        },
        LeaseError::LateKill { self_fence, kill_grace, margin, ttl, mend, ttl_mend } => Finding {
            message: format!(
                "{} {self_fence} + {} {kill_grace} + {} {margin} is more than {} {ttl}",
                own("self_fence"),
                own("kill_grace"),
                own("margin"),
                own("lease_ttl"),
            ),
            mend: match mend.filter(|_| section == "worker") {
                Some(mend) => format!(
                    "{} = \"{mend}\" or less, or {} = \"{ttl_mend}\" or more",
                    own("kill_grace"),
                    own("lease_ttl")
                ),
                None => format!("{} = \"{ttl_mend}\" or more", own("lease_ttl")),
            },
            keys: ["self_fence", "kill_grace", "margin", "lease_ttl"].map(own).into(),
        },
        LeaseError::ShortTtl { ttl, mend } => Finding {
            message: format!("{} {ttl} is too short for any beat ({beat})", own("lease_ttl")),
            mend: format!("{} = \"{mend}\" or more", own("lease_ttl")),
            keys: vec![own("lease_ttl"), beat],
        },
    })
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
    (scan > most).then(|| Finding {
        keys: vec!["scheduler.scan_interval".into(), key.clone()],
        message: format!("scheduler.scan_interval {scan} is more than a tenth of {key} {shortest}"),
        mend: format!("scheduler.scan_interval = \"{most}\" or less"),
    })
}

/// A log without its run cannot be found.
fn retention(settings: &Settings) -> Option<Finding> {
    let (runs, logs) = (settings.span("retention.runs")?, settings.span("retention.logs")?);
    (logs > runs).then(|| Finding {
        keys: vec!["retention.logs".into(), "retention.runs".into()],
        message: format!("retention.logs {logs} is longer than retention.runs {runs}"),
        mend: format!("retention.logs = \"{runs}\" or less"),
    })
}

fn ping(settings: &Settings) -> Option<Finding> {
    let set = settings.all().any(|(key, setting)| {
        key.name == "alerts.ping_interval" && setting.place.origin() != "default"
    });
    (set && settings.text("alerts.ping_url").is_none()).then(|| Finding {
        keys: vec!["alerts.ping_interval".into(), "alerts.ping_url".into()],
        message: "alerts.ping_interval is set, but there is no alerts.ping_url to call".into(),
        mend: "alerts.ping_url = \"http://HOST/PATH\"".into(),
    })
}
