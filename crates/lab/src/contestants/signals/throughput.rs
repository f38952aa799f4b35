//! How many messages senders can send, and a receiver receive.
//!
//! The benchmark of Erlang's parallel signal sending defines both rates: what was sent, divided by
//! the time of sending; and what was received, divided by the time from the first send to the last
//! receive.

use super::{
    channel::{Channel, ChannelTask, Measured, Sending},
    stream::{Progress, Received, Sent, Stop, receive_all, send_until},
};
use crate::{
    measure::{Sample, Span, side_by_side},
    workload::Message,
};
use std::{
    sync::{Mutex, PoisonError},
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

/// An end of a channel, on its way to its thread.
enum End<S, R> {
    Sender(S),
    Receiver(R),
}

/// What a thread did with its end.
enum Done {
    Sent(Sent),
    Received(Result<Received, String>),
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
        let mut ends: Vec<_> = (1..self.senders).map(|_| first.another()).collect();
        ends.push(first);
        let mut ends: Vec<_> = ends.into_iter().map(End::Sender).collect();
        ends.push(End::Receiver(receiver));
        let ends: Vec<_> = ends.into_iter().map(|end| Mutex::new(Some(end))).collect();
        let (progress, stop) = (Progress::of(self.senders), Stop::new());
        let take = |thread: usize| {
            let end = ends[thread]
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            end.expect("each end is taken once")
        };
        let work = |thread: usize| match take(thread) {
            End::Sender(sender) => Done::Sent(send_until(sender, thread, &progress, &stop)),
            End::Receiver(receiver) => Done::Received(receive_all(receiver, &progress)),
        };
        let threads = self.senders + usize::from(self.live);
        let done = side_by_side(threads, work, || {
            progress.pass(duration, self.most_waiting);
            stop.end();
        });
        let (mut sent, mut received) = (Vec::new(), None);
        for done in done {
            match done {
                Done::Sent(what) => sent.push(what),
                Done::Received(what) => received = Some(what),
            }
        }
        // Without a receiver beside the senders, this thread receives when they are done.
        let received = received.or_else(|| match work(self.senders) {
            Done::Received(what) => Some(what),
            Done::Sent(_) => None,
        });
        let received = received.expect("the last end is the receiver's");
        let received = received?;
        let times = |time: fn(&Sent) -> Instant| sent.iter().map(time);
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
