//! Mistakes of `http`.

use super::mistakes::check;

fn http(value: &str, expected: &[&str]) {
    check(&format!("tasks:\n  a:\n    http: {value}\n"), expected);
}

#[test]
fn requests() {
    http("https://a.example/{{ ds }}", &[]);
    http(
        "{url: 'https://a.example', json: {n: '{{ params.n }}'}}",
        &["3:52 error [unknown-param] there is no param `n` | declare it under `params`"],
    );
    http(
        "{url: 'https://a.example', metod: GET}",
        &["3:38 error [unknown-key] unknown key `metod` | did you mean `method`?"],
    );
    http(
        "{url: 'ftp://a.example'}",
        &[
            "3:17 error [bad-http] `http`: `url` must be a URL that begins with http:// or https:// | ",
        ],
    );
    http(
        "{method: GET}",
        &["3:11 error [bad-http] `http`: it is a URL, or a mapping with a `url` | \
         write http: https://host/path, or {url: ..., json: {...}}"],
    );
}
