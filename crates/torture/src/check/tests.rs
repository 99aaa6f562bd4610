//! What the checker must reject, and that it does not reject what is well.

use super::{Facts, Promise, Settled, Verdict, judge};
use crate::clock::{MS, SECOND};
use crate::dags::{EVERY_S, FLAKY, SCHEDULED};
use crate::dump::{Attempt, Instance, Job, Run};
use crate::ledger::{Deed, Line, TiKey};
use crate::record::{Done, Instants, Trigger};
use crate::sink::{Mark, Step};

/// The store's clock is the boot-time clock here.
fn us(ns: u64) -> i64 {
    i64::try_from(ns / 1_000).unwrap()
}

fn ti() -> TiKey {
    TiKey { dag: "graph".into(), run: "r1".into(), task: "t".into() }
}

/// A world in which attempt 5 of `graph/r1/t` died and attempt 7 succeeded, and nothing is wrong.
struct World(Facts);

impl World {
    fn sound() -> Self {
        let clocks = super::Clocks(vec![Instants { boot_ns: 0, wall_us: 0 }]);
        let settled = Settled { quiet_from: 100 * SECOND, audit: None, ttl_ns: 6 * SECOND };
        let mut world = Self(Facts { clocks, settled, ..Facts::default() });
        world.run("graph", "r1", "success");
        world.executes(5, SECOND, None);
        world.executes(7, 10 * SECOND, Some(0));
        world.attempt(5, 9 * SECOND, "lost", Some("expiry"));
        world.attempt(7, 13 * SECOND, "success", None);
        world.instance("graph", "success", 7);
        let mark = |step, token, at| Mark { step, token, at };
        world.0.fenced.push((
            ti(),
            vec![
                mark(Step::Raise, 5, SECOND),
                mark(Step::Raise, 7, 10 * SECOND),
                mark(Step::Write, 7, 12 * SECOND),
            ],
        ));
        world.job("lost", 2 * SECOND, 9 * SECOND);
        world.fault("shim-kill", 3_050 * MS, 3_060 * MS);
        world
    }

    fn run(&mut self, dag: &str, run: &str, state: &str) -> &mut Run {
        let kind = if dag == SCHEDULED { "scheduled" } else { "manual" };
        self.0.runs.push(Run {
            dag_id: dag.into(),
            run_id: run.into(),
            run_type: kind.into(),
            state: state.into(),
            logical_date: None,
        });
        self.0.runs.last_mut().unwrap()
    }

    fn line(&mut self, token: i64, at: u64, deed: Deed) {
        self.0.ledger.push(Line { token, at, pid: 2, deed });
    }

    /// It begins, ticks for two seconds, and ends with a status or without.
    fn executes(&mut self, token: i64, at: u64, status: Option<u8>) {
        self.line(token, at, Deed::Begin { ti: ti(), tries: 1 });
        for n in 1..=20 {
            self.line(token, at + n * 100 * MS, Deed::Tick);
        }
        if let Some(status) = status {
            self.line(token, at + 2_010 * MS, Deed::End { status });
        }
    }

    fn attempt(&mut self, token: i64, ended: u64, outcome: &str, evidence: Option<&str>) {
        let TiKey { dag, run, task } = ti();
        self.0.attempts.push(Attempt {
            token,
            dag_id: dag,
            run_id: run,
            task_id: task,
            state: "ended".into(),
            outcome: Some(outcome.into()),
            ended_at: Some(us(ended)),
            evidence: evidence.map(Into::into),
            ..Attempt::default()
        });
    }

    fn instance(&mut self, dag: &str, state: &str, token: i64) -> &mut Instance {
        let TiKey { run, task, .. } = ti();
        self.0.instances.push(Instance {
            dag_id: dag.into(),
            run_id: run,
            task_id: task,
            state: state.into(),
            token,
            try_number: 1,
            infra_losses: 1,
            ..Instance::default()
        });
        self.0.instances.last_mut().unwrap()
    }

    fn job(&mut self, state: &str, renewed: u64, ended: u64) {
        self.0.jobs.push(Job {
            job_id: "j".into(),
            kind: "worker".into(),
            name: "w1".into(),
            state: state.into(),
            lease_ttl: Some(us(6 * SECOND)),
            renewed_at: us(renewed),
            ended_at: Some(us(ended)),
        });
    }

    fn fault(&mut self, kind: &str, began: u64, ended: u64) {
        let (kind, target) = (kind.into(), "store".into());
        let (span_ms, running, trouble) = ((ended - began) / MS, 10, None);
        self.0.faults.push(Done { kind, target, span_ms, began, ended, running, trouble });
    }

    fn verdict(&self) -> Verdict {
        judge(&self.0)
    }

