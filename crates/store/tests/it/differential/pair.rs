//! Two stores that are asked the same.

use super::draw::Draw;
use crate::place::{Memory, Place as _, PostgresDatabase};
use fencepost_store::{Row, Stmt, Store, StoreErrorKind, Tx, Value, params};
use std::cell::Cell;

/// A statement and what it is asked with.
pub(super) struct Asked {
    pub(super) name: &'static str,
    stmt: Stmt,
    kinds: Vec<&'static str>,
    pub(super) weight: u64,
    /// Its order is a part of its answer.
    is_ordered: bool,
    /// Its answer is each database's own.
    pub(super) is_own: bool,
    /// One set of values at a time.
    is_single: bool,
}

impl Asked {
    pub(super) fn new(line: &'static str, all: &[Stmt]) -> Self {
        let mut words = line.split(' ');
        let marked = words.next().unwrap();
        let name = marked.trim_start_matches(['*', '~', '!', '1']);
        let marks = &marked[..marked.len() - name.len()];
        let stmt = *all.iter().find(|stmt| stmt.name == name).unwrap_or_else(|| panic!("{name}"));
        // An order inside of parentheses is not the answer's.
        let outer = stmt.text.rsplit(')').next().unwrap_or_default();
        let is_ordered = outer.contains("ORDER BY") && !marks.contains('~');
        Self {
            name,
            stmt,
            kinds: words.collect(),
            weight: if marks.contains('*') { 8 } else { 2 },
            is_ordered,
            is_own: marks.contains('!'),
            is_single: marks.contains('1'),
        }
    }

    pub(super) fn sets(&self, draw: &mut Draw) -> Vec<Vec<Value>> {
        let count = if self.is_single || self.kinds.is_empty() || draw.one_in(2) {
            1
        } else {
            1 + draw.below(4)
        };
        (0..count).map(|_| self.set(draw)).collect()
    }

    pub(super) fn set(&self, draw: &mut Draw) -> Vec<Value> {
        self.kinds.iter().map(|kind| draw.value(kind)).collect()
    }

    pub(super) fn reads(&self) -> bool {
        self.stmt.text.trim_start().starts_with("SELECT")
    }
}

/// Rows, and what each set changed.
pub(super) type Answer = Result<(Vec<Row>, Vec<u64>), StoreErrorKind>;

async fn ask(tx: &Tx, asked: &Asked, sets: &[Vec<Value>]) -> Answer {
    // A statement that answers rows and changes some is used for its rows.
    if asked.reads() || asked.stmt.text.contains("RETURNING") {
        let mut rows = tx.query_many(&asked.stmt, sets.to_vec()).await.map_err(|e| e.kind)?;
        if asked.is_own {
            rows.clear();
        }
        if !(asked.is_ordered && sets.len() == 1) {
            rows.sort_by(|a, b| a.0.cmp(&b.0));
        }
        return Ok((rows, Vec::new()));
    }
    let changed = tx.execute_many(&asked.stmt, sets.to_vec()).await.map_err(|e| e.kind)?;
    Ok((Vec::new(), changed))
}

/// An empty store of each driver.
pub(super) struct Pair {
    sqlite: Store,
    postgres: Store,
    tables: Vec<Table>,
    /// A row was refused or rolled back.
    is_uneven: Cell<bool>,
}

/// A table: how it is read and emptied, and the column that counts by itself.
struct Table {
    name: String,
    read: Stmt,
    counts: Option<String>,
}

/// A transaction on each.
pub(super) struct Both {
    sqlite: Tx,
    postgres: Tx,
}

fn own(text: String) -> Stmt {
    Stmt::same("own", Box::leak(text.into_boxed_str()))
}

// `server` is how the store in memory plays one that fails over: PostgreSQL has a real one.
const COLUMNS: Stmt = Stmt::same(
    "columns",
    "SELECT m.name, p.name, p.pk, m.sql FROM sqlite_master m JOIN pragma_table_info(m.name) p
     WHERE m.type = 'table' AND m.name NOT IN ('sqlite_sequence', 'schema_migration', 'server')
        AND NOT (m.name = 'installation' AND p.name = 'server')
     ORDER BY m.name, p.cid",
);
const COUNTERS: Stmt = Stmt::same("counters", "SELECT name, seq FROM sqlite_sequence");
const SET_COUNTER: Stmt =
    Stmt::same("set_counter", "SELECT setval(pg_get_serial_sequence($1, $2)::regclass, $3, false)");

