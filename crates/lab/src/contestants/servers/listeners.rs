//! Clients that listen to a channel, all on one thread of this program.

use super::client::encoded;
use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    runtime,
    sync::watch,
    task::JoinSet,
};

/// How many there are.
pub(super) const LISTENERS: usize = 100;

/// The channel, and what is sent to it.
pub(super) const CHANNEL: &str = "news";
pub(super) const MESSAGE: &str = "a message of thirty-two bytes...";

/// How long a server may take to send the last messages.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often this looks whether they have come.
const LOOK: Duration = Duration::from_millis(1);

/// Bytes read at once.
const READ: usize = 64 << 10;

/// The listening clients, which leave when this is dropped.
pub(super) struct Listeners {
    /// Bytes that each has received behind the confirmation.
    received: Arc<Vec<AtomicU64>>,
    end: watch::Sender<bool>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// The bytes of a message as a subscriber gets it.
fn message() -> u64 {
    encoded(&["message", CHANNEL, MESSAGE]).len() as u64
}

impl Listeners {
    /// Connects all, and waits until the server has confirmed that they listen.
    pub(super) fn begin(address: SocketAddr) -> io::Result<Self> {
        let received: Arc<Vec<_>> = Arc::new((0..LISTENERS).map(|_| AtomicU64::new(0)).collect());
        let (end, ended) = watch::channel(false);
        let (ready, is_ready) = std::sync::mpsc::channel();
        let counts = Arc::clone(&received);
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let thread = thread::spawn(move || {
            runtime.block_on(async move {
                let mut all = JoinSet::new();
                for number in 0..LISTENERS {
                    let mut stream = TcpStream::connect(address).await?;
                    stream.write_all(&encoded(&["SUBSCRIBE", CHANNEL])).await?;
                    let confirmed = format!("*3\r\n$9\r\nsubscribe\r\n$4\r\n{CHANNEL}\r\n:1\r\n");
                    stream.read_exact(&mut vec![0; confirmed.len()]).await?;
                    let (counts, mut ended) = (Arc::clone(&counts), ended.clone());
                    all.spawn(async move {
                        let mut bytes = vec![0; READ];
                        loop {
                            tokio::select! {
                                read = stream.read(&mut bytes) => match read {
                                    Ok(read) if read > 0 => {
                                        counts[number].fetch_add(read as u64, Relaxed);
                                    }
                                    // The count shows what is missing.
                                    _ => return,
                                },
                                _ = ended.changed() => return,
                            }
                        }
                    });
                }
                // The other side waits for this, or has failed by itself.
                let _ = ready.send(());
                while all.join_next().await.is_some() {}
                Ok(())
            })
        });
        let mut listeners = Self {
            received,
            end,
            thread: Some(thread),
        };
        if is_ready.recv().is_err() {
            let thread = listeners.thread.take();
            let ended = thread.and_then(|thread| thread.join().ok());
            ended.unwrap_or_else(|| Err(io::Error::other("a listener has failed")))?;
        }
        Ok(listeners)
    }

    /// Waits until all have received as many messages as the first has, and at least this many.
    /// Returns the time that this took, and that number; an error is what is wrong.
    pub(super) fn wait(&self, least: u64) -> Result<(Duration, u64), String> {
        let begun = Instant::now();
        loop {
            let counts: Vec<_> = self
                .received
                .iter()
                .map(|count| count.load(Relaxed))
                .collect();
            let first = counts[0];
            let is_same = counts.iter().all(|count| *count == first);
            if is_same && first.is_multiple_of(message()) && first / message() >= least {
                return Ok((begun.elapsed(), first / message()));
            }
            if begun.elapsed() > PATIENCE {
                let (few, many) = (counts.iter().min(), counts.iter().max());
                return Err(format!(
                    "{LISTENERS} listeners received {few:?} to {many:?} bytes; each of {least} \
                     messages has {}",
                    message()
                ));
            }
            thread::sleep(LOOK);
        }
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        // They may have ended by themselves.
        let _ = self.end.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
