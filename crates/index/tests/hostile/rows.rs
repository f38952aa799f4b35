//! The macros by which one line declares a subject.
#![allow(dead_code, reason = "each test program uses a part of it")]

use super::values::Value;
use tremula_index::{NotSorted, OrderedIndex};

/// A subject: its name, the forms of the keys with which it is tested, and an expression that makes
/// it.
macro_rules! index {
    ($name:ident, [$($form:ident)*], $make:expr) => {
        #[test]
        fn $name() {
            crate::campaign::run(
                stringify!($name),
                &[$((crate::values::$form, |random| {
                    std::sync::Arc::new(crate::subject::Index::<{ crate::values::$form }>::new($make, random))
                })),*],
                crate::KNOWN,
            );
        }
    };
}

/// A subject that is not an index. A function that is generic over the form makes it.
macro_rules! subject {
    ($name:ident, [$($form:ident)*], $make:ident) => {
        #[test]
        fn $name() {
            crate::campaign::run(
                stringify!($name),
                &[$((crate::values::$form, |_| {
                    std::sync::Arc::new($make::<{ crate::values::$form }>())
                })),*],
                crate::KNOWN,
            );
        }
    };
}

/// The index after insertion of these entries.
pub(crate) fn filled<K, I>(index: I, entries: Vec<(K, Value)>) -> Box<dyn OrderedIndex<K, Value>>
where
    K: Ord + Clone,
    I: OrderedIndex<K, Value> + 'static,
{
    for (key, value) in entries {
        index.insert(key, value);
    }
    Box::new(index)
}

/// The index that a bulk load made, or an empty one if the load found the entries not to be sorted.
pub(crate) fn loaded<K, I>(loaded: Result<I, NotSorted>) -> Box<dyn OrderedIndex<K, Value>>
where
    K: Ord + Clone,
    I: OrderedIndex<K, Value> + Default + 'static,
{
    Box::new(loaded.unwrap_or_default())
}

/// A registered engine, in the configuration that users get.
macro_rules! registered {
    ($name:ident, $Index:ident, $($facts:ident),*) => {
        index!($name, [PLAIN], |entries| filled(
            $Index::<_, _>::new(),
            entries
        ));
    };
}

pub(crate) use {index, registered, subject};
