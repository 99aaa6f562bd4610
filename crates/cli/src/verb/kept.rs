//! What variables, connections and secrets have in common.

use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::output::typed;
use clap::ValueEnum;
use fencepost_api::rest::routes::{self, Route};
use fencepost_api::rest::{Kept as Entry, KeptPut, KeptQuery};
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Most bytes of a file that is read.
const LARGEST: u64 = 16 << 20;

/// The routes of one of the three, and its word.
pub(super) struct Noun {
    word: &'static str,
    list: Route,
    show: Route,
    put: Route,
    delete: Route,
    /// Its value can be something else than a text.
    structured: bool,
}

pub(super) const VARIABLES: Noun = Noun {
    word: "variable",
    list: routes::VARIABLE_LIST,
    show: routes::VARIABLE_SHOW,
    put: routes::VARIABLE_PUT,
    delete: routes::VARIABLE_DELETE,
    structured: false,
};
pub(super) const CONNECTIONS: Noun = Noun {
    word: "connection",
    list: routes::CONNECTION_LIST,
    show: routes::CONNECTION_SHOW,
    put: routes::CONNECTION_PUT,
    delete: routes::CONNECTION_DELETE,
    structured: true,
};
pub(super) const SECRETS: Noun = Noun {
    word: "secret",
    list: routes::SECRET_LIST,
    show: routes::SECRET_SHOW,
    put: routes::SECRET_PUT,
    delete: routes::SECRET_DELETE,
    structured: false,
};

/// What to do.
pub(super) enum Kept {
    List { reveal: bool },
    Get { name: String, reveal: bool },
    Set { name: String, value: Option<String>, file: Option<PathBuf>, description: Option<String> },
    Delete { name: String },
    Import { file: PathBuf, existing: Existing },
    Export { file: PathBuf },
}

/// What an import does with what is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Existing {
    #[default]
    Overwrite,
    Skip,
    Fail,
}

/// Does it.
pub(super) fn run(cx: &Cx, noun: &Noun, verb: Kept) -> Outcome {
    match verb {
        Kept::List { reveal } => {
            let client = cx.client()?;
            let query = KeptQuery { reveal, ..KeptQuery::default() };
            let items = client.list(noun.list, &[], &query, None)?;
            cx.out.list::<Entry>(items, client.now())?;
        }
        Kept::Get { name, reveal } => {
            let client = cx.client()?;
            let query = KeptQuery { reveal, ..KeptQuery::default() };
            let entry = client.get(noun.show, &[&name], &query)?;
            cx.out.show::<Entry>(entry, client.now())?;
        }
        Kept::Set { name, value, file, description } => {
            let text = match (value, file) {
                (Some(value), _) => value,
                (None, file) => read(&file.unwrap_or_else(|| "-".into()))?,
            };
            set(cx, noun, &name, text, description)?;
        }
        Kept::Delete { name } => delete(cx, noun, &name)?,
        Kept::Import { file, existing } => import(cx, noun, &file, existing)?,
        Kept::Export { file } => export(cx, noun, &file)?,
    }
    Ok(Exit::Done)
}

fn set(cx: &Cx, noun: &Noun, name: &str, text: String, description: Option<String>) -> Outcome<()> {
    let value = if noun.structured && text.trim_start().starts_with('{') {
        serde_json::from_str(&text).map_err(|error| CliError::usage(error.to_string()))?
    } else {
        Value::String(text)
    };
    if cx.global.dry_run {
        let text = format!("would set {} {name}\n", noun.word);
        return cx.out.would(&text, &json!({ "name": name, "action": "set" }));
    }
    let client = cx.client()?;
    let body = KeptPut { value, description };
    let entry = client.send(noun.put, &[name], &(), &body)?;
    cx.out.show::<Entry>(entry, client.now())
}

