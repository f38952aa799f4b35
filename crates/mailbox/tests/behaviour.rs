//! One test for each promise: those in the public documentation of `crossbeam-channel` and
//! `tokio::sync::mpsc` that apply to mailboxes, and those that mailboxes add.
//!
//! No test asserts a time. Where a thread must be waiting, a test waits until it observes that, or
//! is right either way.
#![cfg(not(any(loom, shuttle)))]

mod support;

use futures_core::Stream;
use futures_core::stream::FusedStream;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};
use support::{CountingWaker, block_on};
use tremula_mailbox::{
    CallError, Config, Mode, RecvError, RecvTimeoutError, Reply, SendError, SendTimeoutError,
    TryRecvError, TrySendError, bounded, mailbox, unbounded,
};

const SHORT: Duration = Duration::from_millis(2);
const LONG: Duration = Duration::from_secs(600);

// Sending and receiving.

#[test]
fn messages_of_any_kind_arrive_unchanged() {
    let (sender, mut mailbox) = unbounded::<Box<dyn FnOnce() -> String + Send>>();
    sender.send(Box::new(|| "late".to_owned())).unwrap();
    assert_eq!(mailbox.recv().unwrap()(), "late");
    let (sender, mut mailbox) = unbounded::<()>();
    (0..1000).for_each(|_| sender.send(()).unwrap());
    assert_eq!(mailbox.try_iter().count(), 1000);
    let (sender, mut mailbox) = unbounded::<[u64; 100]>();
    (0..1000).for_each(|number| sender.send([number; 100]).unwrap());
    assert!(mailbox.try_iter().eq((0..1000).map(|number| [number; 100])));
}

#[test]
fn handles_are_send_and_sync_if_messages_are_send() {
    fn check<T: Send + Sync>(_: &T) {}
    let (sender, mut mailbox) = unbounded::<std::cell::Cell<u64>>();
    check(&sender);
    check(&mailbox);
    fn is_send<T: Send>(_: &T) {}
    is_send(&sender.send_async(std::cell::Cell::new(1)));
    is_send(&mailbox.recv_async());
}

#[test]
fn a_shared_sender_may_be_used_by_many_threads() {
    let (sender, mailbox) = unbounded();
    thread::scope(|scope| {
        for number in 0..4_u64 {
            let sender = &sender;
            scope.spawn(move || (0..1000).for_each(|i| sender.send(number * 1000 + i).unwrap()));
        }
    });
    drop(sender);
    let mut all: Vec<_> = mailbox.into_iter().collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..4000));
}

#[test]
fn len_and_capacity_are_what_is_there_and_may_be() {
    let (sender, mut mailbox) = bounded(3);
    assert_eq!((sender.capacity(), mailbox.capacity()), (Some(3), Some(3)));
    assert!(sender.is_empty() && mailbox.is_empty());
    sender.send(1).unwrap();
    sender.send_urgent(2).unwrap();
    assert_eq!((sender.len(), mailbox.len()), (2, 2));
    mailbox.recv().unwrap();
    assert_eq!((sender.len(), mailbox.len()), (1, 1));
    assert_eq!(unbounded::<()>().0.capacity(), None);
}

#[test]
fn free_capacity_is_what_can_be_sent_at_once() {
    let (sender, mut mailbox) = bounded(2);
    let free = |left| {
        assert_eq!(sender.free_capacity(), Some(left));
        assert_eq!(sender.is_full(), left == 0);
    };
    free(2);
    sender.send(1).unwrap();
    sender.send_urgent(2).unwrap();
    free(0);
    assert!(mailbox.is_full());
    let mut waiting = Box::pin(sender.send_async(3));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(waiting.as_mut().poll(&mut cx).is_pending());
    mailbox.recv().unwrap();
    free(0); // the waiting send holds it
    drop(waiting);
    free(1);
    let (sender, mailbox) = unbounded::<()>();
    assert_eq!((sender.free_capacity(), mailbox.is_full()), (None, false));
}

