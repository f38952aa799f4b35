//! What each optimisation of the OpenBw-Tree is worth: trees with no optimisation, with one, and
//! with all of them run the workloads of `ycsb`.

use super::{Case, Experiment, ycsb::Ycsb};
use crate::{
    Settings,
    keys::KeySet,
    workload::{Distribution, Job},
};

/// The experiment `bw_tree_ablation`.
pub(super) struct BwTreeAblation;

impl BwTreeAblation {
    /// The settings, with the key sets filled in.
    fn settings(&self, settings: &Settings) -> Settings {
        Settings {
            key_sets: super::chosen(&settings.key_sets, self.default_key_sets()),
            ..settings.clone()
        }
    }
}

impl Experiment for BwTreeAblation {
    fn name(&self) -> &'static str {
        crate::contestants::BwVariant::EXPERIMENT
    }

    fn about(&self) -> &'static str {
        "the workloads of ycsb on bw_tree with none, one, and all of its optimisations"
    }

    fn default_threads(&self) -> &'static [usize] {
        &[1, 2]
    }

    fn is_timed(&self, case: &Case) -> bool {
        Ycsb.is_timed(case)
    }

    fn workloads(&self) -> Vec<&'static str> {
        Ycsb.workloads()
    }

    fn mixes(&self) -> Vec<&'static str> {
        Ycsb.mixes()
    }

    fn key_sets(&self) -> &'static [KeySet] {
        Ycsb.key_sets()
    }

    fn default_key_sets(&self) -> &'static [KeySet] {
        &[KeySet::RandInt]
    }

    fn distributions(&self) -> &'static [Distribution] {
        Ycsb.distributions()
    }

    fn groups(&self, settings: &Settings) -> Vec<Vec<Case>> {
        let mut settings = self.settings(settings);
        settings
            .threads
            .get_or_insert_with(|| self.default_threads().to_vec());
        Ycsb.groups(&settings)
    }

    fn job(&self, group: &[Case], run: usize, settings: &Settings) -> Job {
        Ycsb.job(group, run, settings)
    }
}
