//! What waits for a client without its asking at that moment: the messages of its channels, and
//! the lines of `MONITOR`.
//!
//! Any thread appends; the client's own connection takes. The bytes of a message are shared by all
//! clients that it waits for. A client that does not keep up is closed, and what waits for it is
//! freed.

use crate::clients::Client;
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tremula_store::Value;

/// Something that waits.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    /// As it is sent.
    Line(Value),
    /// A message without its first byte, which is the only one that depends on the protocol.
    Message(Value),
    /// Several messages at once.
    Messages(Arc<Messages>),
}

/// Messages one behind the other, as RESP3 has them: only their first bytes depend on the protocol.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    bytes: Vec<u8>,
    /// Where each begins.
    starts: Vec<usize>,
}

impl Messages {
    /// Where the next message is to be appended.
    pub(crate) fn begin(&mut self) -> &mut Vec<u8> {
        self.starts.push(self.bytes.len());
        &mut self.bytes
    }

    /// Where the last message goes on.
    pub(crate) const fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The messages but for the first ones.
    pub(crate) fn from(&self, first: usize) -> Self {
        let at = self.starts.get(first).copied().unwrap_or(self.bytes.len());
        let starts = self.starts.iter().skip(first);
        Self {
            bytes: self.bytes[at..].to_vec(),
            starts: starts.map(|start| start - at).collect(),
        }
    }

    /// Appends them, each with this first byte.
    pub(crate) fn write(&self, sign: u8, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(&self.bytes);
        for start in &self.starts {
            out[begin + start] = sign;
        }
    }
}

impl Piece {
    /// What it counts as: its bytes, and its place.
    fn size(&self) -> usize {
        let bytes = match self {
            Self::Line(bytes) | Self::Message(bytes) => bytes.len(),
            Self::Messages(messages) => messages.bytes.len() + size_of_val(&*messages.starts),
        };
        bytes + size_of::<Self>()
    }
}

/// What may wait for one client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The most.
    pub(crate) hard: usize,
    /// The most for longer than `patience`; 0 if there is no such limit.
    pub(crate) soft: usize,
    pub(crate) patience: Duration,
}

/// What waits for one client.
pub(crate) struct Outbox {
    client: Arc<Client>,
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

#[derive(Default)]
struct Waiting {
    pieces: VecDeque<Piece>,
    bytes: usize,
    /// The soft limit at the last look, and since when more than it waits.
    soft: usize,
    much_since: Option<Instant>,
    is_closed: bool,
    /// Whether the connection is to look, though nothing may wait.
    is_called: bool,
}

impl Waiting {
    /// Whether something waits, or the connection was called; a call is answered by this.
    fn is_to_be_looked_at(&mut self) -> bool {
        std::mem::take(&mut self.is_called) || !self.pieces.is_empty()
    }
}

impl Outbox {
    fn new(client: &Arc<Client>) -> Self {
        Self {
            client: Arc::clone(client),
            waiting: Mutex::default(),
            arrived: Notify::new(),
        }
    }

    pub(crate) const fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Locks. The data behind the lock is consistent after every statement, so a panic of another
    /// thread that held it does not matter.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a piece. Returns `false` if the client is to be closed, because it does not keep up.
    pub(crate) fn push(&self, piece: Piece, bounds: Bounds) -> bool {
        let mut waiting = self.lock();
        if waiting.is_closed {
            return true;
        }
        let length = waiting.bytes + piece.size();
        waiting.soft = bounds.soft;
        let is_slow = bounds.soft > 0 && length > bounds.soft && {
            let since = *waiting.much_since.get_or_insert_with(Instant::now);
            since.elapsed() >= bounds.patience
        };
        if length > bounds.hard || is_slow {
            self.clear(&mut waiting);
            return false;
        }
        let was_empty = waiting.pieces.is_empty();
        waiting.pieces.push_back(piece);
        waiting.bytes = length;
        self.client.set_feed(length);
        drop(waiting);
        // The connection waits only after it has found nothing.
        if was_empty {
            self.arrived.notify_one();
        }
        true
    }

