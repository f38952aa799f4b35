//! Claiming, leading, and stepping down.

use super::{Asking, Node};
use crate::action::{Action, Attempt, Outcome, Ready, Role};
use crate::leader::{self, Leader};
use crate::once::Answer;
use crate::position::Epoch;
use crate::record::Effects;
use crate::refusal::{Refusal, TryAgain};
use crate::replica::Taken;
use crate::time::Moment;
use crate::window::{Answered, Window};
use tremula_log::{Batch, Sequence};

impl Node {
    /// Whether the effects of a command would be taken now, if they have this number of bytes. To
    /// be asked before the command changes the state.
    ///
    /// # Errors
    ///
    /// The node does not lead, the effects are too long, or too much waits for the log.
    pub fn admits(&mut self, now: Moment, bytes: usize) -> Result<(), TryAgain> {
        self.set(now);
        let Some(leader) = &self.leader else {
            return Err(self.not_leading());
        };
        let (most, most_batch) = (
            self.config.most_unconfirmed_bytes,
            self.config.most_batch_bytes,
        );
        if bytes > most_batch {
            let most = most_batch;
            return Err(TryAgain::TooLong { bytes, most });
        }
        let waiting = leader.unconfirmed_bytes().saturating_add(bytes);
        if waiting > most {
            return Err(TryAgain::Busy { waiting, most });
        }
        self.waits.admit()
    }

    /// The effects of a command that the state has taken while the node led in this epoch, and the
    /// token of its reply, which is released or retracted later. Returns the sequence of the last
    /// record.
    ///
    /// # Errors
    ///
    /// As [`admits`](Self::admits); nothing is written then, and the state must be made anew.
    ///
    /// # Panics
    ///
    /// There are no effects: then the command is a [`read`](Self::read).
    pub fn propose(
        &mut self,
        now: Moment,
        epoch: Epoch,
        effects: &Effects,
        token: u64,
    ) -> Result<Sequence, TryAgain> {
        self.propose_batch(now, epoch, effects.as_batch(), token)
    }

    /// As [`propose`](Self::propose), with the records of one command or of several.
    ///
    /// # Errors
    ///
    /// As there.
    ///
    /// # Panics
    ///
    /// The batch has no record.
    pub fn propose_batch(
        &mut self,
        now: Moment,
        epoch: Epoch,
        effects: &Batch,
        token: u64,
    ) -> Result<Sequence, TryAgain> {
        assert!(!effects.is_empty(), "a command without effects is a read");
        self.admits(now, effects.bytes())?;
        self.leads_in(epoch)?;
        let now = self.now;
        let not_leading = self.not_leading();
        let leader = self.leader.as_mut().ok_or(not_leading)?;
        if leader.would_be_too_long(effects.bytes(), &self.config) {
            leader.cut(&mut self.names, &self.config);
        }
        let sequence = leader.add(now, effects);
        self.waits.reply(sequence, token);
        self.lead_on();
        Ok(sequence)
    }

    /// A linearizable read that the host has *already* made of the state; `now` is a moment behind
    /// it, and `epoch` is the one in which the node led before it. The reply may go out at once, or
    /// when its token is released.
    ///
    /// The order matters: a host that reads the clock, is stopped for a while, and reads the state
    /// then, may show a state that another leader has changed meanwhile. And a host that reads the
    /// state and is stopped may find that the node leads again, in a later epoch.
    ///
    /// # Errors
    ///
    /// The node does not lead, its lease has run out, or too much waits.
    pub fn read(&mut self, now: Moment, epoch: Epoch, token: u64) -> Result<Ready, TryAgain> {
        self.set(now);
        self.leads_in(epoch)?;
        let Some(leader) = &self.leader else {
            return Err(self.not_leading());
        };
        if self.now >= leader.lease_until {
            return Err(TryAgain::LeaseOver);
        }
        let (shown, confirmed) = (leader.last(), self.replica.point().last);
        if shown <= confirmed {
            return Ok(Ready::Now(shown));
        }
        self.waits.admit()?;
        Ok(self.waits.reply(shown, token))
    }

    /// What a command with this identifier was answered, if it was there before, and when that may
    /// go out again. `None` if the command is new: then the host carries it out.
    ///
    /// # Errors
    ///
    /// The node does not lead, or too much waits.
    pub fn once(
        &mut self,
        now: Moment,
        id: &[u8],
        token: u64,
    ) -> Result<Option<(Answer, Ready)>, TryAgain> {
        self.set(now);
        let Some(leader) = &self.leader else {
            return Err(self.not_leading());
        };
        if let Some(answer) = self.replica.once().get(id) {
            return Ok(Some((answer.clone(), Ready::Now(answer.sequence))));
        }
        let Some(answer) = leader.once(id).cloned() else {
            return Ok(None);
        };
        self.waits.admit()?;
        // Behind everything that waits already, since replies wait in order.
        let ready = self.waits.reply(leader.last(), token);
        Ok(Some((answer, ready)))
    }

