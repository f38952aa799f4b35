//! The skip list. Under loom every tower has the greatest height, two levels.

use std::cmp::Ordering;
use tremula_index::key::NoHead;
use tremula_index::{KeyRange, OrderedIndex, Update};
use tremula_papers::{BackgroundSkipList, SkipList};
use tremula_sync::model::check;
use tremula_sync::{Arc, thread};

type List = SkipList<u32, u32>;

fn list(keys: impl IntoIterator<Item = u32>) -> Arc<List> {
    let list = List::new();
    for key in keys {
        list.insert(key, key);
    }
    Arc::new(list)
}

/// Checks what is linked on each level of the quiescent list: on level 0 exactly `keys`, above a
/// part of them, and no removed node.
fn assert_sound(list: &List, keys: &[u32]) {
    let levels = list.linked_keys();
    assert_eq!(levels[0], keys);
    for level in &levels[1..] {
        assert!(level.is_sorted(), "{levels:?}");
        assert!(level.iter().all(|key| keys.contains(key)), "{levels:?}");
    }
    assert_eq!(list.len(), keys.len());
}

#[test]
fn a_tower_may_be_removed_while_it_is_built() {
    check("a_tower_may_be_removed_while_it_is_built", 4, || {
        let list = list([1]);
        let other = Arc::clone(&list);
        let remover = thread::spawn(move || other.remove(&2));
        assert_eq!(list.insert(2, 2), None);
        let removed = remover.join().unwrap();
        assert_sound(&list, if removed.is_some() { &[1] } else { &[1, 2] });
    });
}

#[test]
fn a_key_may_come_back_while_its_old_node_is_removed() {
    check(
        "a_key_may_come_back_while_its_old_node_is_removed",
        3,
        || {
            let list = list([2]);
            let other = Arc::clone(&list);
            let remover = thread::spawn(move || other.remove(&2));
            let replaced = list.insert(2, 3);
            let removed = remover.join().unwrap();
            match replaced {
                // The insertion came second and made a node of its own.
                None => {
                    assert_eq!(removed, Some(2));
                    assert_sound(&list, &[2]);
                }
                Some(old) => {
                    assert_eq!((old, removed), (2, Some(3)));
                    assert_sound(&list, &[]);
                }
            }
        },
    );
}

#[test]
fn neighbours_may_be_inserted_and_removed_at_once() {
    check("neighbours_may_be_inserted_and_removed_at_once", 3, || {
        let list = list([2, 4]);
        let other = Arc::clone(&list);
        let remover = thread::spawn(move || assert_eq!(other.remove(&2), Some(2)));
        assert_eq!(list.insert(3, 3), None);
        // This thread finds what it has inserted, whatever happens to the node in front of it.
        assert_eq!(list.get(&3), Some(3));
        remover.join().unwrap();
        assert_sound(&list, &[3, 4]);
    });
}

#[test]
fn a_reader_misses_nothing_that_stays() {
    check("a_reader_misses_nothing_that_stays", 3, || {
        let list = list([1, 2, 3]);
        let other = Arc::clone(&list);
        let reader = thread::spawn(move || {
            assert_eq!(other.get(&3), Some(3));
            let next = other.next(&1).unwrap();
            assert!(next == (2, 2) || next == (3, 3));
        });
        assert_eq!(list.remove(&2), Some(2));
        reader.join().unwrap();
        assert_sound(&list, &[1, 3]);
    });
}

#[test]
fn adjacent_removals_leave_nothing_linked() {
    check("adjacent_removals_leave_nothing_linked", 3, || {
        let list = list([1, 2]);
        let other = Arc::clone(&list);
        let remover = thread::spawn(move || assert_eq!(other.remove(&1), Some(1)));
        assert_eq!(list.remove(&2), Some(2));
        remover.join().unwrap();
        assert_sound(&list, &[]);
    });
}

#[test]
fn decisions_about_an_absent_key_come_one_after_another() {
    check(
        "decisions_about_an_absent_key_come_one_after_another",
        3,
        || {
            let list = list([]);
            let increment = |list: &List| {
                let mut calls = 0;
                list.update(7, &mut |count| {
                    calls += 1;
                    Update::Put(count.unwrap_or(&0) + 1)
                });
                assert_eq!(calls, 1);
            };
            let other = Arc::clone(&list);
            let thread = thread::spawn(move || increment(&other));
            increment(&list);
            thread.join().unwrap();
            assert_eq!(list.get(&7), Some(2));
            assert_sound(&list, &[7]);
        },
    );
}

