//! One task: its action, its edges by name, and the keys that it shares with `default_args`.

use super::fields::{Fields, item_type, wrong_type};
use super::groups::Defaults;
use super::templates::{self, Template};
use super::{access, assets, callbacks, env, expand, http, outputs, retry, trigger, wait};
use crate::diagnostic::{Findings, Place, quoted};
use crate::keys::{ACTIONS, Level};
use crate::suggest::did_you_mean;
use crate::yaml::Entry;
use fencepost_core::dag::{
    Action, Containment, OnDisconnect, OnLost, Part, Replace, Resources, Task, WeightRule,
};
use fencepost_core::id::{PoolName, QueueName, TaskId};
use fencepost_core::trigger_rule::TriggerRule;

/// A task as read, with the places that later checks need.
pub(crate) struct Draft<'a> {
    pub(crate) task: Task,
    pub(crate) entry: &'a Entry,
    /// Upstream names as written.
    pub(super) depends_on: Vec<(&'a str, Place)>,
    /// The DAG or group that it stands in, by its place in the tree.
    pub(super) scope: usize,
    pub(crate) templates: Vec<Template<'a>>,
    /// Its action is one that is refused: nothing more is said about what it does.
    pub(crate) is_refused: bool,
}

/// Reports what is wrong in `default_args`, also where every task has its own value.
pub(super) fn check_defaults(defaults: &Fields<'_>, findings: &mut Findings) {
    if let Ok(mut task) =
        TaskId::new("defaults").and_then(|id| Task::with_defaults(id, Action::Noop))
    {
        read_shared(&mut task, defaults, findings);
        env::read(defaults, findings);
        access::read(defaults, findings);
    }
}

/// Reads one entry of `tasks`, under its full id; `None` if it is no mapping.
pub(super) fn read<'a>(
    entry: &'a Entry,
    task_id: TaskId,
    defaults: &Defaults<'a>,
    findings: &mut Findings,
) -> Option<Draft<'a>> {
    let entries = match entry.value.as_map() {
        Some(entries) => entries,
        None if entry.value.is_null() => &[],
        None => {
            let message =
                format!("`{task_id}` must be a mapping, not {}", entry.value.description());
            findings.error(entry.value.place, "wrong-type", message, "write {run: command}");
            return None;
        }
    };
    let before = findings.error_count();
    let own = Fields::of(entries, Level::Task, findings);
    let is_sound = findings.error_count() == before;
    let (action, is_refused) = action(entry, entries, &own, is_sound, findings);
    let mut task = Task::with_defaults(task_id, action).ok()?;
    let all = own.over(&defaults.fields);
    read_shared(&mut task, &all, findings);
    task.env = env::overlay(defaults.env.clone(), env::read(&own, findings));
    task.access = defaults.access.under(&access::read(&own, findings));
    task.when = own.text("when", findings);
    task.part = part(&own, findings);
    if task.part == Part::Teardown && all.get("trigger_rule").is_none() {
        task.trigger_rule = TriggerRule::AllDone;
    }
    task.expand = expand::read(&own, findings);
    task.map_index_template = own.text("map_index_template", findings);
    task.outputs = outputs::read(&own, findings);
    task.inlets = assets::names(&own, "inlets", findings);
    task.outlets = assets::names(&own, "outlets", findings);
    let depends_on = depends_on(&own, findings);
    let mut templates = templates::of(&own);
    templates.extend(callbacks::templates(&own, Level::Task));
    Some(Draft { templates, task, entry, depends_on, scope: 0, is_refused })
}

fn part(fields: &Fields<'_>, findings: &mut Findings) -> Part {
    let mut is = |name| fields.flag(name, findings).unwrap_or(false);
    let (setup, teardown) = (is("setup"), is("teardown"));
    if let Some(field) = fields.get("teardown").filter(|_| setup && teardown) {
        let message = "a task is either a `setup` or a `teardown`";
        findings.error(field.entry.key_place, "bad-value", message, "leave one of them out");
    }
    match (setup, teardown) {
        (_, true) => Part::Teardown,
        (true, false) => Part::Setup,
        (false, false) => Part::Work,
    }
}

