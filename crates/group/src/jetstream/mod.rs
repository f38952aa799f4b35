//! The shared log as a stream of NATS JetStream.
//!
//! | file | holds |
//! |---|---|
//! | `mod` | the thread that talks to NATS |
//! | `settings` | where the servers are, and names |
//! | `connection` | connecting, and saying why that fails |
//! | `appends` | messages on their way, and what their answers mean |
//! | `reading` | reading the stream from a message on |
//! | `end` | the stream's last message |
//! | `keeper` | snapshots in the object store, by a thread and a connection of their own |
//! | `presence` | which nodes there are |
//!
//! One thread with an event loop of its own does all but the `keeper`. A message is published with
//! the id and the last sequence that the stream must have, so NATS stores it once, and there or
//! nowhere.

mod appends;
mod connection;
mod end;
mod keeper;
mod presence;
mod reading;
mod settings;

use crate::action::Attempt;
use crate::clock::boot_time;
use crate::config::Config;
use crate::host::{Engine, Host, State};
use crate::position::{MessageId, Point, Position};
use async_nats::ConnectOptions;
use async_nats::jetstream::{self, Context, stream};
use connection::{Failing, connect, options};
pub use keeper::{Keeper, Packing, publish_snapshot};
pub use settings::{Settings, SettingsError};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

/// How long NATS may take to answer a request.
const ANSWER: Duration = Duration::from_secs(2);

/// How long NATS may take to answer an append; the node tries again before that.
const ACKNOWLEDGEMENT: Duration = Duration::from_secs(5);

/// The pause between two tries to connect, or to find the stream.
const AGAIN: Duration = Duration::from_millis(500);

/// For how long NATS knows the ids of messages.
const IDS: Duration = Duration::from_secs(120);

/// What the thread is to do.
enum Command {
    Append {
        attempt: Attempt,
        expected: Position,
        id: MessageId,
        bytes: Arc<[u8]>,
    },
    Read {
        reading: u64,
        from: Position,
    },
    StopReading,
    Ask {
        question: u64,
    },
    /// Looks at the deadline again.
    Wake,
    Stop,
}

/// A stream of NATS JetStream as the shared log of a [`Host`].
pub struct JetStream {
    commands: UnboundedSender<Command>,
    thread: Option<thread::JoinHandle<()>>,
}

/// What a node is started with, once the stream is there.
struct Beginning {
    config: Config,
    address: String,
    incarnation: u64,
    point: Option<Point>,
    state: Arc<dyn State>,
}

/// The engine as the host has it.
struct Sender(UnboundedSender<Command>);

impl Sender {
    fn send(&self, command: Command) {
        // A thread that has ended carries out nothing.
        let _ = self.0.send(command);
    }
}

impl Engine for Sender {
    fn append(&self, attempt: Attempt, expected: Position, id: MessageId, bytes: Arc<[u8]>) {
        self.send(Command::Append {
            attempt,
            expected,
            id,
            bytes,
        });
    }

    fn read(&self, reading: u64, from: Position) {
        self.send(Command::Read { reading, from });
    }

    fn stop_reading(&self) {
        self.send(Command::StopReading);
    }

    fn ask(&self, question: u64) {
        self.send(Command::Ask { question });
    }

    fn wake(&self) {
        self.send(Command::Wake);
    }
}

impl JetStream {
    /// Connects to NATS in the background, makes the stream if it is missing, and starts the
    /// host's node. Until NATS answers, the node catches up.
    ///
    /// # Errors
    ///
    /// The thread cannot be started, or a file of the settings cannot be read.
    pub fn start(
        host: &Arc<Host>,
        settings: Settings,
        config: Config,
        (address, incarnation): (String, u64),
        point: Option<Point>,
        state: Arc<dyn State>,
    ) -> io::Result<Self> {
        let beginning = Beginning {
            config,
            address,
            incarnation,
            point,
            state,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let options = runtime.block_on(options(&settings))?;
        let (commands, received) = unbounded_channel();
        let sender = commands.clone();
        let host = Arc::clone(host);
        let presence = (beginning.address.clone(), Arc::clone(&beginning.state));
        let run = move || {
            runtime.block_on(async {
                let mut received = received;
                let begun = tokio::select! {
                    begun = begin(&host, &settings, options, beginning, sender) => begun,
                    () = stopped(&mut received) => return,
                };
                match begun {
                    Ok(context) => {
                        let presence = presence::keep(context.client(), &settings, &host, presence);
                        tokio::select! {
                            () = work(&host, &settings, context, received) => (),
                            () = presence => (),
                        }
                    }
                    Err(why) => tracing::error!("the node does not start: {why}"),
                }
            });
        };
        let thread = thread::Builder::new().name("tremula-group".to_owned());
        Ok(Self {
            commands,
            thread: Some(thread.spawn(run)?),
        })
    }

    /// Ends the connection, and waits for the thread.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.commands.send(Command::Stop);
        if let Some(thread) = self.thread.take() {
            // A panic has been reported.
            let _ = thread.join();
        }
    }
}

