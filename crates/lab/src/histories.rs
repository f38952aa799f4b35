//! Are the answers right? Records what threads do to a table concurrently, and checks with
//! [`tremula_check`] that it could have happened one step at a time.
//!
//! Each table is checked in a process of its own: a table that never returns, or that ends its
//! process, is a finding like any other.

use crate::{
    LabError,
    contestants::{Subject, Table, Task},
};
use std::{
    fmt,
    io::{self, Write},
    ops::Bound,
    process::{Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};
use tremula_check::{
    Campaign, Caught, Tally,
    map::{Kind, Operation, Response, Span},
    record,
};
use tremula_index::Direction;

/// The operations on every table.
const POINT: [Kind; 3] = [Kind::Get, Kind::Insert, Kind::Remove];
const ALL: [Kind; 5] = [
    Kind::Get,
    Kind::Insert,
    Kind::Remove,
    Kind::Range,
    Kind::Len,
];

/// The campaigns by name; a short campaign has `histories` histories.
fn campaigns(histories: usize) -> [(&'static str, Campaign); 4] {
    let short = |kinds: &'static [Kind]| Campaign {
        sessions: histories,
        kinds,
        ..Campaign::short()
    };
    let long = |kinds: &'static [Kind], operations| Campaign {
        sessions: histories.div_ceil(500),
        operations: operations..=operations,
        kinds,
        seed: 2,
        ..Campaign::long()
    };
    [
        ("short, points", short(&POINT)),
        ("short, ranges", short(&ALL)),
        ("long, points", long(&POINT, 20_000)),
        ("long, ranges", long(&ALL, 4_000)),
    ]
}

/// Checks the table, and prints the verdict on each campaign as it ends. Returns whether all were
/// right.
///
/// # Errors
///
/// The output could not be written.
pub fn check(table: Table, histories: usize, out: &mut dyn Write) -> io::Result<bool> {
    let mut right = true;
    for (name, campaign) in campaigns(histories) {
        let outcome = table.run_integers(&campaign);
        right &= outcome.is_ok();
        let verdict = Verdict(outcome);
        writeln!(out, "{:<20} {name:<14} {verdict}", table.name())?;
        out.flush()?;
    }
    Ok(right)
}

/// How a campaign ended, in words.
struct Verdict(Result<Tally, Box<Caught>>);

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok(tally) => write!(
                out,
                "right: {} histories, {} overlapping pairs",
                tally.histories, tally.overlaps
            ),
            Err(caught) => writeln!(out, "WRONG {caught}"),
        }
    }
}

impl Task<u64> for &Campaign {
    type Output = Result<Tally, Box<Caught>>;

    fn run<S: Subject<u64>>(self, make: impl Fn() -> S) -> Self::Output {
        Campaign::run(self, || Recorded(make()))
    }
}

/// A table of the lab, wrapped for the recorder.
struct Recorded<S>(S);

impl<S: Subject<u64>> Recorded<S> {
    fn entries(&self, span: Span, direction: Direction, limit: usize) -> Vec<(u64, u64)> {
        let from = match &span.low {
            Bound::Included(low) | Bound::Excluded(low) => Some(low),
            Bound::Unbounded => None,
        };
        let mut entries = Vec::new();
        self.0.scan(from, usize::MAX, |key, value| {
            if span.contains(key) {
                entries.push((key, value));
            }
        });
        if direction == Direction::Descending {
            // Not every table has descending scans. A wrong order stays wrong when reversed.
            entries.reverse();
        }
        entries.truncate(limit);
        entries
    }
}

impl<S: Subject<u64>> record::Subject for Recorded<S> {
    fn offers(&self, kind: Kind) -> bool {
        match kind {
            Kind::Len => self.0.length().is_some(),
            other => ALL.contains(&other),
        }
    }

    fn call(&self, operation: &Operation) -> Response {
        match *operation {
            Operation::Get(key) => Response::Value(self.0.get(&key)),
            Operation::Insert(key, value) if self.0.insert_is_one_step() => {
                Response::Flag(!self.0.insert(&key, value))
            }
            Operation::Insert(key, value) => {
                self.0.update(&key, value);
                Response::Done
            }
            Operation::Remove(key) => Response::Flag(self.0.remove(&key)),
            Operation::Range(span, direction, limit) => {
                if span.contains(u64::MAX) && !self.0.scans_the_greatest_key() {
                    return Response::Done;
                }
                Response::Entries(self.entries(span, direction, limit))
            }
            Operation::Len => Response::Count(self.0.length().unwrap_or(0) as usize),
            ref other => unreachable!("{other} is not offered"),
        }
    }
}