/// What the task does, and whether that is refused. A wrong action counts as none (`noop`).
fn action(
    task: &Entry,
    entries: &[Entry],
    fields: &Fields<'_>,
    is_sound: bool,
    findings: &mut Findings,
) -> (Action, bool) {
    let mut given = entries.iter().filter(|entry| ACTIONS.contains(&entry.key.as_str()));
    let first = given.next();
    if let (Some(first), Some(second)) = (first, given.next()) {
        let message = format!("`{}` has both `{}` and `{}`", task.key, first.key, second.key);
        findings.error(second.key_place, "two-actions", message, "a task does one thing");
        return (Action::Noop, true);
    }
    let Some(first) = first else {
        // A misspelt key may have been meant as the action.
        if is_sound {
            let message = format!("`{}` does nothing", task.key);
            let hint = "give it one of run, command, python, http, wait, trigger_dag, noop: true";
            findings.error(task.key_place, "no-action", message, hint);
        }
        return (Action::Noop, true);
    };
    let action = match first.key.as_str() {
        "run" => run(fields, first, findings),
        "command" => command(fields, first, findings),
        "python" => python(fields, first, findings),
        "http" => http::read(fields, findings),
        "trigger_dag" => trigger::read(fields, first, findings).map(Action::TriggerDag),
        "wait" => wait::read(fields, findings),
        "noop" => noop(fields, first, findings),
        _ => None,
    };
    let is_refused = action.is_none();
    (action.unwrap_or(Action::Noop), is_refused)
}

fn run(fields: &Fields<'_>, entry: &Entry, findings: &mut Findings) -> Option<Action> {
    if entry.value.is_null() || entry.value.as_text().is_some_and(|text| text.trim().is_empty()) {
        let hint = "write the script, or noop: true";
        findings.error(entry.key_place, "no-action", "`run` is empty", hint);
        return None;
    }
    fields.text("run", findings).map(Action::Run)
}

fn command(fields: &Fields<'_>, entry: &Entry, findings: &mut Findings) -> Option<Action> {
    let words = match entry.value.as_list() {
        None if entry.value.is_null() => Vec::new(),
        _ => fields.texts("command", findings)?,
    };
    if words.first().is_none_or(|program| program.is_empty()) {
        let hint = "write [program, argument, ...]";
        findings.error(entry.key_place, "no-action", "`command` names no program", hint);
        return None;
    }
    Some(Action::Command(words))
}

fn python(fields: &Fields<'_>, entry: &Entry, findings: &mut Findings) -> Option<Action> {
    let text = fields.text("python", findings)?;
    let is_path = |path: &str| path.split('.').all(is_identifier);
    if text.split_once(':').is_some_and(|(module, of)| is_path(module) && is_path(of)) {
        return Some(Action::Python(text));
    }
    let message = format!("`python` cannot be {}", quoted(&text));
    let hint = "write module:function, such as sales.load:run";
    findings.error(entry.value.place, "bad-value", message, hint);
    None
}

fn is_identifier(text: &str) -> bool {
    let mut chars = text.chars();
    let is_first = |c: char| c.is_alphabetic() || c == '_';
    chars.next().is_some_and(is_first) && chars.all(|c| c.is_alphanumeric() || c == '_')
}

fn noop(fields: &Fields<'_>, entry: &Entry, findings: &mut Findings) -> Option<Action> {
    if fields.flag("noop", findings)? {
        return Some(Action::Noop);
    }
    let message = "`noop` can only be true";
    findings.error(entry.value.place, "bad-value", message, "leave it out and say what to do");
    None
}

/// The names in a `depends_on`.
pub(super) fn depends_on<'a>(
    fields: &Fields<'a>,
    findings: &mut Findings,
) -> Vec<(&'a str, Place)> {
    let mut names = Vec::new();
    for item in fields.list("depends_on", findings).unwrap_or_default() {
        match item.as_written() {
            Some(name) => names.push((name, item.place)),
            None => item_type("depends_on", item, "the name of a task", findings),
        }
    }
    names
}