impl Pair {
    /// Empty stores; the PostgreSQL one is emptied.
    pub(super) async fn new(place: &PostgresDatabase, postgres: &Store) -> Self {
        let sqlite = Memory::new().open();
        let tables = tables(&sqlite).await;
        let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
        place.database.sql(&format!("TRUNCATE {} RESTART IDENTITY", names.join(", "))).unwrap();
        Self { sqlite, postgres: postgres.clone(), tables, is_uneven: Cell::new(true) }
    }

    pub(super) async fn begin(&self, reads: bool) -> Both {
        if reads {
            let sqlite = self.sqlite.read("play").await.unwrap();
            return Both { sqlite, postgres: self.postgres.read("play").await.unwrap() };
        }
        let sqlite = self.sqlite.begin("play").await.unwrap();
        let both = Both { sqlite, postgres: self.postgres.begin("play").await.unwrap() };
        if self.is_uneven.replace(false) {
            self.even(&both).await;
        }
        both
    }

    /// Numbers that a row was refused or rolled back with are used up on PostgreSQL alone.
    async fn even(&self, both: &Both) {
        let counters = both.sqlite.query(&COUNTERS, vec![]).await.unwrap();
        let mut sets = Vec::new();
        for table in &self.tables {
            let Some(column) = &table.counts else { continue };
            let is_it = |row: &&Row| row.0[0] == Value::Text(table.name.clone());
            let next = match counters.iter().find(is_it).map(|row| &row.0[1]) {
                Some(Value::Int(last)) => last + 1,
                _ => 1,
            };
            sets.push(params![&table.name, column, next]);
        }
        both.postgres.query_many(&SET_COUNTER, sets).await.unwrap();
    }

    /// What both answer, which must be the same.
    pub(super) async fn step(&self, both: &Both, asked: &Asked, sets: &[Vec<Value>]) -> Answer {
        let one = ask(&both.sqlite, asked, sets).await;
        let other = ask(&both.postgres, asked, sets).await;
        assert_eq!(one, other, "{} with {sets:?}: SQLite, then PostgreSQL", asked.name);
        match &one {
            Ok((_, changed)) if asked.is_single && changed == &[0] => self.even(both).await,
            Ok(_) => {}
            Err(_) => self.is_uneven.set(true),
        }
        one
    }

    /// Nothing is left of it.
    pub(super) fn roll_back(&self, both: Both) {
        self.is_uneven.set(true);
        drop(both);
    }

    /// Both stores hold the same.
    pub(super) async fn compare(&self) {
        let both = self.begin(true).await;
        for table in &self.tables {
            let mut one = both.sqlite.query(&table.read, vec![]).await.unwrap();
            let mut other = both.postgres.query(&table.read, vec![]).await.unwrap();
            one.sort_by(|a, b| a.0.cmp(&b.0));
            other.sort_by(|a, b| a.0.cmp(&b.0));
            assert_eq!(one, other, "table {}: SQLite, then PostgreSQL", table.name);
        }
    }
}

impl Both {
    pub(super) async fn commit(self) {
        self.sqlite.commit().await.unwrap();
        self.postgres.commit().await.unwrap();
    }
}

/// The tables as SQLite has them; PostgreSQL may have columns of its own.
async fn tables(sqlite: &Store) -> Vec<Table> {
    let tx = sqlite.read("tables").await.unwrap();
    let mut tables: Vec<(String, Vec<String>, Option<String>)> = Vec::new();
    for row in tx.query(&COLUMNS, vec![]).await.unwrap() {
        let mut c = row.columns("column");
        let (table, column) = (c.text().unwrap(), c.text().unwrap());
        let counts = c.flag().unwrap() && c.text().unwrap().contains("AUTOINCREMENT");
        if tables.last().is_none_or(|last| last.0 != table) {
            tables.push((table, Vec::new(), None));
        }
        let last = tables.last_mut().unwrap();
        if counts {
            last.2 = Some(column.clone());
        }
        last.1.push(column);
    }
    tables
        .into_iter()
        .map(|(name, columns, counts)| {
            let read = own(format!("SELECT {} FROM {name}", columns.join(", ")));
            Table { name, read, counts }
        })
        .collect()
}
