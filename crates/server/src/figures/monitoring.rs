//! That the alert rules and the board of `packaging/monitoring` ask for metrics that there are, and
//! that the operator finds each alert explained.

use super::definition::{Definition, Kind, Unit};
use super::definitions;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const ALERTS: &str = "packaging/monitoring/tremula-alerts.yml";
const TESTS: &str = "packaging/monitoring/tremula-alerts.test.yml";
const BOARD: &str = "packaging/monitoring/tremula-board.json";
const OPERATIONS: &str = "docs/operations.md";

/// A file of the workspace.
fn text_of(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// How samples of a figure are called, in the text form of OpenMetrics: in base units, whose name
/// ends that of the metric.
fn samples(name: &str, kind: Kind, unit: Unit) -> Vec<String> {
    let (own, base) = match unit {
        Unit::None => ("", ""),
        Unit::Bytes => ("_bytes", "_bytes"),
        Unit::Seconds => ("_seconds", "_seconds"),
        Unit::Days => ("_days", "_seconds"),
        Unit::Microseconds => ("_microseconds", "_seconds"),
        Unit::Thousandths => ("_thousandths", "_ratio"),
    };
    let name = name.strip_suffix(own).unwrap_or(name);
    let full = format!("tremula_{name}{base}");
    match kind {
        Kind::Counter => vec![format!("{full}_total")],
        Kind::Gauge => vec![full],
        Kind::Histogram => ["_bucket", "_count", "_sum"]
            .map(|suffix| format!("{full}{suffix}"))
            .into(),
        Kind::Text => vec![format!("{full}_info")],
    }
}

fn all_samples() -> BTreeSet<String> {
    definitions()
        .flat_map(|definition| match definition {
            Definition::One(figure) => samples(figure.name, figure.kind, figure.unit),
            Definition::Each(family) => family
                .members
                .iter()
                .flat_map(|member| samples(member.name, member.kind, member.unit))
                .collect(),
        })
        .collect()
}

/// The words of a text that are names of metrics.
fn metrics(text: &str) -> BTreeSet<String> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.split(|letter| !is_part(letter))
        .filter(|word| {
            word.strip_prefix("tremula_")
                .is_some_and(|rest| !rest.is_empty())
        })
        .map(str::to_owned)
        .collect()
}

/// Every text of this name in a document.
fn texts_of<'a>(value: &'a serde_json::Value, name: &str, found: &mut Vec<&'a str>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (field, value) in fields {
                match value.as_str() {
                    Some(text) if field == name => found.push(text),
                    _ => texts_of(value, name, found),
                }
            }
        }
        serde_json::Value::Array(elements) => {
            for element in elements {
                texts_of(element, name, found);
            }
        }
        _ => (),
    }
}

#[test]
fn alerts_and_board_ask_for_metrics_that_there_are() {
    let known = all_samples();
    let board: serde_json::Value =
        serde_json::from_str(&text_of(BOARD)).expect("the board is JSON");
    let mut asked = Vec::new();
    texts_of(&board, "expr", &mut asked);
    texts_of(&board, "query", &mut asked);
    assert!(asked.len() > 30, "{}", asked.len());
    let used = metrics(&[ALERTS, TESTS, OPERATIONS].map(text_of).concat());
    let used: BTreeSet<_> = used.union(&metrics(&asked.join("\n"))).cloned().collect();
    assert!(used.len() > 30, "{}", used.len());
    let unknown: Vec<_> = used.difference(&known).collect();
    assert!(unknown.is_empty(), "no figure has these names: {unknown:?}");
}

#[test]
fn every_alert_is_tested_and_explained() {
    let (rules, tests, operations) = (text_of(ALERTS), text_of(TESTS), text_of(OPERATIONS));
    let alerts: Vec<&str> = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
        .collect();
    assert!(alerts.len() > 10, "{alerts:?}");
    for alert in &alerts {
        assert!(
            tests.contains(&format!("alertname: {alert}\n        exp_alerts:")),
            "{alert} has no test in which it fires"
        );
        assert!(
            operations.contains(&format!("\n### {alert}\n")),
            "docs/operations.md does not explain {alert}"
        );
        let link = format!("runbook: docs/operations.md#{}\n", alert.to_lowercase());
        assert!(
            rules.contains(&link),
            "{alert} does not lead to its section"
        );
    }
    let explained = operations.matches("\n### Tremula").count();
    assert_eq!(
        explained,
        alerts.len(),
        "an alert is explained that is gone"
    );
}
