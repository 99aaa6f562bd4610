//! One step as a task, or as several where it waits for what it started.

mod conditions;
mod policy;

pub(in crate::dagu) use conditions::conditions;

use super::env::Env;
use super::script::{Around, Body, word};
use super::steps::{Goes, Shared};
use crate::report::Notes;
use crate::script::{literal, literal_value, refuses};
use crate::yaml::{Field, Fields};
use fencepost_dagfile::document::{Content, Node};
use serde_json::{Map, Value, json};

/// A step with its keys, as far as they have been looked at.
pub(super) struct Step<'a, 'b> {
    pub(super) id: &'b str,
    pub(super) line: u32,
    pub(super) fields: Fields<'a>,
    /// `- echo hello`.
    pub(super) shorthand: Option<&'a str>,
    pub(super) shared: &'b Shared,
    pub(super) before: u32,
}

/// What a step became.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) keys: Map<String, Value>,
    /// What its script says, to find the variables that it uses.
    pub(super) text: String,
    pub(super) output: Option<String>,
    pub(super) goes: Goes,
    /// A task before it that starts what it waits for.
    pub(super) start: Option<Map<String, Value>>,
    /// The question to a person after it.
    pub(super) question: Option<String>,
}

impl Step<'_, '_> {
    pub(super) fn convert(mut self, notes: &mut Notes) -> Done {
        let mut done = Done::default();
        self.limits(&mut done.keys, notes);
        self.goes(&mut done, notes);
        if let Some(call) = self.fields.take(&["call", "run"]) {
            self.call(&call, &mut done, notes);
        } else {
            let around = self.around(&mut done, notes);
            self.run(around, &mut done, notes);
        }
        if let Some(approval) = self.fields.take(&["approval"]) {
            let prompt = approval.value.get("prompt").and_then(Node::text).unwrap_or(self.id);
            done.question = Some(literal_value(prompt));
            if approval.value.entries().iter().any(|entry| entry.key != "prompt") {
                notes.needs(
                    approval.line,
                    approval.shown(),
                    "a person says yes or no, and nothing else",
                    "ask for values as params of a DAG",
                );
            }
        }
        self.rest(notes);
        done
    }

    fn around(&mut self, done: &mut Done, notes: &mut Notes) -> Around {
        let mut env = Env::default();
        env.read(&mut self.fields, self.before, notes);
        if !env.constants.is_empty() {
            done.keys.insert("env".into(), Value::Object(env.constants));
        }
        let mut around = Around {
            exports: self.shared.exports.clone(),
            forgives: done.goes.forgiven.clone(),
            ..Around::default()
        };
        around.exports.extend(env.exports);
        if let Some(dir) = super::text(&mut self.fields, "working_dir")
            .or_else(|| super::text(&mut self.fields, "dir"))
        {
            if dir.contains(['$', '`', '~']) || !dir.starts_with('/') {
                around.exports.push(format!("cd {}", word(&dir).replace("'~", "~'")));
            } else {
                done.keys.insert("working_dir".into(), json!(literal_value(&dir)));
            }
        }
        around.stdout = super::text(&mut self.fields, "stdout");
        around.stderr = super::text(&mut self.fields, "stderr");
        if let Some(field) = self.fields.take(&["preconditions", "precondition"]) {
            around.conditions = conditions(&field, notes);
        }
        if let Some(field) = self.fields.take(&["output"]) {
            let name = field.value.text().or_else(|| field.value.get("name").and_then(Node::text));
            match name
                .map(|name| name.trim_start_matches('$'))
                .filter(|name| crate::names::is_variable(name))
            {
                Some(name) => around.output = Some(name.to_owned()),
                None => notes.needs(
                    field.line,
                    field.shown(),
                    "it is no name of a variable",
                    "write `outputs`",
                ),
            }
            if field.value.is_map() && field.value.entries().len() > 1 {
                notes.needs(
                    field.line,
                    field.shown(),
                    "only the name of the output is taken over",
                    "look whether its readers depend on the rest",
                );
            }
        }
        done.output.clone_from(&around.output);
        around
    }

