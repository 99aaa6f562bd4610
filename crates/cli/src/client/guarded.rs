//! Requests that the installation makes because a DAG says so (SSRF): the one place for their rules.
//!
//! Whoever may write a DAG must not reach through us what only we can reach: this host, private and
//! link-local networks, the metadata service of a cloud. Names are resolved here and the addresses are
//! judged, of the first request and of every redirect, so no name and no redirect leads around that;
//! there is no proxy that would resolve them elsewhere. Hosts that are meant are allowed by name.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::tls::TlsConfig;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

/// No request takes longer, redirects and body included.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// No more of an answer is read.
pub(crate) const BODY_MAX: u64 = 1 << 20;
const REDIRECTS: u32 = 5;

/// An agent for such requests. `allowed`: hosts that may lie anywhere.
pub(crate) fn agent(allowed: Vec<String>, tls: Option<TlsConfig>) -> ureq::Agent {
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .proxy(None)
        .max_redirects(REDIRECTS)
        .timeout_global(Some(PATIENCE))
        .user_agent(concat!("fencepost/", env!("CARGO_PKG_VERSION")))
        .tls_config(tls.unwrap_or_default())
        .build();
    ureq::Agent::with_parts(config, DefaultConnector::default(), Guarded { allowed })
}

/// Resolves names to addresses that may be reached.
#[derive(Debug)]
struct Guarded {
    allowed: Vec<String>,
}

impl Resolver for Guarded {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = DefaultResolver::default().resolve(uri, config, timeout)?;
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        if self.allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(host)) {
            return Ok(found);
        }
        // One forbidden address is enough: which of them is dialled is not ours to say.
        match found.iter().find(|address| !is_public(address)) {
            Some(address) => Err(ureq::Error::Io(std::io::Error::new(
                std::io::ErrorKind::PermissionDenied,
                format!(
                    "`{host}` lies at {}, which is no public address: [triggerer] allow_hosts \
                     names hosts that are meant",
                    address.ip()
                ),
            ))),
            None => Ok(found),
        }
    }
}

fn is_public(address: &SocketAddr) -> bool {
    match address.ip() {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let is_shared = a == 100 && (64..128).contains(&b);
    let is_special = a == 0 || a >= 240 || (a == 192 && b == 0 && c == 0);
    let is_benchmark = a == 198 && (b == 18 || b == 19);
    !(ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_multicast()
        || ip.is_broadcast()
        || ip.is_documentation()
        || is_shared
        || is_special
        || is_benchmark)
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let segments = ip.segments();
    // Addresses that lead to one of version 4: mapped, compatible, NAT64 and 6to4.
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    let inner = match segments {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] if high != 0 => Some(v4(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(v4(high, low)),
        [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    };
    if let Some(inner) = inner {
        return is_public_v4(inner);
    }
    // Global unicast is 2000::/3; documentation and benchmarks lie inside it.
    (segments[0] & 0xe000) == 0x2000 && !(segments[0] == 0x2001 && segments[1] == 0xdb8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_reached() {
        for (text, public) in [
            ("93.184.216.34", true),
            ("127.0.0.1", false),
            ("10.1.2.3", false),
            ("172.31.0.1", false),
            ("192.168.1.1", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("0.0.0.0", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("2606:2800:220:1::1", true),
            ("::1", false),
            ("::", false),
            ("fe80::1", false),
            ("fc00::1", false),
            ("ff02::1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:169.254.169.254", false),
            ("64:ff9b::a9fe:a9fe", false),
            ("2002:7f00:1::", false),
        ] {
            let address = SocketAddr::new(text.parse().unwrap(), 80);
            assert_eq!(is_public(&address), public, "{text}");
        }
    }

    #[test]
    fn a_request_to_this_host_is_refused_unless_the_host_is_allowed() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let answers = std::thread::spawn(move || {
            use std::io::{Read, Write};
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).unwrap();
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
        });
        let refused = agent(Vec::new(), None).get(&url).call().unwrap_err();
        assert!(refused.to_string().contains("no public address"), "{refused}");
        let answer = agent(vec!["127.0.0.1".into()], None).get(&url).call().unwrap();
        assert_eq!(answer.status().as_u16(), 204);
        answers.join().unwrap();
    }

    #[test]
    fn a_redirect_is_judged_like_the_first_request() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            use std::io::{Read, Write};
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).unwrap();
            let to =
                "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(to.as_bytes()).unwrap();
        });
        let url = format!("http://localhost:{port}/");
        let refused = agent(vec!["localhost".into()], None).get(&url).call().unwrap_err();
        assert!(refused.to_string().contains("no public address"), "{refused}");
    }
}
