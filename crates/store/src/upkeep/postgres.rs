//! What a server says of its tables.

use super::{Connections, Holder, PostgresUpkeep, TableUpkeep};
use crate::db::{PgOptions, Target, pg_connect, pg_error};
use crate::error::StoreError;
use tokio_postgres::{Client, Row};

const OP: &str = "upkeep";
/// Transactions younger than this hold nothing back for long.
const LONG: i64 = 60;

const TABLES: &str = "SELECT s.relname::text, s.n_live_tup, s.n_dead_tup,
        pg_total_relation_size(s.relid), s.n_tup_upd, s.n_tup_hot_upd,
        EXTRACT(EPOCH FROM now() - GREATEST(s.last_vacuum, s.last_autovacuum))::bigint
    FROM pg_stat_user_tables s WHERE s.schemaname = current_schema()
    ORDER BY pg_total_relation_size(s.relid) DESC, s.relname LIMIT 100";
const TRANSACTIONS: &str = "SELECT format('%s (pid %s, %s)', application_name, pid, state),
        EXTRACT(EPOCH FROM now() - xact_start)::bigint
    FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND xact_start < now() - make_interval(secs => $1::bigint::double precision)
    ORDER BY xact_start LIMIT 20";
const PREPARED: &str = "SELECT gid, EXTRACT(EPOCH FROM now() - prepared)::bigint
    FROM pg_prepared_xacts WHERE database = current_database() ORDER BY prepared LIMIT 20";
const SLOTS: &str = "SELECT slot_name::text, NULL::bigint FROM pg_replication_slots
    WHERE NOT active AND (xmin IS NOT NULL OR catalog_xmin IS NOT NULL) ORDER BY 1 LIMIT 20";
const CONNECTIONS: &str = "SELECT current_setting('max_connections')::bigint,
        current_setting('superuser_reserved_connections')::bigint,
        (SELECT COUNT(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
        (SELECT COUNT(*) FROM job WHERE state IN ('running', 'draining') AND kind <> 'worker'),
        (SELECT MIN(lease_ttl) FROM job WHERE state IN ('running', 'draining') AND kind = 'worker'),
        (SELECT MAX(lease_ttl) FROM job WHERE state IN ('running', 'draining') AND kind = 'worker'),
        pg_database_size(current_database())";

/// Asks the server; the store must be migrated.
pub async fn upkeep_postgres(url: &str, options: PgOptions) -> Result<PostgresUpkeep, StoreError> {
    let wire = pg_connect(&Target::parse(url)?, &options).await?;
    facts(&wire.client).await.map_err(|error| pg_error(OP, &error))
}

async fn facts(client: &Client) -> Result<PostgresUpkeep, tokio_postgres::Error> {
    let tables = client.query(TABLES, &[]).await?;
    let tables = tables.iter().map(table).collect::<Result<_, _>>()?;
    let mut holders = Vec::new();
    let long = client.query(TRANSACTIONS, &[&LONG]).await?;
    for (kind, rows) in [
        ("transaction", long),
        ("prepared", client.query(PREPARED, &[]).await?),
        ("replication slot", client.query(SLOTS, &[]).await?),
    ] {
        for row in rows {
            holders.push(Holder { kind, name: row.try_get(0)?, age: row.try_get(1)? });
        }
    }
    let row = client.query_one(CONNECTIONS, &[]).await?;
    let ttls: (Option<i64>, Option<i64>) = (row.try_get(4)?, row.try_get(5)?);
    let connections = Connections {
        most: row.try_get(0)?,
        reserved: row.try_get(1)?,
        used: row.try_get(2)?,
        roles: row.try_get(3)?,
        worker_ttls: ttls.0.zip(ttls.1),
    };
    Ok(PostgresUpkeep { bytes: row.try_get(6)?, tables, holders, connections })
}

fn table(row: &Row) -> Result<TableUpkeep, tokio_postgres::Error> {
    Ok(TableUpkeep {
        name: row.try_get(0)?,
        live: row.try_get(1)?,
        dead: row.try_get(2)?,
        bytes: row.try_get(3)?,
        updates: row.try_get(4)?,
        in_place: row.try_get(5)?,
        vacuumed_ago: row.try_get(6)?,
    })
}
