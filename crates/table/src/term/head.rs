//! Eight bytes beside a key that decide most comparisons.
//!
//! A head is the beginning of a bit string whose order is the term order. Kinds have prefixes in
//! their order; then follows
//!
//! - for a number: its sign, the bit length of its whole part (6 bits), the whole part without its
//!   leading one, and a bit that says whether a fractional part follows. So a small integer takes
//!   few bits, and the equal float takes the same bits;
//! - for an atom or a binary: its bytes, each after a one bit, and then a zero bit; where nothing
//!   can follow, its plain bytes;
//! - for a tuple: its size and its elements; a list is a pair of an element and the rest.
//!
//! So heads distinguish all integers of up to 55 bits, the first 7 bytes of an atom or a binary,
//! two integers of 20 bits in a tuple, or an atom of four letters and an integer of about 9 bits.
//! The comparison of the terms decides what does not fit into 64 bits.

use super::{Atom, Bitstring, List, Term, Tuple};
use num_bigint::{BigInt, Sign};
use tremula_index::key::KeyHead;

/// The heads of terms in the term order, for an index whose keys are those of an `ordered_set`.
///
/// ```
/// use tremula_index::key::KeyHead;
/// use tremula_table::{Term, term::TermHead};
///
/// let (one, two): (Term, Term) = ("{user, 17}".parse()?, "{user, 18}".parse()?);
/// assert!(TermHead::head(&one) < TermHead::head(&two));
/// assert_eq!(TermHead::head(&Term::from(1)), TermHead::head(&Term::try_from(1.0)?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum TermHead {}

impl KeyHead<Term> for TermHead {
    type Word = u64;
    const IS_KEY: bool = false;

    #[inline]
    fn head(key: &Term) -> u64 {
        let mut bits = Bits::new();
        append(key, true, &mut bits);
        bits.word
    }

    const SOME_ARE_KEYS: bool = true;

    /// Whether it is the head of an integer of up to 55 bits, which only that integer and the equal
    /// float have.
    #[inline]
    fn is_only_of_one(head: u64) -> bool {
        short_integer(head).is_some()
    }

    #[inline]
    fn key(head: u64) -> Option<Term> {
        short_integer(head).map(Term::Integer)
    }
}

/// The integer of up to 55 bits that has this head, if one has.
#[inline]
pub(crate) const fn short_integer(head: u64) -> Option<i64> {
    const SIGN: u32 = 2;
    const LENGTH: u32 = 6;
    let is_negative = match head >> (u64::BITS - SIGN) {
        0b00 => true,
        0b01 => false,
        _ => return None,
    };
    let written = head << SIGN;
    let written = if is_negative { !written } else { written };
    let length = (written >> (u64::BITS - LENGTH)) as u32;
    if length > SHORT_INTEGER || is_negative && length == 0 {
        return None;
    }
    // Behind the length follow the digits without the leading one, a zero bit, for there is no
    // fractional part, and nothing: the remaining bits are not inverted.
    let digits = length.saturating_sub(1);
    let left = u64::BITS - SIGN - LENGTH - digits - 1;
    let magnitude = if length == 0 {
        0
    } else {
        1 << digits | (written << LENGTH >> 1) >> (u64::BITS - 1 - digits)
    };
    let has_part = written >> (SIGN + left) & 1 == 1;
    if has_part || head & ((1 << left) - 1) != 0 {
        return None;
    }
    Some(if is_negative {
        -(magnitude as i64)
    } else {
        magnitude as i64
    })
}

/// The head of a position before or behind all keys with a common beginning: the beginning is
/// written part by part, and all further bits are zeros or ones.
pub(crate) struct Prefix(Bits);

impl Prefix {
    pub(crate) const fn new() -> Self {
        Self(Bits::new())
    }

    /// Adds a tuple of this size, whose elements follow; not all of them are given.
    pub(crate) fn tuple(&mut self, size: usize) {
        append_tuple_size(size, &mut self.0);
    }

