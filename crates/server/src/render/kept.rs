//! What the installation keeps for one task, opened: for its templates, and to be given to it.

use crate::vault::{Keyring, connection};
use fencepost_api::execution::{Given as GivenConnection, Secret, SecretFrom};
use fencepost_core::connection::{Connection, is_sensitive};
use fencepost_core::dag::{Dag, Task};
use fencepost_core::kept::{Kind, SecretSource, hidden};
use fencepost_dagfile::template::{Kept, TemplateError};
use fencepost_engine::facts::Facts;
use fencepost_store::query::vault::Sealed;
use std::collections::BTreeMap;

/// What could be opened, and why the rest could not.
#[derive(Default)]
pub(super) struct Opened {
    pub(super) kept: Kept,
    secrets: BTreeMap<String, String>,
}

/// What a worker is told.
pub(super) struct Given {
    pub(super) secrets: Vec<Secret>,
    pub(super) connections: Vec<GivenConnection>,
    pub(super) masked: Vec<String>,
}

impl Opened {
    pub(super) fn of(facts: &Facts, keyring: &Keyring) -> Self {
        let mut opened = Self::default();
        let wanted = facts.version.kept.get(facts.ti.key.task_index as usize);
        for (kind, name) in wanted.into_iter().flatten() {
            let found = facts.kept.iter().find(|one| one.kind == *kind && one.name == *name);
            let added = match found {
                Some(sealed) => opened.add(sealed, keyring),
                None => Err(format!("there is no {kind} `{name}`")),
            };
            opened.kept.missing.extend(added.err());
        }
        opened
    }

    fn add(&mut self, sealed: &Sealed, keyring: &Keyring) -> Result<(), String> {
        let Sealed { kind, name, text } = sealed;
        let because = |why: &dyn std::fmt::Display| format!("{kind} `{name}`: {why}");
        let text = keyring.open(kind.as_str(), name, text).map_err(|error| because(&error))?;
        match kind {
            Kind::Variable => drop(self.kept.variables.insert(name.clone(), text)),
            Kind::Secret => drop(self.secrets.insert(name.clone(), text)),
            Kind::Connection => {
                let read = connection(&text).map_err(|why| because(&why))?;
                self.kept.connections.insert(name.clone(), read);
            }
        }
        Ok(())
    }

    /// What the task's process is given. One thing that is missing is a failure of the task, not a task
    /// that runs without it.
    pub(super) fn given(&self, dag: &Dag, task: &Task) -> Result<Given, TemplateError> {
        let access = dag.access.under(&task.access);
        let secret = |(name, source): &(String, SecretSource)| {
            let from = self.source(name, source)?;
            Ok(Secret { name: name.clone(), from })
        };
        let connection = |name: &String| {
            let Some(found) = self.kept.connections.get(name) else {
                return Err(self.missing("connections", Kind::Connection, name));
            };
            let (uri, json) = (found.to_uri(), found.to_json());
            Ok(GivenConnection { name: name.clone(), uri, json })
        };
        Ok(Given {
            secrets: access.secrets.iter().map(secret).collect::<Result<_, _>>()?,
            connections: access.connections.iter().map(connection).collect::<Result<_, _>>()?,
            masked: self.masked(),
        })
    }

    fn source(&self, variable: &str, source: &SecretSource) -> Result<SecretFrom, TemplateError> {
        Ok(match source {
            SecretSource::Store(name) => {
                let field = format!("secrets.{variable}");
                let missing = || self.missing(&field, Kind::Secret, name);
                SecretFrom::Value(self.secrets.get(name).cloned().ok_or_else(missing)?)
            }
            SecretSource::Env(name) => SecretFrom::Env(name.clone()),
            SecretSource::File(path) => SecretFrom::File(path.clone()),
            SecretSource::Exec(command) => SecretFrom::Exec(command.clone()),
        })
    }

    fn missing(&self, field: &str, kind: Kind, name: &str) -> TemplateError {
        let named = format!("{kind} `{name}`");
        let told = self.kept.missing.iter().find(|why| why.contains(&named));
        let message = told.cloned().unwrap_or_else(|| format!("there is no {named}"));
        TemplateError { field: field.into(), line: 1, message }
    }

    /// What is to be hidden wherever it shows up.
    pub(super) fn masked(&self) -> Vec<String> {
        let variables = self.kept.variables.iter().filter(|(name, _)| is_sensitive(name));
        let texts = self.secrets.values().chain(variables.map(|(_, text)| text)).cloned();
        let all = texts.chain(self.kept.connections.values().flat_map(secrets_of));
        // Longest first: of two that begin alike the longer one is hidden whole.
        let mut all: Vec<String> = hidden(all).into_iter().collect();
        all.sort_by_key(|text| std::cmp::Reverse(text.len()));
        all
    }
}

/// With its password as a URI has it.
fn secrets_of(of: &Connection) -> Vec<String> {
    let only = Connection { password: of.password.clone(), ..Connection::default() }.to_uri();
    let encoded = only.strip_prefix("://:").and_then(|rest| rest.strip_suffix('@'));
    of.secrets().into_iter().chain(encoded.map(ToOwned::to_owned)).collect()
}
