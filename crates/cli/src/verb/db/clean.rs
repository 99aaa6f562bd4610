//! `fencepost db clean`: what is old goes now, as it would by itself: in batches that hold nobody up.
//!
//! It can be interrupted at any time: each batch is whole, and the next call goes on with what is left.

use crate::clock::{Limit, pause};
use crate::config::{Settings, refuse};
use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::node::keep;
use crate::node::store::{self, Address};
use clap::Args;
use fencepost_core::retention::Bounds;
use fencepost_core::time::{Span, Timestamp};
use fencepost_engine::contention::is_contended;
use fencepost_engine::error::EngineError;
use fencepost_engine::retention::{Found, Kind, Sweep};
use serde_json::{Value, json};
use std::time::Duration;

/// How often progress is told.
const TOLD: Duration = Duration::from_secs(2);
/// After somebody else was in the way.
const AFTER_CONTENTION: Duration = Duration::from_millis(200);
/// So often in a row somebody else may be.
const CONTENDED_MAX: u32 = 50;

/// What goes, and where.
#[derive(Debug, Args)]
pub(crate) struct Clean {
    /// sqlite:PATH or postgres://USER@HOST/DATABASE; else [store] url
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// What ended before this instant; else what the retention settings say
    #[arg(long, value_name = "TIME", conflicts_with = "older_than")]
    before: Option<Timestamp>,
    /// What ended longer ago than this: 30d, 12h
    #[arg(long, value_name = "SPAN")]
    older_than: Option<Span>,
    /// Of these alone, separated by commas: logs, runs, incidents, jobs, events, answers, tokens
    #[arg(long, value_name = "TABLES")]
    tables: Option<String>,
}

/// Does it, or with `--dry-run` says what it would do.
pub(super) fn run(cx: &Cx, args: &Clean) -> Outcome {
    let kinds = kinds(args.tables.as_deref())?;
    let address = Address::find(cx, args.store.as_ref())?;
    let settings = Settings::load(&cx.home(), cx.global.config.as_ref(), &cx.env, Vec::new())
        .map_err(|errors| refuse(&errors))?;
    let found = store::wait_for(async {
        let (opened, _lock) = store::open(&address).await.map_err(beside)?;
        let engine = store::engine(opened);
        let now = engine.store.clock().now();
        let bounds = match (args.before, args.older_than) {
            (Some(at), _) => Bounds::before(checked(at, now)?, now),
            (None, Some(span)) => Bounds::before(checked(now.minus(span), now)?, now),
            (None, None) => Bounds::of(&keep(&settings), now),
        };
        let sweep = Sweep::new(bounds, &kinds);
        let sweep = if cx.global.dry_run { sweep.dry() } else { sweep };
        walk(cx, &engine, sweep).await
    })?;
    let answer = answer(&found, cx.global.dry_run);
    if !cx.out.data(&answer)? {
        cx.out.print(&told(&found, cx.global.dry_run))?;
    }
    Ok(if found.troubles.is_empty() { Exit::Done } else { Exit::Unexpected })
}

fn kinds(named: Option<&str>) -> Outcome<Vec<Kind>> {
    let Some(named) = named else { return Ok(Kind::ALL.to_vec()) };
    let known = || Kind::ALL.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(", ");
    named
        .split(',')
        .map(|name| {
            Kind::parse(name.trim()).ok_or_else(|| {
                CliError::usage(format!("--tables: there is no `{}`", name.trim()))
                    .hint(format!("there are {}", known()))
            })
        })
        .collect()
}

/// What lies ahead has not ended yet: an instant there is a mistake.
fn checked(at: Timestamp, now: Timestamp) -> Outcome<Timestamp> {
    if at > now {
        return Err(CliError::usage(format!("{at} lies ahead: nothing has ended before it yet")));
    }
    Ok(at)
}

/// A SQLite store is its standalone's alone, which cleans it by itself.
fn beside(error: CliError) -> CliError {
    if error.exit != Exit::Conflict {
        return error;
    }
    error
        .hint("a standalone that runs cleans its store by itself: [retention] in its configuration")
}

async fn walk(cx: &Cx, engine: &fencepost_engine::Cx, mut sweep: Sweep) -> Outcome<Found> {
    let (mut quiet, mut in_the_way) = (Limit::from_here(Some(TOLD)), 0);
    loop {
        match sweep.step(engine).await {
            Ok(true) => in_the_way = 0,
            Ok(false) => return Ok(sweep.into_found()),
            Err(error) if is_contended(&error) && in_the_way < CONTENDED_MAX => {
                in_the_way += 1;
                pause(AFTER_CONTENTION);
            }
            Err(error) => return Err(failed(&error, &sweep)),
        }
        if quiet.is_over() {
            cx.out.remark(&format!("{} rows so far", sweep.found().total()));
            quiet = Limit::from_here(Some(TOLD));
        }
    }
}

fn failed(error: &EngineError, sweep: &Sweep) -> CliError {
    let gone = sweep.found().total();
    CliError::new(Exit::Unexpected, error.to_string())
        .hint(format!("{gone} rows went before that; the same command goes on with what is left"))
}

fn answer(found: &Found, is_dry: bool) -> Value {
    let kept = found.kept.iter().map(
        |((what, why), count)| json!({ "what": what, "why": why.to_string(), "count": count }),
    );
    json!({
        "dry_run": is_dry, "rows": found.removed, "total": found.total(),
        "kept": kept.collect::<Vec<_>>(), "troubles": found.troubles,
    })
}

fn told(found: &Found, is_dry: bool) -> String {
    let verb = if is_dry { "would go" } else { "gone" };
    let mut text = String::new();
    for (what, count) in &found.removed {
        text.push_str(&format!("{count:>10}  {what}\n"));
    }
    text.push_str(&format!("{:>10}  rows {verb}\n", found.total()));
    for ((what, why), count) in &found.kept {
        text.push_str(&format!("{count:>10}  {what} stay: {why}\n"));
    }
    for trouble in &found.troubles {
        text.push_str(&format!("not looked at: {trouble}\n"));
    }
    text
}
