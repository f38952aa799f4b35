//! Reading the stream from a message on, as it grows.

use super::described;
use crate::host::Host;
use crate::position::Position;
use async_nats::jetstream::Context;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, push};
use futures_util::StreamExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// How often NATS says that it has nothing to deliver. After two times without it the reading
/// begins anew.
const HEARTBEAT: Duration = Duration::from_millis(500);

/// The pause before a reading begins anew.
const AGAIN: Duration = Duration::from_millis(100);

/// Passes all messages to the host, from one on, until it is aborted. A message that gets lost
/// shows as a gap, and the node asks for another reading.
pub(super) async fn read(
    host: Arc<Host>,
    context: Context,
    stream: String,
    seen: Arc<AtomicU64>,
    (reading, from): (u64, Position),
) {
    let mut next = from;
    loop {
        match read_once(&host, &context, &stream, &seen, reading, &mut next).await {
            Ok(()) => {}
            Err(why) => tracing::debug!("reading from {next} begins anew: {why}"),
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn read_once(
    host: &Host,
    context: &Context,
    stream: &str,
    seen: &AtomicU64,
    reading: u64,
    next: &mut Position,
) -> Result<(), String> {
    let found = context.get_stream(stream).await;
    let found = found.map_err(|error| described(&error))?;
    let first = Position::new(found.cached_info().state.first_sequence);
    if first > *next && found.cached_info().state.messages > 0 {
        host.truncated(reading, first);
    }
    let config = push::Config {
        deliver_subject: context.client().new_inbox(),
        deliver_policy: DeliverPolicy::ByStartSequence {
            start_sequence: next.get().max(1),
        },
        ack_policy: AckPolicy::None,
        flow_control: true,
        idle_heartbeat: HEARTBEAT,
        memory_storage: true,
        num_replicas: 1,
        ..push::Config::default()
    };
    let consumer = found.create_consumer(config).await;
    let consumer = consumer.map_err(|error| described(&error))?;
    let messages = consumer.messages().await;
    let mut messages = messages.map_err(|error| described(&error))?;
    while let Some(message) = messages.next().await {
        let message = message.map_err(|error| described(&error))?;
        let info = message.info().map_err(|error| error.to_string())?;
        let position = Position::new(info.stream_sequence);
        seen.fetch_max(position.get(), SeqCst);
        host.record(reading, position, &message.payload);
        *next = (*next).max(position.next());
    }
    Err("the subscription has ended".to_owned())
}
