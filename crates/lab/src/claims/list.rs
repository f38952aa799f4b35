//! The claims, read from `data/claims.tsv`, which explains its fields.

use super::{Claim, Field, Measure, Original, Pick, Rule, Source, Threads};
use std::{collections::BTreeMap, sync::LazyLock};

const TEXT: &str = include_str!("../../data/claims.tsv");

/// Every claim.
pub static ALL: LazyLock<Vec<Claim>> = LazyLock::new(|| read(TEXT));

/// Parses the claims of a text.
///
/// # Panics
///
/// A line is neither a source nor a claim. The text is part of the program, and a test reads it.
fn read(text: &'static str) -> Vec<Claim> {
    let mut sources = BTreeMap::new();
    let mut claims = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        match *fields {
            ["source", key, cores, name] => {
                let cores = number(cores) as usize;
                sources.insert(key, Source { name, cores });
            }
            [
                "claim",
                experiment,
                source,
                measure,
                original,
                rule,
                says,
                ref why @ ..,
            ] => {
                claims.push(Claim {
                    experiment,
                    says,
                    source: sources[source],
                    original: match original {
                        ">1" => Original::AboveOne,
                        "<1" => Original::BelowOne,
                        figure => Original::Figure(number(figure)),
                    },
                    measure: match measure.split_once(" | ") {
                        Some((above, below)) => Measure::Ratio(pick(above), pick(below)),
                        None => Measure::Value(pick(measure)),
                    },
                    rule: match rule.split_once(' ') {
                        Some(("within", factor)) => Rule::Within(number(factor)),
                        _ if rule == "at_most" => Rule::AtMost,
                        _ if rule == "same_side" => Rule::SameSide,
                        _ => panic!("'{rule}' is no rule"),
                    },
                    why: why.first().unwrap_or(&""),
                });
            }
            _ => panic!("this is no claim: {line}"),
        }
    }
    claims
}

/// A figure of a record: workload, key set, contestant, threads, field.
fn pick(words: &'static str) -> Pick {
    let words: Vec<&str> = words.split(' ').collect();
    let [workload, key_set, engine, threads, field] = *words else {
        panic!("these are not the five words of a figure: {words:?}");
    };
    Pick {
        workload,
        key_set: if key_set == "-" { "" } else { key_set },
        engine,
        threads: match threads {
            "cores" => Threads::Cores,
            threads => Threads::Just(number(threads) as usize),
        },
        field: match field {
            "mops" => Field::Mops,
            "send_mops" => Field::SendMops,
            "bytes_per_key" => Field::BytesPerKey,
            figure => Field::Figure(figure),
        },
    }
}

/// A number, or a ratio of two.
fn number(text: &str) -> f64 {
    let parse = |text: &str| -> f64 { text.parse().expect("a claim's number is one") };
    text.split_once('/')
        .map_or_else(|| parse(text), |(above, below)| parse(above) / parse(below))
}
