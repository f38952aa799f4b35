//! Messages on their way to the stream, and what their answers mean.

use super::end::last_of;
use super::{Settings, described, of_server};
use crate::action::{Attempt, Outcome};
use crate::host::Host;
use crate::position::{MessageId, Position};
use async_nats::jetstream::Context;
use async_nats::jetstream::context::{PublishAckFuture, PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// How long the client may take to send a message: longer only while it has no connection.
const SENDING: Duration = Duration::from_secs(1);

/// Tries of one message from which the stream's word counts that it is shorter than it was. A
/// server that has just become the leader of the stream may say so before it has applied all that
/// it has.
const SURE: u32 = 6;

pub(super) struct Appends {
    host: Arc<Host>,
    context: Context,
    stream: String,
    subject: String,
    /// The last message that was seen in the stream.
    seen: Arc<AtomicU64>,
}

impl Appends {
    pub(super) fn new(
        host: &Arc<Host>,
        context: &Context,
        settings: &Settings,
        seen: &Arc<AtomicU64>,
    ) -> Self {
        Self {
            host: Arc::clone(host),
            context: context.clone(),
            stream: settings.stream(),
            subject: settings.subject(),
            seen: Arc::clone(seen),
        }
    }

    /// Sends a message, and lets a task wait for the answer.
    pub(super) async fn send(
        &mut self,
        attempt: Attempt,
        expected: Position,
        id: MessageId,
        bytes: Arc<[u8]>,
    ) {
        let message = PublishMessage::build()
            .payload(Bytes::from_owner(bytes))
            .message_id(id.to_string())
            .expected_stream(self.stream.as_str())
            .expected_last_sequence(expected.get());
        let sending = self.context.send_publish(self.subject.clone(), message);
        let Ok(Ok(answer)) = tokio::time::timeout(SENDING, sending).await else {
            return self.host.appended(attempt, Outcome::Unknown);
        };
        let (host, seen) = (Arc::clone(&self.host), Arc::clone(&self.seen));
        let (context, stream) = (self.context.clone(), self.stream.clone());
        tokio::spawn(async move {
            let mut outcome = outcome(answer, attempt, expected, &seen).await;
            if outcome.is_none() && attempt.number >= SURE {
                // Nobody takes the message. There may be no stream any more.
                let last = last_of(&context, &stream).await;
                outcome = last
                    .filter(|last| *last == 0)
                    .map(Position::new)
                    .map(Outcome::WrongEnd);
            }
            host.appended(attempt, outcome.unwrap_or(Outcome::Unknown));
        });
    }
}

/// What an answer says; `None` if it has not come.
async fn outcome(
    answer: PublishAckFuture,
    attempt: Attempt,
    expected: Position,
    seen: &AtomicU64,
) -> Option<Outcome> {
    match answer.await {
        Ok(stored) => {
            seen.fetch_max(stored.sequence, SeqCst);
            Some(Outcome::Stored(Position::new(stored.sequence)))
        }
        Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => {
            let end = last_sequence(&error);
            match end {
                // Another message is there, and the id of this one is not known.
                Some(end) if end > expected => Some(Outcome::WrongEnd(end)),
                // An earlier message is on its way, or the stream's leader is new.
                Some(end) if attempt.number >= SURE => Some(Outcome::WrongEnd(end)),
                _ => Some(Outcome::Unknown),
            }
        }
        Err(error) => {
            tracing::debug!("an append has no answer: {}", described(&error));
            None
        }
    }
}

/// The last message of the stream, as a refused append names it.
fn last_sequence(error: &PublishError) -> Option<Position> {
    let text = of_server(error)?.to_string();
    named(&text)
}

fn named(text: &str) -> Option<Position> {
    let (_, rest) = text.split_once("wrong last sequence: ")?;
    let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next()?;
    digits.parse().ok().map(Position::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_stream_is_read_from_a_refusal() {
        let text = "wrong last sequence: 1734 (code 400, error code 10071)";
        assert_eq!(named(text), Some(Position::new(1734)));
        assert_eq!(named("wrong last sequence: x"), None);
        assert_eq!(named("no stream"), None);
    }
}
