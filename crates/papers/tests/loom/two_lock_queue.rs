//! The queue of two locks.

use tremula_papers::two_lock_queue::TwoLockQueue;
use tremula_sync::model::check;
use tremula_sync::{Arc, thread};

/// Fails if a thread that takes sees a node before its value, or if a node is freed that a thread
/// still appends to.
#[test]
fn a_queue_of_two_locks_hands_on_each_value_in_order() {
    check(
        "a_queue_of_two_locks_hands_on_each_value_in_order",
        3,
        || {
            let queue = Arc::new(TwoLockQueue::new());
            let other = Arc::clone(&queue);
            let appends = thread::spawn(move || {
                other.push(Box::new(1));
                other.push(Box::new(2));
            });
            let mut taken: Vec<u32> = (0..2).filter_map(|_| queue.pop()).map(|it| *it).collect();
            appends.join().unwrap();
            taken.extend(std::iter::from_fn(|| queue.pop()).map(|it| *it));
            assert_eq!(taken, [1, 2]);
        },
    );
}
