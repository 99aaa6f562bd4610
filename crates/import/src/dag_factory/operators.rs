//! What an operator does, as a task's action.

use super::values;
use crate::report::Notes;
use crate::script;
use crate::yaml::{Field, Fields, seconds};
use fencepost_dagfile::document::Node;
use serde_json::{Map, Value, json};

/// A task under conversion: its arguments, and what they have become.
pub(super) struct Task<'a, 'b> {
    pub(super) name: &'b str,
    pub(super) line: u32,
    pub(super) fields: Fields<'a>,
    pub(super) keys: Map<String, Value>,
    /// Constant arguments of a function, which become params of the DAG.
    pub(super) arguments: Vec<(String, Value)>,
    /// Names of tasks whose outputs it uses.
    pub(super) uses: Vec<String>,
}

impl<'a> Task<'a, '_> {
    /// Writes the action of an operator (or decorator) of that path; false: it has none here.
    pub(super) fn act(&mut self, operator: &Field<'_>, notes: &mut Notes) -> bool {
        let path = operator.value.text().unwrap_or_default();
        let class = path.rsplit('.').next().unwrap_or(path);
        if operator.key == "decorator" {
            return match class {
                "task" => self.function(true, notes),
                _ => false,
            };
        }
        match class.trim_end_matches("Async") {
            "BashOperator" => self.bash(notes),
            "PythonOperator" => self.function(false, notes),
            "EmptyOperator" | "DummyOperator" => {
                self.keys.insert("noop".into(), json!(true));
                true
            }
            "TriggerDagRunOperator" => self.trigger(notes),
            "ExternalTaskSensor" => self.external(notes),
            "TimeDeltaSensor" => {
                let span =
                    self.fields.take(&["delta"]).and_then(|field| values::duration(&field, notes));
                self.wait(span.map(|span| json!({ "interval": span })), notes)
            }
            "TimeSensor" => {
                let time = self
                    .text(&["target_time"])
                    .map(|text| text.chars().take(5).collect::<String>());
                self.wait(time.map(|time| json!({ "time": time })), notes)
            }
            "DateTimeSensor" => {
                let at = self.text(&["target_time"]);
                self.wait(at.map(|at| json!({ "until": at })), notes)
            }
            "FileSensor" => {
                if let Some(field) = self.fields.take(&["fs_conn_id"]) {
                    notes.needs(
                        field.line,
                        field.shown(),
                        "paths are those of the triggerer's machine",
                        "write the whole path",
                    );
                }
                let path = self.text(&["filepath"]);
                self.wait(path.map(|path| json!({ "file": path })), notes)
            }
            _ => false,
        }
    }

    fn text(&mut self, names: &[&str]) -> Option<String> {
        self.fields.take(names).and_then(|field| field.value.text().map(str::to_owned))
    }

    fn bash(&mut self, notes: &mut Notes) -> bool {
        let mapped = self.mapped("bash_command");
        let Some(field) = self.fields.take(&["bash_command"]) else {
            let Some(list) = mapped else { return false };
            self.keys.insert("run".into(), json!("{{ bash_command }}"));
            self.expand("bash_command", list);
            return self.bash_rest(notes);
        };
        let text = field.value.text().unwrap_or_default();
        if text.trim_end().len() == text.len()
            && [".sh", ".bash"].iter().any(|end| text.ends_with(end))
        {
            let why =
                "Airflow reads a file of that name as a template; here the command itself runs";
            notes.needs(
                field.line,
                field.shown(),
                why,
                "put the script's text into `run`, or call it with its path",
            );
        }
        self.keys.insert("run".into(), json!(text));
        self.bash_rest(notes)
    }

    fn bash_rest(&mut self, notes: &mut Notes) -> bool {
        // Airflow runs it without -e: a command in the middle may fail.
        self.keys.insert("shell".into(), json!(["bash"]));
        if let Some(cwd) = self.text(&["cwd"]) {
            self.keys.insert("working_dir".into(), json!(cwd));
        }
        if let Some(env) = self.fields.take(&["env"]) {
            let pair = |entry: &fencepost_dagfile::document::Entry| {
                let value = entry.value.text().unwrap_or_default();
                crate::names::is_variable(&entry.key).then(|| (entry.key.clone(), json!(value)))
            };
            let variables: Map<String, Value> =
                env.value.entries().iter().filter_map(pair).collect();
            if variables.len() != env.value.entries().len() || variables.is_empty() {
                notes.needs(
                    env.line,
                    env.shown(),
                    "not all of it are variables that a task can have",
                    "write `env`",
                );
            }
            self.keys.insert("env".into(), Value::Object(variables));
        }
        if let Some(codes) = self.fields.take(&["skip_on_exit_code"]) {
            let codes: Vec<Value> = codes
                .texts()
                .iter()
                .filter_map(|code| code.parse::<u8>().ok())
                .map(Value::from)
                .collect();
            self.keys.insert("skip_exit_codes".into(), json!(codes));
        }
        for name in ["append_env", "output_encoding"] {
            if let Some(field) = self.fields.take(&[name]) {
                notes.ignored(
                    field.line,
                    field.shown(),
                    "a task has PATH, HOME, LANG, TZ and what `env` says; output is UTF-8",
                );
            }
        }
        true
    }

    /// A Python function, its arguments by name.
    fn function(&mut self, is_decorator: bool, notes: &mut Notes) -> bool {
        let path = self.text(&["python_callable"]);
        let (name, file) =
            (self.text(&["python_callable_name"]), self.text(&["python_callable_file"]));
        let callable = match (path, name, file) {
            (Some(path), ..) => {
                path.rsplit_once('.').map(|(module, name)| format!("{module}:{name}"))
            }
            (None, Some(name), Some(file)) => {
                let stem = file
                    .rsplit('/')
                    .next()
                    .and_then(|name| name.strip_suffix(".py"))
                    .unwrap_or_default();
                let todo =
                    format!("put {stem}.py into the DAG folder, or onto the worker's PYTHONPATH");
                notes.needs(
                    self.line,
                    format!("python_callable_file: {file}"),
                    "a function is found by its module",
                    todo,
                );
                (!stem.is_empty()).then(|| format!("{stem}:{name}"))
            }
            _ => None,
        };
        let Some(callable) = callable else { return false };
        self.keys.insert("python".into(), json!(callable));
        for name in ["op_args", "templates_dict", "templates_exts", "show_return_value_in_logs"] {
            if let Some(field) = self.fields.take(&[name]) {
                notes.needs(
                    field.line,
                    field.shown(),
                    "a function gets its arguments by name",
                    "give them as params of the same names",
                );
            }
        }
        if let Some(field) = self.fields.take(&["op_kwargs"]) {
            for entry in field.value.entries() {
                self.argument(&entry.key, field.line, &entry.value, notes);
            }
        }
        if is_decorator {
            for name in ["multiple_outputs", "task_id"] {
                self.fields.take(&[name]);
            }
            let known = ["dependencies", "expand", "partial", "task_group_name", "trigger_rule"];
            let own: Vec<Field<'a>> =
                self.fields.clone().rest().filter(|field| !known.contains(&field.key)).collect();
            for field in own.into_iter().filter(|field| !is_common(field.key)) {
                self.fields.take(&[field.key]);
                self.argument(field.key, field.line, field.value, notes);
            }
        }
        self.map_function(notes);
        true
    }

    /// A constant argument becomes a param; what another task returned cannot.
    fn argument(&mut self, name: &str, line: u32, value: &Node, notes: &mut Notes) {
        let json = value.to_json();
        let text = json.as_str().unwrap_or_default();
        let is_reference = text.starts_with('+')
            || text.contains("{{")
            || text.contains(".output")
            || text.contains("XcomArg");
        if is_reference || !crate::names::is_variable(name) {
            let todo = "let the function take `outputs` (or `ds` and the like) and read it there";
            notes.needs(
                line,
                crate::yaml::shown(name, value),
                "only constants can be passed on",
                todo,
            );
            if let Some(task) = text.strip_prefix('+') {
                self.uses.push(task.to_owned());
            }
        } else {
            self.arguments.push((name.to_owned(), json));
        }
    }

    /// `expand` and `partial` of a function.
    fn map_function(&mut self, notes: &mut Notes) {
        if let Some(partial) = self.fields.take(&["partial"]) {
            let inner: Vec<_> = partial.value.entries().iter().collect();
            for entry in inner {
                if entry.key == "op_kwargs" {
                    for entry in entry.value.entries() {
                        self.argument(&entry.key, partial.line, &entry.value, notes);
                    }
                } else {
                    self.argument(&entry.key, partial.line, &entry.value, notes);
                }
            }
        }
        let Some(expand) = self.fields.take(&["expand"]) else { return };
        for entry in expand.value.entries() {
            let is_positional = ["op_args", "op_kwargs"].contains(&entry.key.as_str());
            let text = entry.value.text().unwrap_or_default();
            let from = text
                .strip_prefix('+')
                .or_else(|| text.strip_suffix(".output"))
                .or_else(|| text.strip_prefix("XcomArg(").and_then(|rest| rest.strip_suffix(')')));
            match from {
                _ if is_positional => {
                    let todo = "name the argument: expand: {NAME: \"{{ outputs[\\\"TASK\\\"].return_value }}\"}";
                    notes.needs(
                        expand.line,
                        crate::yaml::shown(&entry.key, &entry.value),
                        "a function gets its arguments by name",
                        todo,
                    );
                }
                Some(task) => {
                    self.uses.push(task.to_owned());
                    self.expand(&entry.key, json!({ "from": task }));
                }
                None if entry.value.is_list() && !entry.value.items().is_empty() => {
                    self.expand(&entry.key, entry.value.to_json());
                }
                None => notes.needs(
                    expand.line,
                    crate::yaml::shown(&entry.key, &entry.value),
                    "it is no list",
                    "write a list",
                ),
            }
        }
    }

    /// A list in `expand` for an argument; what else is there stays.
    fn mapped(&mut self, name: &str) -> Option<Value> {
        let mut fields = self.fields.clone();
        let expand = fields.take(&["expand"])?;
        let list = expand
            .value
            .get(name)
            .filter(|list| list.is_list() && expand.value.entries().len() == 1)?;
        self.fields = fields;
        Some(list.to_json())
    }

    fn expand(&mut self, name: &str, list: Value) {
        let expand = self.keys.entry("expand").or_insert_with(|| json!({}));
        if let Some(expand) = expand.as_object_mut() {
            expand.insert(name.to_owned(), list);
        }
    }

    fn trigger(&mut self, notes: &mut Notes) -> bool {
        let Some(dag_id) = self.text(&["trigger_dag_id"]) else { return false };
        let mut keys = Map::from_iter([("dag_id".to_owned(), json!(dag_id))]);
        for (names, to) in [
            (["trigger_run_id", "run_id"], "run_id"),
            (["logical_date", "execution_date"], "logical_date"),
        ] {
            if let Some(text) = self.text(&names) {
                keys.insert(to.into(), json!(text));
            }
        }
        if let Some(conf) = self.fields.take(&["conf"]).filter(|conf| conf.value.is_map()) {
            keys.insert("params".into(), conf.value.to_json());
        }
        let waits = self.fields.take(&["wait_for_completion"]);
        if let Some(field) = waits.filter(Field::is_true) {
            let todo = format!(
                "add a task with wait: {{external_run: {{dag_id: {dag_id}, run_id: ...}}}}, and give the run an id"
            );
            notes.needs(field.line, field.shown(), "it succeeds when the run is made", todo);
        }
        for name in [
            "reset_dag_run",
            "allowed_states",
            "failed_states",
            "poke_interval",
            "deferrable",
            "skip_when_already_exists",
            "fail_when_dag_is_paused",
        ] {
            if let Some(field) = self.fields.take(&[name]) {
                notes.ignored(field.line, field.shown(), "it says how to wait for the run, or what to do with an old one: a run id that exists fails the task");
            }
        }
        self.keys.insert("trigger_dag".into(), Value::Object(keys));
        true
    }

    fn external(&mut self, notes: &mut Notes) -> bool {
        let Some(dag_id) = self.text(&["external_dag_id"]) else { return false };
        let mut keys = Map::from_iter([("dag_id".to_owned(), json!(dag_id))]);
        let task = self.text(&["external_task_id"]);
        if let Some(task) = &task {
            keys.insert("task_id".into(), json!(task));
        }
        for name in ["allowed_states", "failed_states"] {
            if let Some(field) = self.fields.take(&[name]) {
                keys.insert(name.into(), json!(field.texts()));
            }
        }
        for name in [
            "execution_delta",
            "execution_delta_secs",
            "execution_date_fn",
            "execution_date_fn_name",
            "execution_date_fn_file",
        ] {
            if let Some(field) = self.fields.take(&[name]) {
                let todo = "write `logical_date` under the wait, as a template";
                notes.needs(
                    field.line,
                    field.shown(),
                    "it waits for the run of the same logical date",
                    todo,
                );
            }
        }
        for name in ["external_task_ids", "external_task_group_id", "skipped_states"] {
            if let Some(field) = self.fields.take(&[name]) {
                notes.needs(
                    field.line,
                    field.shown(),
                    "a wait is for one task or for a run",
                    "write a wait for each",
                );
            }
        }
        if let Some(field) = self.fields.take(&["check_existence"]) {
            notes.ignored(field.line, field.shown(), "it waits for what does not exist yet");
        }
        let kind = if task.is_some() { "external_task" } else { "external_run" };
        self.wait(Some(json!({ kind: keys })), notes)
    }

    /// A wait with what every sensor takes.
    fn wait(&mut self, wait: Option<Value>, notes: &mut Notes) -> bool {
        let Some(Value::Object(mut wait)) = wait else { return false };
        for name in ["poke_interval", "timeout"] {
            let span = self
                .fields
                .take(&[name])
                .and_then(|field| values::span(field.value))
                .filter(|span| *span > 0);
            if let Some(span) = span {
                wait.insert(name.into(), json!(seconds(span)));
            }
        }
        if self.fields.take(&["soft_fail"]).is_some_and(|field| field.is_true()) {
            wait.insert("soft_fail".into(), json!(true));
        }
        for name in ["mode", "deferrable", "exponential_backoff", "recursive"] {
            if let Some(field) = self.fields.take(&[name]) {
                notes.ignored(field.line, field.shown(), "a wait takes no slot, however it looks");
            }
        }
        self.keys.insert("wait".into(), Value::Object(wait));
        true
    }

    /// The task that stands for one that has no action here.
    pub(super) fn refuse(&mut self, what: &str) {
        self.keys.shift_remove("shell");
        self.keys.shift_remove("expand");
        for action in ["run", "python", "wait", "trigger_dag", "noop", "env", "working_dir"] {
            self.keys.shift_remove(action);
        }
        self.keys.insert("run".into(), json!(script::refuses(&format!("{} of {what}", self.name))));
    }
}

/// Whether a key is one that every operator takes.
fn is_common(key: &str) -> bool {
    const COMMON: [&str; 20] = [
        "retries",
        "retry_delay",
        "retry_delay_sec",
        "retry_exponential_backoff",
        "max_retry_delay",
        "execution_timeout",
        "execution_timeout_secs",
        "depends_on_past",
        "wait_for_downstream",
        "pool",
        "pool_slots",
        "queue",
        "priority_weight",
        "weight_rule",
        "task_concurrency",
        "run_as_user",
        "max_active_tis_per_dag",
        "max_active_tis_per_dagrun",
        "owner",
        "email",
    ];
    COMMON.contains(&key) || super::args::is_callback(key)
}
