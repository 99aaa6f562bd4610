//! Tokens belong to the server on which their epoch was made: another one, or another timeline of it,
//! mints nothing before there is a new epoch (I2, I20).

use crate::place::{Place as _, PostgresDatabase, options};
use crate::rows::settle;
use fencepost_core::hook::Hooks;
use fencepost_core::id::Token;
use fencepost_store::query::installation;
use fencepost_store::{Store, StoreErrorKind, migrate_postgres};
use fencepost_testing::Cluster;
use fencepost_testing::cluster::End;
use std::time::Duration;

async fn mint(store: &Store) -> Result<Token, StoreErrorKind> {
    let tx = store.begin("mint").await.unwrap();
    let minted = installation::mint(&tx, 1).await.map_err(|error| error.kind)?;
    tx.commit().await.unwrap();
    Ok(minted[0])
}

async fn renew(store: &Store, presented: u32) -> Option<u32> {
    let tx = store.begin("renew").await.unwrap();
    let epoch = installation::renew_epoch(&tx, presented).await.unwrap();
    tx.commit().await.unwrap();
    epoch
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i2_another_server_or_timeline_mints_nothing_before_it_has_an_epoch() {
    let place = PostgresDatabase::new();
    let store = place.open();
    settle(&store).await;
    let first = mint(&store).await.unwrap();
    assert_eq!((first.epoch(), renew(&store, 9).await), (1, None), "nothing has changed");
    let mut last = first;
    for (change, presented, epoch) in [
        ("timeline = '00000009'", 0, 2),
        ("system_id = system_id + 1", 0, 3),
        // A component has seen a later epoch than the store has.
        ("timeline = '00000000'", 7, 8),
        ("timeline = NULL", 0, 9),
    ] {
        place.database.sql(&format!("UPDATE installation SET {change}")).unwrap();
        let before = place.database.sql("SELECT * FROM installation").unwrap();
        assert_eq!(mint(&store).await, Err(StoreErrorKind::EpochOver), "{change}");
        assert_eq!(place.database.sql("SELECT * FROM installation").unwrap(), before);
        assert_eq!(renew(&store, presented).await, Some(epoch), "{change}");
        assert_eq!(renew(&store, presented).await, None, "once is enough");
        let next = mint(&store).await.unwrap();
        assert_eq!(next.epoch(), epoch);
        assert!(next > last);
        last = next;
    }
}

/// A server that stands by is refused; promoted, it has another timeline, and another epoch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_i2_a_promoted_standby_mints_in_an_epoch_of_its_own() {
    let place = std::env::temp_dir().join(format!("fencepost-promoted-{}", std::process::id()));
    let mut cluster = Cluster::start_with(&place, "wal_level = replica\n").unwrap();
    let url = cluster.url("postgres");
    migrate_postgres(&url, options()).await.unwrap();
    let store = Store::open_postgres(&url, options(), Hooks::none()).await.unwrap();
    settle(&store).await;
    assert_eq!(mint(&store).await.unwrap().epoch(), 1);
    drop(store);
    cluster.end(End::Fast).unwrap();
    std::fs::write(place.join("data/standby.signal"), b"").unwrap();
    cluster.run_again().unwrap();
    let url = cluster.url("postgres");
    let refused = Store::open_postgres(&url, options(), Hooks::none()).await.unwrap_err();
    assert_eq!(refused.kind, StoreErrorKind::Unavailable);
    assert!(refused.message.contains("is a standby"), "{refused}");
    cluster.sql("postgres", "SELECT pg_promote()").unwrap();
    let store = Store::open_postgres(&url, options(), Hooks::none()).await.unwrap();
    // The first file of the new timeline is written to within a moment.
    let ended = tokio::time::timeout(Duration::from_mins(1), async {
        while mint(&store).await != Err(StoreErrorKind::EpochOver) {
            tokio::task::yield_now().await;
        }
    });
    ended.await.unwrap();
    assert_eq!(renew(&store, 0).await, Some(2));
    assert_eq!(mint(&store).await.unwrap().epoch(), 2);
}

/// A failover behind one address, seen by a process that lives: a connection that found the standby is
/// refused and not kept, and the next one is of use as soon as there is a primary.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_a_connection_to_a_standby_is_refused_and_not_kept() {
    let place = std::env::temp_dir().join(format!("fencepost-standby-{}", std::process::id()));
    let mut cluster = Cluster::start_with(&place, "wal_level = replica\n").unwrap();
    let url = cluster.url("postgres");
    migrate_postgres(&url, options()).await.unwrap();
    let store = Store::open_postgres(&url, options(), Hooks::none()).await.unwrap();
    settle(&store).await;
    cluster.end(End::Fast).unwrap();
    std::fs::write(place.join("data/standby.signal"), b"").unwrap();
    cluster.run_again().unwrap();
    for _ in 0..5 {
        for refused in [store.begin("write").await.err(), store.read("read").await.err()] {
            let refused = refused.unwrap();
            assert_eq!(refused.kind, StoreErrorKind::Unavailable);
            assert!(refused.message.contains("is a standby"), "{refused}");
        }
    }
    let count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'fencepost-test' \
                 AND query NOT LIKE 'LISTEN%'";
    let ended = tokio::time::timeout(Duration::from_mins(1), async {
        while cluster.sql("postgres", count).unwrap().trim() != "0" {
            tokio::task::yield_now().await;
        }
    });
    ended.await.unwrap();
    cluster.sql("postgres", "SELECT pg_promote()").unwrap();
    store.begin("write").await.unwrap();
    store.read("read").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_that_may_not_ask_which_server_it_is_is_refused_with_what_to_grant() {
    let place = PostgresDatabase::new();
    let database = &place.database;
    let role = format!("role_{}", database.name());
    let make = format!(
        "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC;\n\
         DROP ROLE IF EXISTS {role};\n\
         CREATE ROLE {role} LOGIN PASSWORD 'word';\n\
         GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}"
    );
    database.sql(&make).unwrap();
    let (_, host) = database.url().split_once('@').unwrap();
    let url = format!("postgres://{role}:word@{host}");
    let refused = Store::open_postgres(&url, options(), Hooks::none()).await.unwrap_err();
    assert_eq!(refused.kind, StoreErrorKind::Setup);
    let grant = refused.message.lines().find(|line| line.starts_with("GRANT ")).unwrap();
    database.sql(grant).unwrap();
    let store = Store::open_postgres(&url, options(), Hooks::none()).await.unwrap();
    settle(&store).await;
    assert_eq!(mint(&store).await.unwrap().epoch(), 1);
    drop(store);
    database.sql(&format!("DROP OWNED BY {role};\nDROP ROLE {role}")).unwrap();
}
