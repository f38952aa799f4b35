//! The records of a batch: effects, and the first answers of commands that have an identifier.
//!
//! An effect is a record as it is, so that a node's own log has the effects as its state writes
//! them. An answer begins with a byte that no effect begins with.

use tremula_log::{Batch, Sequence};

/// The first byte of an answer.
const ONCE: u8 = 0xff;

/// A record of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// What a command has made of a key. The group does not look into it.
    Effect(&'a [u8]),
    /// The answer of a command that a client has given an identifier.
    Once {
        /// The client's identifier.
        id: &'a [u8],
        /// The answer.
        answer: &'a [u8],
    },
}

/// Bytes that an identifier of a client's command may have.
pub const MOST_ID_BYTES: usize = 256;

/// The records of a batch of a group, each with its sequence, of which the first one has `first`.
/// Records that are neither an effect nor an answer are left out.
///
/// ```
/// use tremula_group::{Effects, Record, records};
/// use tremula_log::Sequence;
///
/// let mut effects = Effects::new();
/// effects.push(b"put a 1");
/// let mut records = records(Sequence::FIRST, effects.as_batch());
/// assert_eq!(records.next(), Some((Sequence::FIRST, Record::Effect(b"put a 1"))));
/// ```
pub fn records(first: Sequence, batch: &Batch) -> impl Iterator<Item = (Sequence, Record<'_>)> {
    (0..)
        .zip(batch.records())
        .filter_map(move |(index, bytes)| Some((first.plus(index), decode(bytes)?)))
}

pub(crate) fn decode(bytes: &[u8]) -> Option<Record<'_>> {
    let (kind, rest) = bytes.split_first()?;
    if *kind != ONCE {
        return Some(Record::Effect(bytes));
    }
    let (length, rest) = rest.split_first_chunk::<2>()?;
    let (id, answer) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
    Some(Record::Once { id, answer })
}

/// The effects of one command, which followers apply together or not at all.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    batch: Batch,
    scratch: Vec<u8>,
}

impl Effects {
    /// No effects.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an effect. O(bytes).
    ///
    /// # Panics
    ///
    /// The effect is empty, or begins with the byte 255.
    pub fn push(&mut self, effect: &[u8]) {
        let is_one = effect.first().is_some_and(|kind| *kind != ONCE);
        assert!(is_one, "an effect begins with a byte below 255");
        self.batch.push(effect);
    }

    /// Adds the answer that a client gets if it sends the command with this identifier again.
    /// `false` if the identifier has more than [`MOST_ID_BYTES`] bytes, and nothing is added.
    ///
    /// A command with an identifier that changes nothing needs this record too: a late copy of it
    /// may find another state, and change that.
    #[must_use]
    pub fn answer_once(&mut self, id: &[u8], answer: &[u8]) -> bool {
        if id.len() > MOST_ID_BYTES {
            return false;
        }
        self.scratch.clear();
        self.scratch.push(ONCE);
        self.scratch
            .extend_from_slice(&(id.len() as u16).to_le_bytes());
        self.scratch.extend_from_slice(id);
        self.scratch.extend_from_slice(answer);
        self.batch.push(&self.scratch);
        true
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// The records, as a log takes them.
    #[must_use]
    pub const fn as_batch(&self) -> &Batch {
        &self.batch
    }
}
