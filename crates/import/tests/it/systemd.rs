//! Timers in the style of real ones; their instants against those of systemd.

use super::{dags, instants, notes, source};
use fencepost_core::dag::{Action, Part};
use fencepost_import::{Imported, NoteKind, Source, systemd};

fn import(files: &[(&str, &str)]) -> Imported {
    let sources: Vec<Source<'_>> = files.iter().map(|(name, text)| source(name, text)).collect();
    systemd(&sources, None, "Europe/Berlin")
}

/// A timer with an event, and a service.
fn at(event: &str) -> Imported {
    let timer = format!("[Timer]\nOnCalendar={event}\n");
    let sources =
        [source("a.timer", &timer), source("a.service", "[Service]\nExecStart=/bin/true\n")];
    systemd(&sources, None, "UTC")
}

#[test]
fn instants_are_those_of_systemd() {
    let table = include_str!("calendar_events.txt");
    let mut count = 0;
    for row in table.lines().filter(|row| !row.starts_with('#')) {
        let (event, expected) = row.split_once(" | ").unwrap();
        let dag = dags(&at(event)).remove(0);
        let expected: Vec<&str> = expected.split_whitespace().collect();
        // Those after the base; the table's first may be the base itself.
        let found = instants(&dag, "2026-01-01T00:00:00Z", expected.len());
        let found: Vec<String> = found.iter().map(|at| at.replace(".000Z", "Z")).collect();
        assert_eq!(found, expected, "{event}");
        count += 1;
    }
    assert!(count > 20);
}

const TIMER: &str = "\
[Unit]
Description=Nightly backup of %i

[Timer]
OnCalendar=*-*-* 02:30
RandomizedDelaySec=15min
AccuracySec=1s
Persistent=true

[Install]
WantedBy=timers.target
";

const SERVICE: &str = "\
[Unit]
Description=Backup
Wants=network-online.target
After=network-online.target postgresql.service
OnFailure=mail@%n.service
ConditionACPower=true

[Service]
Type=oneshot
User=backup
WorkingDirectory=/srv/backup
Environment=MODE=full \"NOTE=it's 100%% sure\"
EnvironmentFile=-/etc/default/backup
ExecStartPre=-/bin/mkdir -p /srv/backup/tmp
ExecStart=/usr/bin/pg_dump --format=custom \\
    --file=/srv/backup/${DB}.dump $EXTRA
ExecStart=/usr/bin/restic backup /srv/backup
ExecStopPost=/bin/rm -rf /srv/backup/tmp
SuccessExitStatus=3
TimeoutStartSec=2h
TimeoutStopSec=20
Nice=19
ProtectSystem=strict
PrivateTmp=yes
StandardOutput=journal
";

