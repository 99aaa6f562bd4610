//! Dagu workflows: one DAG per document, one task per step.
//!
//! Keys are read in both of Dagu's spellings (`retryPolicy`, `retry_policy`). Without a `type` steps run one
//! after another, as Dagu does now; a step that names a later one in `depends` says that the file is
//! older, and a graph. Variables that Dagu evaluates are left to the shell that runs the step.

mod env;
mod handlers;
mod outputs;
mod params;
mod schedule;
mod script;
mod step;
mod steps;

use crate::dag::{DagFile, Draft};
use crate::names::Names;
use crate::report::{Imported, Notes};
use crate::yaml::{self, Fields};
use crate::{Source, text_of};
use env::Env;
use fencepost_dagfile::document::{Content, Entry, Node};
use serde_json::{Map, json};

/// The DAG files of Dagu's files. `zone` is that of the machine that they are from.
pub fn dagu(sources: &[Source<'_>], zone: &str) -> Imported {
    let mut imported = Imported::default();
    let mut names = Names::default();
    for source in sources {
        let mut notes = Notes::of(source.name);
        let text = text_of(source, &mut notes).unwrap_or_default();
        for (place, (before, root)) in yaml::documents(text, &mut notes).into_iter().enumerate() {
            if !root.is_map() {
                notes.unreadable(before + 1, "it is no mapping", "give a workflow of Dagu");
                continue;
            }
            let document = Document { source, before, place, zone };
            imported.files.extend(document.convert(&snake(&root), &mut names, &mut notes));
        }
        imported.notes.extend(notes.finish());
    }
    imported
}

struct Document<'a> {
    source: &'a Source<'a>,
    /// Lines before it in its file.
    before: u32,
    place: usize,
    zone: &'a str,
}

impl Document<'_> {
    fn convert(&self, root: &Node, names: &mut Names, notes: &mut Notes) -> Option<DagFile> {
        let file = self.source.name.rsplit('/').next().unwrap_or(self.source.name);
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        let mut fields = Fields::of(root.entries(), self.before);
        let name = text(&mut fields, "name");
        let wish = name.clone().unwrap_or_else(|| stem.to_owned());
        let dag_id = names.give(&wish, "workflow");
        notes.dag_id.clone_from(&dag_id);
        let line = self.before + 1;
        if dag_id != wish {
            notes.needs(
                line,
                &wish,
                format!("its name became {dag_id}"),
                "look whether something names it",
            );
        }
        let origin = if self.place == 0 {
            file.to_owned()
        } else {
            format!("document {} of {file}", self.place + 1)
        };
        let mut draft = Draft::new(&dag_id, origin, line);
        {
            let key = "description";
            draft.set_some(key, text(&mut fields, key).unwrap_or_default());
        }
        tags(&mut fields, &mut draft);
        schedule::read(&mut fields, self.zone, &mut draft, notes);
        limits(&mut fields, &mut draft, notes);
        let mut env = Env::default();
        params::read(&mut fields, &mut draft, &mut env, notes);
        env.read(&mut fields, self.before, notes);
        let whole = steps::Whole::of(&mut fields, self.before, env, notes);
        whole.convert(&mut draft, notes);
        secrets(&mut fields, &mut draft, notes);
        rest(fields, notes);
        notes.converted(line, &wish, format!("{dag_id}.yaml"));
        draft.finish(notes)
    }
}

fn text(fields: &mut Fields<'_>, key: &str) -> Option<String> {
    fields.take(&[key]).and_then(|field| field.value.text().map(str::to_owned))
}

/// Keys as Dagu spells them now. Names of variables and the like keep their letters.
fn snake(node: &Node) -> Node {
    let content = match &node.content {
        Content::Map(entries) => {
            let entry = |entry: &Entry| {
                let keeps = ["env", "params", "with", "config", "tags", "labels", "schedule"]
                    .contains(&entry.key.as_str());
                let value = if keeps { entry.value.clone() } else { snake(&entry.value) };
                Entry { key: snake_case(&entry.key), place: entry.place, value }
            };
            Content::Map(entries.iter().map(entry).collect())
        }
        Content::List(items) => Content::List(items.iter().map(snake).collect()),
        Content::Scalar { .. } => node.content.clone(),
    };
    Node { place: node.place, content }
}

