//! The audit: for each invariant that it checks, a snapshot that it must reject, made from a
//! healthy one by one change, and the nearest healthy twin, which it must accept.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use fencepost_core::audit::{
    AuditAttempt, AuditOutput, AuditPool, AuditRun, AuditTask, AuditTi, Snapshot, audit,
};
use fencepost_core::id::Token;
use fencepost_core::state::{AttemptState, CountedAs, Outcome, RunState, TiState};
use fencepost_core::trigger_rule::UpstreamCounts;

fn token(counter: u64) -> Token {
    Token::new(1, counter).unwrap()
}

fn ti(task: u32, name: &str, state: TiState) -> AuditTi {
    AuditTi {
        run: 1,
        task,
        map_index: -1,
        name: format!("d r {name}"),
        state,
        token: None,
        has_timer: false,
        forward_due: false,
        recheck: false,
        upstream: UpstreamCounts { total: u32::from(task > 0), ..UpstreamCounts::default() },
        try_number: 1,
        max_tries: 2,
        attempts: 0,
        infra_losses: 0,
        clears: 0,
        logged: None,
    }
}

fn attempt(task: u32, counter: u64, number: u32, outcome: Option<Outcome>) -> AuditAttempt {
    let state = if outcome.is_some() { AttemptState::Ended } else { AttemptState::Running };
    AuditAttempt {
        token: token(counter),
        number,
        run: 1,
        task,
        map_index: -1,
        state,
        outcome,
        counted_as: outcome.map(|_| CountedAs::None),
        owned: true,
        abandoned: false,
        started: true,
        holds: u32::from(outcome.is_none()),
    }
}

fn task(task: u32, upstreams: &[u32]) -> AuditTask {
    AuditTask { run: 1, task, upstreams: upstreams.to_vec(), infra_retries: 1 }
}

/// a (success) -> b (runs, its second attempt after a loss) -> c (waits); one run, one pool.
fn healthy() -> Snapshot {
    let mut a = ti(0, "a", TiState::Success);
    (a.token, a.attempts, a.logged) = (Some(token(1)), 1, Some(TiState::Success));
    let mut b = ti(1, "b", TiState::Running);
    (b.token, b.attempts, b.infra_losses) = (Some(token(3)), 2, 1);
    b.logged = Some(TiState::Running);
    b.upstream.success = 1;
    let mut lost = attempt(1, 2, 1, Some(Outcome::Lost));
    lost.counted_as = Some(CountedAs::Infra);
    let name = "d r".to_owned();
    let pool =
        |name: &str, slots, held| AuditPool { name: name.into(), slots, held, shrunk: false };
    Snapshot {
        runs: vec![AuditRun { run: 1, name, state: RunState::Running, unfinished: 2 }],
        tasks: vec![task(0, &[]), task(1, &[0]), task(2, &[1])],
        tis: vec![a, b, ti(2, "c", TiState::None)],
        attempts: vec![attempt(0, 1, 1, Some(Outcome::Success)), lost, attempt(1, 3, 2, None)],
        outputs: vec![AuditOutput { run: 1, task: 0, map_index: -1, token: token(1) }],
        pools: vec![pool("p", 1, 1), pool("idle", 0, 0)],
        highest_minted: Some(token(3)),
        ..Snapshot::default()
    }
}

fn invariants(snapshot: &Snapshot) -> Vec<&'static str> {
    let mut list: Vec<_> = audit(snapshot).into_iter().map(|found| found.invariant).collect();
    list.dedup();
    list
}

/// One change of the healthy snapshot breaks this invariant, and says so in these words.
fn broken(invariant: &str, says: &str, change: impl FnOnce(&mut Snapshot)) {
    let mut snapshot = healthy();
    change(&mut snapshot);
    let found = audit(&snapshot);
    let hit = found.iter().any(|v| v.invariant == invariant && v.what.contains(says));
    assert!(hit, "expected {invariant} with `{says}`, found {found:?}");
}

/// The change is within the promises.
fn fine(change: impl FnOnce(&mut Snapshot)) {
    let mut snapshot = healthy();
    change(&mut snapshot);
    assert_eq!(audit(&snapshot), []);
}

/// b ends its attempt and goes on in `state`.
fn b_ends(s: &mut Snapshot, outcome: Outcome, state: TiState) {
    (s.attempts[2].state, s.attempts[2].outcome) = (AttemptState::Ended, Some(outcome));
    s.attempts[2].holds = 0;
    s.attempts[2].counted_as = Some(CountedAs::None);
    s.pools[0].held = 0;
    (s.tis[1].state, s.tis[1].logged) = (state, Some(state));
}

