//! Connections: a URI and its fields say the same.

use fencepost_core::connection::{Connection, ConnectionError, is_sensitive};
use proptest::prelude::*;
use serde_json::json;

#[test]
fn a_uri_is_read_as_airflow_reads_it() {
    let read =
        Connection::from_uri("postgres://ann:p%40ss%2Fw@db.example:5432/sales?sslmode=require");
    let read = read.unwrap();
    assert_eq!(read.conn_type, "postgres");
    assert_eq!(read.login.as_deref(), Some("ann"));
    assert_eq!(read.password.as_deref(), Some("p@ss/w"));
    assert_eq!((read.host.as_deref(), read.port), (Some("db.example"), Some(5432)));
    assert_eq!(read.schema.as_deref(), Some("sales"));
    assert_eq!(read.extra["sslmode"], "require");
    assert_eq!(Connection::from_uri(&read.to_uri()), Ok(read));
    let v6 = Connection::from_uri("http://[::1]:8080/x").unwrap();
    assert_eq!((v6.host.as_deref(), v6.port), (Some("[::1]"), Some(8080)));
    assert_eq!(v6.to_uri(), "http://[::1]:8080/x");
    let nested = json!({"conn_type": "aws", "extra": "{\"region\": \"x\", \"n\": [1]}"});
    let nested = Connection::from_json(&nested).unwrap();
    assert_eq!(Connection::from_uri(&nested.to_uri()), Ok(nested));
}

#[test]
fn what_is_no_connection_is_refused_by_its_reason() {
    use ConnectionError as E;
    for (text, why) in [
        ("db.example", E::NoType),
        ("://x", E::NoType),
        ("a://h:99999", E::Port),
        ("a://h:x", E::Port),
        ("a://%zz@h", E::Escape),
        ("a://%ff@h", E::Escape),
        ("a://h/?__extra__=%5B1%5D", E::Extra),
    ] {
        assert_eq!(Connection::from_uri(text), Err(why), "{text}");
    }
    for value in [json!(1), json!({"conn_type": "a", "prot": 1}), json!({"conn_type": 3})] {
        assert_eq!(Connection::from_json(&value), Err(E::Field), "{value}");
    }
    assert_eq!(Connection::from_json(&json!({"host": "h"})), Err(E::NoType));
}

#[test]
fn nothing_secret_is_in_what_is_shown() {
    let one = Connection::from_uri("http://u:hunter22@h/?api_key=abcdefg&region=north").unwrap();
    let shown = format!("{} {one:?}", one.masked());
    assert!(!shown.contains("hunter22") && !shown.contains("abcdefg"), "{shown}");
    let secrets = one.secrets();
    assert!(secrets.iter().any(|s| s == "hunter22") && secrets.iter().any(|s| s == "abcdefg"));
    assert!(!secrets.iter().any(|s| s == "north"));
    assert!(is_sensitive("My_API_KEY") && !is_sensitive("region"));
}

proptest! {
    #[test]
    fn any_fields_survive_the_way_through_a_uri(
        login in proptest::option::of("\\PC{1,12}"), password in proptest::option::of("\\PC{1,12}"),
        schema in proptest::option::of("\\PC{1,12}"), name in "\\PC{1,8}", value in "\\PC{0,12}",
        port in proptest::option::of(any::<u16>()), nested in any::<bool>(),
    ) {
        let extra = if nested { json!({name: [value]}) } else { json!({name: value}) };
        let connection = Connection {
            conn_type: "google_cloud".into(), host: Some("h.example".into()), port, schema, login,
            password, extra: extra.as_object().cloned().unwrap(),
        };
        prop_assert_eq!(Connection::from_uri(&connection.to_uri()), Ok(connection.clone()));
        prop_assert_eq!(Connection::from_json(&connection.to_json()), Ok(connection));
    }

    #[test]
    fn no_text_panics(text in "\\PC*") {
        let _ = Connection::from_uri(&text);
    }
}
