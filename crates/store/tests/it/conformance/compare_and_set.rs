//! Every change of state compares and sets, and says whether it was still so.

use super::conformance;
use crate::place::Place;
use crate::rows::{at, claimer, dag_row, end, job_id, key, make, new_run, queue, settle, ti};
use fencepost_core::id::Token;
use fencepost_core::state::{AttemptState, JobState, RunState, StopReason, TiState};
use fencepost_core::time::Span;
use fencepost_store::Tx;
use fencepost_store::query::attempt::{self, Attempt, Started, StopRequest};
use fencepost_store::query::lease::{self, Renewal, Renewed};
use fencepost_store::query::pool::{self, Hold};
use fencepost_store::query::task_instance::{self, TiChange};
use fencepost_store::query::{dag, job, run};

conformance!(
    i3_an_instance_changes_only_from_the_state_and_token_that_were_read,
    i3_of_two_changes_from_one_state_one_wins,
    an_attempt_starts_for_its_owner_once,
    i4_an_attempt_ends_once,
    a_stop_is_asked_of_what_runs,
    a_hand_over_moves_what_is_open,
    a_run_starts_ends_stops_and_opens_from_its_state,
    i17_one_run_of_a_name_and_one_advance_of_a_schedule,
    a_late_beat_renews_nothing,
    i14_a_pool_remembers_that_it_was_made_smaller,
);

fn beats(seq: i64) -> Renewal {
    Renewal { job: job_id(1), seq, below: seq, loop_age: Span::ZERO }
}

async fn one(tx: &Tx, token: Token) -> Attempt {
    attempt::get(tx, &[token]).await.unwrap().remove(0)
}

fn start(token: Token, job: u128, start_id: &str) -> Started {
    let (start_id, boot_id) = (start_id.into(), "boot".into());
    Started { token, job_id: job_id(job), start_id, boot_id, call: 2 }
}

async fn i3_an_instance_changes_only_from_the_state_and_token_that_were_read(place: &impl Place) {
    let store = place.open();
    let run_pk = settle(&store).await;
    let tx = store.begin("change").await.unwrap();
    let row = ti(key(run_pk, 0), TiState::Scheduled);
    make(&tx, std::slice::from_ref(&row)).await;
    let token = Token::new(1, 5).unwrap();
    let mut queued = TiChange::of(&row);
    (queued.to.state, queued.to.token, queued.to.attempts) = (TiState::Queued, Some(token), 1);
    assert_eq!(
        task_instance::change(&tx, &[queued.clone(), queued.clone()]).await.unwrap(),
        [true, false]
    );
    let read = task_instance::get(&tx, &[row.key]).await.unwrap().remove(0);
    assert_eq!(read, queued.to, "what is read is what was written");
    let mut stale = TiChange::of(&read);
    stale.from_token = Some(Token::new(1, 4).unwrap());
    let mut no_token = TiChange::of(&read);
    no_token.from_token = None;
    let mut other_state = TiChange::of(&read);
    other_state.from = TiState::Running;
    let mut nowhere = TiChange::of(&read);
    nowhere.to.key.map_index = 3;
    let changes = [stale, no_token, other_state, nowhere];
    assert_eq!(task_instance::change(&tx, &changes).await.unwrap(), [false; 4]);
    assert_eq!(task_instance::get(&tx, &[row.key]).await.unwrap(), [read]);
}

