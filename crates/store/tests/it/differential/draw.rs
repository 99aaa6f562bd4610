//! Values of each kind, from a small world: so small that statements meet each other's rows.

use fencepost_core::id::JobId;
use fencepost_store::Value;

/// A generator of its own (splitmix64): the same seed gives the same play on every machine.
pub(super) struct Draw {
    state: u64,
    /// A clock of which no instant comes twice: what is ordered by it has no ties.
    now: i64,
}

const WORD: &[&str] =
    &["", "a", "it's \"so\"; DROP TABLE run; --", "%_\\,", "nul\0inside", "Zürich \u{1f680}\n\t"];
const ISTATE: &[&str] = &[
    "none",
    "scheduled",
    "queued",
    "running",
    "deferred",
    "up_for_retry",
    "restarting",
    "held",
    "success",
    "failed",
    "skipped",
    "upstream_failed",
    "removed",
    "none",
    "none",
    "scheduled",
    "scheduled",
    "up_for_retry",
    "up_for_retry",
    "running",
    "running",
    "running",
];
const ASTATE: &[&str] = &["queued", "claimed", "running", "stopping", "lost_open"];
const RSTATE: &[&str] =
    &["queued", "running", "success", "failed", "cancelled", "missed", "running", "queued"];
const JSTATE: &[&str] = &["running", "running", "draining", "stopped", "lost"];
const OUTCOME: &[&str] = &["first", "success", "failed", "lost", "never_ran"];
const JSON: &[&str] = &["{}", "null", r#"{"tasks":{"a":{"infra_retries":1}}}"#, r#"["x",1.5]"#];
const KIND: &[&str] = &["ti_state", "write_refused", "run_state"];
const ISTATES: &[&str] = &["", ",none,", ",running,success,", ",scheduled,queued,up_for_retry,"];
const ASTATES: &[&str] = &[",queued,claimed,running,stopping,lost_open,ended,", ",running,ended,"];
const RSTATES: &[&str] = &["", ",queued,", ",running,success,cancelled,"];

impl Draw {
    pub(super) const fn new(seed: u64) -> Self {
        Self { state: seed, now: 1_000 }
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }

    pub(super) fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }

    fn int(&mut self, first: i64, last: i64) -> Value {
        let width = u64::try_from(last - first + 1).unwrap();
        Value::Int(first + i64::try_from(self.below(width)).unwrap())
    }

    fn name(&mut self, prefix: &str, count: u64) -> Value {
        Value::Text(format!("{prefix}{}", self.below(count)))
    }

    fn of(&mut self, words: &[&str]) -> Value {
        let place = self.below(words.len() as u64);
        Value::Text(words[usize::try_from(place).unwrap()].into())
    }

    fn tick(&mut self) -> Value {
        self.now += 10;
        Value::Int(self.now)
    }

    /// A value of a kind; with `?` at its end sometimes none: an empty text where it is a filter.
    pub(super) fn value(&mut self, kind: &str) -> Value {
        if let Some(fixed) = kind.strip_prefix('=') {
            return fixed.parse().map_or_else(|_| Value::from(fixed), Value::Int);
        }
        match kind {
            "dag?" | "name?" | "file?" | "pool?" | "rtype?" if self.one_in(2) => {
                return Value::Text(String::new());
            }
            _ => {}
        }
        match kind.strip_suffix('?') {
            Some(_) if self.one_in(3) && !["dag?", "file?", "pool?"].contains(&kind) => Value::Null,
            Some(kind) => self.sure(kind),
            None => self.sure(kind),
        }
    }

    fn sure(&mut self, kind: &str) -> Value {
        match kind {
            "zero" => Value::Int(0),
            "flag" => self.int(0, 1),
            "n" | "recheck" => self.int(0, 3),
            "task" => self.int(0, 1),
            "map" => self.int(-1, 0),
            "run" => self.int(1, 3),
            "run0" => self.int(0, 1),
            "token" => self.int(1, 6),
            "token0" => self.int(0, 6),
            "limit" => self.int(1, 4),
            "all" => Value::Int(1_000),
            "status" => {
                if self.one_in(2) {
                    Value::Int(0)
                } else {
                    Value::Int(200)
                }
            }
            "now" => self.tick(),
            // Any instant up to a little after the newest one.
            "past" => self.int(0, self.now + 30),
            // Few, so that they are met again.
            "cursor" => self.int(0, 2),
            // One that is had twice is later than any instant that is asked for.
            "slot" => {
                if self.one_in(3) {
                    Value::Int(4_000_000_000)
                } else {
                    self.tick()
                }
            }
            "held" => {
                if self.one_in(3) {
                    self.int(1, 6)
                } else {
                    Value::Int(0)
                }
            }
            "never" => Value::Null,
            "job" => {
                let n = self.below(3);
                Value::from(JobId::from_u128(u128::from(n) + 1))
            }
            "uuid" => self.name("00000000-0000-4000-8000-0000000000", 40),
            _ => self.text(kind),
        }
    }

    fn text(&mut self, kind: &str) -> Value {
        match kind {
            "word" => self.of(WORD),
            "json" => self.of(JSON),
            "istate" => self.of(ISTATE),
            "astate" => self.of(ASTATE),
            "rstate" => self.of(RSTATE),
            "jstate" => self.of(JSTATE),
            "istates" => self.of(ISTATES),
            "astates" => self.of(ASTATES),
            "rstates" => self.of(RSTATES),
            "outcome" => self.of(OUTCOME),
            "kind" => self.of(KIND),
            "kinds" => self.of(&["", ",ti_state,", ",write_refused,run_state,"]),
            "jkind" => self.of(&["worker", "scheduler"]),
            "reproc" => self.of(&["none", "failed", "completed"]),
            "bstate" => self.of(&["running", "cancelling", "completed", "cancelled"]),
            "saction" => self.of(&["created", "rerun", "kept", "in_flight"]),
            "rtype" => self.of(&["scheduled", "manual"]),
            "arole" => self.of(&["consumer", "consumer", "producer", "inlet"]),
            "trole" => self.of(&["admin", "viewer"]),
            "why" => self.of(&["first", "retry", "replaces"]),
            "counted" => self.of(&["none", "infra", "retries"]),
            "stop" => self.of(&["cancel", "timeout"]),
            "dag" => self.name("d", 2),
            "runid" => self.name("r", 4),
            "pool" => self.name("p", 2),
            // The pool whose ramp an attempt comes by; mostly none.
            "ramp" => {
                if self.one_in(3) {
                    self.name("p", 2)
                } else {
                    Value::from("")
                }
            }
            "queue" => self.name("q", 2),
            "name" => self.name("n", 2),
            "xname" => self.name("x", 2),
            "home" => self.name("h", 2),
            "file" => self.name("f", 2),
            "id" => self.name("i", 4),
            other => panic!("no values of the kind `{other}`"),
        }
    }
}
