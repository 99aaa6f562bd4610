//! Group commit: writers that wait for each other share one sync of the disk.
//!
//! Counted without a clock: each commit writes one frame into the write-ahead log that says how
//! large the database is after it, and is synced once.

use crate::place::{Place, SqliteFile};
use crate::rows::{mark, marks};
use fencepost_store::{Stmt, Store, params};

/// Commits in the write-ahead log (see "The WAL File Format", sqlite.org/fileformat2.html#walformat).
fn commits(file: &SqliteFile) -> usize {
    let mut name = file.path().into_os_string();
    name.push("-wal");
    let log = std::fs::read(name).unwrap();
    if log.is_empty() {
        return 0;
    }
    let number = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().unwrap());
    let (page, salt) = (usize::try_from(number(8)).unwrap(), &log[16..24]);
    let mut count = 0;
    let mut at = 32;
    // Frames of another salt are left from before the log began anew.
    while at + 24 + page <= log.len() && &log[at + 8..at + 16] == salt {
        count += usize::from(number(at + 4) != 0);
        at += 24 + page;
    }
    count
}

async fn write(store: Store, name: String) {
    let tx = store.begin("write").await.unwrap();
    mark(&tx, &name).await.unwrap();
    tx.commit().await.unwrap();
}

/// Somebody else has the file in hand: whoever writes waits, whoever reads does not, nobody sees an error.
#[tokio::test]
async fn another_program_that_holds_the_file_costs_only_that_while() {
    let file = SqliteFile::new();
    let store = file.open();
    let other = file.beside();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let writers: Vec<_> =
        (0..8).map(|n| tokio::spawn(write(store.clone(), format!("w{n}")))).collect();
    let a_while = std::time::Duration::from_millis(1_500);
    let _ = tokio::time::timeout(a_while, std::future::pending::<()>()).await;
    assert_eq!(marks(&store).await.len(), 0);
    assert!(writers.iter().all(|writer| !writer.is_finished()));
    other.execute_batch("COMMIT").unwrap();
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(marks(&store).await.len(), 8);
}

#[tokio::test]
async fn writers_that_wait_share_one_sync() {
    const WRITERS: usize = 200;
    let file = SqliteFile::new();
    let store = file.open();
    let before = commits(&file);
    for n in 0..10 {
        write(store.clone(), format!("alone{n}")).await;
    }
    assert_eq!(commits(&file) - before, 10, "alone, each has its own");

    let before = commits(&file);
    let first = store.begin("first").await.unwrap();
    // One thread: every writer asks for its turn before the first one goes on.
    let mut writers = tokio::task::JoinSet::new();
    for n in 0..WRITERS {
        writers.spawn(write(store.clone(), format!("w{n}")));
    }
    tokio::task::yield_now().await;
    mark(&first, "first").await.unwrap();
    first.commit().await.unwrap();
    writers.join_all().await;
    let used = commits(&file) - before;
    assert!((1..=WRITERS / 20).contains(&used), "{used} syncs for {WRITERS} writers");
    assert_eq!(marks(&store).await.len(), WRITERS + 11);
}

/// A commit that fails for the whole group (here: a reference that is checked only then) is told
/// to every member, keeps nothing, and the next group begins clean.
#[tokio::test]
async fn a_commit_that_fails_is_told_to_all_of_its_group() {
    let file = SqliteFile::new();
    let store = file.open();
    let late = Stmt::same("late", "PRAGMA defer_foreign_keys = ON");
    let nobody = Stmt::same(
        "nobody",
        "INSERT INTO attempt (token, attempt_id, run_pk, task_index, map_index, dag_id,
            try_number, attempt_number, state, why, prev_outcome, queue, priority, queued_until,
            queued_at, job_id)
         VALUES ($1, 'id', 1, 0, -1, 'd', 1, 1, 'claimed', 'first', 'first', 'q', 1, 0, 0, 'nobody')",
    );
    let bad = async {
        let tx = store.begin("bad").await?;
        tx.execute(&late, vec![]).await?;
        tx.execute(&nobody, params![1_i64 << 39]).await?;
        tx.commit().await
    };
    let good = async {
        let tx = store.begin("good").await?;
        mark(&tx, "good").await?;
        tx.commit().await
    };
    let first = store.begin("first").await.unwrap();
    mark(&first, "first").await.unwrap();
    let answers = tokio::join!(good, bad, first.commit());
    for answer in [answers.0, answers.1, answers.2] {
        let error = answer.unwrap_err();
        assert!(error.message.contains("rolled back with its group"), "{error}");
    }
    assert_eq!(marks(&store).await, [] as [&str; 0]);
    write(store.clone(), "later".into()).await;
    assert_eq!(marks(&store).await, ["later"]);
}

/// I28: who stands still inside a transaction stops the others for a bounded time, and nothing of
/// it is kept.
#[tokio::test]
#[ignore = "long: waits for the limit of half a minute"]
async fn slow_a_session_that_stands_still_is_given_up() {
    let file = SqliteFile::new();
    let store = file.open();
    let stuck = store.begin("stuck").await.unwrap();
    mark(&stuck, "stuck").await.unwrap();
    // Waits for its turn until the other one is given up.
    write(store.clone(), "next".into()).await;
    assert!(mark(&stuck, "late").await.is_err());
    assert!(stuck.commit().await.is_err());
    assert_eq!(marks(&store).await, ["next"]);
}
