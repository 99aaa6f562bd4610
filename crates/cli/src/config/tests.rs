use super::*;

fn load(
    file: &str,
    variables: &[(&str, &str)],
    overrides: Overrides,
) -> Result<Settings, Vec<ConfigError>> {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("fencepost.toml"), file).unwrap();
    Settings::load(home.path(), None, &Environment::of(variables), overrides)
}

fn origin(settings: &Settings, name: &str) -> (Option<String>, &'static str) {
    let (_, setting) = settings.all().find(|(key, _)| key.name == name).unwrap();
    (setting.value.clone(), setting.place.origin())
}

#[test]
fn a_flag_beats_the_environment_beats_the_file_beats_the_default() {
    let file = "[worker]\nslots = 4\n";
    let variable = [("FENCEPOST__WORKER__SLOTS", "6")];
    let flag = || vec![("worker.slots", "--slots", "8".to_owned())];
    let value = |settings: Settings| origin(&settings, "worker.slots");
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(value(load(file, &variable, flag()).unwrap()), (some("8"), "flag"));
    assert_eq!(value(load(file, &variable, vec![]).unwrap()), (some("6"), "environment"));
    assert_eq!(value(load(file, &[], vec![]).unwrap()), (some("4"), "file"));
    assert_eq!(value(load("", &[], vec![]).unwrap()), (None, "default"));
    let settings = load("", &[], vec![]).unwrap();
    assert_eq!(settings.text("server.listen"), Some("127.0.0.1:7373"));
    assert!(settings.text("store.url").unwrap().ends_with("/fencepost.db"));
}

#[test]
fn every_default_is_a_legal_value_and_contradicts_nothing() {
    for key in KEYS {
        if let Fallback::Value(text) = key.default {
            assert_eq!(key.kind.check(text), Ok(()), "{}", key.name);
        }
        let section = key.name.split('.').next().unwrap();
        assert!(keys::SECTIONS.contains(&section), "{}", key.name);
    }
    assert_eq!(lint::lint(&load("", &[], vec![]).unwrap()), []);
}

#[test]
fn all_mistakes_are_told_at_once_with_their_place() {
    let file = "[worker]\nlease_tll = \"5m\"\nslots = 0\nqueues = [\"a\", 1]\n\n[workr]\nx = 1\n";
    let variables = [("FENCEPOST__SERVER__LISTEN", "nowhere"), ("FENCEPOST__SLOTS", "3")];
    let errors = load(file, &variables, vec![]).unwrap_err();
    let lines: Vec<String> = errors
        .iter()
        .map(|error| {
            let text = error.to_string();
            let text = text.split_once("fencepost.toml:").map_or(text.as_str(), |(_, rest)| rest);
            format!("{text} | {}", error.hint.as_deref().unwrap_or("-"))
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    2:1: unknown key `worker.lease_tll` | did you mean `worker.lease_ttl`?
    3:9: worker.slots: `0` is not a whole number from 1 to 10000 | -
    4:10: worker.queues must be a list of names | -
    6:2: unknown section [workr] | did you mean [worker]?
    FENCEPOST__SERVER__LISTEN: `nowhere` is not an IP address and a port (write 127.0.0.1:7373) | -
    FENCEPOST__SLOTS: unknown key `slots` | did you mean `worker.slots`?
    ");
}

#[test]
fn broken_toml_is_a_mistake_with_a_place() {
    for file in ["[worker\n", "worker = 3\n", "[worker]\nslots = 1\nslots = 2\n", "\u{0}"] {
        let errors = load(file, &[], vec![]).unwrap_err();
        assert!(matches!(errors[0].place, Place::File { .. }), "{file:?}");
    }
    let home = tempfile::tempdir().unwrap();
    let named = home.path().join("gone.toml");
    let none = Environment::of(&[]);
    assert!(Settings::load(home.path(), Some(&named), &none, vec![]).is_err());
    assert!(Settings::load(home.path(), None, &none, vec![]).is_ok());
}

#[test]
fn lint_names_both_keys_and_the_value_to_write() {
    for (variables, first, second, mend) in [
        (
            &[("FENCEPOST__WORKER__HEARTBEAT_INTERVAL", "100s")][..],
            "worker.heartbeat_interval",
            "worker.self_fence",
            "worker.heartbeat_interval = \"1m20s\" or less",
        ),
        (
            &[("FENCEPOST__WORKER__KILL_GRACE", "2m")],
            "worker.kill_grace",
            "worker.lease_ttl",
            "worker.kill_grace = \"45s\" or less, or worker.lease_ttl = \"13m20s\" or more",
        ),
        (
            &[("FENCEPOST__SCHEDULER__LEASE_TTL", "10s")],
            "scheduler.heartbeat_interval",
            "scheduler.lease_ttl",
            "scheduler.heartbeat_interval = \"2s\" or less",
        ),
        (
            &[("FENCEPOST__SCHEDULER__SCAN_INTERVAL", "10s")],
            "scheduler.scan_interval",
            "scheduler.lease_ttl",
            "scheduler.scan_interval = \"3s\" or less",
        ),
        (
            &[("FENCEPOST__RETENTION__LOGS", "365d")],
            "retention.logs",
            "retention.runs",
            "retention.logs = \"90d\" or less",
        ),
        (
            &[("FENCEPOST__ALERTS__PING_INTERVAL", "5s")],
            "alerts.ping_interval",
            "alerts.ping_url",
            "alerts.ping_url = \"http://HOST/PATH\"",
        ),
    ] {
        let findings = lint::lint(&load("", variables, vec![]).unwrap());
        assert_eq!(findings.len(), 1, "{variables:?}");
        assert_eq!(findings[0].mend, mend);
        for key in [first, second] {
            assert!(findings[0].keys.iter().any(|k| k == key), "{key} in {findings:?}");
        }
    }
}

#[test]
fn paths_in_the_file_are_from_its_folder_and_others_from_where_one_stands() {
    let file = "[dags]\npath = \"dags\"\n[store]\nurl = \"sqlite:x/y.db\"\n";
    let settings = load(file, &[], vec![]).unwrap();
    for (key, end) in [("dags.path", "/dags"), ("store.url", "/x/y.db")] {
        let text = settings.text(key).unwrap();
        assert!(text.trim_start_matches("sqlite:").starts_with('/'), "{text}");
        assert!(text.ends_with(end), "{text}");
    }
    let settings = load(file, &[("FENCEPOST__DAGS__PATH", "here")], vec![]).unwrap();
    assert_eq!(settings.text("dags.path"), Some("here"));
    let absolute = "[store]\nurl = \"postgres://host/db\"\n[dags]\npath = \"/a\"\n";
    let settings = load(absolute, &[], vec![]).unwrap();
    assert_eq!(settings.text("store.url"), Some("postgres://host/db"));
    assert_eq!(settings.text("dags.path"), Some("/a"));
}

#[test]
fn a_password_in_the_stores_address_is_never_shown() {
    let key = Key::find("store.url").unwrap();
    let url = "postgres://anna:pa@ss:w@host:5432/db";
    assert_eq!(key.shown(url), "postgres://anna:***@host:5432/db");
    let url = "postgres://anna@host/db?sslmode=require&password=secret";
    assert_eq!(key.shown(url), "postgres://anna@host/db?sslmode=require&password=***");
    for plain in ["postgres://anna@host/db", "sqlite:/a:b@c", "postgres:///db?sslmode=disable"] {
        assert_eq!(key.shown(plain), plain);
    }
}
