//! How a connection receives from a mailbox: `MAILBOX.RECV`.

use super::waiting::UNBLOCKED;
use super::{Connection, READ_SIZE};
use crate::apart::{LONG, MANY, free};
use crate::clients::{State, Unblock};
use crate::commands::Receive;
use crate::transport::Socket;
use std::io::{self, ErrorKind};
use std::time::Duration;
use tokio::io::Interest;
use tremula_store::{Lease, Value};

/// How much input of a client that waits for messages is read ahead. The rest stays in the system's
/// buffers until the client has its answer.
const READ_AHEAD: usize = 64 << 10;

/// How often the server checks whether a client that has sent that much ahead is still there. After
/// the client has left, its mailbox and its place stay taken for this long.
const HANGUP_CHECK: Duration = Duration::from_millis(100);

/// What a message takes in a reply besides its bytes: its length and two line ends.
const MESSAGE_HEADER: usize = 32;

/// The command that receives.
const RECEIVE: &str = "mailbox.recv";

impl Connection {
    /// Receives from a mailbox, waits if the client asked for it, and answers. A message counts as
    /// delivered once the reply has been written. If the client leaves before, the next receiver
    /// gets it.
    pub(super) async fn receive(&mut self, receive: Receive) -> io::Result<()> {
        self.slow = None;
        self.output.begin();
        let Some(mut lease) = receive.post.lease().await else {
            let failure = if receive.post.is_dropped() {
                receive.dropped()
            } else {
                receive.busy()
            };
            self.fail_later(RECEIVE, &failure.text());
            self.output.finish();
            return self.send(false).await;
        };
        let unblocked = self.wait_for_messages(&mut lease, &receive).await?;
        if lease.taken().is_empty() && unblocked == Some(Unblock::Error) {
            self.fail_later(RECEIVE, UNBLOCKED);
        } else if lease.taken().is_empty() && receive.post.is_dropped() {
            self.fail_later(RECEIVE, &receive.dropped().text());
        } else {
            self.receive_more(&mut lease, receive.count).await;
            self.write_messages(&mut lease, receive.as_list).await;
        }
        self.output.finish();
        let sent = self.send(false).await;
        if lease.holds_messages() {
            free(LONG, lease);
        } else if sent.is_ok() {
            let messages = self.server.store.delivered(lease);
            // A mailbox that is kept has an effect of it.
            self.session.has_written = true;
            if messages.len() >= MANY {
                free(LONG, messages);
            }
        }
        sent
    }

    /// Takes the rest of the messages that are there, as far as the client wants them and the reply
    /// has room.
    async fn receive_more(&mut self, lease: &mut Lease, count: usize) {
        let most = self.server.live.max_output_buffer.bytes() / 2;
        let size = |messages: &[Value]| -> usize {
            let sizes = messages.iter().map(|one| one.len() + MESSAGE_HEADER);
            sizes.sum()
        };
        let mut bytes = size(lease.taken());
        // A mailbox of which nothing came, because the time is over, gets no second look.
        while !lease.taken().is_empty() && lease.taken().len() < count && bytes < most {
            let before = lease.taken().len();
            if lease.receive_more((count - before).min(MANY)) == 0 {
                break;
            }
            bytes += size(&lease.taken()[before..]);
            if self.turn.look() {
                self.give_way().await;
            }
        }
    }

    /// Waits until there is a message, the time is over, the mailbox is dropped, or the client has
    /// ended its input, because it may be gone.
    ///
    /// A client that has ended its input behind the command still gets a message that is there at
    /// once. A message that comes later stays in the mailbox.
    async fn wait_for_messages(
        &mut self,
        lease: &mut Lease,
        receive: &Receive,
    ) -> io::Result<Option<Unblock>> {
        let timeout = async {
            match receive.timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        let (client, input) = (&*self.client, &mut self.input);
        let stream = &mut self.stream;
        let mut had_to_wait = false;
        let mut how = None;
        let unblocked = client.unblocked();
        client.set_state(State::Blocked);
        let hangup = async {
            had_to_wait = true;
            // Commands that are read ahead run after this one has been answered.
            while input.len() < READ_AHEAD {
                stream.socket.readable().await?;
                input.reserve(READ_SIZE);
                match stream.try_read_buf(input) {
                    Ok(0) => return Ok(()),
                    Ok(_) => (),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => (),
                    Err(error) => return Err(error),
                }
            }
            // The end of the input is behind unread bytes, so reading does not show it.
            while !has_ended_input(&stream.socket).await {
                tokio::time::sleep(HANGUP_CHECK).await;
            }
            Ok(())
        };
        tokio::select! {
            biased;
            () = lease.receive(receive.count.min(MANY)) => (),
            () = timeout => (),
            by = unblocked => how = Some(by),
            ended = hangup => ended?,
        }
        client.is_active();
        client.set_state(State::Working);
        if had_to_wait && !lease.taken().is_empty() {
            // A client that left before the message was sent must not get it. While this task
            // yields, the event loop learns of everything that has happened to the socket.
            tokio::task::yield_now().await;
            if has_ended_input(&self.stream.socket).await {
                lease.keep(0);
            }
        }
        Ok(how)
    }

    /// Writes the taken messages as the reply, as many as it has room for.
    async fn write_messages(&mut self, lease: &mut Lease, as_list: bool) {
        let mut room = self.server.live.max_output_buffer.bytes() / 2;
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
                    if self.turn.spend(1) || self.turn.spend_bytes(message.len()) {
                        self.give_way().await;
                    }
                }
            }
        }
    }
}

/// Whether the client will send no more, as far as the event loop knows: it has closed the
/// connection or its half of it, or the server has ended its input. Earlier bytes may be unread.
pub(super) async fn has_ended_input(socket: &Socket) -> bool {
    tokio::select! {
        biased;
        ready = socket.ready(Interest::READABLE) => {
            ready.map_or(true, |ready| ready.is_read_closed())
        }
        // Nothing is unread, and the input has not ended.
        () = std::future::ready(()) => false,
    }
}
