//! Every engine and container under hostile keys and values.
//!
//! `Ord`, `Clone`, `Drop`, `ByteKey` and `KeyHead` are safe traits: their implementations, and their
//! constants, may lie, disagree, change, panic, and call the map. Answers may then be wrong, an
//! engine may panic, and go on; but no memory may be freed twice or be used after that, and no
//! operation may hang.
//!
//! Each test is a subject: an engine in one configuration. It runs every *kind* of hostility
//! (`temper.rs`: orders with NaN, or without case, random orders and byte forms, keys that change,
//! panics, drops that call the map …), with several *forms* of the key (`values.rs`: what its
//! constants claim), with several seeds, each kind in a process of its own. What makes it fail:
//!
//! - a key or value that is dropped twice, or looked at after its drop: each has a number in a
//!   register (`life.rs`); under AddressSanitizer (`cargo xtask test --only asan`) also any other
//!   memory that is used after it was freed, and what leaks;
//! - keys or values that are still there when their map is gone, though nothing panicked;
//! - an operation that has not ended after fifteen seconds, or that calls user code without end and
//!   keeps another thread out of the map meanwhile;
//! - a process that crashes or aborts.
//!
//! A failure names the subject, the kind, the form and the seed. To run it again, and see each
//! operation:
//!
//! ```text
//! TREMULA_HOSTILE=nan_less:0:3 cargo test -p tremula-index --test hostile -- \
//!     --exact skip_list --nocapture
//! ```
//!
//! `TREMULA_HOSTILE_SEEDS` says how many seeds are run. A new engine needs one line below.
#![cfg(not(any(loom, shuttle, tremula_tsan)))]

#[path = "../support/mod.rs"]
mod support;

mod campaign;
mod layouts;
mod life;
mod subject;
mod temper;
mod values;

use std::sync::Arc;
use subject::{Contained, Index, MultiMap};
use support::{
    bw_of_spread_leaves, bw_with_deltas, bw_with_merge_deltas, restless, restless_bw, restless_lfca,
};
use tremula_index::bw_tree::{BwTreeConfig, BwTreeSwitches};
use tremula_index::container::{Avl, BTree, Beside};
use tremula_index::key::{ByteHead, NoHead};
use tremula_index::lfca_tree::LfcaTreeConfig;
use tremula_index::{
    Art, BackgroundSkipList, BwMultiMap, BwTree, ByteKey, CaTree, LfcaTree, Locked, Masstree,
    NotSorted, OlcBTree, OrderedIndex, SkipList,
};
use values::{Key, Value};

/// Kinds that are left out, of the subjects whose names have this in them, and why.
const KNOWN: &[(&str, &[&str])] = &[
    // A `pop` whose key changes under it may begin again for ever. It holds no lock.
    ("splitting_lfca_tree_without_heads", &["changing_keys"]),
];

/// A subject: its name, the forms of the keys that it is tried with, and what makes it.
macro_rules! index {
    ($name:ident, [$($form:ident)*], $make:expr) => {
        #[test]
        fn $name() {
            campaign::run(
                stringify!($name),
                &[$((values::$form, |random| {
                    Arc::new(Index::<{ values::$form }>::new($make, random))
                })),*],
                KNOWN,
            );
        }
    };
}

/// A subject of another kind than an index, which a function makes that is generic over the form.
macro_rules! subject {
    ($name:ident, [$($form:ident)*], $make:ident) => {
        #[test]
        fn $name() {
            campaign::run(
                stringify!($name),
                &[$((values::$form, |_| {
                    Arc::new($make::<{ values::$form }>())
                })),*],
                KNOWN,
            );
        }
    };
}

/// The index with these entries inserted.
fn filled<K, I>(index: I, entries: Vec<(K, Value)>) -> Box<dyn OrderedIndex<K, Value>>
where
    K: Ord + Clone,
    I: OrderedIndex<K, Value> + 'static,
{
    for (key, value) in entries {
        index.insert(key, value);
    }
    Box::new(index)
}

