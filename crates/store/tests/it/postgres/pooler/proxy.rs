//! A pooler in transaction mode, small: a client has a server connection from its first message until
//! the server is ready and in no transaction; then the next one in turn is given to whoever asks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{Error, Result};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream, UnixStream, tcp};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A message: its type, and what follows its length.
type Message = (u8, Vec<u8>);
type Incoming = UnboundedReceiver<Message>;

/// A connection to the server, and the statements that are prepared on it.
struct Server {
    to: OwnedWriteHalf,
    from: Incoming,
    known: BTreeSet<Vec<u8>>,
}

struct Shared {
    socket: PathBuf,
    database: String,
    idle: Mutex<VecDeque<Server>>,
    /// Statements of clients are prepared again where they are not known, as newer pgbouncers do.
    keeps_statements: bool,
}

/// How many connections to the server are open from the beginning.
const SERVERS: usize = 3;
const SSL_REQUEST: i32 = 80_877_103;
const PROTOCOL: i32 = 196_608;

/// Starts a pooler; its port on 127.0.0.1.
pub(super) async fn start(socket: PathBuf, database: &str, keeps_statements: bool) -> u16 {
    let database = database.to_owned();
    let shared = Shared { socket, database, idle: Mutex::default(), keeps_statements };
    let mut greeting = Vec::new();
    for _ in 0..SERVERS {
        let (server, said) = shared.connect().await.unwrap();
        greeting = said;
        shared.idle.lock().unwrap().push_back(server);
    }
    let (shared, greeting) = (Arc::new(shared), Arc::new(greeting));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut number = 0;
        while let Ok((client, _)) = listener.accept().await {
            number += 1;
            let (shared, greeting) = (Arc::clone(&shared), Arc::clone(&greeting));
            // A client that goes away is none of the others' business.
            tokio::spawn(async move { drop(serve(client, number, &shared, &greeting).await) });
        }
    });
    port
}

impl Shared {
    /// A new connection, and what the server said until it was ready.
    async fn connect(&self) -> Result<(Server, Vec<Message>)> {
        let mut stream = UnixStream::connect(&self.socket).await?;
        let mut body = PROTOCOL.to_be_bytes().to_vec();
        for word in ["user", "postgres", "database", &self.database, ""] {
            body.extend(word.as_bytes());
            body.push(0);
        }
        let length = i32::try_from(body.len() + 4).unwrap();
        stream.write_all(&[&length.to_be_bytes()[..], &body].concat()).await?;
        let (from, to) = stream.into_split();
        let mut server = Server { to, from: reader(from), known: BTreeSet::new() };
        let mut said = Vec::new();
        while let Some(message) = server.from.recv().await {
            let is_ready = message.0 == b'Z';
            said.push(message);
            if is_ready {
                return Ok((server, said));
            }
        }
        Err(Error::other("the server does not let it in"))
    }

    /// The next one in turn.
    async fn take(&self) -> Result<Server> {
        let next = self.idle.lock().unwrap().pop_front();
        match next {
            Some(server) => Ok(server),
            None => Ok(self.connect().await?.0),
        }
    }
}

/// Messages as they come.
fn reader(mut from: impl AsyncRead + Unpin + Send + 'static) -> Incoming {
    let (send, messages) = unbounded_channel();
    tokio::spawn(async move {
        while let Ok(message) = read(&mut from).await {
            if send.send(message).is_err() {
                break;
            }
        }
    });
    messages
}

async fn read(from: &mut (impl AsyncRead + Unpin)) -> Result<Message> {
    let kind = from.read_u8().await?;
    let length = usize::try_from(from.read_i32().await?).map_err(Error::other)?;
    let mut body = vec![0; length.saturating_sub(4)];
    from.read_exact(&mut body).await?;
    Ok((kind, body))
}

async fn write(to: &mut (impl AsyncWrite + Unpin), message: &Message) -> Result<()> {
    let length = i32::try_from(message.1.len() + 4).map_err(Error::other)?;
    to.write_all(&[&[message.0][..], &length.to_be_bytes(), &message.1].concat()).await
}

/// Takes a client's hello; it may ask for TLS first.
async fn greet(client: &mut TcpStream, greeting: &[Message]) -> Result<()> {
    loop {
        let length = usize::try_from(client.read_i32().await?).map_err(Error::other)?;
        let mut body = vec![0; length.saturating_sub(4)];
        client.read_exact(&mut body).await?;
        if !body.starts_with(&SSL_REQUEST.to_be_bytes()) {
            break;
        }
        client.write_all(b"N").await?;
    }
    for message in greeting {
        write(client, message).await?;
    }
    Ok(())
}

