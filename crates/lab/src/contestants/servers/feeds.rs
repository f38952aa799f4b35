//! Clients that watch a range while others write there: how fast the events reach them.

use super::{
    client::{Checked, Client, VALUE, encoded, key},
    listeners::{Listeners, Source},
    process::ServerProcess,
};
use crate::{
    LabError,
    measure::{Sample, Timed, together_sliced},
    workload::FeedJob,
};
use std::{io, sync::Mutex, time::Duration};

/// The range that is watched: that of all keys that writers set.
const RANGE: [&str; 2] = ["[key:", "(key;"];

/// The watchers warm up for the job's time divided by this.
const WARM_UP_PART: u32 = 4;

/// Has clients watch and others write, first to warm up and then for as long as the job says, and
/// waits until each watcher has an event for each write.
pub(super) fn measure(
    engine: &'static str,
    server: &ServerProcess,
    job: &FeedJob,
) -> Result<Sample, LabError> {
    let lost = |error: io::Error| LabError::Program {
        program: engine.to_owned(),
        error,
    };
    let wrong = |fault| LabError::Wrong { engine, fault };
    events_are_right(server).map_err(lost)?.map_err(wrong)?;
    let writers = (0..job.writers).map(|writer| Writer::connect(server, job, writer));
    let writers: Vec<_> = writers.collect::<io::Result<_>>().map_err(lost)?;
    let watchers = Listeners::begin(server.address, job.feed.watchers(), range()).map_err(lost)?;
    let mut all = 0;
    let mut run = |duration| {
        let timed = together_sliced(
            writers.len(),
            1,
            duration,
            |writer, lap| {
                let mut writer = writers[writer].lock().expect("no writer panics");
                writer.write(|count| lap.done(count))
            },
            |_| (),
        );
        let Timed {
            elapsed, results, ..
        } = timed;
        let mut written = 0;
        for result in results {
            written += result.map_err(lost)?.map_err(wrong)?;
        }
        all += written;
        let (late, received) = watchers.wait(all).map_err(wrong)?;
        if received > all {
            let fault = format!("{received} events came of {all} writes");
            return Err(wrong(fault));
        }
        Ok((written, elapsed, late))
    };
    run(job.duration / WARM_UP_PART)?;
    let (written, elapsed, late) = run(job.duration)?;
    Ok(sample(written, job.feed.watchers() as u64, elapsed, late))
}

/// What was measured: this number of writes in this time, and the last event this much later.
fn sample(written: u64, watchers: u64, elapsed: Duration, late: Duration) -> Sample {
    let until_last = elapsed + late;
    let mut sample = Sample::new(written * watchers, until_last);
    sample.send_mops = Some(Sample::new(written, elapsed).mops());
    let share = elapsed.as_secs_f64() / until_last.as_secs_f64().max(f64::MIN_POSITIVE);
    sample.figures = vec![
        ("events_of_writes".to_owned(), share),
        ("last_event_ms".to_owned(), late.as_secs_f64() * 1e3),
    ];
    sample
}

/// The range, whose events are counted by their lines, because sequences differ in length.
fn range() -> Source {
    let [start, end] = RANGE;
    Source {
        command: encoded(&["WATCHRANGE", start, end]),
        lines_of_answer: 1,
        size: |bytes| bytes.iter().filter(|byte| **byte == b'\n').count() as u64,
        message: event("1", &key(0)).matches('\n').count() as u64,
    }
}

/// An event as a watcher gets it.
fn event(sequence: &str, key: &str) -> String {
    let text = |word: &str| format!("${}\r\n{word}\r\n", word.len());
    let [start, end] = RANGE.map(text);
    let [watchrange, set, key, value] = ["watchrange", "set", key, VALUE].map(text);
    format!("*8\r\n{watchrange}{start}{end}{set}:{sequence}\r\n{key}{value}:-1\r\n")
}

