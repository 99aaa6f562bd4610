//! Tries, losses, poison: who pays, and when the next attempt comes.

use crate::world::{Act, World, exit, gone, stay};
use fencepost_core::time::Span;
use fencepost_core::verdict::{Asked, Death, Ending, Unusable};

const ONE: &str = "
dag_id: d
tasks:
  t: {run: x, retries: 2, retry_delay: 5m, infra_retries: 4}
";

fn ends(ending: Ending) -> Act {
    Act { ending: Some(ending), ..stay() }
}

#[tokio::test]
async fn a_retry_comes_at_its_time_and_not_before() {
    let mut world = World::of(&[ONE]).await;
    world.script(|what| exit(u8::from(what.try_number < 3)));
    world.trigger("d", "r").await;
    world.settle().await;
    let due = world.ti("d", "r", "t").await.retry_at.unwrap();
    assert_eq!(due.since(world.now()), Span::from_mins(5));
    world.pass_time(Span::from_micros(Span::from_mins(5).as_micros() - 1));
    let turn = world.settle().await;
    assert_eq!(turn.next_due, Some(due));
    assert_eq!(world.machine.order().len(), 1);
    world.pass_time(Span::from_micros(1));
    world.settle().await;
    assert_eq!(world.machine.order().len(), 2);
    world.finish().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "failed user, failed user, success none");
}

#[tokio::test]
async fn the_tries_end_with_the_budget() {
    let mut world = World::of(&[ONE]).await;
    world.script(|_| exit(1));
    world.trigger("d", "r").await;
    world.finish().await;
    assert_eq!(world.why("d", "r", "t").await, "failed (exit)");
    assert_eq!(world.outcomes("d", "r", "t").await, "failed user, failed user, failed user");
    let tries: Vec<u32> =
        world.attempts("d", "r", "t").await.iter().map(|a| a.try_number).collect();
    assert_eq!(tries, [1, 2, 3]);
}

#[tokio::test]
async fn after_an_outage_the_oldest_timer_comes_first_and_each_once() {
    let text = "
dag_id: d
tasks:
  slow: {run: x, retries: 1, retry_delay: 30m}
  fast: {run: x, retries: 1, retry_delay: 10m}
  mid: {run: x, retries: 1, retry_delay: 20m}
";
    let mut world = World::of(&[text]).await;
    world.script(|what| exit(u8::from(what.attempt == 1)));
    world.trigger("d", "r").await;
    world.settle().await;
    world.pass_time(Span::from_hours(9));
    world.restart().await;
    world.settle().await;
    let back = |e: &fencepost_store::query::event::Logged| {
        e.from.as_deref() == Some("up_for_retry") && e.to.as_deref() == Some("scheduled")
    };
    let order: Vec<String> =
        world.events().await.into_iter().filter(back).map(|e| e.task_id.unwrap()).collect();
    assert_eq!(order, ["fast", "mid", "slow"]);
    assert_eq!(world.machine.order().len(), 6);
}

#[tokio::test]
async fn a_clock_that_goes_back_brings_no_retry_early_and_loses_none() {
    let mut world = World::of(&[ONE]).await;
    world.script(|what| exit(u8::from(what.attempt == 1)));
    world.trigger("d", "r").await;
    world.settle().await;
    world.pass_time(Span::from_hours(-2));
    world.settle().await;
    assert_eq!(world.machine.order().len(), 1);
    world.finish().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "failed user, success none");
}

#[tokio::test]
async fn the_policy_goes_before_the_budget() {
    let text = "
dag_id: d
tasks:
  t:
    run: x
    retries: 3
    retry_delay: 5m
    retry_policy:
      - {exit_codes: [64], action: fail, reason: bad data}
      - {exit_codes: [75], action: retry, delay: 10m}
";
    let mut world = World::of(&[text]).await;
    world.script(|what| exit(if what.attempt == 1 { 75 } else { 64 }));
    world.trigger("d", "r").await;
    world.settle().await;
    let due = world.ti("d", "r", "t").await.retry_at.unwrap();
    assert_eq!(due.since(world.now()), Span::from_mins(10));
    world.finish().await;
    assert_eq!(world.why("d", "r", "t").await, "failed (bad data)");
    assert_eq!(world.machine.order().len(), 2);
}

#[tokio::test]
async fn a_lost_attempt_is_replaced_at_once_and_never_costs_a_try() {
    let mut world = World::of(&[ONE]).await;
    world.script(|what| if what.attempt <= 2 { gone() } else { exit(0) });
    world.trigger("d", "r").await;
    world.settle().await;
    assert_eq!(world.shown("d", "r").await, "success: t success");
    assert_eq!(world.outcomes("d", "r", "t").await, "lost infra, lost infra, success none");
    let attempts = world.attempts("d", "r", "t").await;
    assert!(attempts.iter().all(|a| a.try_number == 1));
    assert_eq!(attempts[1].replaces, Some(attempts[0].token));
    assert_eq!(attempts[1].prev_outcome, "lost");
}

