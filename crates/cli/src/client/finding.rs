//! Which server, and with which token.
//!
//! Address: `--server`, `--context`, `FENCEPOST_SERVER`, the context in use, else what the local
//! standalone wrote to `$FENCEPOST_HOME/server`. Token: `--token-file`, `FENCEPOST_TOKEN`, the
//! context's (for the context's own server only), else the owner-only file `$FENCEPOST_HOME/token`,
//! which is sent to loopback addresses only.

use super::{Context, Contexts};
use crate::environment::Environment;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::global::Global;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use ureq::tls::TlsConfig;

/// An address and what it takes to be let in.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    /// `http://HOST:PORT` or `https://...`, without a slash at the end.
    pub(crate) base: String,
    pub(crate) token: Option<String>,
    /// With https.
    pub(crate) tls: Option<TlsConfig>,
    /// Where the address came from, for the message when nobody is there.
    origin: String,
}

impl Server {
    /// As flags, environment and home say.
    pub(crate) fn find(global: &Global, env: &Environment) -> Outcome<Self> {
        let home = env.home(global.home.as_ref());
        if let Some(flag) = &global.server {
            return Self::at(flag, "--server".into(), global, env);
        }
        let variable = env.get("FENCEPOST_SERVER").filter(|_| global.context.is_none());
        if let Some(variable) = variable {
            return Self::at(variable, "FENCEPOST_SERVER".into(), global, env);
        }
        if let Some((name, context)) = Contexts::chosen(global, env)? {
            return Self::of_context(&name, &context, global, env);
        }
        let file = home.join("server");
        Self::at(&local_address(&file)?, file.display().to_string(), global, env)
    }

    fn at(address: &str, origin: String, global: &Global, env: &Environment) -> Outcome<Self> {
        let base = base_of(address)?;
        let home = env.home(global.home.as_ref());
        let token = find_token(global, env, &home, is_loopback(&base))?;
        let named = env.get("FENCEPOST_CA").map(PathBuf::from);
        let tls = super::tls(&base, global.ca.as_ref().or(named.as_ref()).map(PathBuf::as_path))?;
        Ok(Self { base, token, tls, origin })
    }

    /// The server of a context, with the context's token unless another one is given.
    pub(crate) fn of_context(
        name: &str,
        context: &Context,
        global: &Global,
        env: &Environment,
    ) -> Outcome<Self> {
        let own = context.token_file.clone();
        let given = global.token_file.is_some() || env.get("FENCEPOST_TOKEN").is_some();
        let token_file = if given { global.token_file.clone() } else { own };
        let global = Global { token_file, ..global.clone() };
        Self::at(&context.server, format!("context `{name}`"), &global, env)
    }

    /// Nobody answers, or not in time.
    pub(crate) fn unreachable(&self, error: &ureq::Error) -> CliError {
        let late = matches!(error, ureq::Error::Timeout(_));
        let what = if late { "does not answer in time" } else { "cannot be reached" };
        CliError::new(Exit::Unreachable, format!("the server at {} {what}: {error}", self.base))
            .hint(format!("its address comes from {}", self.origin))
            .hint(HOW_TO_START)
    }

    /// Something answers that is not our server.
    pub(crate) fn foreign(&self, error: &str) -> CliError {
        CliError::new(Exit::Unexpected, format!("{} is not a fencepost server: {error}", self.base))
            .hint(format!("its address comes from {}", self.origin))
    }
}

const HOW_TO_START: &str =
    "start one:  fencepost standalone      or name one:  --server http://HOST:7373";

fn local_address(file: &Path) -> Outcome<String> {
    match std::fs::read_to_string(file) {
        Ok(text) if !text.trim().is_empty() => Ok(text.trim().into()),
        Ok(_) | Err(_) => {
            let message = format!("no server runs here ({} is not there)", file.display());
            Err(CliError::new(Exit::Unreachable, message).hint(HOW_TO_START))
        }
    }
}