#[test]
fn the_healthy_and_the_empty_snapshot_pass() {
    fine(|_| {});
    assert_eq!(audit(&Snapshot::default()), []);
}

#[test]
fn i1_at_most_one_open_attempt_with_one_owner() {
    broken("I1", "2 attempts are open", |s| {
        (s.attempts[1].state, s.attempts[1].outcome) = (AttemptState::Running, None);
    });
    // An open lost one is that one.
    broken("I1", "2 attempts are open", |s| {
        (s.attempts[1].state, s.attempts[1].outcome) = (AttemptState::LostOpen, None);
    });
    for state in [AttemptState::Claimed, AttemptState::Running, AttemptState::Stopping] {
        broken("I1", "without an owner", |s| {
            (s.attempts[2].state, s.attempts[2].owned) = (state, false);
        });
    }
    // A queued one has none yet, and an ended one may have lost its job's row.
    fine(|s| {
        s.attempts[0].owned = false;
        (s.attempts[2].state, s.attempts[2].owned) = (AttemptState::Queued, false);
        (s.tis[1].state, s.tis[1].logged) = (TiState::Queued, Some(TiState::Queued));
    });
}

#[test]
fn i2_tokens_rise_and_are_never_used_twice() {
    broken("I2", "exists twice", |s| s.attempts[0].token = token(2));
    broken("I2", "above the store's counter", |s| s.highest_minted = Some(token(2)));
    broken("I2", "does not rise", |s| {
        (s.attempts[1].number, s.attempts[2].number) = (2, 1);
    });
    broken("I2", "does not rise", |s| s.attempts[2].number = 1);
    // A new epoch begins its counter anew, and is above all the same.
    fine(|s| {
        let newer = Token::new(2, 0).unwrap();
        (s.attempts[2].token, s.tis[1].token) = (newer, Some(newer));
        s.highest_minted = Some(newer);
    });
}

#[test]
fn i3_the_instance_carries_its_newest_attempt() {
    broken("I3", "not its newest", |s| s.tis[1].token = Some(token(2)));
    broken("I3", "not its newest", |s| s.tis[1].token = None);
    broken("I3", "not its newest", |s| s.tis[2].token = Some(token(9)));
}

#[test]
fn i3_outputs_are_of_the_current_attempt_that_ended_well() {
    let output = |task, counter| AuditOutput { run: 1, task, map_index: -1, token: token(counter) };
    broken("I3", "did not end well", |s| s.outputs.push(output(1, 2)));
    broken("I3", "did not end well", |s| s.outputs.push(output(1, 3)));
    broken("I32", "outputs of no task instance", |s| s.outputs.push(output(7, 1)));
    fine(|s| {
        b_ends(s, Outcome::Skipped, TiState::Skipped);
        s.tis[1].forward_due = true;
        s.outputs.push(output(1, 3));
    });
}

#[test]
fn i4_states_and_outcomes_agree() {
    broken("I4", "state and outcome disagree", |s| s.attempts[0].outcome = None);
    broken("I4", "state and outcome disagree", |s| {
        s.attempts[2].outcome = Some(Outcome::Failed);
    });
    broken("I4", "is success with running", |s| s.tis[1].state = TiState::Success);
    broken("I4", "is scheduled with running", |s| s.tis[1].state = TiState::Scheduled);
    broken("I4", "is running with claimed", |s| s.attempts[2].state = AttemptState::Claimed);
    broken("I4", "is restarting with running", |s| s.tis[1].state = TiState::Restarting);
    broken("I4", "is held with running", |s| s.tis[1].state = TiState::Held);
    broken("I4", "is queued with no attempt", |s| s.tis[2].state = TiState::Queued);
    // `scheduled` with an open lost attempt would start a second one beside it.
    broken("I4", "is scheduled with lost_open", |s| {
        (s.tis[1].state, s.attempts[2].state) = (TiState::Scheduled, AttemptState::LostOpen);
    });
    fine(|s| s.attempts[2].state = AttemptState::Stopping);
    fine(|s| {
        (s.tis[1].state, s.tis[1].logged) = (TiState::Restarting, Some(TiState::Restarting));
        s.attempts[2].state = AttemptState::Stopping;
    });
    fine(|s| {
        (s.tis[1].state, s.tis[1].logged) = (TiState::Held, Some(TiState::Held));
        s.attempts[2].state = AttemptState::LostOpen;
    });
}

