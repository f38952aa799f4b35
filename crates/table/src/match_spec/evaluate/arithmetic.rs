//! Numbers. Integers are exact at any length; an integer combined with a float gives a float.

use crate::match_spec::function::Compute;
use crate::term::{Float, Limits, Term};
use num_bigint::{BigInt, Sign};
use std::borrow::Cow;

/// The most bits of an integer that a function makes; a longer result is an exception. It is the
/// default limit for terms from outside, so that a result can be read back, and division stays
/// fast.
const MAX_INTEGER_BITS: u64 = Limits::INTEGER_BITS;

/// A function of one number.
pub(super) fn unary(function: Compute, term: &Term) -> Option<Term> {
    let float = match term {
        Term::Float(float) => float.value(),
        _ => return of_integer(function, term),
    };
    match function {
        Compute::Plus | Compute::Float => Some(term.clone()),
        Compute::Negate => finite(-float),
        // The absolute value of -0.0 is -0.0 in Erlang.
        Compute::Abs => finite(if float < 0.0 { -float } else { float }),
        Compute::Ceil => integer_of(float.ceil()),
        Compute::Floor => integer_of(float.floor()),
        Compute::Round => integer_of(float.round()),
        Compute::Trunc => integer_of(float.trunc()),
        _ => None,
    }
}

fn of_integer(function: Compute, term: &Term) -> Option<Term> {
    let to_integer = matches!(
        function,
        Compute::Plus | Compute::Ceil | Compute::Floor | Compute::Round | Compute::Trunc
    );
    match (function, term) {
        (_, Term::Integer(_) | Term::BigInteger(_)) if to_integer => Some(term.clone()),
        (Compute::Float, _) => to_float(term).and_then(finite),
        (Compute::Negate, Term::Integer(value)) => Some((-i128::from(*value)).into()),
        (Compute::Negate, Term::BigInteger(value)) => Some((-value.value()).into()),
        (Compute::Abs, Term::Integer(value)) => Some(value.unsigned_abs().into()),
        (Compute::Abs, Term::BigInteger(value)) if value.value().sign() == Sign::Minus => {
            Some((-value.value()).into())
        }
        (Compute::Abs, Term::BigInteger(_)) => Some(term.clone()),
        (Compute::BitNot, Term::Integer(value)) => Some((!value).into()),
        (Compute::BitNot, Term::BigInteger(value)) => Some((-value.value() - 1_u32).into()),
        _ => None,
    }
}

/// A function of two numbers.
pub(super) fn binary(function: Compute, one: &Term, two: &Term) -> Option<Term> {
    if let (&Term::Integer(one), &Term::Integer(two)) = (one, two)
        && let Some(value) = small_pair(function, one, two)
    {
        return Some(value.into());
    }
    match function {
        Compute::Divide => return finite(to_float(one)? / to_float(two)?),
        Compute::ShiftLeft => return shift(to_integer(one)?, to_integer(two)?, false),
        Compute::ShiftRight => return shift(to_integer(one)?, to_integer(two)?, true),
        _ => {}
    }
    if let (Term::Float(_), _) | (_, Term::Float(_)) = (one, two) {
        let (one, two) = (to_float(one)?, to_float(two)?);
        return match function {
            Compute::Add => finite(one + two),
            Compute::Subtract => finite(one - two),
            Compute::Multiply => finite(one * two),
            _ => None,
        };
    }
    let (one, two) = (&*to_integer(one)?, &*to_integer(two)?);
    integer(match function {
        Compute::Add => one + two,
        Compute::Subtract => one - two,
        Compute::Multiply if one.bits() + two.bits() > MAX_INTEGER_BITS => return None,
        Compute::Multiply => one * two,
        Compute::Div if two.sign() == Sign::NoSign => return None,
        Compute::Div => one / two,
        Compute::Rem if two.sign() == Sign::NoSign => return None,
        Compute::Rem => one % two,
        Compute::BitAnd => one & two,
        Compute::BitOr => one | two,
        Compute::BitXor => one ^ two,
        _ => return None,
    })
}

/// The result, if it needs no integer longer than 64 bits.
#[inline]
fn small_pair(function: Compute, one: i64, two: i64) -> Option<i64> {
    match function {
        Compute::Add => one.checked_add(two),
        Compute::Subtract => one.checked_sub(two),
        Compute::Multiply => one.checked_mul(two),
        Compute::Div => one.checked_div(two),
        Compute::Rem => one.checked_rem(two),
        Compute::BitAnd => Some(one & two),
        Compute::BitOr => Some(one | two),
        Compute::BitXor => Some(one ^ two),
        _ => None,
    }
}

/// Shifts left, or right if `right`; a negative count shifts in the other direction.
fn shift(value: Cow<'_, BigInt>, by: Cow<'_, BigInt>, right: bool) -> Option<Term> {
    if value.sign() == Sign::NoSign {
        return Some(Term::from(0));
    }
    let right = right != (by.sign() == Sign::Minus);
    let by = u64::try_from(by.magnitude()).ok();
    if right {
        // A shift by more than the length gives 0 or −1.
        let by = by.unwrap_or(u64::MAX).min(value.bits() + 1);
        return integer(&*value >> by);
    }
    let by = by.filter(|by| by.saturating_add(value.bits()) <= MAX_INTEGER_BITS)?;
    integer(&*value << by)
}

fn integer(value: BigInt) -> Option<Term> {
    (value.bits() <= MAX_INTEGER_BITS).then(|| value.into())
}

fn to_integer(term: &Term) -> Option<Cow<'_, BigInt>> {
    match term {
        Term::Integer(value) => Some(Cow::Owned((*value).into())),
        Term::BigInteger(value) => Some(Cow::Borrowed(value.value())),
        _ => None,
    }
}

fn to_float(term: &Term) -> Option<f64> {
    match term {
        Term::Integer(value) => Some(*value as f64),
        Term::BigInteger(value) => value.to_float().map(Float::value),
        Term::Float(float) => Some(float.value()),
        _ => None,
    }
}

/// The float; a result that is too large or not a number is an exception.
fn finite(value: f64) -> Option<Term> {
    Term::try_from(value).ok()
}

/// A float without a fractional part, as an integer.
fn integer_of(value: f64) -> Option<Term> {
    Float::new(value).ok()?.to_integer()
}