fn delete(cx: &Cx, noun: &Noun, name: &str) -> Outcome<()> {
    let client = cx.client()?;
    let entry: Entry = client.read(noun.show, &[name])?;
    let text = format!("{} {}", noun.word, entry.name);
    if cx.global.dry_run {
        let about = json!({ "name": name, "action": "delete" });
        return cx.out.would(&format!("would delete {text}\n"), &about);
    }
    cx.confirm(&format!("Delete {text}?"))?;
    client.get(noun.delete, &[name], &())?;
    cx.out.remark(&format!("deleted {text}"));
    Ok(())
}

fn import(cx: &Cx, noun: &Noun, file: &Path, existing: Existing) -> Outcome<()> {
    let wrong =
        |error: &dyn std::fmt::Display| CliError::usage(format!("{}: {error}", file.display()));
    let entries: Map<String, Value> =
        serde_json::from_str(&read(file)?).map_err(|error| wrong(&error))?;
    let client = cx.client()?;
    let there: Vec<Entry> = client
        .list(noun.list, &[], &KeptQuery::default(), None)?
        .into_iter()
        .map(typed)
        .collect::<Outcome<_>>()?;
    let is_there = |name: &str| there.iter().any(|entry| entry.name == name);
    if existing == Existing::Fail
        && let Some(name) = entries.keys().find(|name| is_there(name))
    {
        let text = format!("{} `{name}` is there already; nothing was imported", noun.word);
        return Err(CliError::new(Exit::Conflict, text));
    }
    let (mut done, mut skipped) = (0, 0);
    for (name, value) in entries {
        if existing == Existing::Skip && is_there(&name) {
            skipped += 1;
            continue;
        }
        if !cx.global.dry_run {
            let body = body_of(value);
            client.send(noun.put, &[&name], &(), &body)?;
        }
        done += 1;
    }
    let would = if cx.global.dry_run { "would import" } else { "imported" };
    cx.out.remark(&format!("{would} {done}, skipped {skipped}"));
    Ok(())
}

/// A value, or a value with its description, as Airflow and our own export write it.
fn body_of(value: Value) -> KeptPut {
    let described = value.as_object().filter(|fields| {
        fields.contains_key("value")
            && fields.keys().all(|name| name == "value" || name == "description")
    });
    match described {
        Some(fields) => KeptPut {
            value: fields["value"].clone(),
            description: fields.get("description").and_then(Value::as_str).map(Into::into),
        },
        None => KeptPut { value, description: None },
    }
}

fn export(cx: &Cx, noun: &Noun, file: &Path) -> Outcome<()> {
    let client = cx.client()?;
    let query = KeptQuery { reveal: true, ..KeptQuery::default() };
    let mut all = Map::new();
    for item in client.list(noun.list, &[], &query, None)? {
        let entry: Entry = typed(item)?;
        if let Some(trouble) = entry.trouble {
            let text = format!("{} `{}`: {trouble}", noun.word, entry.name);
            return Err(CliError::new(Exit::Conflict, text));
        }
        let value = json!({ "value": entry.value, "description": entry.description });
        all.insert(entry.name, value);
    }
    let count = all.len();
    let text = serde_json::to_string_pretty(&all).map_err(|e| CliError::usage(e.to_string()))?;
    if file.as_os_str() == "-" {
        return cx.out.print(&format!("{text}\n"));
    }
    let write = || -> std::io::Result<()> {
        // A new file: one that others can read already would stay so.
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(file)?;
        writeln!(file, "{text}")
    };
    write().map_err(|error| CliError::usage(format!("{}: {error}", file.display())))?;
    cx.out.remark(&format!("exported {count} to {}, in the clear", file.display()));
    Ok(())
}

/// A file or standard input, without the end of its last line.
fn read(file: &Path) -> Outcome<String> {
    let mut text = String::new();
    let read = if file.as_os_str() == "-" {
        std::io::stdin().lock().take(LARGEST).read_to_string(&mut text)
    } else {
        File::open(file).and_then(|file| file.take(LARGEST).read_to_string(&mut text))
    };
    read.map_err(|error| CliError::usage(format!("{}: {error}", file.display())))?;
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}
