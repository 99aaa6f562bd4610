//! Opening: migrations by any number at once, what is refused, and the guards of a session.

use crate::place::{PostgresDatabase, options};
use fencepost_core::hook::Hooks;
use fencepost_core::time::Span;
use fencepost_store::{
    Applied, PgOptions, SCHEMA_VERSION, Stmt, Store, StoreErrorKind, check_postgres,
    migrate_postgres, params,
};
use fencepost_testing::Database;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

const NOW: Applied = Applied { before: SCHEMA_VERSION, now: SCHEMA_VERSION };

async fn refusal(url: &str) -> (StoreErrorKind, String) {
    let error = Store::open_postgres(url, options(), Hooks::none()).await.unwrap_err();
    (error.kind, error.message)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_migrate_one_database_once() {
    let database = Database::empty().unwrap();
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let url = database.url().to_owned();
        all.spawn(async move { migrate_postgres(&url, options()).await.unwrap() });
    }
    let done = all.join_all().await;
    let first = done.iter().filter(|applied| applied.before == 0).count();
    assert_eq!(first, 1, "{done:?}");
    assert!(done.iter().all(|applied| applied.now == SCHEMA_VERSION));
    assert_eq!(check_postgres(database.url(), options()).await.unwrap(), NOW);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_refuses_what_is_not_migrated_and_what_is_newer_or_anothers() {
    let database = Database::empty().unwrap();
    let (kind, message) = refusal(database.url()).await;
    assert_eq!(kind, StoreErrorKind::Setup);
    assert!(message.contains("run `fencepost db migrate --store postgres://"), "{message}");
    let secret = database.url().split(':').nth(2).unwrap().split('@').next().unwrap();
    assert!(!message.contains(secret), "{message}");
    migrate_postgres(database.url(), options()).await.unwrap();
    Store::open_postgres(database.url(), options(), Hooks::none()).await.unwrap();
    database.sql("INSERT INTO schema_migration VALUES (900, 'newer', 0)").unwrap();
    let (kind, message) = refusal(database.url()).await;
    assert_eq!(kind, StoreErrorKind::Corrupt);
    assert!(message.contains("use the newer program"), "{message}");
    database.sql("DELETE FROM schema_migration WHERE version = 900").unwrap();
    database.sql("UPDATE schema_migration SET checksum = 'x' WHERE version = 1").unwrap();
    let (kind, message) = refusal(database.url()).await;
    assert_eq!(kind, StoreErrorKind::Corrupt);
    assert!(message.contains("migration 1 was applied with another text"), "{message}");
}

const SHOW: Stmt =
    Stmt::same("show", "SELECT setting FROM pg_settings WHERE name = $1 ORDER BY name");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guards_hold_in_every_transaction() {
    let place = PostgresDatabase::new();
    let options = PgOptions { guard: Span::from_secs(4), ..options() };
    let store = Store::open_postgres(place.database.url(), options, Hooks::none()).await.unwrap();
    for _ in 0..3 {
        let tx = store.begin("show").await.unwrap();
        for (name, value) in [
            ("statement_timeout", "4000"),
            ("lock_timeout", "2000"),
            ("idle_in_transaction_session_timeout", "4000"),
            ("tcp_user_timeout", "4000"),
            ("enable_bitmapscan", "off"),
            ("application_name", "fencepost-test"),
            ("transaction_isolation", "read committed"),
        ] {
            let row = tx.query_opt(&SHOW, params![name]).await.unwrap().unwrap();
            assert_eq!(row.columns("setting").text().unwrap(), value, "{name}");
        }
        tx.commit().await.unwrap();
    }
    let tx = store.read("show").await.unwrap();
    let row = tx.query_opt(&SHOW, params!["transaction_read_only"]).await.unwrap().unwrap();
    assert_eq!(row.columns("setting").text().unwrap(), "on");
}

/// Who stops inside a transaction loses it, and its locks, after the guard's time (I28).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i28_a_pause_inside_a_transaction_ends_it_and_frees_its_locks() {
    let place = PostgresDatabase::new();
    let url = place.database.url();
    let short = PgOptions { guard: Span::from_millis(400), ..options() };
    let stopped = Store::open_postgres(url, short, Hooks::none()).await.unwrap();
    let other = Store::open_postgres(url, options(), Hooks::none()).await.unwrap();
    crate::rows::settle(&other).await;
    const LOCK: Stmt = Stmt::same("lock", "UPDATE pool SET slots = slots WHERE slots >= $1");
    let held = stopped.begin("stopped").await.unwrap();
    assert!(held.execute(&LOCK, params![1]).await.unwrap() > 0);
    // The other one waits for the lock, and gets it although nobody gave it back.
    let tx = other.begin("other").await.unwrap();
    tx.execute(&LOCK, params![1]).await.unwrap();
    tx.commit().await.unwrap();
    let error = held.execute(&LOCK, params![1]).await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Unavailable, "{error}");
    drop(held);
    // And its store goes on with another connection.
    let tx = stopped.begin("again").await.unwrap();
    tx.execute(&LOCK, params![1]).await.unwrap();
    tx.commit().await.unwrap();
}

/// A lock that is not given back in time, and a deadlock, are told apart from an outage.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_in_anothers_way_is_told_so() {
    let place = PostgresDatabase::new();
    let url = place.database.url();
    let options = PgOptions { guard: Span::from_secs(2), ..options() };
    let store = Store::open_postgres(url, options, Hooks::none()).await.unwrap();
    crate::rows::settle(&store).await;
    const LOCK: Stmt = Stmt::same("lock", "UPDATE pool SET slots = slots WHERE slots >= $1");
    let held = store.begin("held").await.unwrap();
    assert!(held.execute(&LOCK, params![1]).await.unwrap() > 0);
    let tx = store.begin("waits").await.unwrap();
    let error = tx.execute(&LOCK, params![1]).await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Contended, "{error}");
}

/// A transaction that took too long in total says and commits nothing any more, also if each of its
/// statements was quick: who wrote may have lost its lease meanwhile (I9).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i9_a_transaction_that_takes_too_long_in_total_changes_nothing() {
    let place = PostgresDatabase::new();
    let now = Arc::new(AtomicI64::new(0));
    let clock = Arc::clone(&now);
    let options = PgOptions {
        transaction: Span::from_secs(5),
        ..PgOptions::new("fencepost-test", move || {
            Span::from_micros(clock.load(Ordering::SeqCst) * 1_000_000)
        })
    };
    let store = Store::open_postgres(place.database.url(), options, Hooks::none()).await.unwrap();
    crate::rows::settle(&store).await;
    const CHANGE: Stmt = Stmt::same("change", "UPDATE pool SET slots = slots + $1");
    for (before, after) in [(4, 0), (0, 5), (5, 0)] {
        let slots = place.database.sql("SELECT sum(slots) FROM pool").unwrap();
        let tx = store.begin("slow").await.unwrap();
        now.fetch_add(before, Ordering::SeqCst);
        let changed = tx.execute(&CHANGE, params![1]).await;
        assert_eq!(changed.is_ok(), before < 5);
        now.fetch_add(after, Ordering::SeqCst);
        let committed = tx.commit().await;
        assert_eq!(committed.is_ok(), before + after < 5);
        let is_same = place.database.sql("SELECT sum(slots) FROM pool").unwrap() == slots;
        assert_eq!(is_same, before + after >= 5);
    }
    // And its locks are free.
    let tx = store.begin("next").await.unwrap();
    tx.execute(&CHANGE, params![1]).await.unwrap();
    tx.commit().await.unwrap();
}
