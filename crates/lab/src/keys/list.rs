//! Lists of keys.

use super::Key;

/// Distinct keys of one type.
#[derive(Clone, Debug, Default)]
pub struct KeyList<K> {
    /// What a table is filled with, each thread [its part](crate::workload::part), in this order.
    pub loaded: Vec<K>,
    /// More keys of the same kind, which are not in the filled table. They are divided in the same
    /// way.
    pub fresh: Vec<K>,
}

/// A value for each type of keys.
#[derive(Clone, Debug)]
pub enum Keys<I, T> {
    /// For `u64`.
    Integers(I),
    /// For `String`.
    Texts(T),
}

impl<K: Key> KeyList<K> {
    /// The mean length of the loaded keys, in bytes.
    #[must_use]
    pub fn mean_length(&self) -> f64 {
        let bytes: usize = self.loaded.iter().map(Key::length).sum();
        bytes as f64 / self.loaded.len() as f64
    }
}

impl Keys<KeyList<u64>, KeyList<String>> {
    /// The mean length of the loaded keys, in bytes.
    #[must_use]
    pub fn mean_length(&self) -> f64 {
        match self {
            Self::Integers(list) => list.mean_length(),
            Self::Texts(list) => list.mean_length(),
        }
    }
}