#[test]
fn senders_are_counted() {
    let (sender, mailbox) = unbounded::<()>();
    let (watched, _worker) = unbounded::<()>();
    let other = sender.clone();
    assert_eq!((other.sender_count(), mailbox.sender_count()), (2, 2));
    drop(other);
    let monitor = watched.monitor(&sender, ());
    assert_eq!(mailbox.sender_count(), 2);
    assert!(monitor.demonitor());
    drop(sender);
    assert_eq!(mailbox.sender_count(), 0);
}

#[test]
fn same_mailbox_tells_mailboxes_apart() {
    let (one, _one) = unbounded::<()>();
    let (two, _two) = unbounded::<()>();
    assert!(one.same_mailbox(&one.clone()));
    assert!(!one.same_mailbox(&two));
}

// Capacity.

#[test]
fn a_full_mailbox_returns_what_is_tried_and_takes_it_later() {
    let (sender, mut mailbox) = bounded(2);
    sender.try_send(1).unwrap();
    sender.try_send(2).unwrap();
    assert_eq!(sender.try_send(3), Err(TrySendError::Full(3)));
    assert_eq!(
        sender.send_timeout(3, SHORT),
        Err(SendTimeoutError::Timeout(3))
    );
    assert_eq!(mailbox.recv(), Ok(1));
    sender.send_deadline(3, Instant::now()).unwrap();
    assert_eq!(
        sender.send_deadline(4, Instant::now()),
        Err(SendTimeoutError::Timeout(4))
    );
    assert_eq!(mailbox.try_iter().collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn a_send_waits_until_there_is_room() {
    let (sender, mut mailbox) = bounded(1);
    let thread = thread::spawn(move || (0..100).for_each(|number| sender.send(number).unwrap()));
    assert!(mailbox.iter().eq(0..100));
    thread.join().unwrap();
}

#[test]
#[should_panic(expected = "capacity of 1 message")]
fn a_mailbox_without_room_is_refused() {
    let _ = Config::default().bounded(0);
}

#[test]
fn a_send_that_is_given_up_leaves_room_to_others() {
    let (sender, mut mailbox) = bounded(1);
    sender.try_send(1).unwrap();
    let (_, waker) = CountingWaker::new();
    let mut cx = Context::from_waker(&waker);
    let (second, third) = (sender.clone(), sender.clone());
    let mut given_up = Box::pin(second.send_async(2));
    assert!(given_up.as_mut().poll(&mut cx).is_pending());
    let mut waiting = Box::pin(third.send_async(3));
    assert!(waiting.as_mut().poll(&mut cx).is_pending());
    // The capacity goes to the first waiting sender, which then gives up.
    assert_eq!(mailbox.recv(), Ok(1));
    drop(given_up);
    assert_eq!(waiting.as_mut().poll(&mut cx), Poll::Ready(Ok(())));
    assert_eq!(mailbox.recv(), Ok(3));
    sender.try_send(4).unwrap();
    assert_eq!(sender.try_send(5), Err(TrySendError::Full(5)));
}

#[test]
fn room_goes_to_those_who_wait_in_their_order() {
    let (sender, mut mailbox) = bounded(1);
    sender.try_send(0).unwrap();
    let (counting, waker) = CountingWaker::new();
    let mut cx = Context::from_waker(&waker);
    let senders: Vec<_> = (0..3).map(|_| sender.clone()).collect();
    let mut sends: Vec<_> = (senders.iter().zip(1..))
        .map(|(sender, number)| Box::pin(sender.send_async(number)))
        .collect();
    for send in &mut sends {
        assert!(send.as_mut().poll(&mut cx).is_pending());
    }
    for (number, send) in sends.iter_mut().enumerate() {
        assert_eq!(mailbox.recv(), Ok(number));
        assert_eq!(counting.count(), number + 1);
        assert_eq!(
            sender.try_send(9),
            Err(TrySendError::Full(9)),
            "it is reserved"
        );
        assert!(send.as_mut().poll(&mut cx).is_ready());
    }
}

#[test]
fn a_message_behind_all_takes_no_room() {
    let (sender, mut mailbox) = bounded(1);
    sender.send(1).unwrap();
    sender.send_behind_all(2).unwrap();
    assert_eq!(mailbox.recv(), Ok(1));
    assert_eq!(mailbox.recv(), Ok(2));
    sender.try_send(3).unwrap();
    assert!(
        sender.try_send(4).is_err(),
        "there is room for one, not for two"
    );
}

// Closing.

#[test]
fn what_was_sent_is_received_after_the_last_sender_is_gone() {
    let (sender, mut mailbox) = unbounded();
    let other = sender.clone();
    sender.send(1).unwrap();
    drop(sender);
    other.send(2).unwrap();
    drop(other);
    assert_eq!(mailbox.recv(), Ok(1));
    assert_eq!(mailbox.recv_timeout(LONG), Ok(2));
    assert_eq!(mailbox.recv(), Err(RecvError));
    assert_eq!(mailbox.try_recv(), Err(TryRecvError::Disconnected));
    assert_eq!(
        mailbox.recv_timeout(LONG),
        Err(RecvTimeoutError::Disconnected)
    );
    assert_eq!(mailbox.recv_many(&mut Vec::new(), 9), 0);
    assert_eq!(mailbox.iter().next(), None);
}

#[test]
fn a_receiver_that_sleeps_is_woken_by_the_last_sender() {
    let (sender, mut mailbox) = unbounded::<()>();
    let thread = thread::spawn(move || mailbox.recv());
    thread::sleep(SHORT);
    drop(sender);
    assert_eq!(thread.join().unwrap(), Err(RecvError));
}

#[test]
fn a_mailbox_that_is_gone_returns_every_message() {
    for config in [Config::default(), Config::default().bounded(2)] {
        let (sender, mailbox) = mailbox(config);
        sender.send(1).unwrap();
        assert!(!sender.is_closed());
        drop(mailbox);
        assert!(sender.is_closed());
        assert_eq!(sender.send(2), Err(SendError(2)));
        assert_eq!(sender.try_send(3), Err(TrySendError::Closed(3)));
        assert_eq!(
            sender.send_timeout(4, LONG),
            Err(SendTimeoutError::Closed(4))
        );
        assert_eq!(block_on(sender.send_async(5)), Err(SendError(5)));
        assert_eq!(sender.send_urgent(6), Err(SendError(6)));
        assert_eq!(sender.send_behind_all(7), Err(SendError(7)));
    }
}

#[test]
fn a_send_that_waits_is_told_that_the_mailbox_is_gone() {
    let (sender, mailbox) = bounded(1);
    sender.send(1).unwrap();
    let other = sender.clone();
    let thread = thread::spawn(move || other.send(2));
    let (counting, waker) = CountingWaker::new();
    let mut cx = Context::from_waker(&waker);
    let mut task = pin!(sender.send_async(3));
    assert!(task.as_mut().poll(&mut cx).is_pending());
    drop(mailbox);
    assert_eq!(thread.join().unwrap(), Err(SendError(2)));
    assert_eq!(counting.count(), 1);
    assert_eq!(task.as_mut().poll(&mut cx), Poll::Ready(Err(SendError(3))));
}

#[test]
fn closing_keeps_what_was_sent_and_lets_nothing_in() {
    let (sender, mut mailbox) = unbounded();
    sender.send(1).unwrap();
    sender.send_urgent(2).unwrap();
    mailbox.close();
    assert!(mailbox.is_closed() && sender.is_closed());
    assert_eq!(sender.send(3), Err(SendError(3)));
    assert_eq!(sender.send_urgent(4), Err(SendError(4)));
    assert_eq!(mailbox.try_iter().collect::<Vec<_>>(), [2, 1]);
    assert_eq!(mailbox.recv(), Err(RecvError));
}

#[test]
fn each_message_is_dropped_once() {
    for mode in Mode::ALL {
        let witness = Arc::new(());
        let config = Config::default()
            .mode(mode)
            .weights(1, -1)
            .install_above(100);
        let (sender, mut mailbox) = mailbox(config);
        (0..1000).for_each(|_| sender.send(Arc::clone(&witness)).unwrap());
        sender.send_urgent(Arc::clone(&witness)).unwrap();
        for _ in 0..10 {
            mailbox.recv().unwrap();
        }
        mailbox.recv_matching(|_| true).unwrap();
        (0..10).for_each(|_| sender.send(Arc::clone(&witness)).unwrap());
        assert_eq!(Arc::strong_count(&witness), 1001);
        drop(mailbox);
        assert_eq!(Arc::strong_count(&witness), 1);
        assert!(sender.send(Arc::clone(&witness)).is_err());
        assert_eq!(Arc::strong_count(&witness), 1);
    }
}

// Time.

#[test]
fn waiting_for_a_message_ends_in_time_or_with_it() {
    let (sender, mut mailbox) = unbounded();
    assert_eq!(mailbox.recv_timeout(SHORT), Err(RecvTimeoutError::Timeout));
    assert_eq!(
        mailbox.recv_timeout(Duration::ZERO),
        Err(RecvTimeoutError::Timeout)
    );
    assert_eq!(
        mailbox.recv_deadline(Instant::now()),
        Err(RecvTimeoutError::Timeout)
    );
    let thread = thread::spawn(move || {
        thread::sleep(SHORT);
        sender.send(1).unwrap();
        sender
    });
    assert_eq!(mailbox.recv_timeout(Duration::MAX), Ok(1));
    let sender = thread.join().unwrap();
    sender.send(2).unwrap();
    assert_eq!(mailbox.recv_timeout(Duration::ZERO), Ok(2), "it is there");
}

#[test]
fn a_receiver_that_slept_long_is_woken() {
    // Longer than the mailbox keeps memory for further messages.
    let (sender, mut mailbox) = unbounded();
    let thread = thread::spawn(move || mailbox.iter().sum::<u64>());
    for number in 0..3 {
        thread::sleep(Duration::from_millis(15));
        sender.send(number).unwrap();
    }
    drop(sender);
    assert_eq!(thread.join().unwrap(), 3);
}

// Tasks.

#[test]
fn a_task_is_woken_once_by_the_first_message() {
    let (sender, mut mailbox) = unbounded();
    let (counting, waker) = CountingWaker::new();
    let mut cx = Context::from_waker(&waker);
    assert!(mailbox.poll_recv(&mut cx).is_pending());
    (0..100).for_each(|number| sender.send(number).unwrap());
    assert_eq!(counting.count(), 1, "exactly one send wakes");
    for number in 0..100 {
        assert_eq!(mailbox.poll_recv(&mut cx), Poll::Ready(Ok(number)));
    }
    assert_eq!(counting.count(), 1, "nobody wakes who is awake");
}

#[test]
fn only_the_latest_waker_is_woken() {
    let (sender, mut mailbox) = unbounded();
    let (old, old_waker) = CountingWaker::new();
    let (new, new_waker) = CountingWaker::new();
    assert!(
        mailbox
            .poll_recv(&mut Context::from_waker(&old_waker))
            .is_pending()
    );
    assert!(
        mailbox
            .poll_recv(&mut Context::from_waker(&new_waker))
            .is_pending()
    );
    sender.send(1).unwrap();
    assert_eq!((old.count(), new.count()), (0, 1));
}

#[test]
fn a_receive_that_is_given_up_loses_nothing() {
    let (sender, mut mailbox) = unbounded();
    let mut cx = Context::from_waker(Waker::noop());
    for number in 0..100 {
        {
            let mut given_up = pin!(mailbox.recv_matching_async(|found| *found == number));
            assert!(given_up.as_mut().poll(&mut cx).is_pending());
            sender.send(number + 1000).unwrap();
            assert!(given_up.as_mut().poll(&mut cx).is_pending());
            sender.send(number).unwrap();
        }
        assert_eq!(block_on(mailbox.recv_async()), Ok(number + 1000));
        assert_eq!(block_on(mailbox.recv_async()), Ok(number));
    }
}

#[test]
fn a_mailbox_is_a_stream() {
    let (sender, mut mailbox) = unbounded();
    let mut cx = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut mailbox).poll_next(&mut cx).is_pending());
    sender.send(1).unwrap();
    assert_eq!(
        Pin::new(&mut mailbox).poll_next(&mut cx),
        Poll::Ready(Some(1))
    );
    drop(sender);
    assert!(!mailbox.is_terminated());
    assert_eq!(Pin::new(&mut mailbox).poll_next(&mut cx), Poll::Ready(None));
    assert!(mailbox.is_terminated());
}

