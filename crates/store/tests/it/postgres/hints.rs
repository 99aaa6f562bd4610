//! Hints between processes, and what happens to them when the server goes away.

use crate::place::{PostgresDatabase, options};
use fencepost_core::hook::Hooks;
use fencepost_store::{Hint, Store, Topic, migrate_postgres};
use fencepost_testing::Cluster;
use fencepost_testing::cluster::End;
use std::time::Duration;

async fn open(url: &str) -> Store {
    Store::open_postgres(url, options(), Hooks::none()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hint_reaches_the_other_processes_and_not_its_own() {
    let place = PostgresDatabase::new();
    let (one, two) = (open(place.database.url()).await, open(place.database.url()).await);
    let (mut own, mut others) = (one.hints().unwrap(), two.hints().unwrap());
    assert_eq!(own.next().await, Hint::LookAgain);
    assert_eq!(others.next().await, Hint::LookAgain);
    for _ in 0..100 {
        one.hint(Topic::Engine);
    }
    assert_eq!(others.next().await, Hint::Topic(Topic::Engine));
    two.hint(Topic::Workers);
    assert_eq!(own.next().await, Hint::Topic(Topic::Workers), "its own hint came back");
}

/// The connections of a server that was started again are replaced without an error to anybody who
/// begins afterwards; whoever listens looks again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_a_server_that_was_killed_and_started_again_is_used_again() {
    let place = std::env::temp_dir().join(format!("fencepost-killed-{}", std::process::id()));
    let mut cluster = Cluster::start(&place).unwrap();
    let url = cluster.url("postgres");
    migrate_postgres(&url, options()).await.unwrap();
    let store = open(&url).await;
    let mut hints = store.hints().unwrap();
    assert_eq!(hints.next().await, Hint::LookAgain);
    crate::rows::settle(&store).await;
    let open = store.begin("open").await.unwrap();
    cluster.end(End::Immediate).unwrap();
    assert!(open.commit().await.is_err());
    assert!(store.begin("down").await.is_err());
    cluster.run_again().unwrap();
    let tx = store.begin("up").await.unwrap();
    let tokens = fencepost_store::query::installation::mint(&tx, 1).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(tokens.len(), 1);
    let heard = tokio::time::timeout(Duration::from_mins(1), hints.next()).await;
    assert_eq!(heard, Ok(Hint::LookAgain));
}
