//! What every ending means: a row per case, written from 1-semantics section 5 ("Who pays") and
//! 2-interfaces section 5 ("Exit codes of a task").

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use fencepost_core::dag::{Action, OnDisconnect, OnLost, Replace, Task};
use fencepost_core::id::TaskId;
use fencepost_core::lifecycle::TiEvent;
use fencepost_core::retry::{RetryAction, RetryRule};
use fencepost_core::state::StopReason;
use fencepost_core::time::Span;
use fencepost_core::verdict::{Asked, Budgets, Death, Ending, Stop, Unusable, judge};

/// Two retries after five minutes, two replacements; 3 is graceful, 99 skips; rules for 64, 65,
/// 75, 127, 137.
fn task() -> Task {
    let mut task =
        Task::with_defaults(TaskId::new("t").unwrap(), Action::Run("true".into())).unwrap();
    task.retry.retries = 2;
    task.infra_retries = 2;
    task.graceful_exit_codes = vec![3];
    let rule = |code: u8, action, reason: &str| RetryRule {
        exit_codes: vec![code],
        action,
        reason: reason.into(),
    };
    let later = RetryAction::Retry { delay: Some(Span::from_mins(10)) };
    task.retry_rules = vec![
        rule(64, RetryAction::Fail, "bad data"),
        rule(65, RetryAction::Fail, ""),
        rule(75, later, "temporary"),
        rule(75, RetryAction::Fail, "never reached"),
        rule(127, RetryAction::Retry { delay: None }, ""),
        rule(137, later, "killed"),
    ];
    task
}

fn fresh() -> Budgets {
    Budgets {
        try_number: 1,
        max_tries: 3,
        infra_losses: 0,
        single_deaths: 0,
        requeues: 0,
        requeue_limit: 20,
    }
}

fn last_try() -> Budgets {
    Budgets { try_number: 3, ..fresh() }
}

/// `outcome event reason who-pays [delay]`.
fn said(ending: &Ending, asked: Option<&Asked>, budgets: &Budgets, stop: Option<Stop>) -> String {
    said_of(&task(), ending, asked, budgets, stop)
}

fn said_of(
    task: &Task,
    ending: &Ending,
    asked: Option<&Asked>,
    budgets: &Budgets,
    stop: Option<Stop>,
) -> String {
    let verdict = judge(ending, asked, task, budgets, stop, 7);
    let delay = verdict.delay.map_or_else(String::new, |delay| format!(" {delay}"));
    assert_eq!(verdict.delay.is_some(), verdict.event == TiEvent::Retry, "{verdict:?}");
    let (outcome, event, reason) = (verdict.outcome, verdict.event, verdict.reason);
    format!("{outcome} {event:?} {reason} {}{delay}", verdict.counted_as)
}

/// An ending on the first and on the last try, without a word of the task.
fn check(ending: Ending, first: &str, last: &str) {
    assert_eq!(said(&ending, None, &fresh(), None), first, "{ending:?}, first try");
    assert_eq!(said(&ending, None, &last_try(), None), last, "{ending:?}, last try");
}

fn same(ending: Ending, expected: &str) {
    check(ending, expected, expected);
}

#[test]
fn exit_codes_without_a_rule() {
    same(Ending::Exit(0), "success Succeed exit none");
    same(Ending::Exit(99), "skipped SkipItself exit none");
    check(Ending::Exit(1), "failed Retry exit user 5m", "failed Fail exit user");
    // Graceful codes count after our own signal only.
    check(Ending::Exit(3), "failed Retry exit user 5m", "failed Fail exit user");
    check(
        Ending::Exit(76),
        "failed Retry fence_conflict user 5m",
        "failed Fail fence_conflict user",
    );
    same(Ending::Exit(77), "failed Hold hold none");
    check(
        Ending::Exit(100),
        "failed Retry no_defer_file user 5m",
        "failed Fail no_defer_file user",
    );
    same(Ending::Exit(126), "failed Fail could_not_exec user");
    check(Ending::Exit(255), "failed Retry exit user 5m", "failed Fail exit user");
}

#[test]
fn the_first_rule_that_fits_decides() {
    same(Ending::Exit(64), "failed Fail bad data user");
    same(Ending::Exit(65), "failed Fail exit user");
    check(Ending::Exit(75), "failed Retry temporary user 10m", "failed Fail temporary user");
    // A rule brings 127 back, which is final without one.
    let (first, last) = ("failed Retry could_not_exec user 5m", "failed Fail could_not_exec user");
    check(Ending::Exit(127), first, last);
    check(Ending::CouldNotExec(127), first, last);
    same(Ending::CouldNotExec(126), "failed Fail could_not_exec user");
    // A rule sees a death by signal n as the shell's 128+n.
    check(Ending::Signal(9), "failed Retry killed user 10m", "failed Fail killed user");
    check(Ending::OutOfMemory(137), "failed Retry killed user 10m", "failed Fail killed user");
    check(Ending::Exit(137), "failed Retry killed user 10m", "failed Fail killed user");
}

