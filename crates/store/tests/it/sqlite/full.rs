//! A full disk in the middle of a group: who was told Ok is kept, who was told an error is not.
//!
//! SQLite answers a full disk in two ways, depending on the statement: it undoes that statement
//! alone, or it rolls back the whole transaction, and with it what the group held already.

use crate::place::{Place, SqliteFile};
use crate::rows::{mark, marks};
use fencepost_store::{Row, Stmt, Store, StoreError, StoreErrorKind, Value, params};

/// One row: SQLite rolls back the transaction.
const ONE_ROW: Stmt = Stmt::same(
    "one_row",
    "INSERT INTO outbox (kind, payload, state, created_at, due_at)
     VALUES ($1, 'null', 'done', 0, 0)",
);
/// Many rows that may break a rule: SQLite undoes the statement.
const MANY_ROWS: Stmt = Stmt::same(
    "many_rows",
    "INSERT INTO outbox (kind, payload, state, created_at, due_at)
     SELECT $1, 'null', 'done', 0, value FROM json_each('[1,2,3,4,5,6,7,8]')",
);
const AUTOCOMMIT_PROBE: Stmt = Stmt::same(
    "probe",
    "INSERT INTO outbox (kind, payload, state, created_at, due_at)
     VALUES ($1, 'null', 'due', 0, 0)",
);

/// Lets the file grow by so many pages only.
async fn limit(store: &Store, pages: i64) {
    let tx = store.begin("limit").await.unwrap();
    let count = Stmt::same("count", "PRAGMA page_count");
    let Row(values) = tx.query(&count, vec![]).await.unwrap().remove(0);
    let [Value::Int(now)] = values[..] else { panic!("{values:?}") };
    let most = now + pages;
    let text: &'static str = format!("PRAGMA max_page_count = {most}").leak();
    tx.query(&Stmt::same("limit", text), vec![]).await.unwrap();
    tx.commit().await.unwrap();
}

async fn small(store: &Store, name: &'static str) -> Result<(), StoreError> {
    let tx = store.begin("small").await?;
    mark(&tx, name).await?;
    tx.commit().await
}

fn large() -> Vec<Value> {
    params!["x".repeat(200_000)]
}

/// A member that fills the disk, and then does what a careless caller would.
async fn fills(store: &Store, with: Stmt, goes_on: bool) -> Result<(), StoreError> {
    let tx = store.begin("fills").await?;
    mark(&tx, "fills").await?;
    let error = tx.execute(&with, large()).await.expect_err("the disk is full");
    assert_eq!(error.kind, StoreErrorKind::Full, "{error}");
    if !goes_on {
        return Err(error);
    }
    let after = tx.execute(&AUTOCOMMIT_PROBE, params!["after the failure"]).await;
    assert!(after.is_err(), "a statement ran on its own, outside of any transaction");
    tx.commit().await
}

async fn check(with: Stmt, goes_on: bool) -> [bool; 4] {
    let file = SqliteFile::new();
    let store = file.open();
    small(&store, "before").await.unwrap();
    limit(&store, 8).await;
    let first = store.begin("first").await.unwrap();
    mark(&first, "first").await.unwrap();
    let (one, filled, two, first) = tokio::join!(
        small(&store, "one"),
        fills(&store, with, goes_on),
        small(&store, "two"),
        first.commit(),
    );
    for error in
        [&one, &filled, &two, &first].into_iter().filter_map(|answer| answer.as_ref().err())
    {
        assert_eq!(error.kind, StoreErrorKind::Full, "{error}");
    }
    let told = [("first", &first), ("fills", &filled), ("one", &one), ("two", &two)];
    let mut expected = vec!["before"];
    expected.extend(told.iter().filter(|(_, answer)| answer.is_ok()).map(|(name, _)| *name));
    expected.sort_unstable();
    assert_eq!(marks(&store).await, expected, "what was told and what is kept differ");
    assert_eq!(marks(&file.open()).await, expected, "also on the disk");
    limit(&store, 10_000).await;
    small(&store, "with room").await.unwrap();
    assert!(marks(&store).await.contains(&"with room".to_owned()));
    told.map(|(_, answer)| answer.is_ok())
}

#[tokio::test]
async fn a_full_disk_that_rolls_the_group_back_is_told_to_all_of_it() {
    // [first, fills, one, two]: "two" came after the rollback and is a group of its own.
    assert_eq!(check(ONE_ROW, false).await, [false, false, false, true]);
}

#[tokio::test]
async fn nothing_runs_on_its_own_after_a_group_was_rolled_back() {
    assert_eq!(check(ONE_ROW, true).await, [false, false, false, true]);
}

#[tokio::test]
async fn a_full_disk_that_undoes_one_statement_is_its_sessions_affair() {
    for goes_on in [false, true] {
        assert_eq!(check(MANY_ROWS, goes_on).await, [true, false, true, true]);
    }
}
