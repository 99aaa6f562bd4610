//! What the system says of processes and of PostgreSQL.

use anyhow::Context as _;
use fencepost_testing::Cluster;

/// What PostgreSQL has counted in a database.
#[derive(Debug, Clone, Copy)]
pub struct Counts {
    /// Committed and rolled back.
    pub transactions: f64,
    /// Of the job table: rows updated, of these in place, bytes.
    pub updates: f64,
    pub hot: f64,
    pub job_bytes: f64,
}

const COUNTS: &str = "SELECT xact_commit + xact_rollback, n_tup_upd, n_tup_hot_upd,
        pg_total_relation_size('job')
    FROM pg_stat_database, pg_stat_user_tables WHERE datname = current_database() AND relname = 'job'";

impl Counts {
    /// Reads them; that is a transaction too.
    pub fn read(server: &Cluster, database: &str) -> anyhow::Result<Self> {
        let text = server.sql(database, COUNTS)?;
        let mut numbers = text.trim().split('|').map(str::parse::<f64>);
        let mut next = || Ok::<f64, anyhow::Error>(numbers.next().context("a column is missing")??);
        Ok(Self { transactions: next()?, updates: next()?, hot: next()?, job_bytes: next()? })
    }
}

/// Seconds of CPU so far.
#[derive(Debug, Clone, Copy)]
pub struct Cpu {
    pub own: f64,
    pub postgres: f64,
}

/// Of this process, and of all processes of a PostgreSQL server that live.
pub fn cpu_seconds(server: &Cluster) -> anyhow::Result<Cpu> {
    let pids =
        server.sql("postgres", "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()")?;
    let mut postgres = 0.0;
    for pid in pids.lines() {
        // One that has ended meanwhile counts no more.
        postgres += cpu_of(pid.trim().parse()?).unwrap_or(0.0);
    }
    Ok(Cpu { own: cpu_of(std::process::id())?, postgres })
}

/// Seconds of CPU of a process.
pub fn cpu_of(pid: u32) -> anyhow::Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let rest = text.rsplit(") ").next().context("no stat")?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut next = || Ok::<f64, anyhow::Error>(fields.next().context("no CPU time")?.parse()?);
    // The kernel counts in hundredths.
    Ok((next()? + next()?) / 100.0)
}

/// The most memory in MB that this process ever had (VmHWM).
pub fn peak_rss_mb() -> anyhow::Result<f64> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()).context("no VmHWM")?;
    Ok(kib.parse::<f64>()? / 1024.0)
}

/// Memory of a process in MB; pages that it shares count in part.
pub fn pss_mb(pid: u32) -> anyhow::Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let line = text.lines().find(|line| line.starts_with("Pss:")).context("no Pss")?;
    let kib: f64 = line.split_whitespace().nth(1).context("no figure")?.parse()?;
    Ok(kib / 1024.0)
}
