//! How long the external form of a term is. An atom takes 16 bytes in a term, and up to a thousand
//! where it is written out: a term that fits into memory need not fit into a record of a log.

use super::inside::visit_while;
use super::{Atom, FunKind, Term};
use std::ops::ControlFlow;

/// No term with inner terms has more bytes than this in the external form for each byte of its
/// heap: atoms of 255 characters of four bytes come nearest, 1,023 bytes in a cell of 16, and
/// functions, which hold two atoms.
pub(super) const MOST_A_BYTE: u64 = 96;

/// Whether the external form of the term may be longer than this: lists of small integers, which it
/// packs, count as others do. O(n), and stops where the answer is known.
#[cold]
pub(super) fn is_longer(term: &Term, most: usize) -> bool {
    let mut left = most;
    let mut count = |term: &Term| match left.checked_sub(own_bytes(term)) {
        Some(rest) => {
            left = rest;
            ControlFlow::Continue(())
        }
        None => ControlFlow::Break(()),
    };
    visit_while(term, |term, _| count(term)).is_break()
}

/// The bytes that the external form takes for a term besides its inner terms, at most.
fn own_bytes(term: &Term) -> usize {
    /// A tag and a length.
    const HEAD: usize = 5;
    let atom = |atom: Atom| 3 + atom.text().len();
    match term {
        Term::Integer(_) => 11,
        Term::Float(_) => 9,
        Term::BigInteger(value) => HEAD + 1 + value.heap_bytes(),
        Term::Atom(value) => atom(*value),
        Term::Reference(value) => HEAD + 4 + atom(value.node()) + size_of_val(value.words()),
        Term::Port(value) => HEAD + 8 + atom(value.node()),
        Term::Pid(value) => HEAD + 8 + atom(value.node()),
        Term::Bitstring(bits) => HEAD + 1 + bits.bytes().len(),
        Term::Tuple(_) | Term::Map(_) | Term::List(_) => HEAD,
        Term::Fun(fun) => match fun.kind() {
            FunKind::Export(export) => HEAD + atom(export.module) + atom(export.function),
            FunKind::Local(fun) => 64 + atom(fun.module) + atom(fun.pid.node()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Bounds, Export, OutOfBounds, Pid};
    use super::*;
    use proptest::prelude::*;

    fn long_atom(number: usize) -> Atom {
        Atom::new(&format!("{number:03}{}", "\u{10348}".repeat(252))).expect("an atom")
    }

    fn leaf() -> impl Strategy<Value = Term> {
        prop_oneof![
            any::<i64>().prop_map(Term::from),
            any::<i128>().prop_map(Term::from),
            (0..3_usize).prop_map(|number| Term::Atom(long_atom(number))),
            (0..3_usize).prop_map(|number| Term::from(Export {
                module: long_atom(number),
                function: long_atom(number + 1),
                arity: 2,
            })),
            prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| Term::binary(&bytes)),
            any::<u32>().prop_map(|id| Term::Pid(Pid::new(long_atom(1), id, 7, 1))),
        ]
    }

    fn term() -> impl Strategy<Value = Term> {
        leaf().prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Term::tuple),
                prop::collection::vec(inner.clone(), 0..6).prop_map(Term::list),
                prop::collection::vec((inner.clone(), inner), 0..4).prop_map(Term::map),
            ]
        })
    }

    proptest! {
        /// A term that passes is not longer than the bound, and one that is small enough in memory
        /// need not be looked at. Of the encoded bytes, one is the version.
        #[test]
        fn the_external_form_is_not_longer_than_counted(parts in prop::collection::vec(term(), 1..6)) {
            let term = Term::tuple(parts);
            let bytes = term.to_etf().expect("a short term").len();
            prop_assert!(is_longer(&term, bytes - 2), "{term}");
            prop_assert!(bytes as u64 <= term.heap_bytes() as u64 * MOST_A_BYTE, "{term}");
        }
    }

    #[test]
    fn a_row_whose_external_form_is_too_long_is_refused() {
        let bounds = Bounds {
            bytes: 100_000,
            depth: 10,
        };
        let row = |count| Term::tuple([Term::list(vec![Term::Atom(long_atom(1)); count])]);
        assert_eq!(bounds.check_written(&row(90)), Ok(()));
        let long = row(110);
        assert!(long.to_etf().expect("it fits").len() > bounds.bytes);
        assert_eq!(bounds.check(&long), Ok(()));
        let limit = bounds.bytes;
        assert_eq!(
            bounds.check_written(&long),
            Err(OutOfBounds::External { limit })
        );
    }
}
