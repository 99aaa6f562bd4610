//! The statements as the sources have them: every one is in the list of the suite, under a name of
//! its own which is that of its constant.

use fencepost_store::query::all_statements;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The names of the statements in some files and folders of `src`.
pub(crate) fn names_in(places: &[&str]) -> Vec<String> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut names = Vec::new();
    for file in places.iter().flat_map(|place| files(&src.join(place))) {
        let text = std::fs::read_to_string(&file).unwrap();
        for kind in ["Stmt::same(", "Stmt::split("] {
            names.extend(text.split(kind).skip(1).filter_map(first_literal));
        }
    }
    names
}

fn first_literal(text: &str) -> Option<String> {
    let name = text.trim_start().strip_prefix('"')?.split('"').next()?;
    Some(name.to_owned())
}

fn files(place: &Path) -> Vec<PathBuf> {
    if place.is_file() {
        return vec![place.to_owned()];
    }
    let entries = std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| files(&path))
        .filter(|path| path.extension() == Some("rs".as_ref()))
        .collect()
}

#[test]
fn every_statement_is_in_the_list_of_the_suite() {
    let narrow = names_in(&["query/listing", "query/api_token.rs", "query/idempotency.rs"]);
    let listed: Vec<&str> = all_statements().iter().map(|stmt| stmt.name).collect();
    let all = names_in(&["query"]);
    assert!(all.len() > 100, "{all:?}");
    for name in &all {
        let is_known = listed.contains(&name.as_str()) || narrow.contains(name);
        assert!(is_known, "{name} is missing in the STATEMENTS of its module");
    }
}

#[test]
fn a_name_belongs_to_one_statement() {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for name in names_in(&["query"]) {
        *counts.entry(name).or_default() += 1;
    }
    let doubled: Vec<_> = counts.iter().filter(|(_, count)| **count > 1).collect();
    assert!(doubled.is_empty(), "{doubled:?}");
    let mut listed: Vec<&str> = all_statements().iter().map(|stmt| stmt.name).collect();
    let count = listed.len();
    listed.sort_unstable();
    listed.dedup();
    assert_eq!(listed.len(), count, "a statement is listed twice");
}

/// Texts serve both databases: `$n`, no words of one of them.
#[test]
fn texts_are_of_no_single_database() {
    for stmt in all_statements() {
        let text = stmt.text.to_uppercase();
        let words = [
            "INSERT OR ",
            "REPLACE INTO",
            "ROWID",
            "AUTOINCREMENT",
            "IFNULL(",
            "DATETIME(",
            "STRFTIME",
            "GLOB ",
            "PRAGMA",
            "?",
            "::",
            "NOW()",
            "FOR UPDATE",
            "ILIKE",
        ];
        for word in words {
            assert!(!text.contains(word), "{}: {word} is of one database only", stmt.name);
        }
    }
}