#[test]
fn tasks_and_threads_may_take_turns() {
    let (sender, mut mailbox) = bounded(4);
    let thread = thread::spawn(move || {
        for number in 0..1000_u64 {
            if number % 2 == 0 {
                block_on(sender.send_async(number)).unwrap();
            } else {
                sender.send(number).unwrap();
            }
        }
    });
    for number in 0..1000 {
        let received = match number % 3 {
            0 => block_on(mailbox.recv_async()),
            1 => mailbox.recv(),
            _ => mailbox.recv_matching(|_| true),
        };
        assert_eq!(received, Ok(number));
    }
    let mut none = Vec::new();
    assert_eq!(block_on(mailbox.recv_many_async(&mut none, 5)), 0);
    thread.join().unwrap();
}

// Selective receive and urgent messages.

#[test]
fn what_was_seen_is_not_looked_at_again_while_waiting() {
    let (sender, mut mailbox) = unbounded();
    (0..100).for_each(|number| sender.send(number).unwrap());
    let mut looks = 0;
    {
        let mut cx = Context::from_waker(Waker::noop());
        let mut wanted = pin!(mailbox.recv_matching_async(|number| {
            looks += 1;
            *number == 104
        }));
        for number in 100..104 {
            assert!(wanted.as_mut().poll(&mut cx).is_pending());
            sender.send(number).unwrap();
        }
        sender.send(104).unwrap();
        assert_eq!(wanted.as_mut().poll(&mut cx), Poll::Ready(Ok(104)));
    }
    assert_eq!(looks, 105);
    assert!(mailbox.try_iter().eq(0..104));
}

