//! Runs `redis-benchmark`, and checks that the server did what was asked.

use super::{
    client::{Checked, Client, VALUE, encoded, fill, for_each_key},
    listeners::{Listeners, Source},
    process::ServerProcess,
};
use crate::{
    LabError,
    measure::Sample,
    workload::{RedisCommand, RedisJob},
};
use std::{io, process::Command, time::Duration};

pub(super) const PROGRAM: &str = "redis-benchmark";

/// How many full pipelines every client sends to warm up; this also shows how many requests fit
/// into a given time.
pub(super) const WARM_UP_TURNS: u64 = 20;

/// The most requests of a measurement.
const MOST_REQUESTS: f64 = 1e8;

/// How many clients listen to a channel, the channel, and what is sent to it.
const LISTENERS: usize = 100;
const CHANNEL: &str = "news";
const MESSAGE: &str = "a message of thirty-two bytes...";

/// A line of figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Report {
    pub(super) requests_per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
}

/// Empties the server, fills it as the command needs, and has the command sent for about as long as
/// the job says.
pub(super) fn measure(
    engine: &'static str,
    server: &ServerProcess,
    job: &RedisJob,
) -> Result<Sample, LabError> {
    let lost = |error: io::Error| LabError::Program {
        program: engine.to_owned(),
        error,
    };
    let wrong = |fault| LabError::Wrong { engine, fault };
    let mut client = Client::connect(server.address).map_err(lost)?;
    replies_are_right(&mut client)
        .map_err(lost)?
        .map_err(wrong)?;
    prepare(&mut client, job).map_err(lost)?.map_err(wrong)?;
    let listens = job.command == RedisCommand::Publish;
    let listeners = listens.then(|| Listeners::begin(server.address, LISTENERS, channel()));
    let listeners = listeners.transpose().map_err(lost)?;
    let turn = job.clients as u64 * job.pipelining.requests();
    let few = turn * WARM_UP_TURNS;
    let pilot = send(server, job, few)?;
    let many = pilot.requests_per_second * job.duration.as_secs_f64();
    // Round to whole pipelines, because a client always sends whole ones.
    let many = (many.min(MOST_REQUESTS) as u64)
        .next_multiple_of(turn)
        .max(turn);
    let before = server.work();
    let report = send(server, job, many)?;
    let worked = server
        .work()
        .zip(before)
        .map(|(now, before)| now.saturating_sub(before));
    let sent = few + many;
    // When the program has seen enough answers, up to one more pipeline of each client may be in
    // flight. That can happen in both runs.
    let most = sent + 2 * turn;
    check(&mut client, job, sent..=most)
        .map_err(lost)?
        .map_err(wrong)?;
    let mut elapsed = Duration::from_secs_f64(many as f64 / report.requests_per_second);
    if let Some(listeners) = &listeners {
        let (late, received) = listeners.wait(sent).map_err(wrong)?;
        if received > most {
            let fault = format!("{received} messages were received of at most {most}");
            return Err(wrong(fault));
        }
        // A message is done when all have it.
        elapsed += late;
    }
    let mut sample = Sample::new(many, elapsed);
    sample.figures = vec![
        ("latency_ms_p50".to_owned(), report.p50_ms),
        ("latency_ms_p99".to_owned(), report.p99_ms),
    ];
    if let Some(worked) = worked {
        let each = worked.as_secs_f64() * 1e6 / many as f64;
        sample
            .figures
            .push(("server_us_per_request".to_owned(), each));
    }
    Ok(sample)
}

/// The channel, whose messages are counted by their bytes.
fn channel() -> Source {
    Source {
        command: encoded(&["SUBSCRIBE", CHANNEL]),
        // An array of the word, the channel and the count.
        lines_of_answer: 6,
        size: |bytes| bytes.len() as u64,
        message: encoded(&["message", CHANNEL, MESSAGE]).len() as u64,
    }
}

