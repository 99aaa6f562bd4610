//! Many tasks at once that run until a word is given, and what became of them.

use super::world::Cluster;
use crate::installation::Installation;
use crate::standalone::world::{assert_once, wait_for};
use fencepost_testing::cluster::Cluster as Server;
use fencepost_worker::clock::ClockKind;
use std::collections::{BTreeMap, BTreeSet};

const DAG: &str = "crowd";

/// The tasks of one run.
pub(super) struct Crowd<'a> {
    cluster: &'a Cluster,
    run: String,
    size: usize,
}

/// What a task wrote down.
struct Line {
    word: String,
    index: usize,
    token: i64,
    at_ns: u64,
}

/// The boot-time clock, as the ledger has it.
pub(super) fn now_ns() -> u64 {
    ClockKind::Boottime.now_ns()
}

/// Waits until that instant.
pub(super) fn wait_until(at_ns: u64) {
    wait_for("the time to pass", || now_ns() >= at_ns);
}

/// What the database itself says.
pub(super) fn ask(server: &Server, query: &str) -> String {
    server.sql("postgres", query).unwrap().trim().to_owned()
}

/// Each says when it begins and ends, under which token, by the boot-time clock. The first attempts end
/// when a word is given; with `ticks` they also say that they live, and their replacements end at once.
fn yaml(cluster: &Cluster, size: usize, ticks: bool) -> String {
    let items: Vec<String> = (0..size).map(|n| n.to_string()).collect();
    let (ledger, word) = (cluster.path("ledger"), cluster.path("word"));
    let (tick, pace) = if ticks { ("say tick", "0.5") } else { (":", "1") };
    format!(
        "max_active_tasks: 500\ntasks:\n  t:\n    retries: 0\n    expand: {{n: [{items}]}}\n    run: |\n      \
         say() {{ read -r up rest < /proc/uptime; \
         echo \"$1 $FENCEPOST_MAP_INDEX $FENCEPOST_FENCING_TOKEN $up\" >> '{ledger}'; }}\n      \
         say begin\n      \
         if [ \"$FENCEPOST_ATTEMPT_NUMBER\" -gt 1 ]; then say end; exit 0; fi\n      \
         while ! [ -e '{word}' ]; do {tick}; sleep {pace}; done\n      say end\n",
        items = items.join(", "),
        ledger = ledger.display(),
        word = word.display(),
    )
}

impl<'a> Crowd<'a> {
    /// All of them run.
    pub(super) fn gather(cluster: &'a Cluster, size: usize, ticks: bool) -> Self {
        cluster.dag(DAG, &yaml(cluster, size, ticks));
        let run = cluster.trigger(DAG);
        let own = Self { cluster, run, size };
        wait_for("all tasks to begin", || own.begun() == size);
        own
    }

    fn begun(&self) -> usize {
        self.cluster.lines("ledger").iter().filter(|line| line.starts_with("begin")).count()
    }

    fn lines(&self) -> Vec<Line> {
        let read = |line: &String| {
            let words: Vec<&str> = line.split(' ').collect();
            // Hundredths of a second, as /proc/uptime has them.
            let (seconds, hundredths) = words.get(3)?.split_once('.')?;
            let at: u64 = seconds.parse::<u64>().ok()? * 100 + hundredths.parse::<u64>().ok()?;
            let at_ns = at * 10_000_000;
            let (index, token) = (words[1].parse().ok()?, words[2].parse().ok()?);
            Some(Line { word: words[0].to_owned(), index, token, at_ns })
        };
        self.cluster.lines("ledger").iter().filter_map(read).collect()
    }

    /// The word is given: each ends under the token that it began with, nothing was lost or declared.
    pub(super) fn assert_unharmed(&self, server: &Server) {
        std::fs::write(self.cluster.path("word"), "").unwrap();
        self.cluster.wait_state(DAG, &self.run, "success");
        let once: Vec<String> = self
            .lines()
            .iter()
            .map(|line| format!("{} {} {}", line.word, line.index, line.token))
            .collect();
        assert_once(&once, self.size);
        assert_eq!(ask(server, "SELECT count(*) FROM attempt"), self.size.to_string());
        let lost = "SELECT count(*) FROM event WHERE kind = 'attempt_lost'";
        assert_eq!(ask(server, lost), "0");
        let lives = "SELECT count(*) FROM job WHERE kind = 'worker' AND state = 'running'";
        assert_eq!(ask(server, lives), "2");
        assert_eq!(ask(server, "SELECT count(*) FROM job WHERE kind = 'worker'"), "2");
        self.cluster.assert_sound();
    }

    /// Each was ended before `deadline_ns` by its own fence, and replaced once, on the platform's account.
    pub(super) fn assert_fenced_and_replaced_once(&self, server: &Server, deadline_ns: u64) {
        self.cluster.wait_state(DAG, &self.run, "success");
        let mut by_index: BTreeMap<usize, Vec<Line>> = BTreeMap::new();
        for line in self.lines() {
            by_index.entry(line.index).or_default().push(line);
        }
        assert_eq!(by_index.len(), self.size);
        for (index, lines) in &by_index {
            let tokens: BTreeSet<i64> = lines.iter().map(|line| line.token).collect();
            assert_eq!(tokens.len(), 2, "executions of {index}");
            let first = tokens.first().unwrap();
            let last = lines.iter().filter(|line| line.token == *first).map(|line| line.at_ns);
            let last = last.max().unwrap();
            let second = lines.iter().find(|line| line.token != *first).unwrap().at_ns;
            assert!(
                last < deadline_ns,
                "{index} lived at {last}, its lease ended at {deadline_ns}"
            );
            assert!(last < second, "{index} lived at {last}, its successor began at {second}");
        }
        let closed = "SELECT count(*) FROM attempt WHERE outcome = 'lost' AND counted_as = 'infra' \
                      AND evidence::json ->> 'kind' = 'self_fence'";
        assert_eq!(ask(server, closed), self.size.to_string());
        let replaced = "SELECT count(*) FROM attempt WHERE outcome = 'success' AND try_number = 1 \
                        AND replaces > 0";
        assert_eq!(ask(server, replaced), self.size.to_string());
        self.cluster.assert_sound();
    }
}
