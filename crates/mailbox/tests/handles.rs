//! One test for each promise of what senders can do beside sending: wait until the mailbox is
//! closed, be weak, reserve capacity, be a sink.
//!
//! No test asserts a time. Where a thread must be waiting, a test is right either way.
#![cfg(not(any(loom, shuttle)))]

mod support;

use futures_sink::Sink;
use futures_util::{SinkExt, StreamExt, stream};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;
use support::{CountingWaker, block_on};
use tremula_mailbox::{
    RecvError, SendError, SendTimeoutError, Sender, TryRecvError, TrySendError, bounded, unbounded,
};

const SHORT: Duration = Duration::from_millis(2);

#[test]
fn handles_are_send_and_sync_if_messages_are_send() {
    fn check<T: Send + Sync + Unpin>(_: &T) {}
    fn is_send<T: Send>(_: &T) {}
    let (sender, _mailbox) = unbounded::<std::cell::Cell<u64>>();
    check(&sender);
    check(&sender.downgrade());
    is_send(&sender.closed());
    is_send(&sender.reserve());
    check(&sender.try_reserve().unwrap());
}

#[test]
fn a_sender_is_three_words_at_most() {
    assert!(size_of::<Sender<u64>>() <= 3 * size_of::<usize>());
}

// Waiting until the mailbox is closed.

#[test]
fn every_task_that_waits_for_the_end_is_woken_once() {
    for close in [true, false] {
        let (sender, mut mailbox) = unbounded::<u64>();
        let (counting, waker) = CountingWaker::new();
        let mut cx = Context::from_waker(&waker);
        let other = sender.clone();
        let mut waits = [&sender, &sender, &other].map(|sender| Box::pin(sender.closed()));
        for wait in &mut waits {
            assert!(wait.as_mut().poll(&mut cx).is_pending());
            assert!(wait.as_mut().poll(&mut cx).is_pending());
        }
        sender.send(1).unwrap();
        assert_eq!(counting.count(), 0);
        if close {
            mailbox.close();
            mailbox.close();
            assert_eq!(mailbox.recv(), Ok(1));
        }
        drop(mailbox);
        assert_eq!(counting.count(), 3);
        for wait in &mut waits {
            assert!(wait.as_mut().poll(&mut cx).is_ready());
        }
        assert!(pin!(sender.closed()).poll(&mut cx).is_ready());
        assert!(sender.closed_timeout(Duration::ZERO));
    }
}

