//! Senders that send until they are stopped, and a receiver that checks what arrives.

use super::super::subject::called;
use super::channel::{Receiving, Sending};
use crate::workload::{Message, Stamp};
use std::{
    sync::atomic::{AtomicU8, AtomicU64, Ordering},
    time::{Duration, Instant},
};
use tremula_sync::{CachePadded, thread};

/// How many messages a sender sends, or the receiver receives, before it updates and checks the
/// shared state.
const STRIDE: u64 = 64;

/// How often the number of waiting messages is checked.
const TICK: Duration = Duration::from_millis(1);

/// The states of a [`Stop`].
const SENDING: u8 = 0;
const PAUSED: u8 = 1;
const OVER: u8 = 2;

/// Pauses and stops senders. It publishes no data: joining the senders does that.
pub(super) struct Stop(AtomicU8);

impl Stop {
    pub(super) const fn new() -> Self {
        Self(AtomicU8::new(SENDING))
    }

    /// Makes the senders end.
    pub(super) fn end(&self) {
        self.0.store(OVER, Ordering::Relaxed);
    }
}

/// What was sent and received so far, to within [`STRIDE`] messages each.
pub(super) struct Progress {
    sent: Vec<CachePadded<AtomicU64>>,
    received: CachePadded<AtomicU64>,
}

impl Progress {
    pub(super) fn of(senders: usize) -> Self {
        Self {
            sent: (0..senders).map(|_| CachePadded::default()).collect(),
            received: CachePadded::default(),
        }
    }

    pub(super) fn sent(&self) -> u64 {
        let sent = self.sent.iter().map(|sent| sent.load(Ordering::Relaxed));
        sent.sum()
    }

    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    fn waiting(&self) -> u64 {
        let received = self.received();
        self.sent().saturating_sub(received)
    }

    /// Waits for this time, or less if more than `most_waiting` messages wait.
    pub(super) fn pass(&self, duration: Duration, most_waiting: u64) {
        let end = tremula_sync::now() + duration;
        while sleep_a_tick(end) && self.waiting() <= most_waiting {}
    }

    /// Waits for this time, and pauses the senders while more than `most_waiting` messages wait.
    pub(super) fn pass_pausing(&self, duration: Duration, most_waiting: u64, stops: &[&Stop]) {
        let end = tremula_sync::now() + duration;
        while sleep_a_tick(end) {
            let stage = if self.waiting() > most_waiting {
                PAUSED
            } else {
                SENDING
            };
            for stop in stops {
                stop.0.store(stage, Ordering::Relaxed);
            }
        }
    }
}

/// Sleeps for at most a tick; `false` if the end is reached.
fn sleep_a_tick(end: Instant) -> bool {
    let left = end.saturating_duration_since(tremula_sync::now());
    thread::sleep(left.min(TICK));
    !left.is_zero()
}

/// When a sender sent, and how many messages.
pub(super) struct Sent {
    pub(super) begun: Instant,
    pub(super) ended: Instant,
    pub(super) messages: u64,
}

/// Sends messages until stopped, but at least a few. Drops the sender's end.
pub(super) fn send_until<M: Message>(
    mut sender: impl Sending<M>,
    index: usize,
    progress: &Progress,
    stop: &Stop,
) -> Sent {
    let begun = tremula_sync::now();
    let mut number = 0;
    loop {
        for _ in 0..STRIDE {
            sender.send(M::new(Stamp::new(index, number)));
            number += 1;
        }
        progress.sent[index].store(number, Ordering::Relaxed);
        loop {
            match stop.0.load(Ordering::Relaxed) {
                SENDING => break,
                PAUSED => thread::sleep(TICK),
                _ => {
                    return Sent {
                        begun,
                        ended: tremula_sync::now(),
                        messages: number,
                    };
                }
            }
        }
    }
}

/// What the receiver found.
pub(super) struct Received {
    pub(super) begun: Instant,
    pub(super) ended: Instant,
    pub(super) messages: u64,
}

/// Receives until all senders are gone, and checks that the messages of each sender are complete
/// and in order.
pub(super) fn receive_all<M: Message>(
    mut receiver: impl Receiving<M>,
    progress: &Progress,
) -> Result<Received, String> {
    let mut next = vec![0; progress.sent.len()];
    let mut fault = None;
    let mut messages = 0;
    let begun = tremula_sync::now();
    while let Some(message) = receiver.receive() {
        called();
        messages += 1;
        match message.stamp() {
            Some(stamp) if next.get(stamp.sender()) == Some(&stamp.number()) => {
                next[stamp.sender()] += 1;
            }
            // Keep receiving after a fault: senders may be waiting for that.
            Some(stamp) if fault.is_none() => {
                let expected = next.get(stamp.sender());
                fault = Some(format!(
                    "message {} of sender {} came when {expected:?} was its next",
                    stamp.number(),
                    stamp.sender(),
                ));
            }
            None if fault.is_none() => fault = Some("a message is torn".to_owned()),
            _ => {}
        }
        if messages % STRIDE == 0 {
            progress.received.store(messages, Ordering::Relaxed);
        }
    }
    let ended = tremula_sync::now();
    match fault {
        Some(fault) => Err(fault),
        None => Ok(Received {
            begun,
            ended,
            messages,
        }),
    }
}

/// Joins a thread, passing on its panic.
pub(super) fn joined<R>(thread: std::thread::ScopedJoinHandle<'_, R>) -> R {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Listed(std::vec::IntoIter<Stamp>);

    impl Receiving<u64> for Listed {
        fn receive(&mut self) -> Option<u64> {
            self.0.next().map(u64::new)
        }
    }

    fn received(stamps: &[(usize, u64)]) -> Result<u64, String> {
        let stamps: Vec<_> = stamps.iter().map(|(s, n)| Stamp::new(*s, *n)).collect();
        let progress = Progress::of(2);
        receive_all::<u64>(Listed(stamps.into_iter()), &progress).map(|received| received.messages)
    }

    #[test]
    fn only_whole_sequences_are_right() {
        assert_eq!(received(&[]), Ok(0));
        assert_eq!(received(&[(1, 0), (0, 0), (1, 1), (1, 2)]), Ok(4));
        for wrong in [
            &[(0, 1)][..],
            &[(0, 0), (0, 0)],
            &[(0, 0), (0, 2), (0, 1)],
            &[(2, 0)],
        ] {
            assert!(received(wrong).is_err(), "{wrong:?}");
        }
    }
}
