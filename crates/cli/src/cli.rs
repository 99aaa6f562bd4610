//! The arguments: which verb, and how its failure ends the process.

use crate::cx::Cx;
use crate::environment::Environment;
use crate::exit::Exit;
use crate::global::Global;
use crate::verb::Verb;
use clap::{CommandFactory, FromArgMatches, Parser};
use std::ffi::OsString;
use std::process::ExitCode;

/// Workflows that survive crashes: nothing lost, nothing run twice.
#[derive(Debug, Parser)]
#[command(name = "fencepost", version, disable_help_subcommand = true, max_term_width = 100)]
#[command(after_help = "\
First steps:
  fencepost init hello && cd hello        an example project
  fencepost validate dags/                check DAG files
  fencepost dags list                     what the server knows
  fencepost explain DAG @latest           why it is not running

Exit codes: 0 done, 1 unexpected, 2 usage or validation, 3 run failed, 4 not found, 5 conflict,
6 not allowed, 7 server unreachable, 8 timed out waiting, 9 held, 130 interrupted")]
pub(crate) struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    verb: Verb,
}

/// Runs one call of the binary.
pub(crate) fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let cli = match parse(arguments.collect()) {
        Ok(cli) => cli,
        Err(error) => {
            // Help goes to stdout and is no failure; that nobody reads it is none either.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Done }.into();
        }
    };
    let cx = Cx::new(cli.global, Environment::of_process());
    match cli.verb.run(&cx) {
        Ok(exit) => exit.into(),
        Err(error) => {
            if !error.is_closed_pipe() {
                cx.out.fail(&error);
            }
            error.exit.into()
        }
    }
}

/// Reads the arguments. `-q` is `--quiet`, but for a worker, whose `-q` names its queues as Airflow's
/// does: there quiet has its long form alone.
fn parse(arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    let mut command = Cli::command();
    if verb_of(&command, &arguments) == Some("worker") {
        command = command
            .mut_arg("quiet", |quiet| quiet.short(None))
            .mut_subcommand("worker", |worker| worker.mut_arg("queues", |q| q.short('q')));
    }
    Cli::from_arg_matches(&command.try_get_matches_from(arguments)?)
}

