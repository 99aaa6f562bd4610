//! What a template sees: Airflow's names over the plain facts of a run, a task and an attempt.

use super::instant::{FORMS, Instant, format};
use super::kept::Kept;
use super::macros;
use super::names::is_of_tasks;
use fencepost_core::schedule::Zone;
use fencepost_core::time::Timestamp;
use jiff::Zoned;
use minijinja::value::{Kwargs, Object, from_args};
use minijinja::{Error, State, Value};
use serde_json::Map;
use std::collections::BTreeMap;
use std::sync::Arc;

type Json = serde_json::Value;

/// The facts that templates may use.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Context {
    pub dag_id: String,
    pub task_id: String,
    pub run_id: String,
    /// `scheduled`, `manual`, `backfill`, `asset_triggered`.
    pub run_type: String,
    /// The DAG's IANA time zone; unknown or empty: UTC.
    pub timezone: String,
    /// -1 for a task that is not mapped.
    pub map_index: i64,
    pub logical_date: Option<Timestamp>,
    pub data_interval_start: Option<Timestamp>,
    pub data_interval_end: Option<Timestamp>,
    /// When the run began.
    pub run_started_at: Option<Timestamp>,
    pub params: Map<String, Json>,
    pub conf: Map<String, Json>,
    /// The outputs of upstream tasks by task and name.
    pub outputs: BTreeMap<String, Map<String, Json>>,
    /// What made the run, by asset; empty unless events of assets did.
    pub asset_events: Map<String, Json>,
    /// The elements of `expand` for this instance.
    pub mapped: Vec<(String, Json)>,
    /// `None` where there is no attempt yet (`when`, `map_index_template`).
    pub attempt: Option<AttemptFacts>,
    /// What its templates may use of what the installation keeps.
    pub kept: Kept,
    /// What happened: in callbacks only.
    pub happened: Option<Happened>,
}

/// What a callback knows of what happened.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Happened {
    /// `success`, `failure`, `retry`, `lost`, `skipped`, `deadline`.
    pub occasion: String,
    pub reason: String,
    pub run_url: String,
    /// `None`: it happened to the run, and there is no `ti`.
    pub instance: Option<HappenedTo>,
}

/// The instance that it happened to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HappenedTo {
    pub try_number: u32,
    pub max_tries: u32,
    /// Of the attempt, if there was one.
    pub attempt_id: Option<String>,
    /// The full decimal.
    pub fencing_token: Option<String>,
    /// How it is known that the attempt was lost.
    pub lost_evidence: Option<Json>,
}

/// What is known of the attempt that a template is rendered for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AttemptFacts {
    pub attempt_id: String,
    /// The full decimal.
    pub fencing_token: String,
    pub idempotency_key: String,
    pub try_number: u32,
    pub max_tries: u32,
    pub attempt_number: u32,
    /// `first`, `failed`, `lost`, `cleared`, `deferred`.
    pub prev_outcome: String,
}

/// Airflow's short forms of a logical date, in the DAG's time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortDates {
    pub ds: String,
    pub ds_nodash: String,
    pub ts: String,
    pub ts_nodash: String,
    pub ts_nodash_with_tz: String,
}

impl ShortDates {
    /// The forms of `at` in the zone of that name (unknown: UTC).
    pub fn of(at: Timestamp, timezone: &str) -> Self {
        let zoned = zoned(at, timezone);
        let form = |index: usize| format(&zoned, FORMS[index].1).unwrap_or_default();
        Self {
            ds: form(0),
            ds_nodash: form(1),
            ts: form(2),
            ts_nodash: form(3),
            ts_nodash_with_tz: form(4),
        }
    }
}

fn zoned(at: Timestamp, timezone: &str) -> Zoned {
    let zone = Zone::get(timezone).map(|zone| zone.as_jiff().clone());
    at.to_jiff().to_zoned(zone.unwrap_or(jiff::tz::TimeZone::UTC))
}

impl Context {
    /// The root of the names. What is not known is absent, so that its use is an error.
    pub(super) fn to_value(&self) -> Value {
        let mut names: BTreeMap<&str, Value> = BTreeMap::new();
        let ti = Value::from_object(TaskInstance {
            facts: self.task_instance(),
            outputs: self.outputs_value(),
        });
        names.insert("dag", pairs([("dag_id", &self.dag_id), ("timezone", &self.timezone)]));
        names.insert("task", pairs([("task_id", &self.task_id)]));
        names.insert("ti", ti.clone());
        names.insert("task_instance", ti);
        names.insert("task_instance_key_str", Value::from(self.key()));
        names.insert("run_id", Value::from(self.run_id.as_str()));
        names.insert("map_index", Value::from(self.map_index));
        names.insert("test_mode", Value::from(false));
        names.insert("dag_run", self.dag_run());
        names.insert("params", json_value(&self.params));
        names.insert("conf", json_value(&self.conf));
        names.insert("outputs", self.outputs_value());
        names.insert("triggering_asset_events", json_value(&self.asset_events));
        names.insert("macros", macros::module());
        self.kept.add_to(&mut names);
        for (name, at) in self.instants() {
            names.insert(name, self.instant(at));
        }
        if let Some(at) = self.logical_date {
            let zoned = zoned(at, &self.timezone);
            for (name, form) in FORMS {
                names.insert(name, Value::from(format(&zoned, form).unwrap_or_default()));
            }
        }
        for (name, value) in &self.mapped {
            names.insert(name, json_value(value));
        }
        if let Some(happened) = &self.happened {
            happened.add(&mut names);
        }
        Value::from_pairs(names)
    }

