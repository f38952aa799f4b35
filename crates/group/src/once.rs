//! The first answers of commands that clients have given an identifier.
//!
//! The table is a function of the log: every node enters the same answers in the same order and
//! forgets the same ones, so a new leader answers a repeated command as the old one did.

use std::collections::{HashMap, VecDeque};
use tremula_log::Sequence;

/// An answer, and the record that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The record. The answer may be given once it is confirmed.
    pub sequence: Sequence,
    /// What the client got the first time.
    pub bytes: Box<[u8]>,
}

/// The newest answers, up to a number and a number of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnceTable {
    answers: HashMap<Box<[u8]>, Answer>,
    /// The identifiers, oldest first.
    order: VecDeque<Box<[u8]>>,
    bytes: usize,
    most: usize,
    most_bytes: usize,
}

impl OnceTable {
    /// A table without an answer, which keeps this number of answers and of bytes.
    #[must_use]
    pub fn new(most: usize, most_bytes: usize) -> Self {
        Self {
            answers: HashMap::new(),
            order: VecDeque::new(),
            bytes: 0,
            most,
            most_bytes,
        }
    }

    /// The answer to the command with this identifier, if it is remembered. O(1).
    #[must_use]
    pub fn get(&self, id: &[u8]) -> Option<&Answer> {
        self.answers.get(id)
    }

    /// The number of answers. O(1).
    #[must_use]
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    /// Whether no answer is remembered. O(1).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// The answers, oldest first: what a snapshot has to keep.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &Answer)> {
        self.order
            .iter()
            .filter_map(|id| self.answers.get_key_value(&**id))
            .map(|(id, answer)| (&**id, answer))
    }

    /// Enters an answer, and forgets the oldest ones beyond the limits. An identifier that is
    /// already there keeps its first answer. O(1) on average.
    pub fn enter(&mut self, id: &[u8], sequence: Sequence, answer: &[u8]) {
        if self.answers.contains_key(id) {
            return;
        }
        self.bytes += id.len() + answer.len();
        self.order.push_back(id.into());
        let answer = Answer {
            sequence,
            bytes: answer.into(),
        };
        self.answers.insert(id.into(), answer);
        while self.answers.len() > self.most || self.bytes > self.most_bytes {
            let Some(oldest) = self.order.pop_front() else {
                return;
            };
            if let Some(gone) = self.answers.remove(&oldest) {
                self.bytes -= oldest.len() + gone.bytes.len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_answers_are_forgotten_at_either_limit() {
        let mut table = OnceTable::new(2, 10);
        for (number, id) in (1..).zip([b"a", b"b", b"c"]) {
            table.enter(id, Sequence::new(number), b"12");
        }
        assert_eq!(table.get(b"a"), None);
        let ids: Vec<&[u8]> = table.iter().map(|(id, _)| id).collect();
        assert_eq!(ids, [b"b", b"c"]);
        table.enter(b"d", Sequence::new(4), b"12345678");
        assert_eq!((table.len(), table.bytes), (1, 9));
    }

    #[test]
    fn the_first_answer_stays() {
        let mut table = OnceTable::new(2, 10);
        table.enter(b"a", Sequence::new(1), b"1");
        table.enter(b"a", Sequence::new(2), b"2");
        assert_eq!(table.get(b"a").unwrap().sequence, Sequence::new(1));
        assert_eq!(table.len(), 1);
    }
}
