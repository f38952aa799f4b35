//! Clients that listen to what a server sends, all on one thread of this program.

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

/// How long a server that has messages to send may send nothing.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often this looks whether the last messages have come.
const LOOK: Duration = Duration::from_millis(1);

/// Bytes read at once.
const READ: usize = 64 << 10;

/// What clients listen to. A message has a size by which messages are counted: its bytes, or its
/// lines if messages differ in length.
pub(super) struct Source {
    /// The command by which a client begins to listen.
    pub(super) command: Vec<u8>,
    /// How many lines the answer to it has.
    pub(super) lines_of_answer: usize,
    /// The size of what has been received.
    pub(super) size: fn(&[u8]) -> u64,
    /// The size of one message.
    pub(super) message: u64,
}

/// The listening clients, which leave when this is dropped.
pub(super) struct Listeners {
    /// The size of what each has received behind the answer to its command.
    received: Arc<Vec<AtomicU64>>,
    /// The size of one message.
    message: u64,
    end: watch::Sender<bool>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Listeners {
    /// Connects this many, and waits until the server has confirmed that they listen.
    pub(super) fn begin(address: SocketAddr, count: usize, source: Source) -> io::Result<Self> {
        let received: Arc<Vec<_>> = Arc::new((0..count).map(|_| AtomicU64::new(0)).collect());
        let message = source.message;
        let (end, ended) = watch::channel(false);
        let (ready, is_ready) = std::sync::mpsc::channel();
        let counts = Arc::clone(&received);
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let thread = thread::spawn(move || {
            runtime.block_on(async move {
                let mut all = JoinSet::new();
                for number in 0..count {
                    let mut stream = TcpStream::connect(address).await?;
                    stream.write_all(&source.command).await?;
                    let mut lines = 0;
                    while lines < source.lines_of_answer {
                        lines += usize::from(stream.read_u8().await? == b'\n');
                    }
                    let (counts, mut ended) = (Arc::clone(&counts), ended.clone());
                    all.spawn(async move {
                        let mut bytes = vec![0; READ];
                        loop {
                            tokio::select! {
                                read = stream.read(&mut bytes) => match read {
                                    Ok(read) if read > 0 => {
                                        let size = (source.size)(&bytes[..read]);
                                        counts[number].fetch_add(size, Relaxed);
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
            message,
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
        let (mut moved, mut all) = (begun, 0);
        loop {
            let counts: Vec<_> = self
                .received
                .iter()
                .map(|count| count.load(Relaxed))
                .collect();
            let first = counts[0];
            let is_same = counts.iter().all(|count| *count == first);
            let messages = first / self.message;
            if is_same && first.is_multiple_of(self.message) && messages >= least {
                return Ok((begun.elapsed(), messages));
            }
            let sum = counts.iter().sum::<u64>();
            if sum > all {
                (moved, all) = (Instant::now(), sum);
            }
            if moved.elapsed() > PATIENCE {
                let [few, many] = [counts.iter().min(), counts.iter().max()]
                    .map(|size| size.copied().unwrap_or_default() as f64 / self.message as f64);
                return Err(format!(
                    "{} listeners received {few} to {many} of {least} messages",
                    counts.len()
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
