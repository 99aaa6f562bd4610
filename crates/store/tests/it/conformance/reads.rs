//! Readers: one snapshot each, beside the writer.

use super::conformance;
use crate::place::Place;
use crate::rows::{key, make, mark, marks, settle, ti};
use fencepost_core::state::{RunState, TiState};
use fencepost_core::trigger_rule::UpstreamCounts;
use fencepost_store::query::task_instance::{self, CandidatePlace, TaskMove};
use fencepost_store::query::{attempt, outbox, run};

conformance!(
    a_reader_sees_one_snapshot_and_holds_up_no_writer,
    a_reader_cannot_write,
    a_commit_is_seen_by_the_next_reader,
    marks_of_waiting_runs_do_not_hide_those_of_running_ones,
    candidates_are_of_running_runs_that_are_not_paused,
    rows_come_in_the_order_in_which_they_are_asked_for,
);

async fn a_reader_sees_one_snapshot_and_holds_up_no_writer(place: &impl Place) {
    let store = place.open();
    let reader = store.read("look").await.unwrap();
    assert_eq!(outbox::due(&reader, 10).await.unwrap(), []);
    let tx = store.begin("write").await.unwrap();
    mark(&tx, "new").await.unwrap();
    tx.commit().await.unwrap();
    let again = outbox::due(&reader, 10).await;
    if place.keeps_old_snapshots() {
        assert_eq!(again.unwrap(), [], "its snapshot is older");
    } else {
        assert!(again.is_err(), "it is never mixed");
    }
    assert_eq!(marks(&store).await, ["new"]);
}

async fn a_reader_cannot_write(place: &impl Place) {
    let store = place.open();
    let reader = store.read("look").await.unwrap();
    assert!(mark(&reader, "no").await.is_err());
    drop(reader);
    assert_eq!(marks(&store).await, [] as [&str; 0]);
}

async fn a_commit_is_seen_by_the_next_reader(place: &impl Place) {
    let (store, other) = (place.open(), place.open());
    for n in 1..=50 {
        let tx = store.begin("write").await.unwrap();
        mark(&tx, "x").await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(marks(&store).await.len(), n);
        assert_eq!(marks(&other).await.len(), n, "through another store");
    }
}

/// Section 3: rows that need nothing never hide the one that does.
async fn marks_of_waiting_runs_do_not_hide_those_of_running_ones(place: &impl Place) {
    let store = place.open();
    let running = settle(&store).await;
    let tx = store.begin("make").await.unwrap();
    let marked = |run_pk, task| {
        let mut row = ti(key(run_pk, task), TiState::None);
        (row.recheck, row.upstream) = (1, UpstreamCounts { total: 2, ..UpstreamCounts::default() });
        row
    };
    // Keys of runs that wait for their turn come first in the order.
    let waiting: Vec<_> = (0..5).map(|task| marked(running - 1, task)).collect();
    make(&tx, &waiting).await;
    make(&tx, &[marked(running, 7)]).await;
    let found = task_instance::recheck(&tx, 2, (0, 0, 0), 3).await.unwrap();
    assert_eq!(found.iter().map(|row| row.key).collect::<Vec<_>>(), [key(running, 7)]);
    assert_eq!(found[0].upstream.total, 2);
    let next = task_instance::recheck(&tx, 2, (1, running, 7), 3).await.unwrap();
    assert_eq!(next, [], "the page after it");
    let to = TaskMove {
        run_pk: running,
        task_index: 7,
        to: TiState::Skipped,
        reason: "trigger_rule".into(),
    };
    let moved = task_instance::move_tasks(&tx, &[to.clone(), to]).await.unwrap();
    assert_eq!(moved.len(), 1, "only what is `none` moves");
    let row = task_instance::get(&tx, &[key(running, 7)]).await.unwrap().remove(0);
    assert_eq!((row.state, row.recheck, row.forward_due), (TiState::Skipped, 0, true));
}

async fn candidates_are_of_running_runs_that_are_not_paused(place: &impl Place) {
    let store = place.open();
    let run_pk = settle(&store).await;
    let tx = store.begin("make").await.unwrap();
    let mut rows: Vec<_> = (0..4).map(|task| ti(key(run_pk, task), TiState::Scheduled)).collect();
    for (row, priority) in rows.iter_mut().zip([1, 5, 5, 9]) {
        row.priority = priority;
    }
    rows[3].pool = "q".into();
    make(&tx, &rows).await;
    let pair = |pool: &str| ("d".to_owned(), pool.to_owned());
    let page = async |pool: &str, limit, after| {
        let found = task_instance::candidates(&tx, &pair(pool), after, limit).await.unwrap();
        found.iter().map(|row| row.key.task_index).collect::<Vec<_>>()
    };
    let found = async |pool: &str| page(pool, 9, CandidatePlace::FIRST).await;
    assert_eq!(found("p").await, [1, 2, 0]);
    assert_eq!(page("p", 2, CandidatePlace::of(&rows[1])).await, [2, 0]);
    assert_eq!(page("p", 2, CandidatePlace::of(&rows[2])).await, [0]);
    assert_eq!(page("p", 2, CandidatePlace::of(&rows[0])).await, [] as [u32; 0]);
    assert_eq!(found("q").await, [3]);
    let first = task_instance::next_pair(&tx, &(String::new(), String::new())).await.unwrap();
    assert_eq!(first, Some(pair("p")));
    assert_eq!(task_instance::next_pair(&tx, &pair("p")).await.unwrap(), Some(pair("q")));
    assert_eq!(task_instance::next_pair(&tx, &pair("q")).await.unwrap(), None);
    run::pause(&tx, run_pk, true).await.unwrap();
    assert_eq!(found("p").await, [] as [u32; 0]);
    run::pause(&tx, run_pk, false).await.unwrap();
    let (from, to) = (RunState::Running, RunState::Failed);
    run::end(&tx, &[run::RunEnd { run_pk, from, to, reason: "x" }]).await.unwrap();
    assert_eq!(found("p").await, [] as [u32; 0]);
}

/// Whatever the order of their locks.
async fn rows_come_in_the_order_in_which_they_are_asked_for(place: &impl Place) {
    let store = place.open();
    let run_pk = settle(&store).await;
    let tx = store.begin("make").await.unwrap();
    let keys: Vec<_> = (0..4).map(|task| key(run_pk, task)).collect();
    let made: Vec<_> = keys.iter().map(|key| ti(*key, TiState::None)).collect();
    task_instance::insert(&tx, &made).await.unwrap();
    let tokens = crate::rows::queue(&tx, run_pk, 0, 4).await;
    tx.commit().await.unwrap();
    for writes in [false, true] {
        let tx = if writes { store.begin("x").await } else { store.read("x").await }.unwrap();
        let asked = [keys[2], keys[0], key(run_pk, 9), keys[3]];
        let found = task_instance::get(&tx, &asked).await.unwrap();
        let order: Vec<u32> = found.iter().map(|ti| ti.key.task_index).collect();
        assert_eq!(order, [2, 0, 3]);
        let heads = task_instance::heads(&tx, &[(run_pk, 3), (run_pk, 1)]).await.unwrap();
        assert_eq!(heads.iter().map(|ti| ti.key.task_index).collect::<Vec<_>>(), [3, 1]);
        let found = attempt::get(&tx, &[tokens[3], tokens[1]]).await.unwrap();
        assert_eq!(found.iter().map(|a| a.token).collect::<Vec<_>>(), [tokens[3], tokens[1]]);
    }
}
