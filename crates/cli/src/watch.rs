//! Follows a run to its end by long polling; what `--wait` and `runs watch` share.
//!
//! A server that goes away meanwhile (killed, started again, perhaps on another port) is waited
//! for: runs survive it, so their followers do.

use crate::client::Client;
use crate::clock::{Limit, pause};
use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::global::Format;
use crate::output::paint::look;
use crate::output::span::{clock, duration};
use crate::output::table::cut;
use crate::output::terminal_width;
use crate::view::run::counts;
use crate::view::task_label;
use fencepost_api::rest::{Event, EventQuery, Page, Run, routes};
use fencepost_core::state::RunState;
use fencepost_core::time::Span;
use std::io::Write;
use std::time::Duration;

/// Where progress goes: it is the data of `runs watch`, and a remark of `--wait`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sink {
    Stdout,
    Stderr,
}

/// How long one look at the events may take.
const LONG_LOOK: Duration = Duration::from_secs(10);
/// The same where a status line moves or a hold is to be noticed.
const SHORT_LOOK: Duration = Duration::from_secs(2);
/// How long a server that went away is waited for.
const PATIENCE: Duration = Duration::from_mins(2);
/// Between two tries to reach it, and between answers of one that does not wait.
const PACE: Duration = Duration::from_millis(250);

/// A follower of one run.
pub(crate) struct Watch<'a> {
    cx: &'a Cx,
    client: Client,
    dag_id: String,
    run_id: String,
    sink: Sink,
    seen: i64,
    begun: Limit,
}

impl<'a> Watch<'a> {
    /// From the run's first event on.
    pub(crate) fn of(cx: &'a Cx, client: Client, run: &Run, sink: Sink) -> Self {
        let (dag_id, run_id) = (run.dag_id.clone(), run.run_id.clone());
        Self { cx, client, dag_id, run_id, sink, seen: 0, begun: Limit::from_here(None) }
    }

    /// Waits until the run has ended, only held tasks remain, or the time is over; the exit code
    /// says which.
    pub(crate) fn follow(mut self, timeout: Option<Span>) -> Outcome {
        let limit = Limit::from_here(timeout.map(Span::to_std));
        let mut quiet_and_held = false;
        loop {
            let look = if self.cx.out.lively || quiet_and_held { SHORT_LOOK } else { LONG_LOOK };
            let news = self.events(limit.left(look))?;
            let run = self.with_patience(|watch| {
                watch.client.read(routes::RUN_SHOW, &[&watch.dag_id, &watch.run_id])
            })?;
            self.status(&run);
            if RunState::parse(&run.state).is_some_and(RunState::is_finished) {
                self.events(Duration::ZERO)?;
                return Ok(self.ended(&run));
            }
            // One quiet look may fall between a success and what it makes ready; two do not.
            if only_held(&run) && !news {
                if quiet_and_held {
                    return Ok(self.held(&run));
                }
                quiet_and_held = true;
            } else {
                quiet_and_held = only_held(&run);
            }
            if limit.is_over() {
                self.clear_status();
                let message = format!("{} is still {}", self.run_id, run.state);
                return Err(CliError::new(Exit::TimedOut, message).hint(format!(
                    "go on:  fencepost runs watch {} {}",
                    self.dag_id, self.run_id
                )));
            }
        }
    }

    /// Prints what is new; whether there was anything.
    fn events(&mut self, wait: Duration) -> Outcome<bool> {
        let mut any = false;
        let mut wait = wait;
        loop {
            let asked = Limit::from_here(None);
            let page = self.with_patience(|watch| watch.page(wait))?;
            for event in &page.items {
                self.seen = self.seen.max(event.seq);
                self.print(event)?;
            }
            any |= !page.items.is_empty();
            if page.next_cursor.is_none() || page.items.is_empty() {
                if !any && asked.elapsed() < wait / 2 {
                    pause(PACE.min(wait));
                }
                return Ok(any);
            }
            wait = Duration::ZERO;
        }
    }

