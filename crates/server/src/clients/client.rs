//! One connected client, as other connections and the keeper see it.

use crate::commands::Command;
use crate::lock::lock;
use crate::resp::Protocol;
use crate::transport::{Address, Socket};
use crate::users::DEFAULT;
use std::fmt::Write;
use std::net::{IpAddr, Shutdown};
use std::os::fd::AsRawFd;
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed,
};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Why the server closes a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// `CLIENT KILL` named it.
    Killed = 1,
    /// It has completed no command for `--timeout`.
    Idle,
    /// It left too many bytes of replies unread for too long.
    SlowReader,
    /// It held the most when all buffers together, or all memory, passed their limit.
    Largest,
    /// Its user was removed or changed.
    NoUser,
    /// It left too many messages of its channels unread.
    SlowSubscriber,
    /// It listens to a channel that is no longer open to its user.
    NoChannel,
    /// It watches a range that is no longer open to its user.
    NoRange,
}

impl Ending {
    const ALL: [Self; 8] = [
        Self::Killed,
        Self::Idle,
        Self::SlowReader,
        Self::Largest,
        Self::NoUser,
        Self::SlowSubscriber,
        Self::NoChannel,
        Self::NoRange,
    ];

    /// The error for a client whose command has not arrived as a whole.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Killed => "ERR closed by CLIENT KILL",
            Self::NoUser => "ERR closed because the user of the connection was removed or changed",
            Self::NoChannel => {
                "ERR closed because a channel of the connection is no longer open to its user"
            }
            Self::NoRange => {
                "ERR closed because a range that the connection watches is no longer open to its user"
            }
            Self::SlowSubscriber => {
                "ERR closed because the messages were not read \
                 (--max-pubsub-buffer, --soft-pubsub-buffer)"
            }
            Self::Idle => "ERR closed because the command did not arrive within --timeout",
            Self::SlowReader => {
                "ERR closed because the replies were not read (--soft-output-buffer)"
            }
            Self::Largest => {
                "OOM closed because the buffers of all clients are too large \
                 (--max-client-buffers, --max-memory) and this client's were the largest"
            }
        }
    }
}

/// What a connection holds in its buffers at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Buffers {
    /// Bytes of commands that have arrived and not run.
    pub(crate) unread: usize,
    /// Bytes allocated for input.
    pub(crate) input: usize,
    /// Bytes of commands that wait for `EXEC`, and of watched keys.
    pub(crate) waiting: usize,
    /// How many commands wait for `EXEC`, since `MULTI`.
    pub(crate) queued: Option<usize>,
    /// Bytes of a buffer for input that the client has left with its thread for a while.
    pub(crate) kept: usize,
    /// Bytes of replies that the client has not taken.
    pub(crate) unsent: usize,
    /// Bytes allocated for replies.
    pub(crate) output: usize,
}

/// What a client and the server wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The server waits for the client: for a command, or until it takes its replies.
    Waiting,
    /// A command of the client is not done.
    Working,
    /// A command of the client waits for a message.
    Blocked,
}

/// How `CLIENT UNBLOCK` ends the waiting of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unblock {
    /// As if its time were over.
    Timeout,
    /// With an error.
    Error,
}

/// One client. Its own connection writes most fields, in no order, because they are only shown to
/// people or summed.
pub(crate) struct Client {
    pub(crate) id: u64,
    /// Shared with the connection, which replaces it when it moves. Other threads use it only under
    /// the lock.
    socket: Mutex<Arc<Socket>>,
    /// The number of the worker that serves it.
    worker: AtomicUsize,
    peer: Address,
    local: Address,
    connected: Instant,
    name: Mutex<Vec<u8>>,
    /// The name of the user whose connection it is; the default user's if it has not said so.
    user: Mutex<Arc<[u8]>>,
    /// The library that the client uses, and its version.
    library: Mutex<[Box<[u8]>; 2]>,
    database: AtomicUsize,
    protocol: AtomicI64,
    /// Milliseconds from `connected` to the last completed command, or the last reply taken.
    last_active: AtomicU64,
    last_command: Mutex<&'static str>,
    /// The command that is on the worker's thread now, by its [token](Command::token); else 0.
    on_thread: AtomicUsize,
    state: AtomicU8,
    /// Whether the client stays when the largest are closed.
    pub(crate) no_evict: AtomicBool,
    unread: AtomicUsize,
    /// With what waits.
    input: AtomicUsize,
    waiting: AtomicUsize,
    /// -1 outside of a transaction.
    queued: AtomicI64,
    kept: AtomicUsize,
    unsent: AtomicUsize,
    output: AtomicUsize,
    /// The bytes that wait for it as a monitor or a subscriber.
    feed: AtomicUsize,
    /// The bytes that a command of its gathers before it answers.
    gathers: AtomicUsize,
    /// The channels, the patterns, and the channels of `SSUBSCRIBE` that it listens to.
    subscriptions: [AtomicUsize; 3],
    /// The ranges that it watches.
    watches: AtomicUsize,
    /// The bytes of this client in the total of all clients.
    pub(super) counted: AtomicUsize,
    /// Milliseconds from `connected` to when too much became unread, plus one; 0 if not so.
    slow_since: AtomicU64,
    ending: AtomicU8,
    unblock: Notify,
    unblock_error: AtomicBool,
}

