//! The operations of `ets_bench` on the tables of rows of this project.

use crate::{
    measure::Sample,
    workload::{
        BINARY_BYTES, EtsBenchJob, EtsOperation, GROUP, LIST_LENGTH, Rows, SEARCHES, State,
    },
};
use std::{
    hint::black_box,
    time::{Duration, Instant},
};
use tremula_table::{BadArgument, MatchSpec, Table, Term};

/// Preparing rounds may take this many times the measured time; then the measurement ends.
const PATIENCE: u32 = 10;

/// Does the operation again and again, on a table that is empty at first. Rows that an operation
/// needs are put into the table between rounds, off the clock.
pub(super) fn measure(table: &Table, job: &EtsBenchJob) -> Result<Sample, String> {
    let bench = Bench {
        table,
        job,
        operation: job.operation,
    };
    let run = |span| bench.rounds(span).map_err(|error| error.to_string());
    let (_, _, warm_faults) = run(job.span.warm_up)?;
    let (operations, elapsed, faults) = run(job.span.counted)?;
    match warm_faults + faults {
        0 => Ok(Sample::new(operations, elapsed)),
        faults => Err(format!(
            "{faults} wrong results of {}, expected 0",
            job.operation.name()
        )),
    }
}

struct Bench<'a> {
    table: &'a Table,
    job: &'a EtsBenchJob,
    operation: EtsOperation,
}

fn atom(name: &str) -> Term {
    Term::atom(name).expect("a short name is an atom")
}

