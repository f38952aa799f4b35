//! What `len` and `is_empty` may answer.
//!
//! They promise to be exact when nothing else is under way, and otherwise to be off by at most the
//! changes under way. A counter beside the map keeps that promise: each call that adds or removes
//! entries changes the counter at some moment of the call, not necessarily when it changes the map.
//! So `len` counts calls that ended before it began in full, and calls that overlap with it in any
//! part. This needs no search, because each answer contains what the call added or removed.

use super::operation::{Change, Operation, Response};
use crate::history::Event;
use std::collections::BTreeSet;

/// Checks each `len` and `is_empty` among the calls, which are sorted by their beginning, of a map
/// that had `initial` entries. Returns what is wrong with the first bad one.
pub(super) fn check(events: &[Event<Operation, Response>], initial: usize) -> Result<(), String> {
    let counts = |event: &&Event<Operation, Response>| {
        matches!(event.operation, Operation::Len | Operation::IsEmpty)
    };
    if !events.iter().any(|event| counts(&event)) {
        return Ok(());
    }
    let changes: Vec<Counted> = events.iter().map(Counted::of).collect();
    let begun = Sums::new(changes.iter().map(|change| (change.called, change.partial)));
    let mut ended: Vec<&Counted> = changes.iter().collect();
    ended.sort_by_key(|change| change.end);
    let ended_partial = Sums::new(ended.iter().map(|change| (change.end, change.partial)));
    let ended_whole = Sums::new(ended.iter().map(|change| (change.end, change.whole)));

    for event in events.iter().filter(counts) {
        let Some(returned) = &event.returned else {
            continue;
        };
        let before = ended_whole.before(event.called);
        let counted_twice = ended_partial.before(event.called);
        let meanwhile = begun.before(returned.at.saturating_add(1));
        let size = initial as i128;
        let least = size + before.least + meanwhile.least - counted_twice.least;
        let most = size + before.most + meanwhile.most - counted_twice.most;
        let possible = match returned.response {
            Response::Count(count) => (least..=most).contains(&(count as i128)),
            Response::Flag(true) => least <= 0,
            Response::Flag(false) => most >= 1,
            _ => true,
        };
        if !possible {
            return Err(format!(
                "{} of thread {}, from {} to {}, answered {}, but with what was under way there \
                 were between {least} and {most} entries",
                event.operation, event.thread, event.called, returned.at, returned.response,
            ));
        }
    }
    Ok(())
}

/// By how much a call, or several, may have changed the number of entries.
#[derive(Clone, Copy, Default)]
struct Effect {
    least: i128,
    most: i128,
}

impl Effect {
    const fn exactly(change: i128) -> Self {
        Self {
            least: change,
            most: change,
        }
    }

    /// The effect of a call that may have had all of its effect or none.
    fn perhaps(self) -> Self {
        Self {
            least: self.least.min(0),
            most: self.most.max(0),
        }
    }

    const fn plus(self, other: Self) -> Self {
        Self {
            least: self.least + other.least,
            most: self.most + other.most,
        }
    }

    fn of(operation: &Operation, response: Option<&Response>) -> Self {
        use Operation as O;
        use Response as R;
        match (operation, response) {
            (O::Insert(..), Some(R::Value(None) | R::Flag(false))) => Self::exactly(1),
            (O::Insert(..), Some(R::Value(Some(_)) | R::Flag(true))) => Self::exactly(0),
            (O::InsertIfAbsent(..), Some(R::Flag(inserted))) => Self::exactly((*inserted).into()),
            (O::Update(_, Change::Put(_) | Change::Add(_)), Some(R::Updated { returned, .. })) => {
                Self::exactly(returned.is_none().into())
            }
            (
                O::Insert(..)
                | O::InsertIfAbsent(..)
                | O::Update(_, Change::Put(_) | Change::Add(_)),
                _,
            ) => Self::exactly(1).perhaps(),

            (O::InsertMany(entries), _) => {
                let keys: BTreeSet<u64> = entries.iter().map(|&(key, _)| key).collect();
                Self::exactly(keys.len() as i128).perhaps()
            }
            (O::Remove(_), Some(R::Value(Some(_)) | R::Flag(true)))
            | (O::PopFirst | O::PopLast, Some(R::Entry(Some(_)))) => Self::exactly(-1),
            (O::Remove(_), Some(R::Value(None) | R::Flag(false)))
            | (O::PopFirst | O::PopLast, Some(R::Entry(None))) => Self::exactly(0),
            (O::Update(_, Change::Remove), Some(R::Updated { returned, .. })) => {
                Self::exactly(-i128::from(returned.is_some()))
            }
            (O::Remove(_) | O::PopFirst | O::PopLast | O::Update(_, Change::Remove), _) => {
                Self::exactly(-1).perhaps()
            }
            (O::RemoveRange(_), Some(R::Count(count))) => Self::exactly(-(*count as i128)),
            (O::RemoveRange(_), _) => Self::exactly(-i128::from(u64::MAX)).perhaps(),
            _ => Self::default(),
        }
    }
}

/// A call as seen by the counter.
struct Counted {
    called: u64,
    end: u64,
    /// Its effect, once it has ended.
    whole: Effect,
    /// Its possible effect while it is under way.
    partial: Effect,
}

impl Counted {
    fn of(event: &Event<Operation, Response>) -> Self {
        let whole = Effect::of(&event.operation, event.response());
        Self {
            called: event.called,
            end: event.end(),
            whole,
            partial: whole.perhaps(),
        }
    }
}

struct Sums(Vec<(u64, Effect)>);

impl Sums {
    fn new(effects: impl Iterator<Item = (u64, Effect)>) -> Self {
        let mut sum = Effect::default();
        Self(
            effects
                .map(|(time, effect)| {
                    sum = sum.plus(effect);
                    (time, sum)
                })
                .collect(),
        )
    }

    /// The sum of all effects before a time.
    fn before(&self, time: u64) -> Effect {
        let place = self.0.partition_point(|&(other, _)| other < time);
        place
            .checked_sub(1)
            .map_or_else(Effect::default, |last| self.0[last].1)
    }
}
