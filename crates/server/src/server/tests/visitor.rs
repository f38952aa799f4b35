//! Two clients of one thread. Clients and worker share the test's thread, and a turn is over at
//! every look at the clock, so tests do not depend on speed.

use super::*;
use crate::limits::{Time, TurnLimits};
use std::io::ErrorKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Runs a visit of two clients: one that is slow, and another.
pub(super) fn visits(visit: impl AsyncFnOnce(&mut Visitor, &mut Visitor) -> io::Result<()>) {
    let visits = async {
        let limits = Limits {
            turn: TurnLimits {
                time: Time(Duration::ZERO),
                ..TurnLimits::default()
            },
            ..Limits::default()
        };
        let (shared, sockets, worker) = worker_here(limits);
        let mut slow = Visitor::come(&sockets, &shared).await?;
        let mut other = Visitor::come(&sockets, &shared).await?;
        visit(&mut slow, &mut other).await?;
        drop((slow, other, sockets));
        worker.await.expect("the worker ends");
        io::Result::Ok(())
    };
    let runtime = event_loop().expect("an event loop");
    let visited = runtime.block_on(async { tokio::time::timeout(PATIENCE, visits).await });
    visited.expect("in time").expect("connections hold");
}

/// A client on the thread of the worker that serves it.
pub(super) struct Visitor(pub(super) TcpStream);

impl Visitor {
    async fn come(arrivals: &Arrivals, shared: &Arc<Shared>) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (ours, theirs) = tokio::join!(TcpStream::connect(address), listener.accept());
        let admission = shared.clients.admit(2).expect("a place is free");
        let incoming = Incoming::Tcp(theirs?.0.into_std()?);
        shared.threads.pulse(0).clients.fetch_add(1, Relaxed);
        let arrival = Arrival::New(Socket {
            incoming,
            session: None,
            user: None,
            admission,
        });
        assert!(arrivals.send(arrival).is_ok());
        let ours = ours?;
        ours.set_nodelay(true)?;
        Ok(Self(ours))
    }

    pub(super) async fn send(&mut self, command: &str) -> io::Result<()> {
        // At once, because a part that waits for an acknowledgement takes as long as a search.
        self.0.write_all(format!("{command}\r\n").as_bytes()).await
    }

    /// Reads a bulk string.
    pub(super) async fn reply(&mut self) -> io::Result<String> {
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
    pub(super) fn has_reply(&self) -> bool {
        let stream = socket2::SockRef::from(&self.0);
        match stream.peek(&mut [std::mem::MaybeUninit::uninit()]) {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("the connection is lost: {error}"),
        }
    }
}
