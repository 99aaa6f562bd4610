//! `fencepost demo`: the incidents that other schedulers have, live and on this machine.

mod stage;

use crate::clock::pause;
use crate::cx::Cx;
use crate::error::Outcome;
use crate::exit::Exit;
use clap::Subcommand;
use stage::Stage;
use std::time::Duration;

/// See what a crash does here
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  fencepost demo crash")]
pub(crate) enum Demo {
    /// A worker is killed -9 while its tasks run, and then one of its tasks' supervisors
    #[command(after_help = "\
Everything happens in a folder of its own that is removed at the end; about 30 seconds.

Example:
  fencepost demo crash")]
    Crash,
    /// Everything dies between the charge and the driver: no order is lost, none is charged twice
    #[command(after_help = "\
Everything happens in a folder of its own that is removed at the end; about 20 seconds.

Example:
  fencepost demo pizza")]
    Pizza,
}

/// The pipeline of the demo: three payments that must each be made once, and a report.
const DAG: &str = r#"description: Three payments that must each be made exactly once.
tasks:
  charge:
    expand: {order: [49201, 49202, 49203]}
    map_index_template: "{{ order }}"
    run: |
      echo "begin order $FENCEPOST_MAP_ORDER token $FENCEPOST_FENCING_TOKEN" >> "LEDGER"
      for step in 1 2 3 4 5 6 7 8; do echo "charging, step $step of 8"; sleep 1; done
      echo "charged order $FENCEPOST_MAP_ORDER token $FENCEPOST_FENCING_TOKEN" >> "LEDGER"
  pack:
    depends_on: [charge]
    run: |
      if [ "$FENCEPOST_PREV_OUTCOME" = first ]; then sleep 600; fi
      echo "packed token $FENCEPOST_FENCING_TOKEN" >> "LEDGER"
  report:
    depends_on: [pack]
    run: echo "three orders charged and packed"
"#;

/// One order: the bank keeps the first call with a key, as payment services do.
const PIZZA: &str = r#"description: "One order: charge, bake, deliver."
tasks:
  charge:
    run: |
      echo "charging, token $FENCEPOST_FENCING_TOKEN" >> "LEDGER"
      sleep 3
      if mkdir "LEDGER.$FENCEPOST_IDEMPOTENCY_KEY"; then echo "CHARGED 12.50" >> "LEDGER"; fi
  kitchen:
    depends_on: [charge]
    run: |
      echo "baking, token $FENCEPOST_FENCING_TOKEN" >> "LEDGER"
      sleep 3
  driver:
    depends_on: [kitchen]
    run: |
      echo "DELIVERED" >> "LEDGER"
"#;

pub(super) fn run(cx: &Cx, demo: &Demo) -> Outcome {
    match demo {
        Demo::Crash => crash(cx),
        Demo::Pizza => pizza(cx),
    }
}

fn pizza(cx: &Cx) -> Outcome {
    let mut stage = Stage::set(cx, PIZZA)?;
    stage.say("1. An order comes in, and the bank is being asked.");
    stage.raise()?;
    stage.trigger()?;
    stage.wait_for_ledger(1)?;
    stage.show(&["ps"])?;

    stage.say("2. kill -9, between the charge and everything after it. Nobody is left to call the kitchen.");
    let pid = stage.kill()?;
    stage.note(&format!(
        "process {pid} was killed. The bank answers meanwhile, and nobody is there:"
    ));
    stage.wait_for_ledger(2)?;
    stage.ledger()?;
    stage.note("Elsewhere this order now says \"preparing\" for ever, or is charged again.");

    stage.say(
        "3. It starts again. The charge is known, as the same attempt, and the kitchen is called.",
    );
    stage.raise()?;
    stage.wait_for_ledger(3)?;
    stage.show(&["tasks", "attempts", "demo", "@latest", "charge"])?;

    stage.say("4. The oven's supervisor is killed -9 too: what is lost is baked again, and delivered once.");
    let shim = stage.kill_shim("kitchen")?;
    stage.note(&format!("shim {shim} was killed, and the kernel ended the task's tree with it."));
    stage.follow()?;
    stage.show(&["tasks", "attempts", "demo", "@latest", "kitchen"])?;

    stage.say("5. What happened outside: charged once, delivered once.");
    stage.ledger()?;
    stage.show(&["doctor"])?;
    stage.strike()?;
    Ok(Exit::Done)
}

fn crash(cx: &Cx) -> Outcome {
    let mut stage = Stage::set(cx, DAG)?;
    stage.say("1. A worker starts, and three payments run (8 s each).");
    stage.raise()?;
    stage.trigger()?;
    stage.wait_for_ledger(3)?;
    stage.show(&["ps"])?;

    stage.say("2. kill -9: the whole process, scheduler, worker and server, is gone at once.");
    let pid = stage.kill()?;
    stage.note(&format!("process {pid} was killed; whoever asks it now gets no answer:"));
    stage.show(&["ps"])?;
    stage.note("Its tasks did not notice: each has a shim of its own that holds its processes.");
    stage.processes()?;
    pause(Duration::from_secs(3));

    stage.say("3. It starts again with the same home, and finds them.");
    stage.raise()?;
    stage.show(&["ps"])?;
    stage.note("Same attempts, same tokens. What it did is in the events:");
    stage.wait_for_event("reattached")?;
    stage.show_matching(&["events", "demo", "@latest"], "reattached")?;
    stage.wait_for_ledger(6)?;
    stage.ledger()?;

    stage.say("4. Now the supervisor of `pack` is killed -9: its work is truly lost.");
    let shim = stage.kill_shim("pack")?;
    stage.note(&format!("shim {shim} was killed, and the kernel ended the task's tree with it."));
    stage.follow()?;
    stage.show(&["tasks", "attempts", "demo", "@latest", "pack"])?;
    stage.note(
        "The loss is on the platform's account (infra), the user's retries are untouched, and the \
         replacement has a higher token: a late write of the first could be told from it.",
    );

    stage.say("5. What happened outside: every payment once.");
    stage.ledger()?;
    stage.show(&["doctor"])?;
    stage.strike()?;
    Ok(Exit::Done)
}
