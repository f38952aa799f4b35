//! Transactions on the server, compared with a real Redis, and with the same commands one by one.

use super::redis::{commands, pipelining};
use super::{Case, ContestantKind, Experiment};
use crate::{
    Settings,
    keys::KeySet,
    workload::{Job, Transaction, TransactionJob},
};

/// The experiment `transactions`.
pub(super) struct Transactions;

impl Experiment for Transactions {
    fn name(&self) -> &'static str {
        "transactions"
    }

    fn about(&self) -> &'static str {
        "clients send transactions to 'tremula serve' and to a real Redis"
    }

    fn contestants(&self) -> ContestantKind {
        ContestantKind::Transacting
    }

    fn default_threads(&self) -> &'static [usize] {
        &[50]
    }

    fn default_keys(&self, _key_set: Option<KeySet>) -> u64 {
        100_000
    }

    fn keys_limits(&self) -> (u64, u64) {
        (1, 100_000_000)
    }

    fn is_timed(&self, _case: &Case) -> bool {
        true
    }

    fn workloads(&self) -> Vec<&'static str> {
        Transaction::ALL.map(Transaction::name).into()
    }

    fn mixes(&self) -> Vec<&'static str> {
        self.workloads()
    }

    fn groups(&self, settings: &Settings) -> Vec<Vec<Case>> {
        commands(self, settings)
    }

    fn job(&self, group: &[Case], run: usize, settings: &Settings) -> Job {
        let case = &group[0];
        Job::Transactions(TransactionJob {
            transaction: case
                .workload
                .parse()
                .expect("a case is named by its transaction"),
            pipelining: pipelining(case),
            clients: case.threads,
            keys: case.keys,
            seed: settings.seed,
            run,
            duration: settings.duration,
        })
    }
}
