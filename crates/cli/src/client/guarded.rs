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

/// An agent for such requests.
pub(crate) fn agent(rules: Rules, tls: Option<TlsConfig>) -> ureq::Agent {
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .proxy(None)
        .max_redirects(REDIRECTS)
        .timeout_global(Some(PATIENCE))
        .user_agent(concat!("fencepost/", env!("CARGO_PKG_VERSION")))
        .tls_config(tls.unwrap_or_default())
        .build();
    // The addresses that were judged are the ones that are dialled: no name is resolved twice.
    ureq::Agent::with_parts(config, DefaultConnector::default(), Guarded { rules })
}

/// Resolves names to addresses that may be reached.
#[derive(Debug)]
struct Guarded {
    rules: Rules,
}

impl Resolver for Guarded {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let refused = |why: String| {
            ureq::Error::Io(std::io::Error::new(std::io::ErrorKind::PermissionDenied, why))
        };
        let found = DefaultResolver::default().resolve(uri, config, timeout)?;
        // One forbidden address is enough: which of them is dialled is not ours to say.
        for address in &found {
            self.rules.judge(&host, address.ip()).map_err(refused)?;
        }
        Ok(found)
    }
}

/// What may be reached: public addresses, and what is allowed beside them, but nothing that is denied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    allow: Vec<Place>,
    deny: Vec<Place>,
}

/// A host by name, or a network.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Host(String),
    Network(IpAddr, u8),
}

impl Place {
    fn parse(text: &str) -> Self {
        let text = text.trim().trim_matches(['[', ']']);
        let (address, bits) = text.split_once('/').unwrap_or((text, ""));
        match (address.parse::<IpAddr>(), bits) {
            (Ok(ip), "") => Self::Network(ip, if ip.is_ipv4() { 32 } else { 128 }),
            (Ok(ip), bits) => match bits.parse() {
                Ok(bits) => Self::Network(ip, bits),
                Err(_) => Self::Host(text.to_ascii_lowercase()),
            },
            (Err(_), _) => Self::Host(text.to_ascii_lowercase()),
        }
    }

    fn is_host(&self, host: &str) -> bool {
        // A dot at the end says that a name is whole, and is the same name.
        let bare = |name: &str| name.trim_end_matches('.').to_ascii_lowercase();
        matches!(self, Self::Host(name) if bare(name) == bare(host))
    }

    fn holds(&self, ip: IpAddr) -> bool {
        let within = |a: u128, b: u128, width: u32, bits: u8| {
            let rest = width.saturating_sub(bits.into());
            rest >= width || (a ^ b).checked_shr(rest).unwrap_or(0) == 0
        };
        match (self, ip) {
            (Self::Network(IpAddr::V4(own), bits), IpAddr::V4(ip)) => {
                within(u32::from(*own).into(), u32::from(ip).into(), 32, *bits)
            }
            (Self::Network(IpAddr::V6(own), bits), IpAddr::V6(ip)) => {
                within(u128::from(*own), u128::from(ip), 128, *bits)
            }
            _ => false,
        }
    }
}

impl Rules {
    /// From lists of hosts, addresses and networks, with commas between them.
    pub(crate) fn of(allow: &[&str], deny: &str) -> Self {
        let places = |text: &str| -> Vec<Place> {
            text.split(',').filter(|one| !one.trim().is_empty()).map(Place::parse).collect()
        };
        Self { allow: allow.iter().flat_map(|text| places(text)).collect(), deny: places(deny) }
    }

    /// The same for a host that the operator named, which may lie anywhere but at a link-local address.
    pub(crate) fn judge_own(&self, host: &str, ip: IpAddr) -> Result<(), String> {
        let named = Self { allow: vec![Place::Host(host.into())], deny: self.deny.clone() };
        self.judge(host, ip).or_else(|_| named.judge(host, ip))
    }

    /// Whether that address of that host may be reached; if not, why.
    pub(crate) fn judge(&self, host: &str, ip: IpAddr) -> Result<(), String> {
        let ip = inner_v4(ip).map_or(ip, IpAddr::V4);
        let is = |places: &[Place]| places.iter().any(|one| one.holds(ip));
        let named = |places: &[Place]| places.iter().any(|one| one.is_host(host));
        if is(&self.deny) || named(&self.deny) {
            return Err(format!("`{host}` at {ip} is denied by [http] deny"));
        }
        if is(&self.allow) || is_public(&SocketAddr::new(ip, 0)) {
            return Ok(());
        }
        // A name that is allowed may turn to any address: never to that of a cloud's metadata.
        if named(&self.allow) && !is_link_local(ip) {
            return Ok(());
        }
        Err(format!(
            "`{host}` lies at {ip}, which is no public address: [http] allow names hosts and \
             networks that are meant"
        ))
    }
}

fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => (ip.segments()[0] & 0xffc0) == 0xfe80,
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

/// The address of version 4 that one of version 6 leads to: mapped, compatible, NAT64 and 6to4.
fn inner_v4(ip: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(ip) = ip else { return None };
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match ip.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] if high != 0 => Some(v4(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(v4(high, low)),
        [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    }
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let segments = ip.segments();
    if let Some(inner) = inner_v4(IpAddr::V6(ip)) {
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
        let refused = agent(Rules::default(), None).get(&url).call().unwrap_err();
        assert!(refused.to_string().contains("no public address"), "{refused}");
        let answer = agent(Rules::of(&["127.0.0.1"], ""), None).get(&url).call().unwrap();
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
        let refused = agent(Rules::of(&["localhost"], ""), None).get(&url).call().unwrap_err();
        assert!(refused.to_string().contains("no public address"), "{refused}");
    }

    #[test]
    fn names_and_networks_are_allowed_and_denied() {
        let rules = Rules::of(&["mail.corp, 10.0.0.0/8", "::1"], "10.9.0.0/16,bad.example");
        let judge = |host: &str, ip: &str| rules.judge(host, ip.parse().unwrap()).is_ok();
        assert!(judge("any", "10.1.2.3"));
        assert!(judge("any", "::1"));
        assert!(judge("MAIL.corp", "192.168.1.1"));
        assert!(judge("any", "93.184.216.34"));
        for (host, ip) in [
            ("any", "192.168.1.1"),
            ("any", "10.9.1.1"),
            ("any", "::ffff:10.9.1.1"),
            ("bad.example", "93.184.216.34"),
            // An allowed name that turned to the metadata service.
            ("mail.corp", "169.254.169.254"),
            ("mail.corp", "fe80::1"),
            ("any", "127.0.0.1"),
        ] {
            assert!(!judge(host, ip), "{host} {ip}");
        }
        // By its address it may be meant.
        let meant = Rules::of(&["169.254.169.254"], "");
        assert!(meant.judge("any", "169.254.169.254".parse().unwrap()).is_ok());
    }
}