#[test]
fn signals_and_time_outs_are_charged_to_the_user() {
    for signal in [1, 11, 15, 64, 127, 128, -1, 0, i32::MAX, i32::MIN] {
        check(Ending::Signal(signal), "failed Retry signal user 5m", "failed Fail signal user");
    }
    check(Ending::OutOfMemory(1), "failed Retry oom user 5m", "failed Fail oom user");
    for code in [None, Some(0), Some(99), Some(64)] {
        let timeout = Ending::ExecutionTimeout(code);
        let (first, last) =
            ("failed Retry execution_timeout user 5m", "failed Fail execution_timeout user");
        check(timeout, first, last);
        let stall = Ending::StallTimeout(code);
        check(stall, "failed Retry stall_timeout user 5m", "failed Fail stall_timeout user");
    }
}

/// What ended it the store has forgotten, or somebody told its shim: the platform pays (I8).
#[test]
fn a_stop_that_the_store_knows_nothing_of_is_a_loss_and_no_failure() {
    same(Ending::Stopped, "lost Replace lost infra");
    let spent = Budgets { infra_losses: 2, ..last_try() };
    assert_eq!(said(&Ending::Stopped, None, &spent, None), "lost Fail infra_retries_spent infra");
    let deaths = Budgets { single_deaths: 2, ..fresh() };
    assert_eq!(said(&Ending::Stopped, None, &deaths, None), "lost Replace lost infra");
}

/// After our own signal only a listed code, or a success that was written before it, is success.
#[test]
fn success_after_our_own_signal() {
    same(Ending::ExecutionTimeout(Some(3)), "success Succeed exit none");
    same(Ending::StallTimeout(Some(3)), "success Succeed exit none");
    let ours = [
        Ending::ExecutionTimeout(None),
        Ending::ExecutionTimeout(Some(143)),
        Ending::StallTimeout(None),
        Ending::Stopped,
        Ending::Signal(9),
        Ending::Gone(Death::Orderly),
    ];
    for ending in ours {
        let word = said(&ending, Some(&Asked::Success), &last_try(), None);
        assert_eq!(word, "success Succeed result_file none", "{ending:?}");
        for other in [Asked::Skip, Asked::Fail, Asked::Hold] {
            let word = said(&ending, Some(&other), &last_try(), None);
            assert_eq!(word, said(&ending, None, &last_try(), None), "{ending:?} {other:?}");
        }
    }
}

#[test]
fn the_result_file_goes_before_the_exit_code() {
    let word = |asked: Asked, budgets: &Budgets| {
        let words: Vec<String> = [0, 1, 64, 99, 126]
            .into_iter()
            .map(|code| said(&Ending::Exit(code), Some(&asked), budgets, None))
            .collect();
        assert!(words.windows(2).all(|pair| pair[0] == pair[1]), "{asked:?}: {words:?}");
        words[0].clone()
    };
    assert_eq!(word(Asked::Success, &last_try()), "success Succeed result_file none");
    assert_eq!(word(Asked::Skip, &last_try()), "skipped SkipItself result_file none");
    assert_eq!(word(Asked::Fail, &fresh()), "failed Fail result_file user");
    let soon = || Asked::Retry { after: Some(Span::from_secs(3)) };
    assert_eq!(word(soon(), &fresh()), "failed Retry result_file user 3s");
    assert_eq!(word(soon(), &last_try()), "failed Fail result_file user");
    let plain = Asked::Retry { after: None };
    assert_eq!(word(plain, &fresh()), "failed Retry result_file user 5m");
    assert_eq!(word(Asked::Hold, &fresh()), "failed Hold hold none");
}

#[test]
fn what_no_further_try_would_mend_is_final() {
    same(Ending::Unusable(Unusable::Template), "failed Fail template_error user");
    same(Ending::Unusable(Unusable::Outputs), "failed Fail outputs_invalid user");
}

/// Never started: nothing is paid, a bounded number of times in a row.
#[test]
fn never_ran_costs_nothing() {
    same(Ending::NeverRan, "never_ran Replace never_ran none");
    let at = |requeues| Budgets { requeues, ..last_try() };
    let word = |requeues| said(&Ending::NeverRan, None, &at(requeues), None);
    assert_eq!(word(19), "never_ran Replace never_ran none");
    assert_eq!(word(20), "never_ran Fail never_ran none");
    assert_eq!(word(u32::MAX), "never_ran Fail never_ran none");
}

