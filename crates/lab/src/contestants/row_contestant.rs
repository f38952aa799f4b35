//! The tables of rows of this project as contestants.

use super::{
    contestant::{
        Asked, Contestant, Entrant, Measures, Samples, Side, Started, Starter, own_version, samples,
    },
    row_bench, row_model,
    row_table::{self, RowTable, refused_by_sets},
};
use crate::{
    LabError,
    case::{Case, ContestantKind},
    measure::alone,
    workload::{RowJob, Rows},
};

impl Entrant for RowTable {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        match self.engine {
            None => "a table of type set of Tremula, in this process",
            Some(_) => "a table of type ordered_set of Tremula, in this process",
        }
    }

    fn side(&self) -> Side {
        Side::Ours
    }

    fn kinds(&self) -> &'static [ContestantKind] {
        &[ContestantKind::Rows]
    }

    fn refuses(&self, asked: &Asked<'_>) -> Option<&'static str> {
        match self.engine {
            None if asked.experiment == "ets_throughput" => refused_by_sets(asked),
            _ => None,
        }
    }

    fn start(&self, _kind: ContestantKind, _starter: &mut Starter) -> Result<Contestant, LabError> {
        Ok(Contestant::Rows(Box::new(RowTableContestant(*self))))
    }
}

/// A table as a contestant.
#[derive(Clone, Copy, Debug)]
struct RowTableContestant(RowTable);

impl Started for RowTableContestant {
    fn name(&self) -> &'static str {
        self.0.name
    }

    fn version(&self) -> String {
        own_version()
    }

    fn check_against_model(&mut self, case: &Case, seed: u64) -> Result<(), LabError> {
        let checked = row_model::check(self.0, rows_of(case), seed);
        checked.map_err(|fault| LabError::Wrong {
            engine: self.0.name,
            fault,
        })
    }
}

impl Measures<RowJob> for RowTableContestant {
    fn measure(&mut self, job: &RowJob) -> Samples {
        let measured = match job {
            RowJob::Mix(job) => row_table::measure(self.0, job),
            RowJob::Bench(job) => {
                let table = self.0.create().map_err(|error| error.to_string());
                table.and_then(|table| alone(|| row_bench::measure(&table, job)))
            }
        };
        samples(self.0.name, measured.map(|sample| vec![Ok(sample)]))
    }
}

/// The rows that the case names.
fn rows_of(case: &Case) -> Rows {
    let named = |rows: &Rows| rows.name() == case.key_set;
    let rows = Rows::ALL.into_iter().find(named);
    rows.expect("a case of tables of rows names its rows")
}
