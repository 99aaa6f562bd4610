//! Callbacks in a DAG file: what is read, and where a mistake is shown.

use super::findings;
use fencepost_core::callback::{Occasion, Occasions};
use fencepost_dagfile::{from_ir, ir, parse};

const GOOD: &str = "
on_failure_callback:
  - slack: {conn: oncall, text: '{{ dag.dag_id }} {{ run_id }}: {{ reason }} {{ run_url }}'}
on_lost_callback:
  - webhook: {url: 'https://x', body: {attempt: '{{ ti.attempt_id }}', n: [1, '{{ try_number }}']}}
deadline: {at: '07:30', callback: [{email: {to: [a@example.com]}}]}
default_args:
  on_success_callback: [{trigger_dag: other}]
tasks:
  a: {run: x}
  b: {run: x, on_success_callback: [], on_retry_callback: [{trigger_dag: {dag_id: o, conf: {n: 1}}}]}
";

#[test]
fn callbacks_are_read_and_survive_the_store() {
    assert_eq!(findings(GOOD), Vec::<String>::new());
    let dag = parse(GOOD.as_bytes(), "d.yaml").dag.unwrap();
    let (a, b) = (&dag.tasks[0], &dag.tasks[1]);
    assert_eq!(dag.calls_of(a).bits(), bits([Occasion::Success, Occasion::Lost]));
    assert_eq!(dag.calls_of(b).bits(), bits([Occasion::Retry, Occasion::Lost]));
    assert_eq!(dag.calls().bits(), bits([Occasion::Failure, Occasion::Deadline]));
    let stored: serde_json::Value = serde_json::from_str(&ir(&dag).to_string()).unwrap();
    assert_eq!(from_ir(&stored).unwrap(), dag);
    // A DAG without them is stored as it was before there were any.
    let plain = parse(b"tasks: {a: {run: x}}", "d.yaml").dag.unwrap();
    let text = ir(&plain).to_string();
    assert!(!text.contains("callback") && !text.contains("deadline"), "{text}");
}

fn bits(occasions: [Occasion; 2]) -> i64 {
    occasions.into_iter().collect::<Occasions>().bits()
}

fn only(text: &str, place: &str, part: &str) {
    let found = findings(text);
    assert_eq!(found.len(), 1, "{text}: {found:#?}");
    assert!(found[0].contains(place) && found[0].contains(part), "{text}: {found:#?}");
}

#[test]
fn a_mistake_is_shown_where_it_stands() {
    let of =
        |callback: &str| format!("on_failure_callback:\n- {callback}\ntasks: {{a: {{run: x}}}}");
    only(&of("slak: {text: x}"), "2:3", "did you mean `slack`");
    only(&of("slack: {url: 'https://x', txt: x}"), "2:29", "unknown key");
    only(&of("slack: {url: 'ftp://x', text: x}"), "2:16", "must begin with http");
    only(&of("run: {script: echo}"), "2:8", "must be text");
    only(&of("run: 'page {{ reason }}'"), "2:", "use \"$CALLBACK_REASON\" or `| sh`");
    only(&of("run: 'page {{ conn.x }}'"), "2:", "may be secret");
    only(&format!("dag_id: {}\n{}", "x".repeat(195), of("run: echo")), "1:1", "no room");
    only(&of("webhook: https://x"), "2:12", "must be a mapping");
    only(&of("slack: {url: 'https://x', text: '{{ nobody }}'}"), "2:", "nobody");
    only(&of("slack: {url: 'https://x', text: '{{ outputs.b.x }}'}"), "2:", "no task `b`");
    // What is kept is no text for others.
    only(&of("slack: {url: 'https://x', text: '{{ var.value.x }}'}"), "2:", "may be secret");
    // A run has no instance.
    only(&of("slack: {url: 'https://x', text: '{{ ti.task_id }}'}"), "2:", "about a run");
    let deadline = |text: &str| format!("deadline: {text}\ntasks: {{a: {{run: x}}}}");
    only(&deadline("{at: 25:00, callback: [{trigger_dag: o}]}"), "1:", "time of the day");
    only(&deadline("{after: 1h, callback: [{trigger_dag: o}], by: x}"), "1:", "unknown key");
    only(&deadline("{after: 1h}"), "1:1", "who is to hear");
    only(&deadline("2h"), "1:11", "must be a mapping");
    // What callbacks know is known there only.
    only("tasks: {a: {run: 'echo {{ reason }}'}}", "1:", "callbacks only");
}
