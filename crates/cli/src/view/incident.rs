//! Incidents, as a list and as a page.

use super::{readable, task_label};
use crate::output::paint::Paint;
use crate::output::span::{age, date_time};
use crate::output::table::Cell;
use crate::output::{Column, Detail, Row};
use Column::{Always, Wide};
use fencepost_api::rest::{Incident, IncidentDetail, LostAttempt};
use fencepost_core::time::Timestamp;

impl Row for Incident {
    const COLUMNS: &'static [Column] = &[
        Always("INCIDENT"),
        Always("WHO"),
        Always("HOST"),
        Always("KIND"),
        Always("SINCE"),
        Always("LOST"),
        Always("MAY RUN"),
        Always("STATE"),
        Wide("DECLARED BY"),
        Wide("CLOSED BY"),
        Wide("REASON"),
    ];
    fn cells(&self, now: Timestamp) -> Vec<Cell> {
        vec![
            Cell::painted(&self.id, Paint::Strong),
            who(self).into(),
            Cell::or_dash(self.host.as_ref()),
            self.kind.as_str().into(),
            age(Some(&self.at), now).into(),
            self.attempt_count.to_string().into(),
            may_run(self),
            state(self),
            self.declared_by.as_str().into(),
            Cell::or_dash(self.closed_by.as_ref()),
            Cell::or_dash(self.close_reason.as_ref()),
        ]
    }
    fn name(&self) -> String {
        self.id.clone()
    }
}

fn who(incident: &Incident) -> String {
    let name = incident.worker.as_deref().unwrap_or(&incident.job);
    format!("{} {name}", incident.job_kind.as_deref().unwrap_or("job"))
}

fn state(incident: &Incident) -> Cell {
    let paint = if incident.closed_at.is_some() { Paint::Dim } else { Paint::Alert };
    Cell::painted(&incident.state, paint)
}

fn may_run(incident: &Incident) -> Cell {
    let paint = if incident.may_still_run > 0 { Paint::Alert } else { Paint::Plain };
    Cell::painted(incident.may_still_run.to_string(), paint)
}

impl Detail for Incident {
    fn lines(&self, now: Timestamp) -> Vec<(&'static str, Cell)> {
        let observed = self.observed_for.as_ref();
        let last_beat = self.evidence["last_heartbeat_at"].as_str();
        let evidence = self.evidence["kind"].as_str().map(ToOwned::to_owned);
        vec![
            ("Incident", Cell::painted(&self.id, Paint::Strong)),
            ("State", state(self)),
            ("Who", format!("{} on {}", who(self), self.host.as_deref().unwrap_or("?")).into()),
            ("Kind", self.kind.as_str().into()),
            ("Evidence", Cell::or_dash(evidence)),
            ("Last beat", date_time(last_beat).into()),
            ("Observed for", Cell::or_dash(observed)),
            ("Declared", format!("{} by {}", date_time(Some(&self.at)), self.declared_by).into()),
            ("Lost", format!("{} attempts", self.attempt_count).into()),
            ("May still run", may_run(self)),
            ("Settled", date_time(self.settled_at.as_deref()).into()),
            ("Closed", age(self.closed_at.as_deref(), now).into()),
            ("Closed by", Cell::or_dash(self.closed_by.as_ref())),
            ("Reason", Cell::or_dash(self.close_reason.as_ref())),
        ]
    }
    fn name(&self) -> String {
        self.id.clone()
    }
}

impl Detail for IncidentDetail {
    fn lines(&self, now: Timestamp) -> Vec<(&'static str, Cell)> {
        let mut lines = self.incident.lines(now);
        lines.extend(self.ramps.iter().map(|ramp| {
            let rate = f64::from(ramp.rate_milli) / 1_000.0;
            let text = format!("pool {}: {} wait, {rate} a second", ramp.pool, ramp.waiting);
            ("Ramp", text.into())
        }));
        lines.extend(self.attempts.iter().map(|lost| ("Attempt", lost_line(lost).into())));
        lines
    }
    fn name(&self) -> String {
        self.incident.id.clone()
    }
}

/// `7-48211 sales_daily/run/load: lost, counted infra, replaced by 7-48219`
fn lost_line(lost: &LostAttempt) -> String {
    let own = &lost.attempt;
    let task = task_label(&own.task_id, own.map_index, None);
    let outcome = own.outcome.as_deref().unwrap_or(&own.state);
    let mut line =
        format!("{} {}/{}/{task}: {outcome}", readable(&own.token), own.dag_id, own.run_id);
    if let Some(counted) = &own.counted_as {
        line += &format!(", counted {counted}");
    }
    if let Some(by) = &lost.replaced_by {
        line += &format!(", replaced by {}", readable(by));
    }
    if own.refused_writes > 0 {
        line += &format!(", {} late writes refused", own.refused_writes);
    }
    if own.may_still_run {
        line += ", may still be running";
    }
    line
}
