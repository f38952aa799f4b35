//! What commands with an id were answered, so that one that comes again is not carried out again.
//!
//! The log has an answer together with the effects of its command, so the table is the same after a
//! restart, and on every node of a group. It keeps the answers with the highest versions, up to a
//! number and a number of bytes. Threads enter answers in another order than their versions, which
//! makes no difference to what is left.

use crate::Version;
use crate::effects::record::Change;
use std::collections::{BTreeMap, HashMap, HashSet};
use tremula_sync::Mutex;

/// The bytes that an id may have.
pub const MOST_ID_BYTES: usize = 256;

/// The longest answer that is kept.
pub const MOST_ANSWER_BYTES: usize = 64 << 10;

/// How many answers are kept.
pub const MOST_ANSWERS: usize = if cfg!(test) { 4 } else { 100_000 };

/// The bytes that ids and answers have together.
pub const OVER_ALL_BYTES: usize = if cfg!(test) { 100 } else { 64 << 20 };

/// The table.
#[derive(Default)]
pub(crate) struct Answers {
    inner: Mutex<Inner>,
}

/// An answer, with the version of the record that has it.
type Answer = (Version, Box<[u8]>);

#[derive(Default)]
struct Inner {
    answers: HashMap<Box<[u8]>, Answer>,
    /// The ids by the versions of their answers.
    order: BTreeMap<Version, Box<[u8]>>,
    /// Of ids and answers.
    bytes: usize,
    /// The ids of commands that run.
    running: HashSet<Box<[u8]>>,
    /// The last answer in a store without a log, whose versions have no order.
    last: u64,
}

/// What is known of a command with an id.
pub enum Asked<'s> {
    /// It is new. Others with its id wait until this is dropped.
    New(Begun<'s>),
    /// Another thread carries it out at the moment.
    Runs,
    /// It was carried out, and got this answer.
    Answered(Box<[u8]>),
}

/// The right to carry out the command with an id.
pub struct Begun<'s> {
    answers: &'s Answers,
    id: Box<[u8]>,
}

impl Begun<'_> {
    /// The id.
    #[must_use]
    pub fn id(&self) -> &[u8] {
        &self.id
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.answers.inner.lock().running.remove(&self.id);
    }
}

impl Answers {
    /// Enters an answer that no log has.
    pub(crate) fn enter_unlogged(&self, id: &[u8], answer: &[u8]) {
        let mut inner = self.inner.lock();
        inner.last += 1;
        let version = Version::wrapping(inner.last);
        drop(inner);
        self.enter(id, version, answer);
    }

    /// Enters an answer, and forgets the oldest ones beyond the limits. An id that is there already
    /// keeps its answer. O(log n).
    pub(crate) fn enter(&self, id: &[u8], version: Version, answer: &[u8]) {
        let mut inner = self.inner.lock();
        if inner.answers.contains_key(id) {
            return;
        }
        inner.bytes += id.len() + answer.len();
        inner.order.insert(version, id.into());
        inner.answers.insert(id.into(), (version, answer.into()));
        while inner.answers.len() > MOST_ANSWERS || inner.bytes > OVER_ALL_BYTES {
            let Some((_, oldest)) = inner.order.pop_first() else {
                return;
            };
            if let Some((_, answer)) = inner.answers.remove(&oldest) {
                inner.bytes -= oldest.len() + answer.len();
            }
        }
    }

    /// All of them, oldest first, as the log has them.
    pub(crate) fn all(&self) -> Vec<(Version, Change)> {
        let inner = self.inner.lock();
        let ids = inner.order.iter();
        let answers = ids.filter_map(|(version, id)| {
            let (_, answer) = inner.answers.get(id)?;
            Some((*version, Change::Answer(id.clone(), answer.clone())))
        });
        answers.collect()
    }

    /// What is known of the command with this id; if it is new, the right to carry it out.
    pub(crate) fn ask(&self, id: &[u8]) -> Asked<'_> {
        let mut inner = self.inner.lock();
        if let Some((_, answer)) = inner.answers.get(id) {
            return Asked::Answered(answer.clone());
        }
        if !inner.running.insert(id.into()) {
            return Asked::Runs;
        }
        Asked::New(Begun {
            answers: self,
            id: id.into(),
        })
    }

    /// How many there are, and the bytes of them and of their ids.
    pub(crate) fn held(&self) -> (usize, usize) {
        let inner = self.inner.lock();
        (inner.answers.len(), inner.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(answers: &Answers) -> Vec<Box<[u8]>> {
        answers.inner.lock().order.values().cloned().collect()
    }

    #[test]
    fn a_copy_of_a_command_that_runs_is_not_begun() {
        let answers = Answers::default();
        let Asked::New(begun) = answers.ask(b"id") else {
            panic!("nobody has asked before");
        };
        assert!(matches!(answers.ask(b"id"), Asked::Runs));
        assert!(matches!(answers.ask(b"another id"), Asked::New(_)));
        drop(begun);
        assert!(matches!(answers.ask(b"id"), Asked::New(_)));
    }

    #[test]
    fn the_newest_answers_stay_in_whatever_order_they_come() {
        let answers = Answers::default();
        for number in [2, 1, 4, 3, 6, 5] {
            let version = Version::wrapping(number);
            answers.enter(&[number as u8], version, b"1");
        }
        assert_eq!(ids(&answers), [3, 4, 5, 6].map(|id| Box::from([id])));
        answers.enter(b"long", Version::wrapping(9), &[0; 90]);
        assert_eq!(ids(&answers).len(), 4);
        answers.enter(b"longer", Version::wrapping(10), &[0; 90]);
        assert_eq!(ids(&answers), [Box::from(*b"longer")]);
        assert_eq!(answers.inner.lock().bytes, 96);
    }

    #[test]
    fn the_first_answer_stays() {
        let answers = Answers::default();
        answers.enter(b"a", Version::wrapping(1), b"1");
        answers.enter(b"a", Version::wrapping(2), b"2");
        assert_eq!(&*answers.inner.lock().answers[&b"a"[..]].1, b"1");
        assert_eq!(ids(&answers).len(), 1);
    }
}
