//! What servers tell workers, seen on its way: refusals, orders, what is delivered again.

use crate::trace::Trace;
use fencepost_api::execution::{
    Answer, Beaten, HandedOver, LogAnswer, Polled, RefusedReason, Registered,
};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The tokens that were handed to one worker. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Tokens(Arc<Mutex<BTreeSet<String>>>);

impl Tokens {
    fn is_new(&self, token: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(token.to_owned())
    }
}

/// An answer that leaves marks.
pub(super) trait Told: Send + Sized + 'static {
    fn tell(&self, call: &'static str, trace: &Trace, tokens: &Tokens);
}

impl Told for () {
    fn tell(&self, _call: &'static str, _trace: &Trace, _tokens: &Tokens) {}
}

impl Told for Registered {
    fn tell(&self, _call: &'static str, trace: &Trace, tokens: &Tokens) {
        for HandedOver { assignment, .. } in &self.handed_over {
            tokens.is_new(&assignment.token);
            trace.mark("handed_over");
        }
    }
}

impl Told for Polled {
    fn tell(&self, _call: &'static str, trace: &Trace, tokens: &Tokens) {
        for assignment in &self.assignments {
            if !tokens.is_new(&assignment.token) {
                trace.mark("claim_redelivered");
            }
        }
        trace.marks("stop_delivered", self.stops.len() as u64);
    }
}

impl Told for Beaten {
    fn tell(&self, _call: &'static str, trace: &Trace, _tokens: &Tokens) {
        trace.marks("disowned", self.disowned.len() as u64);
        trace.marks("told_it_is_over", u64::from(self.is_over));
    }
}

impl Told for Answer {
    fn tell(&self, call: &'static str, trace: &Trace, _tokens: &Tokens) {
        let Self::Refused { reason, .. } = self else { return };
        match call {
            "start" => trace.mark("late_start_refused"),
            "report" => trace.mark("late_report_refused"),
            _ => {}
        }
        trace.mark(match reason {
            RefusedReason::Superseded => "superseded",
            RefusedReason::Fenced => "fenced",
            RefusedReason::Cancelled => "cancelled",
            RefusedReason::NotRunning => "not_running",
            RefusedReason::RunningElsewhere => "running_elsewhere",
        });
    }
}

impl Told for Vec<Answer> {
    fn tell(&self, call: &'static str, trace: &Trace, tokens: &Tokens) {
        for answer in self {
            answer.tell(call, trace, tokens);
        }
    }
}

impl Told for Vec<LogAnswer> {
    fn tell(&self, _call: &'static str, _trace: &Trace, _tokens: &Tokens) {}
}
