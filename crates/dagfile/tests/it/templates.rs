//! Rendering: Airflow's names, strictness, bounds, one pass.

use fencepost_core::connection::Connection;
use fencepost_core::time::Timestamp;
use fencepost_dagfile::template::{
    AttemptFacts, Context, Kept, OUTPUT_MAX, ShortDates, evaluate, render,
};
use serde_json::{Map, Value, json};

fn map(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

fn kept() -> Kept {
    let uri = "postgres://ann:pass%20word@db.example:5432/sales?sslmode=require";
    let variables = [("region", "emea"), ("cfg", r#"{"a": [1, 2]}"#)];
    Kept {
        variables: variables.map(|(name, text)| (name.to_owned(), text.to_owned())).into(),
        connections: [("wh-1".to_owned(), Connection::from_uri(uri).unwrap())].into(),
        missing: Vec::new(),
    }
}

fn context() -> Context {
    let at = |text: &str| Some(text.parse::<Timestamp>().unwrap());
    Context {
        kept: kept(),
        dag_id: "sales".into(),
        task_id: "load".into(),
        run_id: "scheduled__2026-09-21T23:30:00Z".into(),
        run_type: "scheduled".into(),
        timezone: "Europe/Berlin".into(),
        map_index: 1,
        logical_date: at("2026-09-21T23:30:00Z"),
        data_interval_start: at("2026-09-20T23:30:00Z"),
        data_interval_end: at("2026-09-21T23:30:00Z"),
        run_started_at: at("2026-09-21T23:30:01.5Z"),
        params: map(json!({"regions": ["emea", "it's"], "n": 3, "full": false, "t": "{{ ds }}"})),
        conf: map(json!({"k": {"deep": 1}})),
        outputs: [(
            "extract".to_owned(),
            map(json!({"rows": 7, "path": "a b", "return_value": 1})),
        )]
        .into(),
        asset_events: map(json!({"s3://x": [{"extra": {"rows": 4}}, {"extra": {"rows": 5}}]})),
        mapped: vec![("region".into(), json!("emea"))],
        happened: None,
        attempt: Some(AttemptFacts {
            attempt_id: "id".into(),
            fencing_token: "549755813888".into(),
            idempotency_key: "key".into(),
            try_number: 2,
            max_tries: 4,
            attempt_number: 3,
            prev_outcome: "failed".into(),
        }),
    }
}

fn check(template: &str, expected: &str) {
    assert_eq!(render("run", template, &context()).as_deref(), Ok(expected), "{template}");
}

fn error(template: &str, context: &Context) -> String {
    render("run", template, context).unwrap_err().to_string()
}

#[test]
fn the_names_of_airflow() {
    for (template, expected) in [
        ("{{ ds }} {{ ds_nodash }}", "2026-09-22 20260922"),
        ("{{ triggering_asset_events['s3://x'][1].extra.rows }}", "5"),
        (
            "{% for name, all in triggering_asset_events | items %}{{ name }} {{ all | length }}{% endfor %}",
            "s3://x 2",
        ),
        ("{{ ts }}", "2026-09-22T01:30:00+02:00"),
        ("{{ ts_nodash }} {{ ts_nodash_with_tz }}", "20260922T013000 20260922T013000+0200"),
        ("{{ logical_date }}", "2026-09-22T01:30:00+02:00"),
        (
            "{{ data_interval_start | ds }}..{{ data_interval_end | ts_nodash }}",
            "2026-09-21..20260922T013000",
        ),
        ("{{ start_date }}", "2026-09-22T01:30:01.500000+02:00"),
        (
            "{{ dag.dag_id }}/{{ task.task_id }}/{{ run_id }}",
            "sales/load/scheduled__2026-09-21T23:30:00Z",
        ),
        ("{{ dag_run.run_type }} {{ dag_run.conf.k.deep }} {{ conf.k.deep }}", "scheduled 1 1"),
        (
            "{{ ti.try_number }}/{{ ti.max_tries }} {{ ti.attempt_number }} {{ ti.prev_outcome }}",
            "2/4 3 failed",
        ),
        ("{{ ti.fencing_token }} {{ task_instance.idempotency_key }}", "549755813888 key"),
        ("{{ ti.map_index }} {{ map_index }} {{ region }}", "1 1 emea"),
        ("{{ outputs.extract.rows }}", "7"),
        ("{{ ti.xcom_pull(task_ids='extract', key='path') }}", "a b"),
        ("{{ ti.xcom_pull('extract') }}", "1"),
        ("{{ params.n + 1 }} {{ params.regions | join(',') }}", "4 emea,it's"),
        ("{{ task_instance_key_str }}", "sales__load__20260922"),
        ("{{ logical_date.strftime('%d.%m.%Y') }} {{ logical_date.year }}", "22.09.2026 2026"),
        ("{{ logical_date.add(days=1, hours=-1) | ts }}", "2026-09-23T00:30:00+02:00"),
        ("{{ logical_date.subtract(months=1).in_timezone('UTC') }}", "2026-08-21T23:30:00+00:00"),
        (
            "{{ macros.ds_add(ds, 9) }} {{ macros.ds_add('2026-03-01', -1) }}",
            "2026-10-01 2026-02-28",
        ),
        ("{{ macros.ds_format(ds, '%Y-%m-%d', '%d/%m/%y') }}", "22/09/26"),
        ("{{ macros.datetime(2026, 1, 31, 5).isoformat() }}", "2026-01-31T05:00:00+00:00"),
        ("{{ '--full' if params.full else '' }}|", "|"),
        ("{% for r in params.regions %}{{ r | sh }} {% endfor %}", r"emea 'it'\''s' "),
        ("{{ params.regions | sh }} {{ outputs.extract.path | sh }}", r"emea 'it'\''s' 'a b'"),
        (
            "{{ params | tojson }}",
            r#"{"full": false, "n": 3, "regions": ["emea", "it\u0027s"], "t": "{{ ds }}"}"#,
        ),
    ] {
        check(template, expected);
    }
}

#[test]
fn plain_text_and_shell_text_stay_what_they_are() {
    for text in ["", "a\n", "${#x} ${x%%.*} {# not a comment", "é\t'\"\\", "a\n\n\n"] {
        check(text, text);
        check(&format!("{text}{{{{ '' }}}}"), text);
    }
    check("<{{ outputs.extract.path }}>\n", "<a b>\n");
    assert_eq!(render("env.A", "x{# gone #}", &context()).as_deref(), Ok("x"));
}

#[test]
fn what_a_value_holds_is_not_rendered_again() {
    check("{{ params.t }}", "{{ ds }}");
}

#[test]
fn an_undefined_name_is_an_error_with_its_line() {
    let found = error("a\n{{ nope }}", &context());
    assert_eq!(found, "`run` line 2: `nope` is undefined");
    assert!(error("{{ params.nope }}", &context()).contains("params.nope"));
    for template in [
        "{{ outputs.extract.x }}",
        "{{ outputs.extract.x | sh }}",
        "{{ outputs.extract.x | upper }}",
        "{{ outputs.extract.x + 1 }}",
    ] {
        let found = error(template, &context());
        assert!(found.contains("`outputs.extract.x`"), "{template}: {found}");
    }
    assert!(error("{{ ti.xcom_pull('x') }}", &context()).contains("line 1"));
    assert!(error("{{ ds | nofilter }}", &context()).contains("nofilter"));
    assert!(error("{{ 1 / 0 }}", &context()).contains("line 1"));
    check("{{ params.nope | default('x') }}", "x");
}

#[test]
fn a_run_without_a_logical_date_says_why() {
    let without = Context { logical_date: None, ..context() };
    for name in ["ds", "ts_nodash", "logical_date"] {
        let found = error(&format!("{{{{ {name} }}}}"), &without);
        let reason = "this run has no logical date, so neither have ds, ts and their like";
        assert_eq!(found, format!("`run` line 1: `{name}` is undefined; {reason}"));
    }
    assert_eq!(render("run", "{{ run_id }}", &without).unwrap(), without.run_id);
}

#[test]
fn conditions() {
    let holds = |text: &str| evaluate(text, &context());
    assert_eq!(holds("{{ outputs.extract.rows > 0 }}"), Ok(true));
    assert_eq!(holds("outputs.extract.rows > 7"), Ok(false));
    assert_eq!(holds("{{- params.full -}}"), Ok(false));
    assert_eq!(holds("'emea' in params.regions and not params.full"), Ok(true));
    assert_eq!(holds(" {{ params.regions }} "), Ok(true));
    let error = holds("nope").unwrap_err();
    assert_eq!((error.field.as_str(), error.line), ("when", 1));
    assert!(holds("").is_err() && holds("{{ }}").is_err() && holds("a b").is_err());
}

#[test]
fn a_template_can_neither_run_for_ever_nor_grow_without_end() {
    for template in [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% for a in range(99999) %}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx{% endfor %}",
        "{{ 'x' * 2000000 }}",
        "{{ 'x' * 99999999999 }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% set x = range(50000) | list %}{{ x * 50000 }}",
    ] {
        assert!(render("run", template, &context()).is_err(), "{template}");
    }
    let large = "x".repeat(OUTPUT_MAX - 2);
    assert!(render("run", &format!("{large}{{{{ 12 }}}}"), &context()).is_ok());
    assert!(render("run", &format!("{large}{{{{ 123 }}}}"), &context()).is_err());
    for long in ["1".to_owned() + &"+1".repeat(50_000), "a".to_owned() + &".b".repeat(50_000)] {
        assert!(error(&format!("{{{{ {long} }}}}"), &context()).contains("more than"));
        assert!(evaluate(&long, &context()).is_err());
    }
}

#[test]
fn short_dates_for_the_environment() {
    let at = "2026-01-31T23:30:00Z".parse().unwrap();
    let utc = ShortDates::of(at, "UTC");
    assert_eq!((utc.ds.as_str(), utc.ts.as_str()), ("2026-01-31", "2026-01-31T23:30:00+00:00"));
    let berlin = ShortDates::of(at, "Europe/Berlin");
    assert_eq!(
        (berlin.ds_nodash.as_str(), berlin.ts_nodash.as_str()),
        ("20260201", "20260201T003000")
    );
    assert_eq!(ShortDates::of(at, "nowhere"), utc);
}

#[test]
fn what_is_kept_has_airflows_forms() {
    for (template, expected) in [
        ("{{ var.value.region }} {{ var.json.cfg.a[1] }}", "emea 2"),
        ("{{ var.value.gone | default('none') }}", "none"),
        ("{{ conn['wh-1'].host }}:{{ conn['wh-1'].port }}", "db.example:5432"),
        ("{{ conn['wh-1'].login }} {{ conn['wh-1'].password }}", "ann pass word"),
        ("{{ conn['wh-1'].extra_dejson.sslmode }}", "require"),
        (
            "{{ conn['wh-1'].get_uri() }}",
            "postgres://ann:pass%20word@db.example:5432/sales?sslmode=require",
        ),
    ] {
        check(template, expected);
    }
    let missing = vec!["there is no variable `gone`".into()];
    let without = Context { kept: Kept { missing, ..kept() }, ..context() };
    let why = error("{{ var.value.gone }}", &without);
    assert!(why.contains("there is no variable `gone`"), "{why}");
    // What is no JSON has no JSON form.
    error("{{ var.json.region }}", &context());
    assert_eq!(format!("{:?}", kept()), r#"{"cfg", "region", "wh-1"}"#);
}