/// How the process that checked a table ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All histories were right.
    Right,
    /// Some were wrong; the process has printed which.
    Wrong,
    /// The table ended the process.
    Ended(ExitStatus),
    /// The process took too long.
    Late(Duration),
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Right => out.write_str("right"),
            Self::Wrong => out.write_str("WRONG"),
            Self::Ended(status) => write!(out, "WRONG it ended its process: {status}"),
            Self::Late(patience) => write!(out, "WRONG it was not done after {patience:?}"),
        }
    }
}

/// Runs a command that [`check`]s a table and ends with status 0 or 2. Waits for it, but not longer
/// than `patience`.
///
/// # Errors
///
/// The process could not be started or waited for.
pub fn check_apart(mut command: Command, patience: Duration) -> Result<Outcome, LabError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |error| LabError::Program {
        program: program.clone(),
        error,
    };
    let mut child = command.spawn().map_err(failed)?;
    let end = Instant::now() + patience;
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(match status.code() {
                Some(0) => Outcome::Right,
                Some(code) if code == i32::from(WRONG) => Outcome::Wrong,
                _ => Outcome::Ended(status),
            });
        }
        if Instant::now() >= end {
            child.kill().and_then(|()| child.wait()).map_err(failed)?;
            return Ok(Outcome::Late(patience));
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// The status of a process that has found a wrong history.
pub const WRONG: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::Index;
    use std::sync::atomic::{AtomicU64, Ordering};
    use tremula_index::Locked;
    use tremula_papers::AnyEngine;

    /// Enough histories for campaigns that take no time.
    const FEW: usize = 200;

    #[test]
    fn every_index_is_right_and_says_so() {
        for engine in AnyEngine::ALL {
            let mut text = Vec::new();
            let right = check(Table::Index(engine), FEW, &mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            assert!(right, "{text}");
            assert_eq!(text.matches("right: ").count(), 4, "{text}");
            assert_eq!(text.matches(engine.name()).count(), 4, "{text}");
        }
    }

    /// A table that forgets every hundredth key.
    struct Forgetful {
        table: Index<Locked<u64, u64>>,
        inserts: AtomicU64,
    }

    impl Subject<u64> for Forgetful {
        fn insert(&self, key: &u64, value: u64) -> bool {
            let new = self.table.insert(key, value);
            if self.inserts.fetch_add(1, Ordering::Relaxed) % 100 == 99 {
                self.table.remove(key);
            }
            new
        }

        fn remove(&self, key: &u64) -> bool {
            self.table.remove(key)
        }

        fn get(&self, key: &u64) -> Option<u64> {
            self.table.get(key)
        }

        fn next(&self, key: &u64) -> Option<u64> {
            self.table.next(key)
        }

        fn scan<F>(&self, from: Option<&u64>, limit: usize, visit: F)
        where
            F: FnMut(u64, u64),
        {
            self.table.scan(from, limit, visit);
        }

        fn length(&self) -> Option<u64> {
            Subject::<u64>::length(&self.table)
        }
    }

    #[test]
    fn a_table_that_forgets_is_caught_by_every_campaign() {
        for (name, campaign) in campaigns(FEW) {
            let outcome = Task::run(&campaign, || Forgetful {
                table: Index(Locked::new()),
                inserts: AtomicU64::new(0),
            });
            let verdict = Verdict(outcome).to_string();
            assert!(verdict.contains("WRONG after"), "{name}: {verdict}");
        }
    }

    #[test]
    fn a_process_that_does_not_return_or_dies_is_a_finding() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            check_apart(command, Duration::from_secs(10)).unwrap()
        };
        assert_eq!(shell("exit 0"), Outcome::Right);
        assert_eq!(shell("exit 2"), Outcome::Wrong);
        let died = shell("kill -SEGV $$").to_string();
        assert!(died.contains("signal: 11"), "{died}");
        let mut command = Command::new("sleep");
        command.arg("1000");
        let late = check_apart(command, Duration::from_millis(50)).unwrap();
        assert_eq!(late, Outcome::Late(Duration::from_millis(50)));
    }
}