#[test]
fn a_backup_with_everything() {
    let imported = import(&[
        ("/etc/systemd/system/backup.timer", TIMER),
        ("/etc/systemd/system/backup.service", SERVICE),
        ("/etc/systemd/system/backup.service.d/more.conf", "[Service]\nTimeoutStartSec=3h\n"),
        ("/etc/systemd/system/other.service", "[Service]\nExecStart=/bin/true\n"),
    ]);
    dags(&imported);
    insta::assert_snapshot!(imported.files[0].text, @r#"
    # Imported from backup.timer and backup.service.
    # Needs a person: backup.timer:6: RandomizedDelaySec=15min: starts are not delayed at random (spread the schedules, or limit what runs at once by a pool)
    # Needs a person: backup.service:4: After=network-online.target postgresql.service: it does not wait for other units (make one DAG of both, or wait: {external_run: ...})
    # Needs a person: backup.service:5: OnFailure=mail@%n.service: no unit is started at its end (add a task with trigger_rule one_failed, or a callback)
    # Needs a person: backup.service:6: ConditionACPower=true: conditions of units are not looked at (test it in the script: exit 99 skips the task)
    # Needs a person: backup.service:22: Nice=19: a task has no priority of its own on the machine (begin the command with nice -n 19)
    # Needs a person: backup.service:23: ProtectSystem=strict: it is not taken over: limits, sandboxing and the like are systemd's (begin the command with systemd-run --pipe --wait -p KEY=VALUE, or do without)
    dag_id: backup
    description: Backup
    schedule: "30 2 * * *"
    timezone: Europe/Berlin
    catchup: false
    is_paused_upon_creation: true
    max_active_runs: 1
    overlap: skip
    env:
      MODE: full
      NOTE: "it's 100% sure"

    tasks:
      backup:
        run: |
          if [ -e /etc/default/backup ]; then set -a; . /etc/default/backup; set +a; fi
          /bin/mkdir -p /srv/backup/tmp || true
          /usr/bin/pg_dump --format=custom --file=/srv/backup/"${DB-}".dump ${EXTRA-} || { rc=$?; case $rc in 3) ;; *) exit $rc ;; esac; }
          /usr/bin/restic backup /srv/backup || { rc=$?; case $rc in 3) ;; *) exit $rc ;; esac; }
        shell: [/bin/sh, "-ef"]
        working_dir: /srv/backup
        execution_timeout: "3h"
        kill_grace: "20s"
        run_as_user: backup
      backup.stop_post:
        depends_on: [backup]
        teardown: true
        run: |
          if [ -e /etc/default/backup ]; then set -a; . /etc/default/backup; set +a; fi
          /bin/rm -rf /srv/backup/tmp
        shell: [/bin/sh, "-ef"]
        working_dir: /srv/backup
        execution_timeout: "3h"
        kill_grace: "20s"
        run_as_user: backup
    "#);
    insta::assert_snapshot!(notes(&imported, NoteKind::NeedsPerson).join("\n"), @r#"
    /etc/systemd/system/backup.service:4 After=network-online.target postgresql.service -> it does not wait for other units; make one DAG of both, or wait: {external_run: ...}
    /etc/systemd/system/backup.service:5 OnFailure=mail@%n.service -> no unit is started at its end; add a task with trigger_rule one_failed, or a callback
    /etc/systemd/system/backup.service:6 ConditionACPower=true -> conditions of units are not looked at; test it in the script: exit 99 skips the task
    /etc/systemd/system/backup.service:22 Nice=19 -> a task has no priority of its own on the machine; begin the command with nice -n 19
    /etc/systemd/system/backup.service:23 ProtectSystem=strict -> it is not taken over: limits, sandboxing and the like are systemd's; begin the command with systemd-run --pipe --wait -p KEY=VALUE, or do without
    /etc/systemd/system/backup.timer:6 RandomizedDelaySec=15min -> starts are not delayed at random; spread the schedules, or limit what runs at once by a pool
    "#);
    let ignored = notes(&imported, NoteKind::Ignored).join("\n");
    for part in [
        "AccuracySec=1s",
        "WantedBy=timers.target",
        "PrivateTmp=yes",
        "StandardOutput=journal",
        "other.service -> no timer among these starts it",
    ] {
        assert!(ignored.contains(part), "{part}\n{ignored}");
    }
}

#[test]
fn one_plain_command_needs_no_shell() {
    let imported = import(&[
        ("a.timer", "[Timer]\nOnCalendar=daily\n"),
        ("a.service", "[Service]\nExecStart=/bin/echo 'a  b' {{x}} %% $$HOME \"q\"\n"),
    ]);
    let dag = dags(&imported).remove(0);
    let Action::Command(words) = &dag.tasks[0].action else { panic!("{:?}", dag.tasks[0].action) };
    assert_eq!(words, &["/bin/echo", "a  b", "{{ '{{' }}x}}", "%", "$HOME", "q"]);
    assert_eq!(dag.limits.max_active_runs, 1);
}