/// What a bulk load gave; an empty index where it found the entries not to be sorted.
fn loaded<K, I>(loaded: Result<I, NotSorted>) -> Box<dyn OrderedIndex<K, Value>>
where
    K: Ord + Clone,
    I: OrderedIndex<K, Value> + Default + 'static,
{
    Box::new(loaded.unwrap_or_default())
}

index!(ca_tree, [PLAIN], |entries| filled(
    CaTree::<_, _>::new(),
    entries
));
index!(restless_ca_tree, [PLAIN], |entries| filled(
    CaTree::<_, _>::with_config(restless()),
    entries
));
index!(restless_ca_tree_on_avl, [PLAIN], |entries| filled(
    CaTree::<_, _, Avl<_, _>>::with_config(restless()),
    entries
));
index!(
    restless_ca_tree_with_heads,
    [PLAIN HEAD_IS_KEY],
    |entries| filled(
        CaTree::<_, _, BTree<_, _, Beside<ByteHead>, 4>>::with_config(restless()),
        entries
    )
);
index!(lfca_tree, [PLAIN HEAD_IS_KEY], |entries| filled(
    LfcaTree::<_, _>::new(),
    entries
));
index!(restless_lfca_tree, [PLAIN HEAD_IS_KEY], |entries| filled(
    LfcaTree::<_, _>::with_config(restless_lfca()),
    entries
));
index!(splitting_lfca_tree_without_heads, [PLAIN], |entries| {
    let config = LfcaTreeConfig {
        uncontended: 1,
        ..restless_lfca()
    };
    filled(LfcaTree::<_, _, NoHead>::with_config(config), entries)
});
index!(b_tree, [PLAIN], |entries| loaded(
    OlcBTree::<_, _>::from_sorted(entries)
));
index!(low_b_tree, [PLAIN HEAD_IS_KEY], |entries| filled(
    OlcBTree::<_, _, ByteHead, 0>::new(),
    entries
));
index!(low_b_tree_without_heads, [PLAIN], |entries| filled(
    OlcBTree::<_, _, NoHead, 0>::new(),
    entries
));
index!(
    art,
    [PLAIN HEAD_IS_KEY CLAIMS_ONE_BYTE CLAIMS_TWO_BYTES CLAIMS_EIGHT_BYTES CLAIMS_TWENTY_BYTES],
    |entries| filled(Art::new(), entries)
);
index!(
    loaded_art,
    [PLAIN HEAD_IS_KEY CLAIMS_ONE_BYTE CLAIMS_TWO_BYTES CLAIMS_EIGHT_BYTES CLAIMS_TWENTY_BYTES],
    |entries| loaded(Art::from_sorted(entries))
);
index!(masstree, [PLAIN], |entries| loaded(
    Masstree::<_, _>::from_sorted(entries)
));
index!(
    low_masstree,
    [PLAIN HEAD_IS_KEY CLAIMS_ONE_BYTE],
    |entries| filled(Masstree::<_, _, 3>::new(), entries)
);
index!(skip_list, [PLAIN HEAD_IS_KEY], |entries| filled(
    SkipList::<_, _>::new(),
    entries
));
index!(skip_list_without_heads, [PLAIN], |entries| filled(
    SkipList::<_, _, NoHead>::new(),
    entries
));
index!(background_skip_list, [PLAIN HEAD_IS_KEY], |entries| filled(
    BackgroundSkipList::<_, _>::new(),
    entries
));
index!(background_skip_list_without_heads, [PLAIN], |entries| {
    filled(BackgroundSkipList::<_, _, NoHead>::new(), entries)
});
index!(locked_b_tree, [PLAIN], |entries| filled(
    Locked::<_, _, BTree<_, _, NoHead, 4>>::new(),
    entries
));
index!(locked_b_tree_with_heads, [PLAIN], |entries| {
    filled(
        Locked::<_, _, BTree<_, _, Beside<ByteHead>, 4>>::new(),
        entries,
    )
});
index!(locked_avl, [PLAIN], |entries| filled(
    Locked::<_, _, Avl<_, _>>::new(),
    entries
));

