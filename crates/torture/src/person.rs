//! People: they trigger runs, and look after what is held.

use crate::clock::{boot_ns, pause};
use crate::dags::TRIGGERED;
use crate::installation::{DATABASE, Installation};
use crate::random::Random;
use crate::record::{Record, Trigger};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Runs that are kept under way.
const UNDER_WAY: usize = 9;
/// Before a call is given up.
const CALL: Duration = Duration::from_secs(4);
/// How often a trigger is asked for under the same key.
const TRIES: u64 = 8;

/// Somebody with a client.
pub struct Person<'a> {
    it: &'a Installation,
    agent: ureq::Agent,
    record: &'a Record,
}

/// An instance that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Held {
    dag: String,
    run: String,
    task: String,
    attempt: Option<String>,
    reason: String,
}

impl<'a> Person<'a> {
    /// A person before that installation.
    pub fn new(it: &'a Installation, record: &'a Record) -> Self {
        let config = ureq::Agent::config_builder();
        let config = config.timeout_global(Some(CALL)).http_status_as_error(false);
        Self { it, agent: config.build().into(), record }
    }

    /// Keeps so many runs under way until told to stop.
    pub fn trigger_until(&self, stop: &AtomicBool) {
        let mut number = 0;
        while !stop.load(Ordering::Relaxed) {
            let missing = UNDER_WAY.saturating_sub(self.open_runs().unwrap_or(UNDER_WAY));
            for _ in 0..missing.min(3) {
                let dag = TRIGGERED[number % TRIGGERED.len()];
                number += 1;
                self.trigger(dag, &format!("r{number:06}"), stop);
            }
            pause(400);
        }
    }

    fn trigger(&self, dag: &str, run: &str, stop: &AtomicBool) {
        let body = json!({ "run_id": run, "logical_date": "none" });
        let mut acknowledged = None;
        for n in 0..TRIES {
            let path = format!("/dags/{dag}/runs");
            match self.post(n, &path, &body, Some(&format!("{dag}-{run}"))) {
                Ok((200..=299, _)) => {
                    acknowledged = Some(boot_ns());
                    break;
                }
                // The DAG is not loaded yet, no server answers, or the store is away.
                Ok(_) | Err(_) if stop.load(Ordering::Relaxed) => break,
                Ok(_) | Err(_) => pause(500),
            }
        }
        let trigger = Trigger { dag: dag.into(), run: run.into(), acknowledged };
        self.record.trigger(&trigger).unwrap_or_else(|error| crate::say(&format!("{error:#}")));
    }

    fn post(
        &self,
        server: u64,
        path: &str,
        body: &Value,
        key: Option<&str>,
    ) -> anyhow::Result<(u16, String)> {
        let url = format!("{}/api/v1{path}", self.it.server_url(server));
        let mut request = self.agent.post(&url);
        request = request.header("authorization", format!("Bearer {}", self.it.admin()));
        request = request.header("content-type", "application/json");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let mut answer = request.send(body.to_string())?;
        let text = answer.body_mut().read_to_string().unwrap_or_default();
        Ok((answer.status().as_u16(), text))
    }

    /// Runs that have not ended; `None` if nobody can say.
    pub fn open_runs(&self) -> Option<usize> {
        let open = "SELECT count(*) FROM run WHERE state IN ('queued', 'running')";
        self.it.cluster().sql(DATABASE, open).ok()?.trim().parse().ok()
    }

    /// Cancels runs and clears tasks, as it comes, until told to stop.
    pub fn meddle_until(&self, seed: u64, stop: &AtomicBool) {
        let mut random = Random::new(seed);
        while !stop.load(Ordering::Relaxed) {
            pause(random.between(1_500, 4_500));
            let tasks = self.open_tasks();
            let Some((dag, run, task)) = random.one_of(&tasks) else { continue };
            let path = if random.between(0, 3) == 0 {
                format!("/dags/{dag}/runs/{run}:cancel")
            } else {
                format!("/dags/{dag}/runs/{run}/tasks/{task}:clear")
            };
            // It may have ended, or no server may be there.
            let _ = self.post(random.next(), &path, &json!({ "reason": "a person meddles" }), None);
        }
    }

    /// Tasks of runs under way that have begun.
    fn open_tasks(&self) -> Vec<(String, String, String)> {
        let query = "SELECT t.dag_id || ' ' || r.run_id || ' ' || t.task_id \
                     FROM task_instance t JOIN run r USING (run_pk) \
                     WHERE r.state = 'running' AND t.state NOT IN ('none', 'scheduled') \
                     ORDER BY t.run_pk, t.task_index";
        let text = self.it.cluster().sql(DATABASE, query).unwrap_or_default();
        let read = |line: &str| {
            let mut words = line.split(' ').map(ToOwned::to_owned);
            Some((words.next()?, words.next()?, words.next()?))
        };
        text.lines().filter_map(read).collect()
    }

    /// Looks after what is held until told to stop.
    pub fn look_after_until(&self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            for held in self.held() {
                self.help(&held);
            }
            self.record.clocks().unwrap_or_else(|error| crate::say(&format!("{error:#}")));
            pause(1_000);
        }
    }

    fn held(&self) -> Vec<Held> {
        let query = "SELECT json_build_object('dag', t.dag_id, 'run', r.run_id, 'task', t.task_id, \
                     'reason', coalesce(t.reason, ''), 'attempt', a.attempt_id, 'state', a.state) \
                     FROM task_instance t JOIN run r USING (run_pk) \
                     LEFT JOIN attempt a ON a.token = t.token \
                     WHERE t.state = 'held'";
        let text = self.it.cluster().sql(DATABASE, query).unwrap_or_default();
        let read = |line: &str| {
            let value: Value = serde_json::from_str(line).ok()?;
            let word = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
            let is_open = value["state"] == "lost_open";
            Some(Held {
                dag: word("dag"),
                run: word("run"),
                task: word("task"),
                reason: word("reason"),
                attempt: is_open.then(|| word("attempt")),
            })
        };
        text.lines().filter_map(read).collect()
    }

    /// Says that an attempt is dead once no process of it is there; clears what is held as poison.
    fn help(&self, held: &Held) {
        let path = match &held.attempt {
            Some(attempt) if has_process(attempt) => return,
            Some(attempt) => format!("/attempts/{attempt}:confirm-dead"),
            None => format!("/dags/{}/runs/{}/tasks/{}:clear", held.dag, held.run, held.task),
        };
        let body = json!({ "reason": "a person looked: no process of it is there" });
        // Not this time: it is seen again with the next look.
        let _ = self.post(boot_ns(), &path, &body, None);
    }
}

/// Whether any process of this machine has the attempt's id in its environment.
fn has_process(attempt: &str) -> bool {
    let needle = format!("FENCEPOST_ATTEMPT_ID={attempt}");
    let Ok(entries) = std::fs::read_dir("/proc") else { return true };
    entries.flatten().any(|entry| {
        let text = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        text.split(|byte| *byte == 0).any(|variable| variable == needle.as_bytes())
    })
}