#[test]
fn a_panic_while_selecting_loses_nothing() {
    let (sender, mut mailbox) = unbounded();
    (0..10).for_each(|number| sender.send(number).unwrap());
    sender.send_urgent(100).unwrap();
    let select = std::panic::AssertUnwindSafe(|| {
        mailbox.recv_matching(|number| {
            assert!(*number != 5, "as arranged");
            false
        })
    });
    assert!(std::panic::catch_unwind(select).is_err());
    assert_eq!(mailbox.recv(), Ok(100));
    assert!(mailbox.try_iter().eq(0..10));
}

#[test]
fn selecting_waits_for_what_fits_and_ends_when_nothing_can() {
    let (sender, mut mailbox) = unbounded();
    sender.send(1).unwrap();
    let found = mailbox.recv_matching_timeout(SHORT, |number| *number == 2);
    assert_eq!(found, Err(RecvTimeoutError::Timeout));
    assert_eq!(
        mailbox.try_recv_matching(|number| *number == 2),
        Err(TryRecvError::Empty)
    );
    let thread = thread::spawn(move || sender.send(2));
    assert_eq!(mailbox.recv_matching(|number| *number == 2), Ok(2));
    thread.join().unwrap().unwrap();
    assert_eq!(mailbox.recv_matching(|number| *number == 2), Err(RecvError));
    assert_eq!(mailbox.recv(), Ok(1));
}

