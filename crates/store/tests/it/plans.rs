use fencepost_core::hook::Hooks;
use fencepost_core::time::Timestamp;
use fencepost_store::{Store, StoreClock};
#[test]
fn p() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let _s =
        Store::open_sqlite(&path, StoreClock::new(|| Timestamp::from_micros(1)), Hooks::none())
            .unwrap();
    let c = rusqlite::Connection::open(&path).unwrap();
    for s in fencepost_store::query::all_statements() {
        let mut q = c.prepare(&format!("EXPLAIN QUERY PLAN {}", s.text.replace('$', "?"))).unwrap();
        let n = q.parameter_count();
        let rows: Vec<String> = q
            .query_map(rusqlite::params_from_iter((0..n).map(|_| 1)), |r| r.get(3))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        println!("{}: {}", s.name, rows.join(" | "));
    }
}
