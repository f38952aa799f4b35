//! The tables of the page: the figures of an experiment, and what the originals found.

use super::{
    markup::{anchor, escape, number, plural},
    study::{Panel, Study, Words, in_order},
    values,
};
use crate::{
    claims::{Claim, Original, Scaled, Verdict},
    record::Record,
    simulate::validation,
    statistics::{Ratio, Spread, ratio},
};
use std::{collections::BTreeSet, fmt::Write};

/// The contestants that others are compared with: the first of these that takes part, or else the
/// first one of the case.
const REFERENCES: [&str; 7] = [
    "locked",
    "table_locked",
    "plain_locks",
    "btreemap",
    "bw_all_off",
    "std_mpsc",
    "redis",
];

/// A table with up to this many rows is shown open.
const OPEN_ROWS: usize = 24;

/// The record that the others of a case are compared with.
fn reference<'a>(case: &[&'a Record]) -> &'a Record {
    let named = REFERENCES
        .iter()
        .find_map(|name| case.iter().find(|record| record.engine == *name));
    named.unwrap_or(&case[0])
}

/// All figures of an experiment, a row for each contestant in each case.
pub(super) fn figures(study: &Study<'_>) -> String {
    let words = Words::of(study.experiment);
    let records = &study.records;
    let has_sent = records.iter().any(|record| record.send_mops.is_some());
    let has_bytes = records.iter().any(|record| record.bytes_per_key.is_some());
    let names: BTreeSet<&str> = records
        .iter()
        .flat_map(|record| record.figures.keys().map(String::as_str))
        .collect();
    let mut heading = format!(
        "<th scope=\"col\">contestant<th scope=\"col\" class=\"n\">million {} / s\
         <th scope=\"col\" class=\"n\">least–most<th scope=\"col\" class=\"n\">± %\
         <th scope=\"col\" class=\"n\">× reference<th scope=\"col\" class=\"n\">95 % interval",
        words.operations
    );
    let mut columns = 6;
    let mut head = |name: &str| {
        write!(heading, "<th scope=\"col\" class=\"n\">{}", escape(name))
            .expect("a string takes all text");
        columns += 1;
    };
    if has_sent {
        head("million sent / s");
    }
    if has_bytes {
        head("bytes per key");
    }
    for name in &names {
        head(&name.replace('_', " "));
    }
    let mut body = String::new();
    for panel in &study.panels {
        for case in cases(panel) {
            let reference = reference(&case);
            write!(
                body,
                "<tr class=\"case\"><th scope=\"rowgroup\" colspan=\"{columns}\">{}",
                escape(&case_name(panel, case[0], words))
            )
            .expect("a string takes all text");
            if case.len() > 1 {
                write!(
                    body,
                    " <span>reference: {}</span>",
                    escape(&reference.engine)
                )
                .expect("a string takes all text");
            }
            for record in &case {
                body += &row(record, reference, has_sent, has_bytes, &names);
            }
        }
    }
    let open = if records.len() <= OPEN_ROWS {
        " open"
    } else {
        ""
    };
    format!(
        "<details class=\"figures\"{open}><summary>All figures <span>{} rows</span></summary>\
         <div class=\"scroll\" tabindex=\"0\"><table><thead><tr>{heading}</thead>\
         <tbody>{body}</tbody></table></div></details>",
        records.len()
    )
}

/// The records of a panel, case by case.
fn cases<'a>(panel: &Panel<'a>) -> Vec<Vec<&'a Record>> {
    let case = |record: &'a Record| (record.workload.as_str(), record.threads);
    in_order(panel.records.iter().map(|record| case(record)))
        .into_iter()
        .map(|one| {
            let records = panel.records.iter().copied();
            records.filter(|record| case(record) == one).collect()
        })
        .collect()
}

fn case_name(panel: &Panel<'_>, record: &Record, words: Words) -> String {
    let mut name = panel.name();
    if panel.has_slices {
        name = name.replacen(panel.workload, &record.workload, 1);
    }
    let threads = match record.threads {
        1 => words.threads.trim_end_matches('s'),
        _ => words.threads,
    };
    let mut text = format!("{name} · {} {threads}", record.threads);
    if values::is_oversubscribed(record) {
        let cores = record.made_by.machine.cores;
        write!(text, " » oversubscribed on {cores} cores").expect("a string takes all text");
    }
    text
}

