//! Keys that expire on a server: how late each is unseen and reported, and how long another client
//! waits as many do. Client and server read one clock.

use super::client::{Client, encoded};
use super::process::ServerProcess;
use crate::{
    LabError,
    measure::Sample,
    workload::{Expiring, ExpiryJob},
};
use std::{
    io,
    net::SocketAddr,
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant, SystemTime},
};

/// A key that is watched gets its time this much ahead.
const AHEAD: Duration = Duration::from_millis(3);

/// How often a key is set that expires unwatched, and how far ahead.
const EACH: Duration = Duration::from_millis(1);
const LATER: Duration = Duration::from_millis(50);

/// All of the keys that expire at once do so within this time.
const AT_ONCE: Duration = Duration::from_secs(1);

/// The client that waits sends its next request this long after an answer.
const PAUSE: Duration = Duration::from_micros(100);

/// How many commands are in flight while this program fills the server, and of a client that loads.
const BATCH: u64 = 1000;
const PIPELINE: u64 = 16;

/// How long a server may take to remove what has expired.
const PATIENCE: Duration = Duration::from_secs(60);

/// The channel of reports, and the message that ends them.
const REPORTS: &str = "__keyevent@0__:expired";
const LAST: &str = "last";

/// Since 1970, by the clock that the server reads.
fn now() -> Duration {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default()
}

/// The name of a key that expires at this time; the time is read from it when it is reported.
fn name_of(expires: Duration) -> String {
    format!("key:{:012}", expires.as_millis() % 1_000_000_000_000)
}

fn failed(what: String) -> io::Error {
    io::Error::other(what)
}

fn expect(answer: &[u8], expected: &[u8]) -> io::Result<()> {
    if answer == expected {
        return Ok(());
    }
    let [answer, expected] = [answer, expected].map(String::from_utf8_lossy);
    Err(failed(format!("it answers '{answer}', not '{expected}'")))
}

/// Measures what the job asks.
pub(super) fn measure(
    engine: &'static str,
    server: &ServerProcess,
    job: &ExpiryJob,
) -> Result<Sample, LabError> {
    let measured = match job.expiring {
        Expiring::Quiet => one_by_one(server.address, job, 0),
        Expiring::Loaded => one_by_one(server.address, job, job.clients),
        Expiring::AtOnce => at_once(server.address, job),
    };
    let measured = measured.map_err(|error| LabError::Program {
        program: engine.to_owned(),
        error,
    })?;
    measured.map_err(|fault| LabError::Wrong { engine, fault })
}

/// What was measured, or what is wrong. The outer error is that of the connection.
type Measured = io::Result<Result<Sample, String>>;

/// Watches keys that expire one by one, beside clients that load the server.
fn one_by_one(address: SocketAddr, job: &ExpiryJob, loading: usize) -> Measured {
    let mut client = Client::connect(address)?;
    expect(&client.ask(&["FLUSHALL"])?, b"+OK")?;
    let notify = ["CONFIG", "SET", "notify-keyspace-events", "Ex"];
    expect(&client.ask(&notify)?, b"+OK")?;
    let is_over = AtomicBool::new(false);
    let begin = Barrier::new(loading + 2);
    let (is_over, begin) = (&is_over, &begin);
    thread::scope(|scope| {
        let loads: Vec<_> = (0..loading as u64)
            .map(|seed| scope.spawn(move || load(address, seed, job.keys, begin, is_over)))
            .collect();
        let reports = scope.spawn(move || reported(address, begin));
        begin.wait();
        let began = Instant::now();
        let set = scope.spawn(move || set_each(address, is_over));
        let watched = watch(&mut client, job.duration);
        is_over.store(true, Relaxed);
        let elapsed = began.elapsed();
        let join = "a client does not panic";
        let keys = set.join().expect(join)?;
        for load in loads {
            load.join().expect(join)?;
        }
        let watched = match watched? {
            Ok(watched) => watched,
            Err(fault) => return Ok(Err(fault)),
        };
        until("keys that have expired are not removed", || {
            Ok(expiring(&mut client)? == 0)
        })?;
        expect(&client.ask(&["PUBLISH", REPORTS, LAST])?, b":1")?;
        let reports = reports.join().expect(join)?;
        if reports.iter().any(|late| *late < 0.0) {
            return Ok(Err("a key is reported before its time".to_owned()));
        }
        if (reports.len() as u64) < keys {
            let reports = reports.len();
            let fault = format!("{reports} of {keys} keys are reported, besides those watched");
            return Ok(Err(fault));
        }
        let mut sample = Sample::new(keys, elapsed);
        sample.figures = parts("unseen_ms", watched.unseen);
        sample
            .figures
            .push(("shown_late_ms_max".to_owned(), watched.shown_late));
        sample.figures.extend(parts("reported_ms", reports));
        Ok(Ok(sample))
    })
}

