//! The tables of rows of this project, with terms and match specifications.

use super::contestant::Asked;
use crate::{
    measure::{Lap, Sample, together_for},
    workload::{
        self, BINARY_BYTES, EtsJob, EtsMix, Kind as Operation, Rows, SELECTED_KEYS, Selected,
    },
};
use std::{hint::black_box, sync::LazyLock};
use tremula_index::Keys;
use tremula_papers::AnyEngine;
use tremula_table::{
    Access, BadArgument, Kind, MatchSpec, Options, Table, Tables, Term, WriteConcurrency,
};

/// A kind of table of this project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowTable {
    /// `table_set`, or `table_` and the name of the engine.
    pub(super) name: &'static str,
    /// The engine of an `ordered_set`; `None` for a `set`.
    pub(super) engine: Option<AnyEngine>,
}

/// Every kind: a `set`, and an `ordered_set` on each engine that only compares its keys, the
/// default engine first.
static ALL: LazyLock<Vec<RowTable>> = LazyLock::new(|| {
    let compares = |engine: &AnyEngine| engine.facts().keys == Keys::Compared;
    let engines = AnyEngine::ALL.into_iter().filter(compares);
    let ordered_sets = engines.map(|engine| RowTable {
        name: format!("table_{engine}").leak(),
        engine: Some(engine),
    });
    std::iter::once(RowTable::SET).chain(ordered_sets).collect()
});

impl RowTable {
    /// A `set`.
    pub(super) const SET: Self = Self {
        name: "table_set",
        engine: None,
    };

    /// An `ordered_set` on the default engine.
    pub(super) fn ordered_set() -> Self {
        ALL[1]
    }

    /// Every kind.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        ALL.iter().copied()
    }

    pub(super) fn create(self) -> Result<Table, BadArgument> {
        let public = Options::new()
            .access(Access::Public)
            .write_concurrency(WriteConcurrency::On);
        let options = match self.engine {
            None => public.kind(Kind::Set),
            Some(engine) => public.kind(Kind::OrderedSet).engine(engine),
        };
        Tables::new().create("table", options)
    }
}

/// Why a set cannot take part in `ets_throughput`; `None` if it can.
pub(super) fn refused_by_sets(asked: &Asked<'_>) -> Option<&'static str> {
    let steps = |mix: EtsMix| mix.needs_order();
    asked
        .workload
        .is_some_and(|workload| workload.parse().is_ok_and(steps))
        .then_some("a set does not step from keys that are not there")
}

/// Does the job with a table of this kind.
pub(super) fn measure(kind: RowTable, job: &EtsJob) -> Result<Sample, String> {
    let refused = |error: BadArgument| error.to_string();
    let table = kind.create().map_err(refused)?;
    for &key in &job.prefill {
        table.insert(row(job.rows, key)).map_err(refused)?;
    }
    let timed = together_for(job.streams.len(), job.span, |thread, lap| {
        Worker {
            table: &table,
            job,
            until_select: job.first_select(thread),
        }
        .work_off(&job.streams[thread], lap)
    });
    let faults: Result<Vec<u64>, BadArgument> = timed.results.into_iter().collect();
    let faults: u64 = faults.map_err(refused)?.into_iter().sum();
    if faults > 0 {
        return Err(format!("{faults} wrong results, expected 0"));
    }
    check(&table, job.rows)?;
    Ok(Sample::new(timed.operations, timed.elapsed))
}

/// A new row, with a binary of its own.
#[inline]
pub(super) fn row(rows: Rows, key: u32) -> Term {
    match rows {
        Rows::Int => Term::tuple([Term::from(key)]),
        Rows::IntBinary => Term::tuple([Term::from(key), Term::binary(&[0; BINARY_BYTES])]),
    }
}

/// Checks that the table has as many rows as it says, and that those of an `ordered_set` ascend.
fn check(table: &Table, rows: Rows) -> Result<(), String> {
    let refused = |error: BadArgument| error.to_string();
    let found = table.tab2list().map_err(refused)?;
    let size = table.size().map_err(refused)?;
    if found.len() != size {
        return Err(format!("size is {size} but there are {} rows", found.len()));
    }
    let ascend = || found.is_sorted_by(|one, other| one[0] < other[0]);
    if table.kind() == Kind::OrderedSet && !ascend() {
        return Err("rows are out of order".to_owned());
    }
    let width = match rows {
        Rows::Int => 1,
        Rows::IntBinary => 2,
    };
    match found.iter().find(|row| row.len() != width) {
        Some(row) => Err(format!(
            "a row has {} elements, expected {width}",
            row.len()
        )),
        None => Ok(()),
    }
}

/// How many operations a thread does before it looks at the time again.
const STRIDE: usize = 64;

/// The state of one thread.
struct Worker<'a> {
    table: &'a Table,
    job: &'a EtsJob,
    /// How many operations remain until the next select.
    until_select: u64,
}