#[test]
fn urgent_messages_overtake_ordinary_ones_only() {
    let (sender, mut mailbox) = unbounded();
    (0..3).for_each(|number| sender.send(number).unwrap());
    assert_eq!(mailbox.recv(), Ok(0));
    (10..13).for_each(|number| sender.clone().send_urgent(number).unwrap());
    let mut all = Vec::new();
    assert_eq!(mailbox.recv_many(&mut all, 9), 5);
    assert_eq!(all, [10, 11, 12, 1, 2]);
}

// Calls and monitors.

#[test]
fn a_call_tells_why_it_has_no_answer() {
    let (sender, mut mailbox) = unbounded::<Reply<u64>>();
    assert_eq!(sender.call(|reply| reply, SHORT), Err(CallError::Timeout));
    let late = mailbox.recv().unwrap();
    assert_eq!(late.send(1), Err(1), "nobody waits for it any more");
    let thread = thread::spawn(move || {
        drop(mailbox.recv());
        mailbox.recv().unwrap().send(2).unwrap();
        mailbox
    });
    assert_eq!(sender.call(|reply| reply, LONG), Err(CallError::Down));
    assert_eq!(block_on(sender.call_async(|reply| reply)), Ok(2));
    drop(thread.join().unwrap());
    assert_eq!(sender.call(|reply| reply, LONG), Err(CallError::Down));
}