    fn run(&mut self, around: Around, done: &mut Done, notes: &mut Notes) {
        let kind = self.kind();
        if let Some(kind) = kind.filter(|kind| !["", "command", "shell"].contains(&kind.as_str())) {
            return self.refuse(&format!("type {kind}"), done, notes);
        }
        for name in [
            "container",
            "parallel",
            "repeat_policy",
            "llm",
            "messages",
            "agent",
            "routes",
            "value",
        ] {
            if let Some(field) = self.fields.take(&[name]) {
                let what = field.shown();
                return self.refuse(&what, done, notes);
            }
        }
        if self.shared.is_in_container {
            return self.refuse("the workflow's container", done, notes);
        }
        let shell = super::text(&mut self.fields, "shell").or_else(|| self.shared.shell.clone());
        let Some(body) = self.body(notes) else {
            return self.refuse("a step without a command", done, notes);
        };
        let shell: Vec<String> = shell.map_or_else(
            || vec!["sh".to_owned(), "-e".to_owned()],
            |shell| shell.split_whitespace().map(str::to_owned).collect(),
        );
        done.text = around.script(&body);
        match &body {
            Body::Argv(words)
                if around.is_nothing() && !words.iter().any(|word| word.contains(['$', '`'])) =>
            {
                let words: Vec<String> = words.iter().map(|word| literal(word)).collect();
                done.keys.insert("command".into(), json!(words));
            }
            Body::Interpreter { program, text } if around.is_nothing() => {
                done.keys.insert("run".into(), json!(literal(text)));
                let program: Vec<&str> = program.split_whitespace().collect();
                done.keys.insert("shell".into(), json!(program));
            }
            Body::Shell(_) | Body::Argv(_) | Body::Interpreter { .. } => {
                done.keys.insert("run".into(), json!(literal(&done.text)));
                done.keys.insert("shell".into(), json!(shell));
            }
        }
        if is_of_dagu(&done.text) {
            let why = "a reference such as ${step.stdout} or ${NAME.key} is Dagu's, and no shell's";
            notes.needs(
                self.line,
                self.id,
                why,
                "declare `outputs`, and use {{ outputs[\"step\"].NAME }}",
            );
        }
        notes.converted(self.line, self.id, "a task");
    }

    fn kind(&mut self) -> Option<String> {
        let own = super::text(&mut self.fields, "type");
        let executor = self.fields.take(&["executor"]).map(|field| {
            field
                .value
                .text()
                .or_else(|| field.value.get("type").and_then(Node::text))
                .unwrap_or_default()
                .to_owned()
        });
        own.or(executor)
    }

    /// What it runs: `script`, `command` in its forms, `exec`.
    fn body(&mut self, notes: &mut Notes) -> Option<Body> {
        let script = super::text(&mut self.fields, "script");
        let command = self.fields.take(&["command", "cmd"]);
        if let Some(exec) = self.fields.take(&["exec"]) {
            let mut words: Vec<String> = exec
                .value
                .get("command")
                .and_then(Node::text)
                .map(str::to_owned)
                .into_iter()
                .collect();
            words.extend(
                exec.value
                    .get("args")
                    .map(Node::items)
                    .unwrap_or_default()
                    .iter()
                    .filter_map(|item| item.text().map(str::to_owned)),
            );
            return (!words.is_empty()).then_some(Body::Argv(words));
        }
        if let Some(text) = self.shorthand {
            return Some(Body::Shell(text.to_owned()));
        }
        match (command, script) {
            (None, Some(text)) => Some(Body::Shell(text)),
            (Some(command), Some(text)) => {
                let program = command.texts().join(" ");
                let is_shell =
                    ["sh", "bash", "zsh", "/bin/sh", "/bin/bash"].contains(&program.as_str());
                Some(if is_shell { Body::Shell(text) } else { Body::Interpreter { program, text } })
            }
            (Some(command), None) if command.value.is_list() => {
                let words = command.texts();
                let are_commands = words.first().is_some_and(|word| word.trim().contains(' '));
                if are_commands {
                    return Some(Body::Shell(words.join("\n")));
                }
                notes.converted(command.line, command.shown(), "a program with its arguments");
                (!words.is_empty()).then_some(Body::Argv(words))
            }
            (Some(command), None) => command
                .value
                .text()
                .filter(|text| !text.trim().is_empty())
                .map(|text| Body::Shell(text.to_owned())),
            (None, None) => None,
        }
    }

    /// The step becomes a task that fails.
    fn refuse(&mut self, what: &str, done: &mut Done, notes: &mut Notes) {
        let why = "nothing here is like it; it was written as a task that fails";
        notes.needs(
            self.line,
            format!("{}: {what}", self.id),
            why,
            "write it as run, command, python or wait",
        );
        done.keys.insert("run".into(), json!(refuses(&format!("{} ({what})", self.id))));
        done.output = None;
        // What else it says is part of what was refused.
        for name in [
            "command",
            "script",
            "config",
            "with",
            "params",
            "shell",
            "shell_packages",
            "stdout",
            "stderr",
            "exec",
        ] {
            self.fields.take(&[name]);
        }
    }