impl Worker<'_> {
    /// Runs the stream again and again, each time with rotated keys, until the time is up. Returns
    /// how many results cannot be right.
    fn work_off(
        mut self,
        stream: &[workload::Operation],
        lap: &mut Lap<'_>,
    ) -> Result<u64, BadArgument> {
        let range = self.job.range;
        let (mut faults, mut offset) = (0, 0);
        let step = workload::rotation_step(range);
        loop {
            for stride in stream.chunks(STRIDE) {
                for operation in stride {
                    let key = workload::rotate(operation.key(), offset, range);
                    let right = self.operate(operation.kind(), key)?;
                    faults += u64::from(!right);
                }
                if !lap.done(stride.len() as u64) {
                    return Ok(black_box(faults));
                }
            }
            offset = workload::rotate(offset, step, range);
        }
    }

    /// Does one operation. Returns whether its result can be right.
    #[inline]
    fn operate(&mut self, kind: Operation, key: u32) -> Result<bool, BadArgument> {
        self.until_select -= 1;
        if self.until_select == 0 {
            self.until_select = self.job.period();
            return self.select(key);
        }
        let table = self.table;
        match kind {
            Operation::Lookup => {
                let key = Term::from(key);
                let found = table.get(&key)?;
                Ok(found.is_none_or(|row| row[0] == key))
            }
            Operation::Insert => table.insert(row(self.job.rows, key)).map(|()| true),
            Operation::Remove => table.delete_key(&Term::from(key)).map(|()| true),
            Operation::Sequence => {
                let mut key = Term::from(key);
                for _ in 0..self.job.mix.steps {
                    let Some(next) = table.next(&key)? else { break };
                    if next <= key {
                        return Ok(false);
                    }
                    key = next;
                }
                Ok(true)
            }
        }
    }

    fn select(&self, from: u32) -> Result<bool, BadArgument> {
        let Some(selects) = self.job.mix.selects else {
            return Ok(true);
        };
        let spec = spec(self.job.rows, selects.what, from)?;
        let found = self.table.select(&spec)?;
        let (first, last) = match selects.what {
            Selected::All => (0, self.job.range),
            Selected::Range => (from, from + SELECTED_KEYS),
        };
        let within = |key: &Term| *key >= first && *key < last;
        Ok(found.len() <= (last - first) as usize
            && found.first().is_none_or(within)
            && found.last().is_none_or(within))
    }
}

/// `[{{'$1'}, Guards, ['$1']}]`, built and compiled anew for each select, as in Erlang.
pub(super) fn spec(rows: Rows, what: Selected, from: u32) -> Result<MatchSpec, BadArgument> {
    let atom = |name| Term::atom(name).expect("a short name is an atom");
    let key = || atom("$1");
    let head = match rows {
        Rows::Int => Term::tuple([key()]),
        Rows::IntBinary => Term::tuple([key(), atom("_")]),
    };
    let guard = |name, bound: u32| Term::tuple([atom(name), key(), Term::from(bound)]);
    let guards = match what {
        Selected::All => Term::NIL,
        Selected::Range => Term::list([guard(">=", from), guard("<", from + SELECTED_KEYS)]),
    };
    let clause = Term::tuple([head, guards, Term::list([key()])]);
    let spec = MatchSpec::compile(&Term::list([clause]));
    Ok(spec.expect("the specification is right"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::{row_bench, row_model};
    use crate::{
        measure::Span,
        workload::{EtsBenchJob, EtsMix, EtsOperation},
    };
    use std::time::Duration;

    #[test]
    fn a_range_is_selected_whatever_the_rows_are() {
        for kind in RowTable::all() {
            for rows in Rows::ALL {
                let table = kind.create().unwrap();
                for key in 0..3000 {
                    table.insert(row(rows, key)).unwrap();
                }
                let found = |what| {
                    let spec = spec(rows, what, 700).unwrap();
                    let mut found = table.select(&spec).unwrap();
                    found.sort();
                    found
                };
                let keys = |range: std::ops::Range<u32>| range.map(Term::from).collect::<Vec<_>>();
                assert_eq!(found(Selected::Range), keys(700..1700), "{kind:?}");
                assert_eq!(found(Selected::All), keys(0..3000), "{kind:?}");
                check(&table, rows).unwrap();
            }
        }
    }

    #[test]
    fn every_table_answers_as_the_model_does() {
        for kind in RowTable::all() {
            for rows in Rows::ALL {
                assert_eq!(row_model::check(kind, rows, 5), Ok(()), "{kind:?}");
            }
        }
    }

    #[test]
    fn every_table_does_every_mix_that_it_can() {
        for kind in RowTable::all() {
            for mix in EtsMix::ALL {
                if mix.needs_order() && kind == RowTable::SET {
                    continue;
                }
                let kinds = [Operation::Lookup, Operation::Insert, Operation::Remove];
                let stream = (0..999).map(|n| workload::Operation::new(kinds[n as usize % 3], n));
                let job = EtsJob {
                    mix,
                    rows: Rows::IntBinary,
                    range: 1000,
                    prefill: (0..1000).step_by(2).collect(),
                    streams: vec![stream.collect(); 2],
                    span: Span::warmed(Duration::from_millis(2)),
                };
                assert!(measure(kind, &job).unwrap().operations > 0, "{kind:?}");
            }
        }
    }

    #[test]
    fn every_table_does_every_operation() {
        for kind in RowTable::all() {
            for rows in Rows::ALL {
                for operation in EtsOperation::ALL {
                    let job = EtsBenchJob {
                        operation,
                        rows,
                        keys: (0..1050).rev().collect(),
                        span: Span::warmed(Duration::from_micros(200)),
                    };
                    let sample = row_bench::measure(&kind.create().unwrap(), &job);
                    let sample = sample.unwrap_or_else(|fault| panic!("{kind:?}: {fault}"));
                    assert!(sample.operations > 0 && sample.elapsed > Duration::ZERO);
                }
            }
        }
    }

    #[test]
    fn a_row_of_another_width_is_wrong() {
        let table = RowTable::ordered_set().create().unwrap();
        table.insert(row(Rows::IntBinary, 1)).unwrap();
        assert!(check(&table, Rows::Int).unwrap_err().contains("2 elements"));
    }
}
