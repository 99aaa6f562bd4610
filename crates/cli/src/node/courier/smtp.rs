//! A mail handed to a server: the part of SMTP (RFC 5321) that a sender needs, with STARTTLS (RFC 3207)
//! or TLS from the start, and AUTH PLAIN or LOGIN. Credentials cross only what is encrypted, or a
//! connection that was asked to be in the clear.
//!
//! The server is the operator's word (the configuration, or a connection), never a DAG's: private
//! addresses are as good as any, but link-local ones and those that are denied are not. The address that
//! was judged is the one that is dialled.

pub(super) mod timed;

use self::timed::{Deadline, Timed, look_up};
use super::mail::Message;
use crate::client::guarded::Rules;
use crate::config::Settings;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fencepost_core::connection::Connection;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long one of a server's addresses may take to let us in: the next one may be quicker.
const CONNECT: Duration = Duration::from_secs(6);
/// Longest line of an answer, and most of its lines.
const LINE_MAX: usize = 2_000;
const LINES_MAX: usize = 100;

/// How a connection is made safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Security {
    Starttls,
    Tls,
    None,
}

impl Security {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "starttls" => Some(Self::Starttls),
            "tls" => Some(Self::Tls),
            "none" => Some(Self::None),
            _ => None,
        }
    }
}

/// A mail server, and who we are there.
#[derive(Clone)]
pub(super) struct Server {
    host: Option<String>,
    port: Option<u16>,
    security: Security,
    login: Option<String>,
    password: Option<String>,
    pub(super) from: Option<String>,
    ca: Option<PathBuf>,
}

impl Server {
    /// As configured.
    pub(super) fn of(settings: &Settings) -> Self {
        let text = |name: &str| settings.text(name).map(ToOwned::to_owned);
        let security = settings.text("smtp.security").and_then(Security::parse);
        Self {
            host: text("smtp.host"),
            port: settings.text("smtp.port").and_then(|port| port.parse().ok()),
            security: security.unwrap_or(Security::Starttls),
            login: text("smtp.login"),
            password: text("smtp.password"),
            from: text("smtp.from"),
            ca: settings.text("smtp.ca").map(PathBuf::from),
        }
    }

    /// Another server, which a connection names; the sender stays unless it has its own.
    pub(super) fn with(&self, connection: &Connection) -> Result<Self, String> {
        let extra = |name: &str| connection.extra.get(name).and_then(|value| value.as_str());
        let security = match extra("security") {
            Some(text) => Security::parse(text)
                .ok_or("`security` in the connection is starttls, tls or none")?,
            None if connection.port == Some(465) => Security::Tls,
            None => Security::Starttls,
        };
        let from = extra("from").or_else(|| extra("from_email")).map(ToOwned::to_owned);
        Ok(Self {
            host: connection.host.clone(),
            port: connection.port,
            security,
            login: connection.login.clone(),
            password: connection.password.clone(),
            from: from.or_else(|| self.from.clone()),
            ca: self.ca.clone(),
        })
    }

    fn port(&self) -> u16 {
        self.port.unwrap_or(match self.security {
            Security::Starttls => 587,
            Security::Tls => 465,
            Security::None => 25,
        })
    }
}

/// Hands a mail over: good once the server has taken it.
pub(super) fn send(
    server: &Server,
    rules: &Rules,
    message: &Message,
    until: Deadline,
) -> Result<(), String> {
    let host = server.host.as_deref().ok_or("no mail server: [smtp] host, or a `conn`")?;
    let talk = || -> io::Result<()> {
        let stream = connect(host, server.port(), rules, until)?;
        let mut talk = match server.security {
            Security::Tls => Talk::over(secured(stream, host, server)?),
            Security::Starttls | Security::None => Talk::over(stream),
        };
        talk.answer(&[220])?;
        let mut offers = talk.hello()?;
        if server.security == Security::Starttls {
            if !offers.iter().any(|offer| offer.eq_ignore_ascii_case("STARTTLS")) {
                return Err(io::Error::other(
                    "it offers no STARTTLS (say security none if it may)",
                ));
            }
            talk.say("STARTTLS", &[220])?;
            // What was sent in the clear before the answer is nobody's word.
            talk = Talk::over(secured(talk.into_plain()?, host, server)?);
            offers = talk.hello()?;
        }
        if let Some(login) = &server.login {
            talk.log_in(&offers, login, server.password.as_deref().unwrap_or_default())?;
        }
        talk.deliver(message)
    };
    talk().map_err(|error| format!("mail server {host}: {error}"))
}

