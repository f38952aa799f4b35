//! One test for each promise of what senders can do beside sending: wait until the mailbox is
//! closed, be weak, reserve capacity, be a sink.
//!
//! No test asserts a time. Where a thread must be waiting, a test is right either way.
#![cfg(not(any(loom, shuttle)))]

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;
use tremula_mailbox::{RecvError, SendError, Sender, TryRecvError, bounded, unbounded};

const SHORT: Duration = Duration::from_millis(2);

/// Counts how often it wakes.
#[derive(Default)]
struct CountingWaker(AtomicUsize);

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl CountingWaker {
    fn new() -> (Arc<Self>, Waker) {
        let counting = Arc::new(Self::default());
        (Arc::clone(&counting), Waker::from(counting))
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

#[test]
fn handles_are_send_and_sync_if_messages_are_send() {
    fn check<T: Send + Sync + Unpin>(_: &T) {}
    fn is_send<T: Send>(_: &T) {}
    let (sender, _mailbox) = unbounded::<std::cell::Cell<u64>>();
    check(&sender);
    check(&sender.downgrade());
    is_send(&sender.closed());
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
