//! How many messages senders can send, and a receiver receive.
//!
//! The benchmark of Erlang's parallel signal sending defines both rates: what was sent, divided by
//! the time of sending; and what was received, divided by the time from the first send to the last
//! receive.

use super::{
    channel::{Channel, ChannelTask, Measured, Sending},
    stream::{Progress, Stop, joined, receive_all, send_until},
};
use crate::{
    measure::{Places, Sample, Span},
    workload::Message,
};
use std::{
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

/// How fast messages are received after the last send.
pub(in crate::contestants) const DRAIN: &str = "drain_mops";

/// Senders send for a time; the receiver receives meanwhile, or when they are done.
pub(super) struct Throughput {
    pub(super) live: bool,
    pub(super) senders: usize,
    pub(super) most_waiting: u64,
    pub(super) span: Span,
}

impl<M: Message> ChannelTask<M> for Throughput {
    type Output = Measured;

    fn run<C: Channel<M>>(self, channel: &C) -> Measured {
        // This warms up threads, allocator and branch predictors. The channel that counts is a new
        // one, which adapts while it is measured.
        self.stream(channel, self.span.warm_up)?;
        Ok(vec![self.stream(channel, self.span.counted)?])
    }
}

impl Throughput {
    fn stream<M: Message, C: Channel<M>>(
        &self,
        channel: &C,
        duration: Duration,
    ) -> Result<Sample, String> {
        let (first, receiver) = channel.open(self.senders);
        let mut senders: Vec<_> = (1..self.senders).map(|_| first.another()).collect();
        senders.push(first);
        let (progress, stop) = (Progress::of(self.senders), Stop::new());
        let barrier = Barrier::new(self.senders + usize::from(self.live) + 1);
        let places = Places::of_workers();
        let (progress, stop, barrier, places) = (&progress, &stop, &barrier, &places);
        let (sent, received) = thread::scope(|scope| {
            let sending: Vec<_> = senders
                .into_iter()
                .enumerate()
                .map(|(index, sender)| {
                    scope.spawn(move || {
                        places.take(index);
                        barrier.wait();
                        send_until(sender, index, progress, stop)
                    })
                })
                .collect();
            let pass = || {
                barrier.wait();
                progress.pass(duration, self.most_waiting);
                stop.end();
                sending.into_iter().map(joined).collect::<Vec<_>>()
            };
            if self.live {
                let receiving = scope.spawn(move || {
                    places.take(self.senders);
                    barrier.wait();
                    receive_all(receiver, progress)
                });
                let sent = pass();
                (sent, joined(receiving))
            } else {
                (pass(), receive_all(receiver, progress))
            }
        });
        let received = received?;
        let times = |time: fn(&super::stream::Sent) -> Instant| sent.iter().map(time);
        let begun = times(|sent| sent.begun).min().expect("there is a sender");
        let ended = times(|sent| sent.ended).max().expect("there is a sender");
        let messages: u64 = sent.iter().map(|sent| sent.messages).sum();
        if received.messages != messages {
            return Err(format!(
                "{} messages received, {messages} sent",
                received.messages
            ));
        }
        let mut sample = Sample::new(messages, received.ended - begun);
        sample.send_mops = Some(Sample::new(messages, ended - begun).mops());
        if !self.live {
            let draining = Sample::new(messages, received.ended - received.begun);
            sample.figures.push((DRAIN.to_owned(), draining.mops()));
        }
        Ok(sample)
    }
}
