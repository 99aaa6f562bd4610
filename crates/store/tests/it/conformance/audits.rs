//! The snapshot that the audit reads: what the rows say arrives in it, from every table.

use super::conformance;
use crate::place::Place;
use crate::rows::{end, key, make, new_run, queue, settle, ti};
use fencepost_core::audit::{Snapshot, audit};
use fencepost_core::id::Token;
use fencepost_core::state::{AttemptState, RunState, RunType, TiState};
use fencepost_store::query::audit::{last_run, snapshot};
use fencepost_store::query::dag::NewVersion;
use fencepost_store::query::event::{self, Event};
use fencepost_store::query::pool::{self, Hold};
use fencepost_store::query::run::RunEnd;
use fencepost_store::query::task_instance::TiChange;
use fencepost_store::query::{attempt, dag, run, task_instance, xcom};
use fencepost_store::{Stmt, Store, Tx, params};
use serde_json::json;

conformance!(
    a_healthy_store_passes,
    each_broken_row_is_found,
    i17_two_runs_of_a_slot_are_found_however_far_apart,
    a_snapshot_is_of_its_range_of_runs,
);

/// a (success, one output) -> b (queued, one hold), with the version that says so.
async fn healthy(store: &Store) -> (i64, Vec<Token>) {
    let run_pk = settle(store).await;
    let tx = store.begin("fill").await.unwrap();
    let ir = json!({"default_args": {"infra_retries": 5},
                    "tasks": {"t0": {}, "t1": {"depends_on": ["t0"]}}});
    let version = NewVersion { dag_id: "d", version: 1, content_hash: "hash", ir: &ir, source: "" };
    assert_eq!(dag::insert_version(&tx, version).await.unwrap(), 1);
    let (a, mut b) =
        (ti(key(run_pk, 0), TiState::Scheduled), ti(key(run_pk, 1), TiState::Scheduled));
    b.upstream.total = 1;
    make(&tx, &[a.clone(), b.clone()]).await;
    let tokens = queue(&tx, run_pk, 0, 2).await;
    attempt::end(&tx, &[end(tokens[0], AttemptState::Queued)]).await.unwrap();
    let mut changes = [TiChange::of(&a), TiChange::of(&b)];
    for (change, token) in changes.iter_mut().zip(&tokens) {
        (change.to.token, change.to.attempts) = (Some(*token), 1);
    }
    (changes[0].to.state, changes[1].to.state) = (TiState::Success, TiState::Queued);
    assert_eq!(task_instance::change(&tx, &changes).await.unwrap(), [true, true]);
    b.upstream.success = 1;
    task_instance::set_counts(&tx, &[(b.key, b.upstream)]).await.unwrap();
    event::append(&tx, vec![line(run_pk, "t1", "scheduled"), line(run_pk, "t1", "queued")])
        .await
        .unwrap();
    let output = ("rows".to_owned(), json!(1));
    let produced = xcom::Produced { ti: key(run_pk, 0), token: tokens[0], outputs: vec![output] };
    xcom::replace(&tx, &[produced]).await.unwrap();
    pool::hold(&tx, &[hold(tokens[1], run_pk)]).await.unwrap();
    tx.commit().await.unwrap();
    (run_pk, tokens)
}

fn line(run_pk: i64, task_id: &str, to: &'static str) -> Event {
    Event {
        kind: "ti_state",
        run_pk: Some(run_pk),
        task_id: Some(task_id.into()),
        map_index: Some(-1),
        actor: "scheduler".into(),
        to: Some(to),
        ..Event::default()
    }
}

fn hold(token: Token, run_pk: i64) -> Hold {
    Hold { token, pool: "p".into(), slots: 1, dag_id: "d".into(), run_pk, task_index: 1 }
}

async fn read(tx: &Tx) -> Snapshot {
    let last = last_run(tx).await.unwrap();
    snapshot(tx, 0, last).await.unwrap()
}

async fn a_healthy_store_passes(place: &impl Place) {
    let store = place.open();
    let empty = read(&store.read("audit").await.unwrap()).await;
    assert_eq!(empty, Snapshot::default());
    let (run_pk, tokens) = healthy(&store).await;
    let found = read(&store.read("audit").await.unwrap()).await;
    assert_eq!(audit(&found), []);
    let sizes = (found.runs.len(), found.tis.len(), found.attempts.len(), found.outputs.len());
    assert_eq!(sizes, (1, 2, 2, 1));
    let edges: Vec<_> = found.tasks.iter().map(|t| (t.run, t.task, t.upstreams.clone())).collect();
    assert_eq!(edges, [(run_pk, 0, vec![]), (run_pk, 1, vec![0])]);
    assert_eq!(found.highest_minted, tokens.last().copied());
    assert_eq!(found.tis[1].logged, Some(TiState::Queued));
    assert_eq!(found.tis[1].name, "d r t1");
}