    /// Adds a non-empty list, whose first element and rest follow; they may be incomplete.
    pub(crate) const fn pair(&mut self) {
        self.0.push_prefix(prefix::LIST);
    }

    /// Adds a part that is not the last one.
    pub(crate) fn term(&mut self, term: &Term) {
        append(term, false, &mut self.0);
    }

    /// Adds the whole key.
    pub(crate) fn whole(&mut self, key: &Term) {
        append(key, true, &mut self.0);
        self.0.end();
    }

    /// No key with this beginning has a smaller head.
    pub(crate) const fn least_head(&self) -> u64 {
        self.0.word
    }

    /// No key with this beginning has a greater head.
    pub(crate) const fn greatest_head(&self) -> u64 {
        match self.0.left {
            u64::BITS => u64::MAX,
            left => self.0.word | ((1 << left) - 1),
        }
    }
}

/// The prefixes of the kinds: one bit for numbers, six for kinds that are rarely keys.
mod prefix {
    pub(super) const ATOM: (u64, u32) = (0b1000, 4);
    pub(super) const REFERENCE: (u64, u32) = (0b10_0100, 6);
    pub(super) const FUN: (u64, u32) = (0b10_0101, 6);
    pub(super) const PORT: (u64, u32) = (0b10_0110, 6);
    pub(super) const PID: (u64, u32) = (0b10_0111, 6);
    pub(super) const TUPLE: (u64, u32) = (0b1010, 4);
    pub(super) const MAP: (u64, u32) = (0b1011, 4);
    pub(super) const NIL: (u64, u32) = (0b1100, 4);
    pub(super) const LIST: (u64, u32) = (0b1101, 4);
    pub(super) const BITSTRING: (u64, u32) = (0b1110, 4);
}

/// Tuples of this size or more take 16 more bits.
const LONG_TUPLE: usize = 7;

/// The greatest bit length of an integer whose head leaves at least one bit unused.
const SHORT_INTEGER: u32 = 55;

/// Whole parts of this bit length or more have their length written out in 32 bits.
const LONG_NUMBER: u64 = 63;

/// Bits, the first one in the highest position, as many as fit.
#[derive(Clone, Copy)]
struct Bits {
    word: u64,
    left: u32,
}

impl Bits {
    const fn new() -> Self {
        Self {
            word: 0,
            left: u64::BITS,
        }
    }

    /// Adds the low `count` bits of a value (at most 64), or as many of them as fit.
    #[inline]
    const fn push(&mut self, value: u64, count: u32) {
        if count == 0 || self.left == 0 {
            return;
        }
        let value = value << (u64::BITS - count);
        self.word |= value >> (u64::BITS - self.left);
        self.left = self.left.saturating_sub(count);
    }

    #[inline]
    const fn push_prefix(&mut self, (bits, count): (u64, u32)) {
        self.push(bits, count);
    }

    /// Leaves the rest zero, because what has been written does not determine the term.
    const fn end(&mut self) {
        self.left = 0;
    }

    #[inline]
    const fn is_full(&self) -> bool {
        self.left == 0
    }
}

/// Adds a term; `last` if nothing will follow it. The recursion ends when the bits are used up:
/// each level takes four of them.
#[inline]
fn append(term: &Term, last: bool, bits: &mut Bits) {
    match term {
        Term::Integer(value) => append_number(
            *value < 0,
            |magnitude| append_whole(value.unsigned_abs(), false, magnitude),
            bits,
        ),
        Term::Float(float) => {
            let value = float.value();
            append_number(
                value < 0.0,
                |magnitude| append_float(value.abs(), magnitude),
                bits,
            );
        }
        Term::BigInteger(value) => append_number(
            value.value().sign() == Sign::Minus,
            |magnitude| append_big(value.value(), magnitude),
            bits,
        ),
        Term::Atom(atom) => append_atom(*atom, last, bits),
        Term::Bitstring(string) => append_bitstring(string, last, bits),
        Term::Tuple(tuple) => append_tuple(tuple, last, bits),
        Term::List(list) if list.is_empty() => bits.push_prefix(prefix::NIL),
        Term::List(list) => append_list(list, last, bits),
        Term::Map(map) => {
            bits.push_prefix(prefix::MAP);
            bits.push(map.len().min(0xffff_ffff) as u64, 32);
            bits.end();
        }
        Term::Pid(pid) => {
            bits.push_prefix(prefix::PID);
            bits.push(pid.serial().into(), 32);
            bits.push(pid.id().into(), 32);
            bits.end();
        }
        // They begin with the node's name, which nearly all have in common.
        Term::Reference(_) => {
            bits.push_prefix(prefix::REFERENCE);
            bits.end();
        }
        Term::Port(_) => {
            bits.push_prefix(prefix::PORT);
            bits.end();
        }
        Term::Fun(_) => {
            bits.push_prefix(prefix::FUN);
            bits.end();
        }
    }
}

