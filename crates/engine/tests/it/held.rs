//! Lost work that stays open: `on_lost: hold`, `replace: after_confirmed_dead`; and who pays for what.

use crate::inventories::inventory;
use crate::world::{Act, SCAN, TTL, Worker, World, end_report, exit, stay};
use fencepost_core::id::Token;
use fencepost_core::state::{AttemptState, TiState};
use fencepost_core::time::Span;
use fencepost_core::verdict::{Death, Ending};
use fencepost_engine::explain::explain;
use fencepost_engine::operations::Answer;
use fencepost_engine::operations::beat::take;
use fencepost_engine::operations::confirm_dead::confirm_dead;
use fencepost_engine::operations::held::{Decision, Resolve, resolve};
use fencepost_engine::operations::register::leave;
use fencepost_engine::operations::report::report;
use fencepost_engine::operations::run_control::AttemptRef;
use fencepost_store::query::pool;

const HOLD: &str = "
dag_id: d
tasks:
  t: {run: x, on_lost: hold}
";
const CONFIRMED: &str = "
dag_id: d
tasks:
  t: {run: x, replace: after_confirmed_dead}
";
const KEPT: &str = "
dag_id: d
tasks:
  t: {run: x, replace: after_confirmed_dead, on_disconnect: keep}
";
const PLAIN: &str = "
dag_id: d
tasks:
  t: {run: x, infra_retries: 9}
";

/// A world whose only worker ran `t` and was declared lost; the token, and a second worker.
async fn lost(file: &str) -> (World, Token) {
    let mut world = World::shared(&[file], &["one"], 1).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    let token = world.machine.token_of("t");
    world.workers[0].is_paused = true;
    world.workers.push(Worker::leased("two", 8));
    world.until_lost(world.workers[0].job.unwrap()).await;
    world.script(|_| exit(0));
    world.settle().await;
    (world, token)
}

async fn end(world: &World, token: Token, by: usize, ending: Ending) -> Answer {
    let act = Act { ending: Some(ending), ..stay() };
    let job = world.workers[by].job.unwrap();
    let said = end_report(token, &act).unwrap();
    report(&world.cx, job, vec![said]).await.unwrap().remove(0)
}

async fn confirmed(world: &World, token: Token) {
    confirm_dead(&world.cx, &AttemptRef::Token(token), "anna", None).await.unwrap();
}

#[tokio::test]
async fn a_held_task_waits_for_a_person_and_holds_no_slots() {
    let (mut world, token) = lost(HOLD).await;
    world.live(TTL.times(3)).await;
    assert_eq!(world.why("d", "r", "t").await, "held (awaiting_person)");
    let told = explain(&world.cx, "d", "r", Some(("t", None))).await.unwrap();
    assert!(told.gates.iter().any(|gate| gate.code == "held_lost"), "{:?}", told.gates);
    assert_eq!(world.attempt(token).await.state, AttemptState::LostOpen);
    let lines = world.events().await;
    let held: Vec<_> = lines.iter().filter(|line| line.kind == "held").collect();
    assert_eq!(held.len(), 1);
    assert_eq!(held[0].reason.as_deref(), Some("awaiting_person"));
    assert_eq!(world.pools().await["default_pool"].held, 0);
    assert_eq!(world.incidents().await[0].attempts, 1);
    // Confirmed: closed and charged, and a person decides all the same.
    confirmed(&world, token).await;
    assert_eq!(world.why("d", "r", "t").await, "held (awaiting_person)");
    assert_eq!(world.outcomes("d", "r", "t").await, "lost infra");
    world.mark("d", "r", "t", TiState::Success).await;
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "success: t success");
}

/// Slots follow the processes: what runs on without a lease has its own until its end or a decision.
#[tokio::test]
async fn what_runs_without_a_lease_holds_its_slots_until_its_end_is_known() {
    let (mut world, token) = lost(KEPT).await;
    world.live(TTL.times(3)).await;
    assert_eq!(world.why("d", "r", "t").await, "held (awaiting_evidence)");
    assert_eq!(world.pools().await["default_pool"].held, 1);
    let tx = world.cx.store.read("look").await.unwrap();
    let counted = pool::active_of_dags(&tx).await.unwrap();
    assert_eq!(counted.get("d"), None, "a held task counts in no limit of tasks");
    drop(tx);
    assert_eq!(end(&world, token, 0, Ending::Exit(0)).await, Answer::Accepted);
    assert_eq!(world.pools().await["default_pool"].held, 0);
    world.finish().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "success none");
}