#[test]
fn a_request_that_nobody_received_is_told_when_the_mailbox_goes() {
    let (sender, mailbox) = unbounded::<Reply<u64>>();
    let thread = thread::spawn(move || sender.call(|reply| reply, LONG));
    while mailbox.is_empty() {
        thread::yield_now();
    }
    drop(mailbox);
    assert_eq!(thread.join().unwrap(), Err(CallError::Down));
}

#[test]
fn a_monitor_is_told_once_and_at_once_if_it_is_late() {
    let (to_watched, watched) = unbounded::<()>();
    let (to_watcher, mut watcher) = unbounded();
    let first = to_watched.monitor(&to_watcher, 1);
    let second = to_watched.monitor(&to_watcher, 2);
    assert!(second.demonitor());
    to_watched.monitor(&to_watcher, 3);
    assert_eq!(watcher.try_recv(), Err(TryRecvError::Empty));
    drop(watched);
    assert_eq!(watcher.try_iter().collect::<Vec<_>>(), [1, 3]);
    assert!(!first.demonitor());
    assert!(!to_watched.monitor(&to_watcher, 4).demonitor());
    assert_eq!(watcher.recv(), Ok(4));
    drop(to_watcher);
    assert_eq!(
        watcher.recv(),
        Err(RecvError),
        "no monitor is left to keep it connected"
    );
}

// Adaptation.

#[test]
fn adaptation_is_counted() {
    // Contention always rises; an array is removed if two flushes brought fewer than ten messages.
    let config = Config::default()
        .slots(1)
        .weights(1, -1)
        .install_above(0)
        .grow_above(5)
        .remove_below(10.0, 2);
    let (sender, mut mailbox) = mailbox(config);
    (0..20).for_each(|number| sender.send(number).unwrap());
    let stats = sender.stats();
    assert!(sender.is_contended() && mailbox.is_contended());
    assert_eq!(
        (stats.installs, stats.growths),
        (1, 2),
        "two levels below: {stats:?}"
    );
    assert!(mailbox.try_iter().eq(0..20));
    sender.send(20).unwrap();
    assert_eq!(mailbox.recv(), Ok(20));
    let stats = mailbox.stats();
    assert_eq!(
        (stats.removals, stats.shrinks, stats.flushes),
        (0, 2, 2),
        "{stats:?}"
    );
    assert_eq!((stats.sends(), stats.flushed), (21, 20), "{stats:?}");
    assert!((stats.messages_a_flush() - 10.0).abs() < 1e-9);
    for number in 21..23 {
        sender.send(number).unwrap();
        assert_eq!(mailbox.recv(), Ok(number));
    }
    assert!(!mailbox.is_contended());
    assert_eq!(mailbox.stats().removals, 1);
}

#[test]
fn on_heap_mode_never_installs_slots() {
    let config = Config::default()
        .mode(Mode::OnHeap)
        .weights(1, -1)
        .install_above(0);
    let (sender, mut mailbox) = mailbox(config);
    (0..5000).for_each(|number| sender.send(number).unwrap());
    assert_eq!(mailbox.stats().installs, 0);
    assert!(mailbox.try_iter().eq(0..5000));
}

#[test]
fn modes_have_names() {
    for mode in Mode::ALL {
        assert_eq!(mode.name().to_uppercase().parse(), Ok(mode));
    }
    let unknown = "heap".parse::<Mode>().unwrap_err();
    assert!(unknown.to_string().contains("'heap'"));
}
