//! Conversations with a small server.

use super::super::mail;
use super::*;
use fencepost_core::callback::Callback;
use fencepost_engine::callbacks::Delivery;
use fencepost_worker::clock::ClockKind;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver};

/// What a server does.
#[derive(Clone, Default)]
struct Script {
    offers: Vec<&'static str>,
    /// Answers to lines that begin so, instead of the good ones.
    refuses: Vec<(&'static str, &'static str)>,
    tls: Option<Arc<ServerConfig>>,
}

/// A server for one conversation; what it was told, line by line, once that is over.
fn server(script: Script) -> (u16, Receiver<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (told, heard) = mpsc::channel();
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut lines = Vec::new();
        // The client may go at any line.
        let _ = serve(stream, &script, &mut lines);
        told.send(lines).unwrap();
    });
    (port, heard)
}

fn serve(mut stream: TcpStream, script: &Script, told: &mut Vec<String>) -> io::Result<()> {
    stream.write_all(b"220 here\r\n")?;
    if !talk(&mut stream, script, told, true)? {
        return Ok(());
    }
    let connection = ServerConnection::new(Arc::clone(script.tls.as_ref().unwrap())).unwrap();
    talk(&mut StreamOwned::new(connection, stream), script, told, false).map(drop)
}

/// True: TLS begins now.
fn talk(
    stream: &mut (impl Read + Write),
    script: &Script,
    told: &mut Vec<String>,
    plain: bool,
) -> io::Result<bool> {
    let mut stream = BufReader::new(stream);
    let mut in_data = false;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(false);
        }
        let line = line.trim_end().to_owned();
        told.push(line.clone());
        let refused = script.refuses.iter().find(|(begin, _)| line.starts_with(begin));
        let answer = match (refused, line.split(' ').next().unwrap_or_default()) {
            (Some((_, answer)), _) => format!("{answer}\r\n"),
            _ if in_data && line != "." => continue,
            (_, ".") => {
                in_data = false;
                "250 taken\r\n".into()
            }
            (_, "EHLO") => {
                let offers = script.offers.iter().filter(|offer| plain || **offer != "STARTTLS");
                offers.fold("250-here\r\n".to_owned(), |text, offer| text + "250-" + offer + "\r\n")
                    + "250 HELP\r\n"
            }
            (_, "STARTTLS") => {
                stream.get_mut().write_all(b"220 go\r\n")?;
                return Ok(true);
            }
            (_, "DATA") => {
                in_data = true;
                "354 go on\r\n".into()
            }
            (_, "AUTH") => "235 welcome\r\n".into(),
            (_, "QUIT") => "221 bye\r\n".into(),
            _ => "250 good\r\n".into(),
        };
        stream.get_mut().write_all(answer.as_bytes())?;
    }
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(20))
}

fn to(port: u16, security: Security) -> Server {
    Server {
        host: Some("localhost".into()),
        port: Some(port),
        security,
        login: None,
        password: None,
        from: Some("fencepost@example.com".into()),
        ca: None,
    }
}

fn mail_of(body: &str, server: &Server) -> Message {
    let callback = Callback::Email {
        to: vec!["ops@example.com".into(), "b@example.com".into()],
        subject: Some("zu spät".into()),
        body: Some(body.into()),
        conn: None,
    };
    let told = json!({ "dag_id": "d", "run_id": "r", "occasion": "deadline" });
    mail::message(&Delivery { id: "id-1".into(), callback, told }, server).unwrap()
}

#[test]
fn a_mail_is_handed_over_whole() {
    let (port, heard) = server(Script::default());
    let server = to(port, Security::None);
    send(&server, &Rules::default(), &mail_of("first\n.\nlast", &server), soon()).unwrap();
    let told = heard.recv().unwrap();
    for line in [
        "MAIL FROM:<fencepost@example.com>",
        "RCPT TO:<ops@example.com>",
        "RCPT TO:<b@example.com>",
        "Subject: =?utf-8?B?enUgc3DDpHQ=?=",
        "Message-ID: <id-1@example.com>",
        "QUIT",
    ] {
        assert!(told.iter().any(|one| one == line), "{line}: {told:?}");
    }
    // The body is one word of base64, so that no line of it can be the end.
    let body = STANDARD.encode("first\r\n.\r\nlast");
    assert!(told.contains(&body), "{told:?}");
}

