//! What a leader has besides the confirmed state: effects that gather, messages under way, a lease.

use crate::action::Action;
use crate::config::Config;
use crate::once::Answer;
use crate::position::{Epoch, MessageId, Point, Position};
use crate::record::{self, Record};
use crate::time::Moment;
use crate::window::Window;
use crate::wire::{HEADER_BYTES, Header, Kind};
use std::collections::{HashMap, VecDeque};
use tremula_log::{Batch, Chain, Sequence};

/// The names of a node's messages.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    pub(crate) incarnation: u64,
    next: u64,
}

impl Names {
    pub(crate) const fn new(incarnation: u64) -> Self {
        Self {
            incarnation,
            next: 0,
        }
    }

    pub(crate) const fn next(&mut self) -> MessageId {
        let number = self.next;
        self.next += 1;
        MessageId {
            incarnation: self.incarnation,
            number,
        }
    }
}

/// The unconfirmed state of a leader.
#[derive(Debug)]
pub(crate) struct Leader {
    epoch: Epoch,
    pub(crate) window: Window,
    /// The number of the next message within the term.
    next_message: u64,
    /// The last record in a message, and the chain behind it.
    cut: (Sequence, Chain),
    /// Effects that are in no message.
    open: Batch,
    /// Since when there are some.
    open_since: Moment,
    /// When a message was sent first the last time.
    last_sent: Moment,
    /// Until when reads are served.
    pub(crate) lease_until: Moment,
    /// Answers of commands with an identifier that are not confirmed.
    once: HashMap<Box<[u8]>, Answer>,
    once_order: VecDeque<(Sequence, Box<[u8]>)>,
}

impl Leader {
    /// The leader whose claim, sent at this moment, has led to this point.
    pub(crate) fn new(epoch: Epoch, point: &Point, sent: Moment, config: &Config) -> Self {
        Self {
            epoch,
            window: Window::new(point.position),
            next_message: point.reign.next_message,
            cut: (point.last, point.chain),
            open: Batch::new(),
            open_since: sent,
            last_sent: sent,
            lease_until: sent.after(config.lease),
            once: HashMap::new(),
            once_order: VecDeque::new(),
        }
    }

    /// The last record that a command was given.
    pub(crate) const fn last(&self) -> Sequence {
        self.cut.0.plus(self.open.len() as u64)
    }

    /// Bytes that are not confirmed.
    pub(crate) const fn unconfirmed_bytes(&self) -> usize {
        self.open.bytes() + self.window.bytes()
    }

    /// The answer to the command with this identifier, if it is not confirmed.
    pub(crate) fn once(&self, id: &[u8]) -> Option<&Answer> {
        self.once.get(id)
    }

    /// Takes the effects of one command, and returns the last record's sequence.
    pub(crate) fn add(&mut self, now: Moment, effects: &Batch) -> Sequence {
        if self.open.is_empty() {
            self.open_since = now;
        }
        let first = self.last().plus(1);
        for (sequence, record) in record::records(first, effects) {
            if let Record::Once { id, answer } = record {
                let bytes = answer.into();
                self.once.insert(id.into(), Answer { sequence, bytes });
                self.once_order.push_back((sequence, id.into()));
            }
        }
        for record in effects.records() {
            self.open.push(record);
        }
        self.last()
    }

    /// Cuts a batch if it is time to, and sends what may be sent.
    pub(crate) fn send(
        &mut self,
        now: Moment,
        names: &mut Names,
        config: &Config,
        actions: &mut VecDeque<Action>,
    ) {
        let is_full = self.open.bytes() >= config.batch_bytes;
        let is_due = self.cut_at(config).is_some_and(|at| at <= now);
        if !self.open.is_empty() && (is_full || is_due) {
            self.cut(names, config);
        }
        if self.renew_at(config).is_some_and(|at| at <= now) {
            let header = self.header(Kind::Renewal, names.next());
            self.window.push(header.id, header.encode(&[]));
        }
        let before = actions.len();
        self.window.send(now, config, actions);
        if actions.len() > before {
            self.last_sent = now;
        }
    }

    /// When the effects that gather are due: at once if nothing is under way, and never while the
    /// window is full.
    pub(crate) fn cut_at(&self, config: &Config) -> Option<Moment> {
        if self.open.is_empty() || !self.window.has_room(config) {
            return None;
        }
        match self.window.is_empty() {
            true => Some(self.open_since),
            false => Some(self.open_since.after(config.batch_delay)),
        }
    }

    /// When the lease is to be renewed: never while messages are under way, which renew it too.
    pub(crate) fn renew_at(&self, config: &Config) -> Option<Moment> {
        let is_idle = self.window.is_empty() && self.open.is_empty();
        is_idle.then(|| self.last_sent.after(config.renew_every))
    }

    /// Forgets answers up to this record: the confirmed table has them.
    pub(crate) fn confirmed(&mut self, last: Sequence) {
        while self.once_order.front().is_some_and(|(at, _)| *at <= last) {
            if let Some((_, id)) = self.once_order.pop_front() {
                self.once.remove(&id);
            }
        }
    }

    /// Whether these effects would make the batch that gathers longer than one may be.
    pub(crate) const fn would_be_too_long(&self, bytes: usize, config: &Config) -> bool {
        !self.open.is_empty() && self.open.bytes() + bytes > config.most_batch_bytes
    }

    /// Makes messages of the effects that gather.
    pub(crate) fn cut(&mut self, names: &mut Names, config: &Config) {
        let batch = std::mem::take(&mut self.open);
        let chain = batch.chain_behind(self.cut.1);
        let body_bytes = config.message_bytes - HEADER_BYTES;
        let parts = batch.as_bytes().chunks(body_bytes);
        let count = parts.len() as u32;
        for (part, body) in (0..).zip(parts) {
            let header = Header {
                chain_after: chain,
                records: batch.len() as u32,
                part,
                parts: count,
                ..self.header(Kind::Part, names.next())
            };
            self.window.push(header.id, header.encode(body));
        }
        self.cut = (self.cut.0.plus(batch.len() as u64), chain);
    }

    fn header(&mut self, kind: Kind, id: MessageId) -> Header {
        let in_term = self.next_message;
        self.next_message += 1;
        Header {
            kind,
            id,
            epoch: self.epoch,
            in_term,
            before: self.cut.0,
            chain_before: self.cut.1,
            chain_after: self.cut.1,
            records: 0,
            part: 0,
            parts: 1,
        }
    }
}

/// The message by which a node that has read up to here claims.
pub(crate) fn claim(point: &Point, epoch: Epoch, address: &str, id: MessageId) -> Vec<u8> {
    let header = Header {
        kind: Kind::Claim,
        id,
        epoch,
        in_term: 0,
        before: point.last,
        chain_before: point.chain,
        chain_after: point.chain,
        records: 0,
        part: 0,
        parts: 1,
    };
    header.encode(address.as_bytes())
}

/// The id of a message, for a node that looks for its own.
pub(crate) fn id_of(bytes: &[u8]) -> Option<MessageId> {
    Header::decode(bytes).ok().map(|(header, _)| header.id)
}

/// The claim of a node that has read up to here, parts of batches included.
pub(crate) fn claim_window(read: Position, id: MessageId, bytes: Vec<u8>) -> Window {
    let mut window = Window::new(read);
    window.push(id, bytes);
    window
}
