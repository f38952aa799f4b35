//! How long a message takes to another thread and back, when both threads do nothing else.

use super::{
    channel::{Channel, ChannelTask, Measured, Receiving, Sending},
    stream::joined,
};
use crate::measure::{Places, Sample, Span};
use hdrhistogram::Histogram;
use std::{
    thread,
    time::{Duration, Instant},
};

/// The quantiles of the time of a round trip, by the names of their figures.
pub(in crate::contestants) const QUANTILES: [(&str, f64); 3] = [
    ("round_trip_ns_p50", 0.5),
    ("round_trip_ns_p99", 0.99),
    ("round_trip_ns_p99.9", 0.999),
];

/// Significant digits of a time.
const DIGITS: u8 = 3;

/// Two threads send one message back and forth, over one channel for each direction.
pub(super) struct PingPong<'a> {
    /// Where they run; the measuring thread is there already.
    pub(super) places: &'a Places,
    pub(super) span: Span,
}

impl ChannelTask<u64> for PingPong<'_> {
    type Output = Measured;

    fn run<C: Channel<u64>>(self, channel: &C) -> Measured {
        let (mut there, mut far_receiver) = channel.open(1);
        let (mut back, mut receiver) = channel.open(1);
        thread::scope(|scope| {
            let places = self.places;
            let echo = scope.spawn(move || {
                places.take(1);
                while let Some(message) = far_receiver.receive() {
                    back.send(message);
                }
            });
            let mut round_trips = |duration: Duration| {
                let mut times = Histogram::<u64>::new(DIGITS).expect("so many digits are possible");
                let begun = Instant::now();
                let mut before = begun;
                for number in 0.. {
                    there.send(number);
                    let answer = receiver.receive();
                    if answer != Some(number) {
                        return Err(format!("{answer:?} came back, {number} was sent"));
                    }
                    let now = Instant::now();
                    let nanoseconds = (now - before).as_nanos();
                    times += u64::try_from(nanoseconds).unwrap_or(u64::MAX);
                    before = now;
                    if now - begun >= duration {
                        break;
                    }
                }
                Ok((times, begun.elapsed()))
            };
            let warm = round_trips(self.span.warm_up);
            let counted = round_trips(self.span.counted);
            drop(there);
            joined(echo);
            warm?;
            let (times, elapsed) = counted?;
            let mut sample = Sample::new(times.len(), elapsed);
            sample.figures = QUANTILES
                .map(|(name, quantile)| (name.to_owned(), times.value_at_quantile(quantile) as f64))
                .into();
            Ok(vec![sample])
        })
    }
}