/// What may outlive its lease must not be replaced when that is over.
fn on_disconnect(task: &Task, fields: &Fields<'_>, findings: &mut Findings) -> OnDisconnect {
    if fields.choice("on_disconnect", findings) != Some("keep") {
        return OnDisconnect::Stop;
    }
    let waits = task.on_lost == OnLost::Hold || task.replace == Replace::AfterConfirmedDead;
    if let Some(field) = fields.get("on_disconnect").filter(|_| !waits) {
        let place = field.entry.value.place;
        let message = "`on_disconnect: keep` would let a task run beside its replacement";
        let hint = "add on_lost: hold or replace: after_confirmed_dead";
        findings.error(place, "keep-replaced", message, hint);
    }
    OnDisconnect::Keep
}

/// The keys that may also stand in `default_args`.
fn read_shared(task: &mut Task, fields: &Fields<'_>, findings: &mut Findings) {
    let rule = fields.choice("trigger_rule", findings).and_then(TriggerRule::parse);
    task.trigger_rule = rule.unwrap_or(task.trigger_rule);
    task.wait_for_downstream = fields.flag("wait_for_downstream", findings).unwrap_or(false);
    let depends_on_past = fields.flag("depends_on_past", findings).unwrap_or(false);
    task.depends_on_past = depends_on_past || task.wait_for_downstream;
    read_limits(task, fields, findings);
    read_retries(task, fields, findings);
    task.on_lost = match fields.choice("on_lost", findings) {
        Some("fail") => OnLost::Fail,
        Some("hold") => OnLost::Hold,
        _ => OnLost::Retry,
    };
    task.replace = match fields.choice("replace", findings) {
        Some("after_confirmed_dead") => Replace::AfterConfirmedDead,
        _ => Replace::AfterLeaseExpiry,
    };
    task.on_disconnect = on_disconnect(task, fields, findings);
    task.containment = match fields.choice("containment", findings) {
        Some("pidns") => Containment::Pidns,
        Some("cgroup") => Containment::Cgroup,
        Some("group") => Containment::Group,
        _ => Containment::Auto,
    };
    task.resources = resources(fields, findings);
    task.times.execution_timeout = fields.duration("execution_timeout", findings);
    task.times.stall_timeout = fields.duration("stall_timeout", findings);
    task.times.kill_grace = fields.duration("kill_grace", findings);
    let queued = fields.duration("queued_timeout", findings);
    task.times.queued_timeout = queued.unwrap_or(task.times.queued_timeout);
    task.working_dir = fields.text("working_dir", findings);
    task.run_as_user = user(fields, findings);
    task.callbacks = callbacks::read(fields, findings);
    if let Some(shell) = shell(fields, findings) {
        task.shell = shell;
    }
}

fn resources(fields: &Fields<'_>, findings: &mut Findings) -> Resources {
    let mut out = Resources::default();
    for entry in fields.map("resources", findings).unwrap_or_default() {
        let written = entry.value.to_json().unwrap_or_default();
        let (is_read, hint) = match entry.key.as_str() {
            "cpu" => {
                out.cpu_millis = Resources::cpu(&written);
                (out.cpu_millis.is_some(), "a number of cores such as 2, 0.5 or 500m")
            }
            "memory" => {
                out.memory = Resources::memory(&written);
                (out.memory.is_some(), "bytes, at least 1Mi, such as 512Mi or 4Gi")
            }
            other => {
                let near = did_you_mean(other, ["cpu", "memory"].into_iter());
                let hint = if near.is_empty() { "`cpu` and `memory`".into() } else { near };
                let message = format!("unknown key {}", quoted(other));
                findings.error(entry.key_place, "unknown-key", message, hint);
                continue;
            }
        };
        if !is_read {
            let message = format!("`{}` cannot be {}", entry.key, entry.value.description());
            findings.error(entry.value.place, "bad-value", message, hint);
        }
    }
    out
}