/// Reads and writes as fast as it can.
fn load(
    address: SocketAddr,
    seed: u64,
    keys: u64,
    begin: &Barrier,
    is_over: &AtomicBool,
) -> io::Result<()> {
    let connected = Client::connect(address);
    begin.wait();
    let mut client = connected?;
    let mut number = seed;
    while !is_over.load(Relaxed) {
        let mut commands = Vec::new();
        for turn in 0..PIPELINE {
            // Any sequence that goes through the keys without an order does.
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(turn | 1);
            let key = format!("load:{:012}", (number >> 32) % keys);
            commands.extend(match turn % 2 {
                0 => encoded(&["SET", &key, "abc"]),
                _ => encoded(&["GET", &key]),
            });
        }
        client.send_all(&commands)?;
        for _ in 0..PIPELINE {
            client.receive()?;
        }
    }
    Ok(())
}

/// Sets keys that expire, one after another. Returns how many.
fn set_each(address: SocketAddr, is_over: &AtomicBool) -> io::Result<u64> {
    let mut client = Client::connect(address)?;
    let mut count = 0;
    let mut last = Duration::ZERO;
    while !is_over.load(Relaxed) {
        // Each has a time, and so a name, of its own.
        let expires = (now() + LATER).max(last + EACH);
        last = expires;
        let millis = expires.as_millis().to_string();
        let set = ["SET", &name_of(expires), "x", "PXAT", &millis];
        expect(&client.ask(&set)?, b"+OK")?;
        count += 1;
        thread::sleep(EACH);
    }
    Ok(count)
}

/// How late each key is reported, in milliseconds, up to the last one.
fn reported(address: SocketAddr, begin: &Barrier) -> io::Result<Vec<f64>> {
    let subscribed = Client::connect(address).and_then(|mut client| {
        client.send(&["SUBSCRIBE", REPORTS])?;
        // An array of the word, the channel and the count.
        for _ in 0..4 {
            client.receive()?;
        }
        Ok(client)
    });
    begin.wait();
    let mut client = subscribed?;
    let mut late = Vec::new();
    loop {
        // An array of the word, the channel and the key.
        for _ in 0..3 {
            client.receive()?;
        }
        let key = client.receive()?;
        let at = now();
        let key = String::from_utf8_lossy(&key).into_owned();
        if key.ends_with(LAST) {
            return Ok(late);
        }
        let digits = key
            .rsplit(':')
            .next()
            .and_then(|digits| digits.parse::<u64>().ok());
        if let Some(millis) = digits.filter(|_| key.contains("key:")) {
            let at = at.as_secs_f64() * 1e3 % 1e12;
            late.push(at - millis as f64);
        }
    }
}

/// What a reader has seen.
struct Watched {
    /// How long after its time each key was first not there, in milliseconds.
    unseen: Vec<f64>,
    /// How long after its time a request was sent that still found a key, at most.
    shown_late: f64,
}

/// Sets a key that expires soon and reads it until it is gone, again and again. The inner error is
/// what is wrong.
fn watch(client: &mut Client, duration: Duration) -> io::Result<Result<Watched, String>> {
    let mut watched = Watched {
        unseen: Vec::new(),
        shown_late: 0.0,
    };
    let begun = Instant::now();
    while begun.elapsed() < duration {
        let expires = (now() + AHEAD).as_millis() as u64;
        let set = ["SET", "mine", "abc", "PXAT", &expires.to_string()];
        expect(&client.ask(&set)?, b"+OK")?;
        loop {
            let sent = now().as_secs_f64() * 1e3;
            let answer = client.ask(&["GET", "mine"])?;
            let received = now();
            if answer == b"$-1" {
                if (received.as_millis() as u64) < expires {
                    let early = expires - received.as_millis() as u64;
                    return Ok(Err(format!("a key is gone {early} ms before its time")));
                }
                let late = received.as_secs_f64() * 1e3 - expires as f64;
                watched.unseen.push(late);
                break;
            }
            expect(&answer, b"$3 abc")?;
            watched.shown_late = watched.shown_late.max(sent - expires as f64);
        }
    }
    Ok(Ok(watched))
}