    /// Appends a piece if less than this many bytes wait. Returns whether it has, or the client is
    /// gone.
    pub(crate) fn offer(&self, piece: Piece, most: usize) -> bool {
        let mut waiting = self.lock();
        if waiting.is_closed {
            return true;
        }
        if waiting.bytes >= most {
            return false;
        }
        waiting.bytes += piece.size();
        waiting.pieces.push_back(piece);
        self.client.set_feed(waiting.bytes);
        let was_empty = waiting.pieces.len() == 1;
        drop(waiting);
        if was_empty {
            self.arrived.notify_one();
        }
        true
    }

    /// How much waits.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Lets the connection look whether it has something to do.
    pub(crate) fn call(&self) {
        self.lock().is_called = true;
        self.arrived.notify_one();
    }

    /// Takes about `most` bytes of what waits, in its order; at least one piece, if there is one.
    pub(crate) fn take(&self, most: usize) -> VecDeque<Piece> {
        let mut waiting = self.lock();
        let taken = if waiting.bytes <= most {
            std::mem::take(&mut waiting.pieces)
        } else {
            let mut bytes = 0;
            let within = waiting.pieces.iter().take_while(|piece| {
                let fits = bytes < most;
                bytes += piece.size();
                fits
            });
            let count = within.count();
            waiting.pieces.drain(..count).collect()
        };
        let left = waiting.bytes - taken.iter().map(Piece::size).sum::<usize>();
        waiting.bytes = left;
        if left <= waiting.soft {
            waiting.much_since = None;
        }
        self.client.set_feed(left);
        taken
    }

    /// Waits until there is something to take, or until a [call](Self::call).
    pub(crate) async fn arrived(&self) {
        loop {
            // Begun before the look, so that no piece is missed in between.
            let arrived = self.arrived.notified();
            if self.lock().is_to_be_looked_at() {
                return;
            }
            arrived.await;
        }
    }

    /// Frees what waits, and takes nothing more: a thread may be about to append.
    fn close(&self) {
        self.clear(&mut self.lock());
    }

    fn clear(&self, waiting: &mut Waiting) {
        *waiting = Waiting {
            is_closed: true,
            ..Waiting::default()
        };
        self.client.set_feed(0);
    }
}

/// The outbox of a connection. Dropping this closes it.
pub(crate) struct Own(Arc<Outbox>);

impl Own {
    pub(crate) fn new(client: &Arc<Client>) -> Self {
        Self(Arc::new(Outbox::new(client)))
    }

    pub(crate) fn share(&self) -> Arc<Outbox> {
        Arc::clone(&self.0)
    }
}

impl Deref for Own {
    type Target = Outbox;

    fn deref(&self) -> &Outbox {
        &self.0
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::clients::Clients;
    use crate::limits::Limits;
    use crate::transport::Socket;
    use tokio::net::{TcpListener, TcpStream};

    /// The outboxes of some clients, which are connected to nothing in particular.
    pub(crate) async fn outboxes<const COUNT: usize>() -> [Own; COUNT] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let clients = Clients::new(&Limits::default());
        let mut all = Vec::new();
        for _ in 0..COUNT {
            let stream = TcpStream::connect(address).await.expect("a connection");
            let client = clients.connect(Arc::new(Socket::Tcp(stream)));
            all.push(Own::new(&client.expect("a client")));
        }
        let Ok(all) = all.try_into() else {
            panic!("as many as were made");
        };
        all
    }

    const WIDE: Bounds = Bounds {
        hard: 1000,
        soft: 0,
        patience: Duration::ZERO,
    };

    fn line(text: &str) -> Piece {
        Piece::Line(Value::from(text.as_bytes()))
    }

