//! The code of the cookbook (`docs/cookbook.md`), which quotes these functions.

use std::cmp::Reverse;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tremula::mailbox::{bounded, unbounded};
use tremula::{Direction, OrderedMap, OrderedSet, Update};

#[test]
fn share() {
    let map = Arc::new(OrderedMap::new());
    let writer = {
        let map = Arc::clone(&map);
        thread::spawn(move || map.insert(1, "one"))
    };
    writer.join().unwrap();
    assert_eq!(map.get(&1), Some("one"));
}

#[test]
fn count() {
    let words = OrderedMap::new();
    for word in ["ash", "elm", "ash"] {
        words.update(word, |count| {
            Update::Put(count.map_or(1, |count| count + 1))
        });
    }
    assert_eq!(words.get(&"ash"), Some(2));

    // Down again, and out of the map at zero, in the same step.
    let release = |word| {
        words.update(word, |count| match count {
            Some(&count) if count > 1 => Update::Put(count - 1),
            _ => Update::Remove,
        })
    };
    release("elm");
    assert!(!words.contains_key(&"elm"));
}

#[test]
fn make_once() {
    let connections: OrderedMap<u32, Arc<str>> = OrderedMap::new();
    let first = connections.get_or_insert_with(7, || "a new connection".into());
    let second = connections.get_or_insert_with(7, || unreachable!("it is there"));
    assert!(Arc::ptr_eq(&first, &second));
}

#[test]
fn claim() {
    let seats = OrderedMap::from([(12, "free"), (13, "taken")]);
    assert_eq!(seats.compare_exchange(12, &"free", "mine"), Ok("free"));
    assert_eq!(
        seats.compare_exchange(13, &"free", "mine"),
        Err(Some("taken"))
    );
    assert_eq!(seats.remove_if(&13, |state| *state == "free"), None);
}

#[test]
fn priority_queue() {
    let jobs = OrderedMap::new();
    for (number, (priority, job)) in [(1, "sweep"), (9, "alarm"), (1, "water")]
        .into_iter()
        .enumerate()
    {
        // The greatest priority first; among equals the earliest.
        jobs.insert((Reverse(priority), number), job);
    }
    // Each job goes to one thread.
    let order: Vec<_> = std::iter::from_fn(|| jobs.pop_first())
        .map(|(_, job)| job)
        .collect();
    assert_eq!(order, ["alarm", "sweep", "water"]);
}

#[test]
fn neighbours() {
    let tariffs = OrderedMap::from([(0, "letter"), (100, "parcel"), (5000, "freight")]);
    assert_eq!(tariffs.at_or_below(&250), Some((100, "parcel")));
    assert_eq!(tariffs.at_or_above(&250), Some((5000, "freight")));
    assert_eq!(tariffs.prev(&100), Some((0, "letter")));
    assert_eq!(tariffs.next(&100), Some((5000, "freight")));
}

#[test]
fn prefix() {
    let files: OrderedMap<String, u64> = ["etc/fstab", "src/lib.rs", "src/main.rs", "target"]
        .into_iter()
        .map(|path| (path.to_owned(), path.len() as u64))
        .collect();
    // `0` is the character behind `/`.
    let sources = files.range_by("src/".."src0");
    assert_eq!(sources.map(|(_, size)| size).sum::<u64>(), 21);
}

#[test]
fn borrowed_forms() {
    let files: OrderedMap<String, u64> = [("etc/fstab".to_owned(), 9)].into();
    assert_eq!(files.get("etc/fstab"), Some(9)); // allocates nothing
    assert_eq!(files.at_or_above("etc"), Some(("etc/fstab".to_owned(), 9)));
    assert_eq!(files.get_or_insert_by("target", || 6), 6);
    assert_eq!(files.remove("target"), Some(6));
}

#[test]
fn pages() {
    let map: OrderedMap<u32, u32> = (0..100).map(|key| (key, key * key)).collect();
    let page = |after: Option<u32>| {
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        map.scan((after, Bound::Unbounded), Direction::Ascending, 30)
    };
    let first = page(None);
    let second = page(first.last().map(|(key, _)| *key));
    assert_eq!(second.first(), Some(&(30, 900)));
}

#[test]
fn one_moment() {
    let accounts = OrderedMap::from([("ann", 70), ("ben", 30)]);
    let all = accounts
        .snapshot(..)
        .expect("every engine of this crate has snapshots");
    assert_eq!(all.iter().map(|(_, money)| money).sum::<u32>(), 100);
}

#[test]
fn no_copies() {
    let texts = OrderedMap::from([
        (1, "a long text".to_owned()),
        (2, "a longer text".to_owned()),
    ]);
    assert_eq!(texts.get_with(&1, |text| text.len()), Some(11));

    let mut bytes = 0;
    let found = texts.for_each(.., Direction::Ascending, |key, text| {
        bytes += text.len();
        if bytes > 20 {
            ControlFlow::Break(*key)
        } else {
            ControlFlow::Continue(())
        }
    });
    assert_eq!(found, ControlFlow::Break(2));
}

#[test]
fn many_values_of_one_key() {
    let authors = OrderedSet::from([("graph", "Ann"), ("graph", "Ben"), ("tree", "Cho")]);
    let of_graph = authors.range(("graph", "")..("graph\0", ""));
    assert!(of_graph.map(|(_, name)| name).eq(["Ann", "Ben"]));
}

#[test]
fn expiry() {
    // When each session ends, beside the sessions themselves.
    let sessions = OrderedMap::from([("s1", 300), ("s2", 900), ("s3", 450)]);
    let ends: OrderedSet<(u64, &str)> = sessions.iter().map(|(id, end)| (end, id)).collect();

    let now = 500;
    for (end, id) in ends.drain(..(now, "")) {
        // Unless it has been prolonged meanwhile.
        sessions.remove_if(&id, |current| *current == end);
    }
    assert!(sessions.keys().eq(["s2"]));
}

#[test]
fn own_an_iterator() {
    let map = Arc::new(OrderedMap::from([(1, 'a'), (2, 'b'), (3, 'c')]));
    let range = OrderedMap::range_of(Arc::clone(&map), 2..);
    let thread = thread::spawn(move || range.map(|(_, letter)| letter).collect::<String>());
    assert_eq!(thread.join().unwrap(), "bc");
}

#[test]
fn backpressure() {
    let (sender, mut mailbox) = bounded(2);
    let producer = thread::spawn(move || {
        for number in 0..100 {
            sender.send(number)?; // waits while two messages lie in the mailbox
        }
        Ok::<_, tremula::mailbox::SendError<i32>>(())
    });
    assert_eq!(mailbox.iter().sum::<i32>(), 4950); // ends when no sender is left
    producer.join().unwrap().unwrap();
}

#[test]
fn batches() {
    let (sender, mut mailbox) = unbounded();
    (0..10).for_each(|number| sender.send(number).unwrap());
    let mut batch = Vec::new();
    mailbox.recv_many(&mut batch, 1000); // waits for one, and takes all that are there
    assert_eq!(batch, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn selective() {
    let (sender, mut mailbox) = unbounded();
    for message in ["work", "work", "answer"] {
        sender.send(message).unwrap();
    }
    sender.send_urgent("stop").unwrap();
    let limit = Duration::from_secs(60);
    assert_eq!(
        mailbox.recv_matching_timeout(limit, |message| *message == "answer"),
        Ok("answer")
    );
    assert!(mailbox.try_iter().eq(["stop", "work", "work"]));
}
