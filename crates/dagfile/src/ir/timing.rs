//! The keys of the schedule.

use fencepost_core::asset::Condition;
use fencepost_core::schedule::{Catchup, Overlap, Schedule, SlotPolicy, Timetable, Timing};
use fencepost_core::time::Timestamp;
use serde_json::{Map, Value, json};

pub(super) fn write(timing: &Timing, out: &mut Map<String, Value>) {
    let schedule = match &timing.schedule {
        Schedule::Manual => Value::Null,
        Schedule::Cron(crons) => json!(crons),
        Schedule::Every(span) => json!({ "every": span.to_string() }),
        Schedule::At(at) => json!({ "at": exact(*at) }),
        Schedule::Assets(condition) => json!({ "assets": assets(condition) }),
    };
    let timetable = match timing.timetable {
        Timetable::Trigger => "trigger",
        Timetable::DataInterval => "data_interval",
    };
    let catchup = match timing.catchup {
        Catchup::All => json!(true),
        Catchup::Newest => json!(false),
        Catchup::Next => json!("next"),
    };
    out.insert("schedule".into(), schedule);
    out.insert("timezone".into(), json!(timing.timezone));
    out.insert("timetable".into(), json!(timetable));
    for (name, date) in [("start_date", timing.start_date), ("end_date", timing.end_date)] {
        if let Some(date) = date {
            out.insert(name.into(), json!(exact(date)));
        }
    }
    out.insert("catchup".into(), catchup);
}

/// Defaults are left out: what was stored before the keys counted keeps its hash.
pub(super) fn write_slots(slots: &SlotPolicy, out: &mut Map<String, Value>) {
    if let Some(deadline) = slots.start_deadline {
        out.insert("start_deadline".into(), json!(deadline.to_string()));
    }
    if slots.overlap != Overlap::Queue {
        out.insert("overlap".into(), json!(slots.overlap.as_str()));
    }
}

/// To the microsecond, which an instant's usual text is not.
fn exact(at: Timestamp) -> String {
    at.to_jiff().to_string()
}

fn assets(condition: &Condition) -> Value {
    match condition {
        Condition::Asset(name) => json!(name),
        Condition::All(parts) => json!({ "all": parts.iter().map(assets).collect::<Value>() }),
        Condition::Any(parts) => json!({ "any": parts.iter().map(assets).collect::<Value>() }),
    }
}
