//! The interface of a map that can be recorded.

use crate::map::{Kind, Operation, Response};

/// A map from `u64` to `u64` that threads share.
///
/// It need not have all operations: operations that it does not [offer](Self::offers) are not
/// generated. An answer may say less than the operation's: [`Response::Flag`] for a value of which
/// only the presence is known, [`Response::Done`] if nothing is known.
///
/// Every [`OrderedIndex`](tremula_index::OrderedIndex) becomes a subject in an
/// [`Indexed`](super::Indexed). The example on the [first page](crate) makes a subject of another
/// map.
pub trait Subject: Sync {
    /// Whether it has operations of this kind. By default those of an
    /// [`OrderedIndex`](tremula_index::OrderedIndex).
    fn offers(&self, kind: Kind) -> bool {
        kind != Kind::InsertMany
    }

    /// Whether an operation of this kind happens at one moment. If not, it is checked for each key;
    /// [`Kind::Range`] and [`Kind::GetMany`] always are.
    fn of_one_moment(&self, kind: Kind) -> bool {
        let _ = kind;
        true
    }

    /// The most entries of a [`Kind::Range`] that is as of one moment. By default no range is.
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
