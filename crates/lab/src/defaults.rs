//! The defaults of a run in words, for `--help` and the README. All come from the experiments and
//! from [`Settings`].

use crate::{
    Settings,
    experiments::{self, Experiment},
    keys::KeySet,
};
use std::{fmt::Display, sync::LazyLock};

/// The value that most experiments have, then the other values with their experiments.
fn by_value(value: impl Fn(&dyn Experiment) -> Option<String>) -> String {
    let mut values: Vec<(String, Vec<&str>)> = Vec::new();
    for experiment in experiments::ALL {
        let Some(value) = value(experiment) else {
            continue;
        };
        match values.iter_mut().find(|(other, _)| *other == value) {
            Some((_, names)) => names.push(experiment.name()),
            None => values.push((value, vec![experiment.name()])),
        }
    }
    values.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    let parts = values.iter().enumerate();
    let parts = parts.map(|(place, (value, names))| match place {
        0 => value.clone(),
        _ => format!("{}: {value}", names.join(", ")),
    });
    parts.collect::<Vec<_>>().join("; ")
}

fn list(items: impl IntoIterator<Item = impl Display>) -> String {
    let items: Vec<_> = items.into_iter().map(|item| item.to_string()).collect();
    items.join(",")
}

/// The default among all choices; `None` where there is no choice.
fn choice<T: Display + PartialEq>(all: &[T], default: &[T]) -> Option<String> {
    match all {
        [] => None,
        _ if all == default => Some("all".to_owned()),
        _ => Some(list(default)),
    }
}

/// The default of `--threads`.
pub(crate) fn threads() -> String {
    by_value(|experiment| Some(experiment.default_threads_in_words()))
}

/// The default of `--keys`.
pub(crate) fn keys() -> String {
    let usual = KeySet::RandInt.default_keys();
    let other = KeySet::ALL
        .into_iter()
        .filter(|set| set.default_keys() != usual)
        .map(|set| format!("; {set}: {}", set.default_keys()));
    let by_experiment = by_value(|experiment| Some(experiment.default_keys(None).to_string()));
    let (first, rest) = by_experiment
        .split_once("; ")
        .unwrap_or((&by_experiment, ""));
    format!("{first}{}; {rest}", other.collect::<String>())
}

/// The default of `--key-set`.
pub(crate) fn key_sets() -> String {
    by_value(|experiment| choice(experiment.key_sets(), experiment.default_key_sets()))
}

/// The default of `--distribution`.
pub(crate) fn distributions() -> String {
    by_value(|experiment| {
        choice(
            experiment.distributions(),
            experiment.default_distributions(),
        )
    })
}

/// The default of `--seconds`.
pub(crate) fn seconds() -> &'static str {
    static SECONDS: LazyLock<String> =
        LazyLock::new(|| Settings::DURATION.as_secs_f64().to_string());
    &SECONDS
}

/// A sentence of `--help`, followed by the default.
pub(crate) fn help(sentence: &str, default: &str) -> String {
    format!("{sentence} [default: {default}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// To change a default, change it in the code, and copy the rows that this test prints.
    #[test]
    fn the_readme_has_the_defaults_of_the_code() {
        let readme = include_str!("../README.md");
        let mut stale = Vec::new();
        for (flag, default) in [
            ("--threads", threads()),
            ("--keys", keys()),
            ("--key-set", key_sets()),
            ("--distribution", distributions()),
            ("--seconds", seconds().to_owned()),
            ("--runs", Settings::RUNS.to_string()),
            ("--repeats", Settings::REPEATS.to_string()),
            ("--seed", Settings::SEED.to_string()),
        ] {
            let row = readme
                .lines()
                .find(|line| line.starts_with(&format!("| `{flag} ")));
            let cell = row.and_then(|row| row.trim_end_matches(" |").rsplit(" | ").next());
            if cell != Some(&default) {
                stale.push(format!("{flag}: {default}"));
            }
        }
        assert!(stale.is_empty(), "{stale:#?}");
    }

    #[test]
    fn what_most_have_comes_first_and_the_others_name_themselves() {
        let words = threads();
        assert!(words.starts_with("1,2,8; "), "{words}");
        assert!(words.contains("signals: 1,2,4,16,64"), "{words}");
        assert!(
            keys().starts_with("5000000; email: 2000000; "),
            "{}",
            keys()
        );
        assert_eq!(distributions(), "all; batched_get: uniform");
    }
}