fn connect(host: &str, port: u16, rules: &Rules, until: Deadline) -> io::Result<Timed> {
    let name = host.trim_matches(['[', ']']);
    let mut last = io::Error::other("it has no address");
    for address in look_up(name, port, until)? {
        judge(rules, name, &address)?;
        match Timed::connect(&address, CONNECT, until) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn judge(rules: &Rules, host: &str, address: &SocketAddr) -> io::Result<()> {
    rules.judge_own(host, address.ip()).map_err(io::Error::other)
}

type Secured = StreamOwned<ClientConnection, Timed>;

fn secured(stream: Timed, host: &str, server: &Server) -> io::Result<Secured> {
    let failed = |error: &dyn std::fmt::Display| io::Error::other(error.to_string());
    let pem =
        crate::node::trusted(server.ca.as_deref(), "https://").map_err(|error| failed(&error))?;
    let mut roots = RootCertStore::empty();
    for found in CertificateDer::pem_slice_iter(&pem.unwrap_or_default()).flatten() {
        // Bundles of systems hold some that rustls does not take.
        let _ = roots.add(found);
    }
    if roots.is_empty() {
        return Err(io::Error::other("TLS needs certificates to trust, and there are none"));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned());
    let name = name.map_err(|error| failed(&error))?;
    let connection = ClientConnection::new(Arc::new(config), name);
    Ok(StreamOwned::new(connection.map_err(|error| failed(&error))?, stream))
}

/// What a conversation goes over.
trait Wire: Read + Write {
    /// The connection below, if it is in the clear.
    fn into_plain(self: Box<Self>) -> Option<Timed>;
}

impl Wire for Timed {
    fn into_plain(self: Box<Self>) -> Option<Timed> {
        Some(*self)
    }
}

impl Wire for Secured {
    fn into_plain(self: Box<Self>) -> Option<Timed> {
        None
    }
}

struct Talk {
    wire: Box<dyn Wire>,
    /// What has come and was not read.
    come: Vec<u8>,
}

impl Talk {
    fn over(wire: impl Wire + 'static) -> Self {
        Self { wire: Box::new(wire), come: Vec::new() }
    }

    fn into_plain(self) -> io::Result<Timed> {
        if !self.come.is_empty() {
            return Err(io::Error::other("it went on in the clear after STARTTLS"));
        }
        self.wire.into_plain().ok_or_else(|| io::Error::other("it is encrypted already"))
    }

    fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.come.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.come.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if self.come.len() > LINE_MAX {
                return Err(io::Error::other("a line of its answer has no end"));
            }
            let mut bytes = [0; 512];
            match self.wire.read(&mut bytes)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                n => self.come.extend_from_slice(&bytes[..n]),
            }
        }
    }

    /// An answer with one of these codes: its lines without the code.
    fn answer(&mut self, good: &[u16]) -> io::Result<Vec<String>> {
        let mut lines = Vec::new();
        loop {
            let line = self.line()?;
            let code = line.get(..3).and_then(|code| code.parse().ok()).unwrap_or(0);
            lines.push(line.get(4..).unwrap_or_default().to_owned());
            if line.as_bytes().get(3) == Some(&b'-') && lines.len() < LINES_MAX {
                continue;
            }
            if good.contains(&code) {
                return Ok(lines);
            }
            let shown: String = line.chars().filter(|c| !c.is_control()).take(200).collect();
            return Err(io::Error::other(shown));
        }
    }

    fn say(&mut self, line: &str, good: &[u16]) -> io::Result<Vec<String>> {
        self.wire.write_all(format!("{line}\r\n").as_bytes())?;
        self.wire.flush()?;
        self.answer(good)
    }

    /// What it offers.
    fn hello(&mut self) -> io::Result<Vec<String>> {
        Ok(self.say("EHLO fencepost", &[250])?.split_off(1))
    }

    fn log_in(&mut self, offers: &[String], login: &str, password: &str) -> io::Result<()> {
        let auth = offers.iter().find_map(|offer| {
            let (word, ways) = offer.split_once([' ', '=']).unwrap_or((offer, ""));
            word.eq_ignore_ascii_case("AUTH").then(|| ways.to_ascii_uppercase())
        });
        let ways = auth.unwrap_or_default();
        let has = |way: &str| ways.split_whitespace().any(|one| one == way);
        if has("PLAIN") {
            let pair = STANDARD.encode(format!("\0{login}\0{password}"));
            self.say(&format!("AUTH PLAIN {pair}"), &[235])?;
        } else if has("LOGIN") {
            self.say("AUTH LOGIN", &[334])?;
            self.say(&STANDARD.encode(login), &[334])?;
            self.say(&STANDARD.encode(password), &[235])?;
        } else {
            return Err(io::Error::other("it takes neither AUTH PLAIN nor LOGIN"));
        }
        Ok(())
    }

    fn deliver(&mut self, message: &Message) -> io::Result<()> {
        self.say(&format!("MAIL FROM:<{}>", message.from), &[250])?;
        for to in &message.to {
            self.say(&format!("RCPT TO:<{to}>"), &[250, 251])?;
        }
        self.say("DATA", &[354])?;
        let mut text = String::new();
        for line in message.text.split_inclusive("\r\n") {
            if line.starts_with('.') {
                text.push('.');
            }
            text.push_str(line);
        }
        text.push('.');
        self.say(&text, &[250])?;
        // It has the mail; how it says goodbye changes nothing.
        let _ = self.say("QUIT", &[221]);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