    /// Exactly this promise is broken, and the text says by what.
    fn is_rejected(&self, promise: Promise, text: &str) {
        let verdict = self.verdict();
        assert!(!verdict.violations.is_empty(), "nothing is rejected");
        for found in &verdict.violations {
            assert_eq!(found.promise, promise, "{}", found.text);
        }
        let texts: Vec<&str> = verdict.violations.iter().map(|v| v.text.as_str()).collect();
        assert!(texts.iter().any(|found| found.contains(text)), "{texts:?}");
    }
}

#[test]
fn a_loss_that_was_recovered_is_no_violation() {
    let verdict = World::sound().verdict();
    assert_eq!(verdict.violations, []);
    // From the last sign at 3 s to the next at 10 s, in leases of 6 s.
    assert_eq!(verdict.recovery.len(), 1);
    assert!((verdict.recovery[0] - 7.0 / 6.0).abs() < 1e-9);
    let text = verdict.to_string();
    for promise in Promise::ALL {
        assert!(text.contains(&format!("  {:<42} {:>8}", promise.as_str(), 0)), "{text}");
    }
}

#[test]
fn races_of_a_result_with_the_declaration_of_its_job_are_counted_either_way() {
    let mut world = World::sound();
    world.0.attempts[0].job_id = Some("j".into());
    let counted = |world: &World, name: &str| {
        world.verdict().counts.get(&("recovery", name.to_owned())).copied().unwrap_or(0)
    };
    let refused = "results refused after the declaration";
    assert_eq!(counted(&world, refused), 0);
    let event = crate::dump::Event { kind: "write_refused".into(), token: 5, ..Default::default() };
    world.0.events.push(event);
    assert_eq!(counted(&world, refused), 1);
    let taken = "results taken though their job was declared";
    assert_eq!(counted(&world, taken), 0);
    world.0.attempts[0].evidence = Some("self_fence".into());
    assert_eq!((counted(&world, taken), counted(&world, refused)), (1, 0));
}

#[test]
fn a_run_that_never_ends_is_lost() {
    let mut world = World::sound();
    world.run("graph", "r2", "running");
    world.is_rejected(Promise::Lost, "graph/r2 is still running");
}

#[test]
fn a_success_without_a_complete_execution_is_lost_work() {
    let mut world = World::sound();
    world.0.ledger.retain(|line| line.deed != Deed::End { status: 0 });
    world.is_rejected(Promise::Lost, "graph/r1/t is a success of attempt 7");
}

#[test]
fn an_acknowledged_trigger_is_not_forgotten_but_with_a_lost_store() {
    let mut world = World::sound();
    let acknowledged = Some(50 * SECOND);
    world.0.triggers.push(Trigger { dag: "graph".into(), run: "r9".into(), acknowledged });
    world.is_rejected(Promise::Lost, "graph/r9 was acknowledged");
    world.fault("promotion", 49 * SECOND, 51 * SECOND);
    assert_eq!(world.verdict().violations, []);
    world.0.faults.pop();
    world.0.triggers[0].acknowledged = None;
    assert_eq!(world.verdict().violations, [], "nobody was told that it was made");
}

#[test]
fn a_slot_that_never_came_is_lost_and_one_that_came_twice_is_a_duplicate() {
    let mut world = World::sound();
    for (n, run) in [(1, "a"), (2, "b"), (3, "c")] {
        world.run(SCHEDULED, run, "success").logical_date = Some(n * EVERY_S * 1_000_000);
    }
    assert_eq!(world.verdict().violations, []);
    world.0.runs.last_mut().unwrap().logical_date = Some(4 * EVERY_S * 1_000_000);
    world.is_rejected(Promise::Lost, "no slot between");
    world.0.runs.last_mut().unwrap().logical_date = Some(2 * EVERY_S * 1_000_000);
    world.is_rejected(Promise::DuplicateRun, "has the runs b, c");
}

#[test]
fn a_tick_after_the_successor_began_is_an_overlap() {
    let mut world = World::sound();
    world.0.attempts.remove(0);
    world.line(5, 10 * SECOND + MS, Deed::Tick);
    world.is_rejected(Promise::Overlap, "attempt 7 began 1 ms before the last sign of 5");
}

#[test]
fn an_attempt_that_is_executed_twice_is_an_overlap() {
    let mut world = World::sound();
    world.line(7, 11 * SECOND, Deed::Begin { ti: ti(), tries: 1 });
    world.is_rejected(Promise::Overlap, "attempt 7 was executed 2 times");
}

#[test]
fn a_write_that_the_sink_took_from_an_older_attempt_is_late() {
    let mut world = World::sound();
    let late = Mark { step: Step::Write, token: 5, at: 11 * SECOND };
    world.0.fenced[0].1.push(late);
    world.is_rejected(Promise::LateWrite, "the write of 5 was taken after 7 had begun");
    // Also if the newer one never came to the sink.
    world.0.fenced[0].1 = vec![late];
    world.is_rejected(Promise::LateWrite, "the write of 5 was taken after 7 had begun");
}