async fn i3_of_two_changes_from_one_state_one_wins(place: &impl Place) {
    let store = place.open();
    let run_pk = settle(&store).await;
    let tx = store.begin("make").await.unwrap();
    let row = ti(key(run_pk, 0), TiState::Scheduled);
    make(&tx, std::slice::from_ref(&row)).await;
    tx.commit().await.unwrap();
    let mut racers = tokio::task::JoinSet::new();
    for n in 0..16_u32 {
        let (store, mut change) = (store.clone(), TiChange::of(&row));
        (change.to.state, change.to.attempts) = (TiState::Queued, n);
        racers.spawn(async move {
            let tx = store.begin("race").await.unwrap();
            let won = task_instance::change(&tx, &[change]).await.unwrap()[0];
            tx.commit().await.unwrap();
            won.then_some(n)
        });
    }
    let winners: Vec<u32> = racers.join_all().await.into_iter().flatten().collect();
    let tx = store.read("look").await.unwrap();
    let row = task_instance::get(&tx, &[row.key]).await.unwrap().remove(0);
    assert_eq!(winners, [row.attempts]);
}

async fn an_attempt_starts_for_its_owner_once(place: &impl Place) {
    let store = place.open();
    let run_pk = settle(&store).await;
    let tx = store.begin("start").await.unwrap();
    let token = queue(&tx, run_pk, 0, 1).await[0];
    assert_eq!(attempt::start(&tx, &[start(token, 1, "a")]).await.unwrap(), [false], "queued");
    attempt::claim(&tx, claimer(1), "default", 1).await.unwrap();
    let starts = [start(token, 2, "a"), start(token, 1, "a"), start(token, 1, "b")];
    assert_eq!(attempt::start(&tx, &starts).await.unwrap(), [false, true, false]);
    let first = one(&tx, token).await;
    assert_eq!((first.state, first.start_id.as_deref()), (AttemptState::Running, Some("a")));
    // Proved not to have happened: it is started again, and its first start stays its start.
    assert!(!attempt::unstart(&tx, token, job_id(2)).await.unwrap());
    assert!(attempt::unstart(&tx, token, job_id(1)).await.unwrap());
    assert_eq!(attempt::start(&tx, &[start(token, 1, "b")]).await.unwrap(), [true]);
    let again = one(&tx, token).await;
    assert_eq!((again.start_id.as_deref(), again.started_at), (Some("b"), first.started_at));
}

async fn i4_an_attempt_ends_once(place: &impl Place) {
    let store = place.open();
    let run_pk = settle(&store).await;
    let tx = store.begin("end").await.unwrap();
    let token = queue(&tx, run_pk, 0, 1).await[0];
    let ends = [end(token, AttemptState::Running), end(token, AttemptState::Queued)];
    assert_eq!(attempt::end(&tx, &ends).await.unwrap(), [false, true]);
    let mut late = end(token, AttemptState::Queued);
    late.reason = "late".into();
    assert_eq!(attempt::end(&tx, &[late]).await.unwrap(), [false]);
    let read = one(&tx, token).await;
    let expected = end(token, AttemptState::Queued);
    assert_eq!(read.state, AttemptState::Ended);
    assert_eq!(read.outcome, Some(expected.outcome));
    assert_eq!(read.reason, Some(expected.reason));
    assert_eq!(read.report_digest, expected.report_digest);
    assert_eq!(read.ended_at, Some(tx.now()));
    assert_eq!(attempt::by_id(&tx, read.attempt_id).await.unwrap(), Some(read));
}

async fn a_stop_is_asked_of_what_runs(place: &impl Place) {
    let store = place.open();
    let run_pk = settle(&store).await;
    let tx = store.begin("stop").await.unwrap();
    let tokens = queue(&tx, run_pk, 0, 2).await;
    let running = attempt::claim(&tx, claimer(1), "default", 1).await.unwrap()[0];
    attempt::start(&tx, &[start(running, 1, "a")]).await.unwrap();
    let clear = StopRequest { reason: StopReason::Clear, by: "ann", mark: None };
    attempt::stop(&tx, &tokens, &clear).await.unwrap();
    // A second stop does not move the first one's instant; only its reason may be changed.
    let asked = one(&tx, running).await;
    assert_eq!((asked.state, asked.stop_reason), (AttemptState::Stopping, Some(StopReason::Clear)));
    let mark = StopRequest { reason: StopReason::Mark, by: "bob", mark: Some("failed") };
    attempt::stop(&tx, &tokens, &mark).await.unwrap();
    assert_eq!(one(&tx, running).await, asked);
    attempt::change_stop(&tx, &tokens, &mark).await.unwrap();
    let changed = one(&tx, running).await;
    assert_eq!((changed.stop_reason, changed.stop_at), (Some(StopReason::Mark), asked.stop_at));
    assert_eq!(changed.stop_mark.as_deref(), Some("failed"));
    let other = tokens.iter().find(|token| **token != running).unwrap();
    assert_eq!(one(&tx, *other).await.stop_reason, None, "what is queued is not asked");
}

