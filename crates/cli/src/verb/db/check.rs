//! `fencepost db check`: whether this program can work with a store, and how the store keeps.

use crate::error::Outcome;
use crate::node::store::{self, Address};
use crate::output::span;
use fencepost_core::time::Span;
use fencepost_store::upkeep::{
    Connections, Holder, PostgresUpkeep, SqliteUpkeep, TableUpkeep, upkeep_postgres, upkeep_sqlite,
};
use serde_json::{Value, json};

/// Connections of a scheduler or server at most: 8 that write, 4 that read, 1 that listens, 1 that hints, 2 of
/// its heart.
const OF_A_ROLE: i64 = 16;
/// For people and their programs.
const SPARE: i64 = 5;
/// Rows that may be dead before it is worth a word.
const DEAD_LEAST: i64 = 10_000;
/// Updates of the lease table before its share of those in place says anything.
const UPDATES_LEAST: i64 = 1_000;
/// A transaction that is open for longer holds vacuum back.
const LONG: i64 = 300;
/// Leases of workers that are this many times apart.
const TTLS_APART: i64 = 4;

/// What was found, and what to do about it.
pub(super) struct Kept {
    facts: Value,
    text: String,
    pub(super) warnings: Vec<String>,
    /// The file is broken.
    pub(super) is_damaged: bool,
}

impl Kept {
    /// The answer's part of it.
    pub(super) fn data(&self) -> Value {
        json!({ "store": self.facts, "warnings": self.warnings })
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let warned = self.warnings.iter().map(|line| format!("! {line}\n"));
        std::iter::once(self.text.clone()).chain(warned).collect()
    }
}

/// Looks at a store that is migrated.
pub(super) async fn look(address: &Address) -> Outcome<Kept> {
    match address {
        Address::Sqlite(path) => {
            let found = upkeep_sqlite(path).map_err(|error| store::failed(&error))?;
            Ok(of_sqlite(&found))
        }
        Address::Postgres(url) => {
            let found = upkeep_postgres(url, store::pg_options("fencepost db")).await;
            Ok(of_postgres(&found.map_err(|error| store::failed(&error))?))
        }
    }
}

fn of_sqlite(found: &SqliteUpkeep) -> Kept {
    let SqliteUpkeep { page_bytes, pages, free, wal_bytes, damage } = found;
    let mut warnings: Vec<String> = damage.iter().map(|line| format!("damaged: {line}")).collect();
    if !damage.is_empty() {
        warnings.push(
            "stop the standalone, keep a copy of the file, and put the last good back-up in its place"
                .into(),
        );
    }
    if *pages > 1_000 && free * 2 > *pages {
        warnings.push(format!(
            "{free} of {pages} pages are free: they are used again; to give them back, stop the standalone and \
             run  sqlite3 FILE VACUUM"
        ));
    }
    if *wal_bytes > 256 << 20 {
        warnings.push(format!(
            "the WAL has {}: something reads for a long time, such as a copy or a shell with an \
             open transaction",
            bytes(i64::try_from(*wal_bytes).unwrap_or(i64::MAX))
        ));
    }
    let text = format!(
        "{pages} pages of {page_bytes} bytes, {free} free; WAL {}; {}\n",
        bytes(i64::try_from(*wal_bytes).unwrap_or(i64::MAX)),
        if damage.is_empty() { "quick_check: ok" } else { "quick_check: DAMAGED" }
    );
    let facts = json!({
        "kind": "sqlite", "page_bytes": page_bytes, "pages": pages, "free_pages": free,
        "wal_bytes": wal_bytes, "damage": damage,
    });
    Kept { facts, text, warnings, is_damaged: !damage.is_empty() }
}

