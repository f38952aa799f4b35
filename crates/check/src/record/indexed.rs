//! Ordered indexes as subjects.

use super::subject::Subject;
use crate::map::{Kind, Operation, Response, Span, key_range};
use std::marker::PhantomData;
use std::ops::ControlFlow;
use tremula_index::{OrderedIndex, Update};

/// An [`OrderedIndex`] as a [`Subject`]. Its keys and values may be `u64` or
/// [`Dawdler`](super::Dawdler)s.
///
/// ```
/// use tremula_check::map::{Operation, Response};
/// use tremula_check::record::{Indexed, Subject};
/// use tremula_index::Engine;
///
/// let subject = Indexed::new(Engine::CaTree.create::<u64, u64>());
/// assert_eq!(subject.call(&Operation::Insert(1, 10)), Response::Value(None));
/// assert_eq!(subject.call(&Operation::First), Response::Entry(Some((1, 10))));
/// ```
#[derive(Debug)]
pub struct Indexed<K, V, I> {
    index: I,
    loose: &'static [Kind],
    entry: PhantomData<fn(K) -> V>,
}

impl<K, V, I> Indexed<K, V, I> {
    /// A subject for this index.
    pub const fn new(index: I) -> Self {
        Self {
            index,
            loose: &[],
            entry: PhantomData,
        }
    }

    /// Sets the kinds of operations that, by the engine's docs, are not as of one moment.
    #[must_use]
    pub const fn loosely(mut self, kinds: &'static [Kind]) -> Self {
        self.loose = kinds;
        self
    }

    /// The index.
    pub const fn index(&self) -> &I {
        &self.index
    }
}

impl<K, V, I> Subject for Indexed<K, V, I>
where
    K: Ord + Clone + From<u64> + Into<u64>,
    V: Clone + From<u64> + Into<u64>,
    I: OrderedIndex<K, V>,
{
    fn offers(&self, kind: Kind) -> bool {
        let nothing = Span::of(0..0).bounds();
        match kind {
            // An engine that cannot give snapshots returns `None`.
            Kind::Snapshot => self.index.snapshot(key_range(&nothing)).is_some(),
            // An index has no such operation.
            Kind::InsertMany => false,
            _ => true,
        }
    }

    fn of_one_moment(&self, kind: Kind) -> bool {
        !self.loose.contains(&kind)
    }

    fn call(&self, operation: &Operation) -> Response {
        let index = &self.index;
        let number = |value: V| -> u64 { value.into() };
        let entry = |(key, value): (K, V)| (key.into(), value.into());
        match *operation {
            Operation::Get(key) => Response::Value(index.get(&key.into()).map(number)),
            Operation::GetWith(key) => {
                let mut seen = Vec::new();
                let called = index.get_with(&key.into(), &mut |value| seen.push(value.clone()));
                assert_eq!(seen.len(), usize::from(called), "the calls of get_with");
                Response::Value(seen.pop().map(number))
            }
            Operation::ContainsKey(key) => Response::Flag(index.contains_key(&key.into())),
            Operation::GetMany(ref keys) => {
                let keys: Vec<K> = keys.iter().map(|&key| key.into()).collect();
                let mut values = Vec::new();
                index.get_many(&keys, &mut values);
                Response::Values(values.into_iter().map(|value| value.map(number)).collect())
            }
            Operation::Insert(key, value) => {
                Response::Value(index.insert(key.into(), value.into()).map(number))
            }
            Operation::InsertIfAbsent(key, value) => {
                let outcome = index.insert_if_absent(key.into(), value.into());
                let back = outcome.as_ref().err().cloned().map(number);
                assert!(back.is_none_or(|back| back == value), "{back:?} came back");
                Response::Flag(outcome.is_ok())
            }
            Operation::InsertMany(_) => unreachable!("{operation} is not offered"),
            Operation::Remove(key) => Response::Value(index.remove(&key.into()).map(number)),
            Operation::Update(key, change) => {
                let mut shown = Vec::new();
                let returned = index.update(key.into(), &mut |value| {
                    let value = value.cloned().map(number);
                    shown.push(value);
                    match change.decide(value) {
                        Update::Put(value) => Update::Put(value.into()),
                        Update::Keep => Update::Keep,
                        Update::Remove => Update::Remove,
                    }
                });
                Response::Updated {
                    shown,
                    returned: returned.map(number),
                }
            }
            Operation::First => Response::Entry(index.first().map(entry)),
            Operation::Last => Response::Entry(index.last().map(entry)),
            Operation::Next(key) => Response::Entry(index.next(&key.into()).map(entry)),
            Operation::Prev(key) => Response::Entry(index.prev(&key.into()).map(entry)),
            Operation::PopFirst => Response::Entry(index.pop_first().map(entry)),
            Operation::PopLast => Response::Entry(index.pop_last().map(entry)),
            Operation::Scan(span, direction, limit) => {
                let mut entries = Vec::new();
                let bounds = span.bounds();
                index.scan(key_range(&bounds), direction, limit, &mut entries);
                Response::Entries(entries.into_iter().map(entry).collect())
            }
            Operation::Snapshot(span) => match index.snapshot(key_range(&span.bounds())) {
                Some(entries) => Response::Entries(entries.into_iter().map(entry).collect()),
                None => Response::Done,
            },
            Operation::Range(span, direction, limit) => {
                let mut entries = Vec::new();
                let bounds = span.bounds();
                if limit > 0 {
                    index.range(key_range(&bounds), direction, &mut |key, value| {
                        entries.push(entry((key.clone(), value.clone())));
                        if entries.len() < limit {
                            ControlFlow::Continue(())
                        } else {
                            ControlFlow::Break(())
                        }
                    });
                }
                Response::Entries(entries)
            }
            Operation::RemoveRange(span) => {
                Response::Count(index.remove_range(key_range(&span.bounds())))
            }
            Operation::Len => Response::Count(index.len()),
            Operation::IsEmpty => Response::Flag(index.is_empty()),
        }
    }
}
