//! I22: whatever a task writes into its output file, it is taken or refused with its place, and
//! what is taken can be stored.

use fencepost_core::dag::OutputType;
use fencepost_core::outputs::{OUTPUT_LIMIT, OutputError, parse};
use proptest::prelude::*;
use serde_json::Value;

proptest! {
    #[test]
    fn no_output_file_panics_and_what_is_taken_can_be_stored(
        bytes in prop::collection::vec(
            prop_oneof![any::<u8>(), prop::sample::select(b"=<\n\r\0 aE\xff".to_vec())], 0..200),
    ) {
        if let Ok(found) = parse(&bytes, &[]) {
            let mut names: Vec<&String> = found.iter().map(|(name, _)| name).collect();
            names.sort_unstable();
            names.dedup();
            prop_assert_eq!(names.len(), found.len(), "one value a name");
            for (name, value) in &found {
                prop_assert!(!name.is_empty() && name.is_ascii());
                prop_assert!(value.is_string() && !value.to_string().contains('\0'));
            }
        }
    }

    /// A block gives back whatever lines it was given.
    #[test]
    fn a_block_keeps_its_lines(lines in prop::collection::vec("[a-zA-Z0-9=<> ]{0,12}", 0..6)) {
        prop_assume!(lines.iter().all(|line| line != "END"));
        let body: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        let file = format!("text<<END\n{body}END\n");
        let found = parse(file.as_bytes(), &[]).unwrap();
        prop_assert_eq!(&found, &[("text".to_owned(), Value::String(lines.join("\n")))]);
    }
}

#[test]
fn the_size_of_the_file_is_bounded() {
    let line = |size: usize| format!("a={}", "x".repeat(size - 2)).into_bytes();
    assert!(parse(&line(OUTPUT_LIMIT), &[]).is_ok());
    assert_eq!(parse(&line(OUTPUT_LIMIT + 1), &[]), Err(OutputError::TooLarge));
}

#[test]
fn declared_types_are_checked() {
    let value = |text: &str, of: OutputType| {
        parse(format!("v={text}").as_bytes(), &[("v".to_owned(), of)]).is_ok()
    };
    let rows = [
        (OutputType::String, "anything", None),
        (OutputType::Integer, " 12 ", Some("12.5")),
        (OutputType::Number, "1e3", Some("NaN")),
        (OutputType::Boolean, "true", Some("yes")),
        (OutputType::Array, "[1, \"a\"]", Some("{}")),
        (OutputType::Object, "{\"a\": null}", Some("[]")),
    ];
    for (of, fits, misfit) in rows {
        assert!(value(fits, of), "{fits} is {}", of.as_str());
        assert!(misfit.is_none_or(|text| !value(text, of)), "{misfit:?} is no {}", of.as_str());
        assert_eq!(OutputType::parse(of.as_str()), Some(of));
    }
}
