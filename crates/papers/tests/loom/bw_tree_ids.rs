//! The ids of the OpenBw-Tree, whose pages come and go: the code of the mapping table itself, which
//! is not public. Under loom a page has two ids, and a chapter two pages.

use ids::Ids;
use std::ptr;
use tremula_sync::atomic::{AtomicUsize, Ordering};
use tremula_sync::epoch;
use tremula_sync::model::check;
use tremula_sync::{Arc, thread};

#[path = "../../src/bw_tree/ids.rs"]
#[allow(dead_code, reason = "a tree that is dropped needs more of it")]
mod ids;

fn allocate(ids: &Ids) -> usize {
    ids.allocate(&epoch::pin())
}

/// Frees an id that no other thread has; returns whether its page was given back at once.
fn free(ids: &Ids, id: usize) -> bool {
    // SAFETY: the id was handed out, and no other thread has it.
    let emptied = unsafe { ids.free(id) };
    emptied.is_some_and(|page| ids.give_back(page, &epoch::pin()))
}

/// Sets the word of an id, which must be null: no other thread has the id.
fn mark(ids: &Ids, id: usize, mark: usize) {
    // SAFETY: the caller has the id.
    let word = unsafe { ids.word(id) };
    assert!(word.load(Ordering::SeqCst).is_null(), "of somebody else");
    word.store(ptr::without_provenance_mut(mark), Ordering::SeqCst);
}

fn marked(ids: &Ids, id: usize) -> usize {
    // SAFETY: the caller has the id.
    unsafe { ids.word(id) }.load(Ordering::SeqCst).addr()
}

/// How many ids are in use, and how many have a word.
fn count(ids: &Ids) -> (usize, usize) {
    let counts = ids.count(&epoch::pin());
    (counts.used, counts.backed)
}

/// Ids with the first page full.
fn with_full_page() -> Arc<Ids> {
    let ids = Ids::new();
    assert_eq!([0; 2].map(|_| allocate(&ids)), [0, 1]);
    Arc::new(ids)
}

/// The last id of a page is freed, and the page given back, while another id is handed out. It
/// would fail if that id were of a page that has been given back, or got lost when the link to a
/// new page is set.
#[test]
fn a_page_of_a_bw_tree_is_given_back_or_used() {
    check("a_page_of_a_bw_tree_is_given_back_or_used", 3, || {
        let ids = with_full_page();
        let last = allocate(&ids);
        assert_eq!(last, 2);
        let other = Arc::clone(&ids);
        let taker = thread::spawn(move || {
            let id = allocate(&other);
            mark(&other, id, 7);
            assert_eq!(marked(&other, id), 7);
            id
        });
        let is_gone = free(&ids, last);
        let id = taker.join().unwrap();
        assert!(id == 2 || id == 3);
        assert_eq!(marked(&ids, id), 7);
        assert_eq!(count(&ids), (3, 4), "given back: {is_gone}");
        let next = allocate(&ids);
        assert_eq!(next, 5 - id, "the other id of the page");
        mark(&ids, next, 8);
        assert_eq!((marked(&ids, id), marked(&ids, next)), (7, 8));
    });
}

/// Two threads look whether a page is still empty, and a third takes an id of it and frees it:
/// nothing is retired twice, and nothing stays.
#[test]
fn a_page_of_a_bw_tree_is_given_back_once() {
    check("a_page_of_a_bw_tree_is_given_back_once", 3, || {
        let ids = with_full_page();
        let last = allocate(&ids);
        // SAFETY: it was handed out, and no thread has it.
        assert_eq!(unsafe { ids.free(last) }, Some(1));
        let others = [0, 1].map(|number| {
            let ids = Arc::clone(&ids);
            thread::spawn(move || {
                if number == 0 {
                    return usize::from(ids.give_back(1, &epoch::pin()));
                }
                let id = allocate(&ids);
                mark(&ids, id, 7);
                usize::from(free(&ids, id))
            })
        });
        let here = usize::from(ids.give_back(1, &epoch::pin()));
        let times = here
            + others
                .map(|other| other.join().unwrap())
                .iter()
                .sum::<usize>();
        // The page that was there at first, and the third thread's: once while that was new, and
        // once when its id was free.
        assert!((1..=3).contains(&times), "given back {times} times");
        assert_eq!(count(&ids), (2, 2));
    });
}

/// One thread finds the first page full, and notes it, while an id of it is freed: the next thread
/// finds the free id.
#[test]
fn room_in_a_page_of_a_bw_tree_is_not_forgotten() {
    check("room_in_a_page_of_a_bw_tree_is_not_forgotten", 3, || {
        let ids = with_full_page();
        let other = Arc::clone(&ids);
        let taker = thread::spawn(move || allocate(&other));
        assert!(!free(&ids, 1));
        let id = taker.join().unwrap();
        assert!(id == 1 || id == 2, "{id}");
        assert_eq!(allocate(&ids), 3 - id, "the lowest that is free");
    });
}

/// A reader comes to an id by a link that is taken away. The id is freed when there is no reader
/// that may have seen the link; a counter of readers stands for the epoch here. So the reader finds
/// the id's own word, though pages come and go.
#[test]
fn a_reader_of_a_bw_tree_has_an_old_id() {
    check("a_reader_of_a_bw_tree_has_an_old_id", 3, || {
        const NONE: usize = 0;
        let ids = with_full_page();
        let id = allocate(&ids);
        mark(&ids, id, 7);
        let link = Arc::new(AtomicUsize::new(id));
        let readers = Arc::new(AtomicUsize::new(0));
        let (its_ids, its_link, its_readers) =
            (Arc::clone(&ids), Arc::clone(&link), Arc::clone(&readers));
        let reader = thread::spawn(move || {
            // These add and take nothing, so that they read the latest value.
            its_readers.fetch_add(1, Ordering::SeqCst);
            let id = its_link.fetch_add(0, Ordering::SeqCst);
            if id != NONE {
                assert_eq!(marked(&its_ids, id), 7, "the id is another's");
            }
            its_readers.fetch_sub(1, Ordering::SeqCst);
        });
        link.swap(NONE, Ordering::SeqCst);
        if readers.fetch_add(0, Ordering::SeqCst) == 0 {
            assert!(free(&ids, id));
            assert_eq!(count(&ids), (2, 2));
            let new = allocate(&ids);
            mark(&ids, new, 8);
        }
        reader.join().unwrap();
    });
}
