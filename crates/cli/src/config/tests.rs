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

/// Variables without their prefix, the keys that the finding names, the value to write; the first finding that
/// names all the keys counts.
type Case = (&'static [(&'static str, &'static str)], &'static [&'static str], &'static str);

fn finding(variables: &[(&str, &str)], keys: &[&str]) -> Option<lint::Finding> {
    let named: Vec<(String, &str)> =
        variables.iter().map(|(name, value)| (format!("FENCEPOST__{name}"), *value)).collect();
    let named: Vec<(&str, &str)> = named.iter().map(|(n, v)| (n.as_str(), *v)).collect();
    let names_all = |found: &lint::Finding| keys.iter().all(|k| found.keys.iter().any(|n| n == k));
    lint::lint(&load("", &named, vec![]).unwrap()).into_iter().find(names_all)
}

/// AC-04 and its like: what must hold between times, or a task dies without a fault.
const ERRORS: &[Case] = &[
    (
        &[("WORKER__HEARTBEAT_INTERVAL", "100s")],
        &["worker.heartbeat_interval", "worker.self_fence"],
        "worker.heartbeat_interval = \"1m20s\" or less",
    ),
    (
        &[("WORKER__KILL_GRACE", "2m")],
        &["worker.kill_grace", "worker.lease_ttl", "worker.self_fence", "worker.margin"],
        "worker.kill_grace = \"45s\" or less, or worker.lease_ttl = \"13m20s\" or more",
    ),
    (
        &[("SCHEDULER__LEASE_TTL", "10s")],
        &["scheduler.heartbeat_interval", "scheduler.lease_ttl"],
        "scheduler.heartbeat_interval = \"2s\" or less",
    ),
    (
        &[("WORKER__ORPHAN_TTL", "20s")],
        &["worker.orphan_ttl", "worker.kill_grace", "worker.margin"],
        "orphan_ttl = \"1m32s\" or more",
    ),
    (
        &[("SERVER__TLS_CERT", "/cert.pem")],
        &["server.tls_cert", "server.tls_key"],
        "server.tls_key = \"PATH\"",
    ),
];

const WARNINGS: &[Case] = &[
    (
        &[("SCHEDULER__SCAN_INTERVAL", "10s")],
        &["scheduler.scan_interval", "scheduler.lease_ttl"],
        "scheduler.scan_interval = \"3s\" or less",
    ),
    (
        &[("SCHEDULER__START_TIMEOUT", "20s")],
        &["scheduler.start_timeout", "worker.heartbeat_interval"],
        "scheduler.start_timeout = \"30s\" or more",
    ),
    (
        &[("SCHEDULER__ADOPTION_TIMEOUT", "10s")],
        &["scheduler.adoption_timeout", "scheduler.lease_ttl"],
        "scheduler.adoption_timeout = \"30s\" or more",
    ),
    (
        &[("WORKER__HEARTBEAT_INTERVAL", "500ms")],
        &["worker.heartbeat_interval"],
        "worker.heartbeat_interval = \"1s\" or more",
    ),
    (
        &[("WORKER__LEASE_TTL", "20s")],
        &["worker.lease_ttl", "worker.self_fence"],
        "worker.lease_ttl = \"60s\" or more",
    ),
    (
        &[("WORKER__DRAIN_TIMEOUT", "2m")],
        &["worker.drain_timeout", "TimeoutStopSec"],
        "worker.drain_timeout = \"1m\" or less, or a longer TimeoutStopSec",
    ),
    (
        &[("WORKER__DRAIN_TIMEOUT", "10m")],
        &["worker.drain_timeout", "worker.lease_ttl"],
        "worker.drain_timeout = \"5m\" or less",
    ),
    (
        &[("WORKER__STOP_TIMEOUT", "30s")],
        &["worker.stop_timeout", "terminationGracePeriodSeconds"],
        "worker.stop_timeout = \"25s\" or less, or a longer terminationGracePeriodSeconds",
    ),
    (
        &[("WORKER__STOP_TIMEOUT", "5m")],
        &["worker.stop_timeout", "worker.self_fence"],
        "worker.stop_timeout = \"4m\" or less",
    ),
    (
        &[("RECOVERY__MAX_RATE", "5")],
        &["recovery.max_rate", "recovery.initial"],
        "recovery.max_rate = 12 or more",
    ),
    (
        &[("SCHEDULER__MASS_LOSS_THRESHOLD", "100%")],
        &["scheduler.mass_loss_threshold"],
        "scheduler.mass_loss_threshold = \"90%\" or less",
    ),
    (
        &[("SCHEDULER__MASS_LOSS_THRESHOLD", "5%")],
        &["scheduler.mass_loss_threshold"],
        "scheduler.mass_loss_threshold = \"20%\" or more",
    ),
    (
        &[("RETENTION__LOGS", "365d")],
        &["retention.logs", "retention.runs"],
        "retention.logs = \"90d\" or less",
    ),
    (
        &[("RETENTION__RUNS", "1h"), ("RETENTION__LOGS", "1h")],
        &["retention.runs"],
        "retention.runs = \"24h\" or more",
    ),
    (
        &[("RETENTION__JOBS", "1m")],
        &["retention.jobs", "worker.lease_ttl"],
        "retention.jobs = \"10m\" or more",
    ),
    (
        &[("ALERTS__PING_INTERVAL", "5s")],
        &["alerts.ping_interval", "alerts.ping_url"],
        "alerts.ping_url = \"http://HOST/PATH\"",
    ),
    (
        &[("ALERTS__PING_INTERVAL", "1s"), ("ALERTS__PING_URL", "http://h/p")],
        &["alerts.ping_interval", "scheduler.scan_interval"],
        "alerts.ping_interval = \"4s\" or more",
    ),
    (
        &[("SERVER__INSECURE", "true"), ("SERVER__TLS_CERT", "/c"), ("SERVER__TLS_KEY", "/k")],
        &["server.insecure", "server.tls_cert"],
        "server.insecure = \"false\"",
    ),
    (
        &[("SERVER__LEASE_TTL", "6s"), ("SCHEDULER__HEARTBEAT_INTERVAL", "1s")],
        &["server.lease_ttl", "statement_timeout"],
        "server.lease_ttl = \"10s\" or more",
    ),
];

#[test]
fn lint_names_both_keys_and_the_value_to_write() {
    for (cases, severity) in [(ERRORS, lint::Severity::Error), (WARNINGS, lint::Severity::Warning)]
    {
        for (variables, keys, mend) in cases {
            let found = finding(variables, keys).unwrap_or_else(|| panic!("{variables:?}"));
            assert_eq!((found.mend.as_str(), found.severity), (*mend, severity), "{variables:?}");
        }
    }
}

/// Whoever writes what a finding says is not told the same again.
#[test]
fn the_value_that_a_finding_names_is_accepted() {
    for (variables, keys, mend) in ERRORS.iter().chain(WARNINGS) {
        let (name, value) = variables[0];
        let first = mend.split(", or ").next().unwrap();
        let Some((_, written)) = first.split_once(" = ") else { continue };
        let written = written.trim_end_matches(" or less").trim_end_matches(" or more");
        let key = first.split(" = ").next().unwrap().replace('.', "__").to_uppercase();
        if key != name {
            continue;
        }
        let mended = [(name, written.trim_matches('"'))];
        let first = finding(variables, keys).unwrap();
        let again = finding(&mended, keys).filter(|again| again.keys == first.keys);
        assert_eq!(again, None, "{mended:?} after {value}");
    }
}

#[test]
fn a_role_refuses_what_its_own_sections_cannot_keep_and_warns_of_the_rest() {
    let settings = |variables: &[(&str, &str)]| load("", variables, vec![]).unwrap();
    let bad = settings(&[("FENCEPOST__WORKER__KILL_GRACE", "2m")]);
    let refused = lint::at_start(&bad, &["worker"]).unwrap_err();
    let told = lint::lint(&bad).remove(0);
    assert_eq!(refused.message, told.message);
    assert_eq!(refused.hints, [format!("write  {}", told.mend)]);
    assert!(lint::at_start(&bad, &["scheduler"]).unwrap().is_empty(), "it is about workers");
    let doubtful = settings(&[("FENCEPOST__RETENTION__LOGS", "365d")]);
    let warned = lint::at_start(&doubtful, &["scheduler", "retention"]).unwrap();
    assert!(warned[0].contains("retention.logs 365d is longer"), "{warned:?}");
    assert!(lint::at_start(&settings(&[]), &["worker", "scheduler", "server"]).unwrap().is_empty());
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
