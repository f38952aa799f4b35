//! Sends a burst and then receives it in this process, which has done nothing else before, and
//! weighs it.

use super::{
    channel::{Channel, ChannelTask, Receiving, Sending},
    kind::ChannelKind,
};
use crate::{
    LabError,
    measure::together,
    memory::{BurstReport, Memory},
    workload::{Message, Stamp, part},
};
use std::{sync::Mutex, time::Instant};

/// Sends `messages` values of type `u64` from `senders` threads, receives them, and weighs the
/// process before, between and after. The channel stays open.
///
/// # Errors
///
/// A message was lost, or came out of its sender's order.
pub fn burst(kind: ChannelKind, messages: u64, senders: usize) -> Result<BurstReport, LabError> {
    let burst = kind.run(Burst { messages, senders });
    burst.map_err(|fault| LabError::Wrong {
        engine: kind.name(),
        fault,
    })
}

struct Burst {
    messages: u64,
    senders: usize,
}

impl ChannelTask<u64> for Burst {
    type Output = Result<BurstReport, String>;

    fn run<C: Channel<u64>>(self, channel: &C) -> Self::Output {
        // Start as many threads once before, so that the memory of a thread does not count.
        together(self.senders, |_| ());
        let mut next = vec![0; self.senders];
        let before = Memory::now();
        let (first, mut receiver) = channel.open(self.senders);
        let begun = Instant::now();
        let ends: Vec<_> = (0..self.senders)
            .map(|_| Mutex::new(first.another()))
            .collect();
        together(self.senders, |sender| {
            let mut end = ends[sender].lock().expect("one thread uses it");
            let part = part(self.messages, sender, self.senders);
            for number in 0..part.end - part.start {
                end.send(u64::new(Stamp::new(sender, number)));
            }
        });
        let peak = Memory::now();
        for _ in 0..self.messages {
            let message = receiver.receive();
            match message.and_then(|message| message.stamp()) {
                Some(stamp) if next[stamp.sender()] == stamp.number() => next[stamp.sender()] += 1,
                wrong => return Err(format!("{wrong:?} is not the next of its sender")),
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        let after = Memory::now();
        drop((first, ends, receiver));
        Ok(BurstReport {
            messages: self.messages,
            seconds,
            before,
            peak,
            after,
        })
    }
}
