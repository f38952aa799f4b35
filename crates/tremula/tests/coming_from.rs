//! Every call that `docs/coming-from.md` names on our side, typed once. `documents.rs` looks
//! for them here.

use std::ops::ControlFlow;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tremula::mailbox::{bounded, oneshot, unbounded};
use tremula::{Direction, OrderedMap, OrderedSet, Update};

const LONG: Duration = Duration::from_secs(60);

/// The result of a future that need not wait.
fn ready<F: Future>(future: F) -> F::Output {
    let mut cx = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut cx) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("it waits"),
    }
}

#[test]
fn single_keys() {
    let map = OrderedMap::new();
    assert!(map.is_empty());
    assert_eq!(map.insert(1, "a"), None);
    assert_eq!(map.insert_if_absent(1, "b"), Err("b"));
    assert_eq!(map.get(&1), Some("a"));
    assert_eq!(map.get_with(&1, |value| value.len()), Some(1));
    assert!(map.contains_key(&1));
    assert_eq!(map.len(), 1);
    assert_eq!(map.get_or_insert_with(2, || "b"), "b");
    assert_eq!(map.update(2, |_| Update::Put("c")), Some("b"));
    assert_eq!(map.compare_exchange(2, &"c", "d"), Ok("c"));
    assert_eq!(map.remove_if(&2, |value| *value == "c"), None);
    assert_eq!(map.remove(&2), Some("d"));
    map.clear();
    assert_eq!(map.first(), None);
}

#[test]
fn orders_and_ranges() {
    let map = OrderedMap::from([(1, 'a'), (3, 'c'), (5, 'e'), (7, 'g'), (9, 'i')]);
    assert_eq!(map.first_key_value(), map.first());
    assert_eq!(map.last_key_value(), map.last());
    assert_eq!(map.pop_first(), Some((1, 'a')));
    assert_eq!(map.pop_last(), Some((9, 'i')));
    assert_eq!(map.at_or_below(&4), Some((3, 'c')));
    assert_eq!(map.at_or_above(&4), Some((5, 'e')));
    assert_eq!(map.next(&5), Some((7, 'g')));
    assert_eq!(map.prev(&5), Some((3, 'c')));
    assert!(map.range(3..6).eq([(3, 'c'), (5, 'e')]));
    let backwards = (std::ops::Bound::Included(6), std::ops::Bound::Excluded(3));
    assert_eq!(map.range(backwards).count(), 0, "no panic");
    assert!(map.iter().rev().map(|(key, _)| key).eq([7, 5, 3]));
    assert!(map.keys().eq([3, 5, 7]));
    assert!(map.values().eq(['c', 'e', 'g']));
    assert_eq!(map.snapshot(5..), Some(vec![(5, 'e'), (7, 'g')]));
    assert_eq!(map.scan(.., Direction::Descending, 1), [(7, 'g')]);
    let found = map.for_each(4.., Direction::Ascending, |key, _| ControlFlow::Break(*key));
    assert_eq!(found, ControlFlow::Break(5));
}

#[test]
fn whole_maps() {
    let map: OrderedMap<u32, u32> = (0..10).map(|key| (key, key)).collect();
    let mut copy = map.clone();
    assert_eq!(map, copy);
    copy.extend([(10, 10)]);
    assert_eq!(copy.retain(.., |key, _| key % 2 == 0), 5);
    assert!(copy.drain(8..).eq([(8, 8), (10, 10)]));
    assert_eq!(format!("{copy:?}"), "{0: 0, 2: 2, 4: 4, 6: 6}");
    assert_eq!(copy.remove_range(..4), 2);
    assert!(copy.clone().into_keys().eq([4, 6]));
    assert!(copy.clone().into_values().eq([4, 6]));
    assert!(copy.into_iter().eq([(4, 4), (6, 6)]));
    assert_eq!(map.len(), 10);
}

#[test]
fn two_sets() {
    let (odd, prime) = (OrderedSet::from([1, 3, 5]), OrderedSet::from([2, 3, 5]));
    assert!(odd.union(&prime).eq([1, 2, 3, 5]));
    assert!(odd.intersection(&prime).eq([3, 5]));
    assert!(odd.difference(&prime).eq([1]));
    assert!(odd.symmetric_difference(&prime).eq([1, 2]));
    assert!(!odd.is_subset(&prime) && !odd.is_superset(&prime) && !odd.is_disjoint(&prime));
}

#[test]
fn channels_of_threads() {
    let (sender, mut mailbox) = bounded(2);
    assert_eq!(mailbox.capacity(), Some(2));
    sender.send(1).unwrap();
    sender.try_send(2).unwrap();
    assert!(sender.try_send(3).is_err());
    assert!(sender.send_timeout(3, Duration::ZERO).is_err());
    assert!(sender.send_deadline(3, Instant::now()).is_err());
    assert_eq!(mailbox.len(), 2);
    assert!(mailbox.is_full() && sender.is_full());
    assert_eq!(mailbox.recv(), Ok(1));
    assert_eq!(mailbox.try_recv(), Ok(2));
    assert!(mailbox.is_empty());
    assert!(mailbox.recv_timeout(Duration::ZERO).is_err());
    assert!(mailbox.recv_deadline(Instant::now()).is_err());
    sender.send_behind_all(4).unwrap();
    sender.send_urgent(5).unwrap();
    assert!(mailbox.try_iter().eq([5, 4]));
    sender.send(6).unwrap();
    sender.send(7).unwrap();
    assert_eq!(mailbox.recv_matching(|number| *number == 7), Ok(7));
    assert!(sender.same_mailbox(&sender.clone()));
    let mut batch = Vec::new();
    assert_eq!(mailbox.recv_many(&mut batch, 10), 1);

    let (to_watcher, mut watcher) = unbounded();
    sender.monitor(&to_watcher, "down");
    mailbox.close();
    assert!(sender.is_closed());
    assert_eq!(mailbox.iter().count(), 0);
    assert_eq!(mailbox.into_iter().count(), 0);
    assert_eq!(watcher.recv(), Ok("down"));
}

#[test]
fn requests() {
    let (sender, mut mailbox) = unbounded();
    let server = std::thread::spawn(move || {
        while let Ok((number, reply)) = mailbox.recv() {
            let reply: tremula::mailbox::Reply<i32> = reply;
            reply.send(2 * number).unwrap();
        }
    });
    assert_eq!(sender.call(|reply| (21, reply), LONG), Ok(42));
    drop(sender);
    server.join().unwrap();

    let (sender, mut mailbox) = unbounded::<tremula::mailbox::Reply<u32>>();
    mailbox.close();
    assert!(ready(sender.call_async(|reply| reply)).is_err());

    let (answer, question) = oneshot();
    answer.send(7).unwrap();
    assert_eq!(question.recv(), Ok(7));
}

#[test]
fn channels_of_tasks() {
    let (sender, mut mailbox) = bounded(3);
    ready(sender.send_async(1)).unwrap();
    assert_eq!(ready(mailbox.recv_async()), Ok(1));
    ready(sender.send_async(2)).unwrap();
    let mut batch = Vec::new();
    assert_eq!(ready(mailbox.recv_many_async(&mut batch, 10)), 1);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(mailbox.poll_recv(&mut cx).is_pending());
    ready(sender.reserve()).unwrap().send(3).unwrap();
    sender.try_reserve().unwrap().send(4).unwrap();
    assert!(sender.downgrade().upgrade().is_some());
    assert!(!sender.closed_timeout(Duration::ZERO));
    mailbox.close();
    ready(sender.closed());
}
