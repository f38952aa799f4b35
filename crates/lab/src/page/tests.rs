use super::*;
use crate::record::{Moment, tests::some_record};
use std::collections::BTreeMap;

fn of(experiment: &str, workload: &str, threads: usize, engine: &str, mops: f64) -> Record {
    let mut record = some_record(workload, threads, engine, mops);
    record.experiment = experiment.to_owned();
    record.made_by.machine.cores = 2;
    record
}

fn svg_ids(html: &str) -> Vec<&str> {
    let starts = html.split("<svg id=\"").skip(1);
    starts
        .map(|rest| rest.split_once('"').expect("the id ends").0)
        .collect()
}

#[test]
fn every_experiment_has_a_section_a_chart_a_table_and_a_command() {
    let mut records = Vec::new();
    for experiment in experiments::ALL {
        let workload = experiment.workloads()[0];
        for engine in ["ca_tree", "locked"] {
            let mut record = of(experiment.name(), workload, 1, engine, 2.0);
            record.bytes_per_key = Some(20.0);
            records.push(record);
        }
    }
    let html = page(records, "2026-11-22");
    let ids = svg_ids(&html);
    for experiment in experiments::ALL {
        let name = anchor(experiment.name());
        assert!(html.contains(&format!("<section id=\"{name}\">")), "{name}");
        assert!(html.contains(&format!("href=\"#{name}\"")), "{name}");
        assert!(ids.contains(&format!("chart-{name}-1").as_str()), "{name}");
        let command = format!("tremula-lab run {} --engines", experiment.name());
        assert!(html.contains(&command), "{command}");
    }
    assert_eq!(in_order(ids.iter()).len(), ids.len(), "an id stands twice");
    assert_eq!(html.matches("<svg").count(), html.matches("</svg>").count());
    assert_eq!(
        html.matches("class=\"unit\"").count(),
        html.matches("class=\"chart lines\"").count() * 2
            + html.matches("class=\"chart bars\"").count(),
        "an axis has no unit"
    );
}

#[test]
fn the_kind_of_chart_follows_from_what_was_measured() {
    let mut records = vec![
        of("ordered_mix", "lookup", 1, "ca_tree", 2.0),
        of("ordered_mix", "lookup", 8, "ca_tree", 3.0),
        of("ordered_mix", "update100", 2, "ca_tree", 3.0),
    ];
    let mut over_time = of("adaptation", "phases_of_use", 2, "ca_tree", 1.0);
    over_time.series = ["fill", "fill", "hot_range"]
        .into_iter()
        .enumerate()
        .map(|(at, phase)| Moment {
            seconds: at as f64 + 1.0,
            phase: phase.to_owned(),
            mops: 1.5,
            figures: BTreeMap::from([("base_nodes".to_owned(), 4.0), ("x".to_owned(), 1.0)]),
        })
        .collect();
    records.push(over_time);
    let mut latency = of("shard_cache", "read_64", 2, "affinity", 1.0);
    for (name, value) in [("p50", 300.0), ("p99", 900.0), ("p99.9", 20_000.0)] {
        let name = format!("request_ns_{name}");
        latency.figures.insert(name, value);
    }
    records.push(latency);
    for slice in 1..=3 {
        let workload = format!("phases_{slice:02}");
        records.push(of("signals", &workload, slice, "mailbox_auto", 1.0));
    }
    let html = page(records, "2026-11-22");
    let kind = |id: &str| {
        let (_, rest) = html.split_once(&format!("<svg id=\"{id}\"")).expect(id);
        rest.split_once("</svg>").expect("the end").0.to_owned()
    };
    let lines = kind("chart-ordered-mix-1");
    assert!(lines.contains("class=\"chart lines\"") && lines.contains("more threads than cores"));
    assert!(lines.contains("million operations per second") && lines.contains("(of 2 cores)"));
    assert!(lines.contains(
        "<title>ca_tree, 8 threads: 3.00 million operations per second (2.70 to 3.30 in 3 runs); \
         more threads than cores</title>"
    ));
    assert!(kind("chart-ordered-mix-2").contains("class=\"chart bars\""));
    let time = kind("chart-adaptation-1");
    assert!(time.contains(">hot range</text>") && time.contains(">seconds</text>"));
    assert!(kind("chart-adaptation-2").contains(">base nodes</text>"));
    assert!(!html.contains("chart-adaptation-3"));
    let percentiles = kind("chart-shard-cache-2");
    assert!(percentiles.contains(">99.9 %</text>") && percentiles.contains("nanoseconds"));
    assert!(percentiles.contains("affinity: 99 % took at most 900 nanoseconds"));
    let slices = kind("chart-signals-1");
    assert!(slices.contains("mailbox_auto, 3 senders, until 3.00 slices of the time"));
    assert!(!html.contains("chart-signals-2"));
}

