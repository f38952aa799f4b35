//! The databases as an operation reaches them: freely, or in a step that holds parts of them.

use crate::access::Holding;
use crate::answers::{Answers, Begun};
use crate::database::Database;
use crate::effects::{Effects, Journal, Unlogged};
use crate::keyspace::Keyspace;
use crate::notices::{Cause, Notices};
use crate::value_cache::{Evicted, ValueCache};
use crate::{Expiry, Key, Value};
use tremula_index::{Transaction, View};

/// The databases of a store as one operation reaches them: freely, or in a step that holds parts of
/// them.
#[derive(Clone, Copy)]
pub struct Databases<'a> {
    pub(crate) keyspace: &'a Keyspace,
    pub(crate) cache: Option<&'a ValueCache>,
    pub(crate) journal: Option<&'a Journal>,
    pub(crate) step: Option<&'a dyn Running>,
    pub(crate) notices: &'a Notices,
    pub(crate) answers: &'a Answers,
    pub(crate) cause: Cause,
}

/// A step that is running.
pub(crate) trait Running {
    fn holding(&self, database: usize) -> Option<&dyn Holding>;
    fn note(&self, write: &mut dyn FnMut(&mut Effects<'_>));
    fn evicted(&self, evicted: Evicted);
    fn expect(&self, changes: usize);
    fn expect_own(&self, changes: usize);
}

/// In the place of a database of which a step holds nothing.
struct OutOfReach;

const OUT_OF_REACH: &str = "a step holds nothing of a database that it touches: name it in `hold`";

impl Holding for OutOfReach {
    fn look(&self, _: &mut dyn FnMut(&dyn View<Key, Value>)) {
        panic!("{OUT_OF_REACH}");
    }

    fn change(&self, _: &mut dyn FnMut(&mut dyn Transaction<Key, Value>)) {
        panic!("{OUT_OF_REACH}");
    }

    fn now(&self) -> Expiry {
        panic!("{OUT_OF_REACH}");
    }
}

impl<'a> Databases<'a> {
    /// The databases for writes whose notices name this cause to a [`Listener`](crate::Listener).
    #[inline]
    #[must_use]
    pub const fn caused_by(mut self, name: &'static str) -> Self {
        self.cause = Cause::Caller(name);
        self
    }

    /// The databases for writes that make room.
    pub(crate) const fn for_eviction(mut self) -> Self {
        self.cause = Cause::Eviction;
        self
    }

    /// Whether this is within a step: what is not held is out of reach, and everything ends soon.
    #[must_use]
    pub const fn are_held(&self) -> bool {
        self.step.is_some()
    }

    /// The database with this number.
    ///
    /// # Panics
    ///
    /// If the number is not below [`DATABASES`](crate::DATABASES).
    #[inline]
    #[must_use]
    pub fn database(&self, number: usize) -> Database<'a> {
        let kept = self.keyspace.kept(number);
        match self.step {
            None => kept.free(),
            Some(step) => kept.held(step.holding(number).unwrap_or(&OutOfReach)),
        }
    }

    /// Runs `write` with the [`Effects`] that every write needs, as
    /// [`Store::commit`](crate::Store::commit) does. In a step, the log gets them with the rest of
    /// the step.
    ///
    /// # Errors
    ///
    /// [`Unlogged`] if the log takes nothing more. Then `write` has not run. Not in a step.
    ///
    /// # Panics
    ///
    /// In a step, if `write` calls this again.
    #[inline]
    pub fn commit<R>(&self, write: impl FnOnce(&mut Effects<'_>) -> R) -> Result<R, Unlogged> {
        if let (Some(journal), None) = (self.journal, self.step) {
            journal.admit()?;
        }
        Ok(self.commit_anyway(write))
    }

    /// As [`commit`](Self::commit), also if the log takes nothing more: for what must not stay, and
    /// may come back when the store is opened again.
    #[inline]
    pub(crate) fn commit_anyway<R>(&self, write: impl FnOnce(&mut Effects<'_>) -> R) -> R {
        let Some(step) = self.step else {
            let mut effects = Effects::new(self.journal).reported_to(self.notices.listener());
            effects.caused_by(self.cause);
            let written = write(&mut effects);
            effects.submit();
            effects.report();
            return written;
        };
        let (mut write, mut written) = (Some(write), None);
        step.note(&mut |effects| {
            effects.caused_by(self.cause);
            written = write.take().map(|write| write(effects));
        });
        written.unwrap_or_else(|| unreachable!("the step runs it once"))
    }

    /// In a step that has changed nothing yet: how much it changes at most, if that is known better
    /// by now than when the step [began](crate::Store::hold).
    pub fn expect(&self, changes: usize) {
        if let Some(step) = self.step {
            step.expect(changes);
        }
    }

    /// In a step that has changed nothing yet: it will [answer](Self::answer) a command with an id.
    pub fn will_answer(&self) {
        if let Some(step) = self.step {
            step.expect_own(1);
        }
    }

    /// Remembers what a command with an id is answered: in a step, as a part of it, also in the
    /// log. To be called behind all that the command has done. O(bytes) on average.
    pub fn answer(&self, begun: &Begun<'_>, answer: &[u8]) {
        self.commit_anyway(|effects| {
            if effects.are_logged() {
                let version = effects.answer(begun.id(), answer);
                self.answers.enter(begun.id(), version, answer);
            } else {
                self.answers.enter_unlogged(begun.id(), answer);
            }
        });
    }

    /// Takes note of values that the cache has evicted. Returns those whose keys can be removed
    /// now: the keys of the others are removed behind the step.
    pub(crate) fn evicted(&self, evicted: Evicted) -> Evicted {
        match self.step {
            Some(step) if !evicted.is_empty() => {
                step.evicted(evicted);
                Evicted::new()
            }
            _ => evicted,
        }
    }
}
