//! The tree of task groups: which tasks stand where, under which full ids, with which defaults.
//!
//! A group has tasks and groups of its own, as a DAG has. `scopes[0]` is the DAG itself; every other
//! scope comes after the one that it stands in.

use super::fields::{Fields, wrong_type};
use super::task::{self, Draft};
use super::templates::{self, Template};
use super::{NAME_RULE, access, env};
use crate::diagnostic::{Findings, Place, quoted};
use crate::keys::Level;
use crate::yaml::Entry;
use fencepost_core::dag::{Access, TaskGroup, TaskIndex};
use fencepost_core::id::TaskId;
use std::collections::BTreeMap;

/// What tasks take unless they have it themselves: `default_args`, the inner ones over the outer ones.
#[derive(Clone)]
pub(super) struct Defaults<'a> {
    pub(super) fields: Fields<'a>,
    /// Laid over name by name, not replaced.
    pub(super) env: Vec<(String, String)>,
    pub(super) access: Access,
}

impl<'a> Defaults<'a> {
    /// Those of a DAG or a group within others.
    pub(super) fn over(&self, own: &Fields<'a>, findings: &mut Findings) -> Self {
        let fields = own.over(&self.fields);
        task::check_defaults(&fields, findings);
        let env = env::overlay(self.env.clone(), env::read(own, findings));
        let access = self.access.under(&access::read(own, findings));
        Self { fields, env, access }
    }

    pub(super) fn none() -> Self {
        Self { fields: Fields::default(), env: Vec::new(), access: Access::default() }
    }
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Member {
    Task(TaskIndex),
    /// A scope's place.
    Group(usize),
    /// It is there, and could not be read.
    Unread,
}

/// The DAG, or a group in it.
pub(super) struct Scope<'a> {
    /// Its full id; empty for the DAG.
    pub(super) id: String,
    /// What the full ids of its members begin with.
    prefix: String,
    pub(super) parent: Option<usize>,
    tooltip: String,
    pub(super) depends_on: Vec<(&'a str, Place)>,
    members: BTreeMap<&'a str, Member>,
    pub(super) tasks: Vec<TaskIndex>,
}

/// All scopes, and every full id of the file.
pub(crate) struct Tree<'a> {
    pub(super) scopes: Vec<Scope<'a>>,
    /// Full ids of tasks and groups with the line where each stands.
    names: BTreeMap<String, (Member, u32)>,
    /// The templates of the groups' `default_args`.
    pub(super) templates: Vec<Template<'a>>,
}

/// The tree under construction.
pub(super) struct Builder<'a, 'b> {
    pub(super) tree: Tree<'a>,
    pub(super) drafts: Vec<Draft<'a>>,
    findings: &'b mut Findings,
}

impl<'a, 'b> Builder<'a, 'b> {
    pub(super) fn new(findings: &'b mut Findings) -> Self {
        let root = Scope {
            id: String::new(),
            prefix: String::new(),
            parent: None,
            tooltip: String::new(),
            depends_on: Vec::new(),
            members: BTreeMap::new(),
            tasks: Vec::new(),
        };
        let tree = Tree { scopes: vec![root], names: BTreeMap::new(), templates: Vec::new() };
        Self { tree, drafts: Vec::new(), findings }
    }

    /// The tasks and groups of a scope; whether it has any, sound or not.
    pub(super) fn read(&mut self, scope: usize, of: &Fields<'a>, defaults: &Defaults<'a>) -> bool {
        let tasks = self.entries(
            of,
            "tasks",
            "write `name: {run: command}`, without a dash before the name",
        );
        let groups = self.entries(of, "task_groups", "write `name: {tasks: {...}}`");
        for entry in tasks.unwrap_or_default() {
            self.task(scope, entry, defaults);
        }
        for entry in groups.unwrap_or_default() {
            self.group(scope, entry, defaults);
        }
        let is_wrong = |name: &str, read: Option<&[Entry]>| read.is_none() && of.has(name);
        let found = |read: Option<&[Entry]>| read.is_some_and(|entries| !entries.is_empty());
        found(tasks) || found(groups) || is_wrong("tasks", tasks) || is_wrong("task_groups", groups)
    }

