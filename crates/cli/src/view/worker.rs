//! Workers, and what `inspect` finds.

use crate::output::paint::Paint;
use crate::output::span::{age, date_time};
use crate::output::table::Cell;
use crate::output::{Column, Detail, Row};
use Column::{Always, Wide};
use fencepost_api::rest::{Finding, Worker};
use fencepost_core::time::Timestamp;

fn paint(liveness: &str) -> Paint {
    match liveness {
        "live" => Paint::Good,
        "lost" => Paint::Bad,
        _ => Paint::Waiting,
    }
}

impl Row for Worker {
    const COLUMNS: &'static [Column] = &[
        Always("NAME"),
        Always("HOST"),
        Always("QUEUES"),
        Always("SLOTS"),
        Always("LIVENESS"),
        Always("LAST BEAT"),
        Always("LEASES"),
        Always("VERSION"),
        Wide("ID"),
        Wide("BOOT"),
        Always("NOTE"),
    ];
    fn cells(&self, now: Timestamp) -> Vec<Cell> {
        vec![
            Cell::painted(&self.name, Paint::Strong),
            self.host.clone().into(),
            self.queues.join(",").into(),
            format!("{}/{}", self.leases, self.slots).into(),
            Cell::painted(&self.liveness, paint(&self.liveness)),
            age(Some(&self.last_beat_at), now).into(),
            self.leases.to_string().into(),
            self.version.clone().into(),
            self.id.clone().into(),
            self.boot_id.clone().into(),
            Cell::or_dash(self.note.as_ref()),
        ]
    }
    fn name(&self) -> String {
        self.name.clone()
    }
}

impl Detail for Worker {
    fn lines(&self, now: Timestamp) -> Vec<(&'static str, Cell)> {
        let evidence = self.evidence.as_ref().map(ToString::to_string);
        vec![
            ("Worker", Cell::painted(&self.name, Paint::Strong)),
            ("Id", self.id.clone().into()),
            ("Host", format!("{} (pid {}, boot {})", self.host, self.pid, self.boot_id).into()),
            ("Queues", self.queues.join(", ").into()),
            ("Slots", format!("{} of {} in use", self.leases, self.slots).into()),
            ("Liveness", Cell::painted(&self.liveness, paint(&self.liveness))),
            ("Last beat", format!("{} ago", age(Some(&self.last_beat_at), now)).into()),
            ("Lease until", Cell::or_dash(self.lease_expires_at.as_ref())),
            ("Started", date_time(Some(&self.started_at)).into()),
            ("Ended", Cell::or_dash(self.ended_at.as_ref())),
            ("Version", self.version.clone().into()),
            ("Evidence", Cell::or_dash(evidence)),
            ("Note", Cell::or_dash(self.note.as_ref())),
        ]
    }
    fn name(&self) -> String {
        self.name.clone()
    }
}

impl Row for Finding {
    const COLUMNS: &'static [Column] =
        &[Always("SUBJECT"), Always("STATE"), Always("SINCE"), Always("OWNER"), Always("DETAIL")];
    fn cells(&self, now: Timestamp) -> Vec<Cell> {
        vec![
            Cell::painted(&self.subject, Paint::Strong),
            Cell::state(&self.state),
            age(self.since.as_deref(), now).into(),
            Cell::or_dash(self.owner.as_ref()),
            self.detail.clone().into(),
        ]
    }
    fn name(&self) -> String {
        self.subject.clone()
    }
}