fn append_tuple(tuple: &Tuple, last: bool, bits: &mut Bits) {
    let length = tuple.len();
    append_tuple_size(length, bits);
    for (index, element) in tuple.iter().enumerate() {
        if bits.is_full() {
            break;
        }
        append(element, last && index + 1 == length, bits);
    }
}

fn append_tuple_size(length: usize, bits: &mut Bits) {
    bits.push_prefix(prefix::TUPLE);
    bits.push(length.min(LONG_TUPLE) as u64, 3);
    if length >= LONG_TUPLE {
        bits.push(length.min(0xffff) as u64, 16);
        if length >= 0xffff {
            bits.end();
        }
    }
}

fn append_list(list: &List, last: bool, bits: &mut Bits) {
    let mut elements = list.iter();
    for element in elements.by_ref() {
        bits.push_prefix(prefix::LIST);
        if bits.is_full() {
            return;
        }
        append(element, false, bits);
    }
    append(elements.tail(), last, bits);
}

/// Adds a number whose magnitude `magnitude` writes. For a negative one it is inverted, because the
/// number of greater magnitude comes first.
#[inline]
fn append_number(negative: bool, magnitude: impl FnOnce(&mut Bits), bits: &mut Bits) {
    let mut own = Bits::new();
    magnitude(&mut own);
    let count = u64::BITS - own.left;
    let (sign, word) = if negative {
        (0b00, !own.word)
    } else {
        (0b01, own.word)
    };
    bits.push(sign, 2);
    bits.push(word >> (u64::BITS - count), count);
}

/// Adds the whole part of a magnitude, and whether it has a fractional part.
#[inline]
fn append_whole(whole: u64, part: bool, bits: &mut Bits) {
    let length = u64::BITS - whole.leading_zeros();
    if u64::from(length) >= LONG_NUMBER {
        append_long(length.into(), whole << (u64::BITS - length), bits);
        return;
    }
    bits.push(length.into(), 6);
    bits.push(whole, length.saturating_sub(1));
    bits.push(part.into(), 1);
}

/// Adds a long magnitude: its length in bits, and its first bits, beginning with the leading one.
fn append_long(length: u64, first: u64, bits: &mut Bits) {
    bits.push(LONG_NUMBER, 6);
    bits.push(length.min(u64::from(u32::MAX)), 32);
    if length < u64::from(u32::MAX) {
        bits.push(first << 1, 64);
    }
    bits.end();
}

fn append_float(value: f64, bits: &mut Bits) {
    /// From 2^62 on a float is written as a long number; it has no fractional part then.
    const LONG: f64 = (1u64 << 62) as f64;
    if value < LONG {
        let whole = value as u64;
        let part = value - whole as f64;
        append_whole(whole, part > 0.0, bits);
        if part > 0.0 {
            // The part is less than one, so its two highest bits are zero, and the others have the
            // order of the values.
            bits.push(part.to_bits() << 2, 64);
            bits.end();
        }
        return;
    }
    let mantissa_bits = f64::MANTISSA_DIGITS - 1;
    let exponent = (value.to_bits() >> mantissa_bits) - (f64::MAX_EXP as u64 - 1);
    let mantissa = value.to_bits() << (u64::BITS - mantissa_bits - 1) | 1 << (u64::BITS - 1);
    append_long(exponent + 1, mantissa, bits);
}