#[test]
fn a_result_of_an_older_attempt_is_late_and_so_is_a_token_that_falls() {
    let mut world = World::sound();
    let attempt = &mut world.0.attempts[0];
    attempt.outcome = Some("success".into());
    attempt.ended_at = Some(us(11 * SECOND));
    world.is_rejected(Promise::LateWrite, "success of 5 was taken after 7 had begun");
    world.fault("promotion", 10 * SECOND, 11 * SECOND);
    world.is_rejected(Promise::LateWrite, "success of 5 was taken after 7 had begun");
    // The store that took it has never heard of the newer one.
    world.0.attempts.pop();
    assert_eq!(world.verdict().violations, []);
    let mut world = World::sound();
    world.executes(3, 20 * SECOND, None);
    world.is_rejected(Promise::LateWrite, "attempt 3 began after 7");
}

#[test]
fn an_attempt_that_is_closed_while_it_lives_is_a_false_death() {
    let mut world = World::sound();
    world.0.attempts[0].ended_at = Some(us(2 * SECOND));
    world.is_rejected(Promise::FalseDeath, "attempt 5 was closed (expiry) 1000 ms before");
}

#[test]
fn a_job_that_has_just_beaten_is_not_lost() {
    let mut world = World::sound();
    world.job("lost", 8 * SECOND, 13 * SECOND);
    world.is_rejected(Promise::FalseDeath, "declared lost 5000 ms after an acknowledged beat");
}

#[test]
fn after_an_outage_everybody_has_a_whole_lease_to_be_heard() {
    for (kind, is_outage) in [("store-stop", true), ("servers-away", true), ("cpu-busy", false)] {
        let mut world = World::sound();
        world.job("lost", 20 * SECOND, 32 * SECOND);
        world.fault(kind, 20 * SECOND, 28 * SECOND);
        if is_outage {
            world.is_rejected(
                Promise::FalseDeath,
                "declared lost 4000 ms after the end of an outage",
            );
            world.0.jobs.last_mut().unwrap().ended_at = Some(us(34 * SECOND + SECOND));
        }
        assert_eq!(world.verdict().violations, [], "{kind}");
    }
}

#[test]
fn more_executions_than_the_budgets_allow_are_a_violation() {
    let mut world = World::sound();
    for n in 0..5 {
        let at = (20 + 5 * u64::try_from(n).unwrap()) * SECOND;
        world.executes(20 + n, at, None);
    }
    world.is_rejected(Promise::Budget, "was executed 7 times, 6 are allowed");
    world.0.instances[0].clears = 1;
    world.0.instances[0].try_number = 2;
    assert_eq!(world.verdict().violations, []);
}

#[test]
fn a_loss_costs_no_retry_and_nothing_fails_for_nothing() {
    let mut world = World::sound();
    world.0.instances[0].try_number = 2;
    world.is_rejected(Promise::Budget, "at try 2 after 0 failures");
    let mut world = World::sound();
    world.0.instances[0].state = "failed".into();
    world.is_rejected(Promise::Budget, "failed () after 0 failures and 1 losses");
    world.0.instances[0].infra_losses = 5;
    assert_eq!(world.verdict().violations, [], "the platform's budget is spent");
    let mut world = World::sound();
    world.instance(FLAKY, "failed", 0);
    world.is_rejected(Promise::Budget, "flaky/r1/t failed");
}

#[test]
fn what_nothing_can_have_cost_is_not_run_again() {
    let mut world = World::sound();
    world.0.faults.clear();
    world.is_rejected(Promise::Rerun, "attempt 5 ended at 3000, and no fault can have cost it");
    world.fault("scheduler-kill", SECOND, 3 * SECOND);
    world.fault("worker-stop", SECOND, 2 * SECOND);
    world.is_rejected(Promise::Rerun, "attempt 5");
    world.fault("worker-stop", SECOND, 4 * SECOND);
    assert_eq!(world.verdict().violations, [], "longer than the fence allows");
    let mut world = World::sound();
    world.0.faults.clear();
    // Another process did not tick for two seconds: it had no processor.
    world.line(9, SECOND, Deed::Tick);
    world.line(9, 3 * SECOND, Deed::Tick);
    assert_eq!(world.verdict().violations, []);
}

#[test]
fn what_a_person_cancelled_fails_for_that() {
    let mut world = World::sound();
    world.0.instances[0].state = "failed".into();
    world.0.runs[0].state = "cancelled".into();
    assert_eq!(world.verdict().violations, []);
}

#[test]
fn a_process_that_is_left_and_a_bad_record_are_violations() {
    let mut world = World::sound();
    world.executes(99, 101 * SECOND, None);
    world.0.ledger.retain(|line| line.token != 99 || line.deed == Deed::Tick);
    world.is_rejected(Promise::Leftover, "a process of attempt 99");
    let mut world = World::sound();
    world.0.bad.push("ledger: `half`".into());
    world.is_rejected(Promise::Audit, "half");
}
