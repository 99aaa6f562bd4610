//! I8: budgets are exact, over any sequence of endings and clears.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use fencepost_core::dag::{Action, OnLost, Task};
use fencepost_core::id::TaskId;
use fencepost_core::lifecycle::{TiEvent, ti_next};
use fencepost_core::state::{CountedAs, Outcome, TiState};
use fencepost_core::verdict::{Asked, Budgets, Death, Ending, Unusable, judge};
use proptest::prelude::*;

/// A task instance with its counters in the store, and what was counted beside it by the test.
#[derive(Debug)]
struct Story {
    task: Task,
    state: TiState,
    budgets: Budgets,
    executions: u32,
    user_failures: u32,
    clears: u32,
}

impl Story {
    fn new(retries: u32, infra_retries: u32, on_lost: OnLost) -> Self {
        let action = Action::Run("true".into());
        let mut task = Task::with_defaults(TaskId::new("t").unwrap(), action).unwrap();
        task.retry.retries = retries;
        task.infra_retries = infra_retries;
        task.on_lost = on_lost;
        let budgets = Budgets {
            try_number: 1,
            max_tries: 1 + retries,
            infra_losses: 0,
            single_deaths: 0,
            requeues: 0,
            requeue_limit: 3,
        };
        let state = TiState::Scheduled;
        Self { task, state, budgets, executions: 0, user_failures: 0, clears: 0 }
    }

    /// Queues and starts an attempt, and ends it.
    fn run(&mut self, ending: &Ending, asked: Option<&Asked>, random: u64) {
        let verdict = judge(ending, asked, &self.task, &self.budgets, None, random);
        let running = ti_next(TiState::Queued, TiEvent::Start).unwrap();
        self.state = ti_next(running, verdict.event).unwrap();
        self.executions += u32::from(verdict.outcome != Outcome::NeverRan);
        self.budgets.requeues =
            if verdict.outcome == Outcome::NeverRan { self.budgets.requeues + 1 } else { 0 };
        match verdict.counted_as {
            CountedAs::Infra => {
                self.budgets.infra_losses += 1;
                self.budgets.single_deaths += u32::from(*ending == Ending::Gone(Death::Single));
            }
            CountedAs::User => self.user_failures += 1,
            CountedAs::None => {}
        }
        if verdict.event == TiEvent::Retry {
            self.budgets.try_number += 1;
            self.state = ti_next(self.state, TiEvent::RetryDue).unwrap();
        }
    }

    /// A person clears what has ended: one more try.
    fn clear(&mut self) {
        let cleared = ti_next(self.state, TiEvent::Clear).unwrap();
        self.state = ti_next(cleared, TiEvent::Ready).unwrap();
        self.budgets.try_number += 1;
        self.budgets.max_tries += 1;
        self.clears += 1;
    }

    fn allowed(&self) -> u32 {
        1 + self.task.retry.retries + self.task.infra_retries + self.clears
    }
}

fn endings() -> impl Strategy<Value = Ending> {
    prop_oneof![
        any::<u8>().prop_map(Ending::Exit),
        prop::sample::select(vec![0, 1, 75, 99, 100, 126]).prop_map(Ending::Exit),
        (1_i32..65).prop_map(Ending::Signal),
        (1_u8..=255).prop_map(Ending::OutOfMemory),
        prop::option::of(any::<u8>()).prop_map(Ending::ExecutionTimeout),
        prop::option::of(any::<u8>()).prop_map(Ending::StallTimeout),
        Just(Ending::Stopped),
        Just(Ending::NeverRan),
        Just(Ending::CouldNotExec(127)),
        Just(Ending::Unusable(Unusable::Template)),
        Just(Ending::Gone(Death::Single)),
        Just(Ending::Gone(Death::Orderly)),
    ]
}

fn words() -> impl Strategy<Value = Option<Asked>> {
    prop::option::weighted(
        0.2,
        prop_oneof![
            Just(Asked::Success),
            Just(Asked::Skip),
            Just(Asked::Fail),
            Just(Asked::Hold),
            Just(Asked::Retry { after: None }),
        ],
    )
}

proptest! {
    /// Executions <= 1 + retries + infra_retries + clears, and a loss never eats a user's retry.
    #[test]
    fn i8_executions_stay_within_the_budgets(
        retries in 0_u32..4,
        infra_retries in 0_u32..4,
        fails in any::<bool>(),
        steps in prop::collection::vec((endings(), words(), any::<u64>(), any::<bool>()), 1..60),
    ) {
        let on_lost = if fails { OnLost::Fail } else { OnLost::Retry };
        let mut story = Story::new(retries, infra_retries, on_lost);
        for (ending, asked, random, clears) in steps {
            if story.state != TiState::Scheduled {
                if !clears {
                    break;
                }
                story.clear();
            }
            story.run(&ending, asked.as_ref(), random);
            prop_assert!(story.executions <= story.allowed(), "{:?}", story);
            prop_assert!(story.user_failures <= story.budgets.max_tries, "{:?}", story);
            prop_assert!(story.budgets.try_number <= story.budgets.max_tries, "{:?}", story);
        }
    }

    /// However often it is lost, the user's tries that are left are what they were.
    #[test]
    fn i8_losses_and_requeues_leave_the_tries_alone(
        losses in prop::collection::vec(prop::sample::select(vec![
            Ending::NeverRan,
            Ending::Gone(Death::Orderly),
            Ending::Gone(Death::Single),
        ]), 1..12),
    ) {
        let mut story = Story::new(2, 20, OnLost::Retry);
        for loss in &losses {
            if story.state != TiState::Scheduled {
                break;
            }
            story.run(loss, None, 0);
            prop_assert_eq!(story.budgets.try_number, 1);
            prop_assert_eq!(story.user_failures, 0);
        }
    }
}

/// The bound is met, so it is not a loose one: every try fails and every replacement is lost.
#[test]
fn i8_the_whole_budget_can_be_used() {
    let mut story = Story::new(2, 3, OnLost::Retry);
    for _ in 0..2 {
        story.run(&Ending::Exit(1), None, 0);
    }
    for _ in 0..3 {
        story.run(&Ending::Gone(Death::Orderly), None, 0);
        assert_eq!(story.state, TiState::Scheduled);
    }
    story.run(&Ending::Exit(1), None, 0);
    assert_eq!((story.executions, story.state), (story.allowed(), TiState::Failed));
}

/// A claim that never starts is replaced a bounded number of times in a row.
#[test]
fn i8_requeues_end_and_a_start_forgives_them() {
    let mut story = Story::new(0, 1, OnLost::Retry);
    for _ in 0..3 {
        story.run(&Ending::NeverRan, None, 0);
        assert_eq!(story.state, TiState::Scheduled);
    }
    story.run(&Ending::Gone(Death::Orderly), None, 0);
    for _ in 0..3 {
        story.run(&Ending::NeverRan, None, 0);
    }
    assert_eq!(story.state, TiState::Scheduled);
    story.run(&Ending::NeverRan, None, 0);
    assert_eq!((story.state, story.executions), (TiState::Failed, 1));
}
