//! When something took long, for `LATENCY`.

use super::now;
use crate::lock::lock;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

/// Samples that are kept of an event, as in Redis.
const MOST_SAMPLES: usize = 160;

/// What may take long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A command.
    Command,
    /// A command that should be fast.
    FastCommand,
    /// Evictions before a command.
    Eviction,
    /// A thread that did not turn.
    Stuck,
}

impl Event {
    pub(crate) const ALL: [Self; 4] = [
        Self::Command,
        Self::Eviction,
        Self::FastCommand,
        Self::Stuck,
    ];

    /// The name, which is Redis's if it has the event.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::FastCommand => "fast-command",
            Self::Eviction => "eviction-cycle",
            Self::Stuck => "stuck-thread",
        }
    }

    /// What an operator may do about it.
    pub(crate) const fn advice(self) -> &'static str {
        match self {
            Self::Command => {
                "look at SLOWLOG GET and at LATENCY HISTOGRAM for the commands that take long; \
                 commands over many keys take longer than those over few, and give way to other \
                 clients meanwhile"
            }
            Self::FastCommand => {
                "these commands take some microseconds, so the thread had to wait for a processor: \
                 look for other programs on the machine, for swapping, and for a virtual machine \
                 that was paused"
            }
            Self::Eviction => {
                "the memory is at its limit: raise maxmemory, or let fewer keys be looked at \
                 (maxmemory-samples)"
            }
            Self::Stuck => {
                "a thread of the server could not go on: the log names it, with the command that \
                 was on it"
            }
        }
    }
}

/// When, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// In seconds since 1970.
    pub(crate) time: u64,
    pub(crate) milliseconds: u64,
}

/// What is known of an event.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// The newest last, at most one for each second.
    pub(crate) samples: VecDeque<Sample>,
    pub(crate) longest: u64,
}

/// The last samples of all events.
#[derive(Default)]
pub(crate) struct Latencies {
    histories: Mutex<[Option<History>; Event::ALL.len()]>,
}

impl Latencies {
    /// Notes that something took this time. Of one second only the longest is kept.
    pub(crate) fn add(&self, event: Event, took: Duration) {
        self.add_at(event, now().as_secs(), took);
    }

    fn add_at(&self, event: Event, time: u64, took: Duration) {
        let milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let mut histories = lock(&self.histories);
        let history = histories[event as usize].get_or_insert_default();
        history.longest = history.longest.max(milliseconds);
        match history.samples.back_mut() {
            Some(last) if last.time == time => {
                last.milliseconds = last.milliseconds.max(milliseconds);
            }
            _ => history.samples.push_back(Sample { time, milliseconds }),
        }
        if history.samples.len() > MOST_SAMPLES {
            history.samples.pop_front();
        }
    }

    /// What is known of an event, if it has happened since the last reset.
    pub(crate) fn history(&self, event: Event) -> Option<History> {
        lock(&self.histories)[event as usize].clone()
    }

    /// Forgets an event. Returns whether there was something to forget.
    pub(crate) fn reset(&self, event: Event) -> bool {
        lock(&self.histories)[event as usize].take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_sample_of_a_second_stays_and_so_many_seconds_do() {
        let latencies = Latencies::default();
        let add = |time, took| latencies.add_at(Event::Command, time, Duration::from_millis(took));
        add(1, 5);
        add(1, 9);
        add(1, 7);
        add(2, 3);
        let history = latencies.history(Event::Command).expect("a history");
        let sample = |time, milliseconds| Sample { time, milliseconds };
        assert_eq!(history.samples, [sample(1, 9), sample(2, 3)]);
        assert_eq!(history.longest, 9);
        assert!(latencies.history(Event::FastCommand).is_none());
        (10..500).for_each(|time| add(time, 1));
        let history = latencies.history(Event::Command).expect("a history");
        assert_eq!((history.samples.len(), history.longest), (MOST_SAMPLES, 9));
        assert_eq!(history.samples.back(), Some(&sample(499, 1)));
        assert!(latencies.reset(Event::Command) && !latencies.reset(Event::Command));
    }
}
