//! The settings that can change while the server runs, as all threads see them.
//!
//! Each is one number that any thread reads without a lock. Those that belong to a part of the
//! server with a state of its own, such as the limit of memory, are there.

use crate::limits::{Classes, Limits, Percentiles};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU16, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A number that can change.
pub(crate) struct Number(AtomicU64);

impl Number {
    fn new(number: u64) -> Self {
        Self(AtomicU64::new(number))
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    pub(crate) fn set(&self, number: u64) {
        self.0.store(number, Relaxed);
    }

    /// The number as one of bytes or things.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        usize::try_from(self.get()).unwrap_or(usize::MAX)
    }
}

/// The settings that can change.
pub(crate) struct Live {
    pub(crate) max_clients: Number,
    pub(crate) timeout: Number,
    pub(crate) tcp_keepalive: Number,
    pub(crate) soft_output_seconds: Number,
    pub(crate) max_output_buffer: Number,
    pub(crate) max_pubsub_buffer: Number,
    pub(crate) soft_pubsub_buffer: Number,
    pub(crate) soft_pubsub_seconds: Number,
    pub(crate) max_query_buffer: Number,
    pub(crate) max_argument: Number,
    /// In milliseconds; 0 is none.
    pub(crate) latency_threshold: Number,
    /// In microseconds; negative if none.
    slower_than: AtomicI64,
    latency_tracking: AtomicBool,
    percentiles: Mutex<Percentiles>,
    notices: AtomicU16,
}

/// Below this, times must be exact, so that each command is timed by itself.
const EXACT: Duration = Duration::from_millis(1);

impl Live {
    pub(crate) fn new(limits: &Limits) -> Self {
        let number = |bytes: usize| Number::new(bytes as u64);
        Self {
            max_clients: number(limits.max_clients),
            timeout: Number::new(limits.clients.timeout),
            tcp_keepalive: Number::new(limits.clients.tcp_keepalive),
            soft_output_seconds: Number::new(limits.clients.soft_output_seconds),
            max_output_buffer: number(limits.max_output_buffer.0),
            max_pubsub_buffer: number(limits.channels.max_pubsub_buffer.0),
            soft_pubsub_buffer: number(limits.channels.soft_pubsub_buffer.0),
            soft_pubsub_seconds: Number::new(limits.channels.soft_pubsub_seconds),
            max_query_buffer: number(limits.max_query_buffer.0),
            max_argument: number(limits.max_argument.0),
            latency_threshold: Number::new(limits.watch.latency_monitor_threshold),
            slower_than: AtomicI64::new(limits.watch.slowlog_log_slower_than),
            latency_tracking: AtomicBool::new(limits.watch.latency_tracking),
            percentiles: Mutex::new(limits.watch.latency_tracking_info_percentiles.clone()),
            notices: AtomicU16::new(limits.channels.notify_keyspace_events.0),
        }
    }

    /// The microseconds from which a command is kept; negative if none is.
    pub(crate) fn slower_than(&self) -> i64 {
        self.slower_than.load(Relaxed)
    }

    pub(crate) fn set_slower_than(&self, micros: i64) {
        self.slower_than.store(micros, Relaxed);
    }

    /// Whether times go into histograms.
    #[inline]
    pub(crate) fn tracks_latency(&self) -> bool {
        self.latency_tracking.load(Relaxed)
    }

    pub(crate) fn set_tracks_latency(&self, tracks: bool) {
        self.latency_tracking.store(tracks, Relaxed);
    }

    /// The percentiles that are shown of each command.
    pub(crate) fn percentiles(&self) -> Percentiles {
        let percentiles = self.percentiles.lock();
        percentiles.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_percentiles(&self, new: Percentiles) {
        let percentiles = self.percentiles.lock();
        *percentiles.unwrap_or_else(PoisonError::into_inner) = new;
    }

    /// Which keyspace notifications are sent.
    #[inline]
    pub(crate) fn notices(&self) -> Classes {
        Classes(self.notices.load(Relaxed))
    }

    pub(crate) fn set_notices(&self, classes: Classes) {
        self.notices.store(classes.0, Relaxed);
    }

    /// From which time on a command is slow, for `SLOWLOG`.
    pub(crate) fn slow(&self) -> Option<Duration> {
        let micros = u64::try_from(self.slower_than()).ok()?;
        Some(Duration::from_micros(micros))
    }

    /// From which time on an event is kept, for `LATENCY`.
    pub(crate) fn long_event(&self) -> Option<Duration> {
        let milliseconds = self.latency_threshold.get();
        (milliseconds > 0).then(|| Duration::from_millis(milliseconds))
    }

    /// From which time on somebody wants to know of a command, and whether so short times matter
    /// that each is timed by itself.
    #[inline]
    pub(crate) fn noticeable(&self) -> (Option<Duration>, bool) {
        let (slow, event) = (self.slow(), self.long_event());
        let least = match (slow, event) {
            (Some(slow), Some(event)) => Some(slow.min(event)),
            (one, other) => one.or(other),
        };
        (
            least,
            event.is_some() || slow.is_some_and(|slow| slow < EXACT),
        )
    }
}
