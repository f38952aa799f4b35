//! The server: listeners, worker threads, and an orderly end.
//!
//! One thread [accepts](accept) connections and hands each socket to a worker. It is also the
//! [keeper](crate::keeper) of workers and clients. A worker is a thread with its own event loop, so
//! that serving a client takes no lock and wakes no other thread. Clients
//! [gather](crate::gather) on few workers. All workers share the keyspace.

mod accept;
mod shared;

use crate::clients::Admission;
use crate::commands;
use crate::connection::Served;
use crate::descriptors::{self, TooFew};
use crate::expirer;
use crate::gather::Peer;
use crate::group::{self, Group};
use crate::keeper::{self, TICK};
use crate::limits::{ChannelsOfUsers, Limits};
use crate::listen::{Listen, ListenError, Listeners, Listening};
use crate::memory;
use crate::notices;
use crate::persist::{self, Persistence};
use crate::service::Service;
use crate::transport::{Incoming, Session, Stream};
use crate::users::{FileError, User, Users};
pub(crate) use shared::Shared;
#[cfg(any(test, fuzzing))]
pub(crate) use shared::shared;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, mpsc as std_mpsc};
use std::thread;
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::runtime::{self, Runtime};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tremula_store::Store;
use tremula_sync::counting_allocator::pass_on;

/// How long a stopping server waits for clients that do not read their replies. Process managers
/// commonly wait ten seconds before they kill.
pub const DRAIN_TIME: Duration = Duration::from_secs(5);

/// The id of no client.
pub(crate) const NO_CLIENT: u64 = 0;

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen.
    pub listen: Listen,
    /// Worker threads, at least one.
    pub threads: usize,
    /// Whether clients from other machines are refused.
    pub protected_mode: bool,
    /// The limits of one client.
    pub limits: Limits,
    /// The file of users, which is read now and can be read and written again; else `None`.
    pub acl_file: Option<PathBuf>,
    /// The file whose first line is the default user's password; else `None`.
    pub password_file: Option<PathBuf>,
    /// The directory in which `ETS.TAB2FILE` and its kin may read and write files; else `None`.
    pub table_directory: Option<PathBuf>,
    /// The file of settings, which `CONFIG REWRITE` writes; else `None`.
    pub config_file: Option<PathBuf>,
    /// The directory that keeps the keys, whose log the store writes to; else `None`.
    pub persistence: Option<Arc<Persistence>>,
    /// The server's part in a group of nodes, if it is in one. Its store
    /// [follows](Store::recover_to_follow).
    pub group: Option<Arc<Group>>,
    /// The settings with which the server begins, for `CONFIG GET`: names of flags and values.
    pub settings: Vec<(String, String)>,
}

