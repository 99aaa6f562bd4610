//! `logs -f`: the newest attempt of each task instance, over retries and replacements, until the
//! task or the run has ended. All waiting is the server's (long polls in turn).

use super::write::Writer;
use super::{Logs, Source, pick};
use crate::client::Client;
use crate::clock::{Limit, pause};
use crate::cx::Cx;
use crate::error::Outcome;
use crate::exit::Exit;
use fencepost_api::rest::{Run, routes};
use fencepost_core::state::{RunState, TiState};
use std::time::Duration;

/// A round over all open logs takes about this long when none has news.
const ROUND: Duration = Duration::from_secs(1);
/// One log alone may wait longer.
const ALONE: Duration = Duration::from_secs(10);
const PACE: Duration = Duration::from_millis(200);
/// How long a server that went away is waited for.
const PATIENCE: Duration = Duration::from_mins(2);

type Task<'t> = Option<(&'t str, Option<u32>)>;

/// Prints until there is nothing more to come.
pub(super) fn run(
    cx: &Cx,
    client: Client,
    args: &Logs,
    at: (&str, &str),
    task: Task<'_>,
) -> Outcome {
    let writer = Writer::streaming(cx, args.timestamps);
    let mut follow = Follow { client, args, at, task, sources: Vec::new(), writer };
    let mut patience: Option<Limit> = None;
    loop {
        match follow.round() {
            Ok(true) => break,
            Ok(false) => patience = None,
            Err(error) if error.exit == Exit::Unreachable => {
                let limit = patience.get_or_insert_with(|| {
                    cx.out.remark(&format!("{}; waiting for it", error.message));
                    Limit::from_here(Some(PATIENCE))
                });
                if limit.is_over() {
                    return Err(error);
                }
                pause(PACE);
                follow.client = cx.client().unwrap_or(follow.client);
            }
            Err(error) => return Err(error),
        }
    }
    follow.writer.finish()?;
    Ok(Exit::Done)
}

struct Follow<'a> {
    client: Client,
    args: &'a Logs,
    at: (&'a str, &'a str),
    task: Task<'a>,
    sources: Vec<Source>,
    writer: Writer<'a>,
}

impl Follow<'_> {
    /// One look at everything; true: nothing more will come.
    fn round(&mut self) -> Outcome<bool> {
        // Looked at before the logs are, so that what they end with is still printed.
        let over = self.is_over()?;
        self.find_new()?;
        let open = self.sources.iter().filter(|source| !source.ended).count();
        let wait = match open {
            _ if over => Duration::ZERO,
            0 | 1 => ALONE,
            many => ROUND / u32::try_from(many).unwrap_or(u32::MAX),
        };
        let begun = Limit::from_here(None);
        let mut news = false;
        let label = self.sources.len() > 1 || self.task.is_none();
        for source in self.sources.iter_mut().filter(|source| !source.ended) {
            let page = source.page(&self.client, if news { Duration::ZERO } else { wait })?;
            news |= !page.lines.is_empty() || page.more;
            self.writer.page(if label { &source.label } else { "" }, &page)?;
        }
        let open = self.sources.iter().any(|source| !source.ended);
        if over && (!open || !news) {
            return Ok(true);
        }
        if !news && begun.elapsed() < PACE {
            pause(PACE);
        }
        Ok(false)
    }

    /// Attempts that have come since the last look.
    fn find_new(&mut self) -> Outcome<()> {
        let picked = pick::attempts(&self.client, self.at, self.task, self.args.attempt)?;
        let mut query = self.args.query(&self.client);
        for attempt in picked {
            if self.sources.iter().any(|source| source.attempt_id == attempt.attempt_id) {
                continue;
            }
            if !self.sources.is_empty() {
                query.tail = None;
            }
            let (attempt_id, label) = (attempt.attempt_id, attempt.label);
            self.sources.push(Source { attempt_id, label, query: query.clone(), ended: false });
        }
        Ok(())
    }

    /// Whether no attempt will come any more (with `--attempt`: whether that one has ended).
    fn is_over(&self) -> Outcome<bool> {
        if self.args.attempt.is_some() && !self.sources.is_empty() {
            return Ok(self.sources.iter().all(|source| source.ended));
        }
        if self.task.is_none() {
            let run: Run = self.client.read(routes::RUN_SHOW, &[self.at.0, self.at.1])?;
            return Ok(RunState::parse(&run.state).is_some_and(RunState::is_finished));
        }
        let instances = pick::instances(&self.client, self.at, self.task)?;
        let done = |state: &str| {
            state == TiState::Held.as_str()
                || TiState::parse(state).is_some_and(TiState::is_finished)
        };
        Ok(instances.iter().all(|instance| done(&instance.state)))
    }
}