/// Started, then lost: `infra_retries` pays, whatever is left of the user's tries.
#[test]
fn a_loss_never_touches_the_users_tries() {
    for death in [Death::Single, Death::Orderly] {
        let gone = Ending::Gone(death);
        same(gone.clone(), "lost Replace lost infra");
        let word = |infra_losses| said(&gone, None, &Budgets { infra_losses, ..last_try() }, None);
        assert_eq!(word(1), "lost Replace lost infra");
        assert_eq!(word(2), "lost Fail infra_retries_spent infra");
        assert_eq!(word(u32::MAX), "lost Fail infra_retries_spent infra");
        let fails = Task { on_lost: OnLost::Fail, ..task() };
        assert_eq!(said_of(&fails, &gone, None, &fresh(), None), "lost Fail lost infra");
    }
}

/// The end of a lease says nothing about a task that runs on without one.
#[test]
fn what_runs_without_a_lease_is_not_lost_with_it() {
    let expired = Ending::Expired(Death::Single);
    let word = |task: &Task, stop: Option<StopReason>| {
        let stop = stop.map(|reason| Stop { reason, mark: None });
        let verdict = judge(&expired, None, task, &fresh(), stop, 7);
        let open = if verdict.stays_open { "open " } else { "" };
        format!("{open}{:?} {}", verdict.event, verdict.reason)
    };
    assert_eq!(word(&task(), None), "Replace lost");
    for keep in [
        Task { on_disconnect: OnDisconnect::Keep, ..task() },
        Task { replace: Replace::AfterConfirmedDead, ..task() },
    ] {
        assert_eq!(word(&keep, None), "open Hold awaiting_evidence");
        assert_eq!(word(&keep, Some(StopReason::Clear)), "open Hold awaiting_evidence");
        assert_eq!(word(&keep, Some(StopReason::Cancel)), "open Stopped cancel");
        let held = Task { on_lost: OnLost::Hold, ..keep };
        assert_eq!(word(&held, None), "open Hold awaiting_person");
    }
}

/// I29: three losses by single deaths are poison, whatever the budget says; orderly ones never.
#[test]
fn i29_the_third_single_death_is_poison() {
    let word = |death, single_deaths, infra_losses| {
        let budgets = Budgets { single_deaths, infra_losses, ..fresh() };
        said(&Ending::Gone(death), None, &budgets, None)
    };
    assert_eq!(word(Death::Single, 1, 1), "lost Replace lost infra");
    assert_eq!(word(Death::Single, 2, 0), "lost Hold poison infra");
    assert_eq!(word(Death::Single, 2, 9), "lost Hold poison infra");
    assert_eq!(word(Death::Single, u32::MAX - 1, 0), "lost Hold poison infra");
    assert_eq!(word(Death::Orderly, 2, 0), "lost Replace lost infra");
}

/// From its commit on, a stop goes before whatever the task did, and nobody pays.
#[test]
fn a_stop_goes_first_and_costs_nothing() {
    let endings = [
        Ending::Exit(0),
        Ending::Exit(1),
        Ending::Exit(99),
        Ending::Signal(15),
        Ending::ExecutionTimeout(Some(3)),
        Ending::Stopped,
        Ending::NeverRan,
        Ending::Gone(Death::Single),
        Ending::CouldNotExec(127),
        Ending::Unusable(Unusable::Outputs),
    ];
    let poisoned = Budgets { single_deaths: 9, infra_losses: 9, ..last_try() };
    let stops = [
        (StopReason::Cancel, None, "cancelled Stopped cancel none"),
        (StopReason::DagrunTimeout, None, "cancelled Stopped dagrun_timeout none"),
        (StopReason::FailFast, None, "cancelled Stopped fail_fast none"),
        (StopReason::Kill, None, "cancelled Stopped kill none"),
        (StopReason::Clear, None, "cleared Restarted clear none"),
        (StopReason::Mark, Some(TiEvent::MarkSuccess), "cancelled MarkSuccess mark none"),
        (StopReason::Mark, Some(TiEvent::MarkSkipped), "cancelled MarkSkipped mark none"),
        (StopReason::Mark, None, "cancelled MarkFailed mark none"),
    ];
    for (reason, mark, expected) in stops {
        for ending in &endings {
            for asked in [None, Some(Asked::Success)] {
                let stop = Some(Stop { reason, mark });
                let word = said(ending, asked.as_ref(), &poisoned, stop);
                assert_eq!(word, expected, "{ending:?}");
            }
        }
    }
}
