//! The page over HTTP, on a thread of its own.
//!
//! | file | holds |
//! |---|---|
//! | `mod` | the thread, the connections and their limits |
//! | `crowd` | what connections above the limit get |
//! | `guard` | the checks of a request's head |
//! | `access` | tokens and logins |
//! | `query` | the parameters of an address |
//! | `routes` | the addresses, and what each answers |
//! | `events` | what is sent each second |
//! | `fuzz` | what must hold for any request |
//!
//! What may take long, a walk or a list of keys, runs on another thread, so that the events go on.

mod access;
mod crowd;
mod events;
#[doc(hidden)]
pub mod fuzz;
mod guard;
mod query;
mod routes;

use crate::observed::Observed;
use crate::observer::{Observer, Seen};
use access::Gate;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, oneshot};

/// Connections at the same time. Further ones get a `503`.
const MOST_CONNECTIONS: usize = 64;

/// Pages that get events at the same time.
const MOST_STREAMS: usize = 16;

/// Bytes of a request's body.
const MOST_BODY: usize = 64 << 10;

/// Bytes of a request's head.
const MOST_HEAD: usize = 16 << 10;

/// How long a head, or a body, may take to come; also how long a connection may rest.
const PATIENCE: Duration = Duration::from_secs(15);

/// Threads for what takes long.
const THREADS_APART: usize = 2;

/// How long a new try waits if the system gives no connection.
const PAUSE: Duration = Duration::from_millis(100);

/// How a page behaves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Whether there is a token, which the program prints.
    pub has_token: bool,
    /// What each thread of the page calls when it ends.
    pub on_thread_stop: Option<fn()>,
}

/// What the requests share.
pub(crate) struct Shared {
    /// Not there while the program starts.
    observed: OnceLock<Arc<dyn Observed>>,
    seen: Arc<Seen>,
    gate: Gate,
    streams: Arc<Semaphore>,
    address: SocketAddr,
}

/// A page that is served. Dropping it ends that.
pub struct Page {
    shared: Arc<Shared>,
    observer: Mutex<Option<Observer>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Page {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "page on {}", self.shared.address)
    }
}

impl Page {
    /// Listens at an address, and answers: until [`show`](Self::show) that the program starts.
    ///
    /// # Errors
    ///
    /// The address is taken, or the system gives no thread.
    pub fn bind(address: SocketAddr, settings: Settings) -> io::Result<Self> {
        let mut builder = Builder::new_current_thread();
        builder.enable_all().max_blocking_threads(THREADS_APART);
        if let Some(stop) = settings.on_thread_stop {
            builder.on_thread_stop(stop);
        }
        let runtime = builder.build()?;
        let listener = runtime.block_on(TcpListener::bind(address))?;
        let shared = Arc::new(Shared {
            observed: OnceLock::new(),
            seen: Arc::new(Seen::new()),
            gate: Gate::new(settings.has_token),
            streams: Arc::new(Semaphore::new(MOST_STREAMS)),
            address: listener.local_addr()?,
        });
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("page".to_owned())
            .spawn(move || serve(runtime, listener, served, stopped))?;
        Ok(Self {
            shared,
            observer: Mutex::new(None),
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// The token for what writes, if there is one.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        self.shared.gate.token()
    }

    /// Shows a program from now on, and looks at it once a second. A second call changes nothing.
    ///
    /// # Errors
    ///
    /// The system gives no thread.
    pub fn show(&self, observed: Arc<dyn Observed>) -> io::Result<()> {
        let mut observer = crate::observer::lock(&self.observer);
        if observer.is_none() {
            let seen = Arc::clone(&self.shared.seen);
            *observer = Some(Observer::start(Arc::clone(&observed), seen)?);
            // Only this sets it, under the lock.
            let _ = self.shared.observed.set(observed);
        }
        Ok(())
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        *crate::observer::lock(&self.observer) = None;
        // Fails if the thread has ended.
        let _ = self.stop.take().map(|stop| stop.send(()));
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}

/// Serves until it is stopped. Open connections are cut.
fn serve(
    runtime: Runtime,
    listener: TcpListener,
    shared: Arc<Shared>,
    stopped: oneshot::Receiver<()>,
) {
    runtime.block_on(async {
        tokio::select! {
            () = accept(&listener, &shared) => (),
            _ = stopped => (),
        }
    });
    // Not longer than a walk, which cannot be cut.
    runtime.shutdown_timeout(PATIENCE);
}

/// Accepts connections for ever.
async fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let refusals = Arc::new(Semaphore::new(crowd::MOST_REFUSALS));
    loop {
        let (socket, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%error, "the page cannot accept");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            // In a flood of connections some get no answer: to answer is work, too.
            if let Ok(refusal) = Arc::clone(&refusals).try_acquire_owned() {
                tokio::spawn(async move {
                    crowd::refuse(socket).await;
                    drop(refusal);
                });
            }
            continue;
        };
        // Answers are small, and come whole.
        let _ = socket.set_nodelay(true);
        let router = routes::router(Arc::clone(shared), peer.ip());
        tokio::spawn(async move {
            let served = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(PATIENCE)
                .max_buf_size(MOST_HEAD)
                .serve_connection(TokioIo::new(socket), TowerToHyperService::new(router));
            if let Err(error) = served.await {
                tracing::debug!(%error, "a connection of the page ended");
            }
            drop(place);
        });
    }
}
