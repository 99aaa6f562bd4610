//! From the tree to a DAG: every key checked, every mistake reported, once.
//!
//! A field that is wrong takes its default, so that what follows from it is not reported too;
//! whether there is a DAG in the end is decided by the number of errors alone.

mod access;
mod assets;
mod callbacks;
mod edges;
mod env;
mod expand;
mod fields;
mod groups;
mod http;
mod identifiers;
mod outputs;
mod params;
mod retry;
mod task;
mod templates;
mod timing;
mod trigger;
mod wait;

pub(crate) use groups::Tree;
pub(crate) use outputs::output_types;
pub(crate) use task::Draft;
pub(crate) use templates::{Template, TemplateKind};

use crate::diagnostic::{Findings, Place, quoted};
use crate::keys::Level;
use crate::yaml::{Entry, Node};
use fencepost_core::callback::{Callbacks, Deadline};
use fencepost_core::dag::{Access, Dag, DagLimits, Param, Task};
use fencepost_core::id::{DagId, IdError};
use fencepost_core::schedule::{Schedule, SlotPolicy};
use fencepost_core::time::Span;
use fields::Fields;
use groups::{Builder, Defaults};

/// A DAG as far as it could be read, with what the later checks need.
pub(crate) struct Reading<'a> {
    pub(crate) head: Head,
    pub(crate) tasks: Vec<Draft<'a>>,
    /// Which tasks and groups stand where.
    pub(crate) tree: Tree<'a>,
    /// Templates that belong to no task: those of the DAG and of each `default_args`.
    pub(crate) templates: Vec<Template<'a>>,
    root: &'a [Entry],
}

/// Everything of a DAG but its tasks.
pub(crate) struct Head {
    dag_id: Option<DagId>,
    description: String,
    doc_md: String,
    owner: String,
    tags: Vec<String>,
    timing: fencepost_core::schedule::Timing,
    slots: SlotPolicy,
    is_paused_upon_creation: bool,
    limits: DagLimits,
    dagrun_timeout: Option<Span>,
    fail_fast: bool,
    is_airflow_compatible: bool,
    pub(crate) params: Vec<Param>,
    env: Vec<(String, String)>,
    access: Access,
    retention: Option<Span>,
    callbacks: Callbacks,
    deadline: Option<Deadline>,
}

/// Reads the tree of a file; `stem` is the file's name without folder and extension.
pub(crate) fn read<'a>(root: &'a Node, stem: &str, findings: &mut Findings) -> Option<Reading<'a>> {
    let Some(entries) = root.as_map() else {
        let (message, hint) = if root.is_null() {
            ("the file is empty".to_owned(), "the smallest DAG is `tasks: {hello: {run: echo}}`")
        } else {
            (format!("a DAG file is a mapping, not {}", root.description()), "begin with `tasks:`")
        };
        findings.error(Place::FILE, "no-dag", message, hint);
        return None;
    };
    let fields = Fields::of(entries, Level::Dag, findings);
    check_version(&fields, findings);
    let head = head(&fields, stem, findings)?;
    let own = match fields.map("default_args", findings) {
        Some(entries) => Fields::of(entries, Level::TaskOrDefault, findings),
        None => Fields::default(),
    };
    let mut templates = env::templates(&fields);
    templates.extend(callbacks::templates(&fields, Level::Dag));
    templates.extend(callbacks::templates(&own, Level::TaskOrDefault));
    templates.extend(templates::of(&own));
    let defaults = Defaults::none().over(&own, findings);
    let (tasks, mut tree) = tasks(entries, &fields, &defaults, findings)?;
    templates.append(&mut tree.templates);
    Some(Reading { head, tasks, tree, templates, root: entries })
}

impl Reading<'_> {
    /// Whether the file has a param of that name, sound or not.
    pub(crate) fn declares_param(&self, name: &str) -> bool {
        self.declares("params", name)
    }

    fn declares(&self, key: &str, name: &str) -> bool {
        let field = self.root.iter().find(|entry| entry.key == key);
        let entries = field.and_then(|entry| entry.value.as_map()).unwrap_or_default();
        entries.iter().any(|entry| entry.key == name)
    }

    /// The DAG, if nothing was wrong; `None` also if core finds something that was missed here.
    pub(crate) fn into_dag(self, findings: &mut Findings) -> Option<Dag> {
        if findings.error_count() > 0 {
            return None;
        }
        let head = self.head;
        let tasks: Vec<Task> = self.tasks.into_iter().map(|draft| draft.task).collect();
        let dag = Dag::new(Dag {
            dag_id: head.dag_id?,
            description: head.description,
            doc_md: head.doc_md,
            owner: head.owner,
            tags: head.tags,
            timing: head.timing,
            slots: head.slots,
            is_paused_upon_creation: head.is_paused_upon_creation,
            limits: head.limits,
            dagrun_timeout: head.dagrun_timeout,
            fail_fast: head.fail_fast,
            is_airflow_compatible: head.is_airflow_compatible,
            params: head.params,
            env: head.env,
            access: head.access,
            retention: head.retention,
            callbacks: head.callbacks,
            deadline: head.deadline,
            tasks,
            groups: self.tree.into_groups(),
        });
        let dag = dag.map_err(|error| findings.error(Place::FILE, "no-dag", error.to_string(), ""));
        let dag = dag.ok()?;
        if dag.has_run_callbacks() && dag.companion().is_none() {
            let message = "its id leaves no room for that of the DAG that runs its callbacks";
            findings.error(
                Place::FILE,
                "bad-name",
                message,
                "write a `dag_id` of at most 190 characters",
            );
            return None;
        }
        Some(dag)
    }
}

