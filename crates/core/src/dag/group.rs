//! Groups of tasks: a tree for people and for names. Edges have been turned into edges of tasks.

use super::{DagError, TaskIndex};
use crate::id::TaskId;

/// A group of tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskGroup {
    /// Its full id, `outer.inner`; no task has the same.
    pub group_id: TaskId,
    pub tooltip: String,
    /// The group that it stands in, by its place in `Dag::groups`: always a smaller one than its own.
    pub parent: Option<usize>,
    /// The tasks that stand in it and in none of its own groups, in the order of the file.
    pub tasks: Vec<TaskIndex>,
}

/// Checks that the groups are a tree, that members exist, and that none is in two groups.
pub(super) fn check(groups: &[TaskGroup], tasks: usize) -> Result<(), DagError> {
    let mut is_in = vec![false; tasks];
    for (place, group) in groups.iter().enumerate() {
        let wrong = |reason| DagError::BadGroup { group: group.group_id.clone(), reason };
        if group.parent.is_some_and(|parent| parent >= place) {
            return Err(wrong("it comes before the group that it stands in"));
        }
        for task in &group.tasks {
            match is_in.get_mut(task.at()) {
                None => return Err(wrong("it has a task that does not exist")),
                Some(true) => return Err(wrong("it has a task that is in a group already")),
                Some(is_in) => *is_in = true,
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(parent: Option<usize>, tasks: &[u32]) -> TaskGroup {
        let tasks = tasks.iter().copied().map(TaskIndex).collect();
        TaskGroup { group_id: TaskId::new("g").unwrap(), tooltip: String::new(), parent, tasks }
    }

    #[test]
    fn groups_are_a_tree_of_tasks_that_exist() {
        assert_eq!(check(&[group(None, &[0]), group(Some(0), &[2, 1])], 3), Ok(()));
        for wrong in [
            vec![group(Some(0), &[])],
            vec![group(None, &[]), group(Some(2), &[])],
            vec![group(None, &[3])],
            vec![group(None, &[1]), group(None, &[1])],
        ] {
            assert!(matches!(check(&wrong, 3), Err(DagError::BadGroup { .. })), "{wrong:?}");
        }
    }
}