#[tokio::test]
async fn a_decision_about_what_runs_without_a_lease_frees_its_slots() {
    let (mut world, token) = lost(KEPT).await;
    assert!(decided(&world, token, Decision::Failed, false).await);
    assert_eq!(world.pools().await["default_pool"].held, 0);
    assert_eq!(world.attempt(token).await.state, AttemptState::LostOpen, "it stays listed");
    world.finish().await;
    let (mut world, _) = lost(KEPT).await;
    world.cancel("d", "r").await;
    assert_eq!(world.pools().await["default_pool"].held, 0);
    world.finish().await;
}

/// Its worker watches it in the name of its next job: the server leaves it alone while it is open.
#[tokio::test]
async fn an_inventory_may_name_what_an_earlier_job_lost_and_keeps() {
    let (mut world, token) = lost(KEPT).await;
    world.workers[0].forget();
    world.workers[0].is_paused = false;
    world.settle().await;
    let job = world.workers[0].job.unwrap();
    let disowned = async |world: &World, call| {
        let beat = inventory(job, call, &[token], &[]);
        take(&world.cx, &[beat]).await.unwrap().remove(0).disowned
    };
    assert_eq!(disowned(&world, 1_001).await, []);
    confirmed(&world, token).await;
    assert_eq!(disowned(&world, 1_002).await, [token], "somebody said that it is dead");
}

#[tokio::test]
async fn its_own_late_report_settles_an_open_attempt() {
    let (mut world, token) = lost(HOLD).await;
    assert_eq!(end(&world, token, 0, Ending::Exit(0)).await, Answer::Accepted);
    world.finish().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "success none");
}

#[tokio::test]
async fn what_is_replaced_only_when_confirmed_dead_waits_for_the_word() {
    let (mut world, token) = lost(CONFIRMED).await;
    world.live(TTL.times(3)).await;
    assert_eq!(world.why("d", "r", "t").await, "held (awaiting_evidence)");
    confirmed(&world, token).await;
    world.finish().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "lost infra, success none");
}

#[tokio::test]
async fn the_next_worker_in_the_same_home_may_say_that_it_is_gone_and_no_other() {
    let (mut world, token) = lost(CONFIRMED).await;
    let gone = Ending::Gone(Death::Orderly);
    let by_other = end(&world, token, 1, gone.clone()).await;
    assert!(matches!(by_other, Answer::Refused(..)), "{by_other:?}");
    world.workers[0].forget();
    world.workers[0].is_paused = false;
    world.settle().await;
    assert_eq!(end(&world, token, 0, gone).await, Answer::Accepted);
    world.finish().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "lost infra, success none");
}

#[tokio::test]
async fn a_cancel_of_a_held_task_is_final_and_what_may_still_run_stays_listed() {
    let (mut world, token) = lost(CONFIRMED).await;
    world.cancel("d", "r").await;
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "cancelled: t skipped");
    assert_eq!(world.attempt(token).await.state, AttemptState::LostOpen);
    assert_eq!(end(&world, token, 0, Ending::Gone(Death::Orderly)).await, Answer::Accepted);
    assert_eq!(world.shown("d", "r").await, "cancelled: t skipped");
    assert_eq!(world.outcomes("d", "r", "t").await, "cancelled none");
}

#[tokio::test]
async fn a_clear_of_what_may_still_run_waits_for_the_evidence() {
    let (mut world, token) = lost(CONFIRMED).await;
    world.clear("d", "r", &[]).await;
    world.live(TTL).await;
    assert_eq!(world.ti("d", "r", "t").await.state, TiState::Held);
    confirmed(&world, token).await;
    world.finish().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "cleared none, success none");
}

#[tokio::test]
async fn a_stop_that_nobody_could_deliver_ends_with_its_reason_and_costs_nothing() {
    let mut world = World::shared(&[PLAIN], &["one"], 1).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    world.workers[0].is_paused = true;
    world.cancel("d", "r").await;
    world.until_lost(world.workers[0].job.unwrap()).await;
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "cancelled: t failed");
    assert_eq!(world.outcomes("d", "r", "t").await, "cancelled none");
}

#[tokio::test]
async fn a_detached_worker_s_work_is_recovered_and_is_no_sign_of_poison() {
    let mut world = World::shared(&[PLAIN], &["one"], 1).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    let job = world.workers[0].job.unwrap();
    leave(&world.cx, job).await.unwrap();
    world.workers[0].is_paused = true;
    world.workers.push(Worker::leased("two", 8));
    // Its shims wait for a successor as long as its lease lasts.
    world.live(TTL.over(2)).await;
    assert_eq!(world.outcomes("d", "r", "t").await, "running");
    world.script(|_| exit(0));
    world.until_lost(job).await;
    world.finish().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "lost infra, success none");
    assert_eq!(world.incidents().await[0].kind, "detached");
    assert_eq!(world.ti("d", "r", "t").await.single_deaths, 0);
}

