//! Recorded histories of every engine.
//!
//! - **Short histories** of all operations, many of them, each on an index of its own that is
//!   filled so that nodes split, merge, grow or shrink within a few calls.
//! - **Successive histories** on indexes that live on, so that an adaptive tree has time to adapt.
//! - **Middling histories** of all operations on few keys, also checked as a whole.
//! - **Long histories**, by key: of point operations, for which that is everything, and of all
//!   operations, for what each call says of single keys.
//!
//! A test fails if no order of the calls explains the answers: a lookup misses what was present
//! before and after; an update undoes another; a scan shows two moments; a range is removed in
//! parts; an entry is popped twice; a length is wrong when nothing is under way. The report shows
//! the calls, the longest order found, and the call that does not fit.
//!
//! Keys and values are plain numbers, which an engine may keep in its nodes, and whose calls
//! interleave as the machine happens to schedule them (much on an idle machine, little on a busy
//! one); or [`Dawdler`]s, which let other threads run in the middle of calls on any machine. The
//! tests print what was checked, and require that it was everything intended.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use tremula_check::map::{Kind, Operation, Response};
use tremula_check::record::{Dawdler, Indexed, Subject};
use tremula_check::{Campaign, Tally};
use tremula_index::ca_tree::CaTreeConfig;
use tremula_index::container::BTree;
use tremula_index::key::{ByteHead, NoHead};
use tremula_index::lfca_tree::LfcaTreeConfig;
use tremula_index::{
    Aspen, CaTree, Facts, LfcaTree, Locked, Masstree, OlcBTree, OrderedIndex, Scans,
};
use tremula_papers::bw_tree::{BwTreeConfig, BwTreeSwitches};
use tremula_papers::{AnyEngine, Avl, BwTree};
use tremula_sync::StatisticsConfig;

/// The campaigns, by name. Each engine goes through all of them.
const CAMPAIGNS: [(&str, Campaign); 5] = [
    (
        "short",
        Campaign {
            sessions: 1_000,
            ..Campaign::short()
        },
    ),
    (
        "in a row",
        Campaign {
            sessions: 8,
            rounds: 60,
            seed: 2,
            ..Campaign::short()
        },
    ),
    (
        "middling",
        Campaign {
            sessions: 25,
            operations: 200..=400,
            seed: 3,
            ..Campaign::short()
        },
    ),
    (
        "long, of point operations",
        Campaign {
            sessions: 1,
            seed: 4,
            ..Campaign::long()
        },
    ),
    (
        "long, of all operations",
        Campaign {
            sessions: 3,
            operations: 4_000..=4_000,
            keys: 24..=24,
            kinds: &Kind::ALL,
            seed: 5,
            ..Campaign::long()
        },
    ),
];

/// How many times as much there is to check as in an ordinary run.
fn times() -> usize {
    match std::env::var("TREMULA_DEEP") {
        Ok(_) => 400,
        Err(_) => 1,
    }
}

/// The number of looks at the map at the end of each history: a scan, and the length.
const LOOKS: usize = 2;

static TURN: Mutex<()> = Mutex::new(());

/// Runs all campaigns on the indexes that `make` makes. Returns how many pairs of calls overlapped.
fn check<S: Subject>(name: &str, make: impl Fn() -> S) -> usize {
    // One engine at a time, so that the threads of a history run at the same time on all cores.
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut overlaps = 0;
    for (campaign_name, campaign) in CAMPAIGNS {
        let campaign = Campaign {
            sessions: campaign.sessions * times(),
            ..campaign
        };
        let tally = match campaign.run(&make) {
            Ok(tally) => tally,
            Err(caught) => panic!("{name}, {campaign_name}: {caught}"),
        };
        println!("{name}, {campaign_name}: {tally}");
        everything_was_checked(&campaign, tally);
        overlaps += tally.overlaps;
    }
    overlaps
}

/// The same for indexes whose keys dawdle, so that calls overlap on any machine: threads that take
/// turns prove nothing.
fn check_dawdling<S: Subject>(name: &str, make: impl Fn() -> S) {
    let overlaps = check(name, make);
    assert!(overlaps > 0, "{name}: no call overlapped with another");
}

fn everything_was_checked(campaign: &Campaign, tally: Tally) {
    assert_eq!(tally.histories, campaign.sessions * campaign.rounds);
    let calls = |operations: usize| (operations + LOOKS) * tally.histories;
    let intended = calls(*campaign.operations.start())..=calls(*campaign.operations.end());
    assert!(intended.contains(&tally.operations), "{tally}");
}