    /// The log's answer to a try to append.
    pub fn appended(&mut self, now: Moment, attempt: Attempt, outcome: Outcome) {
        self.set(now);
        let window = match &mut self.leader {
            Some(leader) => Some(&mut leader.window),
            None => self.claim.as_mut(),
        };
        let Some(window) = window else {
            return;
        };
        let (now, config) = (self.now, &self.config);
        match window.answered(now, attempt, outcome, config, &mut self.actions) {
            Answered::Fine => self.confirm(),
            Answered::Fenced if self.leader.is_some() => self.step_down(),
            Answered::Fenced => self.give_up_claim(),
            Answered::Lost(end) => {
                let read = self.replica.position();
                self.refuse(Refusal::LostTail { end, read });
            }
            Answered::Misplaced { expected } => {
                if let Outcome::Stored(stored) = outcome {
                    self.refuse(Refusal::Misplaced { expected, stored });
                }
            }
        }
    }

    /// Takes what the log has of this node's messages, in order, into the confirmed state.
    pub(super) fn confirm(&mut self) {
        while let Some(message) = self.window_mut().and_then(Window::pop_stored) {
            match self.replica.take(message.position, &message.bytes) {
                Ok(Taken::Claim) => self.lead(message.first_sent),
                Ok(Taken::Batch(first, batch)) => self.commit(first, batch, false),
                Ok(Taken::Renewal) => {}
                Ok(Taken::Void) => return self.step_down(),
                Err(refusal) => return self.refuse(refusal),
            }
            let confirmed = self.replica.point().last;
            if let Some(leader) = &mut self.leader {
                let lease = message.first_sent.after(self.config.lease);
                leader.lease_until = leader.lease_until.max(lease);
                leader.confirmed(confirmed);
            }
            self.heard = self.now;
            self.waits.reached(confirmed, &mut self.actions);
        }
        self.lead_on();
    }

    /// Cuts batches, sends, and sends again.
    pub(super) fn lead_on(&mut self) {
        if let Some(leader) = &mut self.leader {
            leader
                .window
                .retry(self.now, &self.config, &mut self.actions);
            leader.send(self.now, &mut self.names, &self.config, &mut self.actions);
        }
    }

    fn lead(&mut self, claim_sent: Moment) {
        self.claim = None;
        let point = self.replica.point();
        let epoch = point.reign.epoch;
        self.leader = Some(Leader::new(epoch, point, claim_sent, &self.config));
        self.turn(Role::Leader(epoch));
    }

    /// Another node has appended, or the log says so: what is not confirmed is dropped.
    pub(super) fn step_down(&mut self) {
        if self.leader.take().is_none() {
            return;
        }
        self.waits
            .retract_replies(&TryAgain::SteppedDown, &mut self.actions);
        let point = self.replica.point().clone();
        self.actions.push_back(Action::Reload(point));
        self.asking = Asking {
            number: self.asking.number,
            ..Asking::default()
        };
        self.turn(Role::CatchingUp);
        self.read_again();
        self.ask_if_due();
    }

    pub(super) fn give_up_claim(&mut self) {
        self.claim = None;
        self.claim_not_before = self.now.after(self.config.retry_after);
        self.turn(Role::Follower);
    }

    pub(super) fn lease_of_leader_over(&self) -> Moment {
        self.heard
            .after(self.config.lease)
            .after(self.config.margin)
    }

    /// When a follower claims.
    pub(super) fn claims_at(&self) -> Moment {
        let reign = self.replica.reign();
        let is_free = reign.epoch == Epoch::NONE || reign.incarnation == self.names.incarnation;
        match is_free {
            true => self.claim_not_before,
            false => self.lease_of_leader_over().max(self.claim_not_before),
        }
    }

    pub(super) fn claim_if_due(&mut self) {
        if let Some(claim) = &mut self.claim {
            return claim.retry(self.now, &self.config, &mut self.actions);
        }
        if self.role != Role::Follower || self.claims_at() > self.now {
            return;
        }
        let id = self.names.next();
        let epoch = self.replica.reign().epoch.next();
        let bytes = leader::claim(self.replica.point(), epoch, &self.address, id);
        let mut claim = leader::claim_window(self.replica.position(), id, bytes);
        claim.send(self.now, &self.config, &mut self.actions);
        self.claim = Some(claim);
        self.turn(Role::Candidate);
    }

    /// Whether the node still leads in this epoch.
    fn leads_in(&self, epoch: Epoch) -> Result<(), TryAgain> {
        match self.role {
            Role::Leader(now) if now == epoch => Ok(()),
            _ => Err(self.not_leading()),
        }
    }

    pub(super) fn not_leading(&self) -> TryAgain {
        if let Some(refusal) = &self.refusal {
            return refusal.clone().into();
        }
        let leader = self.leader().map(str::to_owned);
        TryAgain::NotLeading { leader }
    }
}
