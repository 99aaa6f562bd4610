//! What a checker reads: files of the harness's folder.

use crate::dump::{Attempt, Event, Instance, Job, Run};
use crate::ledger::{self, Line, TiKey};
use crate::record::{Done, Instants, Record, Trigger};
use crate::sink::{self, Mark};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;

/// How the harness saw the end.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Settled {
    /// From here on, on the boot-time clock, nothing should run any more.
    pub quiet_from: u64,
    /// What `fencepost doctor` says, if it found something.
    pub audit: Option<String>,
    /// The lease of every role, in nanoseconds.
    pub ttl_ns: u64,
}

/// Everything that is known.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    pub ledger: Vec<Line>,
    pub fenced: Vec<(TiKey, Vec<Mark>)>,
    pub runs: Vec<Run>,
    pub instances: Vec<Instance>,
    pub attempts: Vec<Attempt>,
    pub jobs: Vec<Job>,
    pub events: Vec<Event>,
    pub faults: Vec<Done>,
    pub triggers: Vec<Trigger>,
    pub clocks: Clocks,
    pub settled: Settled,
    /// What is wrong with the records themselves.
    pub bad: Vec<String>,
}

impl Facts {
    /// The tokens of attempts that count as lost.
    pub(super) fn lost(&self) -> BTreeSet<i64> {
        let lost = |attempt: &&Attempt| attempt.outcome.as_deref() == Some("lost");
        self.attempts.iter().filter(lost).map(|attempt| attempt.token).collect()
    }

    /// Reads a folder.
    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let record = Record::new(folder);
        let (ledger, torn) = ledger::read(&folder.join("oracle/ledger"))?;
        let mut bad: Vec<String> = torn.iter().map(|line| format!("ledger: `{line}`")).collect();
        let settled = record.read::<Settled>("settled")?.pop().unwrap_or_default();
        bad.extend(settled.audit.clone());
        Ok(Self {
            ledger,
            fenced: fenced(&folder.join("oracle/fenced"))?,
            runs: record.read("runs")?,
            instances: record.read("instances")?,
            attempts: record.read("attempts")?,
            jobs: record.read("jobs")?,
            events: record.read("events")?,
            faults: record.faults()?,
            triggers: record.triggers()?,
            clocks: Clocks(record.instants()?),
            settled,
            bad,
        })
    }
}

fn fenced(folder: &Path) -> anyhow::Result<Vec<(TiKey, Vec<Mark>)>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if let Some(ti) = sink::owner(&path) {
            all.push((ti, sink::marks(&std::fs::read_to_string(&path)?)));
        }
    }
    Ok(all)
}

/// Which instants of the two clocks belong together.
#[derive(Debug, Clone, Default)]
pub struct Clocks(pub Vec<Instants>);

impl Clocks {
    /// An instant of the store on the boot-time clock, by the nearest pair that is known.
    pub fn boot_ns(&self, wall_us: i64) -> u64 {
        let after = self.0.partition_point(|pair| pair.wall_us <= wall_us);
        let near = |n: usize| self.0.get(n).map(|pair| (pair.wall_us.abs_diff(wall_us), pair));
        let pairs = [after.checked_sub(1).and_then(near), near(after)];
        let nearest = pairs.into_iter().flatten().min_by_key(|(distance, _)| *distance);
        let Some((_, pair)) = nearest else { return 0 };
        let offset = (wall_us - pair.wall_us).saturating_mul(1_000);
        pair.boot_ns.saturating_add_signed(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_pair_tells_the_time() {
        let pair = |boot_ns, wall_us| Instants { boot_ns, wall_us };
        // The wall clock was stepped by 5 ms between the two.
        let clocks = Clocks(vec![pair(1_000_000, 10_000), pair(2_000_000, 16_000)]);
        assert_eq!(clocks.boot_ns(10_500), 1_500_000);
        assert_eq!(clocks.boot_ns(15_900), 1_900_000);
        assert_eq!(clocks.boot_ns(9_000), 0);
        assert_eq!(clocks.boot_ns(17_000), 3_000_000);
        assert_eq!(Clocks::default().boot_ns(5), 0);
    }
}
