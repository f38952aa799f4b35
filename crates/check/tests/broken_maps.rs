//! Maps that are wrong on purpose: their recordings must show the flaw within a bounded number of
//! histories.

mod support;

use std::collections::BTreeMap;
use std::sync::Mutex;
use support::broken::{Broken, Flaw};
use tremula_check::map::{Failure, Kind, Operation, Response};
use tremula_check::record::{Subject, record};
use tremula_check::{Campaign, DEFAULT_BUDGET, Fault};

/// The number of histories within which a flaw must show. Most show within hundreds.
const HISTORIES: usize = 100_000;

#[test]
fn every_flaw_shows_in_short_histories() {
    for flaw in Flaw::ALL {
        let campaign = Campaign {
            sessions: HISTORIES,
            ..Campaign::short()
        };
        let caught = campaign
            .run(|| Broken::new(flaw))
            .expect_err(&format!("{flaw:?} is not noticed"));
        println!("{flaw:?}: {caught}\n");
        let Fault::History(failure) = &caught.fault else {
            panic!("{caught}");
        };
        match flaw {
            Flaw::CounterLosesUpdates => assert!(matches!(failure, Failure::Count(_))),
            Flaw::RangeRepeats => assert!(matches!(failure, Failure::Answer(_))),
            _ => assert!(matches!(failure, Failure::NotLinearizable { .. })),
        }
    }
}

#[test]
fn flaws_in_single_keys_show_in_long_histories() {
    for flaw in Flaw::IN_ONE_KEY {
        let caught = Campaign::long()
            .run(|| Broken::new(flaw))
            .expect_err(&format!("{flaw:?} is not noticed"));
        println!("{flaw:?}: {caught}\n");
        let key = matches!(
            caught.fault,
            Fault::History(Failure::NotLinearizable { key: Some(_), .. })
        );
        assert!(key, "{caught}");
    }
}

#[test]
fn what_calls_say_of_single_keys_shows_flaws_too() {
    const KINDS: [Kind; 5] = [
        Kind::Insert,
        Kind::Remove,
        Kind::Next,
        Kind::PopFirst,
        Kind::Range,
    ];
    let campaign = Campaign {
        kinds: &KINDS,
        ..Campaign::long()
    };
    for flaw in [Flaw::PopWithoutLooking, Flaw::RemoveLater] {
        let caught = campaign.run(|| Broken::new(flaw));
        let caught = caught.expect_err(&format!("{flaw:?} is not noticed"));
        assert!(matches!(
            caught.fault,
            Fault::History(Failure::NotLinearizable { .. })
        ));
    }
}

/// A map whose removals panic.
struct Panicking(Mutex<BTreeMap<u64, u64>>);

impl Subject for Panicking {
    fn offers(&self, kind: Kind) -> bool {
        matches!(kind, Kind::Insert | Kind::Remove | Kind::Snapshot)
    }

    fn call(&self, operation: &Operation) -> Response {
        let mut map = self
            .0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        match operation {
            Operation::Insert(key, value) => Response::Value(map.insert(*key, *value)),
            Operation::Snapshot(_) => {
                Response::Entries(map.iter().map(|(&key, &value)| (key, value)).collect())
            }
            Operation::Remove(key) => {
                map.remove(key);
                panic!("{key} is dear to me")
            }
            other => panic!("{other} is not offered"),
        }
    }
}

#[test]
fn a_panic_stops_a_campaign() {
    let campaign = Campaign {
        sessions: 8,
        ..Campaign::short()
    };
    let caught = campaign.run(|| Panicking(Mutex::default())).unwrap_err();
    assert!(matches!(&caught.fault, Fault::Panic(panicked) if panicked.message.contains("dear")));
}

#[test]
fn a_call_that_panicked_may_have_taken_effect() {
    let subject = Panicking(Mutex::new(BTreeMap::from([(1, 10), (2, 20)])));
    let scripts = vec![
        vec![Operation::Remove(1).into(), Operation::Remove(2).into()],
        vec![Operation::Insert(3, 30).into()],
    ];
    let recording = record(&subject, [(1, 10), (2, 20)], scripts);
    // The rest of its thread's script did not run; the look at the end did.
    assert_eq!(recording.panics.len(), 1);
    assert_eq!(recording.history.history().events().len(), 3);
    recording.history.check(DEFAULT_BUDGET).unwrap();
}