async fn serve(
    mut client: TcpStream,
    number: u32,
    shared: &Shared,
    greeting: &[Message],
) -> Result<()> {
    greet(&mut client, greeting).await?;
    let (from, mut to) = client.into_split();
    let mut from = reader(from);
    let mut statements = Statements { client: number, texts: BTreeMap::new() };
    while let Some(first) = from.recv().await {
        if first.0 == b'X' {
            break;
        }
        let keeps = shared.keeps_statements;
        let server = shared.take().await?;
        let mut turn = Turn {
            server,
            keeps,
            statements: &mut statements,
            awaited: 0,
            is_begun: false,
            hidden: VecDeque::new(),
        };
        // One whose client goes away in between is closed: the server rolls it back.
        turn.run(first, &mut from, &mut to).await?;
        shared.idle.lock().unwrap().push_back(turn.server);
    }
    Ok(())
}

/// A client's statements, as it has prepared them, by their names on the server.
struct Statements {
    client: u32,
    texts: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Statements {
    fn name(&self, own: &[u8]) -> Vec<u8> {
        if own.is_empty() {
            Vec::new()
        } else {
            [format!("c{}_", self.client).as_bytes(), own].concat()
        }
    }
}

/// What is before the first zero, and what is behind it.
fn cut(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    (&text[..end], text.get(end + 1..).unwrap_or_default())
}

/// A client's use of a server connection.
struct Turn<'a> {
    server: Server,
    keeps: bool,
    statements: &'a mut Statements,
    /// Answers that end with "ready".
    awaited: u32,
    /// A request was sent whose end, after which the server is ready, was not sent yet.
    is_begun: bool,
    /// Of each statement that is being prepared: the client did not ask for it.
    hidden: VecDeque<bool>,
}

impl Turn<'_> {
    async fn run(
        &mut self,
        first: Message,
        from: &mut Incoming,
        to: &mut tcp::OwnedWriteHalf,
    ) -> Result<()> {
        let gone = || Error::other("gone");
        self.forward(first).await?;
        loop {
            tokio::select! {
                asked = from.recv() => self.forward(asked.ok_or_else(gone)?).await?,
                said = self.server.from.recv() => {
                    let said = said.ok_or_else(gone)?;
                    if said.0 == b'1' && self.hidden.pop_front() == Some(true) {
                        continue;
                    }
                    let is_ready = said.0 == b'Z';
                    self.awaited -= u32::from(is_ready);
                    write(to, &said).await?;
                    if is_ready && self.awaited == 0 && !self.is_begun && said.1 == b"I" {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// To the server, with the names of statements as they are there.
    async fn forward(&mut self, (kind, body): Message) -> Result<()> {
        let is_end = matches!(kind, b'Q' | b'S');
        self.awaited += u32::from(is_end);
        self.is_begun = !is_end;
        let message = match kind {
            b'P' => {
                let (own, rest) = cut(&body);
                let name = self.statements.name(own);
                let text = [&name[..], &[0], rest].concat();
                self.statements.texts.insert(name.clone(), text.clone());
                self.server.known.insert(name);
                self.hidden.push_back(false);
                text
            }
            b'B' => {
                let (portal, rest) = cut(&body);
                let (own, rest) = cut(rest);
                let name = self.statements.name(own);
                self.prepare_again(&name).await?;
                [portal, &[0], &name, &[0], rest].concat()
            }
            b'D' | b'C' if body.starts_with(b"S") => {
                let name = self.statements.name(cut(&body[1..]).0);
                if kind == b'C' {
                    self.server.known.remove(&name);
                }
                [b"S", &name[..], &[0]].concat()
            }
            _ => body,
        };
        write(&mut self.server.to, &(kind, message)).await
    }

    async fn prepare_again(&mut self, name: &[u8]) -> Result<()> {
        if !self.keeps || self.server.known.contains(name) {
            return Ok(());
        }
        if let Some(text) = self.statements.texts.get(name) {
            write(&mut self.server.to, &(b'P', text.clone())).await?;
            self.server.known.insert(name.to_vec());
            self.hidden.push_back(true);
        }
        Ok(())
    }
}