/// Lets all keys expire within a second, and measures how long the requests of a client wait before
/// and meanwhile.
fn at_once(address: SocketAddr, job: &ExpiryJob) -> Measured {
    let mut client = Client::connect(address)?;
    expect(&client.ask(&["FLUSHALL"])?, b"+OK")?;
    expect(&client.ask(&["SET", "mine", "abc"])?, b"+OK")?;
    let begun = Instant::now();
    in_batches(&mut client, job.keys, b"+OK", |number| {
        encoded(&["SET", &format!("key:{number:012}"), "abc"])
    })?;
    // To give each a time takes about as long as to set it, and must be done before the first one.
    let first = now() + 2 * begun.elapsed() + 2 * job.duration + AHEAD;
    in_batches(&mut client, job.keys, b":1", |number| {
        let part = AT_ONCE.as_secs_f64() * number as f64 / job.keys as f64;
        let expires = first + Duration::from_secs_f64(part);
        let millis = expires.as_millis().to_string();
        encoded(&["PEXPIREAT", &format!("key:{number:012}"), &millis])
    })?;
    if now() + job.duration > first {
        return Err(failed(
            "the machine is too busy to fill it in time".to_owned(),
        ));
    }
    let before = wait_often(&mut client, || now() < first)?;
    let is_over = AtomicBool::new(false);
    let is_over = &is_over;
    let removed = thread::scope(|scope| {
        let count = scope.spawn(move || {
            let removed = until_removed(address);
            is_over.store(true, Relaxed);
            removed
        });
        let during = wait_often(&mut client, || !is_over.load(Relaxed));
        let removed = count.join().expect("a client does not panic");
        io::Result::Ok((during?, removed?))
    });
    let (during, removed) = removed?;
    let elapsed = removed.saturating_sub(first);
    let mut sample = Sample::new(job.keys, elapsed);
    sample.figures = parts("latency_before_ms", before);
    sample.figures.extend(parts("latency_during_ms", during));
    let late = elapsed.as_secs_f64() - AT_ONCE.as_secs_f64();
    sample
        .figures
        .push(("removed_late_ms".to_owned(), late * 1e3));
    Ok(Ok(sample))
}

/// Sends a command for each number, many at once.
fn in_batches(
    client: &mut Client,
    keys: u64,
    expected: &[u8],
    command: impl Fn(u64) -> Vec<u8>,
) -> io::Result<()> {
    for first in (0..keys).step_by(BATCH as usize) {
        let numbers = first..(first + BATCH).min(keys);
        let commands: Vec<u8> = numbers.clone().flat_map(&command).collect();
        client.send_all(&commands)?;
        for _ in numbers {
            expect(&client.receive()?, expected)?;
        }
    }
    Ok(())
}

/// How long each request waits, in milliseconds, for as long as the condition holds.
fn wait_often(client: &mut Client, goes_on: impl Fn() -> bool) -> io::Result<Vec<f64>> {
    let mut waits = Vec::new();
    while goes_on() {
        let sent = Instant::now();
        let answer = client.ask(&["GET", "mine"])?;
        waits.push(sent.elapsed().as_secs_f64() * 1e3);
        expect(&answer, b"$3 abc")?;
        thread::sleep(PAUSE);
    }
    Ok(waits)
}

/// When only one key is left.
fn until_removed(address: SocketAddr) -> io::Result<Duration> {
    let mut client = Client::connect(address)?;
    until("keys that have expired are not removed", || {
        Ok(client.ask(&["DBSIZE"])? == b":1")
    })?;
    Ok(now())
}

/// How many keys of a server have a time, those included that have expired and are not removed yet.
fn expiring(client: &mut Client) -> io::Result<u64> {
    let info = client.ask(&["INFO", "keyspace"])?;
    let info = String::from_utf8_lossy(&info).into_owned();
    let of_first = info.lines().find(|line| line.starts_with("db0:"));
    // Without a line, there is no key.
    let Some((_, behind)) = of_first.and_then(|line| line.split_once("expires=")) else {
        return Ok(0);
    };
    let digits = behind.split(',').next().unwrap_or_default();
    let count = digits.trim().parse().ok();
    count.ok_or_else(|| failed(format!("'INFO keyspace' has no count: {info}")))
}

/// Looks again and again until something is so; otherwise the error says what is wrong.
fn until(otherwise: &str, mut is_so: impl FnMut() -> io::Result<bool>) -> io::Result<()> {
    let begun = Instant::now();
    while !is_so()? {
        if begun.elapsed() > PATIENCE {
            return Err(failed(otherwise.to_owned()));
        }
        thread::sleep(EACH);
    }
    Ok(())
}

/// The figures of a record.
fn parts(name: &str, mut values: Vec<f64>) -> Vec<(String, f64)> {
    values.sort_unstable_by(f64::total_cmp);
    let part = |thousandths: usize| {
        let place = (values.len() * thousandths / 1000).min(values.len().saturating_sub(1));
        values.get(place).copied().unwrap_or_default()
    };
    [("p50", 500), ("p99", 990), ("max", 1000)]
        .map(|(part_name, thousandths)| (format!("{name}_{part_name}"), part(thousandths)))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_parts_of_all_values() {
        let values = (0..1000).rev().map(f64::from).collect();
        let expected = [
            ("late_p50", 500.0),
            ("late_p99", 990.0),
            ("late_max", 999.0),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(parts("late", values), expected);
        assert_eq!(parts("late", Vec::new())[2].1, 0.0);
    }

    #[test]
    fn a_name_has_the_time() {
        let time = Duration::from_millis(1_795_727_383_963);
        assert_eq!(name_of(time), "key:795727383963");
        assert_eq!(name_of(time).len(), ExpiryJob::KEY_BYTES);
    }
}
