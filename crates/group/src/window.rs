//! Messages on their way to the log: in order, a limited number at once, sent again until it is
//! known what came of each.
//!
//! 1. A message's position is predicted, and it is appended only there.
//! 2. Messages are confirmed in their order. One that the log has is not confirmed before all
//!    earlier ones are: the place before it may be another node's.
//! 3. A message keeps its id and its bytes over all tries, and the time of its first one. So a
//!    lease that its confirmation renews began before any other node can have seen it.

use crate::action::{Action, Attempt, Outcome};
use crate::config::Config;
use crate::position::{MessageId, Position};
use crate::time::Moment;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// How often the time between tries doubles.
const MOST_DOUBLINGS: u32 = 4;

/// A message that is not confirmed.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) position: Position,
    pub(crate) id: MessageId,
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) first_sent: Moment,
    /// 0 if it was not sent.
    tries: u32,
    /// What was confirmed when it was sent last: the log cannot end before.
    confirmed: Position,
    retry_at: Moment,
    is_stored: bool,
}

/// Messages that are not confirmed, in order.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    messages: VecDeque<Message>,
    /// How many of them were sent.
    under_way: usize,
    confirmed: Position,
    bytes: usize,
}

/// What an answer of the log says about the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answered {
    /// Nothing more than about its message.
    Fine,
    /// Another node has appended.
    Fenced,
    /// The log has lost what it had confirmed; it ends here.
    Lost(Position),
    /// The log has stored a message at another place than this one.
    Misplaced { expected: Position },
}

impl Window {
    /// No messages; everything up to this position is confirmed.
    pub(crate) const fn new(confirmed: Position) -> Self {
        Self {
            messages: VecDeque::new(),
            under_way: 0,
            confirmed,
            bytes: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The bytes of all messages.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a new message would be sent at once.
    pub(crate) fn has_room(&self, config: &Config) -> bool {
        self.messages.len() < config.window
    }

    /// Adds a message behind the others. `first_sent` is set when it is sent.
    pub(crate) fn push(&mut self, id: MessageId, bytes: Vec<u8>) {
        self.bytes += bytes.len();
        let before = self.messages.back().map(|message| message.position);
        self.messages.push_back(Message {
            position: before.unwrap_or(self.confirmed).next(),
            id,
            bytes: bytes.into(),
            first_sent: Moment::default(),
            tries: 0,
            confirmed: self.confirmed,
            retry_at: Moment::default(),
            is_stored: false,
        });
    }

    /// Sends messages that were not sent, as far as the window allows.
    pub(crate) fn send(&mut self, now: Moment, config: &Config, actions: &mut VecDeque<Action>) {
        while self.under_way < config.window {
            let Some(message) = self.messages.get_mut(self.under_way) else {
                return;
            };
            message.first_sent = now;
            message.send(now, self.confirmed, config, actions);
            self.under_way += 1;
        }
    }

    /// Sends again what was sent and is not known to be stored, if the oldest has waited long
    /// enough.
    pub(crate) fn retry(&mut self, now: Moment, config: &Config, actions: &mut VecDeque<Action>) {
        if self.retry_at().is_some_and(|at| at <= now) {
            self.send_again(now, config, actions);
        }
    }

    /// When [`retry`](Self::retry) has something to do.
    pub(crate) fn retry_at(&self) -> Option<Moment> {
        let sent = self.messages.iter().take(self.under_way);
        sent.filter(|message| !message.is_stored)
            .map(|message| message.retry_at)
            .next()
    }

    fn send_again(&mut self, now: Moment, config: &Config, actions: &mut VecDeque<Action>) {
        for message in self.messages.iter_mut().take(self.under_way) {
            if !message.is_stored {
                message.send(now, self.confirmed, config, actions);
            }
        }
    }

    /// Takes the answer to one try.
    pub(crate) fn answered(
        &mut self,
        now: Moment,
        attempt: Attempt,
        outcome: Outcome,
        config: &Config,
        actions: &mut VecDeque<Action>,
    ) -> Answered {
        let find = |message: &&mut Message| message.id == attempt.message;
        let Some(message) = self.messages.iter_mut().find(find) else {
            return Answered::Fine;
        };
        match outcome {
            Outcome::Stored(position) if position == message.position => {
                message.is_stored = true;
                Answered::Fine
            }
            Outcome::Stored(_) => Answered::Misplaced {
                expected: message.position,
            },
            // What an older try met may be over; the newest one's answer decides.
            Outcome::WrongEnd(_) if attempt.number != message.tries || message.is_stored => {
                Answered::Fine
            }
            Outcome::WrongEnd(end) if end >= message.position => Answered::Fenced,
            Outcome::WrongEnd(end) if end < message.confirmed => Answered::Lost(end),
            // An earlier message has not arrived.
            Outcome::WrongEnd(_) => {
                self.send_again(now, config, actions);
                Answered::Fine
            }
            Outcome::Unknown => Answered::Fine,
        }
    }

    /// Notes that the oldest message was read from the log. `false` if another one lies there.
    pub(crate) fn seen(&mut self, position: Position, id: MessageId) -> bool {
        match self.messages.front_mut() {
            Some(front) if front.position == position && front.id == id => {
                front.is_stored = true;
                true
            }
            _ => false,
        }
    }

    /// Takes out the oldest message, if the log has it.
    pub(crate) fn pop_stored(&mut self) -> Option<Message> {
        self.messages.front().filter(|oldest| oldest.is_stored)?;
        let message = self.messages.pop_front()?;
        self.under_way -= 1;
        self.bytes -= message.bytes.len();
        self.confirmed = message.position;
        Some(message)
    }
}

impl Message {
    fn send(
        &mut self,
        now: Moment,
        confirmed: Position,
        config: &Config,
        actions: &mut VecDeque<Action>,
    ) {
        let wait: Duration = config.retry_after * (1 << self.tries.min(MOST_DOUBLINGS));
        self.tries = self.tries.saturating_add(1);
        self.retry_at = now.after(wait);
        self.confirmed = confirmed;
        actions.push_back(Action::Append {
            attempt: Attempt {
                message: self.id,
                number: self.tries,
            },
            expected: Position::new(self.position.get() - 1),
            id: self.id,
            bytes: Arc::clone(&self.bytes),
        });
    }
}
