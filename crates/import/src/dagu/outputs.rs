//! Outputs: what a step printed is a variable of the steps after it.

use super::step::Done;
use crate::report::Notes;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Declares outputs, and gives them to the tasks that use them.
pub(super) fn pass_on(
    ids: &[String],
    ups: &BTreeMap<String, Vec<String>>,
    all: &mut BTreeMap<String, Done>,
    notes: &mut Notes,
) {
    let made: Vec<(String, String)> =
        ids.iter().filter_map(|id| Some((id.clone(), all.get(id)?.output.clone()?))).collect();
    for (maker, name) in &made {
        if let Some(done) = all.get_mut(maker) {
            let outputs = done.keys.entry("outputs").or_insert_with(|| json!({}));
            if let Some(outputs) = outputs.as_object_mut() {
                outputs.insert(name.clone(), json!("string"));
            }
        }
        for id in ids.iter().filter(|id| *id != maker) {
            let Some(done) = all.get_mut(id).filter(|done| uses(&done.text, name)) else {
                continue;
            };
            if !before(id, ups).contains(maker) {
                let why = format!("it uses ${name} of {maker}, and does not come after it");
                notes.needs(
                    1,
                    id,
                    why,
                    format!("add {maker} to its depends_on, and to its env what it gave"),
                );
                continue;
            }
            let env = done.keys.entry("env").or_insert_with(|| Value::Object(Map::new()));
            if let Some(env) = env.as_object_mut() {
                env.insert(name.clone(), json!(format!("{{{{ outputs[\"{maker}\"].{name} }}}}")));
            }
        }
    }
}

/// Whether a script has `$NAME` or `${NAME`.
fn uses(text: &str, name: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    [format!("${name}"), format!("${{{name}")].iter().any(|form| {
        text.match_indices(form.as_str()).any(|(at, form)| ends(&text[at + form.len()..]))
    })
}

/// Everything that comes before a step.
pub(super) fn before(id: &str, ups: &BTreeMap<String, Vec<String>>) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut left = vec![id.to_owned()];
    while let Some(at) = left.pop() {
        for up in ups.get(&at).into_iter().flatten() {
            if seen.insert(up.clone()) {
                left.push(up.clone());
            }
        }
    }
    seen
}