#[test]
fn with_many_contestants_the_best_rivals_have_names_and_the_others_are_grey() {
    let rivals = [
        "congee",
        "artmap",
        "arctic_map",
        "ferntree",
        "concurrent_map",
        "scc_tree_index",
        "masstree_crate",
        "rwlock_btreemap",
    ];
    let mut records = Vec::new();
    for threads in [1, 2] {
        records.push(of("ycsb", "c", threads, "ca_tree", 0.5));
        for (at, rival) in rivals.into_iter().enumerate() {
            records.push(of("ycsb", "c", threads, rival, 1.0 + at as f64));
        }
    }
    let html = page(records, "2026-11-22");
    assert!(html.contains("Thin and grey: congee, artmap, arctic_map, ferntree, concurrent_map."));
    for name in [
        "ca_tree",
        "rwlock_btreemap",
        "masstree_crate",
        "scc_tree_index",
    ] {
        assert!(
            html.contains(&format!("dy=\"0.32em\">{name}</text>")),
            "{name}"
        );
    }
    assert!(!html.contains("dy=\"0.32em\">congee</text>"));
}

#[test]
fn the_table_has_the_ratio_to_the_reference_with_its_interval_and_the_marks() {
    let mut disturbed = of("ordered_mix", "lookup", 8, "ca_tree", 4.0);
    disturbed.shares = vec![0.1; 3];
    let html = page(
        vec![disturbed, of("ordered_mix", "lookup", 8, "locked", 2.0)],
        "2026-11-22",
    );
    let (_, table) = html.split_once("All figures").unwrap();
    assert!(table.contains("reference: locked") && table.contains("oversubscribed on 2 cores"));
    assert!(table.contains("title=\"disturbed by other work\">!</abbr>"));
    // The median, both ends, half the spread, the ratio, and its interval.
    let cells = "<td class=\"n\">4.00<td class=\"n\">3.60–4.40<td class=\"n\">10\
                 <td class=\"n\">2.00<td class=\"n\">1.64–2.44";
    assert!(table.contains(cells), "{table}");
}

#[test]
fn what_an_original_found_stands_with_the_experiment_and_at_the_end() {
    let claim = |engine, mops| of("ordered_mix", "update100", 2, engine, mops);
    let html = page(
        vec![claim("ca_tree", 3.0), claim("locked", 1.0)],
        "2026-11-22",
    );
    let says = "the contention-adapting tree does three times as many as one lock, with two";
    assert_eq!(html.matches(says).count(), 2);
    assert_eq!(html.matches("<b>agrees here</b>").count(), 2);
    let claims = claims::ALL.len();
    let (_, all) = html.split_once("<section id=\"claims\">").unwrap();
    assert_eq!(all.matches("data-label=\"Verdict\"").count(), claims);
    assert_eq!(
        all.matches("<b>not measured in these results</b>").count(),
        claims - 1
    );
    let differs = page(
        vec![claim("ca_tree", 1.0), claim("locked", 2.0)],
        "2026-11-22",
    );
    assert_eq!(differs.matches("<b>differs here</b>").count(), 2);
}

#[test]
fn what_the_lab_does_not_know_is_shown_as_it_is_and_never_as_markup() {
    let mut record = of("<script>", "a\"b", 1, "<b>&", 1.0);
    record.key_set = "</svg>".to_owned();
    record.made_by.machine.cpu = "<i>".to_owned();
    record.figures.insert("<u>".to_owned(), f64::INFINITY);
    let html = page(vec![record], "<date>");
    for wrong in ["<script", "<b>&", "</svg> ×", "<i>", "<u>", "<date>"] {
        assert!(!html.contains(wrong), "{wrong}");
    }
    assert!(html.contains("&lt;script&gt;") && html.contains("does not know"));
}

#[test]
fn figures_that_say_nothing_break_no_chart() {
    let mut records = Vec::new();
    for (threads, mops) in [(1, 0.0), (2, 0.0)] {
        let mut record = of("ordered_mix", "lookup", threads, "ca_tree", mops);
        record.runs = vec![mops];
        record.shares = Vec::new();
        records.push(record);
    }
    let mut none = of("memory", "fill", 1, "ca_tree", 0.0);
    none.runs = Vec::new();
    records.push(none);
    let html = page(records, "2026-11-22");
    assert!(!html.contains("NaN") && !html.contains("inf"), "{html}");
    assert_eq!(page(Vec::new(), "2026-11-22").matches("<svg id").count(), 0);
}

#[test]
fn a_later_measurement_takes_the_place_of_an_earlier_one_and_the_page_says_so() {
    let html = page(
        vec![
            of("ordered_mix", "lookup", 1, "ca_tree", 7.77),
            of("ordered_mix", "lookup", 1, "ca_tree", 8.88),
        ],
        "2026-11-22",
    );
    assert!(html.contains("1 earlier record made way") && html.contains("8.88"));
    assert!(!html.contains("7.77"));
}

