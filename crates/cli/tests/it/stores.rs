//! Verbs that look into a store themselves: `db`, `doctor --store`, `tokens create --store`.

use crate::process::{Call, Ran};
use fencepost_testing::Database;
use serde_json::json;

fn with(url: &str, line: &str) -> Ran {
    let mut arguments: Vec<&str> = line.split_whitespace().collect();
    arguments.extend(["--store", url]);
    Call::of(&arguments).run()
}

fn outcome(url: &str, line: &str) -> (i32, String) {
    let ran = with(url, line);
    (ran.code, ran.stdout)
}

#[test]
fn a_database_is_checked_migrated_and_of_use_to_the_other_verbs() {
    let database = Database::empty().unwrap();
    let url = database.url();
    let (code, said) = outcome(url, "db check");
    assert!(code == 1 && said.starts_with("no tables yet"), "{code} {said}");
    let refused = with(url, "doctor");
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("fencepost db migrate --store postgres://127.0.0.1"));
    let (code, said) = outcome(url, "db migrate --dry-run");
    assert!(code == 0 && said.starts_with("no tables yet"), "{code} {said}");
    let (code, said) = outcome(url, "db migrate");
    assert!(code == 0 && said.starts_with("schema version 0 -> "), "{code} {said}");
    for line in ["db migrate", "db check"] {
        let (code, said) = outcome(url, line);
        assert!(code == 0 && said.contains(": current\n"), "{line}: {code} {said}");
    }
    let (code, said) = outcome(url, "db check");
    assert!(code == 0 && said.contains("connections, 0 roles") && !said.contains('!'), "{said}");
    let kept: serde_json::Value =
        serde_json::from_str(&outcome(url, "db check -o json").1).unwrap();
    assert_eq!((&kept["store"]["kind"], &kept["warnings"]), (&"postgres".into(), &json!([])));
    let (code, said) = outcome(url, "db clean --dry-run");
    assert!(code == 0 && said.contains("0  rows would go"), "{code} {said}");
    let (code, said) = outcome(url, "doctor");
    assert!(code == 0 && said.contains("✔ no violations"), "{code} {said}");
    for question in ["schedulers", "zombies", "orphans", "triggers", "ghosts"] {
        let (code, said) = outcome(url, &format!("inspect {question} -o json"));
        assert_eq!((code, said.as_str()), (0, "[]\n"), "{question}");
    }
    // No server answers: the store that the configuration names is read.
    for line in ["inspect ghosts -o json", "doctor -o json"] {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let ran = Call::of(&arguments).env("FENCEPOST__STORE__URL", url).run();
        assert_eq!(ran.code, 0, "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains("read from the store itself"), "{}", ran.stderr);
    }
    let ran = Call::of(&["inspect", "ghosts"]).run();
    assert_eq!(ran.code, 7, "none is configured: {}", ran.stderr);
    let (code, said) = outcome(url, "tokens create --role admin --name first");
    assert!(code == 0 && said.starts_with("fp_"), "{code} {said}");
    let kept = database.sql("SELECT name || ' ' || role FROM api_token").unwrap();
    assert_eq!(kept, "first admin");
    // A password in the address is nobody's business.
    let secret = url.split(':').nth(2).unwrap().split('@').next().unwrap();
    assert!(!refused.stderr.contains(secret), "{}", refused.stderr);
}

#[test]
fn another_programs_database_and_no_database_are_refused() {
    let database = Database::empty().unwrap();
    database.sql("CREATE TABLE photos (id BIGINT)").unwrap();
    for line in ["db check", "db migrate", "doctor"] {
        let ran = with(database.url(), line);
        assert_eq!(ran.code, 1, "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains("another program's database (tables photos"), "{}", ran.stderr);
    }
    let nowhere = database.url().replace(database.name(), "no_such_database");
    for (url, code, why) in [
        (nowhere.as_str(), 2, "does not exist"),
        ("postgres://me@127.0.0.1:1/x", 1, "127.0.0.1:1/x"),
        ("mysql://x", 2, "sqlite:PATH or postgres://"),
        ("sqlite:/no/such/file.db", 4, "there is no store"),
    ] {
        let ran = with(url, "doctor");
        assert_eq!(ran.code, code, "{url}: {}", ran.stderr);
        assert!(ran.stderr.contains(why), "{url}: {}", ran.stderr);
    }
}

#[test]
fn a_sqlite_file_is_looked_into_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let clock = fencepost_store::StoreClock::new(fencepost_core::time::Timestamp::default);
    drop(fencepost_store::Store::open_sqlite(&path, clock, fencepost_core::hook::Hooks::none()));
    let url = format!("sqlite:{}", path.display());
    for line in ["db check", "db migrate"] {
        let (code, said) = outcome(&url, line);
        assert!(code == 0 && said.contains(": current\n"), "{line}: {code} {said}");
    }
    let (code, said) = outcome(&url, "db check");
    assert!(code == 0 && said.contains("quick_check: ok"), "{code} {said}");
    let (code, said) = outcome(&url, "db clean --older-than 30d");
    assert!(code == 0 && said.contains("0  rows gone"), "{code} {said}");
    for (line, why) in [
        ("db clean --before 2999-01-01T00:00:00Z", "lies ahead"),
        ("db clean --tables logs,rums", "there is no `rums`"),
        ("db clean --older-than 1d --before 2026-01-01T00:00:00Z", "cannot be used with"),
    ] {
        let ran = with(&url, line);
        assert!(ran.code == 2 && ran.stderr.contains(why), "{line}: {} {}", ran.code, ran.stderr);
    }
    let lock = std::fs::File::create(folder.path().join("store.db.lock")).unwrap();
    lock.lock().unwrap();
    let ran = with(&url, "db clean");
    assert!(ran.code == 5 && ran.stderr.contains("cleans its store by itself"), "{}", ran.stderr);
    drop(lock);
    let (code, said) = outcome(&url, "tokens create --role worker");
    assert!(code == 0 && said.starts_with("fp_"), "{code} {said}");
    assert_eq!(outcome(&url, "doctor").0, 0);
}