    fn entries(&mut self, of: &Fields<'a>, name: &str, hint: &str) -> Option<&'a [Entry]> {
        let field = of.get(name)?;
        let entries = field.entry.value.as_map();
        if entries.is_none() {
            let what = if name == "tasks" {
                "a mapping of tasks by name"
            } else {
                "a mapping of groups by name"
            };
            wrong_type(field, what, hint, self.findings);
        }
        entries
    }

    fn task(&mut self, scope: usize, entry: &'a Entry, defaults: &Defaults<'a>) {
        let Some(id) = self.full_id(scope, entry, "a task") else {
            self.tree.scopes[scope].members.insert(&entry.key, Member::Unread);
            return;
        };
        let index = TaskIndex::new(self.drafts.len());
        let draft = task::read(entry, id.clone(), defaults, self.findings);
        let member = if draft.is_some() { Member::Task(index) } else { Member::Unread };
        let is_free = self.claim(&id, member, entry);
        if let Some(draft) = draft.filter(|_| is_free) {
            self.drafts.push(Draft { scope, ..draft });
            self.tree.scopes[scope].tasks.push(index);
        }
        self.tree.scopes[scope].members.entry(&entry.key).or_insert(member);
    }

    fn group(&mut self, outer: usize, entry: &'a Entry, defaults: &Defaults<'a>) {
        let Some(id) = self.full_id(outer, entry, "a task group") else {
            self.tree.scopes[outer].members.insert(&entry.key, Member::Unread);
            return;
        };
        let Some(entries) = entry.value.as_map() else {
            let message = format!("`{id}` must be a mapping, not {}", entry.value.description());
            let hint = "write {tasks: {...}}";
            self.findings.error(entry.value.place, "wrong-type", message, hint);
            self.claim(&id, Member::Unread, entry);
            self.tree.scopes[outer].members.insert(&entry.key, Member::Unread);
            return;
        };
        let place = self.tree.scopes.len();
        self.claim(&id, Member::Group(place), entry);
        self.tree.scopes[outer].members.entry(&entry.key).or_insert(Member::Group(place));
        let before = self.findings.error_count();
        let fields = Fields::of(entries, Level::Group, self.findings);
        self.open(outer, id.as_str(), &fields);
        let own = match fields.map("default_args", self.findings) {
            Some(entries) => Fields::of(entries, Level::TaskOrDefault, self.findings),
            None => Fields::default(),
        };
        self.tree.templates.extend(templates::of(&own));
        let defaults = defaults.over(&own, self.findings);
        let has_tasks = self.read(place, &fields, &defaults);
        if !has_tasks && self.findings.error_count() == before {
            let message = format!("the task group `{id}` has no tasks");
            self.findings.error(
                entry.key_place,
                "no-tasks",
                message,
                "give it `tasks`, or leave it out",
            );
        }
    }

    fn open(&mut self, outer: usize, id: &str, fields: &Fields<'a>) {
        let is_prefix = fields.flag("prefix_group_id", self.findings).unwrap_or(true);
        self.tree.scopes.push(Scope {
            id: id.to_owned(),
            prefix: if is_prefix { format!("{id}.") } else { String::new() },
            parent: Some(outer),
            tooltip: fields.text("tooltip", self.findings).unwrap_or_default(),
            depends_on: task::depends_on(fields, self.findings),
            members: BTreeMap::new(),
            tasks: Vec::new(),
        });
    }

    fn full_id(&mut self, scope: usize, entry: &Entry, what: &str) -> Option<TaskId> {
        let prefix = &self.tree.scopes[scope].prefix;
        let own = TaskId::new(entry.key.as_str());
        let full = own.and_then(|_| TaskId::new(format!("{prefix}{}", entry.key)));
        if full.is_err() {
            let message = match prefix.as_str() {
                "" => format!("{} is not a name for {what}", quoted(&entry.key)),
                prefix => format!(
                    "{} is not a name for {what} in `{}`",
                    quoted(&entry.key),
                    prefix.trim_end_matches('.')
                ),
            };
            self.findings.error(entry.key_place, "bad-name", message, NAME_RULE);
        }
        full.ok()
    }

    /// Whether a full id is free; else reports it.
    fn claim(&mut self, id: &TaskId, member: Member, entry: &Entry) -> bool {
        let Some((_, line)) = self.tree.names.get(id.as_str()) else {
            let named = (member, entry.key_place.line);
            self.tree.names.insert(id.as_str().to_owned(), named);
            return true;
        };
        let message = format!("`{id}` is the id of another task or task group too");
        let hint = format!("it is first on line {line}; rename one of them");
        self.findings.error(entry.key_place, "duplicate-task", message, hint);
        false
    }
}

impl<'a> Tree<'a> {
    /// Whether the file has a task of that full id, sound or not.
    pub(crate) fn declares_task(&self, id: &str) -> bool {
        self.names.get(id).is_some_and(|(member, _)| !matches!(member, Member::Group(_)))
            || self.scopes[0].members.contains_key(id) && !self.is_group(id)
    }

    /// Whether that full id is one of a group.
    pub(crate) fn is_group(&self, id: &str) -> bool {
        self.names.get(id).is_some_and(|(member, _)| matches!(member, Member::Group(_)))
    }

    /// What a name in `depends_on` stands for: the nearest scope that knows it, then full ids.
    pub(super) fn find(&self, from: usize, name: &str) -> Option<Member> {
        let mut scope = Some(from);
        while let Some(at) = scope {
            if let Some(member) = self.within(at, name) {
                return Some(member);
            }
            scope = self.scopes[at].parent;
        }
        self.names.get(name).map(|(member, _)| *member)
    }

    /// A name as a member of that scope, or of a group in it: `inner.task`.
    fn within(&self, scope: usize, name: &str) -> Option<Member> {
        if let Some(member) = self.scopes[scope].members.get(name) {
            return Some(*member);
        }
        name.match_indices('.').find_map(|(dot, _)| {
            match self.scopes[scope].members.get(&name[..dot])? {
                Member::Group(inner) => self.within(*inner, &name[dot + 1..]),
                Member::Task(_) | Member::Unread => None,
            }
        })
    }

    /// Names that may have been meant: the members of the scopes around, and all full ids.
    pub(super) fn candidates(&self, from: usize) -> impl Iterator<Item = &str> {
        let around = std::iter::successors(Some(from), |at| self.scopes[*at].parent);
        let labels = around.flat_map(|at| self.scopes[at].members.keys().copied());
        labels.chain(self.names.keys().map(String::as_str))
    }

    /// The scope and those that it stands in, the DAG last.
    pub(super) fn around(&self, scope: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(scope), |at| self.scopes[*at].parent)
    }

    /// The groups for the DAG.
    pub(super) fn into_groups(self) -> Vec<TaskGroup> {
        let group = |scope: Scope<'a>| {
            Some(TaskGroup {
                group_id: TaskId::new(scope.id).ok()?,
                tooltip: scope.tooltip,
                parent: scope.parent.and_then(|parent| parent.checked_sub(1)),
                tasks: scope.tasks,
            })
        };
        self.scopes.into_iter().skip(1).filter_map(group).collect()
    }
}