#[test]
fn only_the_latest_waker_of_a_wait_for_the_end_is_woken() {
    let (sender, mailbox) = unbounded::<u64>();
    let (early, waker) = CountingWaker::new();
    let mut closed = pin!(sender.closed());
    assert!(
        closed
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    drop(waker);
    let (late, waker) = CountingWaker::new();
    assert!(
        closed
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    assert_eq!(Arc::strong_count(&early), 1, "the first waker is dropped");
    drop(mailbox);
    assert_eq!((early.count(), late.count()), (0, 1));
}

#[test]
fn a_wait_for_the_end_that_is_given_up_leaves_no_waker() {
    let (sender, mailbox) = unbounded::<u64>();
    let (counting, waker) = CountingWaker::new();
    let mut cx = Context::from_waker(&waker);
    let mut given_up = Box::pin(sender.closed());
    let mut waits = pin!(sender.closed());
    assert!(given_up.as_mut().poll(&mut cx).is_pending());
    assert!(waits.as_mut().poll(&mut cx).is_pending());
    assert_eq!(Arc::strong_count(&counting), 4);
    drop(given_up);
    assert_eq!(Arc::strong_count(&counting), 3);
    assert!(!sender.closed_timeout(SHORT));
    drop(mailbox);
    assert_eq!(counting.count(), 1);
}

#[test]
fn a_thread_that_waits_for_the_end_is_woken() {
    let (sender, mailbox) = unbounded::<u64>();
    let thread = thread::spawn(move || sender.closed_timeout(Duration::MAX));
    thread::sleep(SHORT);
    drop(mailbox);
    assert!(thread.join().unwrap());
}

/// Fails if the mailbox is looked at when the wait is made, and not when it is polled first.
#[test]
fn a_mailbox_that_closes_before_the_first_poll_is_seen() {
    let (sender, mut mailbox) = unbounded::<u64>();
    let mut cx = Context::from_waker(Waker::noop());
    let mut closed = pin!(sender.closed());
    mailbox.close();
    assert!(closed.as_mut().poll(&mut cx).is_ready());
}

// Weak senders.

#[test]
fn a_weak_sender_keeps_no_mailbox_connected() {
    let (sender, mut mailbox) = unbounded();
    let weak = sender.downgrade();
    let other = weak.clone();
    assert!(weak.same_mailbox(&other));
    assert!(!weak.same_mailbox(&unbounded::<u64>().0.downgrade()));
    sender.send(1).unwrap();
    assert_eq!((weak.sender_count(), mailbox.sender_count()), (1, 1));
    drop(sender);
    assert_eq!((weak.sender_count(), mailbox.sender_count()), (0, 0));
    assert!(weak.upgrade().is_none() && other.upgrade().is_none());
    assert_eq!(mailbox.recv(), Ok(1));
    assert_eq!(mailbox.try_recv(), Err(TryRecvError::Disconnected));
    drop(mailbox);
    assert!(other.upgrade().is_none());
}

#[test]
fn a_sender_made_from_a_weak_one_keeps_the_mailbox_connected() {
    let (sender, mut mailbox) = unbounded();
    let weak = sender.downgrade();
    let again = weak.upgrade().unwrap();
    assert!(again.same_mailbox(&sender));
    drop(sender);
    assert_eq!(mailbox.try_recv(), Err(TryRecvError::Empty));
    weak.upgrade().unwrap().send(1).unwrap();
    drop(weak);
    again.send(2).unwrap();
    drop(again);
    assert_eq!(mailbox.iter().sum::<u64>(), 3);
}

#[test]
fn a_receiver_that_sleeps_is_woken_by_the_last_sender_beside_weak_ones() {
    let (sender, mut mailbox) = unbounded::<u64>();
    let weak = sender.downgrade();
    let thread = thread::spawn(move || mailbox.recv());
    thread::sleep(SHORT);
    drop(sender);
    assert_eq!(thread.join().unwrap(), Err(RecvError));
    drop(weak);
}

#[test]
fn a_weak_sender_keeps_no_message_and_no_waker() {
    let witness = Arc::new(());
    let (counting, waker) = CountingWaker::new();
    let mut cx = Context::from_waker(&waker);
    let (sender, mut mailbox) = bounded(2);
    let weak = sender.downgrade();
    assert!(mailbox.poll_recv(&mut cx).is_pending());
    sender.send(Arc::clone(&witness)).unwrap();
    sender.send_urgent(Arc::clone(&witness)).unwrap();
    {
        let mut waits = pin!(sender.send_async(Arc::clone(&witness)));
        assert!(waits.as_mut().poll(&mut cx).is_pending());
        let mut closed = pin!(sender.closed());
        assert!(closed.as_mut().poll(&mut cx).is_pending());
        drop(mailbox);
        assert!(matches!(
            waits.as_mut().poll(&mut cx),
            Poll::Ready(Err(SendError(_)))
        ));
    }
    let again = weak.upgrade().unwrap();
    assert!(again.is_closed());
    drop((sender, again));
    drop(waker);
    assert_eq!(Arc::strong_count(&witness), 1);
    assert_eq!(Arc::strong_count(&counting), 1);
    assert!(weak.upgrade().is_none());
}

// Permits.

#[test]
fn a_permit_holds_room_for_one_message_and_gives_it_back_once() {
    let (sender, mut mailbox) = bounded(2);
    let first = sender.try_reserve().unwrap();
    let second = sender.reserve_timeout(Duration::MAX).unwrap();
    assert_eq!(sender.try_send(0), Err(TrySendError::Full(0)));
    assert_eq!(sender.try_reserve().unwrap_err(), TrySendError::Full(()));
    assert_eq!(
        sender.reserve_timeout(SHORT).unwrap_err(),
        SendTimeoutError::Timeout(())
    );
    drop(first);
    assert_eq!(sender.free_capacity(), Some(1));
    second.send(1).unwrap();
    assert_eq!(sender.free_capacity(), Some(1));
    assert_eq!(mailbox.recv(), Ok(1));
    assert_eq!(sender.free_capacity(), Some(2));
}

#[test]
fn a_message_has_its_place_from_when_it_is_sent() {
    let (sender, mailbox) = bounded(3);
    let permit = sender.try_reserve().unwrap();
    sender.send(1).unwrap();
    permit.send(2).unwrap();
    sender.send(3).unwrap();
    drop(sender);
    assert!(mailbox.into_iter().eq(1..=3));
}

#[test]
fn room_that_a_permit_gives_back_goes_to_those_who_wait_in_their_order() {
    let (sender, mut mailbox) = bounded(1);
    let (counting, waker) = CountingWaker::new();
    let mut cx = Context::from_waker(&waker);
    let permit = sender.try_reserve().unwrap();
    let mut reserve = Box::pin(sender.reserve());
    assert!(reserve.as_mut().poll(&mut cx).is_pending());
    let mut send = Box::pin(sender.send_async(2));
    assert!(send.as_mut().poll(&mut cx).is_pending());
    drop(permit);
    assert_eq!(counting.count(), 1);
    assert!(send.as_mut().poll(&mut cx).is_pending());
    let Poll::Ready(Ok(permit)) = reserve.as_mut().poll(&mut cx) else {
        panic!("the room is reserved");
    };
    permit.send(1).unwrap();
    assert!(send.as_mut().poll(&mut cx).is_pending());
    assert_eq!(mailbox.recv(), Ok(1));
    assert_eq!(send.as_mut().poll(&mut cx), Poll::Ready(Ok(())));
    assert_eq!(mailbox.recv(), Ok(2));
}

#[test]
fn a_reservation_that_is_given_up_leaves_room_to_others() {
    let (sender, mailbox) = bounded::<u64>(1);
    let mut cx = Context::from_waker(Waker::noop());
    let permit = sender.try_reserve().unwrap();
    let mut given_up = Box::pin(sender.reserve());
    let mut waits = Box::pin(sender.reserve());
    assert!(given_up.as_mut().poll(&mut cx).is_pending());
    assert!(waits.as_mut().poll(&mut cx).is_pending());
    drop(permit); // to the first that waits, which then gives up
    drop(given_up);
    let Poll::Ready(Ok(permit)) = waits.as_mut().poll(&mut cx) else {
        panic!("the room is there");
    };
    assert_eq!(mailbox.free_capacity(), Some(0));
    drop(permit);
    assert_eq!(mailbox.free_capacity(), Some(1));
}

#[test]
fn there_is_always_room_in_an_unbounded_mailbox() {
    let (sender, mut mailbox) = unbounded();
    let permits: Vec<_> = (0..10).map(|_| sender.try_reserve().unwrap()).collect();
    permits
        .into_iter()
        .for_each(|permit| permit.send(1).unwrap());
    block_on(sender.reserve()).unwrap().send(1).unwrap();
    let permit = sender.reserve_timeout(Duration::ZERO).unwrap();
    assert_eq!(mailbox.try_iter().count(), 11);
    drop(permit);
}

#[test]
fn a_closed_mailbox_reserves_nothing() {
    for (sender, mailbox) in [unbounded(), bounded(1)] {
        let permit = sender.try_reserve().unwrap();
        let waits = pin!(sender.reserve());
        drop(mailbox);
        assert_eq!(permit.send(1), Err(SendError(1)));
        assert_eq!(block_on(waits).unwrap_err(), SendError(()));
        assert_eq!(sender.try_reserve().unwrap_err(), TrySendError::Closed(()));
        assert_eq!(
            sender.reserve_timeout(Duration::MAX).unwrap_err(),
            SendTimeoutError::Closed(())
        );
    }
    let (sender, mailbox) = bounded::<u64>(1);
    let (counting, waker) = CountingWaker::new();
    let mut cx = Context::from_waker(&waker);
    let permit = sender.try_reserve().unwrap();
    let mut waits = pin!(sender.reserve());
    assert!(waits.as_mut().poll(&mut cx).is_pending());
    drop(mailbox);
    assert_eq!(counting.count(), 1);
    drop(permit);
    assert!(matches!(waits.as_mut().poll(&mut cx), Poll::Ready(Err(_))));
}

// Sinks.

#[test]
fn a_stream_may_be_forwarded_to_a_sender() {
    for (sender, mailbox) in [unbounded(), bounded(1), bounded(3)] {
        let numbers = stream::iter(0..1000).map(Ok);
        let thread = thread::spawn(move || block_on(numbers.forward(sender)));
        assert!(mailbox.into_iter().eq(0..1000));
        thread.join().unwrap().unwrap();
    }
}

#[test]
fn a_sink_that_is_ready_holds_room_for_one_message() {
    let (mut sender, mut mailbox) = bounded(1);
    let mut other = sender.clone();
    let (counting, waker) = CountingWaker::new();
    let mut cx = Context::from_waker(&waker);
    assert!(sender.poll_ready_unpin(&mut cx).is_ready());
    assert!(sender.poll_ready_unpin(&mut cx).is_ready());
    assert_eq!(sender.try_send(0), Err(TrySendError::Full(0)));
    assert!(other.poll_ready_unpin(&mut cx).is_pending());
    sender.start_send_unpin(1).unwrap();
    assert!(sender.poll_flush_unpin(&mut cx).is_ready());
    assert_eq!(counting.count(), 0);
    assert_eq!(mailbox.recv(), Ok(1));
    assert_eq!(counting.count(), 1);
    assert_eq!(
        sender.try_send(0),
        Err(TrySendError::Full(0)),
        "it is the other's"
    );
    assert!(other.poll_ready_unpin(&mut cx).is_ready());
    other.start_send_unpin(2).unwrap();
    assert_eq!(mailbox.recv(), Ok(2));
    assert_eq!(mailbox.free_capacity(), Some(1));
}

#[test]
fn a_sink_that_goes_or_closes_gives_its_room_back() {
    for close in [true, false] {
        let mut cx = Context::from_waker(Waker::noop());
        let (mut sender, mut mailbox) = bounded(1);
        let (mut second, mut third) = (sender.clone(), sender.clone());
        let end = |mut sender: Sender<u64>| {
            let mut cx = Context::from_waker(Waker::noop());
            if close {
                assert!(sender.poll_close_unpin(&mut cx).is_ready());
                assert!(sender.poll_close_unpin(&mut cx).is_ready());
            }
        };
        assert!(sender.poll_ready_unpin(&mut cx).is_ready());
        assert!(second.poll_ready_unpin(&mut cx).is_pending());
        assert!(third.poll_ready_unpin(&mut cx).is_pending());
        end(second); // leaves the queue
        end(sender); // gives to the third
        assert!(third.poll_ready_unpin(&mut cx).is_ready());
        third.start_send_unpin(1).unwrap();
        assert_eq!(mailbox.recv(), Ok(1));
        assert!(third.poll_ready_unpin(&mut cx).is_ready());
        assert_eq!(mailbox.free_capacity(), Some(0));
        end(third);
        assert_eq!(mailbox.free_capacity(), Some(1));
    }
}

#[test]
fn a_sink_of_a_closed_mailbox_says_so() {
    let mut cx = Context::from_waker(Waker::noop());
    for (mut sender, mut mailbox) in [unbounded(), bounded(1)] {
        assert!(sender.poll_ready_unpin(&mut cx).is_ready());
        mailbox.close();
        assert_eq!(sender.start_send_unpin(1), Err(SendError(())));
        assert_eq!(block_on(sender.feed(2)), Err(SendError(())));
        assert_eq!(mailbox.recv(), Err(RecvError));
    }
}

#[test]
#[should_panic(expected = "needs a poll_ready before it")]
fn a_sink_that_is_not_ready_is_not_sent_to() {
    let (mut sender, _mailbox) = bounded(1);
    let _ = Pin::new(&mut sender).start_send(1);
}
