//! Writes that a follower sends on to the leader, whose reply the client gets.
//!
//! A connection to the leader carries one command at a time, so that its reply is known to be that
//! command's. The leader answers what the group has confirmed and nothing else, and this node
//! passes on whole replies of the leader and nothing else. If a reply does not come, the write may
//! have happened: the client gets `TRYAGAIN`, and its connection ends, as at a leader that steps
//! down.
//!
//! The client's rights are checked here, and at the leader again, where also what a `TXN` or a
//! `ONCE` carries out is checked: this node is the user of `--forward-user` there, and says with
//! `CLIENT FORWARDED` whose the next commands are. Ids of `ONCE` are that user's, too. The leader
//! sends such a command on to nobody else.

use super::{Group, host_and_port};
use crate::commands::Command;
use crate::resp::{Protocol, end_of};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tremula_store::{Sequence, Store};

/// Connections to the leader, and so writes that are on their way at once.
const CONNECTIONS: usize = 32;

/// Bytes of a command that is sent on.
pub(crate) const MOST_BYTES: usize = 16 << 20;

/// How long a write waits for one of the connections, and a connection for the leader.
const BEGIN: Duration = Duration::from_secs(2);

/// How long a reply may take: the leader itself gives up after ten seconds.
const ANSWER: Duration = Duration::from_secs(12);

/// How long the client waits until this node shows what it has written.
const SHOWN: Duration = Duration::from_secs(1);

/// The way to the leader.
pub(super) struct Forward {
    /// The user that this node is there, and his password.
    login: Option<(String, Vec<u8>)>,
    permits: Semaphore,
    idle: Mutex<Vec<Link>>,
}

/// A write of a client of this node.
pub(crate) struct Write<'w> {
    pub(crate) request: &'w [u8],
    /// The user whose it is.
    pub(crate) user: Arc<[u8]>,
    pub(crate) database: usize,
    pub(crate) protocol: Protocol,
    /// Bytes that the reply may have.
    pub(crate) most: usize,
}

/// Why a write has no reply of the leader.
pub(crate) enum Unanswered {
    /// It has not happened.
    Refused(String),
    /// It may have happened.
    Lost(String),
}

/// A connection to a leader.
struct Link {
    leader: String,
    protocol: Protocol,
    database: usize,
    user: Arc<[u8]>,
    stream: TcpStream,
    read: Vec<u8>,
}

fn encode(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// The request of a client, as this node sends it on.
pub(crate) fn request<'a>(words: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    encode(&words.collect::<Vec<_>>())
}

impl Forward {
    pub(super) fn new(login: Option<(String, Vec<u8>)>) -> Self {
        Self {
            login,
            permits: Semaphore::new(CONNECTIONS),
            idle: Mutex::default(),
        }
    }

    /// A connection that is idle, and has been closed by nobody.
    fn take(&self, leader: &str, protocol: Protocol) -> Option<Link> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|link| link.leader == leader && link.is_idle());
        let at = idle.iter().rposition(|link| link.protocol == protocol)?;
        Some(idle.swap_remove(at))
    }

    fn give_back(&self, link: Link) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < CONNECTIONS {
            idle.push(link);
        }
    }

    /// A connection that is this user's, and has this database selected.
    async fn open(&self, leader: &str, write: &Write<'_>) -> io::Result<Link> {
        let mut link = match self.take(leader, write.protocol) {
            Some(link) => link,
            None => self.connect(leader, write.protocol).await?,
        };
        if link.user != write.user || link.user.is_empty() {
            link.tell(&[b"CLIENT", b"FORWARDED", &write.user]).await?;
            link.user = Arc::clone(&write.user);
        }
        if link.database != write.database {
            let number = write.database.to_string();
            link.tell(&[b"SELECT", number.as_bytes()]).await?;
            link.database = write.database;
        }
        Ok(link)
    }

    async fn connect(&self, leader: &str, protocol: Protocol) -> io::Result<Link> {
        let (host, port) = host_and_port(leader);
        let port = port.parse().map_err(io::Error::other)?;
        let stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true)?;
        let mut link = Link {
            leader: leader.to_owned(),
            protocol: Protocol::Resp2,
            database: 0,
            user: Arc::from(*b""),
            stream,
            read: Vec::new(),
        };
        if let Some((user, password)) = &self.login {
            link.tell(&[b"AUTH", user.as_bytes(), password]).await?;
        }
        if protocol == Protocol::Resp3 {
            let hello = encode(&[b"HELLO", b"3"]);
            let reply = link.call(&hello, MOST_BYTES).await?;
            if !reply.starts_with(b"%") {
                return Err(refused(&reply));
            }
            link.protocol = protocol;
        }
        Ok(link)
    }
}

