//! Integers that do not fit in 64 bits.

use super::{Float, Term};
use num_bigint::{BigInt, Sign};
use triomphe::Arc;

/// An integer outside the range of `i64`; those inside are [`Term::Integer`]. [`Term::from`] a
/// [`BigInt`] chooses the variant, so that each integer has only one form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BigInteger(Arc<BigInt>);

impl BigInteger {
    /// The value.
    #[must_use]
    pub fn value(&self) -> &BigInt {
        &self.0
    }

    /// The nearest float, or of two equally near ones the even one; `None` if it is beyond all
    /// floats.
    #[must_use]
    pub fn to_float(&self) -> Option<Float> {
        let length = self.0.bits();
        // It has at least 64 bits. The first 64 decide, with whether a one follows them.
        let shift = length.checked_sub(64)?;
        let high = (self.0.magnitude() >> shift).iter_u64_digits().next()?;
        let rest = self.0.magnitude().trailing_zeros().unwrap_or(0) < shift;
        let nearest = (high | u64::from(rest)) as f64;
        let power = i32::try_from(shift).ok().filter(|&shift| shift < 1024)?;
        let sign = if self.0.sign() == Sign::Minus {
            -1.0
        } else {
            1.0
        };
        Float::new(sign * nearest * 2_f64.powi(power)).ok()
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        let digits = usize::try_from(self.0.bits().div_ceil(64)).unwrap_or(usize::MAX / 8) * 8;
        size_of::<usize>() + size_of::<BigInt>() + digits
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_float_is_found_and_ties_go_to_the_even_one() {
        let float = |value: BigInt| match Term::from(value) {
            Term::BigInteger(big) => big.to_float().map(Float::value),
            other => panic!("{other} is not big"),
        };
        let one = || BigInt::from(1);
        assert_eq!(float(one() << 63), Some(2_f64.powi(63)));
        assert_eq!(float((one() << 70) + 1), Some(2_f64.powi(70)));
        // Half the value of the last bit is 2^17.
        let next = 2_f64.powi(70) + 2_f64.powi(18);
        assert_eq!(float((one() << 70) + (one() << 17)), Some(2_f64.powi(70)));
        assert_eq!(float((one() << 70) + (one() << 17) + 1), Some(next));
        let above: BigInt = (one() << 70) + (one() << 17) + 1;
        assert_eq!(float(-above), Some(-next));
        assert_eq!(float((one() << 1024) - 1), None);
        assert_eq!(float(one() << 1023), Some(2_f64.powi(1023)));
        assert_eq!(float(one() << 4000), None);
    }
}
