//! Every key of the configuration, as data: the file's reader, the environment's, the lint, the
//! documentation (`config explain`) and the help all go by this table.

use fencepost_core::time::Span;
use std::net::SocketAddr;

/// One key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    /// `section.key`.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) default: Fallback,
    pub(crate) about: &'static str,
}

/// What a value must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Path,
    /// `30s`, `5m`, `1h30m`.
    Span,
    /// A whole number within these bounds.
    Count(u32, u32),
    /// `10%`: more than nothing, at most everything.
    Share,
    /// `HOST:PORT`, an IP address and a port.
    Address,
    /// `http://...` or `https://...`.
    Url,
    /// `sqlite:PATH` or `postgres://...`.
    StoreUrl,
    /// Names, separated by commas in the environment, an array in the file.
    Names,
    OneOf(&'static [&'static str]),
}

/// The value of a key that nobody set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fallback {
    Value(&'static str),
    /// `{home}` in it is the home.
    InHome(&'static str),
    /// Computed where it is used; how, in words.
    Computed(&'static str),
    /// Off.
    Unset,
}

const fn key(name: &'static str, kind: Kind, default: Fallback, about: &'static str) -> Key {
    Key { name, kind, default, about }
}

use Fallback::{Computed, InHome, Unset, Value};
use Kind::{Address, Count, Names, OneOf, Path, Share, Span as Length, StoreUrl, Text, Url};

/// Every key, by section.
#[rustfmt::skip]
pub(crate) const KEYS: &[Key] = &[
    key("store.url", StoreUrl, InHome("sqlite:{home}/fencepost.db"), "where everything is kept"),
    key("dags.path", Path, InHome("{home}/dags"), "the folder of DAG files"),
    key("server.listen", Address, Value("127.0.0.1:7373"), "where standalone and server listen"),
    key("server.url", Url, Unset, "how tasks and workers reach the server, when that is not where it listens"),
    key("server.tls_cert", Path, Unset, "the server's certificate with its chain, PEM; with tls_key it speaks https"),
    key("server.tls_key", Path, Unset, "the key of tls_cert, PEM"),
    key("server.insecure", OneOf(&["true", "false"]), Value("false"), "listen beyond this host without TLS: tokens and data cross the network in the clear"),
    key("server.lease_ttl", Length, Value("30s"), "a server that is silent this long is lost"),
    key("scheduler.lease_ttl", Length, Value("30s"), "a scheduler that is silent this long is lost"),
    key("scheduler.heartbeat_interval", Length, Value("5s"), "between two beats of schedulers, servers and triggerers"),
    key("scheduler.scan_interval", Length, Computed("the smaller of 2s and a tenth of the shortest live lease_ttl"), "between two looks at the leases of others"),
    key("scheduler.start_timeout", Length, Value("60s"), "a claim that is not started within this is taken back"),
    key("scheduler.adoption_timeout", Length, Value("60s"), "(no effect in this version) an orphan that nobody can vouch for within this is taken back"),
    key("scheduler.requeue_limit", Count(1, 1_000), Value("20"), "dispatches of one try that never started, before it fails"),
    key("scheduler.mass_loss_threshold", Share, Value("50%"), "more workers than this expiring within one TTL wait one more (at least 3)"),
    key("scheduler.parse_interval", Length, Value("5s"), "between two looks at the DAG folder"),
    key("worker.name", Text, Computed("the host's name"), "the worker's name on pages and in events"),
    key("worker.server_ca", Path, Unset, "certificates that the worker and its tasks trust towards the server, PEM; else the system's"),
    key("worker.queues", Names, Value("default"), "the queues that it serves"),
    key("worker.slots", Count(1, 10_000), Computed("2 x cores"), "attempts that it runs at the same time"),
    key("worker.containment", OneOf(&["auto", "pidns", "cgroup", "group"]), Value("auto"), "how process trees are held together; auto: the strongest that the machine allows"),
    key("worker.python", Text, Value("python3"), "the interpreter of `python` tasks"),
    key("worker.lease_ttl", Length, Value("300s"), "a worker that is silent this long is lost"),
    key("worker.heartbeat_interval", Length, Value("5s"), "between two beats"),
    key("worker.self_fence", Length, Computed("80% of lease_ttl"), "silence after which it stops its own tasks"),
    key("worker.kill_grace", Length, Computed("the smaller of 30s and lease_ttl - self_fence - margin"), "from SIGTERM to SIGKILL at most"),
    key("worker.margin", Length, Computed("the larger of 1s and 5% of lease_ttl"), "from the last SIGKILL to the end of the lease"),
    key("worker.drain_timeout", Length, Value("30s"), "how long a restart waits for what runs"),
    key("worker.stop_timeout", Length, Value("25s"), "the same where shims cannot outlive it (PID 1 of a container, KillMode): what runs is ended, reported and released within it"),
    key("worker.orphan_ttl", Length, Value("24h"), "how long tasks of a standalone go on without it"),
    key("triggerer.capacity", Count(1, 1_000_000), Value("1000"), "most triggers that one triggerer watches; timers and approvals do not count"),
    key("triggerer.lease_ttl", Length, Value("30s"), "a triggerer that is silent this long is lost, and others watch what it watched"),
    key("triggerer.allow_hosts", Text, Unset, "the same as http.allow, whose hosts are added to it"),
    key("http.allow", Text, Unset, "hosts, addresses and networks (10.0.0.0/8), with commas between them, that callbacks and waits for http may reach though they are not public"),
    key("http.deny", Text, Unset, "those that they may not reach in any case"),
    key("smtp.host", Text, Unset, "the mail server of callbacks that name no connection"),
    key("smtp.port", Count(1, 65_535), Computed("587; with security tls 465, with none 25"), "its port"),
    key("smtp.security", OneOf(&["starttls", "tls", "none"]), Value("starttls"), "how the connection to it is made safe"),
    key("smtp.login", Text, Unset, "who we are there"),
    key("smtp.password", Text, Unset, "the password of login"),
    key("smtp.ca", Path, Unset, "the authorities that its certificate is trusted by, PEM; without it the system's"),
    key("smtp.from", Text, Unset, "the sender of mails"),
    key("callbacks.max_tries", Count(1, 1_000), Value("20"), "a callback that failed so often is dead: nobody tries again by himself"),
    key("callbacks.max_age", Length, Value("24h"), "so is one that is older than this"),
    key("recovery.initial", Share, Value("10%"), "of a pool's slots a second: with so many recovered work begins to start again"),
    key("recovery.max_rate", Count(1, 1_000_000), Computed("the pool's slots"), "most recovered starts a second and pool"),
    key("alerts.ping_url", Url, Unset, "called by each scheduler while its passes go round, so that silence is an alert"),
    key("alerts.ping_interval", Length, Value("60s"), "between two pings"),
    key("retention.runs", Length, Value("90d"), "ended runs are kept this long, unless their DAG says otherwise (retention:)"),
    key("retention.logs", Length, Value("30d"), "logs of ended attempts are kept this long, also in the homes of workers"),
    key("retention.jobs", Length, Value("7d"), "rows of ended processes are kept this long, or as long as attempts point to them"),
    key("retention.events", Length, Value("90d"), "events that are of no run, incidents and dead credentials are kept this long"),
    key("limits.log_bytes", Count(65_536, u32::MAX), Value("67108864"), "most bytes of one attempt's log; the middle is dropped"),
    key("limits.output_bytes", Count(1_024, 67_108_864), Value("1048576"), "(no effect in this version) most bytes of one attempt's outputs"),
    key("secrets.key_file", Path, InHome("{home}/secrets.key"), "keys that variables, connections and secrets are sealed with, one a line, the first seals; standalone makes it"),
    key("secrets.keys", Text, Unset, "the same keys themselves, separated by commas; they go before key_file"),
    key("metrics.listen", Address, Unset, "a second address that serves /metrics alone; a scheduler listens nowhere else unless told"),
    key("metrics.anonymous", OneOf(&["true", "false"]), Value("false"), "/metrics answers without a token"),
    key("logging.level", OneOf(&["error", "warn", "info", "debug", "trace"]), Value("info"), "what servers and schedulers write to stderr"),
    key("logging.format", OneOf(&["text", "json"]), Value("text"), "how they write it"),
];

/// Sections that exist; `auth` has no keys so far.
pub(crate) const SECTIONS: &[&str] = &[
    "store",
    "dags",
    "server",
    "scheduler",
    "worker",
    "triggerer",
    "http",
    "smtp",
    "callbacks",
    "recovery",
    "alerts",
    "retention",
    "limits",
    "auth",
    "logging",
    "metrics",
    "secrets",
];

impl Key {
    /// The key of that name.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// `FENCEPOST__WORKER__LEASE_TTL`.
    pub(crate) fn variable(&self) -> String {
        format!("FENCEPOST__{}", self.name.replace('.', "__").to_uppercase())
    }

    /// A value of it as it may be shown: a store's address may hold a password, and whoever knows
    /// where pings go can keep an alarm quiet.
    pub(crate) fn shown(&self, value: &str) -> String {
        match self.name {
            "store.url" => without_password(value),
            "secrets.keys" | "smtp.password" => "***".into(),
            "alerts.ping_url" => without_path(value),
            _ => value.to_owned(),
        }
    }
}

fn without_path(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "***".into() };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}://{host}/{}", if path.is_empty() { "" } else { "***" })
}