fn read_limits(task: &mut Task, fields: &Fields<'_>, findings: &mut Findings) {
    let limits = &mut task.limits;
    if let Some(queue) = super::name(fields, "queue", QueueName::new, findings) {
        limits.queue = queue;
    }
    if let Some(pool) = super::name(fields, "pool", PoolName::new, findings) {
        limits.pool = pool;
    }
    limits.pool_slots = fields.whole("pool_slots", findings).unwrap_or(limits.pool_slots);
    let weight = fields.whole("priority_weight", findings);
    limits.priority_weight = weight.unwrap_or(limits.priority_weight);
    limits.weight_rule = match fields.choice("weight_rule", findings) {
        Some("upstream") => WeightRule::Upstream,
        Some("absolute") => WeightRule::Absolute,
        _ => WeightRule::Downstream,
    };
    limits.max_active_tis_per_dag = fields.whole("max_active_tis_per_dag", findings);
    limits.max_active_tis_per_dagrun = fields.whole("max_active_tis_per_dagrun", findings);
}

fn read_retries(task: &mut Task, fields: &Fields<'_>, findings: &mut Findings) {
    let retry = &mut task.retry;
    retry.retries = fields.whole("retries", findings).unwrap_or(retry.retries);
    retry.retry_delay = fields.duration("retry_delay", findings).unwrap_or(retry.retry_delay);
    let exponential = fields.flag("retry_exponential_backoff", findings);
    retry.exponential_backoff = exponential.unwrap_or(false);
    retry.max_retry_delay = fields.duration("max_retry_delay", findings);
    task.retry_rules = retry::policy(fields, findings);
    task.infra_retries = fields.whole("infra_retries", findings).unwrap_or(task.infra_retries);
    let graceful = retry::codes(fields, "graceful_exit_codes", 0, findings);
    task.graceful_exit_codes = graceful.unwrap_or_default();
    if let Some(codes) = retry::codes(fields, "skip_exit_codes", 1, findings) {
        task.skip_exit_codes = codes;
    }
}

/// A program with its arguments: `bash -eu`, or `[bash, -eu]`.
fn shell(fields: &Fields<'_>, findings: &mut Findings) -> Option<Vec<String>> {
    let field = fields.get("shell")?;
    let words: Vec<String> = match field.entry.value.as_text() {
        Some(text) => text.split_whitespace().map(String::from).collect(),
        None => fields.texts("shell", findings)?,
    };
    if words.first().is_none_or(|program| program.is_empty()) {
        wrong_type(field, "a program", "write bash, or [python3, -u]", findings);
        return None;
    }
    Some(words)
}

fn user(fields: &Fields<'_>, findings: &mut Findings) -> Option<String> {
    let user = fields.text("run_as_user", findings)?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_.-$".contains(c);
    if !user.is_empty() && !user.starts_with('-') && user.chars().all(is_name) {
        return Some(user);
    }
    let place = fields.get("run_as_user")?.entry.value.place;
    let message = format!("`run_as_user` cannot be {}", quoted(&user));
    findings.error(place, "bad-name", message, "the name of a user of the worker's machine");
    None
}

impl Draft<'_> {
    /// Where it says what it does, else its name.
    pub(crate) fn action_place(&self) -> Place {
        let entries = self.entry.value.as_map().unwrap_or_default();
        let action = entries.iter().find(|entry| ACTIONS.contains(&entry.key.as_str()));
        action.map_or(self.entry.key_place, |action| action.key_place)
    }

    /// Whether `expand` has that key, read or refused.
    pub(crate) fn maps_over(&self, name: &str) -> bool {
        let entries = self.entry.value.as_map().unwrap_or_default();
        let expand = entries.iter().find(|entry| entry.key == "expand");
        let keys = expand.and_then(|expand| expand.value.as_map()).unwrap_or_default();
        keys.iter().any(|key| key.key == name)
    }
}
