//! `fencepost doctor`: the audit of all invariants.

use super::look;
use crate::client::Client;
use crate::cx::Cx;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::output::paint::Paint;
use crate::output::typed;
use clap::Args;
use fencepost_api::rest::{Doctor, routes};
use fencepost_server::rest::doctor_report;

/// Check every promise against what is stored
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  fencepost doctor            exit 1 if something is wrong
  fencepost doctor --store sqlite:/var/lib/fencepost/fencepost.db    without a server")]
pub(crate) struct DoctorArgs {
    /// Look into this store itself (sqlite:PATH or postgres://...); no server is asked. Without it the
    /// configured store is read where no server answers
    #[arg(long, value_name = "URL")]
    store: Option<String>,
}

/// Prints what was checked and what is wrong.
pub(super) fn run(cx: &Cx, args: &DoctorArgs) -> Outcome {
    let there = |client: &Client| client.get(routes::DOCTOR, &[], &());
    let (answer, _) = look::ask(cx, args.store.as_ref(), there, examine)?;
    let doctor: Doctor = typed(answer.clone())?;
    let exit = if doctor.violations.is_empty() { Exit::Done } else { Exit::Unexpected };
    if !cx.out.data(&answer)? {
        cx.out.print(&text(&doctor, cx.out.colour()))?;
    }
    Ok(exit)
}

/// The audit by this process.
async fn examine(engine: fencepost_engine::Cx) -> Outcome<serde_json::Value> {
    let found = fencepost_engine::doctor::examine(&engine).await;
    let found = found.map_err(|error| look::failed(&error))?;
    let report = doctor_report(found, engine.store.clock().now());
    serde_json::to_value(report).map_err(|error| look::failed(&error))
}

fn text(doctor: &Doctor, colour: bool) -> String {
    let Doctor { runs_checked, attempts_checked, violations, remarks, .. } = doctor;
    let mut text = format!("{runs_checked} runs, {attempts_checked} attempts checked\n");
    for found in violations {
        let head = Paint::Bad.apply(&format!("✘ {}", found.invariant), colour);
        text.push_str(&format!("{head}  {}  {}\n", found.sentence, found.subject));
        text.push_str(&format!("      {}\n", found.detail));
    }
    for remark in remarks {
        text.push_str(&format!("{}  {remark}\n", Paint::Waiting.apply("!", colour)));
    }
    text.push_str(&match violations.len() {
        0 => format!("{}\n", Paint::Good.apply("✔ no violations", colour)),
        1 => "1 violation\n".into(),
        count => format!("{count} violations\n"),
    });
    text
}
