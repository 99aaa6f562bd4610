//! The names that a template may use, and those of Airflow that it may not.

/// Names at the top of every context, logical date or not.
const ALWAYS: [&str; 19] = [
    "dag",
    "task",
    "ti",
    "task_instance",
    "task_instance_key_str",
    "run_id",
    "dag_run",
    "data_interval_start",
    "data_interval_end",
    "params",
    "outputs",
    "conf",
    "macros",
    "map_index",
    "test_mode",
    "start_date",
    "var",
    "conn",
    "triggering_asset_events",
];

/// Names that only a run with a logical date has.
const DATED: [&str; 6] =
    ["logical_date", "ds", "ds_nodash", "ts", "ts_nodash", "ts_nodash_with_tz"];

/// Functions of the engine.
const FUNCTIONS: [&str; 4] = ["range", "dict", "namespace", "debug"];

/// Airflow's names whose meaning comes later.
const LATER: [&str; 11] = [
    "prev_data_interval_start_success",
    "prev_data_interval_end_success",
    "prev_start_date_success",
    "prev_end_date_success",
    "inlets",
    "outlets",
    "inlet_events",
    "outlet_events",
    "expanded_ti_count",
    "task_reschedule_count",
    "exception",
];

/// Names that only a callback knows.
const OF_CALLBACKS: [&str; 4] = ["reason", "run_url", "occasion", "try_number"];

/// Names that a callback about a run does not know.
const OF_TASKS: [&str; 6] =
    ["task", "ti", "task_instance", "task_instance_key_str", "map_index", "try_number"];

/// Names that Airflow 3 took away, with what to write.
const REPLACED: [(&str, &str); 9] = [
    ("execution_date", "logical_date"),
    ("next_execution_date", "data_interval_end"),
    ("prev_execution_date", "data_interval_start"),
    ("next_ds", "data_interval_end | ds"),
    ("prev_ds", "data_interval_start | ds"),
    ("next_ds_nodash", "data_interval_end | ds_nodash"),
    ("prev_ds_nodash", "data_interval_start | ds_nodash"),
    ("tomorrow_ds", "macros.ds_add(ds, 1)"),
    ("yesterday_ds", "macros.ds_add(ds, -1)"),
];

/// Members of `macros`.
const MACROS: [&str; 3] = ["ds_add", "ds_format", "datetime"];

pub(crate) fn top_level() -> impl Iterator<Item = &'static str> {
    ALWAYS.into_iter().chain(DATED)
}

pub(crate) fn is_top_level(name: &str) -> bool {
    top_level().chain(FUNCTIONS).chain(LATER).chain(OF_CALLBACKS).any(|known| known == name)
}

pub(crate) fn is_of_callbacks(name: &str) -> bool {
    OF_CALLBACKS.contains(&name)
}

pub(crate) fn is_of_tasks(name: &str) -> bool {
    OF_TASKS.contains(&name)
}

pub(crate) fn is_function(name: &str) -> bool {
    FUNCTIONS.contains(&name)
}

pub(crate) fn later(name: &str) -> bool {
    LATER.contains(&name)
}

pub(crate) fn replaced(name: &str) -> Option<&'static str> {
    REPLACED.iter().find(|(old, _)| *old == name).map(|(_, new)| *new)
}

pub(crate) fn macro_names() -> impl Iterator<Item = &'static str> {
    MACROS.into_iter()
}