impl Client {
    pub(super) fn new(id: u64, socket: Arc<Socket>) -> std::io::Result<Self> {
        let (peer, local) = socket.addresses()?;
        Ok(Self {
            id,
            worker: AtomicUsize::new(0),
            peer,
            local,
            socket: Mutex::new(socket),
            connected: Instant::now(),
            name: Mutex::default(),
            user: Mutex::new(DEFAULT.into()),
            library: Mutex::default(),
            database: AtomicUsize::new(0),
            protocol: AtomicI64::new(Protocol::Resp2.version()),
            last_active: AtomicU64::new(0),
            last_command: Mutex::new("NULL"),
            on_thread: AtomicUsize::new(0),
            state: AtomicU8::new(State::Waiting as u8),
            no_evict: AtomicBool::new(false),
            unread: AtomicUsize::new(0),
            input: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            queued: AtomicI64::new(-1),
            kept: AtomicUsize::new(0),
            unsent: AtomicUsize::new(0),
            output: AtomicUsize::new(0),
            feed: AtomicUsize::new(0),
            gathers: AtomicUsize::new(0),
            subscriptions: Default::default(),
            watches: AtomicUsize::new(0),
            counted: AtomicUsize::new(0),
            slow_since: AtomicU64::new(0),
            ending: AtomicU8::new(0),
            unblock: Notify::new(),
            unblock_error: AtomicBool::new(false),
        })
    }

    /// The number of the worker that serves it.
    pub(crate) fn worker(&self) -> usize {
        self.worker.load(Relaxed)
    }

    pub(crate) fn set_worker(&self, worker: usize) {
        self.worker.store(worker, Relaxed);
    }

    /// Puts another descriptor of the socket in the place of the one so far.
    pub(crate) fn set_socket(&self, socket: Arc<Socket>) {
        *lock(&self.socket) = socket;
    }

    pub(crate) fn name(&self) -> Vec<u8> {
        lock(&self.name).clone()
    }

    pub(crate) fn set_name(&self, name: &[u8]) {
        *lock(&self.name) = name.to_vec();
    }

    pub(crate) fn user(&self) -> Arc<[u8]> {
        Arc::clone(&lock(&self.user))
    }

    pub(crate) fn set_user(&self, name: Arc<[u8]>) {
        *lock(&self.user) = name;
    }

    /// Keeps the name (`part` 0) or the version (1) of the client's library.
    pub(crate) fn set_library(&self, part: usize, text: &[u8]) {
        lock(&self.library)[part] = text.into();
    }

    pub(crate) fn set_session(&self, database: usize, protocol: Protocol) {
        self.database.store(database, Relaxed);
        self.protocol.store(protocol.version(), Relaxed);
    }

    /// The address of the client, or the server's address that it came to, as `CLIENT LIST` has it.
    pub(crate) fn has_address(&self, address: &[u8], local: bool) -> bool {
        let own = if local { &self.local } else { &self.peer };
        own.to_string().as_bytes() == address
    }

    /// The address that the client came from; this machine's if it came to a unix socket.
    pub(crate) fn address(&self) -> IpAddr {
        self.peer.ip()
    }

    pub(crate) fn age(&self) -> Duration {
        self.connected.elapsed()
    }