/// Runs the program, and parses what it prints.
pub(super) fn send(
    server: &ServerProcess,
    job: &RedisJob,
    requests: u64,
) -> Result<Report, LabError> {
    let mut command = Command::new(PROGRAM);
    command
        .args(["-h", &server.address.ip().to_string()])
        .args(["-p", &server.address.port().to_string()])
        .args(["-c", &job.clients.to_string()])
        .args(["-n", &requests.to_string()])
        .args(["-P", &job.pipelining.requests().to_string()])
        .args(["-r", &job.keys.to_string()])
        .arg("--csv");
    match job.command {
        RedisCommand::GetRange => {
            command.args(["GETRANGE", "key:__rand_int__", "0", "-1"]);
        }
        RedisCommand::Publish => {
            command.args(["PUBLISH", CHANNEL, MESSAGE]);
        }
        other => {
            command.args(["-t", other.name()]);
        }
    }
    let output = command.output().map_err(|error| LabError::Program {
        program: PROGRAM.to_owned(),
        error,
    })?;
    let answer = String::from_utf8_lossy(&output.stdout);
    parse(&answer)
        .filter(|_| output.status.success())
        .ok_or_else(|| LabError::Answer {
            program: PROGRAM.to_owned(),
            answer: format!("{answer}{}", String::from_utf8_lossy(&output.stderr))
                .trim()
                .to_owned(),
        })
}

/// The figures of the only test, found by their names in the heading.
fn parse(answer: &str) -> Option<Report> {
    let mut lines = answer.lines().filter(|line| line.starts_with('"'));
    let heading = lines.next()?;
    let line = lines.next()?;
    let cells = |line: &str| -> Vec<String> {
        line.trim()
            .trim_matches('"')
            .split("\",\"")
            .map(str::to_owned)
            .collect()
    };
    let (names, figures) = (cells(heading), cells(line));
    let figure = |name: &str| {
        let place = names.iter().position(|other| other == name)?;
        let figure: f64 = figures.get(place)?.parse().ok()?;
        figure.is_finite().then_some(figure)
    };
    let report = Report {
        requests_per_second: figure("rps")?,
        p50_ms: figure("p50_latency_ms")?,
        p99_ms: figure("p99_latency_ms")?,
    };
    (report.requests_per_second > 0.0 && lines.next().is_none()).then_some(report)
}

/// Checks that each command answers as it should. Empties the server before and after.
fn replies_are_right(client: &mut Client) -> Checked {
    let cases: [(&[&str], &[u8]); 16] = [
        (&["FLUSHALL"], b"+OK"),
        (&["GET", "a"], b"$-1"),
        (&["SET", "a", "xyz"], b"+OK"),
        (&["GET", "a"], b"$3 xyz"),
        (&["GETRANGE", "a", "0", "-1"], b"$3 xyz"),
        (&["GETRANGE", "a", "1", "1"], b"$1 y"),
        (&["INCR", "n"], b":1"),
        (&["INCR", "n"], b":2"),
        (&["MSET", "a", "1", "b", "2"], b"+OK"),
        (&["GET", "a"], b"$1 1"),
        (&["GET", "b"], b"$1 2"),
        (&["INCR", "b"], b":3"),
        (&["DBSIZE"], b":3"),
        (&["PUBLISH", CHANNEL, "1"], b":0"),
        (&["FLUSHALL"], b"+OK"),
        (&["DBSIZE"], b":0"),
    ];
    for (words, expected) in cases {
        let answer = client.ask(words)?;
        if answer != expected {
            let [answer, expected] = [&answer[..], expected].map(String::from_utf8_lossy);
            let words = words.join(" ");
            return Ok(Err(format!(
                "'{words}' is answered '{answer}', not '{expected}'"
            )));
        }
    }
    Ok(Ok(()))
}

/// Inserts all keys, if the command reads them.
pub(super) fn prepare(client: &mut Client, job: &RedisJob) -> Checked {
    if !matches!(job.command, RedisCommand::Get | RedisCommand::GetRange) {
        return Ok(Ok(()));
    }
    fill(client, job.keys)
}

