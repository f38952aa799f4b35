//! The radix tree with entries in many nodes.

use super::byte_keyed::Keys;
use tremula_index::Art;

/// Some keys are prefixes of others, some share none. As neighbours come and go, nodes are made,
/// grow, shrink and are removed.
static KEYS: Keys<&[u8]> = Keys {
    stable: [
        &[1],
        &[1, 2, 3],
        &[1, 2, 4],
        &[2, 2, 2],
        &[2, 2, 2, 1],
        &[9],
    ],
    restless: [
        &[1, 2],
        &[1, 2, 5],
        &[1, 2, 6],
        &[2, 1],
        &[2, 2, 2, 1, 1],
        &[],
    ],
    written: [0, 5],
};

#[test]
fn art_snapshots_are_of_one_moment_whatever_nodes_become() {
    let name = "art_snapshots_are_of_one_moment_whatever_nodes_become";
    KEYS.snapshots_are_of_one_moment(name, Art::<_, _>::new);
}

#[test]
fn art_ranges_go_whole_whatever_nodes_become() {
    let name = "art_ranges_go_whole_whatever_nodes_become";
    KEYS.ranges_go_whole(name, Art::<_, _>::new);
}
