//! From what the server says of secrets and connections to what the task is given.

use super::Shared;
use crate::attempt::{ForTask, SCRIPT};
use crate::command::{deadline_in, output_of};
use crate::private::Private;
use crate::spec::ShimSpec;
use fencepost_api::execution::{SecretFrom, Work};
use fencepost_core::connection::is_sensitive;
use fencepost_core::kept::hidden;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// Most bytes of one secret.
const MOST: u64 = 64 << 10;
/// How long the commands of one attempt may take together: well under `start_timeout`, after which the
/// claim is taken back.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whether finding its secrets may take a while.
pub(super) fn may_wait(work: &Work) -> bool {
    work.secrets.iter().any(|secret| !matches!(secret.from, SecretFrom::Value(_)))
}

/// Finds every secret, or says which one cannot be had. `place` is where its files will be.
pub(super) fn find(shared: &Shared, work: &Work, place: &Path) -> Result<Private, String> {
    let until = deadline_in(PATIENCE);
    let mut private = Private { masked: work.masked.clone(), ..Private::default() };
    for secret in &work.secrets {
        let text = value(shared, &secret.from, until, &private)
            .and_then(usable)
            .map_err(|why| format!("secret `{}`: {why}", secret.name))?;
        private.env.push((secret.name.clone(), text));
    }
    for given in &work.connections {
        let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
        let variable: String = given.name.chars().map(letter).collect();
        let variable = format!("FENCEPOST_CONN_{variable}");
        let file = format!("conn_{}.json", given.name);
        let path = place.join(&file).to_string_lossy().into_owned();
        let uri = usable(given.uri.clone());
        let uri = uri.map_err(|why| format!("connection `{}`: {why}", given.name))?;
        private.env.push((format!("{variable}_FILE"), path));
        private.env.push((variable, uri));
        private.files.push((file, given.json.to_string()));
    }
    // Each secret was given one variable, the first ones.
    let found = private.env.iter().take(work.secrets.len()).map(|(_, text)| text.clone());
    private.masked.extend(hidden(found));
    Ok(private)
}

/// Moves what holds a secret out of what is written to a disk: variables, arguments, the script.
pub(super) fn withdraw(
    private: &mut Private,
    place: &Path,
    spec: &mut ShimSpec,
    files: &mut ForTask,
) {
    let masked = private.masked.clone();
    let is_secret = |text: &str| masked.iter().any(|secret| text.contains(secret));
    let env = std::mem::take(&mut spec.env);
    let (secret, plain): (Vec<_>, Vec<_>) =
        env.into_iter().partition(|(_, value)| is_secret(value));
    spec.env = plain;
    // What was given by name goes over what a template made.
    private.env.splice(0..0, secret);
    if let Some(script) = files.script.take_if(|script| is_secret(script)) {
        let path = place.join(SCRIPT).to_string_lossy().into_owned();
        private.files.push((SCRIPT.into(), script));
        if let Some(last) = spec.argv.last_mut() {
            *last = path;
        }
    }
    if spec.argv.iter().any(|word| is_secret(word)) {
        let hidden = spec.argv.iter().map(|word| if is_secret(word) { "***" } else { word });
        let hidden = hidden.map(ToOwned::to_owned).collect();
        private.argv = std::mem::replace(&mut spec.argv, hidden);
    }
}

/// What a process can be handed.
fn usable(text: String) -> Result<String, String> {
    if text.contains('\0') { Err("it holds a NUL byte".into()) } else { Ok(text) }
}

/// `before`: what was found already, which no message may tell.
fn value(
    shared: &Shared,
    from: &SecretFrom,
    until: u64,
    before: &Private,
) -> Result<String, String> {
    match from {
        SecretFrom::Value(text) => Ok(text.clone()),
        SecretFrom::Env(name) => {
            let found = shared.settings.host_env.iter().find(|(known, _)| known == name);
            let missing = || format!("the worker's environment has no `{name}`");
            found.map(|(_, value)| value.clone()).ok_or_else(missing)
        }
        SecretFrom::File(path) => read(Path::new(path)).map_err(|why| format!("`{path}`: {why}")),
        SecretFrom::Exec(command) => {
            let env: Vec<(String, String)> = shared.settings.allowed_env().collect();
            // A vault's own token is in the environment of its command.
            let own = env.iter().filter(|(name, _)| is_sensitive(name));
            let found = before.env.iter().chain(own).map(|(_, text)| text.clone());
            let secrets: Vec<String> =
                hidden(found).into_iter().chain(before.masked.iter().cloned()).collect();
            let printed = output_of(command, &env, &secrets, (MOST, until));
            let printed = printed.and_then(|bytes| text(bytes).map_err(String::from));
            printed.map_err(|why| format!("its command {why}"))
        }
    }
}

fn read(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    // A pipe that nobody writes to would never be open.
    let nonblock = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(nonblock).open(path);
    let file = file.map_err(|error| error.to_string())?;
    if !file.metadata().is_ok_and(|about| about.is_file()) {
        return Err("no regular file".into());
    }
    file.take(MOST + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MOST {
        return Err(format!("more than {MOST} bytes"));
    }
    text(bytes).map_err(String::from)
}

/// Without the line end that editors and commands add.
fn text(bytes: Vec<u8>) -> Result<String, &'static str> {
    let mut text = String::from_utf8(bytes).map_err(|_| "gives no UTF-8 text")?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}
