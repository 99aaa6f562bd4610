//! `/metrics`, read by a small parser of its own: what Prometheus would refuse is found here.

use crate::fixture::{Fixture, Reply, SALES};
use fencepost_core::time::Span;
use std::collections::{BTreeMap, BTreeSet};

/// Families by name with their kind, and series with their value as it is written.
struct Scrape {
    kinds: BTreeMap<String, String>,
    series: BTreeMap<String, String>,
}

fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    let first = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// `{a="b",c="d"}`: each label once, values in quotes with their escapes.
fn check_labels(text: &str, line: &str) {
    let (mut rest, mut names) = (text, BTreeSet::new());
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("{line}"));
        assert!(is_name(name) && names.insert(name), "{line}");
        let mut escaped = false;
        let end = after.find(|c| {
            let ends = c == '"' && !escaped;
            assert!(!escaped || ['\\', '"', 'n'].contains(&c), "{line}");
            escaped = c == '\\' && !escaped;
            ends
        });
        rest = &after[end.unwrap_or_else(|| panic!("{line}")) + 1..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
}

fn parse(text: &str) -> Scrape {
    assert!(text.ends_with('\n'), "the last line ends too");
    let (mut helps, mut kinds) = (BTreeSet::new(), BTreeMap::new());
    let mut series: BTreeMap<String, String> = BTreeMap::new();
    let mut last = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap_or_else(|| panic!("{line}"));
            assert!(!help.is_empty() && helps.insert(name.to_owned()), "{line}");
            name.clone_into(&mut last);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or_else(|| panic!("{line}"));
            assert!(name == last && ["counter", "gauge"].contains(&kind), "{line}");
            assert!(kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "{line}");
        } else {
            let (what, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
            let number: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
            let (name, labels) = what.split_once('{').unwrap_or((what, "}"));
            assert!(is_name(name) && name == last, "samples stand below their family: {line}");
            assert!(
                name.starts_with("fencepost_") && number.is_finite() && number >= 0.0,
                "{line}"
            );
            assert_eq!(name.ends_with("_total"), kinds[name] == "counter", "{line}");
            check_labels(labels.strip_suffix('}').unwrap_or_else(|| panic!("{line}")), line);
            assert!(series.insert(what.to_owned(), value.to_owned()).is_none(), "twice: {line}");
        }
    }
    assert_eq!(helps, kinds.keys().cloned().collect(), "each family has both");
    Scrape { kinds, series }
}

async fn scrape_as(fixture: &Fixture, token: &str) -> Reply {
    let bearer = format!("Bearer {token}");
    fixture.call("GET", "/metrics", &[("authorization", &bearer)], "").await
}

async fn scrape(fixture: &Fixture) -> Scrape {
    parse(&scrape_as(fixture, &fixture.token).await.expect(200).text)
}

#[tokio::test]
async fn what_waits_runs_and_ends_is_counted_in_a_valid_document() {
    let fixture = Fixture::new().await;
    fixture.load(&[("sales.yaml", SALES)]).await;
    let before = scrape(&fixture).await;
    assert_eq!(before.series["fencepost_attempts{state=\"queued\"}"], "0");
    assert_eq!(before.series["fencepost_store_up"], "1");
    let worker = fixture.worker().await;
    fixture.post("/dags/sales/runs", serde_json::json!({})).await.expect(202);
    fixture.turn().await;
    fixture.pass_time(Span::from_secs(90));
    let queued = scrape(&fixture).await;
    assert_eq!(queued.series["fencepost_attempts{state=\"queued\"}"], "1");
    assert_eq!(queued.series["fencepost_queued_attempts{queue=\"default\"}"], "1");
    let age = &queued.series["fencepost_oldest_queued_age_seconds{queue=\"default\"}"];
    let age: f64 = age.parse().unwrap();
    assert!((90.0..91.0).contains(&age), "{age}");
    assert_eq!(queued.series["fencepost_pool_slots_used{pool=\"default_pool\"}"], "1");
    assert_eq!(queued.series["fencepost_runs{state=\"running\"}"], "1");
    assert_eq!(queued.series["fencepost_jobs{kind=\"worker\",state=\"running\"}"], "1");
    let changes = "fencepost_task_state_changes_total{state=\"queued\"}";
    assert_eq!((before.series[changes].as_str(), queued.series[changes].as_str()), ("0", "1"));
    assert_eq!(worker.start_all().await.len(), 1);
    fixture.pass_time(Span::from_secs(10));
    let running = scrape(&fixture).await;
    assert_eq!(running.series["fencepost_attempts{state=\"queued\"}"], "0");
    assert_eq!(running.series["fencepost_attempts{state=\"running\"}"], "1");
    assert!(running.kinds.len() > 40, "{:?}", running.kinds);
}

