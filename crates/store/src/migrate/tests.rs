//! Fresh, again, upgraded, newer, foreign, interrupted, two at once.

use super::*;

const FIRST: &str = "CREATE TABLE one (id @IDENTITY@, text TEXT NOT NULL)";
const SECOND: &str = "ALTER TABLE one ADD COLUMN more BIGINT NOT NULL DEFAULT 7";
const BROKEN: &str = "CREATE TABLE two (id BIGINT); CREATE TABLE one (again BIGINT)";

struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }
    fn file(&self) -> PathBuf {
        self.dir.path().join("store.db")
    }
    fn migrate(&self, migrations: &[&str]) -> Result<(), StoreError> {
        migrate(&self.file(), migrations, Timestamp::from_micros(1))
    }
    /// What a statement answers in that file.
    fn ask(&self, name: &str, text: &str) -> rusqlite::Result<String> {
        let connection = Connection::open(self.dir.path().join(name)).unwrap();
        connection.query_row(text, [], |row| row.get(0))
    }
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

const ROWS: &str = "SELECT CAST(COUNT(*) AS TEXT) FROM one";
const APPLIED: &str = "SELECT group_concat(version) FROM schema_migration";

#[test]
fn a_fresh_file_is_made_and_a_second_time_changes_nothing() {
    let home = Home::new();
    home.migrate(&[FIRST, SECOND]).unwrap();
    home.migrate(&[FIRST, SECOND]).unwrap();
    assert_eq!(home.ask("store.db", APPLIED).unwrap(), "1,2");
    assert!(home.files().iter().all(|name| !name.contains("bak")), "{:?}", home.files());
}

#[test]
fn an_upgrade_keeps_the_rows_and_a_copy_of_what_was() {
    let home = Home::new();
    home.migrate(&[FIRST]).unwrap();
    let row = "INSERT INTO one (text) VALUES ('kept') RETURNING text";
    assert_eq!(home.ask("store.db", row).unwrap(), "kept");
    // What an interrupted copy left is no hindrance, and never the copy itself.
    std::fs::write(home.dir.path().join("store.db.bak-v1.part"), b"half").unwrap();
    home.migrate(&[FIRST, SECOND]).unwrap();
    assert_eq!(home.ask("store.db", "SELECT text || more FROM one").unwrap(), "kept7");
    assert_eq!(home.ask("store.db.bak-v1", "SELECT text FROM one").unwrap(), "kept");
    assert_eq!(home.ask("store.db.bak-v1", APPLIED).unwrap(), "1");
    assert!(home.ask("store.db.bak-v1", "SELECT more FROM one").is_err());
    assert!(!home.files().iter().any(|name| name.contains(".part")), "{:?}", home.files());
}

#[test]
fn a_migration_that_fails_leaves_the_file_as_it_was() {
    let home = Home::new();
    home.migrate(&[FIRST]).unwrap();
    assert!(home.migrate(&[FIRST, BROKEN]).is_err());
    assert_eq!(home.ask("store.db", APPLIED).unwrap(), "1");
    assert!(home.ask("store.db", "SELECT CAST(COUNT(*) AS TEXT) FROM two").is_err());
    home.migrate(&[FIRST, SECOND]).unwrap();
    assert_eq!(home.ask("store.db", APPLIED).unwrap(), "1,2");
}

#[test]
fn a_newer_store_and_other_texts_are_refused_and_untouched() {
    let home = Home::new();
    home.migrate(&[FIRST, SECOND]).unwrap();
    let newer = home.migrate(&[FIRST]).unwrap_err();
    assert_eq!(newer.kind, StoreErrorKind::Corrupt);
    assert!(newer.message.contains("version 2, this program knows 1"), "{newer}");
    let other = home.migrate(&[SECOND, FIRST]).unwrap_err();
    assert_eq!(other.kind, StoreErrorKind::Corrupt);
    assert!(other.message.contains("migration 1 was applied with another text"), "{other}");
    assert_eq!(home.ask("store.db", APPLIED).unwrap(), "1,2");
}

#[test]
fn a_foreign_file_is_refused_and_untouched() {
    let refused = |content: &[u8]| {
        let home = Home::new();
        std::fs::write(home.file(), content).unwrap();
        let error = home.migrate(&[FIRST]).unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::Corrupt, "{error}");
        assert_eq!(std::fs::read(home.file()).unwrap(), content);
        error.message
    };
    assert!(refused(b"dear diary, this is no database at all").contains("not a database"));
    let foreign = |tables: &str| {
        let home = Home::new();
        Connection::open(home.file()).unwrap().execute_batch(tables).unwrap();
        std::fs::read(home.file()).unwrap()
    };
    let theirs = refused(&foreign("CREATE TABLE photos (id BIGINT)"));
    assert!(theirs.contains("another program's database (tables photos"), "{theirs}");
    // Another program may have a table of that name.
    let theirs = refused(&foreign("CREATE TABLE schema_migration (id BIGINT)"));
    assert!(theirs.contains("another program's database"), "{theirs}");
}

#[test]
fn what_cannot_be_a_store_is_refused() {
    let home = Home::new();
    std::fs::create_dir(home.file()).unwrap();
    assert_eq!(home.migrate(&[FIRST]).unwrap_err().message, "it is not a file");
    let nowhere =
        migrate(&home.dir.path().join("no/such/store.db"), &[FIRST], Timestamp::default());
    assert_eq!(nowhere.unwrap_err().kind, StoreErrorKind::Unavailable);
}

#[test]
fn an_empty_file_is_a_new_one() {
    let home = Home::new();
    std::fs::write(home.file(), b"").unwrap();
    home.migrate(&[FIRST]).unwrap();
    assert_eq!(home.ask("store.db", ROWS).unwrap(), "0");
}

#[test]
fn many_at_once_migrate_one_file_once() {
    let home = Home::new();
    home.migrate(&[FIRST]).unwrap();
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..6).map(|_| scope.spawn(|| home.migrate(&[FIRST, SECOND]))).collect();
        for one in all {
            one.join().unwrap().unwrap();
        }
    });
    assert_eq!(home.ask("store.db", APPLIED).unwrap(), "1,2");
}

#[test]
fn the_real_texts_apply_and_are_of_use_to_both_databases() {
    let home = Home::new();
    home.migrate(MIGRATIONS).unwrap();
    for text in MIGRATIONS {
        for word in ["BLOB", "DATETIME", "AUTOINCREMENT", "INTEGER PRIMARY", "WITHOUT ROWID"] {
            assert!(!text.contains(word), "{word} is of one database only");
        }
    }
}
