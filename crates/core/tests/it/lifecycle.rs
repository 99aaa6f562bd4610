//! Every state and every event of the four tables, against expectations written from
//! 1-semantics sections 1, 4 and 5, and the properties that hold whatever the rows say.

use crate::matrix::check;
use fencepost_core::id::Token;
use fencepost_core::lifecycle::{
    AttemptEvent, JobEvent, Rejected, RunEvent, TiEvent, TiRecord, attempt_next, job_next,
    run_next, step, ti_next,
};
use fencepost_core::state::{AttemptState, JobState, Outcome, RunState, TiState};

const TI: [(char, TiState); 13] = [
    ('n', TiState::None),
    ('s', TiState::Scheduled),
    ('q', TiState::Queued),
    ('r', TiState::Running),
    ('d', TiState::Deferred),
    ('u', TiState::UpForRetry),
    ('t', TiState::Restarting),
    ('h', TiState::Held),
    ('S', TiState::Success),
    ('F', TiState::Failed),
    ('K', TiState::Skipped),
    ('U', TiState::UpstreamFailed),
    ('R', TiState::Removed),
];

#[test]
fn every_state_and_event_of_a_task_instance() {
    // event         n s q r d u t h S F K U R
    let table = "
        Ready          s = . . . . . . . . . . .
        Complete       S . . . . . . . = . . . .
        Skip           K . . . . . . . . . = . .
        UpstreamFail   U . . . . . . . . . . = .
        ConditionError F . . . . . . . . = . . .
        Remove         R R . . . . . . . . . . =
        Queue          . q = . . . . . . . . . .
        Requeue        . = s . . . . . . . . . .
        GiveUp         . . F . . . . . . = . . .
        Start          . . r = . . . . . . . . .
        Succeed        . . . S . . . S = . . . .
        Fail           . . . F . . . F . = . . .
        Retry          . . . u . = . u . . . . .
        SkipItself     . . . K . . . K . . = . .
        Replace        . = . s . . . s . . . . .
        Hold           . . . h . . h = . . . . .
        Defer          . . d d = . . . . . . . .
        Resume         . = . . s . . . . . . . .
        EventSuccess   . . . . S . . . = . . . .
        EventSkip      . . . . K . . . . . = . .
        EventFail      . . . . F . . . . = . . .
        RetryDue       . = . . . s . . . . . . .
        Clear          = n n . n n . n n n n n n
        ClearRunning   . . . t . . = . . . . . .
        Restarted      = . . . . . n n . . . . .
        Cancel         K K K . K K . K . . = . .
        Stopped        . . . F . . F . . = . . .
        MarkSuccess    S S S S S S S S = S S S S
        MarkFailed     F F F F F F F F F = F F F
        MarkSkipped    K K K K K K K K K K = K K";
    check(&TI, TiEvent::ALL, table, ti_next);
}

#[test]
fn every_state_and_event_of_an_attempt() {
    let columns = [
        ('Q', AttemptState::Queued),
        ('C', AttemptState::Claimed),
        ('R', AttemptState::Running),
        ('T', AttemptState::Stopping),
        ('L', AttemptState::LostOpen),
        ('E', AttemptState::Ended),
    ];
    // event          Q C R T L E
    let table = "
        Claim          C = . . . .
        Start          . R = . . .
        Stop           . . T = . .
        Open           . . L L = .
        End(Success)   . . E . E =
        End(Failed)    . . E . E =
        End(Skipped)   . . E . E =
        End(Deferred)  E . E . . =
        End(Lost)      . . E . E =
        End(Fenced)    . . E E E =
        End(Cancelled) E E . E E =
        End(Cleared)   E E . E E =
        End(NeverRan)  E E E E . =
        End(Released)  . E E . . =";
    check(&columns, &AttemptEvent::all(), table, attempt_next);
}

#[test]
fn every_state_and_event_of_a_run() {
    let columns = [
        ('q', RunState::Queued),
        ('r', RunState::Running),
        ('S', RunState::Success),
        ('F', RunState::Failed),
        ('C', RunState::Cancelled),
        ('M', RunState::Missed),
    ];
    // event   q r S F C M
    let table = "
        Start   r = . . . .
        Succeed . S = . . .
        Fail    . F . = . .
        Cancel  C C . . = .
        Miss    M . . . . =
        Reopen  = . q q q .";
    check(&columns, RunEvent::ALL, table, run_next);
}

#[test]
fn every_state_and_event_of_a_job() {
    let columns = [
        ('R', JobState::Running),
        ('D', JobState::Draining),
        ('S', JobState::Stopped),
        ('L', JobState::Lost),
    ];
    // event   R D S L
    let table = "
        Drain   D = . .
        Stop    S S = .
        Declare L L . =";
    check(&columns, JobEvent::ALL, table, job_next);
}

