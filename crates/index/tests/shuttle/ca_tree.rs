//! The contention-adapting tree at the places where a join takes several steps.

use tremula_index::{CaTree, KeyRange, OrderedIndex};
use tremula_sync::{Arc, model, thread};

/// The neighbour is further down than the base node that begins the join, so the joined base node
/// and the link above it are not replaced at once. A thread that goes from base node to base node
/// must not come to the joined one past the route node that no longer bounds it: it would look for
/// that boundary in vain, and leave out all that follows.
#[test]
fn a_join_hides_nothing_from_the_removal_of_a_range() {
    let name = "ca_tree::a_join_hides_nothing_from_the_removal_of_a_range";
    model::check(name, 20_000, || {
        let tree = CaTree::<u32, u32>::new();
        for key in 0..32 {
            tree.insert(key, key);
        }
        // Deep on the left: 8 lies in a base node whose left neighbour is two links further down,
        // and another base node follows.
        for _ in 0..3 {
            tree.split_now(&0);
        }
        let figure = |name| tree.shape().get(name).unwrap();
        assert_eq!((figure("base_nodes"), figure("route_depth")), (4, 3));
        let tree = Arc::new(tree);
        let joined = Arc::clone(&tree);
        let joiner = thread::spawn(move || joined.join_now(&8));
        assert_eq!(tree.remove_range(KeyRange::all()), 32);
        joiner.join().unwrap();
        assert!(tree.is_empty());
    });
}
