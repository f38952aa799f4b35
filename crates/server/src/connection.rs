//! One connection: reads bytes, runs commands, writes replies.
//!
//! A connection reads what has arrived, runs every complete command in it, and sends the replies in
//! one write. While a client does not read its replies, the server does not read its commands
//! either. So the limits bound the memory that a client can make the server hold.

mod forward;
mod handshake;
mod of_user;
mod receive;
mod round;
mod send;
mod waiting;

use crate::apart::{self, Job, LONG, free};
use crate::clients::{Admission, Buffers, Client, Clients, State};
use crate::commands::{
    self, Awaited, Failure, Lent, Next, Receive, Session, Transaction, Unfinished, Waiting,
};
use crate::figures::{Stopwatch, Stripe, Took};
use crate::limits::REPLY_BATCH;
use crate::memory::Room;
use crate::resp::{ProtocolError, Reply, RequestParser};
use crate::server::Shared;
use crate::shelf::{self, Ticket};
use crate::transport::{HANDSHAKE_RECORD, Socket, Stream};
use crate::turn::{BYTES_PER_UNIT, Turn};
use crate::watch;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Duration;
use tokio::runtime::Handle;

/// Bytes requested in one read, as in Redis, so that a deep pipeline takes one system call.
const READ_SIZE: usize = 16 << 10;

/// A buffer for input that is this many times as large as what came is made smaller.
const LEAST_FULL: usize = 4;

/// Initial room for replies, enough for a usual pipeline without growing in steps.
const REPLY_SIZE: usize = 4 << 10;

/// How long, and for how many bytes, a connection that the server closes goes on reading. If it
/// were closed with unread input, the system would discard the last reply.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 16 << 20;

struct Connection {
    server: Arc<Shared>,
    client: Arc<Client>,
    session: Session,
    parser: RequestParser,
    /// Received bytes. The first `consumed` ones are done.
    input: Vec<u8>,
    consumed: usize,
    /// Its buffer for input, while it waits for the client.
    kept: Option<Ticket>,
    /// The first request in the input that is not done, if it has begun.
    begun: Option<Begun>,
    /// The length of that request, if it begins on the thread apart.
    long: Option<usize>,
    /// The length of that request, if it waits until keys have been evicted for it.
    again: Option<usize>,
    /// Whether this is the thread apart.
    is_apart: bool,
    output: Reply,
    stopwatch: Stopwatch,
    turn: Turn,
    /// While what it runs takes longer than a turn.
    slow: Option<round::Slow>,
    stream: Stream,
    /// Whether nothing of the client has been taken yet.
    is_new: bool,
    /// The last look at the threads at which it asked whether it should move.
    seen: u32,
}

/// A client that is served: its connection and its place, which go with it when it moves to
/// another thread.
pub(crate) struct Served {
    connection: Connection,
    _listed: Listed,
    _admission: Admission,
}

/// Removes a client from the list when dropped, also by a panic.
struct Listed(Arc<Clients>, u64);

impl Drop for Listed {
    fn drop(&mut self) {
        self.0.disconnect(self.1);
    }
}

/// A request whose turn was over before it was done. It stays in the input, because its command
/// goes on reading its arguments.
struct Begun {
    length: usize,
    command: Unfinished,
}

/// What a connection that waits for commands goes on with.
enum Input {
    /// Something has arrived.
    Some,
    /// Nothing more comes, or memory is short.
    End,
    /// The client should move to the worker with this number.
    Leave(usize),
}

/// Why the connection stops running commands.
enum Pause {
    /// Every complete command has run.
    Idle,
    /// The turn is over, or the replies are long.
    Send,
    /// A command waits until `CLIENT PAUSE` is over.
    Paused,
    /// A user or password was wrong: the replies wait.
    Slow(Duration),
    /// A command receives messages.
    Receive(Receive),
    /// A command is answered after a time.
    Wait(Waiting),
    /// A command is answered when what was written is on the disk.
    Durable(Awaited),
    /// The leader of the group answers a request.
    Forward(Vec<u8>),
    /// The connection ends.
    Close,
}

impl Served {
    /// Begins to serve an admitted client.
    pub(crate) fn new(
        server: &Arc<Shared>,
        stream: Stream,
        admission: Admission,
    ) -> io::Result<Box<Self>> {
        let client = server.clients.connect(Arc::clone(&stream.socket))?;
        let listed = Listed(Arc::clone(&server.clients), client.id);
        Ok(Box::new(Self {
            connection: Connection::new(server, &client, stream),
            _listed: listed,
            _admission: admission,
        }))
    }

