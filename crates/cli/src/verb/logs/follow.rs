//! `logs -f`: the newest attempt of each task instance, over retries and replacements, until the
//! task or the run has ended. All waiting is the server's (long polls in turn).

use super::pick::{self, Picked};
use super::write::Writer;
use super::{Logs, Source};
use crate::client::Client;
use crate::clock::{Limit, pause};
use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use fencepost_api::rest::{Run, TaskInstance, routes};
use fencepost_core::state::{RunState, TiState};
use std::collections::BTreeMap;
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
    let (seen, sources) = (BTreeMap::new(), Vec::new());
    let mut follow = Follow { client, args, at, task, seen, sources, writer };
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
    if follow.sources.is_empty() && args.attempt.is_some() {
        return Err(CliError::new(Exit::NotFound, "there was no such attempt"));
    }
    follow.writer.finish()?;
    Ok(Exit::Done)
}

struct Follow<'a> {
    client: Client,
    args: &'a Logs,
    at: (&'a str, &'a str),
    task: Task<'a>,
    /// Of each task instance how many attempts have been looked at.
    seen: BTreeMap<(String, i32), u32>,
    sources: Vec<Source>,
    writer: Writer<'a>,
}

impl Follow<'_> {
    /// One look at everything; true: nothing more will come.
    fn round(&mut self) -> Outcome<bool> {
        // The end is looked for before the logs are read, so that what they end with is printed.
        let run: Run = self.client.read(routes::RUN_SHOW, &[self.at.0, self.at.1])?;
        let instances = pick::instances(&self.client, self.at, self.task)?;
        let run_over = RunState::parse(&run.state).is_some_and(RunState::is_finished);
        let over = run_over || (self.task.is_some() && instances.iter().all(is_over));
        for instance in &instances {
            self.find_new(instance)?;
        }
        let begun = Limit::from_here(None);
        let news = self.read(over)?;
        let open = self.sources.iter().any(|source| !source.ended);
        let chosen = self.args.attempt.is_some() && !self.sources.is_empty();
        if (over && !(open && news)) || (chosen && !open) {
            return Ok(true);
        }
        if !news && begun.elapsed() < PACE {
            pause(PACE);
        }
        Ok(false)
    }

    /// Prints what is new in each log; whether there was anything.
    fn read(&mut self, over: bool) -> Outcome<bool> {
        let open = self.sources.iter().filter(|source| !source.ended).count();
        let wait = match open {
            _ if over => Duration::ZERO,
            0 | 1 => ALONE,
            many => ROUND / u32::try_from(many).unwrap_or(u32::MAX),
        };
        let labelled = self.task.is_none() || self.seen.len() > 1;
        let mut news = false;
        for source in self.sources.iter_mut().filter(|source| !source.ended) {
            let page = source.page(&self.client, if news { Duration::ZERO } else { wait })?;
            news |= !page.lines.is_empty() || page.more;
            self.writer.page(if labelled { &source.label } else { "" }, &page)?;
        }
        Ok(news)
    }

    /// Attempts that have come since the last look: at first the wanted one or the newest, then
    /// every one.
    fn find_new(&mut self, instance: &TaskInstance) -> Outcome<()> {
        let seen = self.seen.entry((instance.task_id.clone(), instance.map_index)).or_default();
        if instance.attempt_count <= *seen {
            return Ok(());
        }
        let attempts = pick::attempts_of(&self.client, self.at, instance)?;
        let mut query = self.args.query(&self.client);
        let new: Vec<_> = match (*seen, self.args.attempt) {
            (0, wanted) => pick::choose(&attempts, wanted).into_iter().collect(),
            (_, Some(_)) => Vec::new(),
            (seen, None) => attempts.iter().filter(|a| a.attempt_number > seen).collect(),
        };
        query.tail = query.tail.filter(|_| *seen == 0);
        if new.is_empty() {
            // The wanted one may still come.
            return Ok(());
        }
        for attempt in new {
            let Picked { attempt_id, label } = Picked::of(instance, attempt);
            self.sources.push(Source { attempt_id, label, query: query.clone(), ended: false });
        }
        *seen = attempts.iter().map(|attempt| attempt.attempt_number).max().unwrap_or(0);
        Ok(())
    }
}

/// Whether no attempt of it will come any more by itself.
fn is_over(instance: &TaskInstance) -> bool {
    let held = instance.state == TiState::Held.as_str();
    held || TiState::parse(&instance.state).is_some_and(TiState::is_finished)
}