/// The operations that are not as of one moment, by the engine's facts.
const fn loose(facts: Facts) -> &'static [Kind] {
    if matches!(facts.scans, Scans::OneMoment) {
        return &[];
    }
    &[
        Kind::First,
        Kind::Last,
        Kind::Next,
        Kind::Prev,
        Kind::PopFirst,
        Kind::PopLast,
        Kind::Scan,
        Kind::RemoveRange,
    ]
}

#[test]
fn histories_of_every_engine_on_numbers_are_right() {
    for engine in AnyEngine::ALL {
        let make = || Indexed::<u64, u64, _>::new(engine.create()).loosely(loose(engine.facts()));
        check(engine.name(), make);
    }
}

#[test]
fn histories_of_every_engine_with_dawdling_values_are_right() {
    for engine in AnyEngine::ALL {
        let make =
            || Indexed::<u64, Dawdler, _>::new(engine.create()).loosely(loose(engine.facts()));
        check_dawdling(&format!("{engine}, dawdling values"), make);
    }
}

#[test]
fn histories_of_locked_with_dawdling_keys_are_right() {
    let make = || Indexed::new(Locked::<Dawdler, Dawdler, NoHead, Avl<_, _>>::default());
    check_dawdling("locked on avl, dawdling", make);
}

#[test]
fn histories_of_a_restless_ca_tree_are_right() {
    let make = || CaTree::<_, _, NoHead, BTree<_, _, NoHead, 4>>::with_config(restless());
    check_restless(
        "restless ca_tree on b_tree, dawdling",
        ["splits", "joins"],
        make,
    );
}

#[test]
fn histories_of_a_restless_ca_tree_on_avl_are_right() {
    let make = || CaTree::<_, _, NoHead, Avl<_, _>>::with_config(restless());
    check_restless(
        "restless ca_tree on avl, dawdling",
        ["splits", "joins"],
        make,
    );
}

#[test]
fn histories_of_a_restless_lfca_tree_are_right() {
    let make = || LfcaTree::<_, _, NoHead>::with_config(restless_lfca());
    check_restless("restless lfca_tree, dawdling", ["splits", "joins"], make);
}

/// Many base nodes, so that most queries and removals cross several.
#[test]
fn histories_of_an_lfca_tree_of_many_base_nodes_are_right() {
    let make = || LfcaTree::<_, _, NoHead>::with_config(many_bases());
    check_restless(
        "lfca_tree of many base nodes, dawdling",
        ["splits", "frozen_ranges"],
        make,
    );
}

#[test]
fn histories_of_a_b_tree_of_small_nodes_are_right() {
    let make = OlcBTree::<_, _, NoHead, 0>::default;
    check_restless(
        "b_tree of small nodes, dawdling",
        ["splits", "merges"],
        make,
    );
}

#[test]
fn histories_of_a_bw_tree_of_small_nodes_are_right() {
    let make = || BwTree::<_, _, NoHead>::with_config(SMALL_NODES);
    check_restless(
        "bw_tree of small nodes, dawdling",
        ["consolidations", "splits", "merges"],
        make,
    );
}

/// Checks a Bw-tree of small nodes with these switches.
fn check_switched(name: &str, switches: BwTreeSwitches) {
    check_restless(name, ["consolidations", "splits", "merges"], || {
        BwTree::<_, _, NoHead>::with_config(BwTreeConfig {
            switches,
            ..SMALL_NODES
        })
    });
}

/// Separators are inserted and removed by deltas, which also split and merge leaves.
#[test]
fn histories_of_a_bw_tree_with_deltas_of_every_kind_are_right() {
    check_switched(
        "bw_tree with deltas of every kind, dawdling",
        BwTreeSwitches {
            whole_inner_nodes: false,
            whole_splits: false,
            held_merges: false,
            ..BwTreeSwitches::ON
        },
    );
}

/// Every thread that meets a merge helps.
#[test]
fn histories_of_a_bw_tree_with_merge_deltas_are_right() {
    check_switched(
        "bw_tree with merge deltas, dawdling",
        BwTreeSwitches {
            held_merges: false,
            ..BwTreeSwitches::ON
        },
    );
}

