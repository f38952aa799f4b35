//! The server: a listener, worker threads, and an orderly end.
//!
//! One thread accepts connections and hands each socket to the worker with the fewest clients. A
//! worker is a thread with its own event loop. A client stays with its worker, so that serving it
//! takes no lock and wakes no other thread. All workers share the keyspace.

use crate::clients::{Admission, Clients};
use crate::connection;
use crate::limits::Limits;
use socket2::{SockRef, TcpKeepalive};
use std::future::Future;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, mpsc as std_mpsc};
use std::thread;
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{self, Runtime};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tremula_store::Store;

/// How long a stopping server waits for clients that do not read their replies. Process managers
/// commonly wait ten seconds before they kill.
pub const DRAIN_TIME: Duration = Duration::from_secs(5);

/// How long a connection is silent before the system checks whether the client is still there.
/// Redis's `tcp-keepalive`. It ends the connections of clients that disappeared without a word, or
/// that wait for a message and closed behind more input than the system buffers.
pub(crate) const KEEPALIVE: Duration = Duration::from_secs(300);

/// How long the server pauses accepting after the system had no socket left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address to listen on; port 0 picks a free one.
    pub address: SocketAddr,
    /// Worker threads, at least one.
    pub threads: usize,
    /// Whether clients from other machines are refused.
    pub protected_mode: bool,
    /// The limits of one client.
    pub limits: Limits,
    /// The directory in which `ETS.TAB2FILE` and its kin may read and write files; else `None`.
    pub table_directory: Option<PathBuf>,
}

/// The data that all threads of a server share.
pub(crate) struct Shared {
    pub(crate) store: Arc<Store>,
    pub(crate) limits: Limits,
    pub(crate) clients: Arc<Clients>,
    pub(crate) stats: Stats,
    pub(crate) started: Instant,
    pub(crate) address: SocketAddr,
    pub(crate) threads: usize,
    pub(crate) protected_mode: bool,
    pub(crate) table_directory: Option<PathBuf>,
}

/// Counters for `INFO`.
#[derive(Default)]
pub(crate) struct Stats {
    pub(crate) connections: AtomicU64,
    pub(crate) rejected: AtomicU64,
    pub(crate) commands: AtomicU64,
    /// Turns that ended because their time was over.
    pub(crate) turns_spent: AtomicU64,
}

/// Why a server did not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The server cannot listen on the address.
    #[error("cannot listen on {address}: {source}; choose another with --bind and --port")]
    Listen {
        /// The requested address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// A thread or its event loop could not be created.
    #[error("cannot start a worker: {0}")]
    Worker(#[source] io::Error),
}

/// A server that listens, and serves clients once it [runs](Self::run).
pub struct Server {
    runtime: Runtime,
    listener: TcpListener,
    workers: Vec<Worker>,
    finished: std_mpsc::Receiver<()>,
    shared: Arc<Shared>,
}

/// A thread that serves clients until its sender is dropped and they have left.
struct Worker {
    sockets: mpsc::UnboundedSender<Socket>,
    load: Arc<AtomicUsize>,
}

/// A client on its way to its worker.
struct Socket {
    stream: std::net::TcpStream,
    admission: Admission,
}

impl Server {
    /// Listens on the configured address and starts the workers.
    ///
    /// # Errors
    ///
    /// [`StartError`] if the address is not available, or if there are no resources for the
    /// threads.
    pub fn bind(config: Config, store: Arc<Store>) -> Result<Self, StartError> {
        let runtime = event_loop()?;
        let listen = async {
            let listener = TcpListener::bind(config.address).await?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let (listener, address) =
            runtime
                .block_on(listen)
                .map_err(|source| StartError::Listen {
                    address: config.address,
                    source,
                })?;
        let threads = config.threads.max(1);
        let shared = Arc::new(Shared {
            store,
            limits: config.limits,
            clients: Arc::default(),
            stats: Stats::default(),
            started: Instant::now(),
            address,
            threads,
            protected_mode: config.protected_mode,
            table_directory: config.table_directory,
        });
        let (finish, finished) = std_mpsc::channel();
        let workers = (0..threads)
            .map(|number| Worker::start(number, &shared, finish.clone()))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            runtime,
            listener,
            workers,
            finished,
            shared,
        })
    }

    /// The address that the server listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// Serves until `stop` is ready. Then accepts no more clients, answers what has arrived, and
    /// returns once every client has its replies, or after [`DRAIN_TIME`].
    pub fn run(self, stop: impl Future<Output = ()>) {
        let Self {
            runtime,
            listener,
            workers,
            finished,
            shared,
        } = self;
        let count = workers.len();
        runtime.block_on(async {
            tokio::select! {
                () = accept(&listener, &workers, &shared) => (),
                () = stop => (),
            }
        });
        drop(listener);
        drop(workers);
        shared.clients.close();
        let deadline = Instant::now() + DRAIN_TIME;
        for _ in 0..count {
            let left = deadline.saturating_duration_since(Instant::now());
            if finished.recv_timeout(left).is_err() {
                tracing::warn!("clients did not take their replies; left without them");
                return;
            }
        }
    }

    /// A future that is ready when the process is asked to stop, by SIGTERM or by SIGINT (Ctrl-C).
    /// The signals are caught from the moment of the call.
    ///
    /// # Errors
    ///
    /// The system does not let the process catch the signals.
    pub fn stop_signal(&self) -> io::Result<impl Future<Output = ()> + use<>> {
        use tokio::signal::unix::{SignalKind, signal};
        let _guard = self.runtime.enter();
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        Ok(async move {
            tokio::select! {
                _ = interrupt.recv() => (),
                _ = terminate.recv() => (),
            }
        })
    }
}