/// Small nodes, with these switches.
fn small_bw_tree(switches: BwTreeSwitches) -> BwTreeConfig {
    BwTreeConfig {
        switches,
        ..restless_bw()
    }
}

/// A Bw-tree with heads and a configuration.
fn bw_tree_of<K: ByteKey>(
    config: BwTreeConfig,
    entries: Vec<(K, Value)>,
) -> Box<dyn OrderedIndex<K, Value>> {
    filled(BwTree::<_, _>::with_config(config), entries)
}

/// A Bw-tree of small nodes with one switch turned round.
macro_rules! switched_bw_tree {
    ($($name:ident: $switch:ident is $on:literal, and all others $others:ident;)*) => {$(
        index!($name, [PLAIN HEAD_IS_KEY], |entries| bw_tree_of(
            small_bw_tree(BwTreeSwitches { $switch: $on, ..BwTreeSwitches::$others }),
            entries
        ));
    )*};
}

index!(bw_tree, [PLAIN HEAD_IS_KEY], |entries| bw_tree_of(
    BwTreeConfig::default(),
    entries
));
index!(low_bw_tree, [PLAIN HEAD_IS_KEY], |entries| bw_tree_of(
    restless_bw(),
    entries
));
index!(bw_tree_of_spread_leaves, [PLAIN HEAD_IS_KEY], |entries| {
    bw_tree_of(bw_of_spread_leaves(), entries)
});
index!(bw_tree_of_deltas, [PLAIN HEAD_IS_KEY], |entries| bw_tree_of(
    bw_with_deltas(),
    entries
));
index!(bw_tree_of_merge_deltas, [PLAIN HEAD_IS_KEY], |entries| {
    bw_tree_of(bw_with_merge_deltas(), entries)
});
index!(original_bw_tree, [PLAIN HEAD_IS_KEY], |entries| bw_tree_of(
    small_bw_tree(BwTreeSwitches::OFF),
    entries
));
switched_bw_tree! {
    bw_tree_of_tree_epochs: local_epochs is false, and all others ON;
    bw_tree_of_replays: fast_consolidation is false, and all others ON;
    bw_tree_of_allocated_deltas: preallocation is false, and all others ON;
    bw_tree_of_plain_searches: search_shortcuts is false, and all others ON;
    original_bw_tree_of_local_epochs: local_epochs is true, and all others OFF;
    original_bw_tree_of_spread_leaves: spread_leaves is true, and all others OFF;
}
index!(low_bw_tree_without_heads, [PLAIN], |entries| filled(
    BwTree::<_, _, NoHead>::with_config(restless_bw()),
    entries
));
index!(bw_tree_of_deltas_without_heads, [PLAIN], |entries| filled(
    BwTree::<_, _, NoHead>::with_config(bw_with_deltas()),
    entries
));

fn multi_map<const FORM: u8>() -> MultiMap<FORM, ByteHead> {
    MultiMap(BwMultiMap::with_config(restless_bw()))
}

fn multi_map_of_deltas_without_heads<const FORM: u8>() -> MultiMap<FORM, NoHead> {
    MultiMap(BwMultiMap::with_config(bw_with_deltas()))
}

fn narrow_b_tree<const FORM: u8>() -> Contained<FORM, BTree<Key<FORM>, Value, NoHead, 4>> {
    Contained::default()
}

fn headed_b_tree<const FORM: u8>() -> Contained<FORM, BTree<Key<FORM>, Value, Beside<ByteHead>, 4>>
{
    Contained::default()
}

fn avl<const FORM: u8>() -> Contained<FORM, Avl<Key<FORM>, Value>> {
    Contained::default()
}

subject!(bw_multi_map, [PLAIN HEAD_IS_KEY], multi_map);
subject!(
    bw_multi_map_of_deltas_without_heads,
    [PLAIN],
    multi_map_of_deltas_without_heads
);
subject!(container_b_tree, [PLAIN], narrow_b_tree);
subject!(container_b_tree_with_heads, [PLAIN HEAD_IS_KEY], headed_b_tree);
subject!(container_avl, [PLAIN], avl);
