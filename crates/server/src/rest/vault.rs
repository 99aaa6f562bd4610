//! Variables, connections and secrets: one table, three kinds. Masked, unless somebody who may asks.

use super::answer::{Answer, Done};
use super::call::Call;
use super::cursor;
use super::failure::Failure;
use super::runs::check_text;
use crate::vault::{VaultError, connection};
use fencepost_api::problem::ProblemCode;
use fencepost_api::rest::routes::Permission;
use fencepost_api::rest::{Kept, KeptPut, KeptQuery, Rotated};
use fencepost_core::connection::Connection;
use fencepost_core::kept::Kind;
use fencepost_store::query::event::{self, Event};
use fencepost_store::query::vault::{self, Entry};
use serde_json::Value;

const NAME_MAX: usize = 200;
const VALUE_MAX: usize = 64 << 10;
const MASK: &str = "***";
/// Rows that are sealed anew in one transaction.
const BATCH: u32 = 100;

fn missing(kind: Kind, name: &str) -> Failure {
    let code = match kind {
        Kind::Variable => ProblemCode::NoSuchVariable,
        Kind::Connection => ProblemCode::NoSuchConnection,
        Kind::Secret => ProblemCode::NoSuchSecret,
    };
    Failure::new(code, format!("there is no {kind} `{name}`"))
        .suggest(format!("see  fencepost {kind}s list"))
}

impl From<VaultError> for Failure {
    fn from(error: VaultError) -> Self {
        let code = match error {
            VaultError::Randomness(_) => ProblemCode::Internal,
            VaultError::NoKey
            | VaultError::BadKey(_)
            | VaultError::OtherKey(_)
            | VaultError::Altered => ProblemCode::VaultClosed,
        };
        Self::new(code, error.to_string())
    }
}

pub(super) async fn list(call: &Call, kind: Kind) -> Done {
    let query: KeptQuery = call.query()?;
    let reveal = may_reveal(call, query.reveal)?;
    let limit = cursor::limit(query.limit);
    let [after] = cursor::read(kind.as_str(), query.cursor.as_deref())?.unwrap_or_default();
    let tx = call.read().await?;
    let found = vault::page(&tx, kind.as_str(), &after, limit + 1).await?;
    drop(tx);
    let (found, next) =
        cursor::cut(found, limit, |entry| cursor::write(kind.as_str(), &[&entry.name]));
    if reveal {
        let names: Vec<&str> = found.iter().map(|entry| entry.name.as_str()).collect();
        audit(call, kind, "revealed", &names.join(", ")).await?;
    }
    let hidden = kind == Kind::Secret && !reveal;
    let wire = |entry| {
        let kept = wire(call, kind, entry, reveal);
        if hidden { Kept { value: Value::Null, ..kept } } else { kept }
    };
    Answer::ok(&cursor::page(found.into_iter().map(wire).collect(), next))
}

pub(super) async fn show(call: &Call, kind: Kind) -> Done {
    let query: KeptQuery = call.query()?;
    let reveal = may_reveal(call, query.reveal)?;
    let entry = entry(call, kind).await?;
    if reveal {
        audit(call, kind, "revealed", &entry.name).await?;
        // What was asked for is answered, or why it cannot be.
        opened_entry(call, &entry)?;
    }
    Answer::ok(&wire(call, kind, entry, reveal))
}

pub(super) async fn put(call: &Call, kind: Kind) -> Done {
    let name = call.arg(0);
    check_name(name)?;
    let body: KeptPut = call.body()?;
    check_text("/description", body.description.as_deref())?;
    let text = text_of(kind, &body.value)?;
    if text.len() > VALUE_MAX {
        return Err(Failure::field("/value", format!("at most {VALUE_MAX} bytes")));
    }
    let sealed = call.server.state.keyring.seal(kind.as_str(), name, &text)?;
    let tx = call.cx().store.begin("vault_put").await?;
    let before = vault::get(&tx, kind.as_str(), name).await?;
    let word = if before.is_some() { "changed" } else { "made" };
    let kept = before.map(|entry| entry.description).unwrap_or_default();
    let entry = Entry {
        kind: kind.as_str().into(),
        name: name.into(),
        description: body.description.unwrap_or(kept),
        sealed,
        updated_at: tx.now(),
        updated_by: call.by().into(),
    };
    vault::set(&tx, &entry).await?;
    event::append(&tx, vec![line(call, kind, word, name)]).await?;
    tx.commit().await?;
    Answer::ok(&wire(call, kind, entry, false))
}

pub(super) async fn delete(call: &Call, kind: Kind) -> Done {
    let tx = call.cx().store.begin("vault_delete").await?;
    if !vault::delete(&tx, kind.as_str(), call.arg(0)).await? {
        return Err(missing(kind, call.arg(0)));
    }
    event::append(&tx, vec![line(call, kind, "deleted", call.arg(0))]).await?;
    tx.commit().await?;
    Ok(Answer::nothing())
}

