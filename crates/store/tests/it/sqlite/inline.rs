//! The store in memory: what simulated processes rely on beyond the conformance suite.

use crate::rows::at;
use fencepost_core::hook::Hooks;
use fencepost_store::query::{installation, pool};
use fencepost_store::{MemoryDb, Store, StoreClock, StoreErrorKind, Way};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

const IDLE: Duration = Duration::from_secs(10);

fn handle(db: &MemoryDb, way: Option<Way>) -> Store {
    Store::open_memory(db, StoreClock::new(|| at(0)), Hooks::none(), way)
}

fn database() -> MemoryDb {
    MemoryDb::new(at(0), IDLE).unwrap()
}

async fn names(store: &Store) -> Vec<String> {
    let tx = store.read("test").await.unwrap();
    pool::list(&tx).await.unwrap().into_iter().map(|pool| pool.name).collect()
}

#[tokio::test(start_paused = true)]
async fn a_reader_sees_what_is_committed_and_the_writer_goes_on() {
    let db = database();
    let (one, other) = (handle(&db, None), handle(&db, None));
    let tx = one.begin("test").await.unwrap();
    pool::make(&tx, "a", 1, "").await.unwrap();
    assert_eq!(names(&other).await, Vec::<String>::new());
    pool::make(&tx, "b", 1, "").await.unwrap();
    assert_eq!(names(&other).await, Vec::<String>::new());
    tx.commit().await.unwrap();
    assert_eq!(names(&other).await, ["a", "b"]);
    assert_eq!(db.commits(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_stands_still_is_ended_once_another_one_waits() {
    let db = database();
    let (one, other) = (handle(&db, None), handle(&db, None));
    let stopped = one.begin("test").await.unwrap();
    pool::make(&stopped, "a", 1, "").await.unwrap();
    let begun = tokio::time::Instant::now();
    let tx = other.begin("test").await.unwrap();
    assert_eq!(begun.elapsed(), IDLE);
    pool::make(&tx, "b", 1, "").await.unwrap();
    assert!(pool::make(&stopped, "c", 1, "").await.is_err());
    assert!(stopped.commit().await.is_err());
    tx.commit().await.unwrap();
    assert_eq!((names(&other).await, db.ended_idle()), (vec!["b".to_owned()], 1));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_session_frees_its_place_and_a_cut_one_after_the_guard() {
    let db = database();
    let is_cut = Arc::new(AtomicBool::new(false));
    let cut = Arc::clone(&is_cut);
    let way: Way = Arc::new(move |_| {
        let cut = cut.load(SeqCst);
        Box::pin(async move { if cut { Err("no way".to_owned()) } else { Ok(()) } })
    });
    let (one, other) = (handle(&db, Some(way)), handle(&db, None));
    let tx = one.begin("test").await.unwrap();
    pool::make(&tx, "a", 1, "").await.unwrap();
    drop(tx);
    let begun = tokio::time::Instant::now();
    drop(other.begin("test").await.unwrap());
    assert_eq!(begun.elapsed(), Duration::ZERO);
    let tx = one.begin("test").await.unwrap();
    is_cut.store(true, SeqCst);
    assert!(pool::make(&tx, "a", 1, "").await.is_err());
    drop(tx);
    drop(other.begin("test").await.unwrap());
    assert_eq!(begun.elapsed(), IDLE);
    assert!(one.begin("test").await.is_err() && one.read("test").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_stopped_readers_snapshot_is_refused_rather_than_mixed() {
    let db = database();
    let (one, other) = (handle(&db, None), handle(&db, None));
    let old = one.read("test").await.unwrap();
    let tx = other.begin("test").await.unwrap();
    pool::make(&tx, "a", 1, "").await.unwrap();
    tx.commit().await.unwrap();
    assert!(pool::list(&old).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_reset_goes_back_to_the_mark() {
    let db = database();
    let store = handle(&db, None);
    let make = async |name: &str| {
        let tx = store.begin("test").await.unwrap();
        pool::make(&tx, name, 1, "").await.unwrap();
        tx.commit().await.unwrap();
    };
    make("a").await;
    db.mark().unwrap();
    for name in ["b", "c"] {
        make(name).await;
        assert_eq!(names(&store).await, ["a", name]);
        db.reset().unwrap();
        assert_eq!(names(&store).await, ["a"]);
    }
}

/// The token that one transaction mints.
async fn minted(store: &Store) -> Result<i64, StoreErrorKind> {
    let tx = store.begin("test").await.unwrap();
    let tokens = installation::mint(&tx, 1).await.map_err(|error| error.kind)?;
    tx.commit().await.unwrap();
    Ok(tokens[0].as_i64())
}

#[tokio::test(start_paused = true)]
async fn i20_a_failover_loses_the_last_commits_and_mints_in_a_new_epoch_only() {
    let db = database();
    let store = handle(&db, None);
    let tx = store.begin("test").await.unwrap();
    installation::make(&tx, "simulated").await.unwrap();
    pool::make(&tx, "kept", 1, "").await.unwrap();
    tx.commit().await.unwrap();
    let mut last = minted(&store).await.unwrap();
    for epoch in [2, 3] {
        // Also beside one that writes, whose changes are not in the copy.
        let writing = store.begin("test").await.unwrap();
        pool::make(&writing, "open", 1, "").await.unwrap();
        let replica = db.replica().unwrap();
        writing.commit().await.unwrap();
        let (changes, lost) = (db.changes(), minted(&store).await.unwrap());
        assert!(lost > last);
        let tx = store.begin("test").await.unwrap();
        pool::make(&tx, "lost", 1, "").await.unwrap();
        tx.commit().await.unwrap();
        let open = store.begin("test").await.unwrap();
        db.fail_over(replica).unwrap();
        assert!(pool::make(&open, "late", 1, "").await.is_err() && open.commit().await.is_err());
        assert_eq!(names(&store).await, ["kept"]);
        assert_ne!(db.changes(), changes);
        assert_eq!(minted(&store).await, Err(StoreErrorKind::EpochOver));
        let tx = store.begin("test").await.unwrap();
        assert_eq!(installation::renew_epoch(&tx, 0).await.unwrap(), Some(epoch));
        assert_eq!(installation::renew_epoch(&tx, 0).await.unwrap(), None);
        tx.commit().await.unwrap();
        last = minted(&store).await.unwrap();
        assert!(last > lost, "a token that was lost is never minted again");
    }
    db.mark().unwrap();
    minted(&store).await.unwrap();
    assert!(db.replica().is_err(), "around a mark everything is one open transaction");
}
