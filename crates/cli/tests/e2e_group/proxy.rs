//! Connections that a test cuts, holds and delays.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// What becomes of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Mode {
    /// They pass.
    Pass,
    /// Each connection is closed, and no new one gets through.
    Cut,
    /// They stay where they are, and nobody learns of it.
    Hold,
    /// They pass late.
    Delay,
}

/// How late they pass.
const LATE: Duration = Duration::from_millis(40);

/// How often a connection without bytes looks at the mode.
const LOOK: Duration = Duration::from_millis(10);

/// Between one node and one server.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    mode: Arc<AtomicU8>,
}

impl Proxy {
    /// A proxy to an address. Its threads end with the process.
    pub(crate) fn new(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address");
        let mode = Arc::new(AtomicU8::new(Mode::Pass as u8));
        let shared = Arc::clone(&mode);
        thread::spawn(move || {
            for incoming in listener.incoming() {
                let Ok(incoming) = incoming else { continue };
                let is_cut = is(&shared, Mode::Cut);
                let Some(outgoing) = (!is_cut).then(|| TcpStream::connect(to).ok()).flatten()
                else {
                    continue;
                };
                for (from, to) in [(&incoming, &outgoing), (&outgoing, &incoming)] {
                    let from = from.try_clone().expect("a handle");
                    let to = to.try_clone().expect("a handle");
                    let mode = Arc::clone(&shared);
                    thread::spawn(move || pump(from, to, &mode));
                }
            }
        });
        Self { address, mode }
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.mode.store(mode as u8, SeqCst);
    }
}

fn is(mode: &AtomicU8, other: Mode) -> bool {
    mode.load(SeqCst) == other as u8
}

/// Passes bytes on until either side ends, or the connection is cut.
fn pump(mut from: TcpStream, mut to: TcpStream, mode: &AtomicU8) {
    let _ = from.set_read_timeout(Some(LOOK));
    let _ = to.set_nodelay(true);
    let mut buffer = vec![0; 64 << 10];
    while !is(mode, Mode::Cut) {
        if is(mode, Mode::Hold) {
            thread::sleep(LOOK);
            continue;
        }
        let read = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {
                continue;
            }
            Err(_) => break,
        };
        if is(mode, Mode::Delay) {
            thread::sleep(LATE);
        }
        while is(mode, Mode::Hold) {
            thread::sleep(LOOK);
        }
        if is(mode, Mode::Cut) || to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