/// The first argument that is neither a flag nor the value of one.
fn verb_of<'a>(command: &clap::Command, arguments: &'a [OsString]) -> Option<&'a str> {
    let takes_value = |flag: &str| {
        let (long, short) = (flag.strip_prefix("--"), flag.strip_prefix('-'));
        command.get_arguments().any(|argument| {
            let is_it = argument.get_long().is_some_and(|name| long == Some(name))
                || argument.get_short().is_some_and(|c| short == Some(c.to_string().as_str()));
            is_it && argument.get_action().takes_values()
        })
    };
    let mut rest = arguments.iter().skip(1).filter_map(|argument| argument.to_str());
    while let Some(argument) = rest.next() {
        if !argument.starts_with('-') {
            return Some(argument);
        }
        if takes_value(argument) {
            rest.next();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_contradict_nothing() {
        Cli::command().debug_assert();
    }

    /// clap looks values up by their id over all levels, and panics where the types differ.
    #[test]
    fn no_verb_has_an_argument_with_the_id_of_a_global_one() {
        fn check(command: &clap::Command, global: &[String]) {
            for argument in command.get_arguments() {
                let id = argument.get_id().to_string();
                assert!(!global.contains(&id), "`{id}` of {}", command.get_name());
            }
            command.get_subcommands().for_each(|sub| check(sub, global));
        }
        let command = Cli::command();
        let global: Vec<String> = command.get_arguments().map(|a| a.get_id().to_string()).collect();
        assert!(global.contains(&"format".to_owned()));
        command.get_subcommands().for_each(|sub| check(sub, &global));
    }

    #[test]
    fn every_verb_teaches_with_an_example() {
        fn check(command: &clap::Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            if command.has_subcommands() {
                command.get_subcommands().for_each(|sub| check(sub, &path));
                return;
            }
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("fencepost "), "`{path}` has no example");
            assert!(command.get_about().is_some(), "`{path}` says nothing");
            for argument in command.get_arguments() {
                let (id, help) = (argument.get_id(), argument.get_help());
                assert!(help.is_some(), "`{id}` of `{path}` says nothing");
            }
        }
        Cli::command().get_subcommands().for_each(|command| check(command, "fencepost"));
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn arguments_are_read_as_documented() {
        for (line, good) in [
            ("dags list --tag x -o json", true),
            ("dags trigger d -p a=1 -p b=x --wait --timeout 5m", true),
            ("dags trigger d --if-not-exists", false),
            ("runs list", true),
            ("runs list d --state failed,running --limit 5", true),
            ("runs show d", false),
            ("tasks clear d @latest load --downstream --dry-run --yes", true),
            ("tasks mark d r load", false),
            ("tasks mark d r load --as success", true),
            ("tasks mark d r load --as held", false),
            ("tasks attempts d r load --map-index 3", true),
            ("logs d r load -f --attempt 7-48211 --tail 10 --since 10m --grep x --late", true),
            ("events d r load", true),
            ("attempts confirm-dead 7-48211 --reason gone", true),
            ("workers list --all --name node-b", true),
            ("workers drain w-3 --reason x --dry-run", true),
            ("workers confirm-dead node-b --reason x --yes", true),
            ("inspect ghosts", true),
            ("inspect everything", false),
            ("pools set warehouse 10", true),
            ("pools set warehouse -1", false),
            ("config explain worker.lease_ttl", true),
            ("context add prod --server http://x:1 --token-file t", true),
            ("dags list --context prod", true),
            ("health --role scheduler --max-age 30s", true),
            ("tokens create --role admin --expires 90d", true),
            ("tokens create --role emperor", false),
            ("db migrate --store postgres://u@h/d", true),
            ("db check", true),
            ("doctor --store sqlite:x.db", true),
            ("tokens create --role worker --store sqlite:x.db", true),
            ("completion bash", true),
            ("completion csh", false),
            ("version -o xml", false),
            ("validate a.yaml b - --strict -o github", true),
            ("validate", false),
            ("schema dag tasks.retries", true),
            ("schedule preview @daily --tz UTC --from 2026-01-01 --to 2026-02-01 -n 3", true),
            ("schedule preview", false),
            ("schedule preview --dag x.yaml", true),
            ("server --store postgres://h/d --listen 127.0.0.1:0", true),
            ("scheduler --store postgres://h/d --dags d", true),
            ("worker --server http://h:1 --name w -q a,b -c 4 --home d --take-over", true),
            ("--home worker -q dags list", true),
            ("dags list --tag worker -q", true),
            ("-o json --home x worker -q a --quiet", true),
            ("server -q a", false),
            ("assets list", true),
            ("assets show s3://a/b", true),
            ("assets events --limit 3", true),
            ("assets emit a --extra {} --dry-run", true),
            ("assets emit", false),
            ("backfill list", true),
            ("backfill create d --from-date 2026-01-01", false),
            ("backfill create d --from-date 2026-01-01 --to-date 2026-02-01 -p a=1", true),
            ("backfill create d --from-date a --to-date b --reprocess-behavior all", false),
            ("backfill create d --from-date a --to-date b --max-active-runs 0", false),
            ("backfill cancel 3 --reason x --yes", true),
            ("backfill", false),
            ("callbacks list --state dead --dag d", true),
            ("callbacks list --state lost", false),
            ("callbacks retry a b", true),
            ("callbacks retry --all --dag d", true),
            ("callbacks retry", false),
            ("callbacks retry a --dag d", false),
            ("", false),
        ] {
            let words = std::iter::once("fencepost").chain(line.split_whitespace());
            let words = words.map(OsString::from).collect();
            assert_eq!(parse(words).is_ok(), good, "{line}");
        }
    }
}