    fn now(&self) -> u64 {
        u64::try_from(self.connected.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Records that a batch of commands has run, of which `last` was the last.
    /// `now` is the time if it is known.
    pub(crate) fn ran(&self, last: &'static str, now: Option<Instant>) {
        *lock(&self.last_command) = last;
        let now = now.unwrap_or_else(Instant::now);
        let age = now.saturating_duration_since(self.connected).as_millis();
        self.last_active
            .store(u64::try_from(age).unwrap_or(u64::MAX), Relaxed);
    }

    /// Records that the client has done something: completed a command, or taken some of a reply.
    pub(crate) fn is_active(&self) {
        self.last_active.store(self.now(), Relaxed);
    }

    /// Notes the command that runs on the thread from now on, for the watchdog.
    pub(crate) fn enter(&self, command: &'static Command) {
        self.on_thread.store(command.token(), Relaxed);
    }

    /// Notes that the command has left the thread.
    pub(crate) fn leave(&self) {
        self.on_thread.store(0, Relaxed);
    }

    /// The token of the command that is on the thread; else 0.
    pub(crate) fn on_thread(&self) -> usize {
        self.on_thread.load(Relaxed)
    }

    pub(crate) fn set_state(&self, state: State) {
        self.state.store(state as u8, Relaxed);
    }

    fn is(&self, state: State) -> bool {
        self.state.load(Relaxed) == state as u8
    }

    /// How long the client has let the server wait for a whole command, or for room for replies.
    pub(crate) fn idle(&self) -> Option<Duration> {
        let idle = self.now().saturating_sub(self.last_active.load(Relaxed));
        (self.is(State::Waiting) && self.on_thread() == 0).then(|| Duration::from_millis(idle))
    }

    /// How long the client has left more than the soft limit unread; if `of_any`, also how long it
    /// has taken nothing of a shorter reply.
    pub(crate) fn slow(&self, of_any: bool) -> Option<Duration> {
        if let Some(since) = self.slow_since.load(Relaxed).checked_sub(1) {
            return Some(Duration::from_millis(self.now().saturating_sub(since)));
        }
        let has_unread = of_any && self.unsent.load(Relaxed) > 0;
        has_unread.then(|| self.idle()).flatten()
    }

    /// Notes what the connection holds. [`Clients::publish`](super::Clients::publish) also sums it.
    pub(super) fn set_buffers(&self, buffers: Buffers, soft_limit: usize) {
        self.unread.store(buffers.unread, Relaxed);
        self.input.store(buffers.input + buffers.waiting, Relaxed);
        self.waiting.store(buffers.waiting, Relaxed);
        let queued = buffers.queued.map_or(-1, |queued| queued as i64);
        self.queued.store(queued, Relaxed);
        self.kept.store(buffers.kept, Relaxed);
        self.unsent.store(buffers.unsent, Relaxed);
        self.output.store(buffers.output, Relaxed);
        if soft_limit == 0 || buffers.unsent <= soft_limit {
            self.slow_since.store(0, Relaxed);
        } else if self.slow_since.load(Relaxed) == 0 {
            self.slow_since.store(self.now().saturating_add(1), Relaxed);
        }
    }

    /// The bytes of the buffer that the client has left with its thread.
    pub(crate) fn kept(&self) -> usize {
        self.kept.load(Relaxed)
    }

    /// Notes that the thread has freed that buffer.
    pub(super) fn has_freed(&self) {
        self.kept.store(0, Relaxed);
    }

    /// The bytes of both buffers, of what waits for a monitor or a subscriber, and of what a
    /// command gathers. A buffer that it has left counts for nothing: the thread frees it soon, and
    /// closing the client would not.
    pub(crate) fn held(&self) -> usize {
        let output = self.output.load(Relaxed).saturating_add(self.feed());
        let gathers = self.gathers.load(Relaxed);
        self.input.load(Relaxed).saturating_add(output + gathers)
    }

    /// Notes what a command of its gathers before it answers.
    pub(crate) fn set_gathers(&self, bytes: usize) {
        self.gathers.store(bytes, Relaxed);
    }

    /// The bytes that wait for it as a monitor or a subscriber.
    pub(crate) fn feed(&self) -> usize {
        self.feed.load(Relaxed)
    }

    pub(crate) fn set_feed(&self, bytes: usize) {
        self.feed.store(bytes, Relaxed);
    }

    /// Shows how many channels, patterns and channels of `SSUBSCRIBE` it listens to.
    pub(crate) fn set_subscriptions(&self, counts: [usize; 3]) {
        for (shown, count) in self.subscriptions.iter().zip(counts) {
            shown.store(count, Relaxed);
        }
    }

    /// Shows how many ranges it watches.
    pub(crate) fn set_watches(&self, count: usize) {
        self.watches.store(count, Relaxed);
    }

    /// Whether it listens to a channel, or watches a range.
    pub(crate) fn is_subscriber(&self) -> bool {
        let mut counts = self.subscriptions.iter().chain([&self.watches]);
        counts.any(|count| count.load(Relaxed) > 0)
    }

    pub(crate) fn is_blocked(&self) -> bool {
        self.is(State::Blocked)
    }

    /// Whether the client is on this machine.
    pub(crate) fn is_local(&self) -> bool {
        self.address().to_canonical().is_loopback()
    }

    /// The address that the client came from, as a text.
    pub(crate) fn address_text(&self) -> String {
        self.peer.to_string()
    }

    /// Ends the connection: its input now, and its output if it does not take its replies. Returns
    /// whether this was the first call.
    pub(crate) fn end(&self, why: Ending) -> bool {
        let first = self
            .ending
            .compare_exchange(0, why as u8, Relaxed, Relaxed)
            .is_ok();
        // Fails if the peer is gone; then the connection ends anyway.
        let how = if self.unsent.load(Relaxed) == 0 {
            Shutdown::Read
        } else {
            Shutdown::Both
        };
        let _ = lock(&self.socket).shutdown(how);
        first
    }

    /// Why the server ends the connection, if it does.
    pub(crate) fn ending(&self) -> Option<Ending> {
        let ending = self.ending.load(Relaxed);
        Ending::ALL.into_iter().find(|one| *one as u8 == ending)
    }

    /// Ends the client's waiting for a message. Returns whether it waits for one.
    pub(crate) fn unblock(&self, how: Unblock) -> bool {
        let is_blocked = self.is(State::Blocked);
        if is_blocked {
            self.unblock_error.store(how == Unblock::Error, Relaxed);
            self.unblock.notify_waiters();
        }
        is_blocked
    }

    /// Waits until another client [unblocks](Self::unblock) this one after this call.
    pub(crate) fn unblocked(&self) -> impl Future<Output = Unblock> {
        let unblocked = self.unblock.notified();
        async move {
            unblocked.await;
            if self.unblock_error.load(Relaxed) {
                Unblock::Error
            } else {
                Unblock::Timeout
            }
        }
    }

    /// The client in a line of the log.
    pub(crate) fn who(&self) -> String {
        let name = lock(&self.name).escape_ascii().to_string();
        format!("client id={} addr={} name={name}", self.id, self.peer)
    }

    /// Appends the client's line of `CLIENT LIST`, with Redis's names for the fields.
    pub(crate) fn describe(&self, command: Option<&'static str>, out: &mut String) {
        let idle = self.now().saturating_sub(self.last_active.load(Relaxed)) / 1000;
        let load = |counter: &AtomicUsize| counter.load(Relaxed);
        let (unread, input) = (load(&self.unread), load(&self.input) + self.kept());
        let (unsent, output) = (load(&self.unsent), load(&self.output) + load(&self.feed));
        let flags: String = [
            (self.is_subscriber(), 'P'),
            (self.peer.is_unix(), 'U'),
            (self.is(State::Blocked), 'b'),
            (self.queued.load(Relaxed) >= 0, 'x'),
            (self.no_evict.load(Relaxed), 'e'),
        ]
        .into_iter()
        .filter_map(|(has, flag)| has.then_some(flag))
        .collect();
        let library = lock(&self.library).clone();
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub={} psub={} ssub={} \
             multi={} qbuf={unread} qbuf-free={} argv-mem=0 multi-mem={} rbs={output} rbp={output} \
             obl={unsent} oll=0 omem={output} tot-mem={} events={} cmd={} user={} redir=-1 \
             resp={} lib-name={} lib-ver={} io-thread={} ranges={}",
            self.id,
            self.peer,
            self.local,
            lock(&self.socket).as_raw_fd(),
            lock(&self.name).escape_ascii(),
            self.age().as_secs(),
            if command.is_some() { 0 } else { idle },
            if flags.is_empty() { "N" } else { &flags },
            self.database.load(Relaxed),
            load(&self.subscriptions[0]),
            load(&self.subscriptions[1]),
            load(&self.subscriptions[2]),
            self.queued.load(Relaxed),
            input.saturating_sub(unread + load(&self.waiting)),
            load(&self.waiting),
            input + output + load(&self.gathers) + size_of::<Self>(),
            if unsent > 0 { "rw" } else { "r" },
            command.unwrap_or(*lock(&self.last_command)),
            lock(&self.user).escape_ascii(),
            self.protocol.load(Relaxed),
            library[0].escape_ascii(),
            library[1].escape_ascii(),
            self.worker(),
            load(&self.watches),
        );
    }

    /// Ends the client's input behind the bytes that have arrived, which are still read.
    pub(super) fn end_input(&self) {
        // Fails if the peer is gone; then there is no more input anyway.
        let _ = lock(&self.socket).shutdown(Shutdown::Read);
    }
}
