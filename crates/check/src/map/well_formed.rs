//! Answers that are wrong for any content of the map.

use super::operation::{Operation, Response, Span};
use std::ops::Bound;
use tremula_index::Direction;

/// Checks whether an answer could belong to this operation at all. Returns why not.
pub(super) fn check(operation: &Operation, response: &Response) -> Result<(), String> {
    use Operation as O;
    use Response as R;
    let complaint = match (operation, response) {
        (_, R::Done)
        | (O::Get(_) | O::GetWith(_) | O::Insert(..) | O::Remove(_), R::Value(_) | R::Flag(_))
        | (O::ContainsKey(_) | O::InsertIfAbsent(..) | O::IsEmpty, R::Flag(_))
        | (O::First | O::Last | O::PopFirst | O::PopLast, R::Entry(_))
        | (O::RemoveRange(_) | O::Len, R::Count(_)) => None,
        (O::Update(..), R::Updated { shown, .. }) => {
            (shown.len() != 1).then_some("the closure is to be called once")
        }
        (O::GetMany(keys), R::Values(values)) => {
            (keys.len() != values.len()).then_some("there is to be a value or none for each key")
        }
        (O::Next(_) | O::Prev(_), R::Entry(entry)) => {
            let outside = |(key, _): &(u64, u64)| !beyond(operation).contains(*key);
            entry
                .as_ref()
                .is_some_and(outside)
                .then_some("the key lies on the wrong side")
        }
        (O::Scan(span, way, limit) | O::Range(span, way, limit), R::Entries(entries)) => {
            scanned(entries, *span, *way, *limit)
        }
        (O::Snapshot(span), R::Entries(entries)) => {
            scanned(entries, *span, Direction::Ascending, usize::MAX)
        }
        _ => Some("that is not an answer to it"),
    };
    match complaint {
        Some(complaint) => Err(format!("{operation} answered {response}: {complaint}")),
        None => Ok(()),
    }
}

/// The keys that `next` or `prev` looks at.
pub(super) const fn beyond(operation: &Operation) -> Span {
    match *operation {
        Operation::Next(key) => Span {
            low: Bound::Excluded(key),
            high: Bound::Unbounded,
        },
        Operation::Prev(key) => Span {
            low: Bound::Unbounded,
            high: Bound::Excluded(key),
        },
        _ => Span::ALL,
    }
}

fn scanned(
    entries: &[(u64, u64)],
    span: Span,
    direction: Direction,
    limit: usize,
) -> Option<&'static str> {
    let in_order = entries.is_sorted_by(|(one, _), (other, _)| match direction {
        Direction::Ascending => one < other,
        Direction::Descending => one > other,
    });
    if entries.len() > limit {
        Some("there are too many entries")
    } else if !in_order {
        Some("the keys are not in strict order")
    } else if entries.iter().any(|&(key, _)| !span.contains(key)) {
        Some("a key lies outside")
    } else {
        None
    }
}
