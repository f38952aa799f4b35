//! The two hashes of a term, consistent with the two equalities.
//!
//! Both feed any [`Hasher`]. A table uses a keyed one (such as the standard library's
//! `RandomState`: SipHash with random keys), so that no client can choose keys that collide in one
//! bucket.

use super::inside::visit_all;
use super::order::{Numbers, Whole, whole};
use super::{Exact, Fun, FunKind, Term};
use num_bigint::{BigInt, Sign};
use std::hash::{Hash, Hasher};

/// Fed before a term, so that terms of different kinds differ.
#[repr(u8)]
enum Tag {
    Integer,
    BigInteger,
    Float,
    Atom,
    Reference,
    Export,
    LocalFun,
    Port,
    Pid,
    Tuple,
    Map,
    Nil,
    List,
    Bitstring,
}

/// Terms equal under `==` have the same hash, such as `1` and `1.0`.
impl Hash for Term {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        feed_all(self, Numbers::ByValue, state);
    }
}

/// Terms equal under `=:=` have the same hash.
impl Hash for Exact {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        feed_all(&self.0, Numbers::ByType, state);
    }
}

impl Term {
    /// Feeds what [`Exact`] of this term would feed, for lookups without making one.
    pub fn hash_exact<H: Hasher>(&self, state: &mut H) {
        feed_all(self, Numbers::ByType, state);
    }
}

#[inline]
fn feed_all<H: Hasher>(term: &Term, numbers: Numbers, state: &mut H) {
    if !term.holds_terms() {
        return feed(term, numbers, state);
    }
    visit_all(term, |term, in_key| {
        // In both equalities, keys of maps are distinguished by type.
        let numbers = if in_key { Numbers::ByType } else { numbers };
        feed(term, numbers, state);
    });
}

/// Feeds a term without its inner terms, but with their number, so that different terms feed
/// different sequences.
#[inline]
fn feed<H: Hasher>(term: &Term, numbers: Numbers, state: &mut H) {
    match term {
        Term::Integer(value) => feed_small(*value, state),
        Term::BigInteger(value) => feed_big(value.value(), state),
        Term::Float(float) => match (numbers, whole(float.value())) {
            (Numbers::ByValue, Some(Whole::Small(value))) => feed_small(value, state),
            (Numbers::ByValue, Some(Whole::Big(value))) => feed_big(&value, state),
            _ => {
                state.write_u8(Tag::Float as u8);
                // Adding zero makes the two zeros equal.
                state.write_u64((float.value() + 0.0).to_bits());
            }
        },
        Term::Atom(atom) => {
            state.write_u8(Tag::Atom as u8);
            atom.hash(state);
        }
        Term::Reference(reference) => {
            state.write_u8(Tag::Reference as u8);
            reference.hash(state);
        }
        Term::Fun(fun) => feed_fun(fun, state),
        Term::Port(port) => {
            state.write_u8(Tag::Port as u8);
            port.hash(state);
        }
        Term::Pid(pid) => {
            state.write_u8(Tag::Pid as u8);
            pid.hash(state);
        }
        Term::Tuple(tuple) => {
            state.write_u8(Tag::Tuple as u8);
            state.write_usize(tuple.len());
        }
        Term::Map(map) => {
            state.write_u8(Tag::Map as u8);
            state.write_usize(map.len());
        }
        Term::List(list) if list.is_empty() => state.write_u8(Tag::Nil as u8),
        Term::List(list) => {
            state.write_u8(Tag::List as u8);
            state.write_usize(list.iter().remaining().0);
        }
        Term::Bitstring(bits) => {
            state.write_u8(Tag::Bitstring as u8);
            state.write_usize(bits.bit_len());
            state.write(bits.bytes());
        }
    }
}

#[inline]
fn feed_small<H: Hasher>(value: i64, state: &mut H) {
    state.write_u8(Tag::Integer as u8);
    state.write_i64(value);
}

fn feed_big<H: Hasher>(value: &BigInt, state: &mut H) {
    state.write_u8(Tag::BigInteger as u8);
    state.write_u8(u8::from(value.sign() == Sign::Minus));
    let digits = value.iter_u64_digits();
    state.write_usize(digits.len());
    for digit in digits {
        state.write_u64(digit);
    }
}

fn feed_fun<H: Hasher>(fun: &Fun, state: &mut H) {
    match fun.kind() {
        FunKind::Export(export) => {
            state.write_u8(Tag::Export as u8);
            export.hash(state);
        }
        FunKind::Local(fun) => {
            state.write_u8(Tag::LocalFun as u8);
            fun.code().hash(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::{BuildHasher, RandomState};

    fn hashes(text: &str, keys: &RandomState) -> (u64, u64) {
        let term: Term = text.parse().unwrap();
        (keys.hash_one(&term), keys.hash_one(Exact(term)))
    }

    #[test]
    fn equal_terms_have_equal_hashes() {
        let keys = RandomState::new();
        for (one, two, identical) in [
            ("1", "1.0", false),
            ("{a, [1, #{b => 2}]}", "{a, [1.0, #{b => 2.0}]}", false),
            ("0.0", "-0.0", true),
            ("1.5", "1.50", true),
            ("18446744073709551616", "18446744073709551616.0", false),
            ("#Ref<a@x.1.2.3>", "#Ref<a@x.1.2.3.0>", true),
            ("\"ab\"", "[97|[98]]", true),
        ] {
            let (one_hash, two_hash) = (hashes(one, &keys), hashes(two, &keys));
            assert_eq!(one_hash.0, two_hash.0, "{one} == {two}");
            assert_eq!(one_hash.1 == two_hash.1, identical, "{one} =:= {two}");
        }
    }

    #[test]
    fn different_terms_have_different_hashes() {
        let keys = RandomState::new();
        let texts = [
            "0",
            "0.5",
            "a",
            "[]",
            "{}",
            "#{}",
            "<<>>",
            "[[]]",
            "{[]}",
            "[a|b]",
            "[a,b]",
            "{{a},b}",
            "{{a,b}}",
            "#{1 => 1}",
            "#{1.0 => 1}",
            "#{1 => #{}}",
            "<<0>>",
            "<<0:7>>",
            "<<0,0>>",
            "[{},a]",
            "[{a}]",
            "fun a:b/1",
            "fun a:b/2",
            "#Pid<a.1.2.3>",
        ];
        let mut all: Vec<_> = texts.iter().map(|text| hashes(text, &keys).0).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), texts.len());
    }

    #[test]
    fn the_keys_count() {
        let (one, two) = (RandomState::new(), RandomState::new());
        assert_ne!(hashes("a", &one), hashes("a", &two));
    }
}
