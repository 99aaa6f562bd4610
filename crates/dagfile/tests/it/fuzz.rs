//! Arbitrary bytes and mutated files: never a panic, always an answer within the budgets.

use fencepost_dagfile::template::{Context, evaluate, render};
use fencepost_dagfile::{content_hash, from_ir, ir, parse};
use proptest::prelude::*;

const SEEDS: [&str; 3] = [
    include_str!("long_example.yaml"),
    "tasks: {a: &a {run: 'echo {{ ds | sh }}', retries: 1, expand: {x: [1, 2]}}, b: {<<: *a, run: y, depends_on: [a]}}",
    "params:\n  p: {type: array, items: {type: string}, default: [x]}\ntasks:\n  a:\n    run: |\n      {% for x in params.p %}{{ x }}{% endfor %}\n    when: ds > '2026'\n    outputs: {o: string}\n",
];

/// What holds of every answer.
fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    let parsed = parse(bytes, "fuzz.yaml");
    let lines = bytes.iter().filter(|b| **b == b'\n' || **b == b'\r').count() + 2;
    prop_assert_eq!(parsed.dag.is_some(), parsed.error_count() == 0);
    prop_assert!(parsed.diagnostics.len() <= 201);
    for diagnostic in &parsed.diagnostics {
        prop_assert!(diagnostic.line >= 1 && diagnostic.column >= 1);
        prop_assert!(diagnostic.line as usize <= lines, "{diagnostic:?}");
        prop_assert!(!diagnostic.message.contains(char::is_control));
        prop_assert!(diagnostic.message.len() < 2_000 && diagnostic.hint.len() < 2_000);
    }
    if let Some(dag) = parsed.dag {
        let back = from_ir(&ir(&dag));
        prop_assert_eq!(back.as_ref().map(content_hash), Ok(content_hash(&dag)));
        prop_assert_eq!(back, Ok(dag));
    }
    Ok(())
}

/// One change: a byte replaced, a piece cut out, doubled, or a word put in.
#[derive(Debug, Clone)]
struct Change {
    at: usize,
    length: usize,
    kind: u8,
    byte: u8,
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = (0_usize..8_000, 0_usize..60, 0_u8..5, any::<u8>())
        .prop_map(|(at, length, kind, byte)| Change { at, length, kind, byte });
    prop::collection::vec(change, 1..6)
}

const WORDS: [&str; 16] = [
    "*a", "&a ", "{{ ", " }}", "[", "}", "<<: ", "null", "-1", "!!int ", "\t", "'", "\"", "|\n",
    "? ", "---\n",
];

fn mutate(seed: &str, changes: &[Change]) -> Vec<u8> {
    let mut bytes = seed.as_bytes().to_vec();
    for change in changes {
        let at = change.at % (bytes.len() + 1);
        let end = (at + change.length).min(bytes.len());
        let piece = bytes[at..end].to_vec();
        match change.kind {
            0 if at < bytes.len() => bytes[at] = change.byte,
            1 => drop(bytes.drain(at..end)),
            2 => drop(bytes.splice(at..at, piece)),
            3 => {
                let word = WORDS[usize::from(change.byte) % WORDS.len()];
                drop(bytes.splice(at..at, word.bytes()));
            }
            _ => drop(bytes.splice(at..end, piece.iter().rev().copied())),
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check(&bytes)?;
    }

    #[test]
    fn arbitrary_text_of_yaml_signs(text in "[-:{}\\[\\]&*!|>'\"%@#?, \n\tatrunsk01é{}%]{0,200}") {
        check(text.as_bytes())?;
    }

    #[test]
    fn mutated_files(seed in 0_usize..3, changes in changes()) {
        check(&mutate(SEEDS[seed], &changes))?;
    }

    #[test]
    fn arbitrary_templates(template in "(\\{\\{|\\}\\}|\\{%|%\\}| |ds|params|for x in|endfor|if|endif|\\.|\\||sh|\\(|\\)|'|\"|1|\\+|\\*|-|[a-z]|\n){0,30}") {
        let context = Context::default();
        let _ = render("run", &template, &context);
        let _ = render("env.A", &template, &context);
        let _ = evaluate(&template, &context);
        let quoted = serde_json::Value::String(template).to_string();
        check(format!("tasks: {{t: {{run: {quoted}, when: {quoted}}}}}").as_bytes())?;
    }
}