    fn page(&self, wait: Duration) -> Outcome<Page<Event>> {
        let query = EventQuery {
            limit: Some(1_000),
            after: Some(self.seen),
            dag_id: Some(self.dag_id.clone()),
            run_id: Some(self.run_id.clone()),
            wait_ms: Some(u32::try_from(wait.as_millis()).unwrap_or(0)),
            ..EventQuery::default()
        };
        self.client.poll(routes::EVENTS, &[], &query, wait)
    }

    /// The answer to a call, over the server's death and return.
    fn with_patience<T>(&mut self, call: impl Fn(&Self) -> Outcome<T>) -> Outcome<T> {
        let patience = Limit::from_here(Some(PATIENCE));
        let mut told = false;
        loop {
            match call(self) {
                Err(error) if error.exit == Exit::Unreachable && !patience.is_over() => {
                    if !told {
                        self.clear_status();
                        self.cx.out.remark(&format!("{}; waiting for it", error.message));
                        told = true;
                    }
                    pause(PACE);
                    if let Ok(client) = self.cx.client() {
                        self.client = client;
                    }
                }
                answer => return answer,
            }
        }
    }

    fn print(&self, event: &Event) -> Outcome<()> {
        if self.sink == Sink::Stdout && self.cx.out.format.is_data() {
            let line = serde_json::to_string(event).unwrap_or_default();
            return self.cx.out.print(&(line + "\n"));
        }
        let Some(line) = self.line(event) else { return Ok(()) };
        self.clear_status();
        match self.sink {
            Sink::Stdout => self.cx.out.print(&(line + "\n")),
            Sink::Stderr => {
                self.cx.out.remark(&line);
                Ok(())
            }
        }
    }

    /// `05:10:04  ▶ load  running  w-1`: changes of states only.
    fn line(&self, event: &Event) -> Option<String> {
        let to = event.to.as_deref()?;
        let (icon, paint) = look(to);
        let subject = match &event.task_id {
            Some(task) => task_label(task, event.map_index.unwrap_or(-1), None),
            None => "run".into(),
        };
        let reason = event.reason.as_deref().map(|r| format!("  {r}")).unwrap_or_default();
        let at = clock(Some(&event.at), self.client.now());
        let colour = self.cx.out.colour();
        Some(format!(
            "{at}  {}  {subject}{reason}",
            paint.apply(&format!("{icon} {to:<15}"), colour)
        ))
    }

    /// One line that is written over, on a terminal only.
    fn status(&self, run: &Run) {
        if !self.cx.out.lively || self.cx.out.format == Format::Json {
            return;
        }
        let elapsed = i64::try_from(self.begun.elapsed().as_millis()).unwrap_or(0);
        let time = duration(Span::from_millis(elapsed));
        let text = format!("{} {} {}  {time}", look(&run.state).0, run.run_id, counts(run));
        let width = terminal_width().unwrap_or(80).saturating_sub(1);
        let mut err = std::io::stderr().lock();
        let _ = write!(err, "\r\x1b[K{}", cut(&text, width));
        let _ = err.flush();
    }

    fn clear_status(&self) {
        if self.cx.out.lively {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }

    fn ended(&self, run: &Run) -> Exit {
        self.clear_status();
        let reason = run.reason.as_ref().map(|r| format!(": {r}")).unwrap_or_default();
        let (icon, _) = look(&run.state);
        let line = format!("{icon} {} {}{reason}  {}", run.run_id, run.state, counts(run));
        self.cx.out.remark(&line);
        if run.state == RunState::Success.as_str() {
            return Exit::Done;
        }
        self.cx.out.remark(&format!("see  fencepost tasks list {} {}", run.dag_id, run.run_id));
        Exit::Failed
    }

    fn held(&self, run: &Run) -> Exit {
        self.clear_status();
        self.cx.out.remark(&format!("{} waits for a person: {}", run.run_id, counts(run)));
        Exit::Held
    }
}

/// Nothing of it goes on by itself, and something is held.
fn only_held(run: &Run) -> bool {
    let count = |state: &str| run.task_counts.get(state).copied().unwrap_or(0);
    let active = ["scheduled", "queued", "running", "deferred", "up_for_retry", "restarting"];
    count("held") > 0 && active.iter().all(|state| count(state) == 0)
}
