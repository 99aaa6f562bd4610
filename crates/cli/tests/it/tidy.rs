//! The house: what ARCHITECTURE.md says about crates is what the manifests say, and no file has
//! grown out of its room.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

const FILE_MAX: usize = 500;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Crates of this workspace and what each may import, as ARCHITECTURE.md has it.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let folder = cells[1].trim_matches('`').to_owned();
        let may = cells[3].split(',').map(str::trim).filter(|name| !["", "none"].contains(name));
        (folder, may.map(ToOwned::to_owned).collect())
    };
    rows.map(row).filter(|(folder, _)| folder.starts_with("crates/") || folder == "bench").collect()
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn crates_import_what_the_architecture_allows() {
    let documented = documented();
    let mut seen = BTreeSet::new();
    for package in metadata()["packages"].as_array().unwrap() {
        let manifest = package["manifest_path"].as_str().unwrap();
        let folder = Path::new(manifest).parent().unwrap().strip_prefix(root()).unwrap();
        let folder = folder.to_str().unwrap().to_owned();
        let allowed = documented
            .get(&folder)
            .unwrap_or_else(|| panic!("{folder} is not in the table of ARCHITECTURE.md"));
        let imports = package["dependencies"].as_array().unwrap().iter().filter_map(|dependency| {
            let normal = dependency["kind"].is_null();
            let name = dependency["name"].as_str()?.strip_prefix("fencepost-")?;
            normal.then(|| name.to_owned())
        });
        let all = allowed.contains("all");
        for import in imports {
            assert!(all || allowed.contains(&import), "{folder} imports {import}");
            assert_ne!(import, "cli", "{folder} imports the binary");
        }
        seen.insert(folder);
    }
    let named: BTreeSet<String> = documented.into_keys().collect();
    assert_eq!(named, seen, "rooms that do not exist, or are not documented");
}

#[test]
fn every_crate_keeps_the_lints_of_the_workspace() {
    for folder in documented().keys() {
        let text = std::fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
        assert!(text.contains("[lints]\nworkspace = true"), "{folder}");
    }
}

fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = vec![root().join("crates"), root().join("bench")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn files_fit_their_rooms_and_have_names_that_say_something() {
    for path in sources() {
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text.lines().count();
        assert!(lines <= FILE_MAX, "{}: {lines} lines", path.display());
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        for empty in ["util", "utils", "helpers", "common", "misc", "imp"] {
            assert_ne!(name, empty, "{}", path.display());
        }
        // Put together here so that this file does not find itself.
        for unfinished in [concat!("to", "do!("), concat!("unimpl", "emented!(")] {
            assert!(!text.contains(unfinished), "{}: {unfinished}", path.display());
        }
    }
}

/// SQL belongs to the store alone.
#[test]
fn only_the_store_speaks_sql() {
    for path in sources() {
        let place = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        // The benches ask a database what it does without us, and what it counted; the torture harness
        // must not ask the product what became of it.
        let own = ["crates/store", "crates/testing", "crates/torture", "bench/"];
        let may = own.iter().any(|own| place.starts_with(own));
        if may || place.contains("/tests/") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for word in [concat!("SELECT", " "), concat!("INSERT", " INTO"), concat!("DELETE", " FROM")]
        {
            assert!(!text.contains(word), "{place} has `{word}`");
        }
    }
}

/// The text of all sources.
fn all_sources() -> String {
    sources().iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// The words between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Whether there is a test of that name: a function, or the first argument of a macro that makes one.
fn assert_is_test(all: &str, name: &str) {
    let is_there =
        all.contains(&format!("fn {name}(")) || all.contains(&format!("!(\n    {name},\n"));
    assert!(is_there, "there is no test `{name}`");
}

/// The tests that docs/invariants.md names are there.
#[test]
fn every_invariant_is_guarded_by_the_tests_that_are_named() {
    let text = std::fs::read_to_string(root().join("docs/invariants.md")).unwrap();
    let all = all_sources();
    let names: Vec<&str> = quoted(&text).collect();
    assert!(names.len() > 40, "{} tests are named", names.len());
    for name in names {
        assert_is_test(&all, name);
    }
}

/// Each case of the lists in docs/cases.md stands there once, and the tests that it names are there. Without
/// tests are only what cannot be written and what belongs to a later part.
#[test]
fn every_case_is_shown_by_tests_that_exist() {
    let text = std::fs::read_to_string(root().join("docs/cases.md")).unwrap();
    let all = all_sources();
    let lists = text.split("\n\n").filter_map(|paragraph| paragraph.strip_prefix("Cases:"));
    let mut listed: Vec<&str> = lists.flat_map(str::split_whitespace).collect();
    let rows = text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| |"));
    let (mut found, mut tests) = (Vec::new(), 0);
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let (first, shown) = (cells[0], cells[cells.len() - 1]);
        let names: Vec<&str> = quoted(shown).collect();
        for name in &names {
            assert_is_test(&all, name);
        }
        tests += names.len();
        let excuse = ["later", "by construction"];
        let is_excused = excuse.iter().any(|word| cells[cells.len() - 2].contains(word));
        assert!(!names.is_empty() || is_excused, "nothing shows {first}");
        if cells.len() == 4 {
            found.push(first);
        }
    }
    listed.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, listed);
    assert!(listed.len() > 150 && tests > 200, "{} cases, {tests} tests", listed.len());
}