fn simulated(threads: usize, engine: &str, mops: f64, machine: &str) -> Record {
    let mut record = of("ordered_mix", "update100", threads, engine, mops);
    record.simulated = true;
    record.made_by.machine.cpu = machine.to_owned();
    record.made_by.machine.cores = 64;
    record
}

#[test]
fn published_points_stand_beside_simulated_ones_with_their_source() {
    let mut records = Vec::new();
    for (threads, mops) in [(1, 10.0), (16, 100.0), (64, 9.0)] {
        records.push(simulated(threads, "ca_tree", mops, "two_sockets"));
        records.push(simulated(threads, "aspen", mops, "two_sockets"));
    }
    let html = page(records.clone(), "2026-11-22");
    // Of the two, only the tree has been published. It rose there, and falls here with 64 threads.
    let chart = html.split_once("<svg id=\"chart-ordered-mix-2\"").unwrap();
    let (chart, rest) = chart.1.split_once("</svg>").unwrap();
    assert_eq!(chart.matches("<g class=\"series").count(), 2);
    assert!(chart.contains("<g class=\"series c1 ours published\">"));
    assert!(chart.contains("<title>ca_tree, 64 threads: × 0.90, simulated</title>"));
    assert!(chart.contains("<title>ca_tree, 64 threads: × 26.2, published of OTP 22"));
    assert!(!chart.contains("aspen"));
    let (note, _) = rest.split_once("</figure>").unwrap();
    assert!(note.contains("Hollow markers: published") && note.contains("Winblad"));
    let (_, table) = html.split_once("Published and simulated").unwrap();
    let (table, _) = table.split_once("</table>").unwrap();
    assert_eq!(table.matches("<b>agrees</b>").count(), 1);
    assert_eq!(table.matches("<b>differs</b>").count(), 1);
    // With free transfers it is no machine that anyone has measured, nor is one of this few cores.
    for record in &mut records {
        record.made_by.machine.cpu = "two_sockets_without_transfers".to_owned();
    }
    assert!(!page(records.clone(), "2026-11-22").contains("Hollow markers: published"));
    for record in &mut records {
        record.made_by.machine.cpu = "small".to_owned();
        record.made_by.machine.cores = 1;
    }
    assert!(!page(records.clone(), "2026-11-22").contains("Hollow markers: published"));
    for record in &mut records {
        record.simulated = false;
        record.made_by.machine.cores = 64;
    }
    assert!(!page(records, "2026-11-22").contains("Hollow markers: published"));
}

#[test]
fn claims_are_judged_by_simulated_records_of_large_enough_machines_apart_from_measured_ones() {
    let records = vec![
        simulated(2, "ca_tree", 3.0, "two_sockets"),
        simulated(2, "locked", 1.0, "two_sockets"),
        simulated(8, "ca_tree", 3.0, "two_sockets"),
        simulated(8, "locked", 1.0, "two_sockets"),
    ];
    let html = page(records, "2026-11-22");
    let simulated = "What the originals found, simulated on two_sockets";
    assert_eq!(html.matches(simulated).count(), 1);
    let (_, table) = html.split_once(simulated).unwrap();
    let (table, _) = table.split_once("</table>").unwrap();
    // The original had two cores: eight threads took turns there, and do not here.
    assert!(table.contains("as one lock, with two threads") && !table.contains("eight threads"));
    let (_, all) = html.split_once("<section id=\"claims\">").unwrap();
    assert!(
        !all.contains("<b>agrees here</b>"),
        "they were not measured"
    );
}

#[test]
fn predictions_stand_beside_measurements_of_a_machine_with_as_many_cores() {
    let measured = of("ordered_mix", "update100", 2, "locked", 10.0);
    let mut predicted = simulated(2, "locked", 2.0, "this_machine");
    predicted.made_by.machine.cores = 2;
    let near = of("ordered_mix", "update100", 1, "locked", 10.0);
    let mut as_near = simulated(1, "locked", 9.0, "this_machine");
    as_near.made_by.machine.cores = 2;
    let other = simulated(2, "locked", 2.0, "two_sockets");
    let html = page(
        vec![measured, predicted, near, as_near, other],
        "2026-11-22",
    );
    let (_, section) = html.split_once("<section id=\"validation\">").unwrap();
    let (section, _) = section.split_once("</section>").unwrap();
    assert!(section.contains("<h3>this_machine</h3>") && !section.contains("two_sockets"));
    assert!(section.contains("1 of 2 within 25 %"));
    assert_eq!(section.matches("<b>within 25 %</b>").count(), 1);
    assert_eq!(section.matches("<b>off</b>").count(), 1);
    let alone = of("ordered_mix", "update100", 2, "locked", 10.0);
    assert!(!page(vec![alone], "2026-11-22").contains("id=\"validation\""));
}
