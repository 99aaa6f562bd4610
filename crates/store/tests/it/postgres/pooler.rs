//! Behind a pooler in transaction mode: the guards that a session sets are lost, and that is noticed.

mod proxy;

use crate::place::{PostgresDatabase, options};
use crate::rows;
use fencepost_core::hook::Hooks;
use fencepost_store::{PgOptions, Store, StoreErrorKind};
use fencepost_testing::Database;
use std::path::PathBuf;

/// The address of a new pooler before the database.
async fn pooler(database: &Database, keeps_statements: bool) -> String {
    let url = database.socket_url().unwrap();
    let place = url.split('@').nth(1).unwrap().split('/').next().unwrap();
    let (dir, port) = place.rsplit_once(':').unwrap();
    let socket = PathBuf::from(dir.replace("%2F", "/")).join(format!(".s.PGSQL.{port}"));
    let port = proxy::start(socket, database.name(), keeps_statements).await;
    format!("postgres://postgres@127.0.0.1:{port}/{}", database.name())
}

/// What a refusal must not change: settings, tables and their rows.
fn all(database: &Database) -> String {
    database
        .sql(
            "SELECT count(*) FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase
                WHERE d.datname = current_database();\n\
             SELECT count(*), max(applied_at) FROM schema_migration;\n\
             SELECT count(*) FROM pg_class;\n\
             SELECT count(*) FROM installation",
        )
        .unwrap()
}

async fn refusal(url: &str) -> String {
    let error = Store::open_postgres(url, options(), Hooks::none()).await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Setup, "{error}");
    error.message
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_that_loses_the_guards_is_refused_until_its_statements_were_run() {
    let place = PostgresDatabase::new();
    let database = &place.database;
    let before = all(database);
    let url = pooler(database, true).await;
    // Again and again: what the sessions before have set stays on the connections of the pooler.
    for _ in 0..3 {
        let message = refusal(&url).await;
        assert!(message.contains("a pooler in transaction mode?"), "{message}");
        assert!(!message.contains("tcp_user_timeout"), "of no use on a socket: {message}");
        assert_eq!(all(database), before);
    }
    let message = refusal(&url).await;
    let statements: Vec<&str> =
        message.lines().filter(|line| line.starts_with("ALTER ROLE ")).collect();
    assert_eq!(statements.len(), 3, "{message}");
    database.sql(&statements.join("\n")).unwrap();
    // Connections that were open before began without them.
    refusal(&url).await;
    let url = pooler(database, true).await;
    let store = Store::open_postgres(&url, options(), Hooks::none()).await.unwrap();
    let run_pk = rows::settle(&store).await;
    for first in [0, 10, 20, 30] {
        let tx = store.begin("queue").await.unwrap();
        assert_eq!(rows::queue(&tx, run_pk, first, 5).await.len(), 5);
        tx.commit().await.unwrap();
    }
    // A longer guard than what holds there is held; a shorter one is not.
    let guard =
        |secs| PgOptions { guard: fencepost_core::time::Span::from_secs(secs), ..options() };
    Store::open_postgres(&url, guard(9), Hooks::none()).await.unwrap();
    assert!(Store::open_postgres(&url, guard(2), Hooks::none()).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_that_forgets_statements_is_refused_with_what_to_set() {
    let place = PostgresDatabase::new();
    let url = pooler(&place.database, true).await;
    let message = refusal(&url).await;
    let statements: Vec<&str> =
        message.lines().filter(|line| line.starts_with("ALTER ROLE ")).collect();
    place.database.sql(&statements.join("\n")).unwrap();
    let url = pooler(&place.database, false).await;
    let message = refusal(&url).await;
    assert!(message.contains("max_prepared_statements"), "{message}");
}
