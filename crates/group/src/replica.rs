//! What the messages of the log lead to: the rules that every node applies in the same way.
//!
//! ```text
//!  message   1        2       3        4        5           6        7        8
//!            claim 1  part    part     renewal  claim 2     part     part     part
//!            by A     of A    of A     of A     by B        of A     of B     of A
//!                     1 of 2  2 of 2                        (void)   (void)   (void)
//!                     `-- one batch --'
//! ```
//!
//! 1. A claim counts if it has the next epoch. Its sender had read everything before it, because it
//!    was appended on the condition that nothing else came in between.
//! 2. A message counts if it is the next one of the term that is open. A term is open from its
//!    claim to the first message of somebody else. Every other message is *void*: it changes
//!    nothing. So in the picture message 6 closes B's term, and B, whose append was to be message
//!    6, is refused and claims again.
//! 3. A batch counts when all of its parts have come. A claim drops parts without an end.
//! 4. What counts continues the last record and the chain. What does not is a `Refusal`: no right
//!    log has it.
//!
//! Rule 2 is needed because a condition on the last *number* alone does not fence pipelined
//! appends: if B's claim takes number 5, which A expected for its first message, A's first message
//! is refused, and A's second one, which expects to be number 6, is taken.

use crate::config::Config;
use crate::once::OnceTable;
use crate::position::{Point, Position, Reign};
use crate::record::{self, Record};
use crate::refusal::{Refusal, Unreadable};
use crate::wire::{Header, Kind, MOST_ADDRESS_BYTES};
use tremula_log::{Batch, Sequence};

/// A state that the messages of the log lead to.
#[derive(Clone, Debug)]
pub(crate) struct Replica {
    /// The state without the parts of a batch whose end has not come, and without void messages
    /// behind it.
    point: Point,
    /// The last message that was read.
    position: Position,
    /// The term as of `position`.
    reign: Reign,
    assembly: Option<Assembly>,
    once: OnceTable,
    most_batch_bytes: usize,
}

/// The parts of a batch that have come.
#[derive(Clone, Debug)]
struct Assembly {
    next_part: u32,
    bytes: Vec<u8>,
}

/// What a message was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// A new leader.
    Claim,
    /// A sign of the leader, or a part of a batch.
    Renewal,
    /// The end of a batch, whose first record has this sequence.
    Batch(Sequence, Batch),
    /// Nothing that counts.
    Void,
}

impl Replica {
    pub(crate) fn new(point: Point, once: OnceTable, config: &Config) -> Self {
        Self {
            position: point.position,
            reign: point.reign.clone(),
            point,
            assembly: None,
            once,
            most_batch_bytes: config.most_batch_bytes,
        }
    }

    pub(crate) const fn point(&self) -> &Point {
        &self.point
    }

    pub(crate) const fn position(&self) -> Position {
        self.position
    }

    pub(crate) const fn reign(&self) -> &Reign {
        &self.reign
    }

    pub(crate) const fn once(&self) -> &OnceTable {
        &self.once
    }

    /// Takes the next message.
    pub(crate) fn take(&mut self, position: Position, bytes: &[u8]) -> Result<Taken, Refusal> {
        debug_assert_eq!(position, self.position.next());
        let unreadable = |why| Refusal::Unreadable { position, why };
        let (header, body) = Header::decode(bytes).map_err(unreadable)?;
        let taken = match header.kind {
            Kind::Claim => self.claim(position, &header, body)?,
            _ if !self.counts(position, &header)? => {
                self.reign.is_open = false;
                self.assembly = None;
                Taken::Void
            }
            Kind::Renewal if self.assembly.is_some() => return Err(unreadable(Unreadable::Part)),
            Kind::Renewal => Taken::Renewal,
            Kind::Part => self.part(&header, body).map_err(unreadable)?,
        };
        self.position = position;
        if taken != Taken::Void {
            self.reign.next_message = header.in_term + 1;
            self.settle();
        }
        Ok(taken)
    }

