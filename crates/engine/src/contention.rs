//! Another transaction was in the way: nothing was changed, and the same is tried again at once.
//!
//! The locks are taken in one order, so this is rare (a deadlock over the heads of mapped tasks; a
//! process that stopped inside a transaction). It is bounded: what stays in the way is an error.

use crate::error::EngineError;
use fencepost_store::StoreErrorKind;

/// How often it is tried before it counts as a failure.
const TRIES: u32 = 4;

/// Does something whole: one transaction, from its first statement to its commit.
pub async fn again<T, F>(work: impl Fn() -> F) -> Result<T, EngineError>
where
    F: Future<Output = Result<T, EngineError>>,
{
    for _ in 1..TRIES {
        match work().await {
            Err(error) if is_contended(&error) => tokio::task::yield_now().await,
            done => return done,
        }
    }
    work().await
}

/// Whether the same again may succeed at once.
pub fn is_contended(error: &EngineError) -> bool {
    matches!(error, EngineError::Store(store) if store.kind == StoreErrorKind::Contended)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_store::StoreError;
    use std::cell::Cell;

    async fn tried(failures: u32, kind: StoreErrorKind) -> (bool, u32) {
        let count = Cell::new(0);
        let result = again(|| async {
            count.set(count.get() + 1);
            if count.get() <= failures {
                Err(StoreError::new(kind, "op", "x").into())
            } else {
                Ok(())
            }
        });
        let is_ok = result.await.is_ok();
        (is_ok, count.get())
    }

    #[tokio::test]
    async fn what_was_in_the_way_is_tried_again_a_few_times_and_nothing_else_is() {
        assert_eq!(tried(0, StoreErrorKind::Contended).await, (true, 1));
        assert_eq!(tried(3, StoreErrorKind::Contended).await, (true, 4));
        assert_eq!(tried(9, StoreErrorKind::Contended).await, (false, 4));
        assert_eq!(tried(1, StoreErrorKind::Unavailable).await, (false, 1));
    }
}