/// Checks that a watcher gets one event for each of two writes, and none for a key outside the
/// range. Empties the server before.
fn events_are_right(server: &ServerProcess) -> Checked {
    let [mut client, mut watcher] = [
        Client::connect(server.address)?,
        Client::connect(server.address)?,
    ];
    client.ask(&["FLUSHALL"])?;
    let [start, end] = RANGE;
    let first = watcher.ask(&["WATCHRANGE", start, end])?;
    let first = String::from_utf8_lossy(&first).into_owned();
    let Some(Ok(first)) = first.strip_prefix(':').map(str::parse::<u64>) else {
        return Ok(Err(format!("WATCHRANGE is answered '{first}'")));
    };
    let names = [key(0), "other".to_owned(), key(1)];
    for name in &names {
        client.ask(&["SET", name, VALUE])?;
    }
    // Each write takes a sequence.
    for (sequence, name) in (first..).zip(&names) {
        if name.starts_with("key:") {
            let event = event(&sequence.to_string(), name);
            if let Err(fault) = watcher.receive_all(event.as_bytes())? {
                return Ok(Err(fault));
            }
        }
    }
    Ok(Ok(()))
}

/// A client that writes.
struct Writer {
    client: Client,
    /// The pipelines that it sends, repeatedly.
    pipelines: Vec<Vec<u8>>,
    /// The one that comes next.
    next: usize,
}

impl Writer {
    fn connect(server: &ServerProcess, job: &FeedJob, number: usize) -> io::Result<Mutex<Self>> {
        Ok(Mutex::new(Self {
            client: Client::connect(server.address)?,
            pipelines: pipelines(&job.stream(number)),
            next: 0,
        }))
    }

    /// Writes until `done`, which gets the number of writes of each pipeline, says that the time is
    /// up. Returns how many.
    fn write(&mut self, mut done: impl FnMut(u64) -> bool) -> io::Result<Result<u64, String>> {
        let expected = "+OK\r\n".repeat(FeedJob::PIPELINE).into_bytes();
        let mut written = 0;
        loop {
            self.client.send_all(&self.pipelines[self.next])?;
            self.next = (self.next + 1) % self.pipelines.len();
            if let Err(fault) = self.client.receive_all(&expected)? {
                return Ok(Err(fault));
            }
            written += FeedJob::PIPELINE as u64;
            if !done(FeedJob::PIPELINE as u64) {
                return Ok(Ok(written));
            }
        }
    }
}

/// A `SET` of each of these keys, in whole pipelines.
fn pipelines(numbers: &[u64]) -> Vec<Vec<u8>> {
    let pipelines = numbers.chunks_exact(FeedJob::PIPELINE);
    let set = |number: &u64| encoded(&["SET", &key(*number), VALUE]);
    pipelines
        .map(|numbers| numbers.iter().flat_map(set).collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{super::client::tests::served, *};
    use crate::workload::Feed;

    #[test]
    fn events_are_counted_by_their_lines() {
        let source = range();
        let events = event("7", &key(1)) + &event("1234567", &key(2));
        assert_eq!(source.message, 15);
        assert_eq!((source.size)(events.as_bytes()), 2 * source.message);
    }

    #[test]
    fn events_and_writes_have_a_rate_each() {
        let [second, more] = [1000, 3000].map(Duration::from_millis);
        let sample = sample(2_000_000, 100, second, more);
        assert_eq!((sample.operations, sample.mops()), (200_000_000, 50.0));
        assert_eq!(sample.send_mops, Some(2.0));
        let figures = [("events_of_writes", 0.25), ("last_event_ms", 3000.0)];
        let figures = figures.map(|(name, figure)| (name.to_owned(), figure));
        assert_eq!(sample.figures, figures);
    }

    #[test]
    fn a_writer_sets_the_keys_of_its_stream_and_counts_them() {
        let job = FeedJob {
            feed: Feed::One,
            writers: 2,
            keys: 1_000_000,
            seed: 42,
            run: 0,
            duration: Duration::from_millis(1),
        };
        assert_ne!(job.stream(0), job.stream(1));
        let stream = job.stream(0);
        let mut writer = Writer {
            client: served(""),
            pipelines: pipelines(&stream),
            next: 0,
        };
        let mut turns = 3;
        let written = writer.write(|_| {
            turns -= 1;
            turns > 0
        });
        assert_eq!(written.unwrap(), Ok(48));
        for number in &stream[..48] {
            assert_eq!(
                writer.client.ask(&["GET", &key(*number)]).unwrap(),
                b"$3 abc"
            );
        }
        let keys: std::collections::BTreeSet<_> = stream[..48].iter().collect();
        let size = writer.client.ask(&["DBSIZE"]).unwrap();
        assert_eq!(size, format!(":{}", keys.len()).into_bytes());
    }
}