async fn a_hand_over_moves_what_is_open(place: &impl Place) {
    let store = place.open();
    let run_pk = settle(&store).await;
    let tx = store.begin("hand_over").await.unwrap();
    let tokens = queue(&tx, run_pk, 0, 3).await;
    attempt::claim(&tx, claimer(1), "default", 2).await.unwrap();
    attempt::end(&tx, &[end(tokens[0], AttemptState::Claimed)]).await.unwrap();
    let mut moved = Vec::new();
    for token in &tokens {
        moved.push(attempt::hand_over(&tx, *token, claimer(2)).await.unwrap());
    }
    assert_eq!(moved, [false, true, false], "ended, claimed, queued");
    let open = attempt::open_of(&tx, job_id(2), 0, 10).await.unwrap();
    assert_eq!(open.iter().map(|a| a.token).collect::<Vec<_>>(), [tokens[1]]);
    assert_eq!(attempt::open_of(&tx, job_id(1), 0, 10).await.unwrap(), []);
    assert_eq!(attempt::open_of(&tx, job_id(2), tokens[1].as_i64(), 10).await.unwrap(), []);
}

async fn a_run_starts_ends_stops_and_opens_from_its_state(place: &impl Place) {
    let store = place.open();
    let run_pk = settle(&store).await;
    let tx = store.begin("run").await.unwrap();
    let start = |unfinished, timeout| [run::RunStart { run_pk, unfinished, timeout }];
    assert_eq!(run::start(&tx, &start(1, None)).await.unwrap(), [false], "it runs already");
    assert!(run::stop(&tx, run_pk, StopReason::Cancel, "ann").await.unwrap());
    assert!(!run::stop(&tx, run_pk, StopReason::FailFast, "bob").await.unwrap());
    let read = run::by_pks(&tx, &[run_pk]).await.unwrap().remove(0);
    let stop = (read.stop_reason, read.stop_by.as_deref());
    assert_eq!(stop, (Some(StopReason::Cancel), Some("ann")), "the first reason stays");
    assert!(!run::reopen(&tx, run_pk).await.unwrap(), "it is not over");
    let end = async |from, to| {
        run::end(&tx, &[run::RunEnd { run_pk, from, to, reason: "why" }]).await.unwrap()
    };
    assert_eq!(end(RunState::Queued, RunState::Cancelled).await, [false]);
    assert_eq!(end(RunState::Running, RunState::Cancelled).await, [true]);
    assert_eq!(end(RunState::Running, RunState::Success).await, [false]);
    assert_eq!(run::count_down(&tx, &[(run_pk, 1)]).await.unwrap(), [], "it is over");
    assert!(run::reopen(&tx, run_pk).await.unwrap());
    let nine = Some(Span::from_secs(9));
    assert_eq!(run::start(&tx, &start(3, nine)).await.unwrap(), [true]);
    assert_eq!(run::count_down(&tx, &[(run_pk, 2)]).await.unwrap(), [(run_pk, 1)]);
    let read = run::by_pks(&tx, &[run_pk]).await.unwrap().remove(0);
    assert_eq!((read.stop_reason, read.ended_at, read.reason), (None, None, None));
    assert_eq!(run::next_deadline(&tx).await.unwrap(), Some(tx.now().plus(Span::from_secs(9))));
}