fn without_password(url: &str) -> String {
    let masked = || {
        let (scheme, rest) = url.split_once("://")?;
        let (user, host) = rest.rsplit_once('@')?;
        let (name, _) = user.split_once(':')?;
        Some(format!("{scheme}://{name}:***@{host}"))
    };
    let url = masked().unwrap_or_else(|| url.to_owned());
    let Some((address, query)) = url.split_once('?') else { return url };
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some(("password", _)) => "password=***",
        _ => pair,
    });
    format!("{address}?{}", pairs.collect::<Vec<_>>().join("&"))
}

impl Kind {
    /// What is wrong with `text` as a value of this kind.
    pub(crate) fn check(self, text: &str) -> Result<(), String> {
        let wanted = |good: bool, what: &str| {
            if good { Ok(()) } else { Err(format!("`{text}` is not {what}")) }
        };
        match self {
            Text | Path => wanted(!text.trim().is_empty(), "a text"),
            Length => {
                let span: Span =
                    text.parse().map_err(|e: fencepost_core::time::TimeError| e.to_string())?;
                wanted(span > Span::ZERO, "longer than nothing")
            }
            Count(least, most) => {
                let number = text.replace('_', "").parse::<u32>();
                let good = number.is_ok_and(|number| (least..=most).contains(&number));
                wanted(good, &format!("a whole number from {least} to {most}"))
            }
            Share => wanted(share(text).is_some(), "a share (write 10%)"),
            Address => wanted(
                text.parse::<SocketAddr>().is_ok(),
                "an IP address and a port (write 127.0.0.1:7373)",
            ),
            Url => {
                let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
                wanted(
                    rest.is_some_and(|rest| !rest.is_empty()),
                    "an address (write http://HOST:PORT)",
                )
            }
            StoreUrl => wanted(
                is_store_url(text),
                "a store (write sqlite:PATH or postgres://HOST/DATABASE)",
            ),
            Names => {
                let good = text
                    .split(',')
                    .all(|name| fencepost_core::id::QueueName::new(name.trim()).is_ok());
                wanted(good, "a list of names")
            }
            OneOf(words) => wanted(words.contains(&text), &format!("one of {}", words.join(", "))),
        }
    }

    /// In words, for `config explain`.
    pub(crate) fn in_words(self) -> String {
        match self {
            Text => "a text".into(),
            Path => "a path".into(),
            Length => "a duration (30s, 5m, 1h30m)".into(),
            Count(least, most) => format!("a whole number from {least} to {most}"),
            Share => "a share (10%)".into(),
            Address => "an IP address and a port".into(),
            Url => "an http address".into(),
            StoreUrl => "sqlite:PATH or postgres://HOST/DATABASE".into(),
            Names => "a list of names".into(),
            OneOf(words) => format!("one of {}", words.join(", ")),
        }
    }
}

/// Hundredths of `text`, from 1 to 100.
pub(crate) fn share(text: &str) -> Option<u32> {
    let number: u32 = text.strip_suffix('%')?.trim().parse().ok()?;
    (1..=100).contains(&number).then_some(number)
}

fn is_store_url(text: &str) -> bool {
    let rest =
        ["sqlite:", "postgres://", "postgresql://"].iter().find_map(|p| text.strip_prefix(p));
    rest.is_some_and(|rest| !rest.is_empty())
}
