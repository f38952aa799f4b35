//! The hostile key and value: [`temper`] decides what they do.

use super::life::Life;
use super::temper::{self, Reenters};
use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tremula_index::ByteKey;
use tremula_index::key::head_of;

/// The hostile key. `FORM` selects what its constants claim of byte forms, see [`ByteKey`] below.
#[derive(Debug)]
pub(crate) struct Key<const FORM: u8> {
    number: Arc<AtomicU64>,
    life: Life,
}

/// A plain byte form: the constants claim nothing.
pub(crate) const PLAIN: u8 = 0;
/// The head is the key, which is true as long as nothing lies.
pub(crate) const HEAD_IS_KEY: u8 = 1;
/// The claim is one byte: forms have none, one, or twenty.
pub(crate) const CLAIMS_ONE_BYTE: u8 = 2;
/// The claim is two bytes: all forms have twenty, most of them in common.
pub(crate) const CLAIMS_TWO_BYTES: u8 = 3;
/// The claim is eight bytes: forms have up to eight.
pub(crate) const CLAIMS_EIGHT_BYTES: u8 = 4;
/// The claim is twenty bytes, and that the head is the key all the same.
pub(crate) const CLAIMS_TWENTY_BYTES: u8 = 5;

impl<const FORM: u8> Key<FORM> {
    pub(crate) fn new(number: u64) -> Self {
        let number = if temper::kind().keys_change {
            temper::shared(number)
        } else {
            Arc::new(AtomicU64::new(number))
        };
        let life = Life::new();
        Self { number, life }
    }

    /// A key of any number.
    pub(crate) fn any() -> Self {
        Self::new(temper::any_number())
    }

    pub(crate) fn number(&self) -> u64 {
        self.life.check();
        self.number.load(Relaxed)
    }
}

impl<const FORM: u8> Clone for Key<FORM> {
    fn clone(&self) -> Self {
        self.life.check();
        temper::clone();
        let number = if temper::kind().keys_change {
            if temper::one_in(20) {
                temper::change(&self.number);
            }
            Arc::clone(&self.number)
        } else {
            Arc::new(AtomicU64::new(self.number()))
        };
        let life = Life::new();
        Self { number, life }
    }
}

impl<const FORM: u8> Drop for Key<FORM> {
    fn drop(&mut self) {
        self.life.check();
        temper::drop_of(Reenters::DropOfKey);
    }
}

impl<const FORM: u8> Ord for Key<FORM> {
    fn cmp(&self, other: &Self) -> Ordering {
        temper::compare(self.number(), other.number())
    }
}

impl<const FORM: u8> PartialOrd for Key<FORM> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<const FORM: u8> PartialEq for Key<FORM> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<const FORM: u8> Eq for Key<FORM> {}

impl<const FORM: u8> ByteKey for Key<FORM> {
    const HEAD_IS_KEY: bool = FORM != PLAIN;

    const LENGTH: Option<usize> = match FORM {
        CLAIMS_ONE_BYTE => Some(1),
        CLAIMS_TWO_BYTES => Some(2),
        CLAIMS_EIGHT_BYTES => Some(8),
        CLAIMS_TWENTY_BYTES => Some(20),
        _ => None,
    };

    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        if temper::form_lies() {
            let mut bytes = [temper::next() as u8; 32];
            bytes[..8].copy_from_slice(&temper::any_number().to_be_bytes());
            return read(&bytes[..(temper::next() % 33) as usize]);
        }
        let number = self.number();
        let bytes = number.to_be_bytes();
        let mut long = [b'a'; 20];
        match FORM {
            // In the order of the numbers. Some forms are prefixes of others, and in some runs all
            // have a long common prefix, so that their heads are equal.
            PLAIN => {
                let common = if temper::forms_are_long() { 9 } else { 0 };
                long[common..common + 8].copy_from_slice(&(number / 4).to_be_bytes());
                read(&long[..common + 8 + (number % 4) as usize])
            }
            CLAIMS_ONE_BYTE => {
                long[0] = bytes[7];
                read(&long[..[0, 1, 20][(number % 3) as usize]])
            }
            CLAIMS_TWO_BYTES => {
                long[[1, 15][(number % 2) as usize]] = bytes[7];
                read(&long)
            }
            CLAIMS_EIGHT_BYTES => read(&bytes[(number % 9) as usize..]),
            _ => read(&bytes),
        }
    }

    fn head(&self) -> u64 {
        if temper::form_lies() {
            return temper::next();
        }
        match FORM {
            HEAD_IS_KEY => self.number(),
            _ => self.with_bytes(head_of),
        }
    }

    fn from_head(head: u64) -> Option<Self> {
        match temper::form_lies() {
            _ if FORM == PLAIN => None,
            true if temper::one_in(2) => None,
            true => Some(Self::any()),
            false => Some(Self::new(head)),
        }
    }
}

/// The hostile value.
#[derive(Debug)]
pub(crate) struct Value(Life);

impl Value {
    pub(crate) fn new() -> Self {
        Self(Life::new())
    }

    /// Fails if this value has been dropped.
    pub(crate) fn check(&self) {
        self.0.check();
    }
}

impl Clone for Value {
    fn clone(&self) -> Self {
        self.check();
        temper::clone();
        Self::new()
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        self.check();
        temper::drop_of(Reenters::DropOfValue);
    }
}
