//! Masstree with layers that come and go; the keys of the suite are numbers, which need no layers.

use super::byte_keyed::Keys;
use tremula_index::Masstree;

/// Some keys are alone under their slices, some are in layers with others. As neighbours come and
/// go, layers are made, split, merge and are removed.
static KEYS: Keys<&str> = Keys {
    stable: [
        "aspen",
        "populus alba",
        "populus tremula",
        "populus tremula x",
        "populus tremuloides",
        "willow",
    ],
    restless: [
        "aspen grove",
        "aspen group",
        "populus balsamifera",
        "populus tremula alba",
        "populus",
        "willow herb",
    ],
    written: [1, 5],
};

#[test]
fn masstree_snapshots_are_of_one_moment_whatever_layers_become() {
    let name = "masstree_snapshots_are_of_one_moment_whatever_layers_become";
    KEYS.snapshots_are_of_one_moment(name, Masstree::<_, _>::new);
}

#[test]
fn masstree_ranges_go_whole_whatever_layers_become() {
    let name = "masstree_ranges_go_whole_whatever_layers_become";
    KEYS.ranges_go_whole(name, Masstree::<_, _>::new);
}
