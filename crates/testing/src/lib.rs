//! What the tests of several crates share: a temporary PostgreSQL.
//!
//! [`cluster::Cluster`] is a server of one's own, to be stopped and killed at will; [`database`] gives
//! databases on a server that all tests of a user share, since starting one for each test (each is
//! a process of its own) would cost more than the tests. Nothing here is shipped.

pub mod cluster;
pub mod database;
mod shared;

pub use cluster::Cluster;
pub use database::Database;

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::End;

    #[test]
    fn a_server_of_ones_own_is_stopped_and_started_and_leaves_nothing() -> std::io::Result<()> {
        let place = std::env::temp_dir().join(format!("fencepost-own-{}", std::process::id()));
        let mut own = Cluster::start(&place)?;
        own.sql("postgres", "CREATE TABLE kept (n BIGINT);\nINSERT INTO kept VALUES (7)")?;
        own.end(End::Immediate)?;
        assert!(!own.answers());
        own.run_again()?;
        assert_eq!(own.sql("postgres", "SELECT n FROM kept")?, "7");
        drop(own);
        assert!(!place.exists());
        Ok(())
    }

    #[test]
    fn tests_get_databases_of_their_own_and_a_template_is_filled_once() -> std::io::Result<()> {
        let name = format!("own_test_{}", std::process::id());
        let fills = std::sync::atomic::AtomicU32::new(0);
        let make = || {
            Database::from_template(&name, |url| {
                fills.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                assert!(url.starts_with("postgres://"));
            })
        };
        let (one, two) = (make()?, make()?);
        assert_ne!(one.name(), two.name());
        assert_eq!(fills.into_inner(), 1);
        one.sql("CREATE TABLE t (n BIGINT)")?;
        assert!(two.sql("SELECT n FROM t").is_err());
        let names = "SELECT count(*) FROM pg_database WHERE datname = ";
        let name = one.name().to_owned();
        drop(one);
        assert_eq!(two.sql(&format!("{names}'{name}'"))?, "0");
        Ok(())
    }
}