fn row(
    record: &Record,
    reference: &Record,
    has_sent: bool,
    has_bytes: bool,
    names: &BTreeSet<&str>,
) -> String {
    let mark = if record.is_disturbed() {
        " <abbr class=\"mark\" title=\"disturbed by other work\">!</abbr>"
    } else {
        ""
    };
    let side = if super::chart::look::is_ours(&record.engine) {
        "ours"
    } else {
        "rival"
    };
    let mut text = format!(
        "<tr class=\"{side}\"><th scope=\"row\">{}{mark}<td class=\"n\">{}",
        escape(&record.engine),
        number(record.mops)
    );
    let several = record.runs.len() > 1;
    let spread = Spread::of(&record.runs).filter(|_| several);
    let mut cell = |content: Option<String>| {
        let content = content.unwrap_or_else(|| "–".to_owned());
        write!(text, "<td class=\"n\">{content}").expect("a string takes all text");
    };
    cell(spread.map(|spread| format!("{}–{}", number(spread.least), number(spread.most))));
    let half = spread.and_then(|spread| spread.half_width(record.mops));
    cell(half.map(|half| format!("{:.0}", half * 100.0)));
    let compared = ratio(&record.runs, &reference.runs).ok();
    let is_itself = record.engine == reference.engine;
    cell(compared.map(|ratio| {
        if is_itself {
            "1".to_owned()
        } else {
            number(ratio.value)
        }
    }));
    cell(compared.filter(|_| !is_itself).and_then(interval));
    if has_sent {
        cell(record.send_mops.map(number));
    }
    if has_bytes {
        cell(record.bytes_per_key.map(number));
    }
    for name in names {
        cell(record.figures.get(*name).copied().map(number));
    }
    text
}

fn interval(ratio: Ratio) -> Option<String> {
    let interval = ratio.interval?;
    Some(format!(
        "{}–{}",
        number(interval.low),
        number(interval.high)
    ))
}

/// What the originals have published by number of threads, beside what was simulated; empty if
/// nothing can be compared.
pub(super) fn published(study: &Study<'_>) -> String {
    let words = Words::of(study.experiment);
    let mut body = String::new();
    for panel in &study.panels {
        for (curve, points) in panel.published() {
            for point in &points[1..] {
                let (class, said) = if point.agrees() {
                    ("agrees", "agrees")
                } else {
                    ("differs", "differs")
                };
                write!(
                    body,
                    "<tr class=\"{class}\"><td data-label=\"What\">{}, {} {}<small>{}</small>\
                     <td class=\"n\" data-label=\"Published\">× {}\
                     <td class=\"n\" data-label=\"Simulated\">× {}\
                     <td data-label=\"Verdict\"><b>{said}</b><small>{} times as much</small>\
                     <td data-label=\"Source\"><small>{}: {}</small>",
                    escape(curve.engine),
                    point.threads,
                    words.threads,
                    escape(&panel.name()),
                    number(point.published),
                    number(point.here),
                    number(point.here / point.published),
                    escape(curve.what),
                    escape(curve.source.name),
                )
                .expect("a string takes all text");
            }
        }
    }
    if body.is_empty() {
        return body;
    }
    format!(
        "<details class=\"figures\"><summary>Published and simulated, relative to the fewest {}\
         </summary><p class=\"about\">They agree if both rise or both fall, or if they are within \
         a factor of {}.</p><div class=\"scroll\" tabindex=\"0\"><table class=\"claims\">\
         <thead><tr><th scope=\"col\">what<th scope=\"col\" class=\"n\">published\
         <th scope=\"col\" class=\"n\">simulated<th scope=\"col\">verdict\
         <th scope=\"col\">source</thead><tbody>{body}</tbody></table></div></details>",
        words.threads,
        Scaled::NEAR
    )
}