fn snake_case(key: &str) -> String {
    let is_camel = key.chars().all(|c| c.is_ascii_alphanumeric())
        && key.starts_with(|c: char| c.is_ascii_lowercase());
    if !is_camel {
        return key.to_owned();
    }
    let mut out = String::with_capacity(key.len());
    for c in key.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

fn tags(fields: &mut Fields<'_>, draft: &mut Draft) {
    let mut tags: Vec<String> = Vec::new();
    for key in ["tags", "labels", "group"] {
        let Some(field) = fields.take(&[key]) else { continue };
        match &field.value.content {
            Content::Scalar { text, .. } => {
                let split = |c: char| c == ',' || (text.contains('=') && c == ' ');
                tags.extend(text.split(split).map(|tag| tag.trim().to_owned()));
            }
            Content::List(items) => tags.extend(items.iter().flat_map(pairs)),
            Content::Map(_) => tags.extend(pairs(field.value)),
        }
    }
    tags.retain(|tag| !tag.is_empty());
    draft.set_some("tags", tags);
}

fn pairs(node: &Node) -> Vec<String> {
    match &node.content {
        Content::Scalar { text, .. } => vec![text.clone()],
        Content::Map(entries) => entries
            .iter()
            .map(|entry| format!("{}={}", entry.key, entry.value.text().unwrap_or_default()))
            .collect(),
        Content::List(_) => Vec::new(),
    }
}

fn limits(fields: &mut Fields<'_>, draft: &mut Draft, notes: &mut Notes) {
    let number =
        |field: &yaml::Field<'_>| field.value.text().and_then(|text| text.parse::<i64>().ok());
    let runs = fields.take(&["max_active_runs"]).and_then(|field| number(&field)).unwrap_or(1);
    // Below 1 there is no limit.
    if runs >= 1 {
        draft.set("max_active_runs", runs);
    }
    if let Some(steps) =
        fields.take(&["max_active_steps"]).and_then(|field| number(&field)).filter(|n| *n >= 1)
    {
        draft.set("max_active_tasks", steps.saturating_mul(runs.max(1)));
    }
    if let Some(field) = fields.take(&["timeout_sec"])
        && let Some(seconds) = number(&field).and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0)
    {
        draft.set("dagrun_timeout", yaml::seconds(seconds));
    }
    if let Some(field) = fields.take(&["hist_retention_days"]) {
        match number(&field).filter(|days| *days > 0) {
            Some(days) => draft.set("retention", format!("{days}d")),
            None => notes.ignored(
                field.line,
                field.shown(),
                "ended runs are kept as the installation says",
            ),
        }
    }
    let mut shared = Map::new();
    if let Some(seconds) = fields
        .take(&["max_clean_up_time_sec"])
        .and_then(|field| number(&field))
        .and_then(|n| u64::try_from(n).ok())
    {
        shared.insert("kill_grace".into(), json!(yaml::seconds(seconds)));
    }
    draft.set_some("default_args", shared);
}

/// Secrets of the environment and of files; others are in places that are not known here.
fn secrets(fields: &mut Fields<'_>, draft: &mut Draft, notes: &mut Notes) {
    let Some(field) = fields.take(&["secrets"]) else { return };
    let mut found = Map::new();
    for item in field.value.items() {
        let text = |key: &str| item.get(key).and_then(Node::text).unwrap_or_default();
        let (name, key) = (text("name"), text("key"));
        let reference = match text("provider") {
            "env" if crate::names::is_variable(key) && !key.starts_with("FENCEPOST_") => {
                Some(format!("env:{key}"))
            }
            "file" if key.starts_with('/') => Some(format!("file:{key}")),
            _ => None,
        };
        let is_name = crate::names::is_variable(name) && !name.starts_with("FENCEPOST_");
        if let Some(reference) = reference.filter(|_| is_name) {
            found.insert(name.to_owned(), json!(reference));
        } else {
            let what = yaml::shown("secrets", item);
            let todo = "keep it here (fencepost secrets set), and write `secrets`";
            notes.needs(field.line, what, "it is in a place that is not known here", todo);
        }
    }
    if !found.is_empty() {
        notes.converted(field.line, "secrets", "secrets: the worker reads them");
    }
    draft.set_some("secrets", found);
}

/// What is about Dagu itself.
const NOTHING: [&str; 8] = [
    "log_dir",
    "log_output",
    "max_output_size",
    "otel",
    "run_config",
    "restart_wait_sec",
    "harnesses",
    "step_types",
];

fn rest(fields: Fields<'_>, notes: &mut Notes) {
    for field in fields.rest() {
        let (line, what) = (field.line, field.shown());
        match field.key {
            key if NOTHING.contains(&key) => notes.ignored(line, what, "it is about Dagu itself"),
            "mail_on" | "error_mail" | "info_mail" | "wait_mail" | "smtp" => {
                notes.needs(line, what, "mails are callbacks here", "write a callback that mails");
            }
            "queue" => notes.needs(
                line,
                what,
                "a queue is a limit there, and names workers here",
                "make a pool, and give its tasks `pool`",
            ),
            "worker_selector" => notes.needs(
                line,
                what,
                "workers have no labels",
                "give the workers a queue, and its tasks `queue`",
            ),
            "delay_sec" => notes.needs(
                line,
                what,
                "a run starts at once",
                "add a task with wait: {interval: ...}",
            ),
            "skip_if_successful" => notes.needs(
                line,
                what,
                "a run by hand does not stand for a slot",
                "do without, or look in the first task",
            ),
            "dotenv" => notes.needs(
                line,
                what,
                "files of variables are not read",
                "write them as `env`, or read them in the script",
            ),
            "ssh" | "s3" | "redis" | "kubernetes" | "llm" | "harness" | "registry_auths" => {
                notes.needs(
                    line,
                    what,
                    "it is for steps that have no counterpart",
                    "write those steps anew",
                );
            }
            _ => notes.needs(
                line,
                what,
                "no key of a DAG file is like it",
                "look whether the workflow depends on it",
            ),
        }
    }
}