#[tokio::test]
async fn three_single_deaths_are_poison_whatever_the_budget_says() {
    let mut world = World::of(&[ONE]).await;
    world.script(|_| gone());
    world.trigger("d", "r").await;
    world.settle().await;
    assert_eq!(world.why("d", "r", "t").await, "held (poison)");
    assert_eq!(world.outcomes("d", "r", "t").await, "lost infra, lost infra, lost infra");
    assert_eq!(world.run("d", "r").await.state.as_str(), "running");
    assert_eq!(world.pools().await["default_pool"].held, 0);
}

#[tokio::test]
async fn the_infra_budget_ends_in_a_failure_and_leaves_the_tries_alone() {
    let text = "
dag_id: d
tasks:
  t: {run: x, retries: 2, infra_retries: 2}
";
    let mut world = World::of(&[text]).await;
    world.script(|_| ends(Ending::Gone(Death::Orderly)));
    world.trigger("d", "r").await;
    world.finish().await;
    assert_eq!(world.why("d", "r", "t").await, "failed (infra_retries_spent)");
    assert_eq!(world.outcomes("d", "r", "t").await, "lost infra, lost infra, lost infra");
    assert_eq!(world.ti("d", "r", "t").await.try_number, 1);
}

/// 0 is a number, and not "as usual".
#[tokio::test]
async fn budgets_of_nothing_are_spent_at_the_first_loss() {
    let text = "
dag_id: d
tasks:
  t: {run: x, retries: 0, infra_retries: 0}
";
    let mut world = World::of(&[text]).await;
    world.script(|_| gone());
    world.trigger("d", "r").await;
    world.finish().await;
    assert_eq!(world.why("d", "r", "t").await, "failed (infra_retries_spent)");
    assert_eq!(world.machine.order().len(), 1);
}

#[tokio::test]
async fn a_loss_with_on_lost_fail_fails_at_once() {
    let text = "
dag_id: d
tasks:
  t: {run: x, retries: 2, on_lost: fail}
";
    let mut world = World::of(&[text]).await;
    world.script(|_| gone());
    world.trigger("d", "r").await;
    world.finish().await;
    assert_eq!(world.why("d", "r", "t").await, "failed (lost)");
}

#[tokio::test]
async fn losses_and_failures_mixed_pay_from_their_own_budgets() {
    let mut world = World::of(&[ONE]).await;
    world.script(|what| match what.attempt {
        1 | 3 => exit(1),
        2 | 4 => ends(Ending::Gone(Death::Orderly)),
        _ => exit(0),
    });
    world.trigger("d", "r").await;
    world.finish().await;
    assert_eq!(
        world.outcomes("d", "r", "t").await,
        "failed user, lost infra, failed user, lost infra, success none"
    );
    let told: Vec<String> =
        world.machine.ledger.iter().map(|(_, what)| what.prev_outcome.clone()).collect();
    assert_eq!(told, ["first", "failed", "lost", "failed", "lost"]);
}

#[tokio::test]
async fn what_no_try_would_mend_fails_at_once() {
    for (ending, reason) in [
        (Ending::CouldNotExec(127), "could_not_exec"),
        (Ending::Unusable(Unusable::Template), "template_error"),
        (Ending::Unusable(Unusable::Outputs), "outputs_invalid"),
    ] {
        let mut world = World::of(&[ONE]).await;
        world.script(move |_| ends(ending.clone()));
        world.trigger("d", "r").await;
        world.finish().await;
        assert_eq!(world.why("d", "r", "t").await, format!("failed ({reason})"));
        assert_eq!(world.machine.order().len(), 1);
    }
}

#[tokio::test]
async fn the_result_file_decides_over_the_exit_code() {
    let asked = [
        (Asked::Success, "success (result_file)", 1),
        (Asked::Skip, "skipped (result_file)", 1),
        (Asked::Fail, "failed (result_file)", 1),
        (Asked::Retry { after: Some(Span::from_secs(7)) }, "failed (result_file)", 3),
    ];
    for (asked, end, starts) in asked {
        let mut world = World::of(&[ONE]).await;
        let wanted = asked.clone();
        world.script(move |_| Act { asked: Some(wanted.clone()), ..exit(3) });
        world.trigger("d", "r").await;
        world.finish().await;
        assert_eq!(world.why("d", "r", "t").await, end);
        assert_eq!(world.machine.order().len(), starts);
    }
}
