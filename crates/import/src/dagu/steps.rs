//! The steps of a workflow: their names, their order, and what each became.

use super::env::Env;
use super::script::Forgiven;
use super::step::{Done, Step, conditions};
use super::{handlers, outputs};
use crate::dag::Draft;
use crate::names::Names;
use crate::report::Notes;
use crate::script::literal;
use crate::yaml::{Field, Fields};
use fencepost_dagfile::document::{Content, Entry, Node};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What all steps share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) exports: Vec<String>,
    pub(super) shell: Option<String>,
    pub(super) is_in_container: bool,
    /// Variables that stand for params.
    params: Vec<String>,
}

impl Shared {
    /// A text in which params are variables, as a template; `None` if it has others.
    pub(super) fn as_template(&self, text: &str) -> Option<String> {
        let mut out = literal(text);
        for name in &self.params {
            let template = format!("{{{{ params.{name} }}}}");
            out = out.replace(&format!("${{{name}}}"), &template);
            if out == format!("${name}") {
                out = template;
            }
        }
        if out.contains(['$', '`']) { None } else { Some(out) }
    }
}

/// What goes on although a step did not succeed.
#[derive(Debug, Default, Clone)]
pub(super) struct Goes {
    pub(super) after_failure: bool,
    pub(super) after_skip: bool,
    pub(super) forgiven: Option<Forgiven>,
}

/// Everything of a workflow that is about steps.
pub(super) struct Whole<'a> {
    before: u32,
    shared: Shared,
    constants: Map<String, Value>,
    steps: Option<Field<'a>>,
    handlers: Option<Field<'a>>,
    preconditions: Option<Field<'a>>,
    defaults: Option<Field<'a>>,
    kind: Option<Field<'a>>,
}

/// A step as it stands.
struct Raw<'a> {
    id: String,
    /// Its name and its id, by which others may call it.
    called: Vec<String>,
    line: u32,
    fields: Fields<'a>,
    shorthand: Option<&'a str>,
    depends: Option<Vec<String>>,
    /// Its place in the list; those of a nested list have one.
    place: usize,
}

impl<'a> Whole<'a> {
    pub(super) fn of(fields: &mut Fields<'a>, before: u32, env: Env, notes: &mut Notes) -> Self {
        let mut exports = env.exports;
        exports.extend(env.arguments);
        if let Some(dir) = super::text(fields, "working_dir").or_else(|| super::text(fields, "dir"))
        {
            exports.insert(0, format!("cd {}", super::script::word(&dir)));
        }
        let shell = fields.take(&["shell"]).map(|field| field.texts().join(" "));
        let container = fields.take(&["container"]);
        if let Some(field) = &container {
            notes.needs(
                field.line,
                field.shown(),
                "its steps run in a container",
                "run the containers in the tasks' commands",
            );
        }
        let params = env
            .constants
            .iter()
            .filter(|(_, value)| value.as_str().is_some_and(|text| text.contains("params.")));
        let params = params.map(|(name, _)| name.clone()).collect();
        Self {
            before,
            shared: Shared { exports, shell, is_in_container: container.is_some(), params },
            constants: env.constants,
            steps: fields.take(&["steps"]),
            handlers: fields.take(&["handler_on"]),
            preconditions: fields.take(&["preconditions", "precondition"]),
            defaults: fields.take(&["defaults"]),
            kind: fields.take(&["type"]),
        }
    }

    pub(super) fn convert(mut self, draft: &mut Draft, notes: &mut Notes) {
        draft.set_some("env", std::mem::take(&mut self.constants));
        let mut names = Names::default();
        let raws = self.raws(&mut names, notes);
        let ups = self.ups(&raws, notes);
        let ids: Vec<String> = raws.iter().map(|raw| raw.id.clone()).collect();
        let mut all: BTreeMap<String, Done> = BTreeMap::new();
        for raw in raws {
            let step = Step {
                id: &raw.id,
                line: raw.line,
                fields: raw.fields,
                shorthand: raw.shorthand,
                shared: &self.shared,
                before: self.before,
            };
            all.insert(raw.id.clone(), step.convert(notes));
        }
        outputs::pass_on(&ids, &ups, &mut all, notes);
        let first =
            self.preconditions.as_ref().map(|field| self.first(field, &mut names, draft, notes));
        for id in &ids {
            let Some(done) = all.remove(id) else { continue };
            let own = ups.get(id).cloned().unwrap_or_default();
            insert(id, done, own, first.as_ref(), draft);
        }
        rules(&ids, &ups, draft, notes);
        if let Some(field) = self.handlers.take() {
            handlers::read(&field, (&self.shared, self.before), (&ids, &ups), draft, notes);
        }
    }