#[test]
fn a_refused_recipient_is_the_reason() {
    let refuses = vec![("RCPT TO:<b@", "550 no such user")];
    let (port, heard) = server(Script { refuses, ..Script::default() });
    let server = to(port, Security::None);
    let why = send(&server, &Rules::default(), &mail_of("x", &server), soon()).unwrap_err();
    assert_eq!(why, "mail server localhost: 550 no such user");
    assert!(!heard.recv().unwrap().contains(&"DATA".to_owned()));
}

#[test]
fn credentials_cross_only_what_is_encrypted() {
    let offers = vec!["AUTH PLAIN LOGIN"];
    let (port, heard) = server(Script { offers: offers.clone(), ..Script::default() });
    let mut own = to(port, Security::Starttls);
    own.login = Some("me".into());
    own.password = Some("secret".into());
    let why = send(&own, &Rules::default(), &mail_of("x", &own), soon()).unwrap_err();
    assert!(why.contains("offers no STARTTLS"), "{why}");
    assert!(!heard.recv().unwrap().iter().any(|line| line.starts_with("AUTH")));
    // Asked for in the clear it is sent so.
    let (port, heard) = server(Script { offers, ..Script::default() });
    let clear = Server { port: Some(port), security: Security::None, ..own };
    send(&clear, &Rules::default(), &mail_of("x", &clear), soon()).unwrap();
    let pair = STANDARD.encode("\0me\0secret");
    assert!(heard.recv().unwrap().contains(&format!("AUTH PLAIN {pair}")));
}

#[test]
fn starttls_encrypts_the_rest_and_only_a_trusted_server_is_told() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let tls = Some(Arc::new(tls));
    let script = || Script { offers: vec!["STARTTLS"], tls: tls.clone(), ..Script::default() };
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca.pem");
    std::fs::write(&ca, made.cert.pem()).unwrap();
    let (port, heard) = server(script());
    let own = Server { ca: Some(ca.clone()), ..to(port, Security::Starttls) };
    send(&own, &Rules::default(), &mail_of("x", &own), soon()).unwrap();
    assert!(heard.recv().unwrap().contains(&"DATA".to_owned()));
    // Another authority vouches for nobody here.
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(&ca, other.cert.pem()).unwrap();
    let (port, heard) = server(script());
    let own = Server { port: Some(port), ..own };
    assert!(send(&own, &Rules::default(), &mail_of("x", &own), soon()).is_err());
    assert!(!heard.recv().unwrap().contains(&"DATA".to_owned()));
}

#[test]
fn what_is_denied_is_not_dialled() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = to(listener.local_addr().unwrap().port(), Security::None);
    let rules = Rules::of(&[], "127.0.0.0/8,::1");
    let why = send(&own, &rules, &mail_of("x", &own), soon()).unwrap_err();
    assert!(why.contains("denied by [http] deny"), "{why}");
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
}

/// Each of its bytes comes within any limit of a single read; the whole never does.
#[test]
fn a_server_that_drips_holds_no_delivery_past_its_deadline() {
    let patience = Duration::from_millis(700);
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca.pem");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(&ca, made.cert.pem()).unwrap();
    // A greeting without an end, and the head of a record of TLS that says there is more.
    let cases: [(Security, &[u8]); 2] =
        [(Security::None, b"220-"), (Security::Tls, &[22, 3, 3, 0x3f, 0])];
    for (security, begin) in cases {
        let (port, dripped) = dripping(begin);
        let own = Server { ca: Some(ca.clone()), ..to(port, security) };
        let began = ClockKind::Monotonic.now_ns();
        let went = send(&own, &Rules::default(), &mail_of("x", &own), Deadline::after(patience));
        let took = Duration::from_nanos(ClockKind::Monotonic.now_ns() - began);
        assert_eq!(went.unwrap_err(), "mail server localhost: not done in 700ms", "{security:?}");
        assert!(took >= patience && took < Duration::from_secs(10), "{security:?}: {took:?}");
        assert!(dripped.join().unwrap() > 5, "it was dripping all the while");
    }
}

/// A server that sends a byte each 20 ms; how many, once nobody takes them any more.
fn dripping(begin: &'static [u8]) -> (u16, std::thread::JoinHandle<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let drips = move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (_never, pause) = mpsc::channel::<()>();
        let bytes = begin.iter().chain(std::iter::repeat(&b'x'));
        let drip = |byte: &&u8| {
            let _ = pause.recv_timeout(Duration::from_millis(20));
            stream.write_all(&[**byte]).is_ok()
        };
        bytes.take_while(drip).count()
    };
    (port, std::thread::spawn(drips))
}
