//! The command that repeats a measurement.

use super::study::{Study, in_order};
use crate::{
    contestants::{Side, side_of},
    experiments::{self, Experiment},
    record::Record,
};

/// A command for each combination of settings that the study's records were made with.
pub(super) fn commands(study: &Study<'_>) -> Vec<String> {
    let setting = |record: &Record| {
        let configuration = &record.made_by.configuration;
        (
            configuration.engines.clone(),
            configuration.seconds.map(f64::to_bits),
            record.keys,
            record.runs.len(),
            record.made_by.seed,
        )
    };
    let settings = in_order(study.records.iter().map(|record| setting(record)));
    let experiment = experiments::find(study.experiment).ok();
    let mut commands = Vec::new();
    for one in settings {
        let records = study.records.iter().copied();
        let records: Vec<_> = records.filter(|record| setting(record) == one).collect();
        let command = command(study.experiment, experiment, &records);
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    commands
}

fn command(name: &str, experiment: Option<&dyn Experiment>, records: &[&Record]) -> String {
    let first = records[0];
    let made_by = &first.made_by;
    let engines = &made_by.configuration.engines;
    let mut text = format!("tremula-lab run {name} --engines {}", engines.join(","));
    let mut threads = in_order(records.iter().map(|record| record.threads));
    threads.sort_unstable();
    let mut list = |flag: &str, values: Vec<String>| {
        if !values.is_empty() {
            text += &format!(" {flag} {}", values.join(","));
        }
    };
    list(
        "--threads",
        threads.iter().map(ToString::to_string).collect(),
    );
    list("--keys", vec![first.keys.to_string()]);
    if let Some(experiment) = experiment {
        let offered = experiment.mixes();
        let mix = |record: &&Record| {
            let is_of = |mix: &&str| {
                record.workload == *mix
                    || record.workload.strip_prefix(mix).is_some_and(|slice| {
                        let number = slice.strip_prefix('_');
                        number.is_some_and(|digits| digits.parse::<u8>().is_ok())
                    })
            };
            // The mix with exactly this name, or else the one whose slice this is.
            let whole = offered.iter().copied().find(|mix| record.workload == *mix);
            whole.or_else(|| offered.iter().copied().find(is_of))
        };
        let mixes = in_order(records.iter().filter_map(mix));
        list("--mixes", mixes.iter().map(ToString::to_string).collect());
        let sets: Vec<_> = experiment.key_sets().iter().map(|set| set.name()).collect();
        let of_sets = records.iter().map(|record| record.key_set.as_str());
        let chosen = in_order(of_sets.filter(|set| sets.contains(set)));
        list(
            "--key-set",
            chosen.iter().map(ToString::to_string).collect(),
        );
        if !experiment.distributions().is_empty() {
            let drawn = records
                .iter()
                .filter_map(|record| record.distribution.clone());
            list("--distribution", in_order(drawn));
        }
        let kinds: Vec<_> = experiment
            .messages()
            .iter()
            .map(|kind| kind.name())
            .collect();
        let sent = records.iter().map(|record| record.key_set.as_str());
        let chosen = in_order(sent.filter(|kind| kinds.contains(kind)));
        list(
            "--messages",
            chosen.iter().map(ToString::to_string).collect(),
        );
    }
    let seconds = made_by.configuration.seconds;
    list(
        "--seconds",
        seconds.iter().map(ToString::to_string).collect(),
    );
    list("--runs", vec![first.runs.len().to_string()]);
    list("--seed", vec![made_by.seed.to_string()]);
    text
}

/// Whether some of these contestants need a build with the rivals.
pub(super) fn needs_rivals(study: &Study<'_>) -> bool {
    let mut engines = study.records.iter().map(|record| &record.engine);
    engines.any(|engine| side_of(engine) == Some(Side::Rival))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::some_record;

    #[test]
    fn a_command_names_what_was_chosen_and_nothing_that_is_not_offered() {
        let mut records = vec![
            some_record("lookup", 8, "locked", 1.0),
            some_record("update1", 1, "locked", 1.0),
        ];
        for record in &mut records {
            record.made_by.configuration.engines = vec!["locked".to_owned(), "art".to_owned()];
            record.made_by.configuration.seconds = Some(0.5);
        }
        let studies = Study::all(&records);
        assert_eq!(
            commands(&studies[0]),
            [
                "tremula-lab run ordered_mix --engines locked,art --threads 1,8 --keys 1048576 \
              --mixes lookup,update1 --seconds 0.5 --runs 3 --seed 42"
            ]
        );
    }

    #[test]
    fn what_was_measured_with_other_settings_has_a_command_of_its_own() {
        let mut records = vec![
            some_record("phases_01", 8, "locked", 1.0),
            some_record("phases_02", 8, "locked", 1.0),
        ];
        records[0].experiment = "signals".to_owned();
        records[1].experiment = "signals".to_owned();
        let studies = Study::all(&records);
        let commands_of_one = commands(&studies[0]);
        assert_eq!(commands_of_one.len(), 1);
        assert!(
            commands_of_one[0].contains(" --mixes phases "),
            "{commands_of_one:?}"
        );
        assert!(!commands_of_one[0].contains("--messages"));
        records[1].keys = 5;
        assert_eq!(commands(&Study::all(&records)[0]).len(), 2);
        records[1].experiment = "something_new".to_owned();
        let unknown = commands(&Study::all(&records)[1]).join("");
        assert!(
            unknown.starts_with("tremula-lab run something_new --engines"),
            "{unknown}"
        );
    }
}
