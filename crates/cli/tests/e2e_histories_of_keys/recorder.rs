//! Clients that use a server at once, and what they have seen.

use crate::commands::{Command, Reply};
use crate::model::{Answer, Call};
use crate::support::resp::{Connection, encode};
use rand::rngs::StdRng;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use tremula_check::Event;

/// A call with the times that order it among the others, in nanoseconds of a clock that never goes
/// back.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) call: Call,
    pub(crate) called: u64,
    pub(crate) returned: u64,
}

impl Recorded {
    pub(crate) fn event(&self) -> Event<Call, Answer> {
        let time = self.called..=self.returned;
        let answer = Answer::This(self.call.reply.clone());
        Event::returned(self.call.client, time, self.call.clone(), answer)
    }
}

/// Milliseconds since 1970, by the clock that the server reads.
pub(crate) fn millis() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.expect("a time after 1970").as_millis() as u64
}

/// A client in a round: what it calls next, from what it has seen.
pub(crate) trait Client: Send {
    /// The next command, after a pause.
    fn next(&mut self) -> (Duration, Command);

    fn see(&mut self, command: &Command, reply: &Reply);
}

/// Sends what a command needs, and returns the reply to the last request.
fn call(connection: &mut Connection, command: &Command) -> Reply {
    let requests = command.requests();
    let bytes: Vec<u8> = requests.iter().flat_map(|words| encode(words)).collect();
    connection.send(&bytes);
    let mut last = Vec::new();
    for _ in &requests {
        last = connection.reply().expect("a reply");
    }
    Reply::read(&last)
}

/// What the clients have called, `calls` of each, in no order.
pub(crate) fn record<C: Client>(
    connections: &mut [Connection],
    clients: Vec<C>,
    calls: usize,
) -> Vec<Recorded> {
    let begun = Instant::now();
    let nanos = || begun.elapsed().as_nanos() as u64;
    let start = Barrier::new(clients.len());
    let run = |number: usize, connection: &mut Connection, mut client: C| {
        start.wait();
        let mut recorded = Vec::with_capacity(calls);
        for _ in 0..calls {
            let (pause, command) = client.next();
            if !pause.is_zero() {
                thread::sleep(pause);
            }
            let (called, from) = (nanos(), millis());
            let reply = call(connection, &command);
            let (to, returned) = (millis(), nanos());
            client.see(&command, &reply);
            let call = Call {
                client: number,
                command,
                reply,
                from,
                to,
            };
            recorded.push(Recorded {
                call,
                called,
                returned,
            });
        }
        recorded
    };
    thread::scope(|scope| {
        let clients = connections.iter_mut().zip(clients).enumerate();
        let run = &run;
        let threads: Vec<_> = clients
            .map(|(number, (connection, client))| {
                scope.spawn(move || run(number, connection, client))
            })
            .collect();
        let all = threads.into_iter();
        all.flat_map(|thread| thread.join().expect("a client"))
            .collect()
    })
}

/// A random generator for each client of a round.
pub(crate) fn random(round: u64, client: usize) -> StdRng {
    rand::SeedableRng::seed_from_u64(round * 64 + client as u64)
}
