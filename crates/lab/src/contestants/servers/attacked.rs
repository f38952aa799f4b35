//! A server with one thread, which one client shares with others that attack it.

use super::client::{Checked, Client, encoded};
use super::process::{Durability, ServerProcess};
use crate::{
    LabError,
    measure::Sample,
    workload::{Attack, AttackJob},
};
use std::{
    io,
    net::SocketAddr,
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

/// The client sends its next request this long after an answer. Without a pause it would itself
/// keep a core busy.
const PAUSE: Duration = Duration::from_micros(500);

/// How many keys, or rows, one command inserts before the measurement.
const BATCH: u64 = 1000;

/// The rows in a list of an attack.
const LIST: u64 = 20_000;

/// Behind the answer to an attack: the answer to `ECHO` of this, which no other answer ends with.
const MARK: &str = "--- end of the answer ---";

/// Starts a server, fills it, attacks it, and measures how long another client waits.
pub(super) fn measure(engine: &'static str, job: &AttackJob) -> Result<Sample, LabError> {
    let lost = |error: io::Error| LabError::Program {
        program: engine.to_owned(),
        error,
    };
    let server = ServerProcess::tremula(&["--threads", "1"], Durability::None)?;
    let mut client = Client::connect(server.address).map_err(lost)?;
    let prepared = prepare(&mut client, job).map_err(lost)?;
    prepared.map_err(|fault| LabError::Wrong { engine, fault })?;
    let (waits, done) = beside(&mut client, server.address, job).map_err(lost)?;
    let elapsed: Duration = waits.iter().map(|wait| *wait + PAUSE).sum();
    let mut sample = Sample::new(waits.len() as u64, elapsed);
    sample.figures = figures(waits);
    sample.figures.push(("attacks".to_owned(), done as f64));
    Ok(sample)
}

/// Inserts all that the client and the attackers need.
fn prepare(client: &mut Client, job: &AttackJob) -> Checked {
    let mut commands = vec![encoded(&["SET", "mine", "abc"])];
    let batches = (0..job.keys).step_by(BATCH as usize);
    let numbers = batches.map(|first| first..(first + BATCH).min(job.keys));
    match job.attack {
        Attack::None | Attack::Free | Attack::MatchSpecRun => (),
        Attack::Keys | Attack::Range => commands.extend(numbers.map(|numbers| {
            let pairs = numbers.flat_map(|number| [format!("key:{number:012}"), "abc".to_owned()]);
            let words: Vec<_> = std::iter::once("MSET".to_owned()).chain(pairs).collect();
            encoded(&words.iter().map(String::as_str).collect::<Vec<_>>())
        })),
        Attack::Append => commands.push(encoded(&[
            "SETRANGE",
            "long",
            &(Attack::LONG - 1).to_string(),
            "x",
        ])),
        Attack::Search => {
            commands.push(encoded(&["ETS.NEW", "t", "ordered_set"]));
            let insert = |numbers| encoded(&["ETS.INSERT", "t", &rows(numbers)]);
            commands.extend(numbers.map(insert));
        }
        Attack::Insert => commands.push(encoded(&["ETS.NEW", "t", "ordered_set"])),
    }
    for command in commands {
        client.send_all(&command)?;
        let answer = client.receive()?;
        if answer.starts_with(b"-") {
            let answer = String::from_utf8_lossy(&answer).into_owned();
            return Ok(Err(format!("what comes before is answered '{answer}'")));
        }
    }
    Ok(Ok(()))
}

/// A list of rows.
fn rows(numbers: impl Iterator<Item = u64>) -> String {
    let rows = numbers.map(|number| format!("{{{number},{number}}}"));
    format!("[{}]", rows.collect::<Vec<_>>().join(","))
}

/// The commands of one attack, and what ends their answers.
fn commands(attack: Attack) -> Vec<u8> {
    let nothing = "[{{'$1','$2'},[{'<','$2','$1'}],[true]}]";
    let attack = match attack {
        Attack::None => Vec::new(),
        Attack::Keys => encoded(&["KEYS", "*"]),
        Attack::Range => encoded(&["RANGE", "-", "+", "WITHVALUES"]),
        Attack::Append => encoded(&["APPEND", "long", "x"]),
        Attack::Free => {
            let last = (Attack::LONG - 1).to_string();
            let make = encoded(&["SETRANGE", "fresh", &last, "x"]);
            [make, encoded(&["DEL", "fresh"])].concat()
        }
        Attack::Search => encoded(&["ETS.SELECT_COUNT", "t", nothing]),
        Attack::MatchSpecRun => encoded(&["ETS.MATCH_SPEC_RUN", &rows(0..LIST), nothing]),
        Attack::Insert => encoded(&["ETS.INSERT", "t", &rows(0..LIST)]),
    };
    [attack, encoded(&["ECHO", MARK])].concat()
}

/// How long each request of the client waited while others attacked, and how often they did.
fn beside(
    client: &mut Client,
    address: SocketAddr,
    job: &AttackJob,
) -> io::Result<(Vec<Duration>, u64)> {
    let commands = commands(job.attack);
    let (is_over, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let begin = Barrier::new(job.attackers + 1);
    thread::scope(|scope| {
        let attack = || {
            let connected = Client::connect(address);
            begin.wait();
            let mut attacker = connected?;
            while job.attack != Attack::None && !is_over.load(Relaxed) {
                attacker.send_all(&commands)?;
                attacker.skip_to(MARK.as_bytes())?;
                done.fetch_add(1, Relaxed);
            }
            io::Result::Ok(())
        };
        let attackers: Vec<_> = (0..job.attackers).map(|_| scope.spawn(attack)).collect();
        begin.wait();
        // The attackers' first commands arrive.
        thread::sleep(job.duration / 4);
        let waits = wait_often(client, job.duration);
        is_over.store(true, Relaxed);
        for attacker in attackers {
            attacker.join().expect("an attacker does not panic")?;
        }
        Ok((waits?, done.load(Relaxed)))
    })
}

/// How long each of the client's requests waits.
fn wait_often(client: &mut Client, duration: Duration) -> io::Result<Vec<Duration>> {
    let mut waits = Vec::new();
    let begun = Instant::now();
    while begun.elapsed() < duration {
        let sent = Instant::now();
        let answer = client.ask(&["GET", "mine"])?;
        waits.push(sent.elapsed());
        if answer != b"$3 abc" {
            return Err(io::ErrorKind::InvalidData.into());
        }
        thread::sleep(PAUSE);
    }
    Ok(waits)
}

/// The figures of a record.
fn figures(mut waits: Vec<Duration>) -> Vec<(String, f64)> {
    waits.sort_unstable();
    let part = |thousandths: usize| {
        let place = (waits.len() * thousandths / 1000).min(waits.len().saturating_sub(1));
        waits
            .get(place)
            .map_or(0.0, |wait| wait.as_secs_f64() * 1e3)
    };
    [("p50", 500), ("p99", 990), ("max", 1000)]
        .map(|(name, thousandths)| (format!("latency_ms_{name}"), part(thousandths)))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_parts_of_all_waits() {
        let waits = (0..1000).rev().map(Duration::from_millis).collect();
        let expected = [("p50", 500.0), ("p99", 990.0), ("max", 999.0)];
        let expected = expected.map(|(name, wait)| (format!("latency_ms_{name}"), wait));
        assert_eq!(figures(waits), expected);
        assert_eq!(figures(Vec::new())[0].1, 0.0);
    }
}
