//! Replies and reads that wait for records.

use crate::action::{Action, Ready};
use crate::refusal::TryAgain;
use crate::time::Moment;
use std::collections::{BTreeMap, VecDeque};
use tremula_log::Sequence;

/// What waits, by the record that it waits for.
#[derive(Debug)]
pub(super) struct Waits {
    /// Replies of the leader, which wait for confirmation: in the order of their records.
    replies: VecDeque<(Sequence, u64)>,
    /// Reads that wait for a record, until a moment. The number distinguishes equal records.
    reads: BTreeMap<(Sequence, u64), (u64, Moment)>,
    next: u64,
    most: usize,
}

impl Waits {
    pub(super) const fn new(most: usize) -> Self {
        Self {
            replies: VecDeque::new(),
            reads: BTreeMap::new(),
            next: 0,
            most,
        }
    }

    /// Whether one more may wait.
    pub(super) fn admit(&self) -> Result<(), TryAgain> {
        let (waiting, most) = (self.replies.len() + self.reads.len(), self.most);
        match waiting < most {
            true => Ok(()),
            false => Err(TryAgain::Busy { waiting, most }),
        }
    }

    /// A reply that waits for the confirmation of a record, not before those that wait already.
    pub(super) fn reply(&mut self, sequence: Sequence, token: u64) -> Ready {
        self.replies.push_back((sequence, token));
        Ready::Later
    }

    /// A read that waits for a record until a moment.
    pub(super) fn read(&mut self, sequence: Sequence, token: u64, until: Moment) -> Ready {
        self.reads.insert((sequence, self.next), (token, until));
        self.next += 1;
        Ready::Later
    }

    /// Releases what waits for records up to `last`.
    pub(super) fn reached(&mut self, last: Sequence, actions: &mut VecDeque<Action>) {
        while self.replies.front().is_some_and(|(at, _)| *at <= last) {
            if let Some((sequence, token)) = self.replies.pop_front() {
                actions.push_back(Action::Release { token, sequence });
            }
        }
        while let Some(first) = self.reads.first_entry() {
            if first.key().0 > last {
                return;
            }
            let (token, _) = first.remove();
            let sequence = last;
            actions.push_back(Action::Release { token, sequence });
        }
    }

    /// The first moment at which a read has waited long enough. O(reads that wait).
    pub(super) fn deadline(&self) -> Option<Moment> {
        self.reads.values().map(|(_, until)| *until).min()
    }

    /// Retracts reads that have waited long enough. O(reads that wait).
    pub(super) fn expire(
        &mut self,
        now: Moment,
        reached: Sequence,
        actions: &mut VecDeque<Action>,
    ) {
        self.reads.retain(|(wanted, _), (token, until)| {
            if *until > now {
                return true;
            }
            let (token, wanted) = (*token, *wanted);
            let why = TryAgain::NotReached { wanted, reached };
            actions.push_back(Action::Retract { token, why });
            false
        });
    }

    /// Retracts the replies of a leader.
    pub(super) fn retract_replies(&mut self, why: &TryAgain, actions: &mut VecDeque<Action>) {
        for (_, token) in self.replies.drain(..) {
            let why = why.clone();
            actions.push_back(Action::Retract { token, why });
        }
    }

    /// Retracts everything.
    pub(super) fn retract_all(&mut self, why: &TryAgain, actions: &mut VecDeque<Action>) {
        self.retract_replies(why, actions);
        for (_, (token, _)) in std::mem::take(&mut self.reads) {
            let why = why.clone();
            actions.push_back(Action::Retract { token, why });
        }
    }
}
