//! Names in `depends_on` to edges: of tasks and of groups, unknown ones, circles.
//!
//! An edge from a group begins at its last tasks, an edge to a group ends at its first ones (Airflow's
//! leaves and roots); which those are is known once the edges within the group are.

mod ends;

use super::groups::{Member, Tree};
use super::task::Draft;
use crate::diagnostic::{Findings, Place, quoted};
use crate::suggest::nearest;
use ends::Ends;
use fencepost_core::dag::{DagError, Part, Task, TaskIndex, topological_order};

/// One name in a `depends_on`.
pub(super) struct Edge {
    /// What comes before, and what comes after: a task or a group.
    pub(super) up: Member,
    pub(super) down: Member,
    /// The innermost scope that holds both.
    pub(super) within: usize,
    place: Place,
}

/// Fills in `depends_on` of each draft. An edge to what could not be read is no second mistake.
pub(super) fn resolve(tree: &Tree<'_>, drafts: &mut [Draft<'_>], findings: &mut Findings) {
    let mut edges = Vec::new();
    for (index, draft) in drafts.iter().enumerate() {
        let end = End {
            name: draft.task.task_id.as_str(),
            member: Member::Task(TaskIndex::new(index)),
            scope: draft.scope,
        };
        read(&end, &draft.depends_on, (tree, drafts), &mut edges, findings);
    }
    for (place, scope) in tree.scopes.iter().enumerate() {
        let Some(outer) = scope.parent else { continue };
        let end = End { name: &scope.id, member: Member::Group(place), scope: outer };
        read(&end, &scope.depends_on, (tree, drafts), &mut edges, findings);
    }
    let parts: Vec<Part> = drafts.iter().map(|draft| draft.task.part).collect();
    match Ends::new(tree, &parts).expand(&edges) {
        Ok(upstreams) => {
            for (draft, upstreams) in drafts.iter_mut().zip(upstreams) {
                draft.task.depends_on = upstreams.into_iter().collect();
            }
            report_circle((tree, drafts), &edges, findings);
        }
        Err(at) => {
            let place = edges.get(at).map_or(Place::FILE, |edge| edge.place);
            let message = format!(
                "with this the tasks depend on each other more than {} times",
                ends::EDGES_MAX
            );
            let hint = "put a task with `noop: true` between the two groups";
            findings.error(place, "too-many-edges", message, hint);
        }
    }
}

/// What has a `depends_on`.
struct End<'a> {
    name: &'a str,
    member: Member,
    /// Where its names are looked up first.
    scope: usize,
}

type World<'a, 'b> = (&'a Tree<'b>, &'a [Draft<'b>]);

fn read(
    end: &End<'_>,
    names: &[(&str, Place)],
    world: World<'_, '_>,
    edges: &mut Vec<Edge>,
    findings: &mut Findings,
) {
    let (tree, drafts) = world;
    for (name, place) in names {
        let Some(up) = tree.find(end.scope, name) else {
            report_unknown(end, name, *place, tree, findings);
            continue;
        };
        let holds = |outer: Member, inner: Member| match outer {
            Member::Group(group) => scopes_of(inner, world).any(|at| at == group),
            Member::Task(_) | Member::Unread => false,
        };
        if up == end.member {
            let message = format!("`{}` depends on itself", end.name);
            findings.error(*place, "cycle", message, "leave it out");
        } else if holds(up, end.member) {
            let message = format!("`{}` depends on the group that it is in", end.name);
            findings.error(*place, "cycle", message, "leave it out, or name tasks of the group");
        } else if holds(end.member, up) {
            let message = format!("`{}` depends on what is in it", end.name);
            findings.error(*place, "cycle", message, "leave it out");
        } else if up != Member::Unread {
            let around: Vec<usize> = scopes_of(up, (tree, drafts)).collect();
            let within = scopes_of(end.member, (tree, drafts)).find(|at| around.contains(at));
            edges.push(Edge { up, down: end.member, within: within.unwrap_or(0), place: *place });
        }
    }
}

/// The scopes that something stands in, the DAG last.
fn scopes_of<'a>(
    member: Member,
    (tree, drafts): World<'a, '_>,
) -> impl Iterator<Item = usize> + 'a {
    let scope = match member {
        Member::Task(task) => drafts.get(task.at()).map(|draft| draft.scope),
        Member::Group(group) => tree.scopes[group].parent,
        Member::Unread => None,
    };
    scope.into_iter().flat_map(|scope| tree.around(scope))
}

fn report_unknown(
    end: &End<'_>,
    name: &str,
    place: Place,
    tree: &Tree<'_>,
    findings: &mut Findings,
) {
    let near = if findings.is_full() { None } else { nearest(name, tree.candidates(end.scope)) };
    let none = if tree.scopes.len() > 1 { "no such task or group" } else { "no such task" };
    let hint = match near {
        Some(near) => format!("{none}; did you mean `{near}`?"),
        None => none.to_owned(),
    };
    let message = format!("`{}` depends on {}", end.name, quoted(name));
    findings.error(place, "unknown-task", message, hint);
}

fn report_circle(world: World<'_, '_>, edges: &[Edge], findings: &mut Findings) {
    let (_, drafts) = world;
    let tasks: Vec<Task> = drafts.iter().map(|draft| draft.task.clone()).collect();
    let Err(error) = topological_order(&tasks) else { return };
    let DagError::Cycle(circle) = &error else { return };
    let index = |at: usize| {
        let id = circle.get(at)?;
        drafts.iter().position(|draft| draft.task.task_id == *id).map(TaskIndex::new)
    };
    let covers = |member: Member, task: TaskIndex| match member {
        Member::Task(own) => own == task,
        Member::Group(group) => scopes_of(Member::Task(task), world).any(|at| at == group),
        Member::Unread => false,
    };
    let place = index(0).zip(index(1)).and_then(|(down, up)| {
        edges
            .iter()
            .find(|edge| covers(edge.down, down) && covers(edge.up, up))
            .map(|edge| edge.place)
    });
    let hint = "each waits for the next; take one of these edges out";
    findings.error(place.unwrap_or(Place::FILE), "cycle", error.to_string(), hint);
}