/// Everything that an older key sealed is sealed by the first one.
pub(super) async fn rotate(call: &Call) -> Done {
    let keyring = &call.server.state.keyring;
    if keyring.is_empty() {
        return Err(VaultError::NoKey.into());
    }
    let mut rotated = Rotated { resealed: 0, unreadable: Vec::new() };
    for kind in Kind::ALL {
        let mut after = String::new();
        loop {
            let tx = call.cx().store.begin("vault_rotate").await?;
            let found = vault::page(&tx, kind.as_str(), &after, BATCH).await?;
            let Some(last) = found.last() else { break };
            after.clone_from(&last.name);
            for entry in found.iter().filter(|entry| !keyring.is_current(&entry.sealed)) {
                match keyring.open(&entry.kind, &entry.name, &entry.sealed) {
                    Ok(text) => {
                        let sealed = keyring.seal(&entry.kind, &entry.name, &text)?;
                        rotated.resealed += u32::from(vault::reseal(&tx, entry, &sealed).await?);
                    }
                    Err(_) => {
                        rotated.unreadable.push(format!("{} {}", entry.kind, entry.name));
                    }
                }
            }
            tx.commit().await?;
        }
    }
    let text =
        format!("{} sealed anew, {} do not open", rotated.resealed, rotated.unreadable.len());
    audit(call, Kind::Secret, "rotated", &text).await?;
    Answer::ok(&rotated)
}

/// What the entry that the call names says.
pub(super) async fn opened(call: &Call, kind: Kind) -> Result<String, Failure> {
    let entry = entry(call, kind).await?;
    opened_entry(call, &entry)
}

async fn entry(call: &Call, kind: Kind) -> Result<Entry, Failure> {
    let tx = call.read().await?;
    let found = vault::get(&tx, kind.as_str(), call.arg(0)).await?;
    found.ok_or_else(|| missing(kind, call.arg(0)))
}

fn opened_entry(call: &Call, entry: &Entry) -> Result<String, Failure> {
    Ok(call.server.state.keyring.open(&entry.kind, &entry.name, &entry.sealed)?)
}

/// Whether what is secret is to be told, to somebody who may hear it.
fn may_reveal(call: &Call, asked: bool) -> Result<bool, Failure> {
    if asked {
        let principal = call.principal.as_ref().ok_or_else(|| {
            Failure::new(ProblemCode::Unauthenticated, "only a known caller may see this")
        })?;
        principal.check(Permission::SecretReveal)?;
    }
    Ok(asked)
}

fn check_name(name: &str) -> Result<(), Failure> {
    let good = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(good) {
        let text = format!("`{name}` is no name: 1 to {NAME_MAX} of A-Z a-z 0-9 _ . -");
        return Err(Failure::new(ProblemCode::ValidationFailed, text));
    }
    Ok(())
}

/// What is sealed: the text itself, or the fields of a connection.
fn text_of(kind: Kind, value: &Value) -> Result<String, Failure> {
    match (kind, value) {
        (Kind::Connection, value) => {
            let read = Connection::from_json(value);
            let read = read.map_err(|error| Failure::field("/value", error.to_string()))?;
            Ok(read.to_json().to_string())
        }
        (_, Value::String(text)) => Ok(text.clone()),
        (Kind::Secret, _) => Err(Failure::field("/value", "a text")),
        // As Airflow: what is no text is kept as JSON.
        (Kind::Variable, other) => Ok(other.to_string()),
    }
}

fn wire(call: &Call, kind: Kind, entry: Entry, reveal: bool) -> Kept {
    let opened = call.server.state.keyring.open(&entry.kind, &entry.name, &entry.sealed);
    let shown = opened.map_err(|error| error.to_string()).and_then(|text| {
        Ok(match kind {
            Kind::Connection if reveal => connection(&text)?.to_json(),
            Kind::Connection => connection(&text)?.masked(),
            Kind::Variable | Kind::Secret if reveal => text.into(),
            Kind::Variable | Kind::Secret => MASK.into(),
        })
    });
    let (value, trouble) = match shown {
        Ok(value) => (value, None),
        Err(why) => (Value::Null, Some(why)),
    };
    Kept {
        name: entry.name,
        description: entry.description,
        value,
        masked: !reveal,
        trouble,
        updated_at: entry.updated_at.to_string(),
        updated_by: entry.updated_by,
    }
}

/// Who has seen or changed what, never what it says.
async fn audit(call: &Call, kind: Kind, what: &str, names: &str) -> Result<(), Failure> {
    let tx = call.cx().store.begin("vault_audit").await?;
    event::append(&tx, vec![line(call, kind, what, names)]).await?;
    tx.commit().await?;
    Ok(())
}

fn line(call: &Call, kind: Kind, what: &str, names: &str) -> Event {
    let kind = match what {
        "revealed" => "secret_revealed",
        "rotated" => "secrets_rotated",
        "deleted" => match kind {
            Kind::Variable => "variable_deleted",
            Kind::Connection => "connection_deleted",
            Kind::Secret => "secret_deleted",
        },
        _ => match kind {
            Kind::Variable => "variable_set",
            Kind::Connection => "connection_set",
            Kind::Secret => "secret_set",
        },
    };
    Event { kind, actor: call.by().into(), reason: Some(names.into()), ..Event::default() }
}
