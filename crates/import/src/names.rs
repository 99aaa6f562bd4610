//! Names for DAGs and tasks out of what other tools allow.

use std::collections::BTreeSet;

/// Names of one kind, each given once.
#[derive(Debug, Default)]
pub(crate) struct Names {
    taken: BTreeSet<String>,
}

/// Longest name, so that suffixes and the prefixes of groups have room.
const LENGTH_MAX: usize = 80;

impl Names {
    /// A name like `wish` that nobody has yet; `otherwise` where nothing of the wish is left.
    pub(crate) fn give(&mut self, wish: &str, otherwise: &str) -> String {
        let clean = clean(wish).unwrap_or_else(|| otherwise.to_owned());
        let mut name = clean.clone();
        let mut number = 2_u32;
        while !self.taken.insert(name.clone()) {
            name = format!("{clean}_{number}");
            number += 1;
        }
        name
    }
}

/// A text with everything replaced by `_` that a name cannot have.
pub(crate) fn clean(text: &str) -> Option<String> {
    let letter = |c: char| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' };
    let replaced: String = text.trim().chars().map(letter).take(LENGTH_MAX).collect();
    let name = replaced.trim_start_matches(['.', '-', '_']).trim_end_matches(['_', '.', '-']);
    if name.is_empty() { None } else { Some(name.to_owned()) }
}

/// Whether a text can be the name of a variable.
pub(crate) fn is_variable(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && text.len() <= 200
}