    /// A task before all that skips the run.
    fn first(
        &self,
        field: &Field<'_>,
        names: &mut Names,
        draft: &mut Draft,
        notes: &mut Notes,
    ) -> String {
        let id = names.give("preconditions", "preconditions");
        let mut lines = self.shared.exports.clone();
        lines.extend(conditions(field, notes));
        lines.push("true".to_owned());
        let text = literal(&(lines.join("\n") + "\n"));
        draft.tasks.insert(id.clone(), json!({ "run": text, "shell": ["sh", "-e"] }));
        notes.converted(field.line, field.shown(), "a task before all others that skips them");
        id
    }

    fn raws(&self, names: &mut Names, notes: &mut Notes) -> Vec<Raw<'a>> {
        let mut raws = Vec::new();
        let Some(field) = &self.steps else { return raws };
        for (place, entry) in field.value.entries().iter().enumerate() {
            let line = self.before.saturating_add(entry.place.line);
            raws.extend(self.raw(&entry.value, Some(entry), (place, line), names));
        }
        for (place, item) in field.value.items().iter().enumerate() {
            let nested = if item.is_list() { item.items() } else { std::slice::from_ref(item) };
            for item in nested {
                let line = self.before.saturating_add(item.place.line);
                match self.raw(item, None, (place, line), names) {
                    Some(raw) => raws.push(raw),
                    None => notes.needs(
                        line,
                        crate::yaml::shown("steps", item),
                        "it is no step",
                        "Dagu refuses it too; mend it",
                    ),
                }
            }
        }
        raws
    }

    fn raw(
        &self,
        node: &'a Node,
        entry: Option<&'a Entry>,
        (place, line): (usize, u32),
        names: &mut Names,
    ) -> Option<Raw<'a>> {
        let shorthand = match &node.content {
            Content::Scalar { .. } => Some(node.text()?),
            Content::Map(_) => None,
            Content::List(_) => return None,
        };
        let mut fields = Fields::of(node.entries(), self.before);
        let mut called: Vec<String> =
            ["name", "id"].iter().filter_map(|key| super::text(&mut fields, key)).collect();
        called.extend(entry.map(|entry| entry.key.clone()));
        let wish = called.first().cloned().unwrap_or_default();
        let id = names.give(&wish, &format!("step_{}", place + 1));
        let depends = fields.take(&["depends"]).map(|field| field.texts());
        // A step's own keys go before the defaults.
        if let Some(defaults) = &self.defaults {
            let own: Vec<&str> = node.entries().iter().map(|entry| entry.key.as_str()).collect();
            let others =
                defaults.value.entries().iter().filter(|entry| !own.contains(&entry.key.as_str()));
            fields = fields.and(others, self.before);
        }
        Some(Raw { id, called, line, fields, shorthand, depends, place })
    }

    /// The ids before each id.
    fn ups(&self, raws: &[Raw<'_>], notes: &mut Notes) -> BTreeMap<String, Vec<String>> {
        let find =
            |name: &str| raws.iter().position(|raw| raw.called.iter().any(|called| called == name));
        let leads_on = |(at, raw): (usize, &Raw<'_>)| {
            raw.depends.iter().flatten().any(|name| find(name).is_some_and(|up| up >= at))
        };
        let said = self.kind.as_ref().and_then(|field| field.value.text());
        let is_map = self.steps.as_ref().is_some_and(|field| field.value.is_map());
        let is_graph = match said {
            Some(kind) => kind != "chain",
            None => is_map || raws.iter().enumerate().any(leads_on),
        };
        let depends = raws.iter().any(|raw| raw.depends.is_some());
        if said.is_none() && !is_graph && depends {
            let line = self.steps.as_ref().map_or(1, |field| field.line);
            notes.converted(line, "steps without a type", "one after another, as Dagu runs them now; before it had types it ran them by `depends` alone");
        }
        let mut ups = BTreeMap::new();
        for raw in raws {
            let mut own: Vec<String> = Vec::new();
            for name in raw.depends.iter().flatten() {
                match find(name) {
                    Some(up) => own.push(raws[up].id.clone()),
                    None => notes.needs(
                        raw.line,
                        format!("{}: depends {name}", raw.id),
                        "there is no such step",
                        "Dagu refuses it too; mend it",
                    ),
                }
            }
            // An empty `depends` says that it has none.
            let has_none = raw.depends.as_ref().is_some_and(Vec::is_empty);
            if !is_graph && raw.place > 0 && !has_none {
                own.extend(
                    raws.iter()
                        .filter(|other| other.place + 1 == raw.place)
                        .map(|other| other.id.clone()),
                );
            }
            own.sort();
            own.dedup();
            ups.insert(raw.id.clone(), own);
        }
        ups
    }
}

