use super::*;
use crate::record::tests::some_record;

const CLAIM: Claim = Claim {
    experiment: "ordered_mix",
    says: "The one is three times as fast as the other.",
    source: Source {
        name: "a paper",
        cores: 2,
    },
    original: Original::Figure(3.0),
    measure: Measure::Ratio(
        pick("ca_tree", Threads::Just(2)),
        pick("locked", Threads::Just(2)),
    ),
    rule: Rule::SameSide,
    why: "It is known.",
};

const fn pick(engine: &'static str, threads: Threads) -> Pick {
    Pick {
        workload: "lookup",
        key_set: "dense_half_filled",
        engine,
        threads,
        field: Field::Mops,
    }
}

fn record(engine: &str, threads: usize, mops: f64) -> Record {
    let mut record = some_record("lookup", threads, engine, mops);
    record.made_by.machine.cores = 2;
    record.made_by.configuration.build = "release".to_owned();
    record.shares = vec![1.0; 3];
    record
}

#[test]
fn a_ratio_agrees_if_the_same_one_is_ahead_and_differs_if_not() {
    let judge = |mops| CLAIM.judge(&[record("ca_tree", 2, mops), record("locked", 2, 2.0)]);
    let Verdict::Agrees(finding) = judge(4.0) else {
        panic!("4 to 2 is ahead");
    };
    assert_eq!((finding.here, finding.threads), (2.0, (2, 2)));
    assert!(finding.interval.unwrap().contains(2.0) && finding.remarks.is_empty());
    assert!(
        finding.remarks.is_empty(),
        "why it differs is not said if it agrees"
    );
    let Verdict::Differs(finding) = judge(1.0) else {
        panic!("1 to 2 is behind");
    };
    assert_eq!(
        (finding.here, finding.remarks),
        (0.5, vec!["It is known.".to_owned()])
    );
}

#[test]
fn a_rule_of_nearness_asks_for_both_sides() {
    let near = Rule::Within(2.0);
    let three = Original::Figure(3.0);
    assert!(near.agrees(three, 1.6) && near.agrees(three, 5.9));
    assert!(!near.agrees(three, 1.4) && !near.agrees(three, 6.1));
    assert!(Rule::AtMost.agrees(three, 3.0) && !Rule::AtMost.agrees(three, 3.1));
    let half = Original::Figure(0.5);
    assert!(Rule::SameSide.agrees(half, 0.9) && !Rule::SameSide.agrees(half, 1.1));
}

#[test]
fn where_no_number_is_told_the_side_of_one_counts() {
    let rule = Rule::SameSide;
    assert!(rule.agrees(Original::AboveOne, 1.1) && !rule.agrees(Original::AboveOne, 0.9));
    assert!(rule.agrees(Original::BelowOne, 0.9) && !rule.agrees(Original::BelowOne, 1.1));
    assert!(!Rule::Within(2.0).agrees(Original::AboveOne, 1.1));
}

#[test]
fn what_is_missing_is_named() {
    let verdict = |records: &[Record]| match CLAIM.judge(records) {
        Verdict::NotMeasured(why) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        verdict(&[]),
        "ordered_mix is not in these results; It is known."
    );
    assert_eq!(
        verdict(&[record("ca_tree", 2, 1.0), record("locked", 1, 1.0)]),
        "no record of locked in lookup of dense_half_filled, 2 threads; It is known."
    );
    let mut other_keys = record("locked", 2, 1.0);
    other_keys.keys = 5;
    assert_eq!(
        verdict(&[record("ca_tree", 2, 1.0), other_keys]),
        "not measured with the same keys; It is known."
    );
    // A figure that cannot be divided by counts as not measured.
    verdict(&[record("ca_tree", 2, 1.0), record("locked", 2, 0.0)]);
}

#[test]
fn figures_are_divided_that_were_measured_with_the_same_keys() {
    let drawn = |engine, mops, distribution: &str| Record {
        distribution: Some(distribution.to_owned()),
        ..record(engine, 2, mops)
    };
    let verdict = CLAIM.judge(&[
        drawn("ca_tree", 9.0, "zipfian"),
        drawn("ca_tree", 6.0, "uniform"),
        drawn("locked", 2.0, "uniform"),
    ]);
    assert!(matches!(verdict, Verdict::Agrees(finding) if finding.here == 3.0));
}

