//! The connected clients: who they are, how many, what they hold, and how to end them.

mod atoms;
mod client;
mod handshakes;
mod pause;

use crate::limits::Limits;
use crate::lock::lock;
use crate::transport::Socket;
use atoms::AtomQuotas;
pub(crate) use atoms::machine;
pub(crate) use client::{Buffers, Client, Ending, State, Unblock};
pub(crate) use handshakes::Handshakes;
pub(crate) use pause::Pause;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A client's buffers count in the total in steps of this many bytes, so that short commands and
/// replies do not write to a counter that all threads share. The [keeper](crate::keeper) sums the
/// rest.
const STEP: usize = 64 << 10;

/// Every connected client.
pub(crate) struct Clients {
    connected: Mutex<BTreeMap<u64, Arc<Client>>>,
    /// Sockets that are served or wait to be served; the limit applies to them.
    admitted: AtomicUsize,
    next_id: AtomicU64,
    closing: AtomicBool,
    /// The bytes of all buffers, in steps for each client.
    buffered: AtomicUsize,
    /// Clients that the server closed, for `INFO`.
    pub(crate) closed: AtomicU64,
    /// Those of them that were closed because all buffers together were too large.
    pub(crate) evicted: AtomicU64,
    pub(crate) pause: Pause,
    pub(crate) atoms: AtomQuotas,
    /// Held while clients are chosen and closed for a total, so that two threads do not both close
    /// clients for the same excess.
    choice: Mutex<()>,
    /// 0 is no limit; the same below.
    buffer_limit: AtomicUsize,
    soft_limit: AtomicUsize,
}

