//! Clients that come: they are let in, or learn why they are not.

use super::{Arrival, Arrivals, Shared, Socket};
use crate::descriptors::{self, Spare, Throttle};
use crate::listen::{Listeners, Visitor, Way};
use crate::transport::{Address, Alert, Session};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How long the server pauses accepting after it could not.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// If this number of handshakes is under way, clients that protected mode refuses are not let into
/// another one. So they cannot take the places of those that are served.
const HANDSHAKES_OF_REFUSED: usize = 16;

/// The answer to a client for which there is no place.
const FULL: &str = "-ERR max number of clients reached\r\n";

/// The answer to a client for which the system has no descriptor.
const EXHAUSTED: &str =
    "-ERR max number of clients reached: the server can open no more files (ulimit -n)\r\n";

/// The refusal of other machines' clients in protected mode: Redis's code, Tremula's remedies.
const PROTECTED: &str = "-DENIED Tremula is running in protected mode because the default user has \
    no password. In this mode connections are only accepted from the loopback interface and from \
    a unix socket. If you want to connect from other machines, give that user a password \
    (--password-file, --acl-file or ACL SETUSER); or, if nobody else can reach it, turn the mode off: \
    'CONFIG SET protected-mode no' from this machine, or '--protected-mode no' at the start.\r\n";

/// Accepts clients for ever.
pub(super) async fn accept(listeners: &Listeners, workers: &[Arrivals], shared: &Shared) {
    let mut spare = Spare::new();
    let mut throttle = Throttle::default();
    loop {
        match listeners.accept().await {
            Ok(visitor) => welcome(visitor, workers, shared),
            Err(error) => {
                if let Some(count) = throttle.count(Instant::now()) {
                    tracing::warn!(%error, count, "cannot accept clients");
                }
                if descriptors::is_exhausted(&error) {
                    spare.give_up();
                    turn_away(listeners, shared).await;
                    spare.take_back();
                } else {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// Answers the next waiting client that there is no descriptor for it, with the one that was kept
/// in reserve. If another thread has taken that one, waits a little.
async fn turn_away(listeners: &Listeners, shared: &Shared) {
    tokio::select! {
        biased;
        accepted = listeners.accept() => match accepted {
            Ok(visitor) => {
                shared.stats.connections.fetch_add(1, Relaxed);
                shared.stats.rejected.fetch_add(1, Relaxed);
                refuse(visitor, EXHAUSTED);
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        },
        // The client may have gone.
        () = tokio::time::sleep(ACCEPT_PAUSE) => (),
    }
}

/// Hands an accepted client to a worker, or refuses it.
fn welcome(visitor: Visitor, workers: &[Arrivals], shared: &Shared) {
    shared.stats.connections.fetch_add(1, Relaxed);
    let is_local = is_local(&visitor.address);
    let limits = &shared.limits;
    let reserved = if is_local {
        limits.clients.reserved_clients
    } else {
        0
    };
    let max_clients = shared.live.max_clients.bytes();
    let admission = shared.clients.admit(max_clients.saturating_add(reserved));
    let refusal =
        (shared.protected_mode.load(Relaxed) && !is_local && shared.users.lets_anybody_in())
            .then_some(PROTECTED);
    if refusal.is_some() || admission.is_none() {
        shared.stats.rejected.fetch_add(1, Relaxed);
    }
    // With TLS, a client can read the reason only when the handshake is done.
    let learns_why =
        visitor.way == Way::Tls && shared.handshakes.under_way() < HANDSHAKES_OF_REFUSED;
    let (Some(admission), true) = (admission, refusal.is_none() || learns_why) else {
        refuse(visitor, refusal.unwrap_or(FULL));
        return;
    };
    let session = match (visitor.way, &shared.certificates) {
        (Way::Tls, Some(certificates)) => match Session::new(certificates.config(), refusal) {
            Ok(session) => Some(Box::new(session)),
            Err(error) => {
                tracing::error!(%error, "cannot begin TLS");
                return;
            }
        },
        _ => None,
    };
    let next = shared.threads.next();
    if let Some(worker) = workers.get(next) {
        shared.threads.pulse(next).clients.fetch_add(1, Relaxed);
        // Cannot fail: a worker ends only after its sender is dropped.
        let _ = worker.send(Arrival::New(Socket {
            incoming: visitor.incoming,
            session,
            user: None,
            admission,
        }));
    }
}

/// Whether a client is on this machine.
fn is_local(address: &Address) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// Sends a client the reason why it is not served, and hangs up. With TLS there is no session yet,
/// so it is an alert.
fn refuse(visitor: Visitor, text: &str) {
    match visitor.way {
        Way::Plain => visitor.incoming.refuse(text.as_bytes()),
        Way::Tls => visitor.incoming.refuse(&Alert::InternalError.record()),
    }
}
