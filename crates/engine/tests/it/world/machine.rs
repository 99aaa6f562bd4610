//! The processes of tasks, as their shims keep them: they outlive the worker that started them.

use fencepost_core::id::Token;
use fencepost_core::time::BootInstant;
use fencepost_core::verdict::{Asked, Death, Ending};
use fencepost_engine::facts::Facts;
use serde_json::Value;
use std::collections::BTreeMap;

/// What a process is told when it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct What {
    pub(crate) dag_id: String,
    pub(crate) run_id: String,
    pub(crate) task_id: String,
    pub(crate) map_index: i32,
    pub(crate) attempt: u32,
    pub(crate) try_number: u32,
    pub(crate) prev_outcome: String,
    pub(crate) generation: u32,
    /// What came of the wait that it was deferred for.
    pub(crate) event: Option<Value>,
}

impl What {
    pub(crate) fn of(facts: &Facts) -> Self {
        let attempt = facts.attempt.as_ref().unwrap();
        Self {
            dag_id: facts.run.dag_id.clone(),
            run_id: facts.run.run_id.clone(),
            task_id: facts.ti.task_id.clone(),
            map_index: facts.ti.key.map_index,
            attempt: attempt.number,
            try_number: facts.ti.try_number,
            prev_outcome: attempt.prev_outcome.clone(),
            generation: facts.ti.generation,
            event: attempt.event.clone(),
        }
    }

    /// `task`, or `task[3]`.
    pub(crate) fn name(&self) -> String {
        if self.map_index < 0 {
            self.task_id.clone()
        } else {
            format!("{}[{}]", self.task_id, self.map_index)
        }
    }
}

/// What a process does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Act {
    /// `None`: it runs until it is told to end.
    pub(crate) ending: Option<Ending>,
    pub(crate) asked: Option<Asked>,
    pub(crate) outputs: Vec<(String, Value)>,
}

pub(crate) fn exit(code: u8) -> Act {
    Act { ending: Some(Ending::Exit(code)), asked: None, outputs: Vec::new() }
}
pub(crate) fn stay() -> Act {
    Act { ending: None, asked: None, outputs: Vec::new() }
}
/// Its shim dies with it.
pub(crate) fn gone() -> Act {
    Act { ending: Some(Ending::Gone(Death::Single)), ..stay() }
}
/// Waits for that, and resumes.
pub(crate) fn defers(wait: Value) -> Act {
    Act { asked: Some(Asked::Defer(wait)), ..exit(100) }
}
/// Success with one output.
pub(crate) fn says(name: &str, value: Value) -> Act {
    Act { outputs: vec![(name.into(), value)], ..exit(0) }
}

#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) what: What,
    pub(crate) act: Act,
}

/// All processes that ever ran.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    processes: BTreeMap<Token, Process>,
    /// Starts in their order.
    pub(crate) ledger: Vec<(Token, What)>,
    /// When the shim of a process ends it, unless its owner pushes that.
    pub(crate) deadlines: BTreeMap<Token, BootInstant>,
    /// Shims that know no deadline, as a guard that is switched off leaves them.
    pub(crate) ignores_deadlines: bool,
    /// Starts while another process of the same instance runs are counted instead of refused.
    pub(crate) counts_overlaps: bool,
    pub(crate) overlaps: usize,
}

impl Machine {
    /// A process begins. The ledger must not know its token: nothing is started twice.
    pub(crate) fn exec(&mut self, token: Token, what: What, act: Act) {
        let known = self.ledger.iter().any(|(of, _)| *of == token);
        assert!(!known, "attempt {token} of {} was started twice", what.name());
        let same = |of: &What| {
            (&of.dag_id, &of.run_id, &of.task_id, of.map_index)
                == (&what.dag_id, &what.run_id, &what.task_id, what.map_index)
        };
        let earlier = self.ledger.iter().rev().find(|(_, of)| same(of));
        assert!(earlier.is_none_or(|(of, _)| *of < token), "the token of {what:?} fell");
        let overlaps = self.processes.values().any(|p| p.act.ending.is_none() && same(&p.what));
        self.overlaps += usize::from(overlaps);
        assert!(!overlaps || self.counts_overlaps, "two processes of {what:?} run at once");
        self.ledger.push((token, what.clone()));
        self.processes.insert(token, Process { what, act });
    }

    /// Ends what its deadline has come for.
    pub(crate) fn expire(&mut self, now: BootInstant) {
        if self.ignores_deadlines {
            return;
        }
        for (token, deadline) in &self.deadlines {
            if let Some(process) = self.processes.get_mut(token).filter(|_| *deadline <= now) {
                process.act.ending.get_or_insert(Ending::Gone(Death::Orderly));
            }
        }
    }

    pub(crate) fn get(&self, token: Token) -> Option<&Process> {
        self.processes.get(&token)
    }

    /// Ends a process that still runs.
    pub(crate) fn end(&mut self, token: Token, ending: Ending) {
        if let Some(process) = self.processes.get_mut(&token) {
            process.act.ending.get_or_insert(ending);
        }
    }

    /// Ends the processes of a task (`task` or `task[3]`) that still run.
    pub(crate) fn finish(&mut self, name: &str, act: Act) {
        for process in self.processes.values_mut() {
            if process.act.ending.is_none() && process.what.name() == name {
                process.act = act.clone();
            }
        }
    }

    /// Tokens of processes that still run.
    pub(crate) fn running(&self) -> Vec<Token> {
        let runs = |(_, process): &(&Token, &Process)| process.act.ending.is_none();
        self.processes.iter().filter(runs).map(|(token, _)| *token).collect()
    }

    /// The token of the one process of a task that runs.
    pub(crate) fn token_of(&self, name: &str) -> Token {
        let running = self.running();
        let own = |token: &&Token| self.processes[token].what.name() == name;
        let found: Vec<&Token> = running.iter().filter(own).collect();
        assert_eq!(found.len(), 1, "processes of {name}");
        *found[0]
    }

    /// Names in the order of their starts.
    pub(crate) fn order(&self) -> Vec<String> {
        self.ledger.iter().map(|(_, what)| what.name()).collect()
    }

    /// How often each task of a run was started.
    pub(crate) fn starts(&self, run_id: &str) -> BTreeMap<String, usize> {
        let mut out = BTreeMap::new();
        for (_, what) in self.ledger.iter().filter(|(_, what)| what.run_id == run_id) {
            *out.entry(what.name()).or_default() += 1;
        }
        out
    }
}
