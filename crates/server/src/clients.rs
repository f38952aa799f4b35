//! The connected clients: who they are, how many, and how to end them all.

use crate::resp::Protocol;
use socket2::SockRef;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// One client, as other connections see it. Its own connection writes the fields, in no order,
/// because they are only shown to people.
pub(crate) struct Client {
    pub(crate) id: u64,
    pub(crate) stream: TcpStream,
    peer: SocketAddr,
    local: SocketAddr,
    connected: Instant,
    name: Mutex<Vec<u8>>,
    database: AtomicUsize,
    protocol: AtomicI64,
    /// Milliseconds from `connected` to the last received bytes.
    last_active: AtomicU64,
    last_command: Mutex<&'static str>,
}

impl Client {
    pub(crate) fn name(&self) -> Vec<u8> {
        lock(&self.name).clone()
    }

    pub(crate) fn set_name(&self, name: &[u8]) {
        *lock(&self.name) = name.to_vec();
    }

    pub(crate) fn set_session(&self, database: usize, protocol: Protocol) {
        self.database.store(database, Relaxed);
        self.protocol.store(protocol.version(), Relaxed);
    }

    /// Records that a batch of commands has run, of which `last` was the last.
    pub(crate) fn ran(&self, last: &'static str) {
        *lock(&self.last_command) = last;
        let elapsed = u64::try_from(self.connected.elapsed().as_millis());
        self.last_active.store(elapsed.unwrap_or(u64::MAX), Relaxed);
    }

    /// Appends the client's line of `CLIENT LIST`, with Redis's names for the fields.
    pub(crate) fn describe(&self, command: Option<&'static str>, out: &mut String) {
        let age = self.connected.elapsed();
        let idle = age.saturating_sub(Duration::from_millis(self.last_active.load(Relaxed)));
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "id={} addr={} laddr={} name={} age={} idle={} flags=N db={} cmd={} user=default resp={}",
            self.id,
            self.peer,
            self.local,
            lock(&self.name).escape_ascii(),
            age.as_secs(),
            if command.is_some() { 0 } else { idle.as_secs() },
            self.database.load(Relaxed),
            command.unwrap_or(*lock(&self.last_command)),
            self.protocol.load(Relaxed),
        );
    }

    /// Whether the client will send no more, as far as the event loop knows: it has closed the
    /// connection or its half of it, or [`end_input`](Self::end_input) has. Earlier bytes may be
    /// unread.
    pub(crate) async fn has_ended_input(&self) -> bool {
        tokio::select! {
            biased;
            ready = self.stream.ready(Interest::READABLE) => {
                ready.map_or(true, |ready| ready.is_read_closed())
            }
            // Nothing is unread, and the input has not ended.
            () = std::future::ready(()) => false,
        }
    }

    /// Ends the client's input behind the bytes that have arrived, which are still read.
    fn end_input(&self) {
        // Fails if the peer is gone; then there is no more input anyway.
        let _ = SockRef::from(&self.stream).shutdown(Shutdown::Read);
    }
}

/// Every connected client.
#[derive(Default)]
pub(crate) struct Clients {
    connected: Mutex<BTreeMap<u64, Arc<Client>>>,
    /// Sockets that are served or wait to be served; the limit applies to them.
    admitted: AtomicUsize,
    next_id: AtomicU64,
    closing: AtomicBool,
}

impl Clients {
    /// Takes one of `limit` places, if one is free.
    pub(crate) fn admit(self: &Arc<Self>, limit: usize) -> Option<Admission> {
        let place = self.admitted.fetch_add(1, Relaxed);
        let admission = Admission(Arc::clone(self));
        (place < limit).then_some(admission)
    }

    /// Adds an admitted client.
    pub(crate) fn connect(&self, stream: TcpStream) -> std::io::Result<Arc<Client>> {
        let client = Arc::new(Client {
            id: self.next_id.fetch_add(1, Relaxed) + 1,
            peer: stream.peer_addr()?,
            local: stream.local_addr()?,
            stream,
            connected: Instant::now(),
            name: Mutex::default(),
            database: AtomicUsize::new(0),
            protocol: AtomicI64::new(Protocol::Resp2.version()),
            last_active: AtomicU64::new(0),
            last_command: Mutex::new("NULL"),
        });
        let mut connected = lock(&self.connected);
        connected.insert(client.id, Arc::clone(&client));
        // `close` sets this under the same lock. Whichever thread comes second sees what the first
        // has done, so no client is missed.
        if self.closing.load(Relaxed) {
            client.end_input();
        }
        Ok(client)
    }

    pub(crate) fn disconnect(&self, id: u64) {
        lock(&self.connected).remove(&id);
    }

    /// Ends the input of every present and future client.
    pub(crate) fn close(&self) {
        let connected = lock(&self.connected);
        self.closing.store(true, Relaxed);
        connected.values().for_each(|client| client.end_input());
    }

    /// The clients, the oldest first.
    pub(crate) fn list(&self) -> Vec<Arc<Client>> {
        lock(&self.connected).values().cloned().collect()
    }

    pub(crate) fn count(&self) -> usize {
        lock(&self.connected).len()
    }
}

/// A client's place within the limit. Dropping it gives it back.
pub(crate) struct Admission(Arc<Clients>);

impl Drop for Admission {
    fn drop(&mut self) {
        self.0.admitted.fetch_sub(1, Relaxed);
    }
}

/// Locks. The data behind these locks is consistent after every statement, so a panic of another
/// thread that held the lock does not matter.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
