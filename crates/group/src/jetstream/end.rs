//! The stream's last message.

use crate::host::Host;
use crate::position::Position;
use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::{Context, ErrorCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use tremula_sync::Mutex;

/// For how long the stream must be shorter than it was until the node hears of it. A server that
/// has just become the leader of the stream may say so before it has applied all that it has.
const SURE: Duration = Duration::from_secs(10);

/// The number of the stream's last message; 0 if there is no such stream. `None` if NATS does not
/// answer.
pub(super) async fn last_of(context: &Context, stream: &str) -> Option<u64> {
    match context.get_stream(stream).await {
        Ok(stream) => Some(stream.cached_info().state.last_sequence),
        Err(error) => match error.kind() {
            GetStreamErrorKind::JetStream(error)
                if error.error_code() == ErrorCode::STREAM_NOT_FOUND =>
            {
                Some(0)
            }
            _ => {
                tracing::debug!("the stream does not show its end: {error}");
                None
            }
        },
    }
}

pub(super) struct End {
    host: Arc<Host>,
    context: Context,
    stream: String,
    /// The last message that was seen in the stream.
    seen: Arc<AtomicU64>,
    /// Since when the stream has been shorter.
    short_since: Mutex<Option<Instant>>,
}

impl End {
    pub(super) fn new(
        host: &Arc<Host>,
        context: &Context,
        stream: &str,
        seen: &Arc<AtomicU64>,
    ) -> Self {
        Self {
            host: Arc::clone(host),
            context: context.clone(),
            stream: stream.to_owned(),
            seen: Arc::clone(seen),
            short_since: Mutex::new(None),
        }
    }

    /// Answers a question of the node. If NATS does not, nor does this: the node asks again.
    pub(super) async fn answer(&self, question: u64) {
        let seen = self.seen.load(SeqCst);
        let Some(last) = last_of(&self.context, &self.stream).await else {
            return;
        };
        let is_short = last < seen;
        let mut short_since = self.short_since.lock();
        *short_since = is_short.then(|| short_since.unwrap_or_else(Instant::now));
        let is_unsure = short_since.is_some_and(|since| since.elapsed() < SURE);
        drop(short_since);
        if !is_unsure {
            self.host.end(question, Position::new(last));
        }
    }
}
