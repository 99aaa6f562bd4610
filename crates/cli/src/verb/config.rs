//! `fencepost config`: effective values with their origin, contradictions, what a key means.

use crate::config::keys::{Fallback, KEYS, Key};
use crate::config::{Settings, lint, refuse};
use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::nearest::nearest;
use clap::Subcommand;
use fencepost_api::rest::{ConfigValue, routes};
use serde_json::{Value, json};

/// Show, check and explain the configuration
#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// List every key with its value and where that comes from
    #[command(
        after_help = "Examples:\n  fencepost config list\n  FENCEPOST__WORKER__SLOTS=8 fencepost config list -o json"
    )]
    List {
        /// What the running server uses, instead of what is configured here
        #[arg(long)]
        remote: bool,
    },
    /// Print the value of one key
    #[command(after_help = "Example:\n  fencepost config get worker.lease_ttl")]
    Get {
        /// `section.key`
        key: String,
    },
    /// Find contradictions; exit 2 if there are any
    #[command(after_help = "Example:\n  fencepost config lint --config fencepost.toml")]
    Lint,
    /// Say what a key means and where its value comes from
    #[command(after_help = "Example:\n  fencepost config explain worker.self_fence")]
    Explain {
        /// `section.key`
        key: String,
    },
}

/// Does it.
pub(super) fn run(cx: &Cx, verb: Config) -> Outcome {
    match verb {
        Config::List { remote: true } => {
            let client = cx.client()?;
            let items = client.list(routes::CONFIG, &[], &(), None)?;
            cx.out.list::<ConfigValue>(items, client.now())?;
        }
        Config::List { remote: false } => {
            let settings = load(cx)?;
            let items = settings.all().map(|(key, setting)| row(key, setting));
            cx.out.list::<ConfigValue>(items.collect(), crate::clock::now())?;
        }
        Config::Get { key } => {
            let key = find(&key)?;
            let value = load(cx)?.text(key.name).map(|value| key.shown(value));
            if !cx.out.data(&json!({"key": key.name, "value": value}))? {
                cx.out.print(&format!("{}\n", value.unwrap_or_default()))?;
            }
        }
        Config::Lint => return lint_all(cx),
        Config::Explain { key } => explain(cx, find(&key)?)?,
    }
    Ok(Exit::Done)
}

fn load(cx: &Cx) -> Outcome<Settings> {
    Settings::load(&cx.home(), cx.global.config.as_ref(), &cx.env, Vec::new())
        .map_err(|errors| refuse(&errors))
}

fn find(name: &str) -> Outcome<&'static Key> {
    Key::find(name).ok_or_else(|| {
        let error = CliError::new(Exit::NotFound, format!("there is no key `{name}`"));
        match nearest(name, KEYS.iter().map(|key| key.name)) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint("see  fencepost config list"),
        }
    })
}

/// A key without a set value shows how its default comes about.
fn row(key: &Key, setting: &crate::config::Setting) -> Value {
    let value = match (&setting.value, key.default) {
        (None, Fallback::Computed(how)) => Some(format!("({how})")),
        (value, _) => value.as_deref().map(|value| key.shown(value)),
    };
    let place = match setting.place.origin() {
        "default" => None,
        _ => Some(setting.place.to_string()),
    };
    json!({
        "key": key.name, "value": value, "origin": setting.place.origin(), "origin_detail": place,
    })
}

fn lint_all(cx: &Cx) -> Outcome {
    let findings = lint::lint(&load(cx)?);
    if !cx.out.data(&findings)? {
        for finding in &findings {
            cx.out.print(&format!("{}\n    write  {}\n", finding.message, finding.mend))?;
        }
        if findings.is_empty() {
            cx.out.remark("no contradictions");
        }
    }
    Ok(if findings.is_empty() { Exit::Done } else { Exit::Usage })
}

fn explain(cx: &Cx, key: &'static Key) -> Outcome<()> {
    let settings = load(cx)?;
    let Some((_, setting)) = settings.all().find(|(other, _)| other.name == key.name) else {
        return Ok(());
    };
    let default = match key.default {
        Fallback::Value(text) => text.to_owned(),
        Fallback::InHome(text) => text.replace("{home}", "$FENCEPOST_HOME"),
        Fallback::Computed(how) => how.into(),
        Fallback::Unset => "not set".into(),
    };
    let value = setting.value.as_deref().map(|value| key.shown(value));
    let data = json!({
        "key": key.name, "about": key.about, "kind": key.kind.in_words(), "default": default,
        "variable": key.variable(), "value": value, "origin": setting.place.origin(),
        "place": setting.place.to_string(),
    });
    if cx.out.data(&data)? {
        return Ok(());
    }
    let value = value.as_deref().unwrap_or(&default);
    cx.out.print(&format!(
        "{}: {}\n  value    {value}  (from {})\n  default  {default}\n  is       {}\n  \
         variable {}\n",
        key.name,
        key.about,
        setting.place,
        key.kind.in_words(),
        key.variable()
    ))
}
