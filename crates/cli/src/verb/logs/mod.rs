//! `fencepost logs`: what tasks printed, live or after their death.

mod follow;
mod pick;
mod write;

use super::target::{AttemptRef, RunTarget, split};
use crate::client::Client;
use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use clap::Args;
use fencepost_api::rest::{LogPage, LogQuery, routes};
use fencepost_core::time::{Span, Timestamp};
use std::time::Duration;
use write::Writer;

/// Print the log of a task, or of every task of a run
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fencepost logs sales_daily @latest load -f
  fencepost logs sales_daily @latest load --attempt 1 --tail 50
  fencepost logs sales_daily @latest --grep 'ERROR|WARN' --since 10m")]
pub(crate) struct Logs {
    #[command(flatten)]
    run: RunTarget,
    /// The task, of a mapped one `load[3]`; else every task of the run
    task: Option<String>,
    /// Go on printing, over retries, until the task or the run has ended
    #[arg(short, long)]
    follow: bool,
    /// Which attempt: its number or its token (7-48211); else the newest
    #[arg(long, value_name = "N|TOKEN")]
    attempt: Option<AttemptRef>,
    /// Only the last N lines
    #[arg(long, value_name = "N")]
    tail: Option<u32>,
    /// Only lines since this instant, or not older than this (10m)
    #[arg(long, value_name = "SPAN|TIME", value_parser = since)]
    since: Option<Since>,
    /// Only lines that match this regular expression
    #[arg(long, value_name = "RE")]
    grep: Option<String>,
    /// What came after the attempt was superseded
    #[arg(long)]
    late: bool,
    /// The time before each line
    #[arg(short, long)]
    timestamps: bool,
}

#[derive(Debug, Clone, Copy)]
enum Since {
    Ago(Span),
    At(Timestamp),
}

fn since(text: &str) -> Result<Since, String> {
    if let Ok(span) = text.parse::<Span>() {
        return Ok(Since::Ago(span));
    }
    text.parse().map(Since::At).map_err(|_| {
        format!("`{text}` is neither a duration (10m) nor an instant (2026-09-22T05:00:00Z)")
    })
}

impl Logs {
    /// The query of a first page. "Ago" is counted on the server's clock.
    fn query(&self, client: &Client) -> LogQuery {
        let since = self.since.map(|since| match since {
            Since::Ago(span) => client.now().minus(span),
            Since::At(at) => at,
        });
        LogQuery {
            tail: self.tail,
            since: since.map(|at| at.to_string()),
            grep: self.grep.clone(),
            late: self.late.then_some(true),
            ..LogQuery::default()
        }
    }
}

/// One attempt's log and how far it has been printed.
#[derive(Debug)]
struct Source {
    attempt_id: String,
    /// Before each line where several logs are printed.
    label: String,
    query: LogQuery,
    ended: bool,
}

impl Source {
    /// The next page; the cursor moves on.
    fn page(&mut self, client: &Client, wait: Duration) -> Outcome<LogPage> {
        let millis = u32::try_from(wait.as_millis()).unwrap_or(0);
        self.query.wait_ms = (millis > 0).then_some(millis);
        let args = [self.attempt_id.as_str()];
        let page: LogPage = client.poll(routes::ATTEMPT_LOG, &args, &self.query, wait)?;
        self.query.cursor = Some(page.next_cursor.clone());
        self.query.tail = None;
        self.ended = page.ended && !page.more;
        Ok(page)
    }
}

/// Prints them.
pub(super) fn run(cx: &Cx, args: Logs) -> Outcome {
    let client = cx.client()?;
    let run = args.run.find(&client)?;
    let at = (run.dag_id.as_str(), run.run_id.as_str());
    let task = args.task.as_deref().map(split).transpose()?;
    if args.follow {
        return follow::run(cx, client, &args, at, task);
    }
    let query = args.query(&client);
    let picked = pick::attempts(&client, at, task, args.attempt)?;
    if picked.is_empty() {
        let message = "nothing of it has started, so there is no log yet";
        return Err(CliError::new(Exit::NotFound, message).hint(format!(
            "see  fencepost explain {} {} {}",
            at.0,
            at.1,
            args.task.unwrap_or_default()
        )));
    }
    let mut writer = Writer::new(cx, args.timestamps);
    let labelled = picked.len() > 1;
    for attempt in picked {
        let label = if labelled { attempt.label } else { String::new() };
        let id = attempt.attempt_id;
        let mut source = Source { attempt_id: id, label, query: query.clone(), ended: false };
        loop {
            let page = source.page(&client, Duration::ZERO)?;
            writer.page(&source.label, &page)?;
            if !page.more {
                break;
            }
        }
    }
    writer.finish()?;
    Ok(Exit::Done)
}
