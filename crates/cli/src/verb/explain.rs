//! `fencepost explain`: of a DAG, a run or a task the one gate that blocks, and what to do about it.

use super::target::split;
use crate::cx::Cx;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::output::paint::Paint;
use crate::output::span::{age, clock};
use crate::output::typed;
use crate::view::task_label;
use clap::Args;
use fencepost_api::rest::{Explain, Gate, GateStatus, routes};
use fencepost_core::time::Timestamp;

/// Say why a DAG makes no run, or why a run or a task is not running
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fencepost explain sales_daily
  fencepost explain sales_daily @latest
  fencepost explain sales_daily @latest load")]
pub(crate) struct ExplainArgs {
    /// The DAG's id
    dag: String,
    /// The run's id, a unique beginning of it, or @latest
    run: Option<String>,
    /// The task; of a mapped one `load[3]`
    task: Option<String>,
}

/// Prints the gates in their order.
pub(super) fn run(cx: &Cx, args: ExplainArgs) -> Outcome {
    let client = cx.client()?;
    let dag = args.dag.as_str();
    let run = args.run.as_deref().map(|run| client.run(dag, run)).transpose()?;
    let run = run.as_ref().map(|run| run.run_id.as_str());
    let answer = match (run, args.task.as_deref().map(split).transpose()?) {
        (None, _) => client.get(routes::DAG_EXPLAIN, &[dag], &())?,
        (Some(run), None) => client.get(routes::RUN_EXPLAIN, &[dag, run], &())?,
        (Some(run), Some((task, index))) => {
            let path = index.map_or(task.into(), |index| format!("{task};{index}"));
            client.get(routes::TASK_EXPLAIN, &[dag, run, &path], &())?
        }
    };
    if !cx.out.data(&answer)? {
        let explain: Explain = typed(answer)?;
        cx.out.print(&text(&explain, client.now(), cx.out.colour()))?;
    }
    Ok(Exit::Done)
}

fn text(explain: &Explain, now: Timestamp, colour: bool) -> String {
    let subject = match &explain.task_id {
        Some(task) => task_label(task, explain.map_index, None),
        None => explain.run_id.clone().unwrap_or_else(|| explain.dag_id.clone()),
    };
    let since = match &explain.since {
        Some(at) => format!(" since {} ({})", clock(Some(at), now), age(Some(at), now)),
        None => String::new(),
    };
    let head = Paint::Strong.apply(&format!("{subject} is {}{since}", explain.state), colour);
    let mut text = format!("{head}\n");
    if !explain.summary.is_empty() {
        text.push_str(&format!("{}\n", explain.summary));
    }
    for gate in &explain.gates {
        text.push_str(&gate_text(gate, colour));
    }
    if let Some(next) = &explain.next {
        text.push_str(&format!("next: {next}\n"));
    }
    text
}

fn gate_text(gate: &Gate, colour: bool) -> String {
    let (icon, paint) = match gate.status {
        GateStatus::Passed => ("✔", Paint::Good),
        GateStatus::Blocking => ("✘", Paint::Bad),
        GateStatus::NotReached => ("·", Paint::Dim),
    };
    let mut text = format!("  {}\n", paint.apply(&format!("{icon} {}", gate.text), colour));
    for holder in &gate.holders {
        text.push_str(&format!("      {holder}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_blocking_gate_stands_out_with_its_holders() {
        let gate = |code: &str, status, text: &str, holders: &[&str]| Gate {
            code: code.into(),
            status,
            text: text.into(),
            holders: holders.iter().map(|h| (*h).into()).collect(),
        };
        let explain = Explain {
            dag_id: "sales_daily".into(),
            run_id: Some("r".into()),
            task_id: Some("load".into()),
            map_index: -1,
            state: "scheduled".into(),
            since: Some("2026-09-22T05:10:04.000Z".into()),
            summary: String::new(),
            gates: vec![
                gate("run_running", GateStatus::Passed, "run is running", &[]),
                gate(
                    "pool_full",
                    GateStatus::Blocking,
                    "pool `warehouse` 8/8 slots; needs 2",
                    &["held by etl_hourly/load ×3 (6 slots, oldest 14m)"],
                ),
                gate("worker", GateStatus::NotReached, "a worker takes it", &[]),
            ],
            next: Some("free 2 slots, or  fencepost pools set warehouse 10".into()),
        };
        let now = "2026-09-22T05:13:16Z".parse().unwrap();
        insta::assert_snapshot!(text(&explain, now, false), @r"
        load is scheduled since 05:10:04 (3m12s)
          ✔ run is running
          ✘ pool `warehouse` 8/8 slots; needs 2
              held by etl_hourly/load ×3 (6 slots, oldest 14m)
          · a worker takes it
        next: free 2 slots, or  fencepost pools set warehouse 10
        ");
    }
}
