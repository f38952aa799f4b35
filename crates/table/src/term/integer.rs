//! Integers that do not fit in 64 bits.

use super::Term;
use num_bigint::BigInt;
use std::cmp::Ordering;
use triomphe::Arc;

/// An integer outside the range of `i64`; those inside are [`Term::Integer`]. Made by
/// [`Term::from`] a [`BigInt`], which picks the one or the other, so that equal integers are
/// written in one way only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BigInteger(Arc<BigInt>);

impl BigInteger {
    /// The value.
    #[must_use]
    pub fn value(&self) -> &BigInt {
        &self.0
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        let digits = usize::try_from(self.0.bits().div_ceil(64)).unwrap_or(usize::MAX / 8) * 8;
        size_of::<usize>() + size_of::<BigInt>() + digits
    }
}

impl PartialOrd for BigInteger {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BigInteger {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl From<BigInt> for Term {
    fn from(value: BigInt) -> Self {
        match i64::try_from(&value) {
            Ok(small) => Self::Integer(small),
            Err(_) => Self::BigInteger(BigInteger(Arc::new(value))),
        }
    }
}

macro_rules! from_integer {
    ($($small:ty),* ; $($wide:ty),*) => {
        $(impl From<$small> for Term {
            fn from(value: $small) -> Self {
                Self::Integer(value.into())
            }
        })*
        $(impl From<$wide> for Term {
            fn from(value: $wide) -> Self {
                match i64::try_from(value) {
                    Ok(small) => Self::Integer(small),
                    Err(_) => Self::from(BigInt::from(value)),
                }
            }
        })*
    };
}

from_integer!(i8, i16, i32, i64, u8, u16, u32; u64, i128, u128, usize, isize);
