//! Leaves: records, each in the first slot on its way that no other key shares.

use super::form::Form;
use super::header::{Symbol, symbol_at};
use crate::byte_keyed::{ByteForm, Record};
use crate::key::ByteKey;

impl<K: ByteKey> Record<K> {
    /// Whether this is the key with this byte form.
    #[inline]
    pub(super) fn is(&self, bytes: &[u8]) -> bool {
        Form::with(self.key(), |own| own == bytes)
    }

    /// How many leading bytes this key's form and another share, and the symbol that follows them
    /// here.
    pub(super) fn agreement(&self, bytes: &[u8]) -> (usize, Symbol) {
        Form::with(self.key(), |own| {
            let common = common_bytes(own, bytes);
            (common, symbol_at(own, common))
        })
    }
}

/// How many leading bytes two byte strings share.
pub(super) fn common_bytes(one: &[u8], other: &[u8]) -> usize {
    one.iter()
        .zip(other)
        .take_while(|(one, other)| one == other)
        .count()
}
