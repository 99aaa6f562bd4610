//! `fencepost run FILE`.

use super::world::{World, any_process};
use crate::installation::Installation;

#[test]
fn a_file_runs_here_and_now_and_leaves_nothing() {
    let world = World::new();
    let yaml = "params: {who: world}\ntasks:\n  a:\n    run: |\n      echo \"hi=$FENCEPOST_PARAM_WHO\" >> \"$FENCEPOST_OUTPUT_FILE\"\n  \
                b:\n    depends_on: [a]\n    run: |\n      echo \"got $FENCEPOST_INPUT_A_HI\" >&2; exit 7\n";
    world.dag("local", yaml);
    let file = world.path("dags").join("local.yaml");
    let tmp = world.path("tmp");
    std::fs::create_dir(&tmp).unwrap();
    let run = |more: &[&str]| {
        let mut args = vec!["run", file.to_str().unwrap()];
        args.extend(more);
        world.command(&args).env("TMPDIR", &tmp).output().unwrap()
    };
    let whole = run(&["-p", "who=bob"]);
    let text = String::from_utf8_lossy(&whole.stderr).into_owned();
    assert_eq!(whole.status.code(), Some(3), "{text}");
    let shown = format!("{text}{}", String::from_utf8_lossy(&whole.stdout));
    assert!(shown.contains("got bob"), "the failed task's log is shown: {shown}");
    assert_eq!(run(&["--task", "a"]).status.code(), Some(0));
    assert_eq!(run(&["--task", "nope"]).status.code(), Some(4));
    assert_eq!(std::fs::read_dir(&tmp).unwrap().count(), 0, "its home is gone");
    let own = tmp.to_string_lossy().into_owned();
    assert!(!any_process(|line| line.contains(&own)), "no process is left");
    assert!(!world.home().exists(), "the real home is not touched");
}

#[test]
fn a_file_with_mistakes_does_not_run() {
    let world = World::new();
    world.dag("bad", "tasks:\n  a: {run: 'true', need: [b]}\n");
    let file = world.path("dags").join("bad.yaml");
    let output = world.run(&["run", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("bad.yaml:2:20"), "{output:?}");
}