impl Bench<'_> {
    /// Runs rounds until they took this long. Returns how many operations they did, how long they
    /// took, and how many results cannot be right.
    fn rounds(&self, span: Duration) -> Result<(u64, Duration, u64), BadArgument> {
        let begun = Instant::now();
        let (mut operations, mut elapsed, mut faults) = (0, Duration::ZERO, 0);
        for round in 0.. {
            self.prepare()?;
            let start = Instant::now();
            let (done, wrong) = self.round(round)?;
            elapsed += start.elapsed();
            operations += done;
            faults += wrong + u64::from(self.table.size()? != self.size_after());
            if elapsed >= span || begun.elapsed() >= span * PATIENCE {
                break;
            }
        }
        Ok((operations, elapsed, faults))
    }

    fn prepare(&self) -> Result<(), BadArgument> {
        match self.operation.begins_with() {
            State::Empty => self.table.delete_all_objects(),
            State::Full if self.table.size()? == self.job.keys.len() => Ok(()),
            State::Full => {
                for &key in &self.job.keys {
                    self.table.insert(self.row(key))?;
                }
                Ok(())
            }
        }
    }

    /// How many rows the table has after a round.
    fn size_after(&self) -> usize {
        match self.operation {
            EtsOperation::Delete | EtsOperation::Take | EtsOperation::DeleteAllObjects => 0,
            _ => self.job.keys.len(),
        }
    }

    /// The key of this number, which is in the table.
    fn key(&self, number: u32) -> Term {
        if self.operation == EtsOperation::MatchPrefix {
            return Term::tuple([Term::from(number / GROUP), Term::from(number % GROUP)]);
        }
        Term::from(2 * number)
    }

    /// A new row, with a binary of its own.
    fn row(&self, number: u32) -> Term {
        let key = self.key(number);
        let counter = || Term::from(0);
        match (self.job.rows, self.operation.needs_counter()) {
            (Rows::Int, false) => Term::tuple([key]),
            (Rows::Int, true) => Term::tuple([key, counter()]),
            (Rows::IntBinary, false) => Term::tuple([key, Term::binary(&[0; BINARY_BYTES])]),
            (Rows::IntBinary, true) => {
                Term::tuple([key, Term::binary(&[0; BINARY_BYTES]), counter()])
            }
        }
    }

    /// How many elements rows have.
    fn width(&self) -> usize {
        let counter = usize::from(self.operation.needs_counter());
        match self.job.rows {
            Rows::Int => 1 + counter,
            Rows::IntBinary => 2 + counter,
        }
    }

    /// A pattern with this term in the key's place, and `'_'` in the others.
    fn pattern(&self, key: Term) -> Term {
        let others = (1..self.width()).map(|_| atom("_"));
        Term::tuple(std::iter::once(key).chain(others).collect::<Vec<_>>())
    }

    /// `[{{'$1', …}, Guards, ['$1']}]`, built and compiled anew for each select, as in Erlang.
    fn spec(&self, guards: &[Term]) -> MatchSpec {
        let clause = Term::tuple([
            self.pattern(atom("$1")),
            Term::list(guards.to_vec()),
            Term::list([atom("$1")]),
        ]);
        let spec = MatchSpec::compile(&Term::list([clause]));
        spec.expect("the specification is right")
    }

    /// Calls `one` with each key, and counts how often it reports a wrong result.
    fn each_key(
        &self,
        mut one: impl FnMut(u32) -> Result<bool, BadArgument>,
    ) -> Result<(u64, u64), BadArgument> {
        let mut faults = 0;
        for &key in &self.job.keys {
            faults += u64::from(!one(key)?);
        }
        Ok((self.job.keys.len() as u64, faults))
    }

    /// Calls `one` with some keys, different ones in each round.
    fn some_keys(
        &self,
        round: usize,
        mut one: impl FnMut(u32) -> Result<bool, BadArgument>,
    ) -> Result<(u64, u64), BadArgument> {
        let keys = &self.job.keys;
        let mut faults = 0;
        for place in 0..SEARCHES {
            let key = keys[(round * SEARCHES + place) % keys.len()];
            faults += u64::from(!one(key)?);
        }
        Ok((SEARCHES as u64, faults))
    }

    /// Counts all rows as operations.
    fn whole(&self, found: usize, expected: usize) -> (u64, u64) {
        (self.job.keys.len() as u64, u64::from(found != expected))
    }

    /// Runs one round. Returns how many operations were done, and how many results are wrong.
    fn round(&self, round: usize) -> Result<(u64, u64), BadArgument> {
        let (table, width, count) = (self.table, self.width(), self.job.keys.len());
        let last = Term::from(width);
        match self.operation {
            EtsOperation::InsertAbsent | EtsOperation::InsertPresent => {
                self.each_key(|key| table.insert(self.row(key)).map(|()| true))
            }
            EtsOperation::InsertNew => self.each_key(|key| table.insert_new(self.row(key))),
            EtsOperation::InsertList => {
                for keys in self.job.keys.chunks(LIST_LENGTH) {
                    let rows: Vec<_> = keys.iter().map(|&key| self.row(key)).collect();
                    table.insert(Term::list(rows))?;
                }
                Ok((count.div_ceil(LIST_LENGTH) as u64, 0))
            }
            EtsOperation::LookupHit => self.each_key(|key| {
                let key = self.key(key);
                Ok(table.get(&key)?.is_some_and(|row| row[0] == key))
            }),
            EtsOperation::LookupMiss => {
                self.each_key(|key| Ok(table.get(&Term::from(2 * key + 1))?.is_none()))
            }
            EtsOperation::Member => self.each_key(|key| table.member(&self.key(key))),
            EtsOperation::LookupElement => self.each_key(|key| {
                let element = table.lookup_element(&self.key(key), width)?;
                Ok(!black_box(element).is_nil())
            }),
            EtsOperation::UpdateCounter => {
                let update = Term::tuple([last, Term::from(1)]);
                self.each_key(|key| {
                    let counted = table.update_counter(&self.key(key), &update)?;
                    Ok(counted > 0)
                })
            }
            EtsOperation::UpdateElement => self.each_key(|key| {
                let update = Term::tuple([last.clone(), Term::from(key)]);
                table.update_element(&self.key(key), &update)
            }),
            EtsOperation::Delete => {
                self.each_key(|key| table.delete_key(&self.key(key)).map(|()| true))
            }
            EtsOperation::Take => self.each_key(|key| Ok(table.take(&self.key(key))?.len() == 1)),
            EtsOperation::Next => self.walk(table.first()?, |key| table.next(key)),
            EtsOperation::Prev => self.walk(table.last()?, |key| table.prev(key)),
            EtsOperation::Select(rows) => self.some_keys(round, |key| {
                let from = 2 * key.min(count as u32 - rows);
                let guard =
                    |name, bound: u32| Term::tuple([atom(name), atom("$1"), Term::from(bound)]);
                let spec = self.spec(&[guard(">=", from), guard("<", from + 2 * rows)]);
                Ok(table.select(&spec)?.len() == rows as usize)
            }),
            EtsOperation::SelectNothing => {
                // This guard gives no range of keys.
                let guard = Term::tuple([atom("/="), atom("$1"), atom("$1")]);
                Ok(self.whole(table.select(&self.spec(&[guard]))?.len(), 0))
            }
            EtsOperation::MatchPrefix => self.some_keys(round, |key| {
                let group = key / GROUP;
                let beginning = Term::tuple([Term::from(group), atom("$1")]);
                let found = table.match_pattern(&self.pattern(beginning))?.len();
                Ok(found == GROUP.min(count as u32 - group * GROUP) as usize)
            }),
            EtsOperation::MatchObject => self.some_keys(round, |key| {
                let found = table.match_object(&self.pattern(self.key(key)))?;
                Ok(found.len() == 1)
            }),
            EtsOperation::Foldl => {
                let rows = table.foldl(0, |row, rows| rows + usize::from(row.len() == width))?;
                Ok(self.whole(rows, count))
            }
            EtsOperation::Tab2list => Ok(self.whole(black_box(table.tab2list()?).len(), count)),
            EtsOperation::DeleteAllObjects => {
                table.delete_all_objects()?;
                Ok(self.whole(0, 0))
            }
        }
    }

    /// Walks from key to key until the end; each step is an operation.
    fn walk(
        &self,
        first: Option<Term>,
        step: impl Fn(&Term) -> Result<Option<Term>, BadArgument>,
    ) -> Result<(u64, u64), BadArgument> {
        let (mut key, mut steps) = (first, 0);
        while let Some(at) = key {
            key = step(&at)?;
            steps += 1;
        }
        Ok(self.whole(steps, self.job.keys.len()))
    }
}
