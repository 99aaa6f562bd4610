//! Where a server is: `http://HOST:PORT`, `https://HOST`.

/// An address that nothing can be called at.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// Not of that form.
    #[error("`{0}` is not the address of a server (write http://HOST:PORT or https://HOST:PORT)")]
    Form(String),
    /// A certificate file without a usable certificate.
    #[error("the certificates to trust cannot be used: {0}")]
    Certificates(String),
    /// https, and nobody to trust.
    #[error("https needs certificates to trust: name a file with them (--ca, [worker] server_ca)")]
    NobodyToTrust,
}

/// A server's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) tls: bool,
    pub(super) host: String,
    pub(super) port: u16,
}

impl Address {
    pub(super) fn parse(url: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError::Form(url.to_owned());
        let (tls, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return Err(wrong()),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = split(authority).ok_or_else(wrong)?;
        let port = match port {
            Some(port) => port.parse().map_err(|_| wrong())?,
            None if tls => 443,
            None => 80,
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
        if host.is_empty() || !host.chars().all(plain) {
            return Err(wrong());
        }
        Ok(Self { tls, host: host.to_owned(), port })
    }

    /// `HOST:PORT`, as a `Host` header has it.
    pub(super) fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// Host and port; an IPv6 address stands in brackets.
fn split(authority: &str) -> Option<(&str, Option<&str>)> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        return match rest {
            "" => Some((host, None)),
            rest => Some((host, Some(rest.strip_prefix(':')?))),
        };
    }
    match authority.split_once(':') {
        Some((_, port)) if port.contains(':') => None,
        Some((host, port)) => Some((host, Some(port))),
        None => Some((authority, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_or_refused() {
        let read = |url: &str| Address::parse(url).map(|a| (a.tls, a.authority())).ok();
        for (url, tls, authority) in [
            ("http://127.0.0.1:7373", false, "127.0.0.1:7373"),
            ("http://host/", false, "host:80"),
            ("https://a.example", true, "a.example:443"),
            ("https://[::1]:8443", true, "[::1]:8443"),
        ] {
            assert_eq!(read(url), Some((tls, authority.into())), "{url}");
        }
        for url in [
            "",
            "host:1",
            "ftp://x",
            "http://",
            "http://a b",
            "http://::1:80",
            "http://h:99999",
            "http://h/path",
            "http://user@h",
        ] {
            assert_eq!(read(url), None, "{url}");
        }
    }
}