fn append_big(value: &BigInt, bits: &mut Bits) {
    let length = value.bits();
    let mut digits = value.iter_u64_digits().rev();
    let high = digits.next().unwrap_or(0);
    let low = digits.next().unwrap_or(0);
    let zeros = high.leading_zeros();
    let first = high << zeros | low.checked_shr(u64::BITS - zeros).unwrap_or(0);
    append_long(length, first, bits);
}

#[inline]
fn append_atom(atom: Atom, last: bool, bits: &mut Bits) {
    bits.push_prefix(prefix::ATOM);
    if last {
        bits.push(atom.head(), 64);
        return bits.end();
    }
    append_bytes(atom.text().as_bytes(), bits);
    bits.push(0, 1);
}

fn append_bitstring(string: &Bitstring, last: bool, bits: &mut Bits) {
    bits.push_prefix(prefix::BITSTRING);
    if last {
        bits.push(tremula_index::key::head_of(string.bytes()), 64);
        return bits.end();
    }
    append_bytes(string.bytes(), bits);
    if string.is_binary() {
        bits.push(0, 1);
    } else {
        // Written like the binary with the same bytes, which is greater.
        bits.end();
    }
}

/// Adds bytes in a form that something may follow.
fn append_bytes(bytes: &[u8], bits: &mut Bits) {
    for &byte in bytes {
        if bits.is_full() {
            return;
        }
        bits.push(0x100 | u64::from(byte), 9);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> u64 {
        TermHead::head(&text.parse().unwrap())
    }

    #[test]
    fn heads_follow_the_order() {
        let ascending = [
            "-1.0e300",
            "-36893488147419103232",
            "-9223372036854775808",
            "-4611686018427387904",
            "-1.5",
            "-1",
            "-0.5",
            "0",
            "5.0e-324",
            "0.5",
            "1",
            "1.5",
            "2",
            "1000000",
            "36028797018963967",
            "4611686018427387904",
            "18446744073709551616",
            "1.0e300",
            "a",
            "aa",
            "b",
            "#Pid<a.1.0.0>",
            "{}",
            "{1,1000}",
            "{1,1001}",
            "{user,17}",
            "{user,18}",
            "{a,b,c}",
            "#{}",
            "#{a => 1}",
            "[]",
            "\"abc\"",
            "\"abd\"",
            "<<>>",
            "<<\"ab\">>",
            "<<\"b\">>",
        ];
        for pair in ascending.windows(2) {
            assert!(head(pair[0]) < head(pair[1]), "{pair:?}");
        }
    }

    #[test]
    fn heads_of_short_integers_give_them_back_and_no_others_do() {
        let powers = (0..63).flat_map(|power| [1_i64 << power, (1 << power) - 1, (1 << power) + 1]);
        for integer in powers.flat_map(|integer| [integer, -integer]) {
            let head = TermHead::head(&Term::Integer(integer));
            let is_short = integer.unsigned_abs() < 1 << SHORT_INTEGER;
            assert_eq!(
                short_integer(head),
                is_short.then_some(integer),
                "{integer}"
            );
            if is_short {
                assert_eq!(short_integer(head - 1), None, "below {integer}");
                assert_eq!(short_integer(head | 1), None, "above {integer}");
            }
        }
        for other in [
            "0.5", "-0.5", "7.5", "-7.5", "5.0e-324", "1.0e300", "a", "{1}", "[]", "<<>>",
        ] {
            assert_eq!(short_integer(head(other)), None, "{other}");
        }
    }

    #[test]
    fn equal_terms_have_equal_heads() {
        for (one, two) in [
            ("0", "-0.0"),
            ("7", "7.0"),
            ("{7,a}", "{7.0,a}"),
            ("4611686018427387904", "4611686018427387904.0"),
            ("-9223372036854775808", "-9223372036854775808.0"),
            ("36893488147419103232", "36893488147419103232.0"),
        ] {
            assert_eq!(head(one), head(two), "{one} {two}");
        }
    }
}
