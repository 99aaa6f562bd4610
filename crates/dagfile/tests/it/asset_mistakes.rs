//! Mistakes about assets.

use super::mistakes::check;

fn schedule(value: &str, expected: &str) {
    check(&format!("schedule: {value}\ntasks: {{a: {{run: x}}}}\n"), &[expected]);
}

#[test]
fn conditions_over_assets() {
    schedule(
        "{datasets: [a]}",
        "1:12 error [unknown-key] unknown key `datasets` | did you mean `assets`?",
    );
    schedule(
        "{assets: []}",
        "1:20 error [bad-value] a condition over no assets | \
        name at least one, or write schedule: null",
    );
    schedule(
        "{assets: {and: [a, b]}}",
        "1:21 error [unknown-key] unknown key `and` | did you mean `all`?",
    );
    schedule(
        "{assets: {any: a}}",
        "1:26 error [wrong-type] an item of `any` must be a list of assets, not the text `a` | ",
    );
    schedule(
        "{assets: {all: [a], any: [b]}}",
        "1:20 error [bad-value] a condition over assets has one key, `all` or `any` | \
        write {all: [a, b]} or {any: [a, b]}",
    );
    schedule(
        "{assets: [a, ' ']}",
        "1:24 error [bad-name] an asset's name is empty | such as orders or s3://sales/orders",
    );
    schedule(
        "{assets: [a, 5]}",
        "1:24 error [wrong-type] an item of `assets` must be the name or URI of an asset, \
        not the number 5 | ",
    );
}

#[test]
fn assets_of_a_task_are_names_each_once() {
    let of = |key: &str, value: &str, found: &str| {
        check(&format!("tasks:\n  a: {{run: x, {key}: {value}}}\n"), &[found]);
    };
    of(
        "outlets",
        "[a, b, a]",
        "2:31 error [bad-value] `a` is in `outlets` twice | leave one of them out",
    );
    of(
        "inlets",
        "[[a]]",
        "2:24 error [wrong-type] an item of `inlets` must be the name or URI of an asset, not a list | ",
    );
    of(
        "outlets",
        "a",
        "2:24 error [wrong-type] `outlets` must be a list, not the text `a` | write [a]",
    );
}

/// What is about slots says nothing about events.
#[test]
fn keys_of_slots_have_no_effect_on_a_schedule_by_assets() {
    let text = "schedule: {assets: [a]}\ncatchup: false\noverlap: skip\nstart_date: 2026-01-01\ntasks: {t: {run: x}}\n";
    let says = |line: u32, key: &str| {
        format!(
            "{line}:1 warn [no-effect] `{key}` is about slots, and events of assets have none | \
             add a schedule with slots, or drop it"
        )
    };
    let (overlap, start_date) = (says(3, "overlap"), says(4, "start_date"));
    check(text, &[&overlap, &start_date]);
}
