//! The two hashes of a term, consistent with the two equalities.
//!
//! Both feed any [`Hasher`]. A table uses a keyed one (such as the standard library's
//! `RandomState`: SipHash with random keys), so that no client can choose keys that collide in one
//! bucket.

use super::inside::visit_all;
use super::order::{Numbers, Whole, whole};
use super::{Bitstring, Exact, FunKind, List, Map, Term, Tuple};
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

/// The parts of terms that have a type of their own hash as the terms do.
macro_rules! hash_as_term {
    ($($kind:ident),*) => {
        $(impl Hash for $kind {
            fn hash<H: Hasher>(&self, state: &mut H) {
                Term::$kind(self.clone()).hash(state);
            }
        })*
    };
}

hash_as_term!(Bitstring, List, Map, Tuple);

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
        Term::Integer(value) => feed_tagged(Tag::Integer, value, state),
        Term::BigInteger(value) => feed_big(value.value(), state),
        Term::Float(float) => match (numbers, whole(float.value())) {
            (Numbers::ByValue, Some(Whole::Small(value))) => {
                feed_tagged(Tag::Integer, &value, state);
            }
            (Numbers::ByValue, Some(Whole::Big(value))) => feed_big(&value, state),
            // Adding zero makes the two zeros equal.
            _ => feed_tagged(Tag::Float, &(float.value() + 0.0).to_bits(), state),
        },
        Term::Atom(atom) => feed_tagged(Tag::Atom, atom, state),
        Term::Reference(reference) => feed_tagged(Tag::Reference, reference, state),
        Term::Fun(fun) => match fun.kind() {
            FunKind::Export(export) => feed_tagged(Tag::Export, export, state),
            FunKind::Local(fun) => feed_tagged(Tag::LocalFun, &fun.code(), state),
        },
        Term::Port(port) => feed_tagged(Tag::Port, port, state),
        Term::Pid(pid) => feed_tagged(Tag::Pid, pid, state),
        Term::Tuple(tuple) => feed_tagged(Tag::Tuple, &tuple.len(), state),
        Term::Map(map) => feed_tagged(Tag::Map, &map.len(), state),
        Term::List(list) if list.is_empty() => feed_tagged(Tag::Nil, &(), state),
        Term::List(list) => feed_tagged(Tag::List, &list.iter().remaining().0, state),
        Term::Bitstring(bits) => {
            feed_tagged(Tag::Bitstring, &bits.bit_len(), state);
            state.write(bits.bytes());
        }
    }
}

#[inline]
fn feed_tagged<H: Hasher>(tag: Tag, value: &impl Hash, state: &mut H) {
    state.write_u8(tag as u8);
    value.hash(state);
}

fn feed_big<H: Hasher>(value: &BigInt, state: &mut H) {
    feed_tagged(
        Tag::BigInteger,
        &u8::from(value.sign() == Sign::Minus),
        state,
    );
    let digits = value.iter_u64_digits();
    state.write_usize(digits.len());
    for digit in digits {
        state.write_u64(digit);
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