/// I13: a cancel is final at once; what may still run stays listed, as an open lost attempt.
#[test]
fn i13_a_cancelled_instance_has_no_attempt_in_hand() {
    let cancelled = |s: &mut Snapshot, state| {
        (s.tis[1].state, s.tis[1].logged) = (TiState::Failed, Some(TiState::Failed));
        s.tis[1].forward_due = true;
        s.attempts[2].state = state;
    };
    broken("I4", "is failed with stopping", |s| cancelled(s, AttemptState::Stopping));
    broken("I4", "is failed with queued", |s| cancelled(s, AttemptState::Queued));
    fine(|s| cancelled(s, AttemptState::LostOpen));
}

#[test]
fn i7_each_end_is_counted_once() {
    broken("I7", "0/1", |s| s.tis[1].upstream.success = 0);
    broken("I7", "2/1", |s| s.tis[1].upstream.success = 2);
    broken("I7", "1 failed", |s| {
        (s.tis[1].upstream.success, s.tis[1].upstream.failed) = (0, 1);
    });
    broken("I7", "0/2", |s| s.tis[2].upstream.total = 2);
    broken("I7", "counts 1 unfinished instances, 2 are left", |s| s.runs[0].unfinished = 1);
    broken("I7", "counts 3 unfinished instances, 2 are left", |s| s.runs[0].unfinished = 3);
    broken("I7", "its end is to be counted", |s| s.tis[1].forward_due = true);
    // Ended and not counted yet: neither downstream nor by the run.
    fine(|s| {
        s.tis[0].forward_due = true;
        s.tis[1].upstream.success = 0;
        s.runs[0].unfinished = 3;
    });
}

/// A snapshot may hold no versions (an audit of rows alone): it is then checked without edges.
#[test]
fn without_versions_the_rows_are_still_checked() {
    fine(|s| s.tasks.clear());
    broken("I7", "unfinished", |s| {
        s.tasks.clear();
        s.runs[0].unfinished = 9;
    });
}

#[test]
fn i8_no_more_executions_than_the_budgets_allow() {
    let third = |s: &mut Snapshot| {
        (s.attempts[1].counted_as, s.tis[1].infra_losses) = (Some(CountedAs::User), 0);
        s.attempts[1].outcome = Some(Outcome::Failed);
        let mut third = attempt(1, 9, 3, None);
        (s.attempts[2].outcome, s.attempts[2].state) = (Some(Outcome::Failed), AttemptState::Ended);
        (s.attempts[2].counted_as, s.attempts[2].holds) = (Some(CountedAs::User), 0);
        third.holds = 1;
        s.attempts.push(third);
        (s.tis[1].token, s.tis[1].attempts, s.tis[1].try_number) = (Some(token(9)), 3, 2);
        s.highest_minted = Some(token(9));
    };
    // Two tries and one replacement: a third execution is within them, a fourth is not.
    fine(third);
    broken("I8", "4 attempts were executed, at most 3", |s| {
        third(s);
        (s.attempts[3].outcome, s.attempts[3].state) = (Some(Outcome::Failed), AttemptState::Ended);
        (s.attempts[3].counted_as, s.attempts[3].holds) = (Some(CountedAs::None), 0);
        s.attempts.push(attempt(1, 10, 4, None));
        (s.tis[1].token, s.tis[1].attempts) = (Some(token(10)), 4);
        s.highest_minted = Some(token(10));
    });
    broken("I8", "3 failures were charged, it has 2 tries", |s| {
        third(s);
        s.attempts[3].counted_as = Some(CountedAs::User);
    });
    broken("I8", "is at try 3 of 2", |s| s.tis[1].try_number = 3);
}

#[test]
fn i8_counters_agree_with_their_rows() {
    broken("I8", "counts 3 attempts, 2 exist", |s| s.tis[1].attempts = 3);
    broken("I8", "counts 0 losses, 1 were charged", |s| s.tis[1].infra_losses = 0);
    broken("I8", "was lost 4 times, at most 3", |s| {
        s.tis[1].infra_losses = 4;
        s.tis[1].clears = 1;
    });
    // What never ran and what was deferred is not executed.
    fine(|s| {
        s.tasks[1].infra_retries = 0;
        (s.tis[1].max_tries, s.tis[1].infra_losses) = (1, 0);
        s.attempts[1].outcome = Some(Outcome::NeverRan);
        s.attempts[1].counted_as = Some(CountedAs::None);
    });
}

#[test]
fn i14_active_attempts_hold_and_pools_are_not_exceeded() {
    broken("I14", "has 0 holds", |s| s.attempts[2].holds = 0);
    broken("I14", "has 2 holds", |s| s.attempts[2].holds = 2);
    broken("I14", "2 slots held of 1", |s| s.pools[0].held = 2);
    broken("I14", "1 slots held of 0", |s| s.pools[1].held = 1);
    // A pool that was made smaller drains by itself.
    fine(|s| (s.pools[0].held, s.pools[0].shrunk) = (2, true));
}