    fn taken(outbox: &Outbox, most: usize) -> Vec<String> {
        let pieces = outbox.take(most).into_iter();
        let text = |piece: Piece| match piece {
            Piece::Line(bytes) | Piece::Message(bytes) => {
                String::from_utf8_lossy(&bytes).into_owned()
            }
            Piece::Messages(messages) => String::from_utf8_lossy(&messages.bytes).into_owned(),
        };
        pieces.map(text).collect()
    }

    /// A thread may have seen a client just before that one ended.
    #[tokio::test]
    async fn an_outbox_that_has_ended_holds_nothing_and_takes_nothing() {
        let [first, second] = outboxes().await;
        for (own, is_ended_by_limit) in [(first, false), (second, true)] {
            let outbox = own.share();
            let client = Arc::clone(outbox.client());
            assert!(outbox.push(line("+one\r\n"), WIDE));
            assert!(client.feed() > 0);
            if is_ended_by_limit {
                let narrow = Bounds { hard: 10, ..WIDE };
                assert!(!outbox.push(line("+two\r\n"), narrow), "it is slow");
            } else {
                drop(own);
            }
            assert_eq!(client.feed(), 0);
            assert!(outbox.push(line("+one\r\n"), WIDE), "nothing more to do");
            assert_eq!(client.feed(), 0);
            assert!(taken(&outbox, 1000).is_empty());
        }
    }

    #[tokio::test]
    async fn what_waits_is_taken_in_its_order_and_in_parts() {
        let [own] = outboxes().await;
        for text in ["a", "b", "c", "d"] {
            assert!(own.push(line(text), WIDE));
        }
        assert_eq!(taken(&own, 1), ["a"], "at least one");
        assert_eq!(taken(&own, line("b").size() + 1), ["b", "c"]);
        assert!(own.push(line("e"), WIDE));
        assert_eq!(taken(&own, usize::MAX), ["d", "e"]);
        assert_eq!(own.client().feed(), 0);
        assert!(taken(&own, usize::MAX).is_empty());
    }

    /// A watcher is not closed because it is slow: it is offered no more.
    #[tokio::test]
    async fn what_is_offered_is_refused_beyond_the_limit() {
        let [own] = outboxes().await;
        let mut messages = Messages::default();
        messages.begin().extend_from_slice(b">a");
        messages.begin().extend_from_slice(b">b");
        let rest = messages.from(1);
        let piece = || Piece::Messages(Arc::new(messages.from(0)));
        let size = piece().size();
        assert!(own.offer(piece(), size), "nothing waits");
        assert!(!own.offer(piece(), size), "as much waits as may");
        assert!(own.offer(Piece::Messages(Arc::new(rest)), size + 1));
        assert_eq!(taken(&own, usize::MAX), [">a>b", ">b"]);
        let mut out = b"+".to_vec();
        messages.write(b'*', &mut out);
        assert_eq!(out, b"+*a*b");
    }

    /// A connection that has taken everything is woken though nothing waits.
    #[tokio::test]
    async fn a_call_ends_a_wait() {
        let [own] = outboxes().await;
        own.call();
        own.arrived().await;
        let outbox = own.share();
        let called = async {
            tokio::task::yield_now().await;
            outbox.call();
        };
        tokio::join!(own.arrived(), called);
    }

    #[tokio::test]
    async fn much_may_wait_for_a_time_only() {
        let [own] = outboxes().await;
        let size = line("a").size();
        let patient = Bounds {
            hard: 10 * size,
            soft: size,
            patience: Duration::MAX,
        };
        let impatient = Bounds {
            patience: Duration::ZERO,
            ..patient
        };
        assert!(own.push(line("a"), impatient), "within the soft limit");
        assert!(own.push(line("b"), patient));
        assert_eq!(taken(&own, 1), ["a"]);
        assert!(own.push(line("c"), patient));
        assert!(!own.push(line("d"), impatient), "beyond it for too long");
    }
}
