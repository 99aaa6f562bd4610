//! Conditions over assets.

use fencepost_core::asset::{AssetNameError, Condition, check_name};
use std::collections::BTreeSet;

fn one(name: &str) -> Condition {
    Condition::Asset(name.into())
}

/// `a & (b | (c & d))`
fn nested() -> Condition {
    let inner = Condition::All(vec![one("c"), one("d")]);
    Condition::All(vec![one("a"), Condition::Any(vec![one("b"), inner])])
}

fn queued(names: &str) -> BTreeSet<String> {
    names.chars().map(String::from).collect()
}

/// Against the truth table of the same expression, over every set of queued assets.
#[test]
fn a_condition_holds_exactly_when_its_expression_does() {
    for bits in 0..16_u32 {
        let has = |n: u32| bits & (1 << n) != 0;
        let names: String =
            ("abcd".chars().zip(0..)).filter(|(_, n)| has(*n)).map(|(c, _)| c).collect();
        let expected = has(0) && (has(1) || (has(2) && has(3)));
        let queued = queued(&names);
        assert_eq!(nested().is_met(&queued), expected, "{names}");
        // What is missing is nothing exactly then, and with all of it the condition holds.
        let missing = nested().missing(&queued);
        assert_eq!(missing.is_none(), expected, "{names}");
        let mut with = queued.clone();
        with.extend(missing.iter().flat_map(Condition::assets).map(String::from));
        assert!(nested().is_met(&with), "{names}: {missing:?}");
        assert!(missing.iter().flat_map(Condition::assets).all(|name| !queued.contains(name)));
    }
}

#[test]
fn it_reads_as_airflow_writes_it_and_says_what_is_missing() {
    assert_eq!(nested().to_string(), "a & (b | (c & d))");
    assert_eq!(Condition::Any(vec![one("a"), one("b")]).to_string(), "a | b");
    assert_eq!(Condition::All(vec![nested()]).to_string(), "a & (b | (c & d))");
    let missing = |names: &str| nested().missing(&queued(names)).map(|left| left.to_string());
    assert_eq!(missing("").as_deref(), Some("a & (b | (c & d))"));
    assert_eq!(missing("a").as_deref(), Some("b | (c & d)"));
    assert_eq!(missing("ac").as_deref(), Some("b | d"));
    assert_eq!(missing("b").as_deref(), Some("a"));
    assert_eq!(missing("acd"), None);
    assert_eq!(nested().assets().into_iter().collect::<String>(), "abcd");
}

#[test]
fn names_are_any_text_that_people_can_read() {
    for name in ["orders", "s3://bucket/a b.parquet", "Löhne", &"x".repeat(1_500)] {
        assert_eq!(check_name(name), Ok(()), "{name}");
    }
    assert_eq!(check_name(" "), Err(AssetNameError::Empty));
    assert_eq!(check_name(&"x".repeat(1_501)), Err(AssetNameError::TooLong));
    for name in [" a", "a ", "a\nb", "a\0"] {
        assert_eq!(check_name(name), Err(AssetNameError::Odd), "{name:?}");
    }
}