impl Drop for JetStream {
    fn drop(&mut self) {
        self.end();
    }
}

async fn stopped(commands: &mut UnboundedReceiver<Command>) {
    while let Some(command) = commands.recv().await {
        if let Command::Stop = command {
            return;
        }
    }
}

/// Connects, finds or makes the stream, and starts the node.
async fn begin(
    host: &Arc<Host>,
    settings: &Settings,
    options: ConnectOptions,
    beginning: Beginning,
    commands: UnboundedSender<Command>,
) -> Result<Context, String> {
    let context = connect(settings, options).await;
    let mut failing = Failing::default();
    while let Err(why) = stream(&context, settings).await {
        if failing.is_said() {
            tracing::warn!(stream = settings.stream(), "NATS has no stream yet: {why}");
        }
        tokio::time::sleep(AGAIN).await;
    }
    let Beginning {
        config,
        address,
        incarnation,
        point,
        state,
    } = beginning;
    let engine = Arc::new(Sender(commands));
    host.start(config, (&address, incarnation), point, state, engine)?;
    Ok(context)
}

/// What the stream is, if it is made.
fn stream_config(settings: &Settings) -> stream::Config {
    stream::Config {
        name: settings.stream(),
        subjects: vec![settings.subject()],
        storage: stream::StorageType::File,
        num_replicas: settings.replicas,
        duplicate_window: IDS,
        // No message goes but from the beginning.
        deny_delete: true,
        ..stream::Config::default()
    }
}

/// Finds the stream, or makes it.
async fn stream(context: &Context, settings: &Settings) -> Result<(), String> {
    let find = context.get_or_create_stream(stream_config(settings));
    match tokio::time::timeout(ACKNOWLEDGEMENT, find).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("no answer".to_owned()),
    }
}

async fn work(
    host: &Arc<Host>,
    settings: &Settings,
    context: Context,
    mut commands: UnboundedReceiver<Command>,
) {
    let stream = settings.stream();
    let seen = Arc::new(AtomicU64::new(0));
    let mut appends = appends::Appends::new(host, &context, settings, &seen);
    let end = Arc::new(end::End::new(host, &context, &stream, &seen));
    let mut reader: Option<JoinHandle<()>> = None;
    let mut stop_reading = move |next: Option<JoinHandle<()>>| {
        if let Some(reader) = std::mem::replace(&mut reader, next) {
            reader.abort();
        }
    };
    while !host.has_ended() {
        let deadline = host.deadline();
        let due = async {
            match deadline {
                Some(at) => tokio::time::sleep(at.since(boot_time())).await,
                None => std::future::pending().await,
            }
        };
        let mut command = tokio::select! {
            command = commands.recv() => command,
            () = due => {
                host.tick();
                continue;
            }
        };
        while let Some(next) = command {
            match next {
                Command::Append {
                    attempt,
                    expected,
                    id,
                    bytes,
                } => appends.send(attempt, expected, id, bytes).await,
                Command::Read { reading, from } => {
                    let read = reading::read(
                        Arc::clone(host),
                        context.clone(),
                        stream.clone(),
                        Arc::clone(&seen),
                        (reading, from),
                    );
                    stop_reading(Some(tokio::spawn(read)));
                }
                Command::StopReading => stop_reading(None),
                Command::Ask { question } => {
                    let end = Arc::clone(&end);
                    tokio::spawn(async move { end.answer(question).await });
                }
                Command::Wake => {}
                Command::Stop => {
                    stop_reading(None);
                    return;
                }
            }
            command = commands.try_recv().ok();
        }
    }
    stop_reading(None);
}

/// The text of an error of JetStream.
fn described(error: &dyn std::error::Error) -> String {
    let own = error.to_string();
    match error.source() {
        Some(source) => format!("{own}: {source}"),
        None => own,
    }
}

/// An error that the server has sent, if it is one.
fn of_server<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a jetstream::Error> {
    error.source()?.downcast_ref::<jetstream::Error>()
}
