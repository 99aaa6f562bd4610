//! What a server, a scheduler or a standalone writes to stderr: one line for each thing that somebody
//! may have to know, and nothing while nothing happens.
//!
//! Most lines are lines of the log in the store, as this process commits them ([`Meters::listen`]), so
//! both say the same. Of each kind only so many are written in a while; how many were left out is
//! written with the next one. Values that may be secret (addresses with passwords) are masked by
//! whoever gives them.

mod line;

use crate::config::Settings;
use fencepost_core::time::{Span, Timestamp};
use fencepost_engine::meters::{Heard, Meters};
use fencepost_store::StoreErrorKind;
use fencepost_store::query::event::Event;
use line::{Line, fields};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl Level {
    const ALL: [Self; 5] = [Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// Lines of the log that somebody should look at.
const GRAVE: [&str; 5] =
    ["job_lost", "mass_loss_braked", "epoch_raised", "attempt_lost", "write_refused"];

/// Lines of one kind in one [`WHILE`]; of a store that fails one is enough.
const MOST: u64 = 50;
const WHILE: Span = Span::from_secs(30);

/// The journal of a process.
pub(super) struct Journal {
    role: &'static str,
    level: Level,
    is_json: bool,
    clock: Box<dyn Fn() -> Timestamp + Send + Sync>,
    out: Box<dyn Fn(&str) + Send + Sync>,
    written: Mutex<BTreeMap<String, Written>>,
}

#[derive(Debug, Clone, Copy)]
struct Written {
    since: Timestamp,
    count: u64,
    left_out: u64,
}

impl Journal {
    /// As configured, to stderr.
    pub(super) fn new(settings: &Settings, role: &'static str) -> Arc<Self> {
        let level = settings.text("logging.level").unwrap_or("info");
        let level = Level::ALL.into_iter().find(|known| known.as_str() == level);
        Arc::new(Self {
            role,
            level: level.unwrap_or(Level::Info),
            is_json: settings.text("logging.format") == Some("json"),
            clock: Box::new(crate::clock::now),
            // Whoever closed stderr does not want to know.
            out: Box::new(|line| drop(std::io::stderr().lock().write_all(line.as_bytes()))),
            written: Mutex::default(),
        })
    }

    /// Hears what the process commits, and how its store fails and comes back.
    pub(super) fn listen(self: &Arc<Self>, meters: &Meters) {
        let own = Arc::clone(self);
        meters.listen(move |heard| own.hear(heard));
    }

    fn hear(&self, heard: Heard<'_>) {
        match heard {
            Heard::Line(event) => self.event(event),
            Heard::Failed(error) => {
                let level = match error.kind {
                    StoreErrorKind::Contended | StoreErrorKind::EpochOver => Level::Debug,
                    StoreErrorKind::Unavailable | StoreErrorKind::Full | StoreErrorKind::Fenced => {
                        Level::Warn
                    }
                    StoreErrorKind::Constraint
                    | StoreErrorKind::Corrupt
                    | StoreErrorKind::Setup
                    | StoreErrorKind::Decode => Level::Error,
                };
                self.write(level, "store_failed", &error.to_string(), Map::new());
            }
            Heard::Answers(failed) => {
                let text = format!("the store answers again, after {failed} failures");
                self.write(Level::Info, "store_answers", &text, Map::new());
            }
        }
    }

    fn event(&self, event: &Event) {
        let level = match (event.kind, event.to) {
            ("ti_state", Some("held")) => Level::Warn,
            (kind, _) if GRAVE.contains(&kind) => Level::Warn,
            // Said by the change of state beside it.
            ("ti_state" | "run_state" | "held", _) => Level::Trace,
            ("ramp_admitted" | "ramp_rate", _) => Level::Debug,
            _ => Level::Info,
        };
        if level <= self.level {
            let text = event.reason.clone().unwrap_or_default();
            self.write(level, event.kind, &text, fields(event));
        }
    }

    /// Something of this process's own.
    pub(super) fn say(&self, level: Level, kind: &str, text: &str) {
        self.write(level, kind, text, Map::new());
    }

    /// What the process was started with: the settings that somebody has set.
    pub(super) fn started(&self, settings: &Settings) {
        let set = settings.all().filter(|(_, setting)| setting.place.origin() != "default");
        let set = set.filter_map(|(key, setting)| {
            Some((key.name.to_owned(), json!(key.shown(setting.value.as_deref()?))))
        });
        let version = env!("CARGO_PKG_VERSION");
        let text = format!("fencepost {version}, pid {}", std::process::id());
        self.write(Level::Info, "started", &text, set.collect());
    }

    fn write(&self, level: Level, kind: &str, text: &str, fields: Map<String, Value>) {
        if level > self.level {
            return;
        }
        let at = (self.clock)();
        let Some(left_out) = self.room(kind, at) else { return };
        let mut line = Line { at, level: level.as_str(), role: self.role, kind, text, fields };
        if left_out > 0 {
            line.fields.insert("left_out".into(), left_out.into());
        }
        (self.out)(&if self.is_json { line.json() } else { line.text() });
    }

    /// Whether one more of a kind may be written: how many were left out since the last one.
    fn room(&self, kind: &str, at: Timestamp) -> Option<u64> {
        let most = if kind == "store_failed" { 1 } else { MOST };
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = Written { since: at, count: 0, left_out: 0 };
        let own = written.entry(kind.to_owned()).or_insert(fresh);
        // A clock that was set back ends the while too.
        let since = at.since(own.since);
        if since >= WHILE || since < Span::ZERO {
            (own.since, own.count) = (at, 0);
        }
        if own.count >= most {
            own.left_out += 1;
            return None;
        }
        own.count += 1;
        Some(std::mem::take(&mut own.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI64, Ordering};

    type Lines = Arc<Mutex<Vec<String>>>;

    fn journal(is_json: bool, clock: &Arc<AtomicI64>) -> (Journal, Lines) {
        let lines = Lines::default();
        let (kept, clock) = (Arc::clone(&lines), Arc::clone(clock));
        let journal = Journal {
            role: "scheduler",
            level: Level::Info,
            is_json,
            clock: Box::new(move || Timestamp::from_micros(clock.load(Ordering::SeqCst))),
            out: Box::new(move |line| kept.lock().unwrap().push(line.to_owned())),
            written: Mutex::default(),
        };
        (journal, lines)
    }

    fn lost(reason: &str) -> Event {
        Event {
            kind: "job_lost",
            actor: "scheduler:a".into(),
            to: Some("lost"),
            reason: Some(reason.into()),
            evidence: Some(json!({"kind": "expiry"})),
            ..Event::default()
        }
    }

    #[test]
    fn a_line_is_one_line_in_either_format() {
        let clock = Arc::new(AtomicI64::new(0));
        let (text, lines) = journal(false, &clock);
        text.hear(Heard::Line(&lost("a\nb \"c\"")));
        assert_eq!(
            *lines.lock().unwrap(),
            ["1970-01-01T00:00:00.000Z warn  scheduler job_lost: a\\nb \"c\"  actor=scheduler:a \
              evidence=expiry to=lost\n"]
        );
        let (as_json, lines) = journal(true, &clock);
        as_json.hear(Heard::Line(&lost("a\nb")));
        let line = lines.lock().unwrap()[0].clone();
        assert_eq!(line.matches('\n').count(), 1);
        let read: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&read["kind"], &read["message"]), (&json!("job_lost"), &json!("a\nb")));
        assert_eq!(read["level"], "warn");
    }

    #[test]
    fn a_flood_is_told_by_its_number_and_a_store_that_is_away_once_in_a_while() {
        let clock = Arc::new(AtomicI64::new(0));
        let (journal, lines) = journal(false, &clock);
        for _ in 0..MOST + 7 {
            journal.hear(Heard::Line(&lost("x")));
        }
        assert_eq!(lines.lock().unwrap().len() as u64, MOST);
        clock.store(WHILE.as_micros(), Ordering::SeqCst);
        journal.hear(Heard::Line(&lost("x")));
        assert!(lines.lock().unwrap().last().unwrap().contains("left_out=7"));
        lines.lock().unwrap().clear();
        let error = fencepost_store::StoreError::new(StoreErrorKind::Unavailable, "read", "gone");
        for _ in 0..5 {
            journal.hear(Heard::Failed(&error));
        }
        journal.hear(Heard::Answers(5));
        assert_eq!(lines.lock().unwrap().len(), 2, "{:?}", lines.lock().unwrap());
    }

    #[test]
    fn what_is_normal_is_not_written() {
        let (journal, lines) = journal(false, &Arc::new(AtomicI64::new(0)));
        journal.hear(Heard::Line(&Event {
            kind: "ti_state",
            to: Some("success"),
            ..Event::default()
        }));
        journal.hear(Heard::Line(&Event { kind: "ramp_rate", ..Event::default() }));
        assert!(lines.lock().unwrap().is_empty());
    }
}
