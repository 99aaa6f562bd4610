//! `fencepost import`: files are read, written and never written over; the report; exit statuses.

use crate::process::{Call, Ran};
use std::path::Path;

const CRONTAB: &str = "30 2 * * * /opt/backup.sh\n@reboot /opt/warm\n";

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|e| e.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Each DAG file of a folder is sound.
fn assert_valid(home: &Path) {
    let ran = Call::of(&["validate", home.join("dags").to_str().unwrap()]).run();
    assert_eq!(ran.code, 0, "{}", ran.stdout);
}

#[test]
fn a_crontab_becomes_files_and_nothing_is_written_over() {
    let call = Call::new("import cron tab --tz Europe/Berlin --to dags").file("tab", CRONTAB);
    let (ran, home) = call.run_and_keep();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(names(&home.path().join("dags")), ["backup.yaml", "warm.yaml"]);
    insta::assert_snapshot!(ran.stdout, @"
    tab:1  converted  30 2 * * * /opt/backup.sh  ->  backup.yaml
    tab:2  needs a person  @reboot /opt/warm  ->  it runs when the machine starts, which is no time; it is written without a schedule; make it a service that starts at boot, or trigger it
    wrote dags/backup.yaml
    wrote dags/warm.yaml  (paused)
    ");
    assert_eq!(
        ran.stderr,
        "2 DAGs (1 paused until a person has looked): 1 converted, 1 needs a person, 0 ignored\n"
    );
    assert_valid(home.path());
    let again = |line: &str| -> Ran {
        let tab = home.path().join("tab");
        let dags = home.path().join("dags");
        let mut words = vec![
            "import",
            "cron",
            tab.to_str().unwrap(),
            "--tz",
            "UTC",
            "--to",
            dags.to_str().unwrap(),
        ];
        words.extend(line.split_whitespace());
        Call::of(&words).run()
    };
    let backup = home.path().join("dags/backup.yaml");
    std::fs::write(&backup, "mine").unwrap();
    std::fs::remove_file(home.path().join("dags/warm.yaml")).unwrap();
    let ran = again("");
    assert_eq!(ran.code, 5);
    assert!(ran.stderr.contains("is there already; nothing was written"), "{}", ran.stderr);
    assert_eq!(names(&home.path().join("dags")), ["backup.yaml"]);
    let ran = again("--force --dry-run");
    assert!(ran.code == 0 && ran.stdout.contains("would write"), "{} {}", ran.stdout, ran.stderr);
    assert_eq!(std::fs::read_to_string(&backup).unwrap(), "mine");
    let ran = again("--force --strict");
    assert_eq!(ran.code, 9, "{}", ran.stderr);
    assert!(std::fs::read_to_string(&backup).unwrap().contains("timezone: UTC"));
}

#[test]
fn one_dag_is_printed_and_several_ask_where_to() {
    let ran = Call::new("import cron tab --tz UTC").file("tab", "0 5 * * * /opt/a b\n").run();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.starts_with("# Imported from line 1 of tab.\ndag_id: a\n"),
        "{}",
        ran.stdout
    );
    assert!(ran.stderr.contains("tab:1  converted"), "{}", ran.stderr);
    let ran = Call::new("import cron tab --tz UTC").file("tab", CRONTAB).run();
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("there are 2 DAGs") && ran.stderr.contains("--to"),
        "{}",
        ran.stderr
    );
    let ran = Call::new("import cron tab --tz UTC -o json").file("tab", CRONTAB).run();
    let data: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(data["files"].as_array().map(Vec::len), Some(2));
    assert_eq!(data["notes"][1]["kind"], "needs_person");
}

#[test]
fn yaml_of_other_tools_becomes_dag_files() {
    let factory = "etl:\n  schedule: '@daily'\n  tasks:\n    a: {operator: BashOperator, bash_command: echo hi}\n";
    let call = Call::new("import dag-factory f.yml --to dags").file("f.yml", factory);
    let (ran, home) = call.run_and_keep();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(names(&home.path().join("dags")), ["etl.yaml"]);
    assert_valid(home.path());
    let call = Call::new("import dagu flows --tz UTC --to dags --strict");
    std::fs::create_dir(call.home().join("flows")).unwrap();
    let flow = "schedule: 0 1 * * *\nsteps:\n  - echo hi\n";
    for name in ["one.yaml", "two.yml", "notes.txt"] {
        std::fs::write(call.home().join("flows").join(name), flow).unwrap();
    }
    let (ran, home) = call.run_and_keep();
    assert_eq!(ran.code, 0, "{} {}", ran.stdout, ran.stderr);
    assert_eq!(names(&home.path().join("dags")), ["one.yaml", "two.yaml"]);
    assert_valid(home.path());
    let ran = Call::new("import dagu x.yaml --tz UTC --to d").file("x.yaml", "steps: [").run();
    assert!(ran.code == 2 && ran.stdout.contains("x.yaml:1  unreadable"), "{}", ran.stdout);
}