#[test]
fn commands_around_the_main_one_are_part_of_it_or_tasks_after_it() {
    let imported = import(&[
        ("a.timer", "[Timer]\nOnUnitActiveSec=90min\nOnBootSec=5min\n"),
        (
            "a.service",
            "[Service]\nExecCondition=/bin/test -e /x\nExecStart=/bin/a ; /bin/b\nExecStartPost=/bin/c\nExecStop=/bin/d\nExecStopPost=/bin/e\nRestart=on-failure\nRestartSec=5\n",
        ),
    ]);
    let dag = dags(&imported).remove(0);
    let ids: Vec<&str> = dag.tasks.iter().map(|task| task.task_id.as_str()).collect();
    assert_eq!(ids, ["a", "a.stop", "a.stop_post"]);
    let Action::Run(script) = &dag.tasks[0].action else { panic!() };
    assert_eq!(
        script,
        "/bin/test -e /x || { [ $? -eq 255 ] && exit 1; exit 99; }\n/bin/a\n/bin/b\n/bin/c\n"
    );
    assert_eq!(dag.tasks[2].part, Part::Teardown);
    assert_eq!(dag.tasks[0].retry.retries, 4);
    assert_eq!(
        instants(&dag, "2026-01-01T00:00:00Z", 2),
        ["2026-01-01T01:30:00.000Z", "2026-01-01T03:00:00.000Z"]
    );
    assert!(
        notes(&imported, NoteKind::NeedsPerson).is_empty(),
        "{:?}",
        notes(&imported, NoteKind::NeedsPerson)
    );
}

#[test]
fn what_has_no_schedule_or_no_service_is_written_without_it() {
    let imported = import(&[
        ("tpl@.timer", "[Timer]\nOnCalendar=daily\n"),
        ("boot.timer", "[Timer]\nOnBootSec=5min\nUnit=b@x.service\n"),
        ("b@.service", "[Service]\nExecStart=/bin/b %i\n"),
        ("gone.timer", "[Timer]\nOnCalendar=daily\n"),
        ("feb.timer", "[Timer]\nOnCalendar=*-*~03\nOnCalendar=whenever\n"),
        ("feb.service", "[Service]\nType=forking\nExecStart=+/bin/b\nExecStart=/bin/c %H\n"),
    ]);
    let dags = dags(&imported);
    assert_eq!(imported.files.iter().filter(|file| file.needs_person).count(), 3);
    let Action::Command(words) = &dags[0].tasks[0].action else { panic!("{:?}", dags[0]) };
    assert_eq!(words, &["/bin/b", "x"]);
    let needs = notes(&imported, NoteKind::NeedsPerson).join("\n");
    for part in [
        "boot.timer:2 OnBootSec=5min -> it counts from a start of the machine",
        "tpl@.timer:1 tpl@.timer -> it is a template, of which nothing runs by itself",
        "gone.timer:1 gone.service -> the unit that it starts is not there",
        "feb.timer:2 OnCalendar=*-*~03 -> cron has no word for it",
        "feb.timer:3 OnCalendar=whenever -> it is no calendar event",
        "feb.service:2 Type=forking ->",
        "feb.service:3 ExecStart=+/bin/b -> `+` asks for more privileges",
        "feb.service:4 ExecStart=/bin/c %H -> only the machine knows %H",
    ] {
        assert!(needs.contains(part), "{part}\n{needs}");
    }
    let Action::Run(script) = &dags[1].tasks[0].action else { panic!() };
    assert!(script.contains("exit 1"), "{script}");
}

#[test]
fn times_in_two_zones_are_two_dags() {
    let imported = import(&[
        (
            "z.timer",
            "[Timer]\nOnCalendar=09:00 Asia/Tokyo\nOnCalendar=09:00 Europe/Paris\nOnCalendar=18:00 Europe/Paris\n",
        ),
        ("z.service", "[Service]\nExecStart=/bin/true\n"),
    ]);
    let dags = dags(&imported);
    let zones: Vec<&str> = dags.iter().map(|dag| dag.timing.timezone.as_str()).collect();
    assert_eq!(zones, ["Asia/Tokyo", "Europe/Paris"]);
    assert_eq!(dags[1].dag_id.as_str(), "z_2");
    assert_eq!(instants(&dags[0], "2026-07-01T00:00:00Z", 1), ["2026-07-02T00:00:00.000Z"]);
}
