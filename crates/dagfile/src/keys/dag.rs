//! The keys at the top of the file.

use super::Shape::{
    Callbacks, Catchup, Choice, Date, DefaultArgs, Duration, Env, Flag, Name, Params, Schedule,
    Secrets, TaskGroups, Tasks, Text, Texts, TimeZone, Version, Whole,
};
use super::{Key, Level, MANY, SECRETS, Shape};

const fn key(name: &'static str, shape: Shape, doc: &'static str) -> Key {
    Key::new(name, Level::Dag, shape, doc)
}

pub(super) static KEYS: &[Key] = &[
    key("schema", Version, "Version of the file format.").or("1"),
    key("dag_id", Name, "Name of the DAG; default: the file's name without its extension."),
    key("description", Text, "One line about what the DAG does.").or("\"\""),
    key("doc_md", Text, "Documentation in Markdown, shown on the DAG's page.").or("\"\""),
    key("owner", Text, "Who answers for the DAG.").or("\"\""),
    key("tags", Texts, "Words to filter by.").or("[]"),
    key(
        "schedule",
        Schedule,
        "When it runs by itself: a cron expression, `@daily` and its like, a list of crons, \
         `{every: 15m}`, `{at: 2026-12-31T23:00:00Z}`, or null: only when triggered.",
    )
    .or("null"),
    key("timezone", TimeZone, "IANA time zone of the schedule and of `ds`.").or("\"UTC\""),
    key(
        "timetable",
        Choice { values: &["trigger", "data_interval"], later: &[] },
        "`trigger`: the logical date is the slot itself, like cron. `data_interval`: it is the \
         start of the interval that ends at the slot (the habit of Airflow 2).",
    )
    .or("\"trigger\""),
    key("start_date", Date, "First logical date; without a zone it is in `timezone`."),
    key("end_date", Date, "Last logical date; without a zone it is in `timezone`."),
    key(
        "catchup",
        Catchup,
        "Slots that were due before anybody looked: false: the newest only; true: every one since \
         `start_date`; `next`: none.",
    )
    .or("false"),
    key("start_deadline", Duration, "A slot that has not started by then is recorded as `missed`."),
    key("is_paused_upon_creation", Flag, "A new DAG starts paused.").or("false"),
    key("max_active_runs", Whole { least: 1, greatest: MANY }, "Most runs at once.").or("16"),
    key(
        "overlap",
        Choice { values: &["queue", "skip", "latest", "replace"], later: &[] },
        "What the next slot does while `max_active_runs` are active: `queue`: it waits; `skip`: it \
         is `missed`; `latest`: only the newest waits; `replace`: it also cancels the oldest.",
    )
    .or("\"queue\""),
    key(
        "max_active_tasks",
        Whole { least: 1, greatest: MANY },
        "Most task instances at once in this DAG, over all its runs.",
    )
    .or("16"),
    key("dagrun_timeout", Duration, "Longest run, from its start."),
    key("fail_fast", Flag, "The first failed task stops the rest of the run.").or("false"),
    key(
        "params",
        Params,
        "Parameters of a run: `name: default`, or `name:` with JSON Schema keywords (`type`, \
         `enum`, `items`, ...) and `default`.",
    )
    .or("{}"),
    key("env", Env, "Environment variables of every task.").or("{}").template(),
    key("secrets", Secrets, SECRETS),
    key("connections", Texts, "Connections given to every task."),
    key("default_args", DefaultArgs, "Keys that every task takes unless it has its own.").or("{}"),
    key("tasks", Tasks, "The tasks by name."),
    key("task_groups", TaskGroups, "Groups of tasks by name."),
    key("on_success_callback", Callbacks, "What is called after a run succeeded.")
        .or("[]")
        .template(),
    key("on_failure_callback", Callbacks, "What is called after a run failed.").or("[]").template(),
    key(
        "on_retry_callback",
        Callbacks,
        "What is called when a task of the DAG is retried, or replaced after a loss.",
    )
    .or("[]")
    .template(),
    key(
        "on_lost_callback",
        Callbacks,
        "What is called after an attempt of a task of the DAG was lost.",
    )
    .or("[]")
    .template(),
    key("on_skipped_callback", Callbacks, "What is called after a task of the DAG was skipped.")
        .or("[]")
        .template(),
    key(
        "deadline",
        Shape::Deadline,
        "When a run should have finished, and who hears if it has not.",
    )
    .template(),
    key("retention", Duration, "Keep ended runs this long; default: the installation's setting."),
    key(
        "compat",
        Choice { values: &["airflow"], later: &[] },
        "`airflow`: tasks get AIRFLOW_CTX_* variables too, for scripts that read them.",
    ),
];