#[test]
fn what_cannot_be_read_is_said() {
    let ran = Call::new("import cron nowhere --tz UTC").run();
    assert!(ran.code == 4 && ran.stderr.contains("cannot read nowhere"), "{}", ran.stderr);
    let ran = Call::new("import cron tab --tz Mars/Base").file("tab", CRONTAB).run();
    assert!(ran.code == 2 && ran.stderr.contains("unknown time zone"), "{}", ran.stderr);
    let call = Call::new("import cron tab --tz UTC --to d");
    std::fs::write(call.home().join("tab"), b"a=b\n\xff").unwrap();
    let ran = call.run();
    assert!(
        ran.code == 2 && ran.stdout.contains("tab:2  unreadable"),
        "{} {}",
        ran.stdout,
        ran.stderr
    );
}

#[test]
fn a_timer_brings_its_service_and_a_folder_all_of_its_timers() {
    let unit = |call: Call| {
        let home = call.home().to_owned();
        std::fs::create_dir_all(home.join("units/a.service.d")).unwrap();
        for (name, text) in [
            ("a.timer", "[Timer]\nOnCalendar=Mon *-*-01..07 06:00\n"),
            ("a.service", "[Unit]\nDescription=A\n[Service]\nExecStart=/bin/a\n"),
            ("a.service.d/user.conf", "[Service]\nUser=joe\n"),
            ("b.timer", "[Timer]\nOnUnitActiveSec=1h\n"),
            ("b.service", "[Unit]\nDescription=B\n[Service]\nExecStart=/bin/b\n"),
        ] {
            std::fs::write(home.join("units").join(name), text).unwrap();
        }
        call
    };
    let ran = unit(Call::new("import systemd units/a.timer --tz UTC")).run();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for part in ["schedule: \"0 6 1-7 * +1\"", "command: [/bin/a]", "run_as_user: joe"] {
        assert!(ran.stdout.contains(part), "{part}\n{}", ran.stdout);
    }
    let (ran, home) = unit(Call::new("import systemd units --tz UTC --to dags")).run_and_keep();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(names(&home.path().join("dags")), ["a.yaml", "b.yaml"]);
    assert_valid(home.path());
}

/// A DAG that was imported, run here and now.
fn run(text: &str) -> Ran {
    let path = "/usr/local/bin:/usr/bin:/bin";
    let call = Call::new("run dag.yaml").file("dag.yaml", text).env("PATH", path);
    let home = call.home().display().to_string();
    call.env("HOME", &home).run()
}

/// The scripts that surround what the source ran: input, variables, statuses, outputs, conditions.
#[test]
fn what_was_imported_does_what_it_did() {
    let dag = |line: &str, name: &str, text: &str| {
        let ran = Call::new(line).file(name, text).run();
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout
    };
    let cron = dag("import cron c --tz UTC", "c", "0 5 * * * cat; echo \"a \\%b\"%in one%in two\n");
    let ran = run(&cron);
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
    for said in ["in one", "in two", "a %b"] {
        assert!(format!("{}{}", ran.stdout, ran.stderr).contains(said), "{said}\n{}", ran.stderr);
    }
    let flow = "params: {WHO: world}\nenv: [GREETING: \"hello ${WHO}\"]\nsteps:\n  - {name: make, command: 'echo \"$GREETING\"; echo more', output: TEXT}\n  \
        - {name: use, script: 'echo \"got: ${TEXT}!\"; echo ctx ${AIRFLOW_CTX_DAG_ID-none}', preconditions: [{condition: '`echo ok`', expected: ok}]}\n  \
        - {name: soft, command: exit 3, continueOn: {exitCode: [3], markSuccess: true}}\n  \
        - {name: never, command: echo never, preconditions: 'false'}\nhandlerOn: {exit: {command: echo bye}, failure: {command: echo failed}}\n";
    let ran = run(&dag("import dagu flow.yaml --tz UTC", "flow.yaml", flow));
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.code, 0, "{said}");
    assert!(
        said.contains("use │ got: hello world")
            && said.contains("more!")
            && said.contains("ctx none"),
        "{said}"
    );
    assert!(
        said.contains("on_exit │ bye") && !said.contains("│ never") && !said.contains("│ failed"),
        "{said}"
    );
    let unit = "[Timer]\nOnCalendar=daily\nUnit=u.service\n[Service]\nType=oneshot\nEnvironment=A=1 \"B=x y\"\nExecStartPre=-/bin/false\n\
        ExecStart=/bin/echo said \"${B}\" $A $$HOME *\nExecStart=/bin/sh -c \"exit 3\"\nSuccessExitStatus=3\nExecStopPost=/bin/echo post\n";
    let call =
        Call::new("import systemd u.timer --tz UTC").file("u.timer", unit).file("u.service", unit);
    let ran = run(&call.run().stdout);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.code, 0, "{said}");
    assert!(
        said.contains("u │ said x y 1 $HOME *") && said.contains("u.stop_post │ post"),
        "{said}"
    );
}