#[test]
fn the_tables_name_every_state() {
    assert_eq!(TI.map(|(_, state)| state).as_slice(), TiState::ALL);
    assert_eq!(AttemptEvent::all().len(), 4 + Outcome::ALL.len());
}

/// I4: reaper, time-out, cancel and late result change nothing that has ended; only a person does.
#[test]
fn i4_terminal_is_absorbing_but_for_a_person() {
    use TiEvent::{Clear, MarkFailed, MarkSkipped, MarkSuccess};
    for state in TiState::ALL.iter().copied().filter(|state| state.is_finished()) {
        for event in TiEvent::ALL.iter().copied() {
            let by_a_person = matches!(event, Clear | MarkSuccess | MarkFailed | MarkSkipped);
            let moved = ti_next(state, event).is_ok();
            assert!(by_a_person || !moved, "{event:?} moves an instance that is {state}");
        }
    }
    for event in AttemptEvent::all() {
        assert!(attempt_next(AttemptState::Ended, event).is_err(), "{event:?}");
    }
    for event in JobEvent::ALL {
        assert!(job_next(JobState::Stopped, *event).is_err(), "{event:?}");
        assert!(job_next(JobState::Lost, *event).is_err(), "{event:?}");
    }
}

/// What ran is never queued again under its old attempt: it goes by `scheduled` to a new one.
#[test]
fn i4_nothing_goes_back_to_an_old_attempt() {
    for event in TiEvent::ALL.iter().copied() {
        for from in TiState::ALL.iter().copied().filter(|from| *from != TiState::Scheduled) {
            assert_ne!(ti_next(from, event), Ok(TiState::Queued), "{event:?} in {from}");
        }
        for from in TiState::ALL.iter().copied().filter(|from| *from != TiState::Queued) {
            assert_ne!(ti_next(from, event), Ok(TiState::Running), "{event:?} in {from}");
        }
    }
}

#[test]
fn a_duplicate_is_where_the_event_leads_and_nowhere_else() {
    for event in TiEvent::ALL.iter().copied() {
        let answers: Vec<_> =
            TiState::ALL.iter().map(|from| (*from, ti_next(*from, event))).collect();
        let targets: Vec<TiState> = answers.iter().filter_map(|(_, to)| to.ok()).collect();
        for (from, answer) in &answers {
            let there = targets.contains(from);
            assert_eq!(*answer == Err(Rejected::Duplicate), there, "{event:?} in {from}");
            assert_ne!(*answer, Ok(*from), "{event:?} stays in {from} and says that it moved");
        }
        assert!(!targets.is_empty(), "{event:?} never happens");
    }
}

#[test]
fn every_state_can_be_reached_and_left() {
    for state in TiState::ALL.iter().copied() {
        let events = || TiEvent::ALL.iter().copied();
        let reached = TiState::ALL
            .iter()
            .any(|from| events().any(|event| ti_next(*from, event) == Ok(state)));
        assert!(reached, "nothing leads to {state}");
        assert!(
            events().any(|event| ti_next(state, event).is_ok()),
            "nothing leads out of {state}"
        );
    }
}

/// I3: whatever an attempt says, an old token is answered first.
#[test]
fn i3_an_old_token_is_stale_before_anything_else() {
    let token = |n| Token::new(1, n).ok();
    let (old, current, newer) = (token(1), token(2), token(3));
    for state in TiState::ALL.iter().copied() {
        for event in TiEvent::ALL.iter().copied() {
            let record = TiRecord { state, token: current };
            for presented in [old, newer] {
                assert_eq!(step(&record, event, presented), Err(Rejected::Stale));
            }
            assert_eq!(step(&record, event, current), ti_next(state, event));
            // A person or the scheduler presents none.
            assert_eq!(step(&record, event, None), ti_next(state, event));
            let unused = TiRecord { state, token: None };
            assert_eq!(step(&unused, event, current), Err(Rejected::Stale));
        }
    }
}

/// From the commit of a stop on, a success is refused (1-semantics section 4).
#[test]
fn a_stop_goes_before_a_success() {
    let stopped = attempt_next(AttemptState::Running, AttemptEvent::Stop);
    assert_eq!(stopped, Ok(AttemptState::Stopping));
    for outcome in [Outcome::Success, Outcome::Skipped, Outcome::Failed, Outcome::Lost] {
        let answer = attempt_next(AttemptState::Stopping, AttemptEvent::End(outcome));
        assert_eq!(answer, Err(Rejected::Illegal), "{outcome}");
    }
}
