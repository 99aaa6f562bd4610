//! `fencepost doctor`: the audit of all invariants.

use crate::cx::Cx;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::output::paint::Paint;
use crate::output::typed;
use clap::Args;
use fencepost_api::rest::{Doctor, routes};

/// Check every promise against what is stored
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  fencepost doctor            exit 1 if something is wrong")]
pub(crate) struct DoctorArgs {}

/// Prints what was checked and what is wrong.
pub(super) fn run(cx: &Cx, _args: DoctorArgs) -> Outcome {
    let client = cx.client()?;
    let answer = client.get(routes::DOCTOR, &[], &())?;
    let doctor: Doctor = typed(answer.clone())?;
    let exit = if doctor.violations.is_empty() { Exit::Done } else { Exit::Unexpected };
    if !cx.out.data(&answer)? {
        cx.out.print(&text(&doctor, cx.out.colour()))?;
    }
    Ok(exit)
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