/// Why a server did not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The server cannot listen where it should.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A thread or its event loop could not be created.
    #[error("cannot start a worker: {0}")]
    Worker(#[source] io::Error),
    /// The system does not let the process open enough files.
    #[error(transparent)]
    Descriptors(#[from] TooFew),
    /// The file of users or of the password is not taken.
    #[error(transparent)]
    Users(#[from] FileError),
}

/// A server that listens, and serves clients once it [runs](Self::run).
pub struct Server {
    runtime: Runtime,
    listeners: Listeners,
    /// What the workers' clients come through. A worker ends when its sender is dropped and its
    /// clients have left.
    workers: Vec<Arrivals>,
    finished: std_mpsc::Receiver<()>,
    shared: Arc<Shared>,
    /// The manager of services, which hears what the server does.
    service: Arc<Service>,
}

/// The way to a worker.
type Arrivals = mpsc::UnboundedSender<Arrival>;

/// A client on its way to a worker.
pub(crate) enum Arrival {
    New(Socket),
    /// From another worker.
    Moved(Box<Served>),
}

/// A new client.
pub(crate) struct Socket {
    incoming: Incoming,
    /// Its part in TLS, which has not begun; `None` without encryption.
    session: Option<Box<Session>>,
    /// Whose it is, if that is known.
    user: Option<Arc<User>>,
    admission: Admission,
}

impl Socket {
    /// A client in this process, which has proved whose it is.
    pub(crate) fn of_user(incoming: Incoming, user: Arc<User>, admission: Admission) -> Self {
        Self {
            incoming,
            session: None,
            user: Some(user),
            admission,
        }
    }
}

impl Server {
    /// Listens at the configured places and starts the workers. If the system lets the process
    /// open too few files for [`Limits::max_clients`], it raises the soft limit, or else logs a
    /// warning and takes fewer clients.
    ///
    /// # Errors
    ///
    /// [`StartError`] if a place to listen at is not available, if a file is wrong, or if there are
    /// no resources for the threads or for a single client.
    pub fn bind(mut config: Config, store: Arc<Store>) -> Result<Self, StartError> {
        let threads = config.threads.max(1);
        descriptors::fit(&mut config.limits, threads)?;
        let users = users(&config)?;
        let runtime = event_loop()?;
        let listen = Listeners::bind(&config.listen);
        let (listeners, listening, certificates) = runtime.block_on(listen)?;
        let prepared: Vec<_> = (0..threads)
            .map(|_| Worker::new())
            .collect::<Result<_, _>>()?;
        let peers = prepared.iter().map(Worker::peer).collect();
        let opened = (listening, certificates);
        let shared = Arc::new(Shared::new(config, store, users, opened, peers));
        notices::begin(&shared);
        let (finish, finished) = std_mpsc::channel();
        let start = |(number, worker): (_, Worker)| worker.start(number, &shared, finish.clone());
        let workers = prepared.into_iter().enumerate().map(start);
        let workers = workers.collect::<Result<_, _>>()?;
        Ok(Self {
            runtime,
            listeners,
            workers,
            finished,
            shared,
            service: Arc::default(),
        })
    }

    /// Says from now on to the manager of services when the settings are read again, and, if it
    /// asks for that, that every thread turns.
    pub(crate) fn report_to(&mut self, service: Arc<Service>) {
        self.service = Arc::clone(&service);
        let Some(time) = service.sign_every() else {
            return;
        };
        let shared = Arc::clone(&self.shared);
        self.runtime.spawn(async move {
            let mut ticks = tokio::time::interval(time);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                if shared.threads.all_turn() {
                    service.alive();
                }
            }
        });
    }

    /// Where the server listens.
    #[must_use]
    pub fn listening(&self) -> &Listening {
        &self.shared.listening
    }

    pub(crate) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Serves until `stop` is ready. Then accepts no more clients, answers what has arrived, and
    /// returns once every client has its replies, or after [`DRAIN_TIME`].
    pub fn run(self, stop: impl Future<Output = ()>) {
        let Self {
            runtime,
            listeners,
            workers,
            finished,
            shared,
            service: _,
        } = self;
        let count = workers.len();
        runtime.block_on(async {
            tokio::select! {
                () = accept::accept(&listeners, &workers, &shared) => (),
                () = keeper::keep(&shared) => (),
                () = expirer::keep(&shared) => (),
                () = memory::keep_tidy(&shared, true) => (),
                () = persist::keep(&shared) => (),
                () = group::keep(&shared) => (),
                () = group::announce(&shared) => (),
                () = stop => (),
                () = shared.stop.notified() => (),
            }
        });
        drop(listeners);
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

    /// Keeps the signals that tell other servers to read their configuration or their logs again
    /// from ending the process. SIGHUP calls `on_hangup`, and reads the files of users and of TLS
    /// again; what is wrong stays as it was. SIGUSR1 and SIGUSR2 are only logged.
    ///
    /// # Errors
    ///
    /// The system does not let the process catch the signals.
    pub fn survive_signals(&self, on_hangup: impl Fn() + Send + 'static) -> io::Result<()> {
        use tokio::signal::unix::{SignalKind, signal};
        let _guard = self.runtime.enter();
        let mut hangups = signal(SignalKind::hangup())?;
        let shared = Arc::clone(&self.shared);
        let service = Arc::clone(&self.service);
        self.runtime.spawn(async move {
            while hangups.recv().await.is_some() {
                service.reloading("reading the settings again");
                on_hangup();
                read_again(&shared);
                service.ready(&format!("serving on {}", shared.listening));
            }
        });
        for (name, kind) in [
            ("SIGUSR1", SignalKind::user_defined1()),
            ("SIGUSR2", SignalKind::user_defined2()),
        ] {
            let mut signals = signal(kind)?;
            self.runtime.spawn(async move {
                while signals.recv().await.is_some() {
                    tracing::warn!("{name}: it means nothing here; the server goes on");
                }
            });
        }
        Ok(())
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

/// Reads the files of users and of TLS again, and says so in the log.
fn read_again(shared: &Shared) {
    if shared.group.is_some() {
        // The users are in the log.
    } else if shared.users.have_files() {
        match commands::reload(shared, NO_CLIENT) {
            Ok(_) => tracing::warn!("SIGHUP: the users are read again"),
            Err(error) => tracing::warn!("SIGHUP: the users stay: {error}"),
        }
    }
    if let Some(certificates) = &shared.certificates {
        match certificates.reload() {
            Ok(()) => tracing::warn!("SIGHUP: the certificates are read again"),
            Err(error) => tracing::warn!("SIGHUP: the certificates stay: {error}"),
        }
    }
    if !shared.users.have_files() && shared.certificates.is_none() {
        tracing::warn!(
            "SIGHUP: there is no file of users, of a password or of a certificate to read again"
        );
    }
}

/// The users at the start.
fn users(config: &Config) -> Result<Users, FileError> {
    let limits = &config.limits.users;
    let mut users = Users::new(limits.max_users, limits.max_acl_log);
    users.set_opens_channels(limits.acl_pubsub_default == ChannelsOfUsers::AllChannels);
    users.use_files(config.acl_file.clone(), config.password_file.clone())?;
    Ok(users)
}

fn event_loop() -> Result<Runtime, StartError> {
    runtime::Builder::new_current_thread()
        .enable_all()
        // The thread apart.
        .max_blocking_threads(1)
        // It ends when it is idle. What it has not counted yet would be missing for ever.
        .on_thread_stop(pass_on)
        .build()
        .map_err(StartError::Worker)
}

/// A worker that has not started.
struct Worker {
    runtime: Runtime,
    arrivals: Arrivals,
    incoming: mpsc::UnboundedReceiver<Arrival>,
}

impl Worker {
    fn new() -> Result<Self, StartError> {
        let (arrivals, incoming) = mpsc::unbounded_channel();
        Ok(Self {
            runtime: event_loop()?,
            arrivals,
            incoming,
        })
    }

    fn peer(&self) -> Peer {
        Peer {
            arrivals: self.arrivals.downgrade(),
            handle: self.runtime.handle().clone(),
        }
    }

    fn start(
        self,
        number: usize,
        shared: &Arc<Shared>,
        finish: std_mpsc::Sender<()>,
    ) -> Result<Arrivals, StartError> {
        let work = work(self.incoming, Arc::clone(shared), number);
        let runtime = self.runtime;
        thread::Builder::new()
            .name(format!("tremula-{number}"))
            .spawn(move || {
                runtime.block_on(work);
                // Sending fails if the drain time is over and no thread waits.
                let _ = finish.send(());
            })
            .map_err(StartError::Worker)?;
        Ok(self.arrivals)
    }
}

/// Serves the incoming clients, each in its own task, until no more come and all have left.
async fn work(mut incoming: mpsc::UnboundedReceiver<Arrival>, shared: Arc<Shared>, number: usize) {
    let tidy = Arc::clone(&shared);
    tokio::spawn(async move { memory::keep_tidy(&tidy, false).await });
    let mut clients = JoinSet::new();
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            arrival = incoming.recv() => match arrival {
                Some(arrival) => {
                    let departure = Departure(Arc::clone(&shared), number);
                    clients.spawn(serve(arrival, departure));
                }
                None => break,
            },
            Some(left) = clients.join_next() => report(left),
            _ = ticks.tick() => shared.threads.pulse(number).beat(shared.started),
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
struct Departure(Arc<Shared>, usize);

impl Drop for Departure {
    fn drop(&mut self) {
        self.0.threads.pulse(self.1).clients.fetch_sub(1, Relaxed);
    }
}

/// Serves a client until it leaves the worker.
async fn serve(arrival: Arrival, departure: Departure) {
    let Departure(shared, worker) = &departure;
    let mut client = match arrival {
        Arrival::Moved(client) => client,
        Arrival::New(socket) => match open(socket, shared) {
            Ok(client) => client,
            // The client may be gone already.
            Err(_) => return,
        },
    };
    while let Some(to) = client.serve(*worker).await {
        match shared.threads.move_to(to, client) {
            Ok(()) => return,
            Err(stays) => client = stays,
        }
    }
}

fn open(socket: Socket, shared: &Arc<Shared>) -> io::Result<Box<Served>> {
    let silence = Duration::from_secs(shared.live.tcp_keepalive.get());
    let opened = Arc::new(socket.incoming.open(silence)?);
    let stream = match socket.session {
        None => Stream::plain(opened),
        Some(session) => Stream::encrypted(opened, session),
    };
    let mut served = Served::new(shared, stream, socket.admission)?;
    if let Some(user) = socket.user {
        served.become_user(user);
    }
    Ok(served)
}

#[cfg(test)]
mod tests {
    mod searches;
    mod turns;
    mod visitor;

    use super::*;
    use crate::gather::Judge;
    use crate::keeper::{STUCK, Watched};
    use crate::watch::Event;
    use tokio::net::{TcpListener, TcpStream};
    use tremula_store::{Engine, StoreConfig};

    /// How long the test may take on a busy machine.
    const PATIENCE: Duration = Duration::from_secs(120);

    /// What the threads of a server share, and the way to each of its workers.
    fn shared(limits: Limits, workers: &[Worker]) -> Arc<Shared> {
        let peers = workers.iter().map(Worker::peer).collect();
        super::shared::shared(limits, &StoreConfig::new(Engine::CaTree), peers)
    }

    /// A worker on the thread of the test.
    fn worker_here(limits: Limits) -> (Arc<Shared>, Arrivals, tokio::task::JoinHandle<()>) {
        let (arrivals, incoming) = mpsc::unbounded_channel();
        let worker = Worker {
            runtime: event_loop().expect("an event loop"),
            arrivals: arrivals.clone(),
            incoming,
        };
        let shared = shared(limits, std::slice::from_ref(&worker));
        let Worker {
            runtime, incoming, ..
        } = worker;
        // It is not used.
        runtime.shutdown_background();
        let worker = tokio::spawn(work(incoming, Arc::clone(&shared), 0));
        (shared, arrivals, worker)
    }

    /// Blocks a worker's thread, as a command that does not end would. The watchdog names the
    /// thread once, new clients go to the other worker, and come back when the thread turns again.
    /// `LATENCY` has the time for which it stood.
    #[test]
    fn a_thread_that_does_not_turn_is_named_and_gets_no_new_clients() {
        let workers: Vec<_> = (0..2).map(|_| Worker::new().expect("a worker")).collect();
        let shared = shared(Limits::default(), &workers);
        shared.live.latency_threshold.set(1);
        let (finish, finished) = std_mpsc::channel();
        let workers: Vec<_> = (0..)
            .zip(workers)
            .map(|(number, worker)| worker.start(number, &shared, finish.clone()))
            .collect::<Result<_, _>>()
            .expect("threads");
        let mut watched = Watched::new(0, &shared.threads);
        let (release, released) = std_mpsc::channel::<()>();
        shared.threads.handle(0).spawn(async move {
            // Fails if the test has ended.
            let _ = released.recv();
        });
        // Else the other worker would be the next one anyway.
        shared.threads.pulse(1).clients.fetch_add(100, Relaxed);
        let mut line = None;
        let deadline = Instant::now() + PATIENCE;
        while line.is_none() {
            assert!(Instant::now() < deadline, "the watchdog says nothing");
            thread::sleep(Duration::from_millis(10));
            line = watched.look(&shared);
        }
        let line = line.unwrap_or_default();
        assert!(
            line.starts_with("thread tremula-0 has not turned for "),
            "{line}"
        );
        assert!(line.contains("no command runs on it"), "{line}");
        let stood = || {
            let history = shared.latencies.history(Event::Stuck);
            history.map_or(Duration::ZERO, |history| {
                Duration::from_millis(history.longest)
            })
        };
        let before = stood();
        assert!(before >= STUCK);
        let named = Instant::now();
        thread::sleep(Duration::from_millis(20));
        assert_eq!(watched.look(&shared), None, "once");
        assert_eq!(shared.threads.next(), 0, "clients gather there");
        shared.threads.look(&mut Judge::default(), 0);
        assert_eq!(shared.threads.next(), 1);
        let until_release = named.elapsed();
        release.send(()).expect("the thread waits for it");
        let mut line = None;
        while line.is_none() {
            assert!(
                Instant::now() < deadline,
                "the thread is never said to turn"
            );
            thread::sleep(Duration::from_millis(10));
            line = watched.look(&shared);
        }
        assert_eq!(line.as_deref(), Some("thread tremula-0 turns again"));
        assert_eq!(shared.threads.next(), 0);
        // Beats are in whole milliseconds.
        assert!(stood() + Duration::from_millis(2) >= before + until_release);
        drop(workers);
        for _ in 0..2 {
            finished.recv_timeout(PATIENCE).expect("the workers end");
        }
    }
}