fn event_loop() -> Result<Runtime, StartError> {
    runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(StartError::Worker)
}

/// Accepts clients for ever.
async fn accept(listener: &TcpListener, workers: &[Worker], shared: &Shared) {
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a client");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        shared.stats.connections.fetch_add(1, Relaxed);
        let admission = shared.clients.admit(shared.limits.max_clients);
        let refusal = if shared.protected_mode && !is_local(peer.ip()) {
            Some(PROTECTED)
        } else if admission.is_none() {
            Some("-ERR max number of clients reached\r\n")
        } else {
            None
        };
        if let Some(text) = refusal {
            shared.stats.rejected.fetch_add(1, Relaxed);
            refuse(stream, text);
        } else if let (Some(admission), Ok(stream)) = (admission, stream.into_std()) {
            let least = workers
                .iter()
                .min_by_key(|worker| worker.load.load(Relaxed));
            if let Some(worker) = least {
                worker.load.fetch_add(1, Relaxed);
                // Cannot fail: a worker ends only after its sender is dropped.
                let _ = worker.sockets.send(Socket { stream, admission });
            }
        }
    }
}

/// The refusal of other machines' clients in protected mode: Redis's code, Tremula's remedies.
const PROTECTED: &str = "-DENIED Tremula is running in protected mode because it has no passwords \
    yet. In this mode connections are only accepted from the loopback interface. If you want to \
    connect from other machines, and nobody else can reach this one, restart the server with \
    '--protected-mode no'.\r\n";

fn is_local(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Sends a client the reason why it is not served, and hangs up. The text fits into the empty
/// buffer of a new socket, so this does not wait.
fn refuse(stream: TcpStream, text: &str) {
    if let Ok(mut stream) = stream.into_std() {
        // The client may be gone already.
        let _ = stream.write_all(text.as_bytes());
    }
}

impl Worker {
    fn start(
        number: usize,
        shared: &Arc<Shared>,
        finish: std_mpsc::Sender<()>,
    ) -> Result<Self, StartError> {
        let runtime = event_loop()?;
        let (sockets, incoming) = mpsc::unbounded_channel();
        let load = Arc::new(AtomicUsize::new(0));
        let work = work(incoming, Arc::clone(shared), Arc::clone(&load));
        thread::Builder::new()
            .name(format!("tremula-{number}"))
            .spawn(move || {
                runtime.block_on(work);
                // Sending fails if the drain time is over and no thread waits.
                let _ = finish.send(());
            })
            .map_err(StartError::Worker)?;
        Ok(Self { sockets, load })
    }
}

/// Serves the incoming clients, each in its own task, until no more come and all have left.
async fn work(
    mut incoming: mpsc::UnboundedReceiver<Socket>,
    shared: Arc<Shared>,
    load: Arc<AtomicUsize>,
) {
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            socket = incoming.recv() => match socket {
                Some(socket) => clients.spawn(serve(socket, Arc::clone(&shared), Departure(Arc::clone(&load)))),
                None => break,
            },
            Some(left) = clients.join_next() => {
                report(left);
                continue;
            }
        };
    }
    while let Some(left) = clients.join_next().await {
        report(left);
    }
}

