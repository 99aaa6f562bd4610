//! I2: tokens rise strictly over the installation, whoever draws them and whatever restarts.

use super::conformance;
use crate::place::Place;
use crate::rows::settle;
use fencepost_core::id::{COUNTER_BITS, Token};
use fencepost_store::query::installation;
use fencepost_store::{Stmt, Store, StoreErrorKind, params};

conformance!(
    i2_tokens_rise_over_concurrent_use_and_reopening,
    i2_the_epoch_never_falls,
    i2_a_rolled_back_draw_may_be_drawn_again_only_because_nobody_has_it,
    i2_the_end_of_the_counter_is_an_error,
    a_store_without_an_installation_mints_nothing,
);

async fn draw(store: &Store, count: usize) -> Vec<Token> {
    let tx = store.begin("mint").await.unwrap();
    let tokens = installation::mint(&tx, count).await.unwrap();
    tx.commit().await.unwrap();
    tokens
}

async fn i2_tokens_rise_over_concurrent_use_and_reopening(place: &impl Place) {
    let mut highest: Option<Token> = None;
    for turn in 0..3_usize {
        let (store, other) = (place.open(), place.open());
        settle_once(&store, turn).await;
        let mut draws = tokio::task::JoinSet::new();
        for n in 0..40_usize {
            let store = if n % 2 == 0 { store.clone() } else { other.clone() };
            draws.spawn(async move { draw(&store, n % 4).await });
        }
        let mut all: Vec<Token> = Vec::new();
        for drawn in draws.join_all().await {
            assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]), "{drawn:?}");
            all.extend(drawn);
        }
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!((all.len(), count), (60, 60), "a token was drawn twice");
        assert!(highest < all.first().copied(), "after a restart a token fell");
        highest = all.last().copied();
    }
}

async fn settle_once(store: &Store, turn: usize) {
    if turn == 0 {
        settle(store).await;
    }
}

async fn i2_the_epoch_never_falls(place: &impl Place) {
    let store = place.open();
    settle(&store).await;
    let first = draw(&store, 1).await[0];
    assert_eq!(first.epoch(), 1);
    for (asked, epoch) in [(7, 7), (3, 7), (8, 8)] {
        let tx = store.begin("raise").await.unwrap();
        installation::raise_epoch(&tx, asked).await.unwrap();
        tx.commit().await.unwrap();
        let next = draw(&store, 1).await[0];
        assert_eq!(next.epoch(), epoch);
        assert!(next > first);
    }
    let tx = store.begin("make").await.unwrap();
    assert!(!installation::make(&tx, "another").await.unwrap(), "the row is made once");
    let row = installation::load(&tx).await.unwrap().unwrap();
    assert_eq!((row.installation_id.as_str(), row.epoch, row.counter), ("installation", 8, 4));
}

async fn i2_a_rolled_back_draw_may_be_drawn_again_only_because_nobody_has_it(place: &impl Place) {
    let store = place.open();
    settle(&store).await;
    let dropped = {
        let tx = store.begin("mint").await.unwrap();
        installation::mint(&tx, 2).await.unwrap()
    };
    assert!(draw(&store, 2).await >= dropped);
}

async fn i2_the_end_of_the_counter_is_an_error(place: &impl Place) {
    let store = place.open();
    settle(&store).await;
    let near = Stmt::same("near", "UPDATE installation SET counter = $1 WHERE one = 1");
    let tx = store.begin("near").await.unwrap();
    tx.execute(&near, params![(1_i64 << COUNTER_BITS) - 2]).await.unwrap();
    tx.commit().await.unwrap();
    let tx = store.begin("mint").await.unwrap();
    assert!(installation::mint(&tx, 2).await.is_err(), "a token beyond the counter's end");
    drop(tx);
    let last = draw(&store, 1).await[0];
    assert_eq!((last.epoch(), last.counter()), (1, (1 << COUNTER_BITS) - 1));
    let tx = store.begin("raise").await.unwrap();
    installation::raise_epoch(&tx, 2).await.unwrap();
    assert!(installation::mint(&tx, 1).await.is_err(), "a new epoch needs a new counter");
}

async fn a_store_without_an_installation_mints_nothing(place: &impl Place) {
    let store = place.open();
    let tx = store.begin("mint").await.unwrap();
    let error = installation::mint(&tx, 1).await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Corrupt);
    assert_eq!(installation::load(&tx).await.unwrap(), None);
}