/// Checks that the server is in the state that this many commands must have left.
fn check(client: &mut Client, job: &RedisJob, sent: std::ops::RangeInclusive<u64>) -> Checked {
    let get =
        |name: &'static str| move |number: u64| encoded(&["GET", &format!("{name}:{number:012}")]);
    match job.command {
        // The listeners count.
        RedisCommand::Publish => Ok(Ok(())),
        RedisCommand::Get | RedisCommand::GetRange => {
            let value = format!("${} {VALUE}", VALUE.len()).into_bytes();
            for_each_key(client, job.keys, get("key"), |answer| answer == value)
        }
        RedisCommand::Incr => {
            let mut sum = 0;
            let mut add = |answer: &[u8]| {
                let text = String::from_utf8_lossy(answer);
                let number = text
                    .split_once(' ')
                    .map(|(_, number)| number.parse::<u64>());
                match number {
                    Some(Ok(number)) => sum += number,
                    _ => return text == "$-1",
                }
                true
            };
            let done = for_each_key(client, job.keys, get("counter"), &mut add)?;
            Ok(done.and_then(|()| {
                if sent.contains(&sum) {
                    Ok(())
                } else {
                    let (least, most) = sent.into_inner();
                    Err(format!("the counters' sum is {sum}, not {least} to {most}"))
                }
            }))
        }
        RedisCommand::Set | RedisCommand::Mset => {
            let mut there = 0;
            let of_its_length = |answer: &[u8]| {
                let is_there = answer.starts_with(b"$3 ");
                there += u64::from(is_there);
                is_there || answer == b"$-1"
            };
            let done = for_each_key(client, job.keys, get("key"), of_its_length)?;
            let size = client.ask(&["DBSIZE"])?;
            Ok(done.and_then(|()| {
                if size == format!(":{there}").into_bytes() && there > 0 {
                    Ok(())
                } else {
                    let size = String::from_utf8_lossy(&size);
                    Err(format!(
                        "DBSIZE is answered '{size}', but {there} keys are there"
                    ))
                }
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::client::tests::served, *};
    use crate::workload::Pipelining;

    #[test]
    fn figures_are_read_by_name() {
        let heading = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\
                       \"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"";
        let answer = format!(
            "{heading}\n\"MSET (10 keys)\",\"285714.28\",\"2.3\",\"0.4\",\"2.103\",\"3.6\",\"3.743\",\"3.7\"\n"
        );
        let report = Report {
            requests_per_second: 285_714.28,
            p50_ms: 2.103,
            p99_ms: 3.743,
        };
        assert_eq!(parse(&answer), Some(report));
        for wrong in [
            String::new(),
            heading.to_owned(),
            answer.replace("285714.28", "nan"),
            answer.replace("\"rps\"", "\"speed\""),
            "Could not connect to Redis".to_owned(),
        ] {
            assert_eq!(parse(&wrong), None, "{wrong}");
        }
    }

    fn job(command: RedisCommand) -> RedisJob {
        RedisJob {
            command,
            pipelining: Pipelining::None,
            clients: 1,
            keys: 10,
            duration: Duration::from_millis(1),
        }
    }

    #[test]
    fn wrong_replies_are_found() {
        assert_eq!(replies_are_right(&mut served("")).unwrap(), Ok(()));
        for mistake in ["GET", "GETRANGE", "INCR", "MSET", "PUBLISH"] {
            let fault = replies_are_right(&mut served(mistake))
                .unwrap()
                .unwrap_err();
            assert!(fault.contains("is answered"), "{mistake}: {fault}");
        }
    }

    #[test]
    fn what_the_commands_left_is_counted() {
        let client = &mut served("");
        for _ in 0..3 {
            client.ask(&["INCR", "counter:000000000007"]).unwrap();
        }
        let mut sum = |sent| check(client, &job(RedisCommand::Incr), sent).unwrap();
        assert_eq!(sum(3..=4), Ok(()));
        assert!(sum(4..=5).unwrap_err().contains("sum is 3, not 4 to 5"));

        let client = &mut served("");
        let mut set = || check(client, &job(RedisCommand::Set), 1..=1).unwrap();
        assert!(set().is_err(), "nothing is there");
        let client = &mut served("");
        prepare(client, &job(RedisCommand::Get)).unwrap().unwrap();
        let mut right = |command| check(client, &job(command), 1..=1).unwrap();
        for command in [RedisCommand::Set, RedisCommand::Get, RedisCommand::GetRange] {
            assert_eq!(right(command), Ok(()));
        }
        client.ask(&["SET", "key:000000000003", "other"]).unwrap();
        for command in [RedisCommand::Mset, RedisCommand::Get] {
            let fault = check(client, &job(command), 1..=1).unwrap().unwrap_err();
            assert!(fault.contains("key 3 is answered"), "{fault}");
        }
    }
}