    /// Serves the client on a worker's thread until it leaves, breaks the protocol, or the server
    /// shuts down; or until it should move to the worker whose number is returned. Then it is
    /// between two commands, and everything that it has asked for is sent.
    pub(crate) async fn serve(&mut self, worker: usize) -> Option<usize> {
        let connection = &mut self.connection;
        connection.client.set_worker(worker);
        match connection.run(worker).await {
            Ok(None) => (),
            Ok(to) => return to,
            Err(error) => {
                tracing::debug!(client = connection.client.id, %error, "connection lost");
                if error.kind() == ErrorKind::InvalidData {
                    // TLS has sent an alert. Whether the client sees it makes no difference.
                    let _ = Box::pin(connection.close()).await;
                }
            }
        }
        connection.stream.end();
        if let Some(begun) = connection.begun.take() {
            // It may hold much.
            free(LONG, begun);
        }
        if connection.session.holds_much() {
            let new = Session::new(&connection.server.users);
            let session = std::mem::replace(&mut connection.session, new);
            let job: Job = Box::new(|_| drop(session));
            // Its place stays taken meanwhile, so that clients that come and go do not pile up what
            // is to be freed.
            Box::pin(apart::run(&connection.server, job)).await;
        }
        None
    }

    /// Lets another event loop watch the socket, and this thread's no longer. If that fails,
    /// nothing has changed.
    pub(crate) fn register_with(&mut self, handle: &Handle) -> io::Result<()> {
        let connection = &mut self.connection;
        // Another descriptor of the same socket, because this one stays until the other is ready.
        let socket = Arc::new(connection.stream.socket.watched_by(handle)?);
        connection.client.set_socket(Arc::clone(&socket));
        // The session goes along.
        connection.stream.socket = socket;
        Ok(())
    }
}

impl Connection {
    fn new(server: &Arc<Shared>, client: &Arc<Client>, stream: Stream) -> Self {
        Self {
            server: Arc::clone(server),
            client: Arc::clone(client),
            session: Session::new(&server.users),
            parser: RequestParser::new(&server.limits),
            input: Vec::new(),
            consumed: 0,
            kept: None,
            begun: None,
            long: None,
            again: None,
            is_apart: false,
            output: Reply::new(server.live.max_output_buffer.bytes()),
            stopwatch: Stopwatch::new(),
            turn: Turn::begin(server.limits.turn.time.0),
            slow: None,
            stream,
            is_new: true,
            seen: 0,
        }
    }

    /// Returns the worker that it should move to; `None` at its end.
    async fn run(&mut self, worker: usize) -> io::Result<Option<usize>> {
        let mut has_input = false;
        if self.is_new && self.stream.is_encrypted() {
            self.is_new = false;
            // In a box, because every client costs the size of this future.
            if !Box::pin(self.begin_tls()).await? {
                return Ok(None);
            }
            has_input = !self.input.is_empty();
        }
        loop {
            let input = match has_input {
                true => Input::Some,
                false => self.read(worker).await?,
            };
            match input {
                Input::Some => has_input = false,
                Input::End => {
                    self.part().await?;
                    return Ok(None);
                }
                Input::Leave(to) => return Ok(Some(to)),
            }
            if self.is_new {
                self.is_new = false;
                if self.input.first() == Some(&HANDSHAKE_RECORD) {
                    Box::pin(self.refuse_tls()).await?;
                    return Ok(None);
                }
            }
            self.client.set_state(State::Working);
            loop {
                let pause = if self.is_long() {
                    Box::pin(self.run_apart()).await
                } else {
                    self.run_commands()
                };
                if let Pause::Slow(wait) = pause {
                    tokio::time::sleep(wait).await;
                }
                self.send(matches!(pause, Pause::Idle)).await?;
                if self.client.ending().is_some() {
                    self.part().await?;
                    return Ok(None);
                }
                match pause {
                    Pause::Idle => break,
                    Pause::Slow(_) => (),
                    Pause::Send => {
                        self.goes_slowly();
                        if let Some(job) = self.apart() {
                            Box::pin(apart::run(&self.server, job)).await;
                            self.turn.again();
                        }
                    }
                    Pause::Paused => self.server.clients.pause.wait().await,
                    // In a box too.
                    Pause::Receive(receive) => Box::pin(self.receive(receive)).await?,
                    Pause::Wait(waiting) => Box::pin(self.wait_out(waiting)).await?,
                    Pause::Forward(request) => Box::pin(self.forward(request)).await?,
                    Pause::Durable(awaited) => Box::pin(self.await_durable(awaited)).await?,
                    Pause::Close => {
                        self.close().await?;
                        return Ok(None);
                    }
                }
                if self.turn.is_over() {
                    self.give_way().await;
                }
            }
            self.slow = None;
            self.client.set_state(State::Waiting);
            let threads = &self.server.threads;
            if let Some(to) = threads.asks_to_leave(worker, &mut self.seen) {
                return Ok(Some(to));
            }
        }
    }

