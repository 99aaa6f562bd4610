//! `fencepost run FILE`: one DAG file, here and now, without a server.
//!
//! A private node with a home of its own that is removed afterwards: the same store, passes, worker
//! and shims as everywhere else, so what works here works there.

use crate::client::{Client, Server};
use crate::clock::{Limit, pause};
use crate::config::{self, Settings};
use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::node::{Crash, Node, Options, load_dag};
use crate::verb::dags::trigger::{self, Trigger};
use crate::verb::role::runtime;
use crate::watch::{Sink, Watch};
use clap::Args;
use fencepost_api::rest::Run;
use fencepost_core::dag::{Dag, Task, TaskIndex, descendants};
use fencepost_core::guard::Guards;
use fencepost_core::id::DagId;
use fencepost_core::schedule::Timing;
use fencepost_core::time::Timestamp;
use fencepost_dagfile::render::{FileReport, lines};
use fencepost_engine::operations::run_control;
use fencepost_store::query::run;
use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Without the process that started them, tasks of a local run end after this long.
const ORPHAN_TTL: &str = "60s";
const KILL_GRACE: &str = "10s";
/// How long the last lines of the logs are waited for.
const LAST_LINES: Duration = Duration::from_secs(5);

/// Run a DAG file here and now, without a server
#[derive(Debug, Args)]
#[command(after_help = "\
What the tasks print goes to stdout, the progress to stderr. Nothing is recorded: the run has a home of its own that is removed at its end. Ctrl-C cancels it.
Exit code: 0 if the run succeeded, 3 if it failed, 2 if the file has mistakes.

Examples:
  fencepost run dags/hello.yaml
  fencepost run dags/sales.yaml -p full_refresh=true --from load")]
pub(crate) struct RunFile {
    /// The DAG file
    file: PathBuf,
    /// A param of the run (repeatable)
    #[arg(short = 'p', long = "param", value_name = "KEY=VALUE")]
    params: Vec<String>,
    /// This task only
    #[arg(long, value_name = "TASK", conflicts_with = "from")]
    task: Option<String>,
    /// This task and everything downstream of it
    #[arg(long, value_name = "TASK")]
    from: Option<String>,
}

/// Runs the file to its end.
pub(super) fn run_file(cx: &Cx, args: RunFile) -> Outcome {
    let dag = read(cx, &args)?;
    let home = Home::make(cx)?;
    let runtime = runtime()?;
    let node = runtime.block_on(Node::start(options(cx, &home.0)?))?;
    let exit = runtime.block_on(load_dag(&node.cx, &args.file.to_string_lossy(), dag.clone()));
    let exit = exit.and_then(|()| {
        let cx = local(cx, &home.0, &node);
        follow(&cx, &args, &dag, (&runtime, &node))
    });
    let left = runtime.block_on(node.stop());
    runtime.shutdown_background();
    left?;
    exit
}

fn read(cx: &Cx, args: &RunFile) -> Outcome<Dag> {
    let path = args.file.to_string_lossy().into_owned();
    let bytes = fencepost_dagfile::read_bounded(&args.file)
        .map_err(|error| CliError::new(Exit::NotFound, format!("{path}: {error}")))?;
    let parsed = fencepost_dagfile::parse(&bytes, &path);
    let report = FileReport { path: &path, diagnostics: &parsed.diagnostics };
    cx.out.remark(lines(&[report]).trim_end());
    let Some(dag) = parsed.dag else {
        return Err(CliError::new(Exit::Usage, format!("{path} has mistakes")));
    };
    only(dag, args)
}

/// The DAG without its schedule, and with the wanted tasks only.
fn only(mut dag: Dag, args: &RunFile) -> Outcome<Dag> {
    dag.timing = Timing { timezone: dag.timing.timezone.clone(), ..Timing::manual() };
    dag.is_paused_upon_creation = false;
    let Some(named) = args.task.as_ref().or(args.from.as_ref()) else { return Ok(dag) };
    let index = dag.index_of(named).ok_or_else(|| {
        CliError::new(Exit::NotFound, format!("{} has no task `{named}`", args.file.display()))
    })?;
    let mut kept = vec![index];
    if args.from.is_some() {
        kept.extend(descendants(&dag.tasks, &[index]));
    }
    let places: BTreeMap<TaskIndex, TaskIndex> =
        kept.iter().enumerate().map(|(new, old)| (*old, TaskIndex::new(new))).collect();
    dag.tasks = kept
        .iter()
        .filter_map(|old| dag.task(*old).cloned())
        .map(|task| Task {
            depends_on: task.depends_on.iter().filter_map(|up| places.get(up).copied()).collect(),
            ..task
        })
        .collect();
    Dag::new(dag).map_err(|error| CliError::usage(error.to_string()))
}