/// Adds a step's tasks: what starts it, itself, and the question after it.
fn insert(id: &str, done: Done, ups: Vec<String>, first: Option<&String>, draft: &mut Draft) {
    let mut ups = ups;
    if let Some(first) = first.filter(|_| ups.is_empty()) {
        ups.push(first.clone());
    }
    let mut keys = done.keys;
    let mut add = |name: String, mut keys: Map<String, Value>, ups: &[String]| {
        if !ups.is_empty() {
            keys.insert("depends_on".into(), json!(ups));
        }
        draft.tasks.insert(name.clone(), Value::Object(keys));
        vec![name]
    };
    if let Some(start) = done.start {
        ups = add(format!("{id}.start"), start, &ups);
    }
    if done.goes.after_failure || done.goes.after_skip {
        let word = match (done.goes.after_failure, done.goes.after_skip) {
            (true, true) => "all_done",
            (true, false) => "failure",
            _ => "none_failed",
        };
        keys.insert(MARK.into(), json!(word));
    }
    match done.question {
        // Who depends on the step depends on the answer: it has the step's name.
        Some(question) => {
            ups = add(format!("{id}.work"), keys, &ups);
            let wait = json!({ "approval": { "subject": question, "fail_on_reject": true } });
            add(id.to_owned(), Map::from_iter([("wait".to_owned(), wait)]), &ups);
        }
        None => drop(add(id.to_owned(), keys, &ups)),
    }
}

/// What goes on after a step, kept at its task until all of them are there.
const MARK: &str = "goes on";

/// The trigger rules of steps whose upstreams let them go on.
fn rules(
    ids: &[String],
    ups: &BTreeMap<String, Vec<String>>,
    draft: &mut Draft,
    notes: &mut Notes,
) {
    let mut marks: BTreeMap<String, String> = BTreeMap::new();
    for (id, task) in &mut draft.tasks {
        if let Some(mark) = task.as_object_mut().and_then(|task| task.shift_remove(MARK)) {
            marks.insert(id.clone(), mark.as_str().unwrap_or_default().to_owned());
        }
    }
    for id in ids {
        let own: Vec<&String> = ups.get(id).into_iter().flatten().collect();
        let found: Vec<&str> =
            own.iter().filter_map(|up| marks.get(*up).map(String::as_str)).collect();
        if found.is_empty() {
            continue;
        }
        let rule = if found.iter().all(|word| *word == "none_failed") {
            "none_failed"
        } else {
            "all_done"
        };
        if found.len() < own.len() && rule == "all_done" {
            let todo = "write its `trigger_rule`, perhaps with a task between";
            notes.needs(
                1,
                id,
                "it goes on after a failure of some of its upstreams, and not of others",
                todo,
            );
            continue;
        }
        let name = [format!("{id}.start"), id.clone()]
            .into_iter()
            .find(|name| draft.tasks.contains_key(name));
        if let Some(task) =
            name.and_then(|name| draft.tasks.get_mut(&name)).and_then(Value::as_object_mut)
        {
            task.insert("trigger_rule".into(), json!(rule));
        }
    }
}
