//! One connection: reads bytes, runs commands, writes replies.
//!
//! A connection reads what has arrived, runs every complete command in it, and sends the replies in
//! one write. While a client does not read its replies, the server does not read its commands
//! either. So the limits bound the memory that a client can make the server hold.

use crate::clients::Client;
use crate::commands::{self, Next, Receive, Search, Session};
use crate::limits::REPLY_BATCH;
use crate::resp::{ProtocolError, Reply, RequestParser};
use crate::server::Shared;
use std::io::{self, ErrorKind};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tremula_store::Lease;

/// Bytes requested in one read, as in Redis, so that a deep pipeline takes one system call.
const READ_SIZE: usize = 16 << 10;

/// Initial room for replies, enough for a usual pipeline without growing in steps.
const REPLY_SIZE: usize = 4 << 10;

/// How much input of a client that waits for messages is read ahead. The rest stays in the system's
/// buffers until the client has its answer.
const READ_AHEAD: usize = 64 << 10;

/// How often the server checks whether a client that has sent that much ahead is still there. After
/// the client has left, its mailbox and its place stay taken for this long.
const HANGUP_CHECK: Duration = Duration::from_millis(100);

/// What a message takes in a reply besides its bytes: its length and two line ends.
const MESSAGE_HEADER: usize = 32;

/// How long, and for how many bytes, a connection that the server closes goes on reading. If it
/// were closed with unread input, the system would discard the last reply.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 16 << 20;

struct Connection<'a> {
    server: &'a Shared,
    client: &'a Client,
    session: Session,
    parser: RequestParser,
    /// Received bytes. The first `consumed` ones are done.
    input: Vec<u8>,
    consumed: usize,
    output: Reply,
}

/// Serves a client until it leaves, breaks the protocol, or the server shuts down.
pub(crate) async fn serve(server: &Shared, client: &Client) {
    let mut connection = Connection {
        server,
        client,
        session: Session::default(),
        parser: RequestParser::new(&server.limits),
        input: Vec::new(),
        consumed: 0,
        output: Reply::new(server.limits.max_output_buffer.0),
    };
    if let Err(error) = connection.run().await {
        tracing::debug!(client = client.id, %error, "connection lost");
    }
}

