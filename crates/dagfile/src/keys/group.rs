//! The keys of a task group.

use super::Shape::{DefaultArgs, Flag, Later, TaskGroups, TaskNames, Tasks, Text};
use super::{Key, Level, Shape};

const fn key(name: &'static str, shape: Shape, doc: &'static str) -> Key {
    Key::new(name, Level::Group, shape, doc)
}

pub(super) static KEYS: &[Key] = &[
    key("tooltip", Text, "One line about what the group does.").or("\"\""),
    key(
        "prefix_group_id",
        Flag,
        "The ids of its tasks and groups begin with its own and a dot: `extract.load`.",
    )
    .or("true"),
    key("depends_on", TaskNames, "The tasks and groups that come before all of it.").or("[]"),
    key(
        "default_args",
        DefaultArgs,
        "Keys that every task of the group takes unless it has its own; they go over those of the DAG.",
    )
    .or("{}"),
    key("tasks", Tasks, "The tasks of the group by name."),
    key("task_groups", TaskGroups, "Groups within it by name."),
    key("expand", Later, "One instance of the whole group per element."),
];
