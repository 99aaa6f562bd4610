//! The address of a store: what PostgreSQL's own programs take, and how far TLS is asked for.

use crate::error::{StoreError, StoreErrorKind};
use std::path::PathBuf;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

/// How the server is known before anything is said to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trust {
    /// It is not: the line is encrypted at most.
    Anybody,
    /// By a certificate for its name, signed by one of those in the file (or of the system's).
    Certificate(Option<PathBuf>),
}

/// Where a store is, and how it is spoken to.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) config: Config,
    pub(crate) trust: Trust,
}

impl Target {
    /// Reads `postgres://...`. `sslmode` may also be `verify-full`, with `sslrootcert=PATH|system`,
    /// which the library does not know.
    pub(crate) fn parse(url: &str) -> Result<Self, StoreError> {
        let wrong = |why: String| StoreError::new(StoreErrorKind::Setup, "open", why);
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(wrong("it does not begin with postgres://".into()));
        }
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut kept, mut mode, mut root) = (Vec::new(), None, None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value),
                Some(("sslrootcert", value)) => root = Some(decoded(value)),
                _ => kept.push(pair),
            }
        }
        let rest = [address, &kept.join("&")].join(if kept.is_empty() { "" } else { "?" });
        let mut config: Config =
            rest.parse().map_err(|error| wrong(super::wrong("open", &error).message))?;
        let trust = match mode {
            None | Some("prefer" | "disable" | "require") => Trust::Anybody,
            Some("verify-full") => {
                let file = root.as_deref().filter(|root| *root != "system").map(PathBuf::from);
                Trust::Certificate(file)
            }
            Some(other) => {
                let known = "disable, prefer, require or verify-full";
                return Err(wrong(format!("sslmode `{other}` is not one of {known}")));
            }
        };
        match mode {
            Some("disable") => config.ssl_mode(SslMode::Disable),
            Some("require" | "verify-full") => config.ssl_mode(SslMode::Require),
            _ => config.ssl_mode(SslMode::Prefer),
        };
        if root.is_some() && trust == Trust::Anybody {
            return Err(wrong("sslrootcert is of use with sslmode=verify-full only".into()));
        }
        Ok(Self { config, trust })
    }

    /// The address without its password, for messages.
    pub(crate) fn shown(&self) -> String {
        let mut hosts = Vec::new();
        for (index, host) in self.config.get_hosts().iter().enumerate() {
            let port = self.config.get_ports().get(index).or(self.config.get_ports().first());
            let port = port.map_or_else(String::new, |port| format!(":{port}"));
            hosts.push(match host {
                tokio_postgres::config::Host::Tcp(name) => format!("{name}{port}"),
                tokio_postgres::config::Host::Unix(path) => format!("{}{port}", path.display()),
            });
        }
        format!("{}/{}", hosts.join(","), self.config.get_dbname().unwrap_or_default())
    }
}

/// `%xx` of a value of the query.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = hex.filter(|_| *first == b'%').and_then(|two| u8::from_str_radix(two, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Target {
        Target::parse(url).unwrap()
    }

    #[test]
    fn tls_is_asked_for_as_postgres_does_and_a_name_can_be_verified() {
        let mode = |url: &str| target(url).config.get_ssl_mode();
        assert_eq!(mode("postgres://u@h/db"), SslMode::Prefer);
        assert_eq!(mode("postgres://u@h/db?sslmode=disable"), SslMode::Disable);
        assert_eq!(mode("postgres://u@h/db?sslmode=require&application_name=x"), SslMode::Require);
        let verified = target("postgresql://u@h/db?sslrootcert=%2Fca%20s.pem&sslmode=verify-full");
        assert_eq!(verified.config.get_ssl_mode(), SslMode::Require);
        assert_eq!(verified.trust, Trust::Certificate(Some("/ca s.pem".into())));
        let system = target("postgres://u@h/db?sslmode=verify-full&sslrootcert=system");
        assert_eq!(system.trust, Trust::Certificate(None));
    }

    #[test]
    fn a_wrong_address_is_refused_and_no_password_is_shown() {
        for (url, why) in [
            ("sqlite:x", "postgres://"),
            ("postgres://u@h/db?sslmode=maybe", "sslmode `maybe`"),
            ("postgres://u@h/db?sslmode=require&sslrootcert=x", "verify-full only"),
            ("postgres://u@h:x/db", "option `port`"),
            ("postgres://u@h/db?no_such_key=1", "no_such_key"),
        ] {
            let error = Target::parse(url).unwrap_err();
            assert_eq!(error.kind, StoreErrorKind::Setup);
            assert!(error.message.contains(why), "{url}: {error}");
        }
        let shown = target("postgres://me:secret@one:5,two:6/db").shown();
        assert_eq!(shown, "one:5,two:6/db");
    }
}
