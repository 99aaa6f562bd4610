//! The DAGs of the load: what they promise is what the checker asks for.

use std::path::Path;

/// Every `EVERY_S` seconds this one has a slot.
pub const SCHEDULED: &str = "clockwork";
/// The seconds between two slots of it.
pub const EVERY_S: i64 = 10;
/// Its attempts are replaced only once their death is confirmed.
pub const CAREFUL: &str = "careful";
/// The same, and they run to their end without a lease.
pub const KEPT: &str = "kept";
/// Its task fails in its first try, and only then.
pub const FLAKY: &str = "flaky";
/// Those that are triggered, the usual one more often.
pub const TRIGGERED: [&str; 8] =
    ["graph", "long", CAREFUL, KEPT, "stubborn", CAREFUL, "graph", FLAKY];
/// What a task may be started again on the platform's account (the product's default).
pub const INFRA_RETRIES: u32 = 5;
/// The retries of the flaky one.
pub const FLAKY_RETRIES: u32 = 1;

/// What a DAG's tasks are.
struct Kind {
    /// Lines of the DAG.
    top: String,
    /// Names, what they depend on, and their arguments.
    tasks: Vec<(&'static str, &'static str, String)>,
    /// Lines of each task.
    each: String,
}

/// The DAG files: name and content. `program` is the task's, with the folder of its oracle.
pub fn files(program: &Path, oracle: &Path, containment: &str) -> Vec<(&'static str, String)> {
    let plain = format!("    containment: {containment}\n    kill_grace: 1s\n");
    let careful = format!("{plain}    replace: after_confirmed_dead\n");
    let kinds = [
        ("graph", graph(&plain)),
        ("stubborn", stubborn(&plain)),
        // Longer than a lease.
        ("long", one(&plain, "--millis 14000 --daemon")),
        (CAREFUL, one(&careful, "--millis 7000")),
        (KEPT, one(&format!("{careful}    on_disconnect: keep\n"), "--millis 9000")),
        (FLAKY, flaky(&plain)),
        (SCHEDULED, scheduled(&plain)),
    ];
    kinds.into_iter().map(|(name, kind)| (name, yaml(kind, program, oracle))).collect()
}

fn yaml(kind: Kind, program: &Path, oracle: &Path) -> String {
    let mut text = format!("max_active_runs: 1000\nmax_active_tasks: 1000\n{}tasks:\n", kind.top);
    for (name, upstream, arguments) in &kind.tasks {
        let mut words = vec![program.display().to_string(), "task".into(), "--oracle".into()];
        words.push(oracle.display().to_string());
        words.extend(arguments.split(' ').map(ToOwned::to_owned));
        let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
        text.push_str(&format!("  {name}:\n    command: [{}]\n{}", quoted.join(", "), kind.each));
        if !upstream.is_empty() {
            text.push_str(&format!("    depends_on: [{upstream}]\n"));
        }
    }
    text
}

fn graph(each: &str) -> Kind {
    let task = |name, upstream, millis: u32| (name, upstream, format!("--millis {millis}"));
    let tasks = vec![
        task("first", "", 1500),
        task("left", "first", 3000),
        task("middle", "first", 4500),
        task("right", "first", 2500),
        ("daemon", "first", "--millis 3500 --daemon".to_owned()),
        task("last", "left, middle, right, daemon", 1000),
    ];
    Kind { top: String::new(), tasks, each: each.into() }
}

fn stubborn(each: &str) -> Kind {
    let task = |name| (name, "", "--millis 5000 --stubborn --daemon".to_owned());
    Kind { top: String::new(), tasks: vec![task("mule"), task("goat")], each: each.into() }
}

fn one(each: &str, arguments: &str) -> Kind {
    let tasks = vec![("one", "", arguments.into()), ("other", "", arguments.into())];
    Kind { top: String::new(), tasks, each: each.into() }
}

fn flaky(each: &str) -> Kind {
    let each = format!("{each}    retries: {FLAKY_RETRIES}\n    retry_delay: 1s\n");
    one(&each, "--millis 1500 --fails-once")
}

fn scheduled(each: &str) -> Kind {
    let top = format!("schedule: {{every: {EVERY_S}s}}\ncatchup: next\n");
    Kind { top, ..one(each, "--millis 1000") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dag_that_is_triggered_has_a_file() {
        let files = files(Path::new("/bin/torture"), Path::new("/o"), "auto");
        let named = |name: &str| files.iter().any(|(own, _)| *own == name);
        assert!(TRIGGERED.iter().all(|name| named(name)) && named(SCHEDULED));
        let graph = &files[0].1;
        assert!(graph.contains("command: [\"/bin/torture\", \"task\", \"--oracle\", \"/o\""));
        assert!(graph.contains("depends_on: [left, middle, right, daemon]"));
    }
}
