//! A whole fleet dies at once, and half of it comes back: what those two had goes on, and what the others had
//! comes back by the ramp. Many tasks; a thousand with `FENCEPOST_TEST_LONG=1`.

use super::world::{Cluster, Role};
use crate::installation::Installation;
use crate::standalone::world::wait_for;
use fencepost_testing::cluster::{Cluster as Server, End};
use std::fs::File;

/// Room for a third more than the fleet ran.
const ROOM: usize = 4;

fn is_long() -> bool {
    std::env::var_os("FENCEPOST_TEST_LONG").is_some()
}

fn tasks() -> usize {
    if is_long() { 1_000 } else { 120 }
}

/// Tasks that begin, wait at a gate without using the processor, and end.
fn load(cluster: &Cluster) {
    let list: Vec<String> = (0..tasks()).map(|n| n.to_string()).collect();
    let (ledger, gate) = (cluster.path("ledger"), cluster.path("gate"));
    cluster.dag(
        "load",
        &format!(
            "max_active_tasks: 5000\ndefault_args: {{pool: fleet}}\ntasks:\n  t:\n    expand: {{n: [{}]}}\n    \
             run: |\n      echo \"begin $FENCEPOST_FENCING_TOKEN $FENCEPOST_MAP_INDEX\" >> '{ledger}'\n      \
             flock -s '{gate}' true\n      \
             echo \"end $FENCEPOST_FENCING_TOKEN $FENCEPOST_MAP_INDEX\" >> '{ledger}'\n",
            list.join(", "),
            ledger = ledger.display(),
            gate = gate.display(),
        ),
    );
}

struct Fleet {
    server: Server,
    cluster: Cluster,
    gate: Option<File>,
}

impl Fleet {
    fn new(place: &std::path::Path) -> Self {
        let server = Server::start(&place.join("server")).unwrap();
        let mut cluster = Cluster::on(server.url("postgres"));
        if is_long() {
            // A thousand processes begin at once: that alone may take some seconds from those who beat.
            for (key, value) in [("lease_ttl", "40s"), ("self_fence", "32s"), ("kill_grace", "2s")]
            {
                cluster.setting(&format!("worker.{key}"), value);
            }
        } else {
            cluster.short_worker_leases();
            cluster.short_scheduler_leases();
        }
        cluster.setting("worker.slots", &(tasks() * ROOM / 3).to_string());
        load(&cluster);
        let gate = File::create(cluster.path("gate")).unwrap();
        gate.lock().unwrap();
        Self { server, cluster, gate: Some(gate) }
    }

    fn count(&self, what: &str) -> usize {
        let counted = self.server.sql("postgres", &format!("SELECT count(*) FROM {what}"));
        // The server may just be starting.
        counted.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }

    fn lines(&self, word: &str) -> usize {
        self.cluster.lines("ledger").iter().filter(|line| line.starts_with(word)).count()
    }

    fn running(&self) -> usize {
        self.count("attempt WHERE state = 'running'")
    }

    /// Starts four workers, has all tasks run on them, and kills all four.
    fn die(&self) -> String {
        let size = tasks().to_string();
        self.cluster.must(&["pools", "set", "fleet", &size]);
        let workers: Vec<Role> =
            (1..=4).map(|n| self.cluster.worker_of_slots(&format!("w{n}"), tasks() / 4)).collect();
        let run = self.cluster.trigger("load");
        wait_for("all tasks to begin", || self.lines("begin") == tasks());
        workers.into_iter().for_each(Role::kill9);
        run
    }

    /// What two of them had goes on; what the other two had comes back, by the ramp. Then all end.
    fn end(mut self, run: &str) {
        let half = tasks() / 2;
        wait_for("what was lost to run again", || {
            self.count("attempt WHERE why = 'replaces' AND started_at IS NOT NULL") >= half
                && self.running() == tasks()
        });
        self.keeps_to_its_ramp();
        drop(self.gate.take());
        self.cluster.wait_state("load", run, "success");
        assert_eq!(self.count("attempt WHERE outcome = 'lost'"), half);
        assert_eq!(self.count("attempt"), tasks() + half, "each of them was replaced once");
        assert_eq!(self.count("attempt WHERE counted_as = 'infra'"), half);
        assert_eq!((self.lines("begin"), self.lines("end")), (tasks() + half, tasks()));
        self.cluster.assert_sound();
    }

    /// In no second more was given out than the ramp allowed, by the log.
    fn keeps_to_its_ramp(&self) {
        let ask = |text: &str| self.server.sql("postgres", text).unwrap();
        let numbers = |text: String| -> Vec<f64> {
            text.lines().filter_map(|line| line.trim().parse().ok()).collect()
        };
        let rates =
            numbers(ask("SELECT at::text FROM event WHERE kind = 'ramp_rate' ORDER BY seq"));
        let speeds = numbers(ask(
            "SELECT evidence::json->>'rate' FROM event WHERE kind = 'ramp_rate' ORDER BY seq",
        ));
        let drawn =
            numbers(ask("SELECT claimed_at FROM attempt WHERE ramp <> '' ORDER BY claimed_at"));
        assert!(drawn.len() >= tasks() / 2);
        // 10 % of the pool's slots at first.
        let first = tasks() as f64 / 10.0;
        for (n, from) in drawn.iter().enumerate() {
            let until = from + 1e6;
            let within = drawn[n..].iter().take_while(|at| **at < until).count();
            let steps = rates.iter().zip(&speeds).filter(|(at, _)| **at < until);
            let before =
                steps.clone().rfind(|(at, _)| **at <= *from).map_or(first, |(_, rate)| *rate);
            let meanwhile = steps.filter(|(at, _)| **at > *from).map(|(_, rate)| *rate);
            let most = meanwhile.fold(before, f64::max);
            assert!(within as f64 <= most.ceil(), "{within} in a second at a rate of {most}");
        }
    }
}

#[test]
fn slow_what_a_dead_fleet_had_comes_back_by_the_ramp() {
    let place = tempfile::tempdir().unwrap();
    let fleet = Fleet::new(place.path());
    let _roles = (fleet.cluster.server(), fleet.cluster.scheduler("s1"));
    let run = fleet.die();
    let _workers = (fleet.cluster.worker("w1"), fleet.cluster.worker("w2"));
    fleet.end(&run);
}

/// The same while a scheduler is killed in the middle of the recovery and the database restarted.
#[test]
fn slow_a_recovery_that_is_itself_hit_comes_to_the_same() {
    let place = tempfile::tempdir().unwrap();
    let mut fleet = Fleet::new(place.path());
    let server = fleet.cluster.server();
    let (one, _other) = (fleet.cluster.scheduler("s1"), fleet.cluster.scheduler("s2"));
    let run = fleet.die();
    let _workers = (fleet.cluster.worker("w1"), fleet.cluster.worker("w2"));
    wait_for("the recovery to begin", || fleet.count("event WHERE kind = 'attempt_lost'") > 0);
    one.kill9();
    fleet.server.end(End::Immediate).unwrap();
    fleet.server.run_again().unwrap();
    fleet.end(&run);
    drop(server);
}