fn of_postgres(found: &PostgresUpkeep) -> Kept {
    let mut warnings: Vec<String> = found.tables.iter().filter_map(table_warning).collect();
    warnings.extend(found.holders.iter().filter_map(holder_warning));
    warnings.extend(connection_warnings(&found.connections));
    let head = format!(
        "{:<18} {:>10} {:>10} {:>10} {:>9}  {}\n",
        "table", "live rows", "dead rows", "size", "in place", "vacuumed"
    );
    let rows = found.tables.iter().filter(|t| t.live + t.dead + t.updates > 0).map(|t| {
        let share = in_place(t).map_or_else(|| "–".into(), |share| format!("{share:.1} %"));
        format!(
            "{:<18} {:>10} {:>10} {:>10} {share:>9}  {}\n",
            t.name,
            t.live,
            t.dead,
            bytes(t.bytes),
            t.vacuumed_ago.map_or_else(|| "never".into(), |secs| format!("{} ago", length(secs)))
        )
    });
    let Connections { most, reserved, used, roles, .. } = found.connections;
    let text = format!(
        "{head}{}{} in all; {used} of {most} connections, {roles} roles\n",
        rows.collect::<String>(),
        bytes(found.bytes)
    );
    let tables = found.tables.iter().map(|t| {
        json!({
            "table": t.name, "live_rows": t.live, "dead_rows": t.dead, "bytes": t.bytes,
            "updates": t.updates, "in_place_percent": in_place(t), "vacuumed_secs_ago": t.vacuumed_ago,
        })
    });
    let holders = found.holders.iter();
    let holders = holders.map(|h| json!({ "kind": h.kind, "name": h.name, "age_secs": h.age }));
    let facts = json!({
        "kind": "postgres", "bytes": found.bytes, "tables": tables.collect::<Vec<_>>(),
        "holds_vacuum_back": holders.collect::<Vec<_>>(),
        "connections": {
            "max": most, "reserved": reserved, "used": used, "roles": roles,
            "most_of_a_role": OF_A_ROLE,
        },
    });
    Kept { facts, text, warnings, is_damaged: false }
}

/// Percent of the updates that were made in place.
#[expect(clippy::cast_precision_loss, reason = "a share that is shown")]
fn in_place(table: &TableUpkeep) -> Option<f64> {
    (table.updates > 0).then(|| 100.0 * table.in_place as f64 / table.updates as f64)
}

fn table_warning(table: &TableUpkeep) -> Option<String> {
    let TableUpkeep { name, live, dead, vacuumed_ago, updates, .. } = table;
    if *dead > DEAD_LEAST && *dead > *live {
        let last = vacuumed_ago.map_or_else(
            || "never vacuumed".into(),
            |secs| format!("vacuumed {} ago", length(secs)),
        );
        return Some(format!(
            "{name} has more dead rows than live ones ({dead} and {live}, {last}): see that autovacuum \
             is on, and what holds it back; now  VACUUM {name}"
        ));
    }
    let share = in_place(table).filter(|share| *share < 95.0);
    (name == "job" && *updates > UPDATES_LEAST).then_some(share)?.map(|share| {
        format!(
            "only {share:.1} % of the renewals of job were made in place (95 % at least): a long transaction \
             keeps old rows, or its fillfactor was changed (ALTER TABLE job SET (fillfactor = 50))"
        )
    })
}

fn holder_warning(holder: &Holder) -> Option<String> {
    let Holder { kind, name, age } = holder;
    let since = age.map(length).unwrap_or_default();
    match *kind {
        "transaction" if age.is_some_and(|age| age < LONG) => None,
        "transaction" => Some(format!(
            "a transaction is open for {since} and holds vacuum back: {name}; end it with \
             pg_terminate_backend"
        )),
        "prepared" => Some(format!(
            "a prepared transaction holds vacuum back for {since}: ROLLBACK PREPARED '{name}'"
        )),
        _ => Some(format!(
            "replication slot {name} is not active and holds vacuum back: pg_drop_replication_slot('{name}')"
        )),
    }
}