impl Clients {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            connected: Mutex::default(),
            admitted: AtomicUsize::new(0),
            next_id: AtomicU64::new(0),
            closing: AtomicBool::new(false),
            buffered: AtomicUsize::new(0),
            closed: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            pause: Pause::default(),
            atoms: AtomQuotas::default(),
            choice: Mutex::default(),
            buffer_limit: AtomicUsize::new(limits.clients.max_client_buffers.0),
            soft_limit: AtomicUsize::new(limits.clients.soft_output_buffer.0),
        }
    }

    /// The most that the buffers of all clients may hold; 0 if there is no limit.
    pub(crate) fn buffer_limit(&self) -> usize {
        self.buffer_limit.load(Relaxed)
    }

    pub(crate) fn set_buffer_limit(&self, limit: usize) {
        self.buffer_limit.store(limit, Relaxed);
    }

    /// What a client may leave unread for a time; 0 if there is no limit.
    pub(crate) fn soft_limit(&self) -> usize {
        self.soft_limit.load(Relaxed)
    }

    pub(crate) fn set_soft_limit(&self, limit: usize) {
        self.soft_limit.store(limit, Relaxed);
    }

    /// What buffers hold beyond their limit.
    fn excess(&self, held: usize) -> usize {
        match self.buffer_limit() {
            0 => 0,
            limit => held.saturating_sub(limit),
        }
    }

    /// Takes one of `limit` places, if one is free.
    pub(crate) fn admit(self: &Arc<Self>, limit: usize) -> Option<Admission> {
        let place = self.admitted.fetch_add(1, Relaxed);
        let admission = Admission(Arc::clone(self));
        (place < limit).then_some(admission)
    }

    /// Adds an admitted client.
    pub(crate) fn connect(&self, socket: Arc<Socket>) -> std::io::Result<Arc<Client>> {
        let id = self.next_id.fetch_add(1, Relaxed) + 1;
        let client = Arc::new(Client::new(id, socket)?);
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
        let client = lock(&self.connected).remove(&id);
        if let Some(client) = client {
            let counted = client.counted.swap(0, Relaxed);
            self.buffered.fetch_sub(counted, Relaxed);
        }
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

    /// The client with a number, in O(log n).
    pub(crate) fn get(&self, id: u64) -> Option<Arc<Client>> {
        lock(&self.connected).get(&id).cloned()
    }

    pub(crate) fn count(&self) -> usize {
        lock(&self.connected).len()
    }

    /// How many wait for a message, or by `WAIT`.
    pub(crate) fn blocked(&self) -> usize {
        let connected = lock(&self.connected);
        connected
            .values()
            .filter(|client| client.is_blocked())
            .count()
    }

    /// The bytes of the buffers that clients at rest have left with their threads.
    pub(crate) fn kept(&self) -> usize {
        let connected = lock(&self.connected);
        connected.values().map(|client| client.kept()).sum()
    }

    /// Notes that the thread of a client has freed the buffer that the client had left.
    pub(crate) fn has_freed(&self, id: u64) {
        if let Some(client) = lock(&self.connected).get(&id) {
            client.has_freed();
        }
    }

    /// The bytes that wait for monitors and subscribers.
    pub(crate) fn fed(&self) -> u64 {
        let connected = lock(&self.connected);
        connected.values().map(|client| client.feed() as u64).sum()
    }

    /// Notes what a client's connection holds. The connection calls this, before it waits and after
    /// it has read. If all buffers together pass their limit, this closes the largest clients.
    pub(crate) fn publish(&self, client: &Client, buffers: Buffers) {
        client.set_buffers(buffers, self.soft_limit());
        let counted = client.counted.load(Relaxed);
        // A client that is being closed does not count, because its memory comes back.
        let held = match client.ending() {
            Some(_) => 0,
            None => client.held() / STEP * STEP,
        };
        if held == counted {
            return;
        }
        // Only this connection writes `counted`, until it is disconnected.
        client.counted.store(held, Relaxed);
        let total = if held > counted {
            self.buffered.fetch_add(held - counted, Relaxed) + (held - counted)
        } else {
            self.buffered.fetch_sub(counted - held, Relaxed) - (counted - held)
        };
        if held > counted && self.excess(total) > 0 {
            self.keep_within_limit();
        }
    }

    /// The bytes that the buffers of all clients hold.
    pub(crate) fn held(&self) -> Held {
        let mut held = Held::default();
        for client in lock(&self.connected).values() {
            let sum = match client.ending() {
                None => &mut held.staying,
                Some(_) => &mut held.coming_back,
            };
            *sum = sum.saturating_add(client.held());
        }
        held
    }

    /// Closes the largest clients until all buffers are within their limit.
    pub(crate) fn keep_within_limit(&self) {
        self.close_largest(|held| self.excess(held.staying));
    }

    /// Closes the clients whose buffers are largest, until these have held as many bytes as
    /// `excess` says, or none is left that may be closed. `CLIENT NO-EVICT` exempts a client. The
    /// connections free the memory when their threads come to them; until then it counts as coming
    /// back.
    pub(crate) fn close_largest(&self, excess: impl FnOnce(Held) -> usize) {
        let _choice = lock(&self.choice);
        let bytes = excess(self.held());
        if bytes == 0 {
            return;
        }
        let mut largest: Vec<_> = self
            .list()
            .into_iter()
            .filter(|one| one.ending().is_none() && !one.no_evict.load(Relaxed))
            .map(|client| (client.held(), client))
            .filter(|(held, _)| *held > 0)
            .collect();
        largest.sort_unstable_by_key(|(held, client)| (Reverse(*held), client.id));
        let mut freed = 0;
        for (held, client) in largest {
            if freed >= bytes {
                break;
            }
            if self.end(&client, Ending::Largest) {
                tracing::warn!("closed {}, whose buffers held {held} bytes", client.who());
                self.evicted.fetch_add(1, Relaxed);
                freed += held;
            }
        }
    }

    /// Ends the connection of a client. Returns whether it was not being ended already.
    pub(crate) fn end(&self, client: &Client, why: Ending) -> bool {
        let first = client.end(why);
        if first {
            self.closed.fetch_add(1, Relaxed);
        }
        first
    }

    /// Closes the clients that are silent for `timeout`, unless they wait for messages, or do not
    /// read for `slow`. If memory `is_short`, replies of any length count, because of the values
    /// that they keep alive.
    pub(crate) fn close_idle(&self, timeout: Option<Duration>, slow: Duration, is_short: bool) {
        for client in self.list() {
            if let Some(why) = client.ending() {
                // It may have begun to send a long reply before it saw that it is closed.
                client.end(why);
            } else if let Some(unread) = client.slow(is_short).filter(|time| *time >= slow) {
                if self.end(&client, Ending::SlowReader) {
                    tracing::warn!(
                        "closed {}, which left its replies unread for {} seconds",
                        client.who(),
                        unread.as_secs()
                    );
                }
            } else if let (Some(timeout), Some(idle)) = (timeout, client.idle())
                && idle >= timeout
                && !client.is_subscriber()
            {
                self.end(&client, Ending::Idle);
            }
        }
    }
}

/// The bytes that the buffers of clients hold.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held {
    /// Of the clients that are not being closed.
    pub(crate) staying: usize,
    /// Of those that are being closed.
    pub(crate) coming_back: usize,
}

/// A client's place within the limit. Dropping it gives it back.
pub(crate) struct Admission(Arc<Clients>);

impl Drop for Admission {
    fn drop(&mut self) {
        self.0.admitted.fetch_sub(1, Relaxed);
    }
}
