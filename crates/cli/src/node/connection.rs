//! Connections that the roles themselves use: for callbacks and waits.

use fencepost_core::connection::Connection;
use fencepost_server::vault::Keyring;
use fencepost_store::Store;
use fencepost_store::query::vault;

/// The connection of that name.
pub(super) async fn named(
    store: &Store,
    keyring: &Keyring,
    name: &str,
) -> Result<Connection, String> {
    let failed = |error: fencepost_store::StoreError| error.to_string();
    let tx = store.read("connection_by_name").await.map_err(failed)?;
    let found = vault::get(&tx, "connection", name).await.map_err(failed)?;
    drop(tx);
    let entry = found.ok_or_else(|| {
        format!("there is no connection `{name}`: fencepost connections set {name} URI")
    })?;
    let text = keyring.open("connection", name, &entry.sealed);
    let text = text.map_err(|error| format!("connection `{name}`: {error}"))?;
    let value = serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text));
    Connection::from_json(&value).map_err(|error| format!("connection `{name}`: {error}"))
}