#[tokio::test]
async fn a_reading_is_kept_for_a_moment_and_a_store_that_is_away_takes_only_its_gauges() {
    let fixture = Fixture::new().await;
    scrape(&fixture).await;
    fixture.points.fail("metrics:begin", 1);
    // Nobody asks the store again within the moment.
    assert_eq!(scrape(&fixture).await.series["fencepost_store_up"], "1");
    fixture.pass_time(Span::from_secs(5));
    let away = scrape(&fixture).await;
    assert_eq!(away.series["fencepost_store_up"], "0");
    assert!(!away.kinds.contains_key("fencepost_attempts"));
    assert_ne!(away.series["fencepost_store_errors_total{kind=\"unavailable\"}"], "0");
    let back = scrape(&fixture).await;
    assert_eq!(back.series["fencepost_store_up"], "1");
}

#[tokio::test]
async fn they_are_for_viewers() {
    let fixture = Fixture::new().await;
    fixture.call("GET", "/metrics", &[], "").await.expect(401);
    fixture.call("GET", "/api/v1/metrics", &[], "").await.expect(401);
    scrape_as(&fixture, "wrong").await.expect(401);
    for (role, status) in [("viewer", 200), ("worker", 403)] {
        let made = fixture.post("/tokens", serde_json::json!({"role": role})).await.expect(201);
        scrape_as(&fixture, made.json["token"].as_str().unwrap()).await.expect(status);
    }
    let bearer = format!("Bearer {}", fixture.token);
    let headers = [("authorization", bearer.as_str())];
    let answer = fixture.call("GET", "/api/v1/metrics", &headers, "").await.expect(200);
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    fixture.call("POST", "/metrics", &headers, "").await.expect(405);
}

/// Rules about what does not exist never fire.
#[tokio::test]
async fn every_metric_of_the_alert_rules_is_in_a_scrape() {
    let rules = include_str!("../../../../docs/alerts.yml");
    let fixture = Fixture::new().await;
    let scrape = scrape(&fixture).await;
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (mut alerts, mut checked) = (BTreeSet::new(), 0);
    for rule in rules.split("- alert: ").skip(1) {
        let name = rule.lines().next().unwrap();
        assert!(alerts.insert(name) && name.starts_with("Fencepost"), "{name}");
        for key in ["expr: ", "labels: {severity: ", "summary: ", "action: "] {
            assert_eq!(rule.matches(key).count(), 1, "{name}: {key}");
        }
        let expr = rule.lines().find_map(|line| line.trim().strip_prefix("expr: ")).unwrap();
        let words = expr.split(|c| !is_word(c)).filter(|word| word.starts_with("fencepost_"));
        for word in words {
            assert!(scrape.kinds.contains_key(word), "{name}: there is no {word}");
            checked += 1;
        }
        for (open, close) in [('(', ')'), ('{', '}'), ('[', ']')] {
            let count = |c| expr.matches(c).count();
            assert_eq!(count(open), count(close), "{name}: {expr}");
        }
        // A selector that names a value which does not exist never matches either.
        for selector in expr.split("=\"").skip(1) {
            let value = selector.split('"').next().unwrap();
            assert!(scrape.series.keys().any(|series| series.contains(&format!("=\"{value}\""))));
        }
    }
    assert!(alerts.len() >= 12 && checked >= alerts.len(), "{alerts:?}");
}