#[test]
fn a_thread_on_each_core_is_the_most_that_is_not_oversubscribed() {
    let claim = Claim {
        measure: Measure::Ratio(
            pick("ca_tree", Threads::Cores),
            pick("locked", Threads::Cores),
        ),
        source: Source {
            name: "a paper",
            cores: 20,
        },
        ..CLAIM
    };
    let mut records = Vec::new();
    for threads in [1, 2, 8] {
        records.push(record("ca_tree", threads, 4.0 * threads as f64));
        records.push(record("locked", threads, 1.0));
    }
    let Verdict::Agrees(finding) = claim.judge(&records) else {
        panic!("8 to 1 is ahead");
    };
    assert_eq!((finding.here, finding.threads), (8.0, (2, 2)));
    assert_eq!(finding.remarks, ["2 cores here, 20 there"]);
}

#[test]
fn what_makes_a_figure_doubtful_is_remarked() {
    let mut records = [record("ca_tree", 2, 4.0), record("locked", 2, 2.0)];
    for record in &mut records {
        record.made_by.machine.cores = 1;
        record.made_by.configuration.build = "debug".to_owned();
        record.shares = vec![0.1; 3];
    }
    let Verdict::Agrees(finding) = CLAIM.judge(&records) else {
        panic!("4 to 2 is ahead");
    };
    let remarks = finding.remarks.join("; ");
    for part in [
        "1 cores here, 2 there",
        "2 threads on 1",
        "disturbed",
        "debug",
    ] {
        assert!(remarks.contains(part), "{part} in {remarks}");
    }
}

#[test]
fn every_claim_can_be_measured_by_an_experiment_and_contestants_that_there_are() {
    let mut count = 0;
    for claim in ALL.iter() {
        count += 1;
        let experiment = crate::experiments::find(claim.experiment).unwrap();
        for pick in claim.picks() {
            pick.engine
                .parse::<crate::contestants::ContestantName>()
                .unwrap_or_else(|error| panic!("{}: {error}", claim.says));
            assert!(experiment.workloads().contains(&pick.workload), "{pick}");
            let sets: Vec<_> = experiment.key_sets().iter().map(|set| set.name()).collect();
            let offered = sets.is_empty() || pick.key_set.is_empty();
            assert!(offered || sets.contains(&pick.key_set), "{pick}");
        }
        assert!(claim.says.ends_with('.'), "{}", claim.says);
        // A claim could never agree with a rule that its own original number breaks.
        let itself = match claim.original {
            Original::Figure(figure) => figure,
            Original::AboveOne => 2.0,
            Original::BelowOne => 0.5,
        };
        assert!(
            itself > 0.0 && claim.rule.agrees(claim.original, itself),
            "{}",
            claim.says
        );
    }
    assert!(count >= 20, "{count}");
}

#[test]
fn how_a_figure_is_computed_can_be_read() {
    let says = |above, below| Measure::Ratio(above, below).to_string();
    let two = Threads::Just(2);
    assert_eq!(
        says(pick("ca_tree", two), pick("locked", two)),
        "ca_tree ÷ locked in lookup of dense_half_filled, 2 threads"
    );
    assert_eq!(
        says(pick("locked", two), pick("locked", Threads::Just(1))),
        "locked in lookup of dense_half_filled, 2 threads ÷ with 1"
    );
    let scans = Pick {
        field: Field::Figure("scan_mops"),
        ..pick("locked", two)
    };
    assert_eq!(
        says(scans, pick("locked", two)),
        "locked in lookup of dense_half_filled, 2 threads, scan_mops ÷ locked in lookup of \
         dense_half_filled, 2 threads"
    );
    let bytes = Pick {
        field: Field::BytesPerKey,
        ..pick("locked", Threads::Cores)
    };
    assert_eq!(
        Measure::Value(bytes).to_string(),
        "locked in lookup of dense_half_filled, a thread on each core, bytes per key"
    );
}
