//! What is recorded.

use crate::map::{Kind, Operation, Response};

/// A map from `u64` to `u64` that threads share.
///
/// Needs not have all the operations: what it does not [offer](Self::offers) is not generated.
/// An answer that tells less than the operation's is as good: [`Response::Flag`] for a value of
/// which only the presence is known, [`Response::Done`] for nothing.
///
/// Every [`OrderedIndex`](tremula_index::OrderedIndex) becomes a subject in an
/// [`Indexed`](super::Indexed). The example on the [first page](crate) makes one of another map.
pub trait Subject: Sync {
    /// Whether it has operations of this kind. Unless a subject says otherwise, those of an
    /// [`OrderedIndex`](tremula_index::OrderedIndex).
    fn offers(&self, kind: Kind) -> bool {
        kind != Kind::InsertMany
    }

    /// Whether an operation of this kind happens at one moment. Where it does not, it is held to
    /// what it says of each key; [`Kind::Range`] and [`Kind::GetMany`] always are.
    fn of_one_moment(&self, kind: Kind) -> bool {
        let _ = kind;
        true
    }

    /// How many entries a [`Kind::Range`] shows as of one moment, if it is not longer. Unless a
    /// subject says so, it promises that of no range.
    fn ranges_of_one_moment(&self) -> Option<usize> {
        None
    }

    /// Carries out an operation of a kind that it offers.
    fn call(&self, operation: &Operation) -> Response;
}

impl<S: Subject + ?Sized> Subject for &S {
    fn offers(&self, kind: Kind) -> bool {
        (**self).offers(kind)
    }

    fn of_one_moment(&self, kind: Kind) -> bool {
        (**self).of_one_moment(kind)
    }

    fn ranges_of_one_moment(&self) -> Option<usize> {
        (**self).ranges_of_one_moment()
    }

    fn call(&self, operation: &Operation) -> Response {
        (**self).call(operation)
    }
}

impl<S: Subject + ?Sized> Subject for Box<S> {
    fn offers(&self, kind: Kind) -> bool {
        (**self).offers(kind)
    }

    fn of_one_moment(&self, kind: Kind) -> bool {
        (**self).of_one_moment(kind)
    }

    fn ranges_of_one_moment(&self) -> Option<usize> {
        (**self).ranges_of_one_moment()
    }

    fn call(&self, operation: &Operation) -> Response {
        (**self).call(operation)
    }
}