    /// Whether the message of a leader is the next one of the open term.
    fn counts(&self, position: Position, header: &Header) -> Result<bool, Refusal> {
        if header.epoch > self.reign.epoch {
            return Err(Refusal::MissingClaim {
                position,
                found: header.epoch,
                known: self.reign.epoch,
            });
        }
        let is_leaders =
            header.epoch == self.reign.epoch && header.id.incarnation == self.reign.incarnation;
        if !is_leaders || !self.reign.is_open {
            return Ok(false);
        }
        if header.in_term != self.reign.next_message {
            return Err(Refusal::SkippedMessage {
                position,
                expected: self.reign.next_message,
                found: header.in_term,
            });
        }
        self.continues(position, header)?;
        Ok(true)
    }

    /// Checks that the message stands on the last record and on all before it.
    fn continues(&self, position: Position, header: &Header) -> Result<(), Refusal> {
        let Point { last, chain, .. } = self.point;
        if header.before == last && header.chain_before == chain {
            return Ok(());
        }
        Err(Refusal::OtherHistory {
            position,
            theirs: header.before,
            their_chain: header.chain_before,
            ours: last,
            our_chain: chain,
        })
    }

    fn claim(
        &mut self,
        position: Position,
        header: &Header,
        body: &[u8],
    ) -> Result<Taken, Refusal> {
        let known = self.reign.epoch;
        if header.epoch <= known {
            self.reign.is_open = false;
            self.assembly = None;
            return Ok(Taken::Void);
        }
        if header.epoch > known.next() {
            return Err(Refusal::MissingClaim {
                position,
                found: header.epoch,
                known,
            });
        }
        self.continues(position, header)?;
        let address = std::str::from_utf8(body).ok();
        let address = address.filter(|address| address.len() <= MOST_ADDRESS_BYTES);
        let address = address.ok_or(Refusal::Unreadable {
            position,
            why: Unreadable::Form,
        })?;
        self.assembly = None;
        self.reign = Reign {
            epoch: header.epoch,
            incarnation: header.id.incarnation,
            address: address.to_owned(),
            next_message: 1,
            is_open: true,
        };
        Ok(Taken::Claim)
    }

    fn part(&mut self, header: &Header, body: &[u8]) -> Result<Taken, Unreadable> {
        let next_part = self.assembly.as_ref().map_or(0, |begun| begun.next_part);
        if header.part != next_part {
            return Err(Unreadable::Part);
        }
        let assembly = self.assembly.get_or_insert_with(|| Assembly {
            next_part: 0,
            bytes: Vec::new(),
        });
        if assembly.bytes.len() + body.len() > self.most_batch_bytes {
            return Err(Unreadable::TooLong);
        }
        assembly.bytes.extend_from_slice(body);
        assembly.next_part += 1;
        if !header.is_last_part() {
            return Ok(Taken::Renewal);
        }
        let whole = self.assembly.take().map(|assembly| assembly.bytes);
        let batch = Batch::from_bytes(&whole.unwrap_or_default()).ok_or(Unreadable::Records)?;
        let chain = batch.chain_behind(self.point.chain);
        let is_named = batch.len() == header.records as usize && chain == header.chain_after;
        if !is_named
            || batch
                .records()
                .any(|record| record::decode(record).is_none())
        {
            return Err(Unreadable::Records);
        }
        let first = self.point.last.plus(1);
        for (sequence, record) in record::records(first, &batch) {
            if let Record::Once { id, answer } = record {
                self.once.enter(id, sequence, answer);
            }
        }
        self.point.last = header.after();
        self.point.chain = chain;
        Ok(Taken::Batch(first, batch))
    }

    /// Moves the point to the last message that was read, unless a batch has only begun.
    fn settle(&mut self) {
        if self.assembly.is_none() {
            self.point.position = self.position;
            self.point.reign = self.reign.clone();
        }
    }
}
