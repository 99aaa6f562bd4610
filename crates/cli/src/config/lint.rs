//! Contradictions between keys: the inequalities that make a lease safe, and habits that surprise. Each
//! finding names both keys and the value to write; a role says the same when it starts.

mod doubts;

use super::Settings;
use crate::error::CliError;
use fencepost_core::lease::{LeaseError, LeaseSettings};
use fencepost_core::time::Span;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// A promise cannot be kept: a role that it is about does not start.
    Error,
    /// It works, and will surprise.
    Warning,
}

/// A contradiction.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
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
    findings.extend(orphan_ttl(settings));
    findings.extend(half_tls(settings));
    findings.extend(doubts::all(settings));
    findings
}

/// What a role says when it starts: whatever is about nobody else, in the words of `config lint`. `sections`
/// are those that it lives by: an error in them is a refusal, else a warning for whoever it is about.
pub(crate) fn at_start(settings: &Settings, sections: &[&str]) -> Result<Vec<String>, CliError> {
    let mut warnings = Vec::new();
    for finding in lint(settings) {
        let is_own = |key: &String| sections.iter().any(|s| key.starts_with(&format!("{s}.")));
        if !finding.keys.iter().any(is_own) {
            continue;
        }
        if finding.severity == Severity::Error {
            let hint = format!("write  {}", finding.mend);
            return Err(CliError::usage(finding.message).hint(hint));
        }
        warnings.push(format!("warning: {}\n    write  {}", finding.message, finding.mend));
    }
    Ok(warnings)
}

/// The values of keys that are all set.
fn spans<const N: usize>(settings: &Settings, names: [&str; N]) -> Option<[Span; N]> {
    let mut out = [Span::ZERO; N];
    for (span, name) in out.iter_mut().zip(names) {
        *span = settings.span(name)?;
    }
    Some(out)
}

/// A shim of a standalone begins to end its tree `kill_grace + margin` before its deadline: one that is not
/// well beyond that, and beyond a few beats, would end every task at once.
pub(crate) fn orphan_ttl(settings: &Settings) -> Option<Finding> {
    let span = |name: &str, default: i64| settings.span(name).unwrap_or(Span::from_secs(default));
    let (grace, margin) = (span("worker.kill_grace", 30), span("worker.margin", 1));
    let ttl = span("worker.orphan_ttl", 24 * 3_600);
    let least = grace.plus(margin).plus(span("worker.heartbeat_interval", 5).times(3));
    (ttl <= least).then(|| Finding {
        severity: Severity::Error,
        keys: ["orphan_ttl", "kill_grace", "margin"].map(|key| format!("worker.{key}")).into(),
        message: format!(
            "worker.orphan_ttl {ttl} leaves no room for worker.kill_grace {grace} + worker.margin \
             {margin} + three beats"
        ),
        mend: format!("orphan_ttl = \"{}\" or more", least.times(2)),
    })
}

fn half_tls(settings: &Settings) -> Option<Finding> {
    let is_set = |key: &&str| settings.text(key).is_some();
    let keys = ["server.tls_cert", "server.tls_key"];
    let (there, missing): (Vec<&str>, Vec<&str>) = keys.iter().partition(|key| is_set(key));
    let (there, missing) = (there.first()?, missing.first()?);
    Some(Finding {
        severity: Severity::Error,
        keys: keys.map(Into::into).into(),
        message: format!("{there} is set, and {missing} is not: TLS needs both"),
        mend: format!("{missing} = \"PATH\""),
    })
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
            severity: Severity::Error,
            message: format!(
                "{beat} {interval} is more than a third of the time after which the holder stops \
                 itself ({} {self_fence})",
                own("self_fence")
            ),
            mend: format!("{beat} = \"{mend}\" or less"),
            keys: vec![beat, own(if section == "worker" { "self_fence" } else { "lease_ttl" })],
        },
        LeaseError::LateKill { self_fence, kill_grace, margin, ttl, mend, ttl_mend } => Finding {
            severity: Severity::Error,
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
            severity: Severity::Error,
            message: format!("{} {ttl} is too short for any beat ({beat})", own("lease_ttl")),
            mend: format!("{} = \"{mend}\" or more", own("lease_ttl")),
            keys: vec![own("lease_ttl"), beat],
        },
    })
}
