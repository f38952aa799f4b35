//! What a send costs without contention.

use super::channel::{Channel, ChannelTask, Measured, Receiving, Sending};
use crate::measure::{Sample, Span, median};
use std::time::{Duration, Instant};

/// How many messages are sent before they are received: enough to make reading the clock
/// negligible, few enough to stay in the first-level cache.
const ROUND: u64 = 512;

const SEND: &str = "send_ns";
const RECEIVE: &str = "receive_ns";

/// One thread sends some messages, then receives them, again and again.
pub(super) struct UncontendedSend {
    pub(super) span: Span,
}

impl ChannelTask<u64> for UncontendedSend {
    type Output = Measured;

    fn run<C: Channel<u64>>(self, channel: &C) -> Measured {
        let (mut sender, mut receiver) = channel.open(1);
        let mut rounds = |duration: Duration| {
            let (mut sending, mut receiving) = (Vec::new(), Vec::new());
            let begun = Instant::now();
            let a_message = |time: Duration| time.as_nanos() as f64 / ROUND as f64;
            while sending.is_empty() || begun.elapsed() < duration {
                let before = Instant::now();
                for number in 0..ROUND {
                    sender.send(number);
                }
                let between = Instant::now();
                for number in 0..ROUND {
                    let message = receiver.receive();
                    if message != Some(number) {
                        return Err(format!("{message:?} came, {number} was sent"));
                    }
                }
                sending.push(a_message(between - before));
                receiving.push(a_message(between.elapsed()));
            }
            Ok((sending, receiving))
        };
        rounds(self.span.warm_up)?;
        let (sending, receiving) = rounds(self.span.counted)?;
        // Medians, because an interrupt is no property of the channel.
        let cost = |times: &[f64]| median(times).unwrap_or_default();
        let (send, receive) = (cost(&sending), cost(&receiving));
        let messages = sending.len() as u64 * ROUND;
        let elapsed = Duration::from_secs_f64((send + receive) * messages as f64 / 1e9);
        let mut sample = Sample::new(messages, elapsed);
        sample.send_mops = Some(1e3 / send.max(f64::MIN_POSITIVE));
        sample.figures = vec![(SEND.to_owned(), send), (RECEIVE.to_owned(), receive)];
        Ok(vec![sample])
    }
}
