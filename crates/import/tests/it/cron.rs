//! Crontabs in the style of real ones; their instants against a reading of cron(8) minute by minute.

use super::{dags, instants, notes, source};
use fencepost_import::{CronForm, CronOptions, Imported, NoteKind, cron};

fn import(name: &str, text: &str) -> Imported {
    cron(&source(name, text), &CronOptions { zone: "Europe/Berlin", form: None })
}

const USER: &str = "\
# m h dom mon dow command
SHELL=/bin/bash
PATH=\"/usr/local/bin:/usr/bin:/bin\"
MAILTO=ops@example.com

# Nightly backup
30 2 * * * /usr/local/bin/backup.sh --full >> /var/log/backup.log 2>&1
*/15 9-17 * * MON-FRI cd /srv/app && ./bin/sync.py -v
@weekly /usr/bin/certbot renew -q
@reboot /usr/local/bin/warm-cache
0 9 1 * * mail -s \"Report for $(date +\\%B)\" boss%Hello,%the report is attached.
CRON_TZ=America/New_York
0 0 13 * 5 docker ps --format '{{.Names}}' | wc -l
61 * * * * never
0~59 3 * * * /usr/local/bin/spread
";

#[test]
fn a_users_crontab() {
    let imported = import("crontab", USER);
    let dags = dags(&imported);
    let ids: Vec<&str> = dags.iter().map(|dag| dag.dag_id.as_str()).collect();
    assert_eq!(
        ids,
        ["backup", "sync", "certbot", "warm-cache", "mail", "docker", "never", "spread"]
    );
    insta::assert_snapshot!(imported.files[0].text, @r#"
    # Imported from line 7 of crontab.
    dag_id: backup
    description: Nightly backup
    schedule: "30 2 * * *"
    timezone: Europe/Berlin
    catchup: next
    env:
      SHELL: /bin/bash
      PATH: "/usr/local/bin:/usr/bin:/bin"

    tasks:
      backup:
        run: |
          cd || exit
          /usr/local/bin/backup.sh --full >> /var/log/backup.log 2>&1
        shell: [/bin/bash]
    "#);
    insta::assert_snapshot!(imported.files[4].text, @r#"
    # Imported from line 11 of crontab.
    dag_id: mail
    schedule: "0 9 1 * *"
    timezone: Europe/Berlin
    catchup: next
    env:
      SHELL: /bin/bash
      PATH: "/usr/local/bin:/usr/bin:/bin"

    tasks:
      mail:
        run: |
          cd || exit
          { mail -s "Report for $(date +%B)" boss
          } <<'STDIN'
          Hello,
          the report is attached.
          STDIN
        shell: [/bin/bash]
    "#);
    assert!(imported.files[5].text.contains("'{{ '{{' }}.Names}}'"), "{}", imported.files[5].text);
    assert_eq!(dags[5].timing.timezone, "America/New_York");
    assert_eq!(
        notes(&imported, NoteKind::NeedsPerson),
        [
            "crontab:4 MAILTO=ops@example.com -> output is not mailed: it is kept in the log of the attempt; \
             where somebody must hear of a failure, set a callback or an alert",
            "crontab:10 @reboot /usr/local/bin/warm-cache -> it runs when the machine starts, which is no time; \
             it is written without a schedule; make it a service that starts at boot, or trigger it",
            "crontab:14 61 * * * * never -> `61` is no minute of cron: `61` is not 0 to 59; it is written without a \
             schedule; cron runs no such line either; write a `schedule`",
            "crontab:15 0~59 3 * * * /usr/local/bin/spread -> cron picks a value at random each time it reads the file; \
             it is written without a schedule; choose one and write it as `schedule`",
        ]
    );
    assert_eq!(notes(&imported, NoteKind::Converted).len(), 8);
}

const SYSTEM: &str = "\
SHELL=/bin/sh
# You also should not forget the user.
17 *\t* * *\troot\tcd / && run-parts --report /etc/cron.hourly
25 6\t* * *\troot\ttest -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.daily; }
*/10 * * * * www-data:www [ -x /usr/lib/php/sessionclean ] && /usr/lib/php/sessionclean
A-B=c
";

#[test]
fn the_systems_crontab_is_known_by_its_path_or_by_root() {
    for name in ["/etc/crontab", "some/file"] {
        let imported = import(name, SYSTEM);
        let dags = dags(&imported);
        let users: Vec<Option<&str>> =
            dags.iter().map(|dag| dag.tasks[0].run_as_user.as_deref()).collect();
        assert_eq!(users, [Some("root"), Some("root"), Some("www-data")], "{name}");
        let ids: Vec<&str> = dags.iter().map(|dag| dag.dag_id.as_str()).collect();
        assert_eq!(ids, ["cron.hourly", "cron.daily", "sessionclean"]);
        assert_eq!(
            notes(&imported, NoteKind::NeedsPerson),
            [
                format!(
                    "{name}:5 www-data:www -> only the user is taken over; a task has a user and no group or class of its own"
                ),
                format!(
                    "{name}:6 A-B=c -> no task can have a variable of that name; set it in the script"
                ),
            ]
        );
    }
    // Told otherwise, the sixth word is the command.
    let options = CronOptions { zone: "UTC", form: Some(CronForm::User) };
    let imported = cron(&source("x", "0 5 * * * root x"), &options);
    assert!(imported.files[0].text.contains("root x"), "{}", imported.files[0].text);
}

/// Whether cron runs a line at that minute, as crontab(5) says it.
fn matches(fields: &str, at: jiff::civil::DateTime) -> bool {
    let fields: Vec<&str> = fields.split(' ').collect();
    let number = |text: &str| -> i8 {
        let words = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
        let months = [
            "", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ];
        let lower = text.to_lowercase();
        let word = words
            .iter()
            .position(|w| *w == lower)
            .or_else(|| months.iter().position(|w| *w == lower));
        word.map_or_else(|| text.parse().unwrap(), |n| i8::try_from(n).unwrap())
    };
    let has = |field: &str, least: i8, greatest: i8, value: i8| {
        field.split(',').any(|item| {
            let (range, step) = item.split_once('/').unwrap_or((item, "1"));
            let (from, to) = match range.split_once('-') {
                Some((from, to)) => (number(from), number(to)),
                None if range == "*" => (least, greatest),
                None => (number(range), number(range)),
            };
            (from..=to).contains(&value) && (value - from) % number(step) == 0
        })
    };
    let weekday = at.weekday().to_sunday_zero_offset();
    let day = has(fields[2], 1, 31, at.day());
    let dow = has(fields[4], 0, 7, weekday) || (weekday == 0 && has(fields[4], 0, 7, 7));
    let day_matches = if fields[2].starts_with('*') || fields[4].starts_with('*') {
        day && dow
    } else {
        day || dow
    };
    // The day first: most of them match not at all.
    day_matches
        && has(fields[3], 1, 12, at.month())
        && has(fields[1], 0, 23, at.hour())
        && has(fields[0], 0, 59, at.minute())
}

/// The same days, at any time.
fn with_any_time(fields: &str) -> String {
    let days: Vec<&str> = fields.split(' ').skip(2).collect();
    format!("* * {}", days.join(" "))
}

#[test]
fn instants_are_those_of_cron_minute_by_minute() {
    for fields in [
        "30 2 * * *",
        "*/15 9-17 * * MON-FRI",
        "0 0 13 * 5",
        "0 0 */2 * 1",
        "5,35 0-23/6 1-7,15 jan,jun-aug *",
        "0 12 * * 7",
        "0 12 1 * sun",
        "59 23 31 12 *",
        "0 4 * * 5-7",
        "0 0 */10 * */3",
        "7 7 29 2 *",
        "0 22 28-31 * 1-5",
    ] {
        let imported =
            cron(&source("c", &format!("{fields} x")), &CronOptions { zone: "UTC", form: None });
        let dag = dags(&imported).remove(0);
        let mut at = jiff::civil::date(2027, 12, 20).at(0, 0, 0, 0);
        let mut expected = Vec::new();
        while expected.len() < 20 && at.year() < 2030 {
            if matches(fields, at) {
                expected.push(format!("{at}.000Z"));
            }
            // A day of which no minute matches the day's fields is passed over at once.
            let any = matches(&with_any_time(fields), at);
            let step = jiff::Span::new();
            at = at.saturating_add(if any { step.minutes(1) } else { step.days(1) });
        }
        let found = instants(&dag, "2027-12-19T23:59:59Z", expected.len());
        let found: Vec<String> =
            found.iter().map(|at| at.replace(".000Z", "").replace('Z', "") + ".000Z").collect();
        assert_eq!(found, expected, "{fields}");
    }
}
