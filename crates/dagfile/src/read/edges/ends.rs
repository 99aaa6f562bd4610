//! Where edges from and to groups begin and end.
//!
//! From the innermost scopes outwards: the edges within a scope are expanded, then its first tasks are
//! those that no task of the scope comes before, its last ones those that none comes after. A
//! teardown is no last task (what comes after a group does not wait for its cleaning up, as in
//! Airflow's `TaskGroup.get_leaves`): the tasks before it are, unless work comes after them.

use super::super::groups::{Member, Tree};
use super::Edge;
use fencepost_core::dag::{Part, TaskIndex};
use std::collections::BTreeSet;

/// Most edges of tasks that the groups of one file may stand for.
pub(super) const EDGES_MAX: usize = 1_000_000;

type Tasks = BTreeSet<TaskIndex>;

/// The ends of each scope, as far as they are known.
pub(super) struct Ends<'a> {
    tree: &'a Tree<'a>,
    parts: &'a [Part],
    first: Vec<Tasks>,
    /// Without anything after them in the scope, teardowns too.
    last: Vec<Tasks>,
    up: Vec<Tasks>,
    down: Vec<Tasks>,
    count: usize,
}

impl<'a> Ends<'a> {
    pub(super) fn new(tree: &'a Tree<'a>, parts: &'a [Part]) -> Self {
        let none = vec![Tasks::new(); tree.scopes.len()];
        let nothing = vec![Tasks::new(); parts.len()];
        Self {
            tree,
            parts,
            first: none.clone(),
            last: none,
            up: nothing.clone(),
            down: nothing,
            count: 0,
        }
    }

    /// The upstreams of each task; or the edge with which there are too many.
    pub(super) fn expand(mut self, edges: &[Edge]) -> Result<Vec<Tasks>, usize> {
        let mut by_scope: Vec<Vec<usize>> = vec![Vec::new(); self.tree.scopes.len()];
        for (at, edge) in edges.iter().enumerate() {
            by_scope[edge.within].push(at);
        }
        for scope in (0..self.tree.scopes.len()).rev() {
            let (mut comes_after, mut comes_before) = (Tasks::new(), Tasks::new());
            for at in &by_scope[scope] {
                let (up, down) = (self.ends_of(edges[*at].up), self.starts_of(edges[*at].down));
                self.count += up.len().saturating_mul(down.len());
                if self.count > EDGES_MAX {
                    return Err(*at);
                }
                for task in &down {
                    self.up[task.at()].extend(&up);
                }
                for task in &up {
                    self.down[task.at()].extend(&down);
                }
                comes_after.extend(down);
                comes_before.extend(up);
            }
            self.close(scope, &comes_after, &comes_before);
        }
        Ok(self.up)
    }

    /// All edges within the scope are there.
    fn close(&mut self, scope: usize, comes_after: &Tasks, comes_before: &Tasks) {
        let own = self.tree.scopes[scope].tasks.iter().copied();
        self.first[scope].extend(own.clone());
        self.last[scope].extend(own);
        self.first[scope].retain(|task| !comes_after.contains(task));
        self.last[scope].retain(|task| !comes_before.contains(task));
        let work = self.work_of(&self.last[scope]);
        // A group of nothing but teardowns ends with them.
        let last = if work.is_empty() { self.last[scope].clone() } else { work };
        if let Some(outer) = self.tree.scopes[scope].parent {
            let (first, all_last) = (self.first[scope].clone(), self.last[scope].clone());
            self.first[outer].extend(first);
            self.last[outer].extend(all_last);
        }
        self.last[scope] = last;
    }

    /// The last tasks with each teardown replaced by what it cleans up after. All edges that are
    /// known yet lie within the scope at hand.
    fn work_of(&self, last: &Tasks) -> Tasks {
        let is_teardown = |task: &TaskIndex| self.parts[task.at()] == Part::Teardown;
        let mut work: Tasks = last.iter().copied().filter(|task| !is_teardown(task)).collect();
        let mut left: Vec<TaskIndex> = last.iter().copied().filter(is_teardown).collect();
        let mut seen: Tasks = left.iter().copied().collect();
        while let Some(teardown) = left.pop() {
            for up in &self.up[teardown.at()] {
                if is_teardown(up) {
                    if seen.insert(*up) {
                        left.push(*up);
                    }
                } else if self.parts[up.at()] != Part::Setup
                    && self.down[up.at()].iter().all(is_teardown)
                {
                    work.insert(*up);
                }
            }
        }
        work
    }

    fn starts_of(&self, member: Member) -> Tasks {
        match member {
            Member::Task(task) => Tasks::from([task]),
            Member::Group(scope) => self.first[scope].clone(),
            Member::Unread => Tasks::new(),
        }
    }

    fn ends_of(&self, member: Member) -> Tasks {
        match member {
            Member::Task(task) => Tasks::from([task]),
            Member::Group(scope) => self.last[scope].clone(),
            Member::Unread => Tasks::new(),
        }
    }
}
