//! Which tasks come before which, asked one pair at a time.

use crate::read::Draft;
use crate::suggest;
use std::collections::BTreeMap;

/// The graph for questions; keeps its marks between them, so a question allocates nothing.
pub(super) struct Upstreams<'a> {
    drafts: &'a [Draft<'a>],
    places: BTreeMap<&'a str, usize>,
    /// The number of the last question that came by each task.
    seen: Vec<u32>,
    question: u32,
    left: Vec<usize>,
}

impl<'a> Upstreams<'a> {
    pub(super) fn of(drafts: &'a [Draft<'a>]) -> Self {
        let place = |(index, draft): (usize, &'a Draft<'a>)| (draft.task.task_id.as_str(), index);
        Self {
            drafts,
            places: drafts.iter().enumerate().map(place).collect(),
            seen: vec![0; drafts.len()],
            question: 0,
            left: Vec::new(),
        }
    }

    pub(super) fn index_of(&self, task: &str) -> Option<usize> {
        self.places.get(task).copied()
    }

    pub(super) fn did_you_mean(&self, task: &str) -> String {
        suggest::did_you_mean(task, self.places.keys().copied())
    }

    /// Whether `task` depends on `upstream`, however indirectly.
    pub(super) fn reaches(&mut self, upstream: usize, task: usize) -> bool {
        let depends_on = |at: usize| self.drafts[at].task.depends_on.iter().map(|t| t.at());
        if depends_on(task).any(|direct| direct == upstream) {
            return true;
        }
        self.question += 1;
        self.left.clear();
        self.left.push(task);
        while let Some(at) = self.left.pop() {
            for next in depends_on(at) {
                if next == upstream {
                    return true;
                }
                if self.seen[next] != self.question {
                    self.seen[next] = self.question;
                    self.left.push(next);
                }
            }
        }
        false
    }
}