#[test]
fn an_entry_is_popped_once() {
    check("skip_list::an_entry_is_popped_once", 3, || {
        let list = list([1]);
        let other = Arc::clone(&list);
        let popper = thread::spawn(move || other.pop_first());
        let here = list.pop_last();
        let there = popper.join().unwrap();
        assert_eq!(here.or(there), Some((1, 1)));
        assert!(here.is_none() || there.is_none());
        assert_sound(&list, &[]);
    });
}

#[test]
fn a_node_may_be_removed_before_its_tower_is_built_in_the_background() {
    check(
        "a_node_may_be_removed_before_its_tower_is_built_in_the_background",
        2,
        || {
            let list = BackgroundSkipList::<u32, u32>::new();
            assert_eq!(list.insert(1, 1), None);
            assert_eq!(list.remove(&1), Some(1));
            assert_eq!(list.len(), 0);
            // Ends the builder, and frees the node once.
            drop(list);
        },
    );
}

/// Keys among which 9 compares as greater, both ways, so that its search stops in front of another
/// key.
#[derive(Clone, Debug)]
struct Odd(u32);

impl Ord for Odd {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.0 == 9 || other.0 == 9 {
            return Ordering::Greater;
        }
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Odd {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Odd {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Odd {}

/// The search for the removed node misses it, and another search passes it while its links are
/// being marked. The node must be freed once, by the thread that takes away the last link or by the
/// drop of the list. The test fails if the keepers of a node are not the levels that link it, or if
/// it is freed never or twice.
#[test]
fn a_node_that_its_own_search_misses_is_freed_once() {
    check("a_node_that_its_own_search_misses_is_freed_once", 3, || {
        let value = std::sync::Arc::new(());
        let list = Arc::new(SkipList::<Odd, std::sync::Arc<()>, NoHead>::new());
        list.insert(Odd(9), std::sync::Arc::clone(&value));
        list.insert(Odd(1), std::sync::Arc::clone(&value));
        let other = Arc::clone(&list);
        let remover = thread::spawn(move || assert!(other.pop_last().is_some()));
        list.insert(Odd(2), std::sync::Arc::clone(&value));
        remover.join().unwrap();
        let _checked = list.linked_keys();
        drop(list);
        assert_eq!(std::sync::Arc::strong_count(&value), 1);
    });
}

/// The thread that takes away the node's last link and the task that unlinks it agree on which of
/// them frees it.
#[test]
fn a_node_may_be_unlinked_before_its_task_is_done() {
    check("a_node_may_be_unlinked_before_its_task_is_done", 2, || {
        let value = std::sync::Arc::new(());
        let list = BackgroundSkipList::<u32, std::sync::Arc<()>>::new();
        list.insert(1, std::sync::Arc::clone(&value));
        let list = Arc::new(list);
        let other = Arc::clone(&list);
        let remover = thread::spawn(move || assert!(other.remove(&1).is_some()));
        // Passes the node.
        list.insert(0, std::sync::Arc::clone(&value));
        remover.join().unwrap();
        drop(list);
        assert_eq!(std::sync::Arc::strong_count(&value), 1);
    });
}

/// A task that comes between the thread's last look at its queue and the end of the list is done
/// all the same: else a node that only its task keeps is never freed.
#[test]
fn the_thread_of_a_list_ends_when_all_its_tasks_are_done() {
    check(
        "the_thread_of_a_list_ends_when_all_its_tasks_are_done",
        2,
        || {
            let value = std::sync::Arc::new(());
            let list = BackgroundSkipList::<u32, std::sync::Arc<()>>::new();
            list.insert(1, std::sync::Arc::clone(&value));
            assert_eq!(list.remove_range(KeyRange::all()), 1);
            // Passes the node, and takes its links away.
            list.insert(0, std::sync::Arc::clone(&value));
            drop(list);
            assert_eq!(std::sync::Arc::strong_count(&value), 1);
        },
    );
}