    /// Another workflow: a run of it is made, then waited for.
    fn call(&mut self, call: &Field<'_>, done: &mut Done, notes: &mut Notes) {
        let name = call.value.text().unwrap_or_default();
        let Some(dag_id) =
            crate::names::clean(name).filter(|_| self.fields.clone().take(&["parallel"]).is_none())
        else {
            let what = call.shown();
            self.fields.take(&["parallel"]);
            return self.refuse(&what, done, notes);
        };
        let mut params = Map::new();
        if let Some(field) = self.fields.take(&["params"]) {
            let mut pairs = Vec::new();
            collect(field.value, &mut pairs);
            for (name, value) in pairs {
                match self.shared.as_template(&value) {
                    Some(value) if crate::names::is_variable(&name) => {
                        drop(params.insert(name, json!(value)));
                    }
                    _ => notes.needs(
                        field.line,
                        format!("{name}={value}"),
                        "only params of this workflow and constants can be passed on",
                        "write a template",
                    ),
                }
            }
        }
        let run_id = format!("{{{{ run_id }}}}_{}", self.id);
        let mut trigger = json!({ "dag_id": dag_id, "run_id": run_id });
        if !params.is_empty() {
            trigger["params"] = Value::Object(params);
        }
        done.start = Some(Map::from_iter([("trigger_dag".to_owned(), trigger)]));
        done.keys.insert(
            "wait".into(),
            json!({ "external_run": { "dag_id": dag_id, "run_id": run_id } }),
        );
        for key in [
            "retries",
            "retry_delay",
            "retry_policy",
            "retry_exponential_backoff",
            "max_retry_delay",
            "execution_timeout",
        ] {
            done.keys.shift_remove(key);
        }
        if let Some(field) = self.fields.take(&["output"]) {
            notes.needs(
                field.line,
                field.shown(),
                "outputs of another DAG's run are not at hand",
                "let it write them where both look",
            );
        }
        notes.converted(
            call.line,
            call.shown(),
            "a task that makes the run, and one that waits for it",
        );
    }

    fn rest(&mut self, notes: &mut Notes) {
        for field in std::mem::take(&mut self.fields).rest() {
            let (line, what) = (field.line, field.shown());
            match field.key {
                "description" | "log_output" | "shell_packages" => {
                    notes.ignored(line, what, "it changes nothing here");
                }
                "signal_on_stop" if field.value.text() == Some("SIGTERM") => {
                    notes.ignored(line, what, "it is what we send too");
                }
                "signal_on_stop" => {
                    notes.needs(line, what, "a task gets SIGTERM", "let it handle that");
                }
                "mail_on_error" if field.is_true() => notes.needs(
                    line,
                    what,
                    "mails are callbacks here",
                    "write a callback that mails",
                ),
                "mail_on_error" => notes.ignored(line, what, "no mail is sent"),
                "worker_selector" => notes.needs(
                    line,
                    what,
                    "workers have no labels",
                    "give the workers a queue, and the task `queue`",
                ),
                _ => notes.needs(
                    line,
                    what,
                    "no key of a task is like it",
                    "look whether the step depends on it",
                ),
            }
        }
    }
}

/// `K=V` pairs of the params of a call.
fn collect(node: &Node, pairs: &mut Vec<(String, String)>) {
    match &node.content {
        Content::Scalar { text, .. } => {
            for part in text.split_whitespace() {
                let (name, value) = part.split_once('=').unwrap_or(("", part));
                pairs.push((name.to_owned(), value.trim_matches(['"', '\'']).to_owned()));
            }
        }
        Content::List(items) => items.iter().for_each(|item| collect(item, pairs)),
        Content::Map(entries) => {
            for entry in entries {
                pairs.push((entry.key.clone(), entry.value.text().unwrap_or_default().to_owned()));
            }
        }
    }
}

/// Whether a text has a reference with a dot in it: `${extract.stdout}`.
fn is_of_dagu(text: &str) -> bool {
    text.split("${").skip(1).any(|rest| {
        let name = rest.split('}').next().unwrap_or_default();
        name.contains('.') && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-[]".contains(c))
    })
}