impl Connection<'_> {
    async fn run(&mut self) -> io::Result<()> {
        loop {
            if !self.read().await? {
                return Ok(());
            }
            loop {
                let next = self.run_commands();
                self.send().await?;
                match next {
                    Next::Reply => break,
                    Next::Pause => tokio::task::yield_now().await,
                    Next::Receive(receive) => self.receive(receive).await?,
                    Next::Search(search) => {
                        if !self.search(*search).await? {
                            return self.close().await;
                        }
                    }
                    Next::Close => return self.close().await,
                }
            }
        }
    }

    /// Reads what has arrived; `false` at the end of the input.
    async fn read(&mut self) -> io::Result<bool> {
        self.release_buffers();
        loop {
            self.client.stream.readable().await?;
            // Reserves room for one read, or for as much as a long command has brought so far, but
            // never for the length that it declares.
            self.input.reserve(READ_SIZE);
            let room = self.input.capacity() - self.input.len();
            match self.client.stream.try_read_buf(&mut self.input) {
                Ok(0) => return Ok(false),
                Ok(read) => {
                    if read == room {
                        // There is probably more. Other clients come first, so that a client that
                        // never stops sending does not starve the rest of its thread.
                        tokio::task::yield_now().await;
                    }
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => (),
                Err(error) => return Err(error),
            }
        }
    }

    /// Moves an unfinished command to the front of its buffer, and frees empty buffers, so that an
    /// idle client costs no more than its socket.
    fn release_buffers(&mut self) {
        if self.consumed == self.input.len() {
            self.input = Vec::new();
        } else {
            self.input.drain(..self.consumed);
        }
        self.consumed = 0;
        self.output.bytes = Vec::new();
    }

    /// Runs the commands that have arrived, until one needs more than its reply. [`Next::Reply`]
    /// means that every complete one has run.
    fn run_commands(&mut self) -> Next {
        self.output.bytes.reserve(REPLY_SIZE);
        let mut ran = 0;
        let next = loop {
            let unread = &self.input[self.consumed..];
            let mut next = Next::Reply;
            match self.parser.parse(unread) {
                Ok(Some(length)) => {
                    let arguments = self.parser.arguments(unread);
                    if arguments.len() > 0 {
                        next = commands::execute(
                            self.server,
                            self.client,
                            &mut self.session,
                            &mut self.output,
                            arguments,
                        );
                        ran += 1;
                    }
                    self.consumed += length;
                    self.parser.next();
                }
                Ok(None) if unread.len() > self.server.limits.max_query_buffer.0 => {
                    let limit = self.server.limits.max_query_buffer.0;
                    break self.refuse(&ProtocolError::QueryTooLong(limit));
                }
                Ok(None) => break Next::Reply,
                Err(error) => break self.refuse(&error),
            }
            match next {
                Next::Reply if self.output.bytes.len() >= REPLY_BATCH => break Next::Pause,
                Next::Reply => {}
                _ => break next,
            }
        };
        if ran > 0 {
            self.client.ran(self.session.last_command);
            self.server.stats.commands.fetch_add(ran, Relaxed);
        }
        next
    }

    /// Answers input that breaks the protocol.
    fn refuse(&mut self, error: &ProtocolError) -> Next {
        tracing::debug!(client = self.client.id, %error, "protocol error");
        self.output.begin();
        self.output.fail(&error.to_bytes());
        Next::Close
    }

    async fn send(&mut self) -> io::Result<()> {
        let mut unsent = &self.output.bytes[..];
        while !unsent.is_empty() {
            match self.client.stream.try_write(unsent) {
                Ok(sent) => unsent = &unsent[sent..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.client.stream.writable().await?;
                }
                Err(error) => return Err(error),
            }
        }
        self.output.bytes.clear();
        // One long reply must not keep its memory for the rest of the pipeline.
        self.output.bytes.shrink_to(2 * REPLY_BATCH);
        Ok(())
    }

    /// Goes on with a search until it is answered. Other clients run before each slice of it.
    /// Returns `false` if the answer was too long, so that the connection cannot go on.
    async fn search(&mut self, mut search: Search) -> io::Result<bool> {
        self.output.begin();
        loop {
            tokio::task::yield_now().await;
            match search.step(self.server, &mut self.output) {
                Ok(Some(rest)) => search = rest,
                Ok(None) => break,
                Err(failure) => {
                    self.output.fail(&failure.text());
                    break;
                }
            }
        }
        let fits = self.output.finish();
        self.send().await?;
        Ok(fits)
    }

    /// Receives from a mailbox, waits if the client asked for it, and answers. A message counts as
    /// delivered once the reply has been written. If the client leaves before, the next receiver
    /// gets it.
    async fn receive(&mut self, receive: Receive) -> io::Result<()> {
        self.output.begin();
        let Some(mut lease) = receive.post.lease().await else {
            let failure = if receive.post.is_dropped() {
                receive.dropped()
            } else {
                receive.busy()
            };
            self.output.fail(&failure.text());
            return self.send().await;
        };
        self.wait_for_messages(&mut lease, &receive).await?;
        if lease.taken().is_empty() && receive.post.is_dropped() {
            self.output.fail(&receive.dropped().text());
        } else {
            self.write_messages(&mut lease, receive.as_list);
        }
        self.send().await?;
        lease.delivered();
        Ok(())
    }

    /// Waits until there is a message, the time is over, the mailbox is dropped, or the client has
    /// ended its input, because it may be gone.
    ///
    /// A client that has ended its input behind the command still gets a message that is there at
    /// once. A message that comes later stays in the mailbox.
    async fn wait_for_messages(&mut self, lease: &mut Lease, receive: &Receive) -> io::Result<()> {
        let timeout = async {
            match receive.timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        let (client, input) = (self.client, &mut self.input);
        let mut had_to_wait = false;
        let hangup = async {
            had_to_wait = true;
            // Commands that are read ahead run after this one has been answered.
            while input.len() < READ_AHEAD {
                client.stream.readable().await?;
                input.reserve(READ_SIZE);
                match client.stream.try_read_buf(input) {
                    Ok(0) => return Ok(()),
                    Ok(_) => (),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => (),
                    Err(error) => return Err(error),
                }
            }
            // The end of the input is behind unread bytes, so reading does not show it.
            while !client.has_ended_input().await {
                tokio::time::sleep(HANGUP_CHECK).await;
            }
            Ok(())
        };
        tokio::select! {
            biased;
            () = lease.receive(receive.count) => (),
            () = timeout => (),
            ended = hangup => ended?,
        }
        if had_to_wait && !lease.taken().is_empty() {
            // A client that left before the message was sent must not get it. While this task
            // yields, the event loop learns of everything that has happened to the socket.
            tokio::task::yield_now().await;
            if client.has_ended_input().await {
                lease.keep(0);
            }
        }
        Ok(())
    }

    /// Writes the taken messages as the reply, as many as it has room for.
    fn write_messages(&mut self, lease: &mut Lease, as_list: bool) {
        let mut room = self.server.limits.max_output_buffer.0 / 2;
        let fitting = lease
            .taken()
            .iter()
            .enumerate()
            .take_while(|(index, message)| {
                let fits = *index == 0 || message.len() + MESSAGE_HEADER <= room;
                room = room.saturating_sub(message.len() + MESSAGE_HEADER);
                fits
            });
        let fitting = fitting.count();
        lease.keep(fitting);
        let messages = lease.taken();
        match messages {
            [] if as_list => self.output.null_array(),
            [] => self.output.null(),
            [message] if !as_list => self.output.bulk(message),
            _ => {
                self.output.array(messages.len());
                for message in messages {
                    self.output.bulk(message);
                }
            }
        }
    }

    /// Ends the output and waits a little until the client has seen it.
    async fn close(&mut self) -> io::Result<()> {
        self.input = Vec::new();
        socket2::SockRef::from(&self.client.stream).shutdown(std::net::Shutdown::Write)?;
        let linger = async {
            let mut ignored = [0; 4 << 10];
            let mut left = LINGER_BYTES;
            while left > 0 {
                self.client.stream.readable().await?;
                match self.client.stream.try_read(&mut ignored) {
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