/// What the profiles of machines predict beside what was measured on them; empty if no record was
/// both.
pub(super) fn validation(records: &[Record]) -> String {
    let machines = in_order(records.iter().filter_map(Record::simulated_on));
    let mut html = String::new();
    for machine in machines {
        let all = validation::compared(records, machine);
        if all.is_empty() {
            continue;
        }
        write!(
            html,
            "<h3>{}</h3><p class=\"about\">{}.</p><div class=\"scroll\" tabindex=\"0\">\
             <table class=\"claims\"><thead><tr><th scope=\"col\">case\
             <th scope=\"col\" class=\"n\">predicted<th scope=\"col\" class=\"n\">measured\
             <th scope=\"col\">verdict</thead><tbody>",
            escape(machine),
            validation::how_near(&all, |_| true)
        )
        .expect("a string takes all text");
        for one in &all {
            let (class, said, why) = if one.is_near() {
                ("agrees", "within 25 %", "")
            } else {
                let why = one.reason().unwrap_or("The reason is not known.");
                ("differs", "off", why)
            };
            write!(
                html,
                "<tr class=\"{class}\"><td data-label=\"Case\">{}, {}\
                 <td class=\"n\" data-label=\"Predicted\">{}\
                 <td class=\"n\" data-label=\"Measured\">{}\
                 <td data-label=\"Verdict\"><b>{said}</b>, × {} <small>{}</small>",
                escape(&one.what),
                plural(one.threads, "thread"),
                number(one.predicted),
                number(one.measured),
                number(one.ratio()),
                escape(why)
            )
            .expect("a string takes all text");
        }
        html += "</tbody></table></div>";
    }
    if html.is_empty() {
        return html;
    }
    format!(
        "<section id=\"validation\"><h2>Predicted and measured</h2><p class=\"question\">What \
         the simulator predicts of a machine, beside what that machine does, in million operations \
         a second. Of the measured runs the best one counts that had the machine to itself.</p>{html}</section>"
    )
}

/// The original's number, or on which side of 1 it lies.
fn original(original: Original) -> String {
    match original {
        Original::Figure(figure) => number(figure),
        Original::AboveOne => "&gt; 1".to_owned(),
        Original::BelowOne => "&lt; 1".to_owned(),
    }
}

/// What the originals found, and the verdict of these results.
pub(super) fn claims(claims: &[(&Claim, Verdict)], with_experiment: bool) -> String {
    let mut body = String::new();
    for (claim, verdict) in claims {
        let experiment = if with_experiment {
            format!(
                "<a class=\"experiment\" href=\"#{}\">{}</a> ",
                anchor(claim.experiment),
                claim.experiment
            )
        } else {
            String::new()
        };
        let (class, said, here, why) = match verdict {
            Verdict::Agrees(finding) | Verdict::Differs(finding) => {
                let agrees = matches!(verdict, Verdict::Agrees(_));
                let mut here = number(finding.here);
                if let Some(interval) = finding.interval {
                    write!(
                        here,
                        " <small>{}–{}</small>",
                        number(interval.low),
                        number(interval.high)
                    )
                    .expect("a string takes all text");
                }
                let (class, said) = if agrees {
                    ("agrees", "agrees here")
                } else {
                    ("differs", "differs here")
                };
                (class, said, here, finding.remarks.join("; "))
            }
            Verdict::NotMeasured(why) => {
                let said = "not measured in these results";
                ("missing", said, "–".to_owned(), why.clone())
            }
        };
        write!(
            body,
            "<tr class=\"{class}\"><td data-label=\"Claim\">{experiment}{}\
             <small>{} ({})</small>\
             <td class=\"n\" data-label=\"Original\">{}\
             <td class=\"n\" data-label=\"Here\">{here}\
             <td data-label=\"Verdict\"><b>{said}</b><small>{}</small>",
            escape(claim.says),
            escape(&claim.measure.to_string()),
            escape(&claim.rule.to_string()),
            original(claim.original),
            escape(&why),
        )
        .expect("a string takes all text");
        write!(
            body,
            "<td data-label=\"Source\"><small>{}</small>",
            escape(claim.source.name)
        )
        .expect("a string takes all text");
    }
    format!(
        "<div class=\"scroll\" tabindex=\"0\"><table class=\"claims\"><thead><tr>\
         <th scope=\"col\">what was found<th scope=\"col\" class=\"n\">original\
         <th scope=\"col\" class=\"n\">here<th scope=\"col\">verdict\
         <th scope=\"col\">source</thead><tbody>{body}</tbody></table></div>"
    )
}