fn options(cx: &Cx, home: &Path) -> Outcome<Options> {
    let overrides = vec![
        ("server.listen", "run", "127.0.0.1:0".to_owned()),
        ("worker.orphan_ttl", "run", ORPHAN_TTL.to_owned()),
        ("worker.kill_grace", "run", KILL_GRACE.to_owned()),
    ];
    let settings = Settings::load(home, cx.global.config.as_ref(), &cx.env, overrides)
        .map_err(|errors| config::refuse(&errors))?;
    Ok(Options {
        home: home.to_owned(),
        settings,
        take_over: false,
        host_env: cx.env.with_prefix("").map(|(n, v)| (n.to_owned(), v.to_owned())).collect(),
        crash: Crash::default(),
        guards: Guards::all(),
        is_role: false,
    })
}

/// The context of a client of that node and no other.
fn local(cx: &Cx, home: &Path, node: &Node) -> Cx {
    let mut local = cx.clone();
    local.global.home = Some(home.to_owned());
    local.global.server = Some(node.address.to_string());
    local.global.token_file = Some(home.join("token"));
    local
}

fn follow(
    cx: &Cx,
    args: &RunFile,
    dag: &Dag,
    (runtime, node): (&tokio::runtime::Runtime, &Node),
) -> Outcome {
    let interrupted = Arc::new(AtomicBool::new(false));
    runtime.spawn(cancel_on_interrupt(node.cx.clone(), dag.dag_id.clone(), interrupted.clone()));
    cx.out.remark(&format!("{} (local, not recorded)", dag.dag_id));
    let dag_id = dag.dag_id.as_str();
    // Not `cx.client()`, which would end this process, its node included, at Ctrl-C.
    let client = || Ok::<_, CliError>(Client::new(Server::find(&cx.global, &cx.env)?));
    let run = trigger::make_run(&client()?, &Trigger::plain(dag_id, &args.params))?;
    let logs = Logs::follow(cx, &run);
    let exit = Watch::of(cx, client()?, &run, Sink::Stderr).follow(None)?;
    drop(logs);
    if interrupted.load(Ordering::Relaxed) {
        return Ok(Exit::Interrupted);
    }
    Ok(exit)
}

/// Ctrl-C cancels the run: its processes are ended in order, and then this one ends.
async fn cancel_on_interrupt(
    cx: fencepost_engine::Cx,
    dag_id: DagId,
    interrupted: Arc<AtomicBool>,
) {
    if tokio::signal::ctrl_c().await.is_err() {
        return;
    }
    interrupted.store(true, Ordering::Relaxed);
    let Ok(tx) = cx.store.read("interrupt").await else { return };
    let newest = (Timestamp::from_micros(i64::MAX), i64::MAX);
    let runs = run::list(&tx, dag_id.as_str(), newest, 10).await.unwrap_or_default();
    for run in runs {
        // One that is over is over.
        let _ = run_control::cancel(&cx, dag_id.as_str(), &run.run_id, false, "Ctrl-C").await;
    }
}

/// What the tasks print, on stdout as they print it: the verb `logs -f` beside this one.
struct Logs(Option<Child>);

impl Logs {
    fn follow(cx: &Cx, run: &Run) -> Self {
        let exe = std::env::current_exe().unwrap_or_else(|_| "fencepost".into());
        let mut command = Command::new(exe);
        command.args(["logs", &run.dag_id, &run.run_id, "-f", "--quiet"]);
        command.env("FENCEPOST_HOME", cx.home()).env_remove("FENCEPOST_TOKEN");
        command.env_remove("FENCEPOST_SERVER").stdin(Stdio::null());
        // Without it the run goes on all the same.
        Self(command.spawn().ok())
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        let Some(child) = &mut self.0 else { return };
        let limit = Limit::from_here(Some(LAST_LINES));
        while matches!(child.try_wait(), Ok(None)) {
            if limit.is_over() {
                let _ = child.kill();
            }
            pause(Duration::from_millis(20));
        }
    }
}

/// A home that is removed when it is no longer needed.
struct Home(PathBuf);

impl Home {
    fn make(cx: &Cx) -> Outcome<Self> {
        let base = PathBuf::from(cx.env.get("TMPDIR").unwrap_or("/tmp"));
        let path = base.join(format!("fencepost-run-{}", crate::node::fresh_id()));
        std::fs::DirBuilder::new().mode(0o700).create(&path).map_err(|error| {
            CliError::new(Exit::Unexpected, format!("{}: {error}", path.display()))
        })?;
        Ok(Self(path))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // What cannot be removed is in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
