//! What is kept and what is not: commits, drops, failures, and sessions that share a sync.

use super::conformance;
use crate::place::Place;
use crate::rows::{mark, marks, new_run, settle};
use fencepost_store::query::{outbox, run};
use fencepost_store::{Stmt, Store, StoreError, StoreErrorKind, params};
use serde_json::json;

conformance!(
    a_session_that_is_dropped_leaves_nothing,
    what_is_committed_is_there_after_reopening,
    a_failed_statement_ends_its_session,
    what_is_asked_for_at_once_runs_in_its_order,
    a_failed_session_takes_nobody_along,
    a_dropped_wait_for_a_turn_holds_up_nobody,
    many_writers_lose_and_double_nothing,
    a_transaction_has_one_time_and_times_do_not_fall,
    text_comes_back_as_it_was,
);

/// Breaks a rule of the schema.
const TWICE: Stmt = Stmt::same(
    "twice",
    "INSERT INTO outbox (id, kind, payload, state, created_at, due_at)
     VALUES ($1, 'x', 'null', 'due', 0, 0)",
);
const RENAME: Stmt = Stmt::same("rename", "UPDATE outbox SET kind = $1 WHERE kind = $2");
const NONSENSE: Stmt = Stmt::same("nonsense", "SELECT no_such_column FROM outbox");

async fn write(store: &Store, name: &str) -> Result<(), StoreError> {
    let tx = store.begin("write").await?;
    mark(&tx, name).await?;
    tx.commit().await
}

async fn a_session_that_is_dropped_leaves_nothing(place: &impl Place) {
    let store = place.open();
    for kept in [false, true, false] {
        let tx = store.begin("write").await.unwrap();
        mark(&tx, if kept { "kept" } else { "dropped" }).await.unwrap();
        if kept {
            tx.commit().await.unwrap();
        }
    }
    assert_eq!(marks(&store).await, ["kept"]);
}

async fn what_is_committed_is_there_after_reopening(place: &impl Place) {
    {
        let store = place.open();
        write(&store, "one").await.unwrap();
        let tx = store.begin("write").await.unwrap();
        mark(&tx, "open").await.unwrap();
        // The store goes away with a session open in it.
    }
    assert_eq!(marks(&place.open()).await, ["one"]);
}

async fn a_failed_statement_ends_its_session(place: &impl Place) {
    let store = place.open();
    for wrong in [TWICE, NONSENSE] {
        let tx = store.begin("write").await.unwrap();
        mark(&tx, "before").await.unwrap();
        let sets = if wrong == TWICE { vec![params![1], params![1]] } else { vec![vec![]] };
        let first = tx.execute_many(&wrong, sets).await.unwrap_err();
        let expected = wrong == TWICE;
        assert_eq!(first.kind == StoreErrorKind::Constraint, expected, "{first}");
        assert!(first.message.contains(wrong.name), "it names the statement: {first}");
        let second = mark(&tx, "after").await.unwrap_err();
        assert!(second.message.contains("has failed before"), "{second}");
        let third = tx.commit().await.unwrap_err();
        assert!(third.message.contains("has failed before"), "{third}");
    }
    assert_eq!(marks(&store).await, [] as [&str; 0]);
    write(&store, "later").await.unwrap();
    assert_eq!(marks(&store).await, ["later"]);
}

/// None waits for the answer to the one before it; a failure ends them all.
async fn what_is_asked_for_at_once_runs_in_its_order(place: &impl Place) {
    let store = place.open();
    let tx = store.begin("write").await.unwrap();
    let ((), second, third) = tokio::try_join!(
        biased;
        mark(&tx, "one"),
        tx.execute(&RENAME, params!["two", "one"]),
        tx.execute(&RENAME, params!["three", "two"]),
    )
    .unwrap();
    assert_eq!((second, third), (1, 1));
    tx.commit().await.unwrap();
    let tx = store.begin("write").await.unwrap();
    let failed = tokio::try_join!(
        biased;
        mark(&tx, "before"),
        tx.execute_many(&TWICE, vec![params![77], params![77]]),
        mark(&tx, "after"),
    );
    assert_eq!(failed.unwrap_err().kind, StoreErrorKind::Constraint);
    let refused = tx.commit().await.unwrap_err();
    assert!(refused.message.contains("has failed before"), "{refused}");
    assert_eq!(marks(&store).await, ["three"]);
}

