//! Callbacks and the deadline. What is not there is left out: a DAG without them keeps its hash.

use fencepost_core::callback::{Callbacks, Deadline, When};
use serde_json::{Map, Value, json};

pub(super) fn write(callbacks: &Callbacks, out: &mut Map<String, Value>) {
    for occasion in callbacks.occasions() {
        out.insert(occasion.key().into(), json!(callbacks.of(occasion)));
    }
}

pub(super) fn write_deadline(deadline: Option<&Deadline>, out: &mut Map<String, Value>) {
    let Some(deadline) = deadline else { return };
    let (key, value) = match deadline.when {
        When::At(time) => ("at", time.to_string()),
        When::After(span) => ("after", span.to_string()),
    };
    out.insert("deadline".into(), json!({ key: value, "callback": deadline.callbacks }));
}