    fn add_happened(&self, facts: &mut BTreeMap<&'static str, Value>) {
        let Some(to) = self.happened.as_ref().and_then(|h| h.instance.as_ref()) else { return };
        facts.insert("try_number", Value::from(to.try_number));
        facts.insert("max_tries", Value::from(to.max_tries));
        let texts = [("attempt_id", &to.attempt_id), ("fencing_token", &to.fencing_token)];
        for (name, text) in texts {
            if let Some(text) = text {
                facts.insert(name, Value::from(text.as_str()));
            }
        }
        if let Some(evidence) = &to.lost_evidence {
            facts.insert("lost_evidence", json_value(evidence));
        }
    }

    fn instants(&self) -> impl Iterator<Item = (&'static str, Timestamp)> {
        let known = [
            ("logical_date", self.logical_date),
            ("data_interval_start", self.data_interval_start),
            ("data_interval_end", self.data_interval_end),
            ("start_date", self.run_started_at),
        ];
        known.into_iter().filter_map(|(name, at)| Some((name, at?)))
    }

    fn instant(&self, at: Timestamp) -> Value {
        Value::from_object(Instant(zoned(at, &self.timezone)))
    }

    fn key(&self) -> String {
        let date = self.logical_date.map(|at| ShortDates::of(at, &self.timezone).ds_nodash);
        let last = date.unwrap_or_else(|| self.run_id.clone());
        format!("{}__{}__{last}", self.dag_id, self.task_id)
    }

    fn dag_run(&self) -> Value {
        let mut run: BTreeMap<&str, Value> =
            self.instants().map(|(name, at)| (name, self.instant(at))).collect();
        run.insert("run_id", Value::from(self.run_id.as_str()));
        run.insert("dag_id", Value::from(self.dag_id.as_str()));
        run.insert("run_type", Value::from(self.run_type.as_str()));
        run.insert("conf", json_value(&self.conf));
        Value::from_pairs(run)
    }

    fn outputs_value(&self) -> Value {
        json_value(&self.outputs)
    }

    fn task_instance(&self) -> BTreeMap<&'static str, Value> {
        let mut facts = BTreeMap::from([
            ("dag_id", Value::from(self.dag_id.as_str())),
            ("task_id", Value::from(self.task_id.as_str())),
            ("run_id", Value::from(self.run_id.as_str())),
            ("map_index", Value::from(self.map_index)),
        ]);
        if let Some(attempt) = &self.attempt {
            facts.insert("attempt_id", Value::from(attempt.attempt_id.as_str()));
            facts.insert("fencing_token", Value::from(attempt.fencing_token.as_str()));
            facts.insert("idempotency_key", Value::from(attempt.idempotency_key.as_str()));
            facts.insert("prev_outcome", Value::from(attempt.prev_outcome.as_str()));
            facts.insert("try_number", Value::from(attempt.try_number));
            facts.insert("max_tries", Value::from(attempt.max_tries));
            facts.insert("attempt_number", Value::from(attempt.attempt_number));
        }
        self.add_happened(&mut facts);
        facts
    }
}

impl Happened {
    fn add(&self, names: &mut BTreeMap<&str, Value>) {
        names.insert("occasion", Value::from(self.occasion.as_str()));
        names.insert("reason", Value::from(self.reason.as_str()));
        names.insert("run_url", Value::from(self.run_url.as_str()));
        if let Some(to) = &self.instance {
            names.insert("try_number", Value::from(to.try_number));
        } else {
            names.retain(|name, _| !is_of_tasks(name));
        }
    }
}

/// The value of anything that serialises as JSON does.
fn json_value(json: &impl serde::Serialize) -> Value {
    Value::from(minijinja::value::Serde(json))
}

fn pairs<const N: usize>(pairs: [(&'static str, &String); N]) -> Value {
    Value::from_pairs(pairs.map(|(name, text)| (name, Value::from(text.as_str()))))
}

/// `ti`: its facts, and `xcom_pull` for those who are used to it.
#[derive(Debug)]
struct TaskInstance {
    facts: BTreeMap<&'static str, Value>,
    outputs: Value,
}

impl Object for TaskInstance {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.facts.get(key.as_str()?).cloned()
    }

    fn call_method(
        self: &Arc<Self>,
        _: &mut State<'_, '_>,
        method: &str,
        args: &[Value],
    ) -> Result<Value, Error> {
        if method != "xcom_pull" {
            return Err(Error::from(minijinja::ErrorKind::UnknownMethod));
        }
        let (task, key, named): (Option<String>, Option<String>, Kwargs) = from_args(args)?;
        let task = match task {
            Some(task) => task,
            None => named.get("task_ids")?,
        };
        let key = match key {
            Some(key) => key,
            None => named.get::<Option<String>>("key")?.unwrap_or_else(|| "return_value".into()),
        };
        named.assert_all_used()?;
        let value = self.outputs.get_attr(&task)?.get_attr(&key)?;
        if value.is_undefined() {
            let message = format!("task `{task}` has no output `{key}`");
            return Err(Error::new(minijinja::ErrorKind::UndefinedError, message));
        }
        Ok(value)
    }
}
