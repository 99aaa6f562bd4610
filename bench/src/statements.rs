//! What the server spent on whose statements: for who tunes them. Off unless it is asked for, since
//! counting costs something too.

use crate::out;
use fencepost_testing::Cluster;

/// Settings of a server that counts.
pub const COUNTING: &str = "shared_preload_libraries = 'pg_stat_statements'\n\
    pg_stat_statements.track_planning = off\npg_stat_statements.track_utility = on\n";

const TOP: &str = "SELECT format('%9s %9s %8s  %s', round(total_exec_time), calls, rows,
        left(regexp_replace(query, '\\s+', ' ', 'g'), 110)) FROM pg_stat_statements
    WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
    ORDER BY total_exec_time DESC LIMIT 40";

/// Prints the dearest statements of a database: milliseconds, calls, rows.
pub fn print(server: &Cluster, database: &str) -> anyhow::Result<()> {
    server.sql(database, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements")?;
    out(&format!("  {:>9} {:>9} {:>8}  statements in {database}", "ms", "calls", "rows"));
    for line in server.sql(database, TOP)?.lines() {
        out(&format!("  {line}"));
    }
    Ok(())
}
