//! The printed tables: `docs/generated/state-machines.md` is what the code says.

use fencepost_core::lifecycle::describe;
use std::path::Path;

#[test]
fn the_page_of_state_machines_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/generated/state-machines.md");
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, describe()).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = stored
        .lines()
        .zip(describe().lines().map(String::from).collect::<Vec<_>>())
        .find(|(old, new)| old != new);
    assert!(
        stored == describe(),
        "docs/generated/state-machines.md is not what the tables say (first difference: \
         {differs:?}).\nTo update it: UPDATE=1 cargo test -p fencepost-core --test it page_of_state"
    );
}
