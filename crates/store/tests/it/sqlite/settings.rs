//! The settings that durability and sharing need, and files that are no stores.

use crate::place::{Place, SqliteFile, ticking};
use crate::rows::settle;
use fencepost_core::hook::Hooks;
use fencepost_store::query::all_statements;
use fencepost_store::{Row, SCHEMA_VERSION, Stmt, Store, StoreErrorKind, Tx, Value};

async fn pragma(tx: &Tx, text: &'static str) -> Value {
    let Row(mut values) = tx.query(&Stmt::same("pragma", text), vec![]).await.unwrap().remove(0);
    values.remove(0)
}

#[tokio::test]
async fn commits_are_synced_and_references_checked() {
    let file = SqliteFile::new();
    let store = file.open();
    for tx in [store.begin("look").await.unwrap(), store.read("look").await.unwrap()] {
        assert_eq!(pragma(&tx, "PRAGMA journal_mode").await, Value::Text("wal".into()));
        assert_eq!(pragma(&tx, "PRAGMA synchronous").await, Value::Int(2), "FULL");
        assert_eq!(pragma(&tx, "PRAGMA foreign_keys").await, Value::Int(1));
    }
}

#[tokio::test]
async fn a_store_says_whose_it_is_without_being_changed() {
    let file = SqliteFile::new();
    assert_eq!(Store::installation_of(&file.path()), None);
    assert!(!file.path().exists(), "looking makes no file");
    let store = file.open();
    assert_eq!(Store::installation_of(&file.path()), None);
    settle(&store).await;
    assert_eq!(Store::installation_of(&file.path()).as_deref(), Some("installation"));
}

#[test]
fn what_is_no_store_is_refused_by_name() {
    let file = SqliteFile::new();
    std::fs::write(file.path(), "just some notes, long enough to be more than a header\n").unwrap();
    let error = Store::open_sqlite(&file.path(), ticking(), Hooks::none()).unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Corrupt);
    assert!(error.to_string().starts_with("the store cannot be used (migrate)"), "{error}");
    let newer = SqliteFile::new();
    drop(newer.open());
    let row = "INSERT INTO schema_migration VALUES (?1, 'x', 0)";
    let version = i64::try_from(SCHEMA_VERSION).unwrap() + 1;
    newer.beside().execute(row, [version]).unwrap();
    let error = Store::open_sqlite(&newer.path(), ticking(), Hooks::none()).unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Corrupt);
    assert!(error.message.contains("use the newer program"), "{error}");
}

#[test]
fn every_statement_can_be_prepared() {
    let file = SqliteFile::new();
    let _store = file.open();
    let connection = file.beside();
    for stmt in all_statements() {
        let prepared = connection.prepare(&stmt.text.replace('$', "?"));
        let prepared = prepared.unwrap_or_else(|error| panic!("{}: {error}", stmt.name));
        // Numbered without a gap: `$n` is the n-th value on either database.
        for n in 1..=prepared.parameter_count() {
            assert!(stmt.text.contains(&format!("${n}")), "{}: there is no ${n}", stmt.name);
        }
    }
}
