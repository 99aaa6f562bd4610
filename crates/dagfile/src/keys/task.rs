//! The keys of a task; most may also stand in `default_args`.

use super::Shape::{
    Assets, Callbacks, Choice, Codes, Duration, Env, Expand, Flag, Later, Name, Outputs, Program,
    Resources, RetryPolicy, Secrets, TaskNames, Text, Texts, TriggerDag, True, Whole, Words,
};
use super::{Key, Level, MANY, SECRETS, Shape};
use fencepost_core::trigger_rule::TriggerRule;

const fn task(name: &'static str, shape: Shape, doc: &'static str) -> Key {
    Key::new(name, Level::Task, shape, doc)
}

const fn both(name: &'static str, shape: Shape, doc: &'static str) -> Key {
    Key::new(name, Level::TaskOrDefault, shape, doc)
}

const COUNT: Shape = Whole { least: 1, greatest: MANY };
const BUDGET: Shape = Whole { least: 0, greatest: MANY };
const WEIGHT_MAX: i64 = 1_000_000_000;

const TRIGGER_RULES: [&str; TriggerRule::ALL.len()] = {
    let mut names = [""; TriggerRule::ALL.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = TriggerRule::ALL[i].1;
        i += 1;
    }
    names
};

pub(super) static KEYS: &[Key] = &[
    task("run", Text, "A shell script (bash -euo pipefail).").template(),
    task("command", Words, "A program and its arguments, without a shell.").template(),
    task(
        "python",
        Text,
        "A Python function, `module:function`: arguments by name, its dict becomes outputs.",
    ),
    task("http", Shape::Http, "An HTTP request, with the idempotency key and the fencing token.")
        .template(),
    task("sql", Later, "SQL in one fenced transaction."),
    task("container", Later, "A container."),
    task(
        "trigger_dag",
        TriggerDag,
        "A run of another DAG, made in the commit in which the task succeeds.",
    )
    .template(),
    task("wait", Shape::Wait, "A deferred wait; it costs no worker slot.").template(),
    task("noop", True, "Nothing: the task succeeds when its turn comes."),
    task("depends_on", TaskNames, "The tasks and task groups that come before it.").or("[]"),
    both(
        "trigger_rule",
        Choice { values: &TRIGGER_RULES, later: &[] },
        "When it may start, given how its upstream tasks ended.",
    )
    .or("\"all_success\""),
    task("when", Text, "A Jinja expression; false: the task is skipped.").template(),
    task(
        "expand",
        Expand,
        "One instance per element of these lists, or of what these templates give (their cross product).",
    ),
    task("map_index_template", Text, "What a mapped instance is called.").template(),
    task("setup", Flag, "It prepares for the tasks after it, and is cleared with them.")
        .or("false"),
    task(
        "teardown",
        Flag,
        "It cleans up, however the tasks before it ended, and does not decide the run's state.",
    )
    .or("false"),
    both("depends_on_past", Flag, "Its instance of the run before must have succeeded.")
        .or("false"),
    both(
        "wait_for_downstream",
        Flag,
        "The tasks right after it in the run before must have ended well too; implies \
         `depends_on_past`.",
    )
    .or("false"),
    both("queue", Name, "Which workers may take it.").or("\"default\""),
    both("executor", Later, "Which executor runs it."),
    both("pool", Name, "The pool whose slots it takes.").or("\"default_pool\""),
    both("pool_slots", COUNT, "How many slots of its pool it takes.").or("1"),
    both(
        "priority_weight",
        Whole { least: -WEIGHT_MAX, greatest: WEIGHT_MAX },
        "Larger goes first.",
    )
    .or("1"),
    both(
        "weight_rule",
        Choice { values: &["downstream", "upstream", "absolute"], later: &[] },
        "Which weights are added to its own: those of all tasks after it, before it, or none.",
    )
    .or("\"downstream\""),
    both("max_active_tis_per_dag", COUNT, "Most instances of it at once, over all runs."),
    both("max_active_tis_per_dagrun", COUNT, "Most instances of it at once in one run."),
    both(
        "resources",
        Resources,
        "Limits of one attempt: {cpu: 2 or 500m, memory: 4Gi}. They reserve nothing.",
    ),
    both("retries", BUDGET, "Tries after a failure of the task itself.").or("0"),
    both("retry_delay", Duration, "Wait before a retry.").or("\"5m\""),
    both("retry_exponential_backoff", Flag, "Double the wait each time, with jitter.").or("false"),
    both("max_retry_delay", Duration, "Longest wait before a retry."),
    both(
        "retry_policy",
        RetryPolicy,
        "What exit codes mean; the first match wins, before `retries`.",
    )
    .or("[]"),
    both("infra_retries", BUDGET, "Replacements of attempts that started and were lost.").or("5"),
    both(
        "on_lost",
        Choice { values: &["retry", "hold", "fail"], later: &[] },
        "What happens when an attempt that had started is lost.",
    )
    .or("\"retry\""),
    both(
        "replace",
        Choice { values: &["after_lease_expiry", "after_confirmed_dead"], later: &[] },
        "When a lost attempt may be replaced.",
    )
    .or("\"after_lease_expiry\""),
    both(
        "on_disconnect",
        Choice { values: &["stop", "keep"], later: &[] },
        "What becomes of the task when its worker is cut off; `keep` only with `on_lost: hold` or \
         `replace: after_confirmed_dead`.",
    )
    .or("\"stop\""),
    both(
        "containment",
        Choice { values: &["auto", "pidns", "cgroup", "group"], later: &[] },
        "How the task's processes are held together.",
    )
    .or("\"auto\""),
    both("stall_timeout", Duration, "Longest time without output, CPU use or checkpoint."),
    both("execution_timeout", Duration, "Longest attempt, from start to exit."),
    both("queued_timeout", Duration, "Longest wait for a worker.").or("\"20m\""),
    both("kill_grace", Duration, "From SIGTERM to SIGKILL; default: the worker's."),
    both("graceful_exit_codes", Codes, "Exit codes that mean success after our own stop signal.")
        .or("[]"),
    both("skip_exit_codes", Codes, "Exit codes that end the task as skipped.").or("[99]"),
    both("egress", Later, "What the task may call through the gateway."),
    both("env", Env, "Environment variables; they go over those of the DAG.").or("{}").template(),
    both("secrets", Secrets, SECRETS),
    both("connections", Texts, "Connections given to the task."),
    task("outputs", Outputs, "Declared outputs and their types.").or("{}"),
    task("inlets", Assets, "Assets that it reads: shown, and nothing more.").or("[]"),
    task("outlets", Assets, "Assets that it writes: its success is an event of each.").or("[]"),
    both("working_dir", Text, "Where it starts; default: the attempt's own directory.").template(),
    both("shell", Program, "The interpreter of `run`.").or("[\"bash\", \"-euo\", \"pipefail\"]"),
    both("run_as_user", Text, "The user that it runs as."),
    both("on_success_callback", Callbacks, "What is called after it succeeded.")
        .or("[]")
        .template(),
    both("on_failure_callback", Callbacks, "What is called after it failed.").or("[]").template(),
    both(
        "on_retry_callback",
        Callbacks,
        "What is called when it is retried, or replaced after a loss.",
    )
    .or("[]")
    .template(),
    both("on_lost_callback", Callbacks, "What is called after an attempt of it was lost.")
        .or("[]")
        .template(),
    both("on_skipped_callback", Callbacks, "What is called after it was skipped.")
        .or("[]")
        .template(),
];
