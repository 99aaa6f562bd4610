//! Named points that the simulator and the crash tests can stop at.
//!
//! The store passes `OP:begin`, `OP:STATEMENT`, `OP:before_commit` and `OP:after_commit`; the
//! worker its own steps. Production installs no hook: one branch per point.

use std::sync::Arc;

/// What happens at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookVerdict {
    Go,
    /// The store answers "unavailable"; nothing was done.
    Fail,
    /// At a commit: it is done, and the caller is told that it failed.
    CommittedButUnknown,
}

type Hook = dyn Fn(&str) -> HookVerdict + Send + Sync;

/// A function that is told every point before it is passed. It may end the process.
#[derive(Clone, Default)]
pub struct Hooks(Option<Arc<Hook>>);

impl Hooks {
    /// No hook.
    pub fn none() -> Self {
        Self(None)
    }
    /// Calls `hook` at each point.
    pub fn new(hook: impl Fn(&str) -> HookVerdict + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hook)))
    }
    /// Passes the point `OP:STEP`.
    pub fn pass(&self, op: &str, step: &str) -> HookVerdict {
        match &self.0 {
            None => HookVerdict::Go,
            Some(hook) => hook(&format!("{op}:{step}")),
        }
    }
}

impl std::fmt::Debug for Hooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Hooks(on)" } else { "Hooks(off)" })
    }
}
