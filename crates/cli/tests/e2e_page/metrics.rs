//! The metrics, read as strictly as the standard has them.

use crate::support::http::{WithPage, get, with_page};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Reads a text of OpenMetrics, and fails if anything in it is not as the standard has it. Returns
/// the samples by their names with labels.
fn open_metrics(text: &str) -> BTreeMap<String, f64> {
    let (mut samples, mut families) = (BTreeMap::new(), BTreeMap::new());
    let text = text.strip_suffix("# EOF\n").expect("the end");
    let is_name = |name: &str| {
        let letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        name.starts_with("tremula_") && name.chars().all(letter)
    };
    let mut family = (String::new(), String::new());
    let mut last_bucket: Option<(String, f64)> = None;
    for line in text.split_terminator('\n') {
        if let Some(rest) = line.strip_prefix("# ") {
            let words: Vec<&str> = rest.splitn(3, ' ').collect();
            let [what, name, value] = words[..] else {
                panic!("{line}");
            };
            assert!(is_name(name), "{line}");
            match what {
                "TYPE" => {
                    let kinds = ["counter", "gauge", "histogram", "info"];
                    assert!(kinds.contains(&value), "{line}");
                    family = (name.to_owned(), value.to_owned());
                    assert!(
                        families.insert(name.to_owned(), false).is_none(),
                        "{name} twice"
                    );
                    let suffixes = ["_total", "_info", "_count", "_sum", "_bucket"];
                    assert!(
                        !suffixes.iter().any(|suffix| name.ends_with(suffix)),
                        "{name}"
                    );
                }
                "UNIT" => assert!(
                    family.0 == name && name.ends_with(&format!("_{value}")),
                    "{line}"
                ),
                "HELP" => {
                    assert_eq!(family.0, name);
                    families.insert(name.to_owned(), true);
                }
                _ => panic!("{line}"),
            }
            continue;
        }
        let (key, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line:?}"));
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
        let (name, labels) = key.split_once('{').unwrap_or((key, "}"));
        let labels = labels.strip_suffix('}').unwrap_or_else(|| panic!("{line}"));
        let suffix = name
            .strip_prefix(&family.0[..])
            .unwrap_or_else(|| panic!("{line}"));
        let allowed: &[&str] = match &family.1[..] {
            "counter" => &["_total"],
            "info" => &["_info"],
            "histogram" => &["_bucket", "_count", "_sum"],
            _ => &[""],
        };
        assert!(allowed.contains(&suffix), "{line}");
        if family.1 != "gauge" {
            assert!(value >= 0.0, "{line}");
        }
        let (mut rest, mut names) = (labels, BTreeSet::new());
        while !rest.is_empty() {
            let (label, behind) = rest.split_once("=\"").unwrap_or_else(|| panic!("{line}"));
            assert!(names.insert(label.to_owned()), "{line}");
            let mut escaped = false;
            let end = behind.find(|letter: char| {
                let ends = letter == '"' && !escaped;
                escaped = letter == '\\' && !escaped;
                ends
            });
            rest = &behind[end.unwrap_or_else(|| panic!("{line}")) + 1..];
            rest = rest.strip_prefix(',').unwrap_or(rest);
        }
        if suffix == "_bucket" {
            let (of, bound) = labels
                .rsplit_once("le=\"")
                .unwrap_or_else(|| panic!("{line}"));
            assert!(bound == "+Inf\"" || bound.trim_end_matches('"').parse::<f64>().is_ok());
            let before = last_bucket.take().filter(|(before, _)| before == of);
            assert!(
                before.is_none_or(|(_, before)| before <= value),
                "{line} falls"
            );
            last_bucket = Some((of.to_owned(), value));
        }
        assert!(
            samples.insert(key.to_owned(), value).is_none(),
            "{key} twice"
        );
    }
    assert!(families.values().all(|has_help| *has_help));
    samples
}

#[test]
fn the_metrics_are_open_metrics_and_those_of_info() {
    let WithPage { server, page, .. } = with_page(&[]);
    let mut client = server.connect();
    for number in 0..100 {
        client.text(&format!("set key:{number} {number}"));
    }
    client.text("nosuch");
    let answer = get(page, "/metrics");
    let kind = &answer.headers["content-type"];
    assert!(
        kind.starts_with("application/openmetrics-text; version=1.0.0"),
        "{kind}"
    );
    let samples = open_metrics(&answer.body);
    let of = |key: &str| {
        let value = samples.get(key).copied();
        value.unwrap_or_else(|| panic!("no {key} in {:?}", samples.keys()))
    };
    assert_eq!(of("tremula_command_calls_total{command=\"set\"}"), 100.0);
    assert_eq!(
        of("tremula_command_times_seconds_count{command=\"set\"}"),
        100.0
    );
    assert_eq!(
        of("tremula_command_times_seconds_bucket{command=\"set\",le=\"+Inf\"}"),
        100.0
    );
    assert!(of("tremula_command_times_seconds_sum{command=\"set\"}") > 0.0);
    assert_eq!(of("tremula_database_keys{database=\"0\"}"), 100.0);
    assert_eq!(of("tremula_errors_total{code=\"ERR\"}"), 1.0);
    assert!(of("tremula_used_memory_bytes") > 0.0);
    assert!(samples.len() > 120, "{}", samples.len());
    assert_eq!(get(page, "/health").json(), json!({ "status": "healthy" }));
    assert_eq!(get(page, "/ready").json(), json!({ "status": "serving" }));
}
