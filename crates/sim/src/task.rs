//! What a simulated task does: a few words in place of its script.
//!
//! `for=SECONDS` how long it runs; `exit=CODE`; `fail_tries=N` exits 1 on its first N tries;
//! `lose=N` the first N attempts die with their shims; `stay=N` the first N attempts run until they
//! are stopped; `term=ignore` ignores SIGTERM; `result=WORD` asks for an end in its result file;
//! `out=NAME:JSON` writes an output.

use crate::ledger::TaskKey;
use std::collections::BTreeMap;
use std::time::Duration;

/// The words of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behaviour {
    pub runs_for: Duration,
    pub exit: i32,
    pub fail_tries: u32,
    pub lose: u32,
    pub stay: u32,
    pub ignores_term: bool,
    pub result: Option<String>,
    pub outputs: Vec<String>,
}

impl Behaviour {
    /// Reads the words; those that are not known mean nothing.
    pub fn parse(script: &str) -> Self {
        let mut out = Self {
            runs_for: Duration::from_millis(500),
            exit: 0,
            fail_tries: 0,
            lose: 0,
            stay: 0,
            ignores_term: false,
            result: None,
            outputs: Vec::new(),
        };
        for word in script.split_whitespace() {
            let Some((name, value)) = word.split_once('=') else { continue };
            let number = value.parse::<u32>().unwrap_or(0);
            match name {
                "for" => out.runs_for = Duration::from_secs(number.into()),
                "exit" => out.exit = value.parse().unwrap_or(1),
                "fail_tries" => out.fail_tries = number,
                "lose" => out.lose = number,
                "stay" => out.stay = number,
                "term" => out.ignores_term = value == "ignore",
                "result" => out.result = Some(value.to_owned()),
                "out" => out.outputs.push(value.replacen(':', "=", 1)),
                _ => {}
            }
        }
        out
    }
}

/// Who a process is, by its environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    pub key: TaskKey,
    pub token: i64,
    pub try_number: u32,
    pub attempt_number: u32,
}

impl Who {
    /// From the variables that every task gets.
    pub fn of(env: &[(String, String)]) -> Self {
        let env: BTreeMap<&str, &str> = env.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let text = |name: &str| env.get(name).copied().unwrap_or_default();
        let number = |name: &str| text(name).parse().unwrap_or(0);
        Self {
            key: TaskKey {
                dag: text("FENCEPOST_DAG_ID").into(),
                run: text("FENCEPOST_RUN_ID").into(),
                task: text("FENCEPOST_TASK_ID").into(),
                map_index: text("FENCEPOST_MAP_INDEX").parse().unwrap_or(-1),
            },
            token: text("FENCEPOST_FENCING_TOKEN").parse().unwrap_or(0),
            try_number: number("FENCEPOST_TRY_NUMBER"),
            attempt_number: number("FENCEPOST_ATTEMPT_NUMBER"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read() {
        let read =
            Behaviour::parse("for=3 exit=7 fail_tries=2 term=ignore out=n:5 result=skip odd");
        assert_eq!(read.runs_for, Duration::from_secs(3));
        assert_eq!((read.exit, read.fail_tries, read.ignores_term), (7, 2, true));
        assert_eq!((read.outputs, read.result), (vec!["n=5".to_owned()], Some("skip".into())));
    }
}
