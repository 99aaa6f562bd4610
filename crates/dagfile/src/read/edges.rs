//! Names in `depends_on` to edges: unknown tasks, a task upon itself, circles.

use super::task::Draft;
use crate::diagnostic::{Findings, Place};
use crate::suggest::nearest;
use crate::yaml::Entry;
use fencepost_core::dag::{DagError, Task, TaskIndex, topological_order};
use std::collections::{BTreeMap, BTreeSet};

/// Fills in `depends_on` of each draft. `entries` are all tasks as written: an edge to one that
/// could not be read is no second mistake.
pub(super) fn resolve(entries: &[Entry], drafts: &mut [Draft<'_>], findings: &mut Findings) {
    let mut places: BTreeMap<String, TaskIndex> = BTreeMap::new();
    for (index, draft) in drafts.iter().enumerate() {
        places.insert(draft.task.task_id.as_str().to_owned(), TaskIndex::new(index));
    }
    let names: BTreeSet<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
    for draft in drafts.iter_mut() {
        let mut upstreams = BTreeSet::new();
        for (name, place) in &draft.depends_on {
            let own = draft.task.task_id.as_str();
            match places.get(*name) {
                Some(_) if *name == own => {
                    let message = format!("`{own}` depends on itself");
                    findings.error(*place, "cycle", message, "leave it out");
                }
                Some(upstream) => drop(upstreams.insert(*upstream)),
                None if names.contains(name) => {}
                None => report_unknown(own, name, *place, &names, findings),
            }
        }
        draft.task.depends_on = upstreams.into_iter().collect();
    }
    report_circle(drafts, findings);
}

fn report_unknown(
    task: &str,
    name: &str,
    place: Place,
    names: &BTreeSet<&str>,
    findings: &mut Findings,
) {
    let near = if findings.is_full() { None } else { nearest(name, names.iter().copied()) };
    let hint = match near {
        Some(near) => format!("no such task; did you mean `{near}`?"),
        None => "no such task".to_owned(),
    };
    let message = format!("`{task}` depends on {}", crate::diagnostic::quoted(name));
    findings.error(place, "unknown-task", message, hint);
}

fn report_circle(drafts: &[Draft<'_>], findings: &mut Findings) {
    let tasks: Vec<Task> = drafts.iter().map(|draft| draft.task.clone()).collect();
    let Err(error) = topological_order(&tasks) else { return };
    let DagError::Cycle(circle) = &error else { return };
    let place = circle.first().zip(circle.get(1)).and_then(|(first, second)| {
        let draft = drafts.iter().find(|draft| draft.task.task_id == *first)?;
        let item = draft.depends_on.iter().find(|(name, _)| *name == second.as_str())?;
        Some(item.1)
    });
    let hint = "each waits for the next; take one of these edges out";
    findings.error(place.unwrap_or(Place::FILE), "cycle", error.to_string(), hint);
}
