//! The engines and the container of this crate with hostile keys and values: the suite of
//! `tremula-index`, whose `hostile/main.rs` says what it does and how to repeat a failure.
#![cfg(not(any(loom, shuttle, tremula_tsan)))]

#[path = "../support/mod.rs"]
mod support;

#[path = "../../../index/tests/hostile/campaign.rs"]
mod campaign;
#[path = "../../../index/tests/hostile/layouts.rs"]
mod layouts;
#[path = "../../../index/tests/hostile/life.rs"]
mod life;
mod multi_map;
#[path = "../../../index/tests/hostile/rows.rs"]
mod rows;
#[path = "../../../index/tests/hostile/subject.rs"]
mod subject;
#[path = "../../../index/tests/hostile/temper.rs"]
mod temper;
#[path = "../../../index/tests/hostile/values.rs"]
mod values;

use multi_map::MultiMap;
use rows::{filled, index, registered, subject};
use subject::Contained;
use support::{bw_of_spread_leaves, bw_with_deltas, bw_with_merge_deltas, restless, restless_bw};
use tremula_index::key::{ByteHead, NoHead};
use tremula_index::{ByteKey, CaTree, Locked, OrderedIndex};
use tremula_papers::bw_tree::{BwTreeConfig, BwTreeSwitches};
use tremula_papers::{PaperEngine as Tested, *};
use values::{Key, Value};

/// For subjects whose names contain the first string, the kinds of hostility that are left out.
const KNOWN: &[(&str, &[&str])] = &[];

tremula_papers::paper_engines!(each registered);

index!(restless_ca_tree_on_avl, [PLAIN], |entries| filled(
    CaTree::<_, _, NoHead, Avl<_, _>>::with_config(restless()),
    entries
));
index!(skip_list_with_whole_heads, [HEAD_IS_KEY], |entries| filled(
    SkipList::<_, _>::new(),
    entries
));
index!(skip_list_without_heads, [PLAIN], |entries| filled(
    SkipList::<_, _, NoHead>::new(),
    entries
));
index!(
    background_skip_list_with_whole_heads,
    [HEAD_IS_KEY],
    |entries| filled(BackgroundSkipList::<_, _>::new(), entries)
);
index!(background_skip_list_without_heads, [PLAIN], |entries| {
    filled(BackgroundSkipList::<_, _, NoHead>::new(), entries)
});
index!(locked_avl, [PLAIN], |entries| filled(
    Locked::<_, _, NoHead, Avl<_, _>>::default(),
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

/// A Bw-tree of small nodes with one switch inverted.
macro_rules! switched_bw_tree {
    ($($name:ident: $switch:ident is $on:literal, and all others $others:ident;)*) => {$(
        index!($name, [PLAIN HEAD_IS_KEY], |entries| bw_tree_of(
            small_bw_tree(BwTreeSwitches { $switch: $on, ..BwTreeSwitches::$others }),
            entries
        ));
    )*};
}

index!(bw_tree_with_whole_heads, [HEAD_IS_KEY], |entries| {
    bw_tree_of(BwTreeConfig::default(), entries)
});
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

fn avl<const FORM: u8>() -> Contained<FORM, Avl<Key<FORM>, Value>> {
    Contained::default()
}

subject!(bw_multi_map, [PLAIN HEAD_IS_KEY], multi_map);
subject!(
    bw_multi_map_of_deltas_without_heads,
    [PLAIN],
    multi_map_of_deltas_without_heads
);
subject!(container_avl, [PLAIN], avl);