fn check_version(fields: &Fields<'_>, findings: &mut Findings) {
    let Some(field) = fields.get("schema") else { return };
    if field.entry.value.as_written() != Some("1") {
        let message = format!("`schema` is {}", field.entry.value.description());
        let hint = "this program reads version 1: write `schema: 1`";
        findings.error(field.entry.value.place, "bad-value", message, hint);
    }
}

fn head(fields: &Fields<'_>, stem: &str, findings: &mut Findings) -> Option<Head> {
    let timing = timing::read(fields, findings)?;
    let params = params::read(fields, &timing.schedule, findings);
    let text = |name, findings: &mut Findings| fields.text(name, findings).unwrap_or_default();
    let slots = timing::slots(fields, &timing.schedule, findings);
    let dagrun_timeout = fields.duration("dagrun_timeout", findings);
    let retention = retention(fields, &timing.schedule, dagrun_timeout, findings);
    Some(Head {
        dag_id: dag_id(fields, stem, findings),
        description: text("description", findings),
        doc_md: text("doc_md", findings),
        owner: text("owner", findings),
        tags: fields.texts("tags", findings).unwrap_or_default(),
        timing,
        slots,
        is_paused_upon_creation: fields.flag("is_paused_upon_creation", findings).unwrap_or(false),
        limits: DagLimits {
            max_active_runs: fields.whole("max_active_runs", findings).unwrap_or(16),
            max_active_tasks: fields.whole("max_active_tasks", findings).unwrap_or(16),
        },
        dagrun_timeout,
        fail_fast: fields.flag("fail_fast", findings).unwrap_or(false),
        is_airflow_compatible: fields.choice("compat", findings) == Some("airflow"),
        params,
        env: env::read(fields, findings),
        access: access::read(fields, findings),
        retention,
        callbacks: callbacks::read(fields, findings),
        deadline: callbacks::deadline(fields, findings),
    })
}

/// Shorter than a run may take, or than it is to the next one: nobody who looks for it finds it.
fn retention(
    fields: &Fields<'_>,
    schedule: &Schedule,
    dagrun_timeout: Option<Span>,
    findings: &mut Findings,
) -> Option<Span> {
    let retention = fields.duration("retention", findings)?;
    let place = fields.get("retention")?.entry.value.place;
    let every = match schedule {
        Schedule::Every(span) => Some(("schedule", *span)),
        Schedule::Manual | Schedule::Cron(_) | Schedule::At(_) | Schedule::Assets(_) => None,
    };
    let timeout = dagrun_timeout.map(|span| ("dagrun_timeout", span));
    if let Some((key, span)) = [timeout, every].into_iter().flatten().find(|(_, s)| *s > retention)
    {
        let message = format!("`retention` {retention} is shorter than `{key}` {span}");
        let hint = format!("write `retention: {span}` or more");
        findings.warn(place, "short-retention", message, hint);
    }
    Some(retention)
}

fn dag_id(fields: &Fields<'_>, stem: &str, findings: &mut Findings) -> Option<DagId> {
    if !fields.has("dag_id") {
        let from_file = DagId::new(stem);
        return from_file
            .map_err(|_| {
                let message = format!("the file's name gives no DAG id: {}", quoted(stem));
                findings.error(Place::FILE, "no-dag-id", message, "write a `dag_id`");
            })
            .ok();
    }
    name(fields, "dag_id", DagId::new, findings)
}

/// A field that is a name of some kind.
fn name<T>(
    fields: &Fields<'_>,
    key: &str,
    new: fn(String) -> Result<T, IdError>,
    findings: &mut Findings,
) -> Option<T> {
    let text = fields.text(key, findings)?;
    let place = fields.get(key)?.entry.value.place;
    let wrong = |_| {
        let message = format!("`{key}` cannot be {}", quoted(&text));
        findings.error(place, "bad-name", message, NAME_RULE);
    };
    new(text.clone()).map_err(wrong).ok()
}

const NAME_RULE: &str = "1 to 200 of A-Z a-z 0-9 _ . -, not beginning with a dot or a dash";

fn tasks<'a>(
    entries: &'a [Entry],
    fields: &Fields<'a>,
    defaults: &Defaults<'a>,
    findings: &mut Findings,
) -> Option<(Vec<Draft<'a>>, Tree<'a>)> {
    let mut builder = Builder::new(findings);
    let is_there = builder.read(0, fields, defaults);
    let Builder { mut drafts, tree, .. } = builder;
    if !is_there {
        report_no_tasks(entries, fields, findings);
        return None;
    }
    edges::resolve(&tree, &mut drafts, findings);
    Some((drafts, tree))
}

fn report_no_tasks(entries: &[Entry], fields: &Fields<'_>, findings: &mut Findings) {
    let written = ["tasks", "task_groups"].map(|name| Some((name, fields.written(name)?)));
    if let Some((name, field)) = written.into_iter().flatten().next() {
        let hint = match name {
            "tasks" => "a task is `name: {run: command}`",
            _ => "a group is `name: {tasks: {...}}`",
        };
        let message = format!("`{name}` is empty");
        findings.error(field.entry.key_place, "no-tasks", message, hint);
    } else if entries.iter().all(|entry| crate::keys::find(&entry.key, Level::Dag).is_some()) {
        // A misspelt `tasks` has been reported as such.
        let hint = "write `tasks: {hello: {run: echo hello}}`";
        findings.error(Place::FILE, "no-tasks", "there are no tasks", hint);
    }
}
