//! The same load on two servers in turn: one has no page, the other's page is open.

use super::{
    benchmark::{WARM_UP_TURNS, prepare, send},
    client::Client,
    process::{Durability, ServerProcess, free_address},
};
use crate::{
    LabError,
    measure::Sample,
    statistics::{Ratio, ratio},
    workload::ObserveJob,
};
use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

/// How often each server gets the load. Servers take turns, so that what else the machine does
/// meets both.
const TURNS: usize = 20;

/// How long the page may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// What one turn of one server took.
struct Turn {
    /// Processor time of the whole process for a request, in microseconds.
    each: f64,
    requests_per_second: f64,
}

/// Starts two servers, opens the page of one, and sends both the load in turns that last as long as
/// the job says.
pub(super) fn measure(engine: &'static str, job: &ObserveJob) -> Result<Sample, LabError> {
    let lost = |error: io::Error| LabError::Program {
        program: engine.to_owned(),
        error,
    };
    let wrong = |fault| LabError::Wrong { engine, fault };
    let page = free_address().map_err(lost)?.to_string();
    let flags = ["--http", &page, "--log-level", "warn"];
    let without = ServerProcess::tremula(&[], Durability::None)?;
    let with = ServerProcess::tremula(&flags, Durability::None)?;
    let seen = open(&page).map_err(lost)?.map_err(wrong)?;
    let clients = job.load.clients as u64 * job.load.pipelining.requests();
    let mut requests = clients;
    for server in [&with, &without] {
        let mut client = Client::connect(server.address).map_err(lost)?;
        let prepared = prepare(&mut client, &job.load).map_err(lost)?;
        prepared.map_err(wrong)?;
        let pilot = send(server, &job.load, clients * WARM_UP_TURNS)?;
        let many = pilot.requests_per_second * job.load.duration.as_secs_f64();
        // Clients send whole pipelines.
        requests = (many as u64).next_multiple_of(clients).max(clients);
    }
    let mut turns = [Vec::new(), Vec::new()];
    for number in 0..TURNS {
        // Each is the first one in every second pair.
        let order = if number % 2 == 0 { [0, 1] } else { [1, 0] };
        for at in order {
            turns[at].push(turn([&without, &with][at], job, requests)?);
        }
    }
    if seen.load(Relaxed) == 0 {
        return Err(wrong("the page has sent no events".to_owned()));
    }
    summary(&turns, requests).ok_or(LabError::Unavailable {
        engine,
        missing: "the system does not report the processor time of another process",
    })
}

/// One turn of a server; `each` is no number if the system does not report what it takes.
fn turn(server: &ServerProcess, job: &ObserveJob, requests: u64) -> Result<Turn, LabError> {
    let before = server.work();
    let report = send(server, &job.load, requests)?;
    let worked = server.work().zip(before).map(|(now, before)| now - before);
    let each = worked.map(|worked| worked.as_secs_f64() * 1e6 / requests as f64);
    Ok(Turn {
        each: each.unwrap_or(f64::NAN),
        requests_per_second: report.requests_per_second,
    })
}

/// The throughput of the server with a page, and the ratio of processor times: the median of the
/// pairs, with its interval.
fn summary([without, with]: &[Vec<Turn>; 2], requests: u64) -> Option<Sample> {
    let pairs = with.iter().zip(without);
    let ratios: Vec<f64> = pairs
        .map(|(with, without)| with.each / without.each)
        .collect();
    let ones = vec![1.0; ratios.len()];
    let Ratio { value, interval } = ratio(&ratios, &ones).ok()?;
    let interval = interval?;
    let took = |turn: &Turn| requests as f64 / turn.requests_per_second;
    let elapsed = Duration::from_secs_f64(with.iter().map(took).sum());
    let mean =
        |turns: &[Turn]| turns.iter().map(|turn| turn.each).sum::<f64>() / turns.len() as f64;
    let mut sample = Sample::new(requests * with.len() as u64, elapsed);
    sample.figures = [
        ("server_us_per_request_without", mean(without)),
        ("server_us_per_request_with", mean(with)),
        ("ratio", value),
        ("ratio_low", interval.low),
        ("ratio_high", interval.high),
    ]
    .map(|(name, figure)| (name.to_owned(), figure))
    .into();
    Some(sample)
}

/// Opens the stream of events of a page, as a browser does that shows the map of the first
/// database. Returns the number of bytes that have come; they are read until the server ends.
fn open(page: &str) -> io::Result<Result<Arc<AtomicU64>, String>> {
    let address: SocketAddr = page.parse().map_err(io::Error::other)?;
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "GET /api/events?map=db0 HTTP/1.1\r\nHost: {page}\r\n\r\n"
    )?;
    let mut head = [0; 12];
    stream.read_exact(&mut head)?;
    if head != *b"HTTP/1.1 200" {
        let answer = String::from_utf8_lossy(&head);
        return Ok(Err(format!("the page answers '{answer}'")));
    }
    let seen = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&seen);
    thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(read @ 1..) = stream.read(&mut bytes) {
            count.fetch_add(read as u64, Relaxed);
        }
    });
    Ok(Ok(seen))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(each: [f64; 3]) -> Vec<Turn> {
        let turn = |each| Turn {
            each,
            requests_per_second: 1000.0,
        };
        each.map(turn).into()
    }

    #[test]
    fn the_ratio_is_that_of_turns_that_were_neighbours() {
        // The machine became slower by half, which is not the page's fault.
        let all = [turns([1.0, 1.0, 1.5]), turns([1.02, 1.01, 1.53])];
        let sample = summary(&all, 500).unwrap();
        assert_eq!((sample.operations, sample.mops()), (1500, 0.001));
        let figure = |name| {
            let found = sample.figures.iter().find(|(figure, _)| figure == name);
            (found.unwrap().1 * 1e3).round()
        };
        let names = ["ratio", "ratio_low", "ratio_high"];
        assert_eq!(names.map(figure), [1020.0, 1010.0, 1020.0]);
        assert_eq!(figure("server_us_per_request_with"), 1187.0);
    }

    #[test]
    fn without_processor_times_there_is_no_sample() {
        assert!(summary(&[turns([f64::NAN; 3]), turns([1.0; 3])], 500).is_none());
    }
}