    /// Ends a connection whose input has ended. If the server has ended it before a command was
    /// answered, the client learns why. A client that has sent no part of a command expects no
    /// reply, so it gets none.
    async fn part(&mut self) -> io::Result<()> {
        let Some(ending) = self.client.ending() else {
            return Ok(());
        };
        if self.begun.is_none() && self.consumed < self.input.len() {
            self.output.begin();
            self.output.fail(ending.text().as_bytes());
            self.output.finish();
            self.send(false).await?;
        }
        self.close().await
    }

    /// Shows what this connection holds.
    fn publish(&self) {
        // With TLS, replies may be encrypted and not sent.
        let encrypted = self.stream.unsent();
        let waiting = self.session.transaction.as_ref();
        let buffers = Buffers {
            waiting: waiting.map_or(0, Transaction::bytes) + self.session.watched.bytes(),
            queued: waiting.map(Transaction::len),
            unread: self.input.len() - self.consumed,
            input: self.input.capacity() + self.stream.held() + self.parser.grown(),
            kept: self.kept.as_ref().map_or(0, |kept| kept.bytes),
            unsent: self.output.len() + encrypted,
            output: self.output.capacity() + encrypted,
        };
        self.server.clients.publish(&self.client, buffers);
    }

    /// What this thread counts.
    #[inline]
    fn stripe(&self) -> &Stripe {
        let stripes = &self.server.figures.stripes;
        stripes.of(self.client.worker(), self.is_apart)
    }

    /// Keeps that a command took long. Its request is still in the input.
    #[cold]
    fn note_slow(&self, took: &Took) {
        let mut parser = RequestParser::new(&self.server.limits);
        parser.set_max_argument(usize::MAX);
        let request = &self.input[took.at..];
        if let Ok(Some(_)) = parser.parse(request) {
            let arguments = parser.arguments(request);
            watch::note_slow(
                &self.server,
                &self.client,
                took.command,
                arguments,
                took.time,
            );
        }
    }

    /// What the thread apart does for the command that has begun.
    fn apart(&mut self) -> Option<Job> {
        self.begun.as_mut()?.command.apart.take()
    }

