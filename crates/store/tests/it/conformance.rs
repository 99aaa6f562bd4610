//! What every driver must do. A case is an async function over a [`Place`](crate::place::Place).

mod audits;
mod claims;
mod commits;
mod compare_and_set;
mod hooks;
mod lists;
mod reads;
mod tokens;

/// Runs each case once per driver.
macro_rules! conformance {
    ($($case:ident),+ $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    super::$case(&crate::place::SqliteFile::new()).await;
                }
            )+
        }
        mod memory {
            $(
                #[tokio::test]
                async fn $case() {
                    super::$case(&crate::place::Memory::new()).await;
                }
            )+
        }
        mod postgres {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    super::$case(&crate::place::PostgresDatabase::new()).await;
                }
            )+
        }
    };
}
pub(crate) use conformance;
