//! The records of a batch: effects, and the first answers of commands that have an identifier.

use tremula_log::{Batch, Sequence};

const EFFECT: u8 = 0;
const ONCE: u8 = 1;

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
/// Records that are of no known kind are left out.
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
    match *kind {
        EFFECT => Some(Record::Effect(rest)),
        ONCE => {
            let (length, rest) = rest.split_first_chunk::<2>()?;
            let (id, answer) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
            Some(Record::Once { id, answer })
        }
        _ => None,
    }
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
    pub fn push(&mut self, effect: &[u8]) {
        self.scratch.clear();
        self.scratch.push(EFFECT);
        self.scratch.extend_from_slice(effect);
        self.batch.push(&self.scratch);
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
