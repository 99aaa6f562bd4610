//! Declared outputs of a task and their types.

use super::fields::Fields;
use super::identifiers::Identifiers;
use crate::diagnostic::Findings;
use crate::suggest::did_you_mean;
use fencepost_core::dag::OutputType;

const TYPES: [OutputType; 6] = [
    OutputType::String,
    OutputType::Integer,
    OutputType::Number,
    OutputType::Boolean,
    OutputType::Array,
    OutputType::Object,
];

/// The types of outputs with their names in the file.
pub(crate) fn output_types() -> impl Iterator<Item = (&'static str, OutputType)> {
    TYPES.into_iter().map(|of| (of.as_str(), of))
}

/// The declared outputs, in the order of the file.
pub(super) fn read(fields: &Fields<'_>, findings: &mut Findings) -> Vec<(String, OutputType)> {
    let mut outputs = Vec::new();
    let mut names = Identifiers::of("an output");
    for entry in fields.map("outputs", findings).unwrap_or_default() {
        if !names.accept(entry, findings) {
            continue;
        }
        let word = entry.value.as_written().unwrap_or_default();
        if let Some((_, output_type)) = output_types().find(|(name, _)| *name == word) {
            outputs.push((entry.key.clone(), output_type));
            continue;
        }
        let types = || output_types().map(|(name, _)| name);
        let near = did_you_mean(word, types());
        let all = || format!("one of {}", types().collect::<Vec<_>>().join(", "));
        let hint = if near.is_empty() { all() } else { near };
        let message = format!("an output's type cannot be {}", entry.value.description());
        findings.error(entry.value.place, "bad-value", message, hint);
    }
    outputs
}