/// The first session is open while the others queue up behind it, so all of them are one group.
async fn a_failed_session_takes_nobody_along(place: &impl Place) {
    let store = place.open();
    let first = store.begin("first").await.unwrap();
    mark(&first, "first").await.unwrap();
    let broken = async {
        let tx = store.begin("broken").await?;
        mark(&tx, "broken").await?;
        tx.execute_many(&TWICE, vec![params![77], params![77]]).await?;
        tx.commit().await
    };
    let dropped = async {
        let tx = store.begin("dropped").await?;
        mark(&tx, "dropped").await
    };
    let (one, two, three, four, five, zero) = tokio::join!(
        write(&store, "one"),
        broken,
        write(&store, "two"),
        dropped,
        write(&store, "three"),
        first.commit(),
    );
    assert_eq!(two.unwrap_err().kind, StoreErrorKind::Constraint);
    for kept in [zero, one, three, four, five] {
        kept.unwrap();
    }
    assert_eq!(marks(&store).await, ["first", "one", "three", "two"]);
}

async fn a_dropped_wait_for_a_turn_holds_up_nobody(place: &impl Place) {
    let store = place.open();
    let first = store.begin("first").await.unwrap();
    {
        let waiting = store.begin("waiting");
        let given_up = tokio::time::timeout(std::time::Duration::from_millis(5), waiting).await;
        if place.is_serial() {
            assert!(given_up.is_err(), "the first one is still open");
        }
    }
    mark(&first, "first").await.unwrap();
    first.commit().await.unwrap();
    write(&store, "later").await.unwrap();
    assert_eq!(marks(&store).await, ["first", "later"]);
}

async fn many_writers_lose_and_double_nothing(place: &impl Place) {
    let (store, other) = (place.open(), place.open());
    let mut writers = tokio::task::JoinSet::new();
    for n in 0..200_u32 {
        let store = if n % 4 == 0 { other.clone() } else { store.clone() };
        writers.spawn(async move {
            let name = format!("w{n:03}");
            match n % 5 {
                0 => drop(store.begin("write").await.unwrap()),
                1 => {
                    let tx = store.begin("write").await.unwrap();
                    mark(&tx, "never").await.unwrap();
                    assert!(tx.execute(&NONSENSE, vec![]).await.is_err());
                    assert!(tx.commit().await.is_err());
                }
                _ => {
                    write(&store, &name).await.unwrap();
                    return Some(name);
                }
            }
            None
        });
    }
    let mut told: Vec<String> = writers.join_all().await.into_iter().flatten().collect();
    told.sort();
    assert_eq!(told.len(), 120);
    assert_eq!(marks(&store).await, told);
}

async fn a_transaction_has_one_time_and_times_do_not_fall(place: &impl Place) {
    let store = place.open();
    let mut last = None;
    for _ in 0..20 {
        let tx = store.begin("time").await.unwrap();
        let now = tx.now();
        mark(&tx, "x").await.unwrap();
        assert_eq!(tx.now(), now);
        assert!(outbox::next_due(&tx).await.unwrap().is_some_and(|due| due <= now));
        tx.commit().await.unwrap();
        assert!(last < Some(now), "the next transaction begins later");
        last = Some(now);
    }
}

/// I22: no text makes a write fail, and none is changed but for NUL bytes, which not every database
/// holds.
async fn text_comes_back_as_it_was(place: &impl Place) {
    let store = place.open();
    let run_pk = settle(&store).await;
    let long = "x".repeat(1 << 20);
    let texts =
        ["", "it's $1 ?1 -- ; DROP TABLE run", "\u{1f980} é \u{202e}", "a\nb\r\nc\t\\", &long];
    for text in texts {
        let tx = store.begin("note").await.unwrap();
        run::note(&tx, run_pk, text).await.unwrap();
        tx.commit().await.unwrap();
        let tx = store.read("look").await.unwrap();
        let read = run::by_pks(&tx, &[run_pk]).await.unwrap().remove(0);
        assert_eq!(read.note.as_deref(), Some(text));
        assert_eq!(read.conf, new_run("d", "r").conf);
    }
    let tx = store.begin("note").await.unwrap();
    run::note(&tx, run_pk, "a\0b\0").await.unwrap();
    let read = run::by_pks(&tx, &[run_pk]).await.unwrap().remove(0);
    assert_eq!(read.note.as_deref(), Some("a\u{fffd}b\u{fffd}"));
    drop(tx);
    let tx = store.begin("effect").await.unwrap();
    let payload = json!({"nul": "a\u{0}b", "n": [1.5, -3, null, true]});
    outbox::insert(&tx, "k", &payload).await.unwrap();
    assert_eq!(outbox::due(&tx, 1).await.unwrap()[0].payload, payload);
}