/// What the leader says of this node.
fn refused(reply: &[u8]) -> io::Error {
    io::Error::other(reply.trim_ascii_end().escape_ascii().to_string())
}

impl Link {
    /// Whether nothing has come: neither the end, nor what nobody has asked for.
    fn is_idle(&self) -> bool {
        let peeked = self.stream.try_read(&mut [0]);
        self.read.is_empty() && peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Sends a command that is answered with `OK`.
    async fn tell(&mut self, words: &[&[u8]]) -> io::Result<()> {
        let reply = self.call(&encode(words), MOST_BYTES).await?;
        if reply == b"+OK\r\n" {
            return Ok(());
        }
        Err(refused(&reply))
    }

    async fn call(&mut self, request: &[u8], most: usize) -> io::Result<Vec<u8>> {
        self.stream.write_all(request).await?;
        self.reply(most).await
    }

    /// The next whole reply.
    async fn reply(&mut self, most: usize) -> io::Result<Vec<u8>> {
        loop {
            let end = end_of(&self.read);
            if let Some(end) = end.map_err(|_| io::Error::other("no reply"))? {
                return Ok(self.read.drain(..end).collect());
            }
            if self.read.len() > most {
                return Err(io::Error::other("a reply that is too long"));
            }
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

impl Group {
    /// Whether this node sends a command on to the leader, if it does not lead. Not what belongs to
    /// the connection or waits: tables have owners, and mailboxes receivers.
    pub(super) fn forwards(&self, command: &Command) -> bool {
        let of_keys = ["string", "ordered", "generic", "server", "transactions"];
        self.forward.is_some() && of_keys.contains(&command.group)
    }

    /// Sends a write on to the leader, and returns its reply. Waits a little until this node shows
    /// what was written.
    ///
    /// # Errors
    ///
    /// Nobody knows a reply.
    pub(crate) async fn forward(
        &self,
        write: &Write<'_>,
        store: &Store,
    ) -> Result<Vec<u8>, Unanswered> {
        let refused = |text: String| Unanswered::Refused(text);
        let (Some(forward), Some(leader)) = (&self.forward, self.host.leader()) else {
            let text = "TRYAGAIN no node leads the group at the moment";
            return Err(refused(text.to_owned()));
        };
        let Ok(Ok(_permit)) = timeout(BEGIN, forward.permits.acquire()).await else {
            let text = "TRYAGAIN too many writes are on their way to the leader";
            return Err(refused(text.to_owned()));
        };
        let not_open = |why: &dyn std::fmt::Display| {
            Unanswered::Refused(format!(
                "TRYAGAIN the leader {leader} takes nothing from this node: {why}"
            ))
        };
        let open = timeout(BEGIN, forward.open(&leader, write)).await;
        let mut link = open
            .map_err(|_| not_open(&"no answer"))?
            .map_err(|error| not_open(&error))?;
        // From here on it may happen.
        let last = encode(&[b"CLIENT", b"LASTSEQ"]);
        let both = [write.request, &last].concat();
        let answer = timeout(ANSWER, link.call(&both, write.most)).await;
        let answer = answer
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .map_err(|error| {
                Unanswered::Lost(format!(
                    "TRYAGAIN the leader {leader} has not answered ({error}): a write may or may \
                     not have happened"
                ))
            })?;
        // A leader that ends says so in the place of all replies.
        if let Ok(Ok(last)) = timeout(BEGIN, link.reply(MOST_BYTES)).await {
            forward.give_back(link);
            if let Some(last) = sequence(&last)
                && let Some(log) = store.log()
            {
                let _ = timeout(SHOWN, log.until(last)).await;
            }
        }
        Ok(answer)
    }
}

/// The number that `CLIENT LASTSEQ` has answered with.
fn sequence(reply: &[u8]) -> Option<Sequence> {
    let text = std::str::from_utf8(reply.strip_prefix(b":")?).ok()?;
    text.trim_end().parse().ok().map(Sequence::new)
}