#[tokio::test]
async fn a_detached_worker_s_successor_takes_everything_over() {
    let mut world = World::shared(&[PLAIN], &["one"], 1).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    leave(&world.cx, world.workers[0].job.unwrap()).await.unwrap();
    world.workers[0].forget();
    world.live(TTL.times(3)).await;
    assert_eq!(world.incidents().await.len(), 0);
    world.machine.finish("t", exit(0));
    world.finish().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "success none");
}

#[tokio::test]
async fn three_deaths_of_workers_that_died_alone_are_poison() {
    let mut world = World::shared(&[PLAIN], &["w0", "w1", "w2", "w3"], 1).await;
    world.script(|_| stay());
    for worker in &mut world.workers {
        worker.slots = 0;
    }
    world.trigger("d", "r").await;
    for n in 0..3 {
        // One after the other takes it and dies; the others beat.
        world.workers[n].slots = 1;
        world.settle().await;
        let job = world.workers[n].job.unwrap();
        assert_eq!(world.machine.running().len(), 1, "death {n}");
        world.workers[n].is_paused = true;
        world.until_lost(job).await;
        world.settle().await;
    }
    assert_eq!(world.why("d", "r", "t").await, "held (poison)");
    assert_eq!(world.outcomes("d", "r", "t").await, "lost infra, lost infra, lost infra");
}

#[tokio::test]
async fn many_that_fall_silent_at_once_are_braked_and_no_sign_of_poison() {
    let mut world = World::shared(&[PLAIN], &["a", "b", "c", "d"], 2).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    for worker in &mut world.workers {
        worker.is_paused = true;
    }
    let job = world.workers[0].job.unwrap();
    let took = world.until_lost(job).await;
    assert!(took >= TTL.times(2) && took <= TTL.times(2).plus(SCAN.times(6)), "{took}");
    world.live(Span::from_secs(10)).await;
    let kinds: Vec<String> = world.incidents().await.into_iter().map(|i| i.kind).collect();
    assert_eq!(kinds, ["many"; 4]);
    assert_eq!(world.ti("d", "r", "t").await.single_deaths, 0);
    let alerts = world.events().await.iter().filter(|e| e.kind == "mass_loss_braked").count();
    assert!(alerts >= 1);
}

async fn decided(world: &World, token: Token, decision: Decision, confirm_dead: bool) -> bool {
    let (attempt, by) = (AttemptRef::Token(token), "anna".to_owned());
    let request = Resolve { attempt, decision, confirm_dead, by, reason: None };
    resolve(&world.cx, &request).await.is_ok()
}

#[tokio::test]
async fn a_person_s_decision_settles_what_is_held() {
    for (decision, shown) in [
        (Decision::Success, "success: t success"),
        (Decision::Failed, "failed: t failed"),
        (Decision::Rerun, "success: t success"),
    ] {
        let (mut world, token) = lost(HOLD).await;
        assert!(decided(&world, token, decision, false).await);
        world.finish().await;
        assert_eq!(world.shown("d", "r").await, shown, "{decision:?}");
        // What was decided is not decided again.
        assert!(!decided(&world, token, Decision::Failed, false).await);
        assert_eq!(world.shown("d", "r").await, shown, "{decision:?}");
    }
}

#[tokio::test]
async fn a_rerun_waits_for_the_confirmed_death_where_the_task_wants_that() {
    let (mut world, token) = lost(CONFIRMED).await;
    assert!(decided(&world, token, Decision::Rerun, false).await);
    world.live(TTL).await;
    assert_eq!(world.ti("d", "r", "t").await.state, TiState::Held);
    assert!(decided(&world, token, Decision::Rerun, true).await);
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "success: t success");
}

#[tokio::test]
async fn a_decision_about_what_has_moved_on_stops_nothing() {
    let (mut world, token) = lost(CONFIRMED).await;
    confirmed(&world, token).await;
    world.script(|_| stay());
    world.settle().await;
    assert_eq!(world.ti("d", "r", "t").await.state, TiState::Running);
    assert!(!decided(&world, token, Decision::Failed, true).await);
    world.settle().await;
    assert_eq!(world.ti("d", "r", "t").await.state, TiState::Running);
}