async fn i17_one_run_of_a_name_and_one_advance_of_a_schedule(place: &impl Place) {
    let store = place.open();
    settle(&store).await;
    let tx = store.begin("runs").await.unwrap();
    let runs = [new_run("d", "r"), new_run("d", "s"), new_run("d", "s"), new_run("e", "r")];
    assert_eq!(run::insert(&tx, &runs).await.unwrap(), [false, true, false, true]);
    let read = run::get(&tx, "d", "s").await.unwrap().unwrap();
    assert_eq!((&read.conf, read.state), (&runs[1].conf, RunState::Queued));
    let advance = |from, to| dag::advance(&tx, "d", from, to, Some(at(9)));
    assert!(advance(None, Some(at(5))).await.unwrap());
    assert!(!advance(None, Some(at(6))).await.unwrap());
    assert!(!advance(Some(at(4)), Some(at(6))).await.unwrap());
    assert!(advance(Some(at(5)), Some(at(6))).await.unwrap());
    // A new version of the file keeps what people set.
    let mut row = dag::get(&tx, "d").await.unwrap().unwrap();
    dag::pause(&tx, &row, true, Some("ann")).await.unwrap();
    (row.is_paused, row.description) = (false, "new".into());
    dag::upsert(&tx, &row).await.unwrap();
    let read = dag::get(&tx, "d").await.unwrap().unwrap();
    assert_eq!((read.is_paused, read.description.as_str()), (true, "new"));
    assert_eq!(read.tags, dag_row("d").tags);
}

async fn a_late_beat_renews_nothing(place: &impl Place) {
    let store = place.open();
    settle(&store).await;
    let tx = store.begin("beats").await.unwrap();
    let seq = async || job::get(&tx, job_id(1)).await.unwrap().unwrap().renew_seq;
    for (beat, expected) in [(5, 5), (3, 5), (5, 5), (6, 6)] {
        lease::renew(&tx, &mut [beats(beat)]).await.unwrap();
        assert_eq!(seq().await, expected);
    }
    assert!(job::stop(&tx, job_id(1), false).await.unwrap());
    assert!(!job::stop(&tx, job_id(1), false).await.unwrap());
    let late = lease::renew(&tx, &mut [beats(9)]).await.unwrap();
    assert_eq!(late, [(job_id(1), Renewed::Over(JobState::Stopped))]);
    let ended = job::get(&tx, job_id(1)).await.unwrap().unwrap();
    assert_eq!((ended.renew_seq, ended.state), (6, JobState::Stopped), "no beat revives it");
    assert_eq!(job::live(&tx).await.unwrap().len(), 1);
}

async fn i14_a_pool_remembers_that_it_was_made_smaller(place: &impl Place) {
    let store = place.open();
    let run_pk = settle(&store).await;
    let tx = store.begin("pools").await.unwrap();
    let token = queue(&tx, run_pk, 0, 1).await[0];
    let (pool, dag_id) = ("p".to_owned(), "d".to_owned());
    let hold = Hold { token, pool, slots: 3, dag_id, run_pk, task_index: 0 };
    pool::hold(&tx, &[hold]).await.unwrap();
    let look = async || {
        let row = pool::list(&tx).await.unwrap().remove(0);
        (row.slots, row.held, row.shrunk)
    };
    assert_eq!(look().await, (1_000, 3, false));
    pool::set(&tx, "p", 2, "smaller").await.unwrap();
    pool::settle(&tx).await.unwrap();
    assert_eq!(look().await, (2, 3, true));
    assert!(!pool::delete(&tx, "p").await.unwrap(), "something holds it");
    pool::free(&tx, &[token]).await.unwrap();
    pool::settle(&tx).await.unwrap();
    assert_eq!(look().await, (2, 0, false));
    assert!(pool::delete(&tx, "p").await.unwrap());
}