fn connection_warnings(found: &Connections) -> Vec<String> {
    let mut warnings = Vec::new();
    let free = found.most - found.reserved;
    let wanted = found.roles * OF_A_ROLE + SPARE;
    if wanted > free {
        warnings.push(format!(
            "max_connections {} is too small for the {} schedulers and servers that live ({OF_A_ROLE} each at \
             most): max_connections = {} or more",
            found.most,
            found.roles,
            wanted + found.reserved
        ));
    }
    if let Some((least, most)) =
        found.worker_ttls.filter(|(least, most)| most / TTLS_APART > *least)
    {
        warnings.push(format!(
            "the leases of live workers differ much (worker.lease_ttl from {} to {}): the longest bounds how \
             long an epoch change and an owner without a row are waited for",
            Span::from_micros(least),
            Span::from_micros(most)
        ));
    }
    warnings
}

fn length(secs: i64) -> String {
    span::duration(Span::from_secs(secs))
}

fn bytes(count: i64) -> String {
    match count {
        ..1_024 => format!("{count} B"),
        1_024..1_048_576 => format!("{} kB", count >> 10),
        _ => format!("{} MB", count >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str, live: i64, dead: i64, (updates, in_place): (i64, i64)) -> TableUpkeep {
        let vacuumed_ago = Some(7_200);
        TableUpkeep {
            name: name.into(),
            live,
            dead,
            bytes: 1 << 21,
            updates,
            in_place,
            vacuumed_ago,
        }
    }

    #[test]
    fn what_is_too_much_is_told_with_what_to_do() {
        let good = [table("event", 50_000, 9_000, (0, 0)), table("job", 100, 90, (5_000, 4_990))];
        assert!(good.iter().all(|table| table_warning(table).is_none()));
        let bloated = table_warning(&table("event", 10_000, 20_000, (0, 0))).unwrap_or_default();
        assert!(bloated.contains("vacuumed 2h00m ago") && bloated.contains("VACUUM event"));
        let cold = table_warning(&table("job", 100, 90, (5_000, 4_000))).unwrap_or_default();
        assert!(cold.starts_with("only 80.0 %") && cold.contains("fillfactor"), "{cold}");
        assert_eq!(table_warning(&table("run", 100, 90, (5_000, 0))), None, "not a lease table");
    }

    #[test]
    fn what_holds_vacuum_back_is_named() {
        let holder = |kind, age| Holder { kind, name: "x".into(), age };
        assert_eq!(holder_warning(&holder("transaction", Some(100))), None);
        for (kind, age, said) in [
            ("transaction", Some(900), "open for 15m00s"),
            ("prepared", Some(10), "ROLLBACK PREPARED 'x'"),
            ("replication slot", None, "pg_drop_replication_slot('x')"),
        ] {
            let told = holder_warning(&holder(kind, age)).unwrap_or_default();
            assert!(told.contains(said), "{told}");
        }
    }

    #[test]
    fn too_few_connections_and_leases_far_apart_are_told() {
        let minute = 60_000_000;
        let few = Connections { most: 100, reserved: 3, used: 9, roles: 5, worker_ttls: None };
        assert_eq!(connection_warnings(&few), [""; 0]);
        let many = Connections { roles: 6, worker_ttls: Some((minute, 5 * minute)), ..few };
        let told = connection_warnings(&many);
        assert!(told[0].ends_with("max_connections = 104 or more"), "{told:?}");
        assert!(told[1].contains("from 1m to 5m"), "{told:?}");
    }

    #[test]
    fn damage_and_waste_of_a_file_are_told() {
        let file = SqliteUpkeep { page_bytes: 4_096, pages: 2_000, ..SqliteUpkeep::default() };
        assert_eq!(of_sqlite(&file).warnings, [""; 0]);
        let wasted = of_sqlite(&SqliteUpkeep { free: 1_500, ..file.clone() });
        assert!(wasted.warnings[0].contains("VACUUM") && !wasted.is_damaged);
        let broken = of_sqlite(&SqliteUpkeep { damage: vec!["row 7 missing".into()], ..file });
        assert!(broken.is_damaged && broken.text().contains("! damaged: row 7 missing"));
    }
}
