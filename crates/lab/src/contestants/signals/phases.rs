//! How a channel adapts: one sender, then many, then one again, slice by slice of the time.

use super::{
    channel::{Channel, ChannelTask, Measured, Sending},
    stream::{Progress, Stop, joined, receive_all, send_until},
};
use crate::{
    measure::{Places, Sample, Span},
    workload::SignalsJob,
};
use std::{thread, time::Instant};

/// One sender sends all the time, the others in the second phase only. The time is divided into
/// slices. Each slice is a measurement of what was sent, what was received, and what the channel
/// counted.
pub(super) struct Phases {
    pub(super) senders: usize,
    pub(super) most_waiting: u64,
    pub(super) span: Span,
}

impl ChannelTask<u64> for Phases {
    type Output = Measured;

    fn run<C: Channel<u64>>(self, channel: &C) -> Measured {
        let (first, receiver) = channel.open(self.senders);
        // This end only reads the counters. It is dropped before this thread waits for the
        // receiver.
        let counting = first.another();
        let further: Vec<_> = (1..self.senders).map(|_| first.another()).collect();
        let (progress, stop, stop_further) = (Progress::of(self.senders), Stop::new(), Stop::new());
        let places = Places::of_workers();
        let (progress, stop, stop_further) = (&progress, &stop, &stop_further);
        let send = |sender, index, stop| {
            places.take(index);
            send_until(sender, index, progress, stop)
        };
        let send = &send;
        let slices = SignalsJob::senders_of_slices(self.senders);
        let length = self.span.counted / slices.len() as u32;
        let mut samples = Vec::new();
        let (sent, received) = thread::scope(|scope| {
            let receiving = scope.spawn(|| {
                places.take(self.senders);
                receive_all(receiver, progress)
            });
            let mut sending = vec![scope.spawn(move || send(first, 0, stop))];
            progress.pass_pausing(self.span.warm_up, self.most_waiting, &[stop]);
            let mut further = Some(further);
            let mut before = Reading::of(progress, &counting);
            for slice in 0..slices.len() {
                let many = slice / SignalsJob::SLICES == 1;
                if many && let Some(further) = further.take() {
                    sending.extend(further.into_iter().zip(1..).map(|(sender, index)| {
                        scope.spawn(move || send(sender, index, stop_further))
                    }));
                }
                let stops = if many {
                    &[stop, stop_further][..]
                } else {
                    &[stop]
                };
                progress.pass_pausing(length, self.most_waiting, stops);
                if slice + 1 == 2 * SignalsJob::SLICES {
                    stop_further.end();
                }
                let now = Reading::of(progress, &counting);
                samples.push(now.since(&before));
                before = now;
            }
            stop.end();
            let sent: u64 = sending.into_iter().map(|sent| joined(sent).messages).sum();
            drop(counting);
            (sent, joined(receiving))
        });
        match received? {
            received if received.messages == sent => Ok(samples),
            received => Err(format!(
                "{} messages received, {sent} sent",
                received.messages
            )),
        }
    }
}

/// All counts at one moment.
struct Reading {
    at: Instant,
    sent: u64,
    received: u64,
    counters: Vec<(&'static str, u64)>,
}

impl Reading {
    fn of<S: Sending<u64>>(progress: &Progress, sender: &S) -> Self {
        Self {
            at: Instant::now(),
            sent: progress.sent(),
            received: progress.received(),
            counters: sender.counters(),
        }
    }

    fn since(&self, before: &Self) -> Sample {
        let elapsed = self.at - before.at;
        let mut sample = Sample::new(self.received - before.received, elapsed);
        sample.send_mops = Some(Sample::new(self.sent - before.sent, elapsed).mops());
        let counters = self.counters.iter().zip(&before.counters);
        sample.figures = counters
            .map(|((name, now), (_, before))| ((*name).to_owned(), (now - before) as f64))
            .collect();
        sample
    }
}