    /// Reads what has arrived.
    async fn read(&mut self, worker: usize) -> io::Result<Input> {
        self.rest();
        self.publish();
        if !self.has_room_for_input().await {
            return Box::pin(self.refuse_input()).await;
        }
        loop {
            if self.client.ending().is_some() {
                return Ok(Input::End);
            }
            if self.session.outbox.is_some() {
                // In a box, as below.
                if let Some(to) = Box::pin(self.deliver(worker)).await? {
                    return Ok(Input::Leave(to));
                }
                if self.client.ending().is_some() {
                    return Ok(Input::End);
                }
            } else {
                self.wait_until_readable().await?;
            }
            if let Some(kept) = self.kept.take() {
                self.input = shelf::take(&kept).unwrap_or_default();
            }
            // Reserves room for one read, or for as much as a long command has brought so far, but
            // never for the length that it declares.
            if !self.make_room().await {
                return Box::pin(self.refuse_input()).await;
            }
            match self.stream.try_read_buf(&mut self.input) {
                Ok(0) => return Ok(Input::End),
                // The turn goes on, so that a client that never stops sending does not starve the
                // rest of its thread.
                Ok(read) => {
                    self.stripe().read.add(read as u64);
                    self.publish();
                    if self.turn.spend_bytes(read + BYTES_PER_UNIT) {
                        self.give_way().await;
                    }
                    return Ok(Input::Some);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.rest();
                    // The room for what did not come stays behind an unfinished command.
                    if self.input.capacity() > 0 {
                        self.publish();
                    }
                    // With TLS, much may have come and been no part of a command.
                    if self.turn.spend_bytes(READ_SIZE) {
                        self.give_way().await;
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes room for one read, unless the system has no memory. A long input is copied for it, on
    /// the thread apart.
    async fn make_room(&mut self) -> bool {
        let is_full = self.input.capacity() - self.input.len() < READ_SIZE;
        if is_full && self.input.len() >= LONG {
            let mut input = std::mem::take(&mut self.input);
            let grow = move || {
                let has_room = input.try_reserve(READ_SIZE).is_ok();
                (input, has_room)
            };
            let grown = Box::pin(apart::away(grow)).await;
            let (input, has_room) = grown.unwrap_or((Vec::new(), true));
            self.input = input;
            has_room
        } else {
            self.input.try_reserve(READ_SIZE).is_ok()
        }
    }

    /// Answers a request for which there is no memory, and ends the connection, because the rest of
    /// the request cannot be skipped.
    async fn refuse_input(&mut self) -> io::Result<Input> {
        self.input = Vec::new();
        self.output.begin();
        self.output.fail(&Failure::OUT_OF_MEMORY.text());
        self.output.finish();
        self.send(false).await?;
        self.close().await?;
        Ok(Input::End)
    }

    /// Whether the next part of the request may be read. While keys are evicted for it, other
    /// clients run.
    async fn has_room_for_input(&mut self) -> bool {
        let held = self.input.len();
        let missing = self.parser.declared_length().saturating_sub(held);
        loop {
            let (server, turn) = (&self.server, &mut self.turn);
            match server.memory.admit_input(server, turn, held, missing) {
                Room::Enough(_) => return true,
                Room::NotYet => self.give_way().await,
                Room::Short => return false,
            }
        }
    }

    /// Releases the buffers while the client is waited for. An empty one for input is left with the
    /// thread for a while, with no more room than the last commands needed.
    fn rest(&mut self) {
        let is_empty = self.consumed == self.input.len() && self.input.capacity() > 0;
        if is_empty && self.input.capacity() < LONG {
            let mut input = std::mem::take(&mut self.input);
            let needed = input.len().max(READ_SIZE);
            if input.capacity() / needed >= LEAST_FULL {
                input.clear();
                input.shrink_to(needed);
            }
            if self.server.memory.has_room(input.capacity() as u64) {
                match shelf::leave(self.client.id, input) {
                    Ok(ticket) => self.kept = Some(ticket),
                    Err(input) => drop(input),
                }
            }
            self.consumed = 0;
        }
        self.release_buffers();
    }

    /// Moves an unfinished command to the front of its buffer, and frees the room that it does not
    /// need while the client is waited for.
    fn release_buffers(&mut self) {
        if self.consumed == self.input.len() {
            let input = std::mem::take(&mut self.input);
            free(input.capacity(), input);
        } else {
            self.input.drain(..self.consumed);
            if self.input.len() < READ_SIZE / 4 {
                self.input.shrink_to_fit();
            }
        }
        self.consumed = 0;
        self.output.release();
    }

    /// Whether the next step of the first request may take long.
    fn is_long(&self) -> bool {
        let goes_on = self.begun.as_ref();
        self.long.is_some() || goes_on.is_some_and(|begun| begun.command.is_long)
    }

    /// Runs a step of the first request on the thread apart. The whole connection goes there, but
    /// for its socket, which the worker watches.
    async fn run_apart(&mut self) -> Pause {
        let socket = Stream::plain(Arc::clone(&self.stream.socket));
        let idle = Self::new(&self.server, &self.client, socket);
        let mut connection = std::mem::replace(self, idle);
        let run = move || {
            connection.is_apart = true;
            connection.turn.again();
            let pause = connection.run_commands();
            connection.is_apart = false;
            (connection, pause)
        };
        let Some((connection, pause)) = apart::away(run).await else {
            return Pause::Close;
        };
        *self = connection;
        self.turn.again();
        pause
    }

    /// Runs the commands that have arrived, until the turn is over or the replies are long. On the
    /// thread apart, runs one.
    fn run_commands(&mut self) -> Pause {
        self.output.reserve(REPLY_SIZE);
        self.apply_settings();
        let mut ran = 0;
        let pause = loop {
            self.parser.is_known = self.session.identity.user().is_some();
            let unread = &self.input[self.consumed..];
            let begun = self.begun.take();
            let parsed = self.long.take().or(self.again.take());
            let (length, unfinished) = match (begun, parsed) {
                (Some(begun), _) => (begun.length, Some(begun.command)),
                (None, Some(length)) => (length, None),
                (None, None) => match self.parser.parse(unread) {
                    Ok(Some(length)) => (length, None),
                    Ok(None) if unread.len() > self.server.live.max_query_buffer.bytes() => {
                        let limit = self.server.live.max_query_buffer.bytes();
                        break self.refuse(&ProtocolError::QueryTooLong(limit));
                    }
                    Ok(None) => break Pause::Idle,
                    Err(error) => break self.refuse(&error),
                },
            };
            let arguments = self.parser.arguments(unread);
            let mut next = Next::Reply;
            if arguments.len() > 0 {
                self.stopwatch.at = self.consumed;
                let written = self.output.len();
                let stripes = &self.server.figures.stripes;
                let lent = &mut Lent {
                    server: &self.server,
                    client: &self.client,
                    session: &mut self.session,
                    reply: &mut self.output,
                    turn: &mut self.turn,
                    is_apart: self.is_apart,
                    stripe: stripes.of(self.client.worker(), self.is_apart),
                    stopwatch: &mut self.stopwatch,
                };
                next = match unfinished {
                    Some(command) => commands::go_on(lent, command, arguments),
                    None => {
                        ran += 1;
                        commands::execute(lent, arguments)
                    }
                };
                let copied = length + self.output.len().saturating_sub(written);
                self.turn.spend_bytes(copied);
                if let Some(took) = self.stopwatch.take_slow() {
                    self.note_slow(&took);
                }
            }
            if let Next::Work(command) = next {
                self.begun = Some(Begun { length, command });
                break Pause::Send;
            }
            if let Next::Apart = next {
                self.long = Some(length);
                ran -= 1;
                self.client.ran(self.session.last_command, None);
                break Pause::Send;
            }
            if let Next::Again = next {
                self.again = Some(length);
                ran -= 1;
                break Pause::Send;
            }
            self.parser.next();
            if let Next::Paused = next {
                // The command stays in the input, and is parsed again after the pause.
                break Pause::Paused;
            }
            self.consumed += length;
            match next {
                Next::Receive(receive) => break Pause::Receive(receive),
                Next::Wait(waiting) => break Pause::Wait(waiting),
                Next::Forward(request) => break Pause::Forward(request),
                Next::Durable(awaited) => break Pause::Durable(awaited),
                Next::Close => break Pause::Close,
                Next::Slow(wait) => break Pause::Slow(wait),
                _ if self.is_apart || self.turn.is_over() || self.output.len() >= REPLY_BATCH => {
                    break Pause::Send;
                }
                _ => (),
            }
        };
        let stripes = &self.server.figures.stripes;
        let stripe = stripes.of(self.client.worker(), self.is_apart);
        let now = self.stopwatch.end(stripe);
        if let Some(took) = self.stopwatch.take_slow() {
            self.note_slow(&took);
        }
        if ran > 0 {
            self.client.ran(self.session.last_command, now);
            self.stripe().requests.add(ran);
        }
        pause
    }

    /// Takes over the settings that have changed.
    fn apply_settings(&mut self) {
        let live = &self.server.live;
        self.parser.set_max_argument(live.max_argument.bytes());
        self.output.set_limit(live.max_output_buffer.bytes());
        self.stopwatch.apply(live);
        self.stopwatch.begin();
    }

    /// Answers input that breaks the protocol.
    fn refuse(&mut self, error: &ProtocolError) -> Pause {
        tracing::debug!(client = self.client.id, %error, "protocol error");
        let text = error.to_bytes();
        self.stripe().error(&text);
        self.output.begin();
        self.output.fail(&text);
        self.output.finish();
        Pause::Close
    }

    async fn wait_until_readable(&mut self) -> io::Result<()> {
        self.wait_until(Socket::poll_read_ready).await
    }

    /// Waits until the socket is ready. If other clients ran meanwhile, the next turn begins.
    async fn wait_until(
        &mut self,
        is_ready: fn(&Socket, &mut task::Context<'_>) -> Poll<io::Result<()>>,
    ) -> io::Result<()> {
        let mut has_waited = false;
        std::future::poll_fn(|context| {
            let poll = is_ready(&self.stream.socket, context);
            has_waited |= poll.is_pending();
            poll
        })
        .await?;
        if has_waited {
            self.turn.again();
        }
        Ok(())
    }

    /// Ends the output and waits a little until the client has seen it.
    async fn close(&mut self) -> io::Result<()> {
        self.input = Vec::new();
        self.stream.end();
        let socket = &self.stream.socket;
        socket.shutdown(std::net::Shutdown::Write)?;
        let linger = async {
            // Not within this future, because every client costs its size.
            let mut ignored = vec![0; 4 << 10];
            let mut left = LINGER_BYTES;
            while left > 0 {
                socket.readable().await?;
                match socket.try_read(&mut ignored) {
                    Ok(0) => break,
                    Ok(read) => left = left.saturating_sub(read),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => (),
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        };
        // It makes no difference whether the client has seen it in time.
        tokio::time::timeout(LINGER, linger).await.unwrap_or(Ok(()))
    }
}