/// `host:port` or a URL into `http://host:port` or `https://host:port`.
fn base_of(address: &str) -> Outcome<String> {
    let address = address.trim_end_matches('/');
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme @ ("http" | "https"), rest)) => (scheme, rest),
        Some((scheme, _)) => {
            return Err(CliError::usage(format!("not an http address: {scheme}://…")));
        }
        None => ("http", address),
    };
    if rest.is_empty() || rest.contains(['/', '?', '#', '@', ' ']) {
        return Err(CliError::usage(format!("not the address of a server: `{address}`"))
            .hint("write http://HOST:PORT"));
    }
    Ok(format!("{scheme}://{rest}"))
}

/// Whether what is sent there stays on this host.
fn is_loopback(base: &str) -> bool {
    let authority = base.split_once("://").map_or(base, |(_, authority)| authority);
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(""),
        None => authority.split(':').next().unwrap_or(""),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn find_token(
    global: &Global,
    env: &Environment,
    home: &Path,
    loopback: bool,
) -> Outcome<Option<String>> {
    if let Some(file) = &global.token_file {
        return read_token(file).map(Some);
    }
    if let Some(token) = env.get("FENCEPOST_TOKEN") {
        return Ok(Some(token.trim().into()));
    }
    let file = home.join("token");
    if !loopback || !file.exists() {
        return Ok(None);
    }
    check_owner_only(&file)?;
    read_token(&file).map(Some)
}

fn read_token(file: &Path) -> Outcome<String> {
    let failed = |why: String| {
        CliError::new(
            Exit::NotAllowed,
            format!("cannot use the token in {}: {why}", file.display()),
        )
    };
    let text = std::fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
    let token = text.trim();
    let sendable = |byte: u8| byte.is_ascii_graphic();
    if token.is_empty() || !token.bytes().all(sendable) {
        return Err(failed("it is not one word of printable characters".into()));
    }
    Ok(token.into())
}

/// The bits of a mode that are about group and others.
const OTHERS_BITS: u32 = 6;

/// A token that others can read is no credential.
fn check_owner_only(file: &Path) -> Outcome<()> {
    let Ok(data) = std::fs::metadata(file) else { return Ok(()) };
    let ours = data.uid() == rustix::process::geteuid().as_raw();
    if ours && data.mode().trailing_zeros() >= OTHERS_BITS {
        return Ok(());
    }
    let message = format!("{} must be yours alone (mode 0600)", file.display());
    Err(CliError::new(Exit::NotAllowed, message)
        .hint(format!("chmod 600 {0}, or give another token with --token-file", file.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn addresses_are_read_generously_and_others_refused() {
        for (text, want) in [
            ("127.0.0.1:7373", Some("http://127.0.0.1:7373")),
            ("http://[::1]:7373/", Some("http://[::1]:7373")),
            ("https://x:1/", Some("https://x:1")),
            ("ftp://x", None),
            ("http://user@x", None),
            ("", None),
        ] {
            assert_eq!(base_of(text).ok().as_deref(), want, "{text}");
        }
        for (base, want) in [
            ("http://127.0.0.1:1", true),
            ("http://127.8.8.8:1", true),
            ("http://[::1]:1", true),
            ("https://127.0.0.1:1", true),
            ("https://example:1", false),
            ("http://localhost:1", true),
            ("http://127.0.0.1.evil.example:1", false),
            ("http://10.0.0.1:1", false),
        ] {
            assert_eq!(is_loopback(base), want, "{base}");
        }
    }

    #[test]
    fn the_homes_token_is_for_loopback_and_for_its_owner_only() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("token");
        std::fs::write(&file, "secret\n").unwrap();
        let find = |address: &str, variables: &[(&str, &str)]| {
            let global = Global {
                home: Some(home.path().into()),
                server: Some(address.into()),
                ..Global::default()
            };
            Server::find(&global, &Environment::of(variables)).map(|server| server.token)
        };
        let mode = |mode| std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        mode(0o600);
        assert_eq!(find("127.0.0.1:1", &[]).unwrap().as_deref(), Some("secret"));
        assert_eq!(find("10.0.0.1:1", &[]).unwrap(), None);
        let given = [("FENCEPOST_TOKEN", "other")];
        assert_eq!(find("10.0.0.1:1", &given).unwrap().as_deref(), Some("other"));
        mode(0o644);
        assert_eq!(find("127.0.0.1:1", &[]).unwrap_err().exit, Exit::NotAllowed);
    }
}