/// A change of one row, and the invariant that it breaks.
async fn each_broken_row_is_found(place: &impl Place) {
    let store = place.open();
    healthy(&store).await;
    let cases = [
        ("I1", "UPDATE attempt SET state = 'running' WHERE state = 'queued'"),
        ("I2", "UPDATE installation SET counter = 1"),
        ("I3", "UPDATE task_instance SET token = 0 WHERE task_index = 1"),
        ("I3", "UPDATE xcom SET token = (SELECT MAX(token) FROM attempt)"),
        ("I4", "UPDATE task_instance SET state = 'failed' WHERE task_index = 1"),
        ("I7", "UPDATE task_instance SET up_success = 0 WHERE task_index = 1"),
        ("I7", "UPDATE task_instance SET up_failed = 1 WHERE task_index = 1"),
        ("I7", "UPDATE run SET unfinished = 7"),
        ("I8", "UPDATE task_instance SET attempts = 5 WHERE task_index = 0"),
        ("I8", "UPDATE task_instance SET infra_losses = 1 WHERE task_index = 0"),
        ("I8", "UPDATE task_instance SET try_number = 2 WHERE task_index = 0"),
        ("I8", "UPDATE attempt SET counted_as = 'infra' WHERE outcome = 'success'"),
        ("I14", "DELETE FROM hold"),
        ("I14", "UPDATE pool SET slots = 0"),
        ("I24", "UPDATE run SET state = 'success'"),
        ("I24", "UPDATE task_instance SET state = 'none' WHERE task_index = 1"),
        ("I24", "DELETE FROM run"),
        ("I32", "UPDATE task_instance SET retry_at = 5 WHERE task_index = 0"),
        ("I32", "DELETE FROM attempt WHERE state = 'queued'"),
        ("I34", "DELETE FROM event WHERE to_state = 'queued'"),
    ];
    for (invariant, text) in cases {
        // Never committed: the next case begins with the healthy rows.
        let tx = store.begin("break").await.unwrap();
        let changed = tx.execute(&Stmt::same("break", text), params![]).await.unwrap();
        assert!(changed > 0, "{text} breaks nothing");
        let found = audit(&snapshot(&tx, 0, 9).await.unwrap());
        let hit = found.iter().any(|violation| violation.invariant == invariant);
        assert!(hit, "{text}: expected {invariant}, found {found:?}");
    }
    assert_eq!(audit(&read(&store.read("audit").await.unwrap()).await), []);
}

async fn i17_two_runs_of_a_slot_are_found_however_far_apart(place: &impl Place) {
    let store = place.open();
    let tx = store.begin("runs").await.unwrap();
    let scheduled = |n: i64, slot| {
        let mut new = new_run("d", &format!("r{n}"));
        (new.run_type, new.logical_date) = (RunType::Scheduled, Some(crate::rows::at(slot)));
        new
    };
    let runs: Vec<_> = (0..6).map(|n| scheduled(n, if n == 5 { 0 } else { n })).collect();
    run::insert(&tx, &runs).await.unwrap();
    let mut manual = new_run("d", "by hand");
    manual.logical_date = Some(crate::rows::at(3));
    run::insert(&tx, &[manual]).await.unwrap();
    for (from, to, doubled) in [(0, 2, 1), (2, 5, 0), (5, 6, 1), (0, 9, 1)] {
        let found = snapshot(&tx, from, to).await.unwrap();
        assert_eq!(found.doubled_slots.len(), doubled, "runs {from} to {to}");
    }
    // A backfill of a slot that has a run; of one that was missed it is no second run.
    let mut backfill = new_run("d", "backfill");
    (backfill.run_type, backfill.logical_date) = (RunType::Backfill, Some(crate::rows::at(4)));
    run::insert(&tx, &[backfill]).await.unwrap();
    assert_eq!(snapshot(&tx, 7, 8).await.unwrap().doubled_slots.len(), 1);
    let of_slot = run::get(&tx, "d", "r4").await.unwrap().unwrap();
    let (from, to, reason) = (RunState::Queued, RunState::Missed, "start_deadline");
    run::end(&tx, &[RunEnd { run_pk: of_slot.run_pk, from, to, reason }]).await.unwrap();
    assert_eq!(snapshot(&tx, 7, 8).await.unwrap().doubled_slots.len(), 0);
}

async fn a_snapshot_is_of_its_range_of_runs(place: &impl Place) {
    let store = place.open();
    let (run_pk, _) = healthy(&store).await;
    let tx = store.read("audit").await.unwrap();
    let after = snapshot(&tx, run_pk, run_pk + 9).await.unwrap();
    assert!(after.runs.is_empty() && after.tis.is_empty() && after.attempts.is_empty());
    assert!(after.outputs.is_empty() && after.tasks.is_empty());
    assert_eq!(after.pools.len(), 1, "pools belong to no run");
}