#[test]
fn i17_one_run_a_slot() {
    broken("I17", "slot 2026-09-22 has more than one run", |s| {
        s.doubled_slots.push(("d".into(), "2026-09-22".into()));
    });
}

#[test]
fn i24_every_instance_has_something_that_moves_it() {
    broken("I24", "without a timer", |s| b_ends(s, Outcome::Failed, TiState::UpForRetry));
    fine(|s| {
        b_ends(s, Outcome::Failed, TiState::UpForRetry);
        s.tis[1].has_timer = true;
    });
    broken("I24", "without a trigger", |s| b_ends(s, Outcome::Deferred, TiState::Deferred));
    broken("I24", "runs without an attempt", |s| b_ends(s, Outcome::Lost, TiState::Running));
    broken("I24", "runs without an attempt", |s| b_ends(s, Outcome::Lost, TiState::Restarting));
    broken("I24", "is queued without an attempt", |s| {
        b_ends(s, Outcome::NeverRan, TiState::Queued);
    });
    fine(|s| b_ends(s, Outcome::NeverRan, TiState::Scheduled));
    fine(|s| b_ends(s, Outcome::Lost, TiState::Held));
    broken("I24", "is running by a job that is over", |s| s.attempts[2].abandoned = true);
}

/// Counted by all its downstreams, and `none` all the same: no end will come to decide it.
#[test]
fn i24_nobody_waits_for_upstreams_that_are_all_counted() {
    let b_succeeded = |s: &mut Snapshot| {
        b_ends(s, Outcome::Success, TiState::Success);
        s.tis[2].upstream.success = 1;
        s.runs[0].unfinished = 1;
    };
    broken("I24", "nothing will decide it", b_succeeded);
    fine(|s| {
        b_succeeded(s);
        s.tis[2].recheck = true;
    });
    // A root has no upstream to wait for.
    broken("I24", "nothing will decide it", |s| s.tis.push(ti(0, "a[1]", TiState::None)));
    // The mark is on the head of the task, for all its instances.
    fine(|s| {
        b_succeeded(s);
        s.tis[2].recheck = true;
        s.tis[2].map_index = 0;
        let mut second = ti(2, "c[1]", TiState::None);
        (second.map_index, second.upstream) = (1, UpstreamCounts::default());
        s.tis.push(second);
        s.runs[0].unfinished = 2;
    });
}

#[test]
fn i24_runs_and_their_instances_end_together() {
    for over in [RunState::Success, RunState::Failed, RunState::Cancelled] {
        broken("I24", "is not over, and its run is", |s| s.runs[0].state = over);
    }
    broken("I24", "belongs to no run", |s| s.runs.clear());
    let all_over = |s: &mut Snapshot| {
        b_ends(s, Outcome::Success, TiState::Success);
        s.tis[2].state = TiState::Skipped;
        s.tis[2].upstream.success = 1;
        s.runs[0].unfinished = 0;
    };
    broken("I24", "has nothing left and is not over", all_over);
    fine(|s| {
        all_over(s);
        s.runs[0].state = RunState::Success;
    });
}

#[test]
fn i32_what_ended_leaves_nothing_behind() {
    broken("I32", "ended and holds slots", |s| s.attempts[0].holds = 1);
    broken("I32", "does not exist and holds slots", |s| s.stray_holds.push(token(2)));
    broken("I32", "is success and has a timer", |s| s.tis[0].has_timer = true);
    broken("I32", "is none and has a timer", |s| s.tis[2].has_timer = true);
}

#[test]
fn i34_no_change_of_state_is_silent() {
    broken("I34", "its last line in the log says queued", |s| {
        s.tis[1].logged = Some(TiState::Queued);
    });
    fine(|s| s.tis[1].logged = None);
}

/// Violations name their subject and come in one order, so that two audits can be compared.
#[test]
fn violations_are_sorted_and_name_their_subject() {
    let mut snapshot = healthy();
    snapshot.tis[1].token = None;
    snapshot.attempts[2].owned = false;
    snapshot.pools[0].held = 9;
    assert_eq!(invariants(&snapshot), ["I1", "I14", "I3"]);
    let found = audit(&snapshot);
    let subjects: Vec<&str> = found.iter().map(|v| v.subject.as_str()).collect();
    assert_eq!(subjects, ["d r b", "pool p", "d r b"]);
}