/// Each leaf is spread when it is consolidated, contended or not.
#[test]
fn histories_of_a_bw_tree_of_spread_leaves_are_right() {
    let make = || {
        BwTree::<_, _>::with_config(BwTreeConfig {
            leaf_contention: 0,
            leaf_merge: 1,
            ..SMALL_NODES
        })
    };
    check_restless(
        "bw_tree of spread leaves, dawdling",
        ["spreads", "made_whole"],
        make,
    );
}

/// Keys are numbers, so that it computes where they lie, and values dawdle.
#[test]
fn histories_of_an_aspen_of_small_leaves_are_right() {
    check_changing::<u64, _, _>(
        "aspen of small leaves, dawdling values",
        ["splits", "merges", "fills"],
        Aspen::<u64, _, ByteHead, 1>::default,
    );
}

/// The bytes of a dawdler have no fixed length, so small numbers differ in a layer below the first.
#[test]
fn histories_of_a_masstree_of_small_nodes_are_right() {
    let make = Masstree::<_, _, 3>::default;
    check_restless(
        "masstree of small nodes, dawdling",
        ["splits", "merges", "layers_made", "layers_folded"],
        make,
    );
}

/// Thresholds so low that a few colliding writes split a tree, and a few scans over several base
/// nodes join it.
fn restless() -> CaTreeConfig {
    CaTreeConfig::default()
        .statistics(
            StatisticsConfig::default()
                .contended(2)
                .uncontended(-1)
                .split_above(3)
                .join_below(-3)
                .bias_after(1),
        )
        .range_discount(9)
        .max_route_depth(8)
}

/// The same for the lock-free tree, whose base nodes are split when two updates have collided.
fn restless_lfca() -> LfcaTreeConfig {
    LfcaTreeConfig::default()
        .contended(2)
        .uncontended(-1)
        .split_above(1)
        .join_below(-3)
        .range_discount(3)
        .max_route_depth(8)
}

/// Every other update splits, even without a collision.
fn many_bases() -> LfcaTreeConfig {
    restless_lfca().uncontended(1)
}

/// Nodes so small that writes keep consolidating, splitting and merging them.
const SMALL_NODES: BwTreeConfig = BwTreeConfig {
    leaf_chain: 2,
    leaf_split: 4,
    leaf_merge: 2,
    leaf_contention: 1,
    inner_chain: 2,
    inner_split: 3,
    inner_merge: 1,
    switches: BwTreeSwitches::ON,
};

/// Checks an index whose keys and values dawdle: see [`check_changing`].
fn check_restless<I: OrderedIndex<Dawdler, Dawdler>, const N: usize>(
    name: &str,
    figures: [&str; N],
    make: impl Fn() -> I,
) {
    check_changing::<Dawdler, _, N>(name, figures, make);
}

/// Checks an index that keeps changing its shape in several ways, which it counts under these
/// names. Requires that each count has risen.
fn check_changing<K, I, const N: usize>(name: &str, figures: [&str; N], make: impl Fn() -> I)
where
    K: Ord + Clone + From<u64> + Into<u64>,
    I: OrderedIndex<K, Dawdler>,
{
    let changes = figures.map(|figure| (figure, AtomicU64::new(0)));
    check_dawdling(name, || Restless {
        index: Indexed::new(make()),
        changes: &changes,
    });
    for (figure, count) in changes {
        let count = count.into_inner();
        println!("{name}: {count} {figure}");
        assert!(count > 0, "{name}: no {figure}");
    }
}

/// An index that reports when it is dropped how often its shape has changed.
struct Restless<'a, K: Ord + Clone, I: OrderedIndex<K, Dawdler>> {
    index: Indexed<K, Dawdler, I>,
    changes: &'a [(&'a str, AtomicU64)],
}

impl<K, I> Subject for Restless<'_, K, I>
where
    K: Ord + Clone + From<u64> + Into<u64>,
    I: OrderedIndex<K, Dawdler>,
{
    fn call(&self, operation: &Operation) -> Response {
        self.index.call(operation)
    }
}

impl<K: Ord + Clone, I: OrderedIndex<K, Dawdler>> Drop for Restless<'_, K, I> {
    fn drop(&mut self) {
        let shape = self.index.index().shape();
        for (figure, count) in self.changes {
            count.fetch_add(shape.get(figure).unwrap_or(0), Ordering::Relaxed);
        }
    }
}
