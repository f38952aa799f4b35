//! A history: the calls of a run, when each began and ended, and its answer.

use std::ops::RangeInclusive;

/// One call: its thread, its operation, its times and its answer.
///
/// Times are any increasing numbers; see [`record`](crate::record) for their source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<O, R> {
    /// The thread that called. Only reports show it.
    pub thread: usize,
    /// A time at or before the beginning of the call.
    pub called: u64,
    /// What was called.
    pub operation: O,
    /// The end of the call; `None` if it never returned, as in a thread that panicked. Such an
    /// operation may have taken effect at any time after its call, or never.
    pub returned: Option<Returned<R>>,
}

/// The end of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returned<R> {
    /// A time at or after the end of the call.
    pub at: u64,
    /// The answer, or the part of it that was seen.
    pub response: R,
}

impl<O, R> Event<O, R> {
    /// A call that returned.
    pub const fn returned(
        thread: usize,
        time: RangeInclusive<u64>,
        operation: O,
        response: R,
    ) -> Self {
        Self {
            thread,
            called: *time.start(),
            operation,
            returned: Some(Returned {
                at: *time.end(),
                response,
            }),
        }
    }

    /// A call that never returned.
    pub const fn pending(thread: usize, called: u64, operation: O) -> Self {
        Self {
            thread,
            called,
            operation,
            returned: None,
        }
    }

    /// The answer, or the part of it that was seen.
    pub fn response(&self) -> Option<&R> {
        self.returned.as_ref().map(|returned| &returned.response)
    }

    /// The time of the end; the greatest time for a call that never returned.
    pub fn end(&self) -> u64 {
        self.returned
            .as_ref()
            .map_or(u64::MAX, |returned| returned.at)
    }
}

/// A set of calls, in the order in which they began, arranged in lanes for the search.
///
/// Two calls overlap unless one ended before the other began; calls whose times only touch overlap.
/// A thread may have several calls under way at once, like a client that does not wait.
#[derive(Clone, Debug)]
pub struct History<O, R> {
    events: Vec<Event<O, R>>,
    /// Each lane holds events that do not overlap, in order, so the placed calls of a lane are
    /// always its beginning. If each thread makes one call at a time, threads could serve as lanes;
    /// these lanes always can, and are as few as possible.
    lanes: Vec<Vec<usize>>,
}

/// A call that ended before it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a call of thread {thread} ends at {returned}, before it begins at {called}")]
pub struct Malformed {
    /// The thread that called.
    pub thread: usize,
    /// When it began.
    pub called: u64,
    /// When it ended.
    pub returned: u64,
}

impl<O, R> History<O, R> {
    /// A history of these calls, in any order.
    ///
    /// # Errors
    ///
    /// When a call ends before it begins.
    pub fn new(events: Vec<Event<O, R>>) -> Result<Self, Malformed> {
        if let Some(event) = events.iter().find(|event| event.end() < event.called) {
            return Err(Malformed {
                thread: event.thread,
                called: event.called,
                returned: event.end(),
            });
        }
        Ok(Self::sorted(events))
    }

    /// A history of calls that are known to end after they begin.
    pub(crate) fn sorted(mut events: Vec<Event<O, R>>) -> Self {
        events.sort_by_key(|event| (event.called, event.end()));
        let mut lanes: Vec<Vec<usize>> = Vec::new();
        for (number, event) in events.iter().enumerate() {
            let free = lanes.iter_mut().find(|lane| {
                let last = lane.last().map(|&last| &events[last]);
                last.is_none_or(|last| last.end() < event.called)
            });
            match free {
                Some(lane) => lane.push(number),
                None => lanes.push(vec![number]),
            }
        }
        Self { events, lanes }
    }

    /// The calls, in the order in which they began.
    #[must_use]
    pub fn events(&self) -> &[Event<O, R>] {
        &self.events
    }

    pub(crate) fn lanes(&self) -> &[Vec<usize>] {
        &self.lanes
    }

    /// The number of pairs of calls that overlapped: a measure of how much was tested.
    #[must_use]
    pub fn overlaps(&self) -> usize {
        let mut overlaps = 0;
        let mut under_way: Vec<u64> = Vec::new();
        for event in &self.events {
            under_way.retain(|&end| end >= event.called);
            overlaps += under_way.len();
            under_way.push(event.end());
        }
        overlaps
    }
}

impl<O: Clone, R: Clone> History<O, R> {
    /// The history as seen at a time: without the calls that began later; calls that ended later
    /// have not returned. A linearizable history is linearizable at all times.
    #[must_use]
    pub fn until(&self, time: u64) -> Self {
        let begun = self.events.iter().filter(|event| event.called <= time);
        let seen = begun.cloned().map(|event| Event {
            returned: event.returned.filter(|returned| returned.at <= time),
            ..event
        });
        Self::sorted(seen.collect())
    }

    /// The calls that `keep` selects by their places in [`events`](Self::events).
    #[must_use]
    pub(crate) fn filtered(&self, mut keep: impl FnMut(usize) -> bool) -> Self {
        let kept = self
            .events
            .iter()
            .enumerate()
            .filter(|(number, _)| keep(*number))
            .map(|(_, event)| event.clone());
        Self::sorted(kept.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_does_not_end_before_it_begins() {
        let event = Event::<(), ()> {
            thread: 3,
            called: 5,
            operation: (),
            returned: Some(Returned {
                at: 4,
                response: (),
            }),
        };
        let error = History::new(vec![event]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a call of thread 3 ends at 4, before it begins at 5"
        );
    }

    #[test]
    fn calls_of_one_lane_do_not_overlap() {
        let events = vec![
            Event::returned(0, 4..=5, 'c', ()),
            Event::returned(0, 0..=1, 'a', ()),
            Event::pending(1, 1, 'b'),
            Event::returned(0, 5..=6, 'd', ()),
        ];
        let history = History::new(events).unwrap();
        let order: String = history
            .events()
            .iter()
            .map(|event| event.operation)
            .collect();
        assert_eq!(order, "abcd");
        assert_eq!(history.lanes(), [vec![0, 2], vec![1], vec![3]]);
        // a with b, b with c and d, c with d.
        assert_eq!(history.overlaps(), 4);
    }

    #[test]
    fn what_had_not_returned_at_a_time_is_pending_then() {
        let events = vec![
            Event::returned(0, 0..=9, 'a', ()),
            Event::returned(1, 1..=2, 'b', ()),
            Event::returned(1, 3..=4, 'c', ()),
        ];
        let early = History::new(events).unwrap().until(2);
        assert_eq!(early.events().len(), 2);
        assert_eq!(early.events()[0], Event::pending(0, 0, 'a'));
        assert!(early.events()[1].returned.is_some());
    }
}