/// Logs a panic, which ends one connection and is a fault of the server.
fn report(left: Result<(), tokio::task::JoinError>) {
    if let Err(error) = left {
        tracing::error!(%error, "a connection was lost to a fault of the server");
    }
}

/// Subtracts a client from its worker's load when dropped, also by a panic.
struct Departure(Arc<AtomicUsize>);

impl Drop for Departure {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Removes a client from the list when dropped, also by a panic.
struct Listed<'a>(&'a Clients, u64);

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.0.disconnect(self.1);
    }
}

async fn serve(socket: Socket, shared: Arc<Shared>, _departure: Departure) {
    let Socket { stream, admission } = socket;
    let stream = TcpStream::from_std(stream).and_then(|stream| {
        // Replies are sent whole, so waiting for more data would only delay them.
        stream.set_nodelay(true)?;
        SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE))?;
        Ok(stream)
    });
    // The client may be gone already.
    let Ok(client) = stream.and_then(|stream| shared.clients.connect(stream)) else {
        return;
    };
    let _listed = Listed(&shared.clients, client.id);
    connection::serve(&shared, &client).await;
    drop(admission);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{Time, TurnLimits};
    use std::io::ErrorKind;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tremula_store::{Engine, StoreConfig};

    /// How long the test may take on a busy machine.
    const PATIENCE: Duration = Duration::from_secs(120);

    fn shared(limits: Limits) -> Shared {
        Shared {
            store: Arc::new(Store::new(&StoreConfig::new(Engine::CaTree)).expect("a fit engine")),
            limits,
            clients: Arc::default(),
            stats: Stats::default(),
            started: Instant::now(),
            address: ([127, 0, 0, 1], 0).into(),
            threads: 1,
            protected_mode: true,
            table_directory: None,
        }
    }

    /// A client on the thread of the worker that serves it.
    struct Visitor(TcpStream);

    impl Visitor {
        async fn come(
            sockets: &mpsc::UnboundedSender<Socket>,
            shared: &Arc<Shared>,
        ) -> io::Result<Self> {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
            let address = listener.local_addr()?;
            let (ours, theirs) = tokio::join!(TcpStream::connect(address), listener.accept());
            let admission = shared.clients.admit(2).expect("a place is free");
            let stream = theirs?.0.into_std()?;
            assert!(sockets.send(Socket { stream, admission }).is_ok());
            let ours = ours?;
            ours.set_nodelay(true)?;
            Ok(Self(ours))
        }

        async fn send(&mut self, command: &str) -> io::Result<()> {
            // At once, because a part that waits for an acknowledgement takes as long as a search.
            self.0.write_all(format!("{command}\r\n").as_bytes()).await
        }

        /// Reads a bulk string.
        async fn reply(&mut self) -> io::Result<String> {
            let mut length = String::new();
            while !length.ends_with("\r\n") {
                length.push(char::from(self.0.read_u8().await?));
            }
            let digits = length.strip_prefix('$').map(str::trim_end);
            let Some(Ok(bytes)) = digits.map(str::parse::<usize>) else {
                panic!("not a bulk string: {length}");
            };
            let mut text = vec![0; bytes + 2];
            self.0.read_exact(&mut text).await?;
            text.truncate(text.len() - 2);
            Ok(String::from_utf8(text).expect("text"))
        }

        /// Whether an unread reply has arrived.
        fn has_reply(&self) -> bool {
            let stream = socket2::SockRef::from(&self.0);
            match stream.peek(&mut [std::mem::MaybeUninit::uninit()]) {
                Ok(_) => true,
                Err(error) if error.kind() == ErrorKind::WouldBlock => false,
                Err(error) => panic!("the connection is lost: {error}"),
            }
        }
    }

    /// Each command that looks at a whole table lets other clients of its thread run in between:
    /// while it runs, another connection is answered, and its answer shows that the command is
    /// still running. Clients and worker share one thread, so the test does not depend on speed. It
    /// fails if a search runs to its end at once: then its reply is there before the other's.
    #[test]
    fn a_search_of_a_whole_table_does_not_hold_its_thread() {
        const ROWS: usize = 15_000;
        // As many as fit into a line.
        const ROWS_AT_ONCE: usize = 3000;
        let runtime = event_loop().expect("an event loop");
        let visit = async {
            let limits = Limits {
                turn: TurnLimits {
                    time: Time(Duration::ZERO),
                    ..TurnLimits::default()
                },
                ..Limits::default()
            };
            let shared = Arc::new(shared(limits));
            let (sockets, incoming) = mpsc::unbounded_channel();
            let worker = tokio::spawn(work(incoming, Arc::clone(&shared), Arc::default()));
            let mut searching = Visitor::come(&sockets, &shared).await?;
            let mut other = Visitor::come(&sockets, &shared).await?;
            let nothing = "\"[{{'$1','$2'},[{'<','$2','$1'}],['$_']}]\"";
            let all = "\"[{{'$1','$2'},[{is_integer,'$2'}],['true']}]\"";
            let replaced = "\"[{{'$1','$2'},[],[{{'$1','$2'}}]}]\"";
            for kind in ["set", "ordered_set"] {
                searching.send(&format!("ETS.NEW {kind} {kind}")).await?;
                assert_eq!(searching.reply().await?, kind);
                for first in (0..ROWS).step_by(ROWS_AT_ONCE) {
                    let rows = (first..first + ROWS_AT_ONCE).map(|key| format!("{{{key},{key}}}"));
                    let rows = rows.collect::<Vec<_>>().join(",");
                    searching
                        .send(&format!("ETS.INSERT {kind} [{rows}]"))
                        .await?;
                    assert_eq!(searching.reply().await?, "true");
                }
                let count = ROWS.to_string();
                let empty = "'$end_of_table'";
                for (command, arguments, expected) in [
                    ("select", nothing, Some("[]")),
                    ("select_reverse", nothing, Some("[]")),
                    ("select", &format!("{nothing} 5"), Some(empty)),
                    ("match", "\"{'$1',x}\"", Some("[]")),
                    ("match_object", "\"{'$1',x}\" 2", Some(empty)),
                    ("select_count", all, Some(&count)),
                    ("select_replace", replaced, Some(&count)),
                    ("tab2list", "", None),
                    ("match_delete", "\"{'_',x}\"", Some("true")),
                    ("select_delete", all, Some(&count)),
                ] {
                    searching
                        .send(&format!("ETS.{command} {kind} {arguments}"))
                        .await?;
                    let runs = format!("cmd=ets.{command} ");
                    loop {
                        other.send("CLIENT LIST").await?;
                        let list = other.reply().await?;
                        if list.contains(&runs) {
                            break;
                        }
                    }
                    let was_answered = searching.has_reply();
                    let reply = searching.reply().await?;
                    assert!(
                        !was_answered,
                        "{command} of a {kind} held its thread until its reply: {reply}"
                    );
                    match expected {
                        Some(expected) => assert_eq!(reply, expected, "{command}"),
                        None => assert_eq!(reply.matches('{').count(), ROWS),
                    }
                    // The next table of this name is another table.
                    searching.send("ETS.WHEREIS t").await?;
                    assert_eq!(searching.reply().await?, "undefined");
                }
            }
            drop((searching, other, sockets));
            worker.await.expect("the worker ends");
            Ok::<(), io::Error>(())
        };
        let visited = runtime.block_on(async { tokio::time::timeout(PATIENCE, visit).await });
        visited.expect("in time").expect("connections hold");
    }
}
