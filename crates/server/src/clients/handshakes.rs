//! What the server counts and says of handshakes, and of clients at the wrong port.

use super::Client;
use crate::descriptors::Throttle;
use crate::lock::lock;
use crate::transport::HandshakeError;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

/// The handshakes of a server.
#[derive(Default)]
pub(crate) struct Handshakes {
    /// Those that have begun and are not done.
    under_way: AtomicUsize,
    failed: AtomicU64,
    /// Anybody who reaches the port can make them fail, so that the log says so rarely.
    failures: Mutex<Throttle>,
    plain_at_tls: Mutex<Throttle>,
    tls_at_plain: Mutex<Throttle>,
}

impl Handshakes {
    /// Counts a handshake until the result is dropped.
    pub(crate) fn begin(&self) -> UnderWay<'_> {
        self.under_way.fetch_add(1, Relaxed);
        UnderWay(self)
    }

    pub(crate) fn under_way(&self) -> usize {
        self.under_way.load(Relaxed)
    }

    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Relaxed)
    }

    /// Notes that the handshake of a client has failed.
    pub(crate) fn fail(&self, client: &Client, error: &HandshakeError) {
        let who = client.who();
        tracing::debug!("no TLS with {who}: {error}");
        let throttle = match error {
            HandshakeError::LeftAtOnce => return,
            HandshakeError::Plain => &self.plain_at_tls,
            _ => &self.failures,
        };
        self.failed.fetch_add(1, Relaxed);
        if let Some(count) = count(throttle) {
            tracing::warn!(count, "no TLS with {who}: {error}");
        }
    }

    /// Notes that a client has begun TLS at a port that has none.
    pub(crate) fn tls_at_plain(&self, client: &Client) {
        if let Some(count) = count(&self.tls_at_plain) {
            tracing::warn!(
                count,
                "{} begins TLS at a port without it; --tls-port has it",
                client.who()
            );
        }
    }
}

fn count(throttle: &Mutex<Throttle>) -> Option<u64> {
    lock(throttle).count(Instant::now())
}

/// Counts a handshake.
pub(crate) struct UnderWay<'a>(&'a Handshakes);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Relaxed);
    }
}
