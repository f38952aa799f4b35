//! Reading the log: messages, its end, and what a follower may answer.

use super::{Freshness, Node};
use crate::action::{Action, Ready, Role};
use crate::leader::id_of;
use crate::position::Position;
use crate::refusal::{Refusal, TryAgain};
use crate::replica::Taken;
use crate::time::Moment;
use crate::wire::Header;
use tremula_log::{Batch, Sequence};

impl Node {
    /// A message that the reading with this number has come to.
    pub fn record(&mut self, now: Moment, reading: u64, position: Position, bytes: &[u8]) {
        self.set(now);
        if reading != self.reading.number || self.role == Role::Refusing {
            return;
        }
        let is_point = position == self.replica.point().position;
        if std::mem::take(&mut self.reading.begins_at_point) && is_point {
            return self.compare(position, bytes);
        }
        let next = self.replica.position().next();
        if position < next {
            return;
        }
        if position > next {
            let (missing, found) = (next, position);
            if self.reading.gap == Some(missing) {
                return self.refuse(Refusal::Hole { missing, found });
            }
            // The reading may have lost a message, which the next one will have.
            self.reading.gap = Some(missing);
            return self.read_again();
        }
        let own = id_of(bytes).zip(self.window_mut());
        if own.is_some_and(|(id, window)| window.seen(position, id)) {
            return self.confirm();
        }
        if self.leader.is_some() {
            return self.step_down();
        }
        if self.claim.is_some() {
            self.give_up_claim();
        }
        match self.replica.take(position, bytes) {
            Ok(taken) => self.follow(taken),
            Err(refusal) => self.refuse(refusal),
        }
    }

    /// The log begins at `first`, behind the message that the reading was to begin with.
    pub fn truncated(&mut self, now: Moment, reading: u64, first: Position) {
        self.set(now);
        if reading != self.reading.number || self.role == Role::Refusing {
            return;
        }
        self.reading.begins_at_point = false;
        let wanted = self.replica.position().next();
        if first > wanted {
            self.refuse(Refusal::Truncated { wanted, first });
        }
    }

    /// The answer to a question for the log's last message.
    pub fn end(&mut self, now: Moment, question: u64, end: Position) {
        self.set(now);
        let is_open = !matches!(self.role, Role::Refusing | Role::Leader(_));
        if question != self.asking.number || !is_open {
            return;
        }
        let read = self.asking.read;
        if end < read {
            return self.refuse(Refusal::LostTail { end, read });
        }
        self.asking.target.get_or_insert(end);
        let position = self.replica.position();
        let is_behind = end > position;
        if is_behind && self.asking.behind_at == Some(position) {
            // Nothing has come since the last answer.
            self.read_again();
        }
        self.asking.behind_at = is_behind.then_some(position);
        self.serve_if_caught_up();
    }

    /// What a read of the state shows that is made now, without waiting.
    ///
    /// # Errors
    ///
    /// The node serves nothing.
    pub fn freshness(&mut self, now: Moment) -> Result<Freshness, TryAgain> {
        self.set(now);
        self.serves()?;
        let sequence = self.replica.point().last;
        let staleness = self.now.since(self.heard);
        Ok(Freshness {
            sequence,
            staleness,
        })
    }

    /// A read that is to show a record: it may go on at once, or when its token is released; it is
    /// retracted at `until`.
    ///
    /// # Errors
    ///
    /// The node serves nothing, or too much waits.
    pub fn wait_for(
        &mut self,
        now: Moment,
        sequence: Sequence,
        token: u64,
        until: Moment,
    ) -> Result<Ready, TryAgain> {
        self.set(now);
        self.serves()?;
        let last = self.replica.point().last;
        if sequence <= last {
            return Ok(Ready::Now(last));
        }
        self.waits.admit()?;
        Ok(self.waits.read(sequence, token, until))
    }

    fn serves(&self) -> Result<(), TryAgain> {
        match self.role {
            Role::CatchingUp => Err(TryAgain::CatchingUp),
            Role::Refusing => Err(self.not_leading()),
            Role::Follower | Role::Candidate | Role::Leader(_) => Ok(()),
        }
    }

    /// Begins a new reading, at the message that the node's point ends with: it must still be
    /// there.
    pub(super) fn read_again(&mut self) {
        let point = self.replica.point().position;
        self.reading.number += 1;
        self.reading.begins_at_point = point > Position::NONE;
        let from = match self.reading.begins_at_point {
            true => point,
            false => point.next(),
        };
        let reading = self.reading.number;
        self.actions.push_back(Action::Read { reading, from });
    }

    /// Compares the message that the node's point ends with.
    fn compare(&mut self, position: Position, bytes: &[u8]) {
        let point = self.replica.point();
        match Header::decode(bytes) {
            Err(why) => self.refuse(Refusal::Unreadable { position, why }),
            Ok((header, _))
                if header.after() != point.last
                    || header.chain_after != point.chain
                    || header.epoch != point.reign.epoch =>
            {
                let refusal = Refusal::OtherHistory {
                    position,
                    theirs: header.after(),
                    their_chain: header.chain_after,
                    ours: point.last,
                    our_chain: point.chain,
                };
                self.refuse(refusal);
            }
            Ok(_) => {}
        }
    }

    /// Goes on behind a message that another node has sent, or this one before it stepped down.
    fn follow(&mut self, taken: Taken) {
        if taken != Taken::Void {
            self.heard = self.now;
        }
        if let Taken::Batch(first, batch) = taken {
            self.commit(first, batch, true);
        }
        self.waits
            .reached(self.replica.point().last, &mut self.actions);
        self.serve_if_caught_up();
    }

    /// Passes a confirmed batch on, unless the node's own log has it.
    pub(super) fn commit(&mut self, first: Sequence, batch: Batch, apply: bool) {
        let point = self.replica.point();
        let shared = point.last;
        match self.own {
            Some((own, _)) if shared < own => {}
            Some((own, chain)) if shared == own && chain == point.chain => self.own = None,
            Some((own, _)) => self.refuse(Refusal::OwnLogAhead { own, shared }),
            None => self.actions.push_back(Action::Commit {
                first,
                batch,
                apply,
            }),
        }
    }

    fn serve_if_caught_up(&mut self) {
        let target = self.asking.target;
        let is_there = target.is_some_and(|target| self.replica.position() >= target);
        if self.role != Role::CatchingUp || !is_there {
            return;
        }
        if let Some((own, _)) = self.own {
            let shared = self.replica.point().last;
            return self.refuse(Refusal::OwnLogAhead { own, shared });
        }
        self.turn(Role::Follower);
        self.claim_if_due();
    }

    pub(super) fn ask_if_due(&mut self) {
        if self.asking.next_at > self.now {
            return;
        }
        self.asking.number += 1;
        self.asking.read = self.replica.position();
        self.asking.next_at = self.now.after(self.config.ask_every);
        let question = self.asking.number;
        self.actions.push_back(Action::Ask { question });
    }
}
