//! One test for each promise of a channel for one value.
//!
//! No test asserts a time. Where a thread must be waiting, a test is right either way.
#![cfg(not(any(loom, shuttle)))]

mod support;

use futures_core::future::FusedFuture;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};
use support::CountingWaker;
use tremula_mailbox::{RecvError, RecvTimeoutError, TryRecvError, oneshot};

const SHORT: Duration = Duration::from_millis(2);
const LONG: Duration = Duration::from_secs(600);

#[test]
fn handles_are_send_and_sync_if_the_value_is_send() {
    fn check<T: Send + Sync + Unpin>(_: &T) {}
    fn is_send<T: Send>(_: &T) {}
    let (mut sender, receiver) = oneshot::<std::cell::Cell<u64>>();
    check(&sender);
    check(&receiver);
    is_send(&sender.closed());
}

#[test]
fn a_value_arrives_by_each_way_to_receive() {
    let ways: [fn(tremula_mailbox::OneshotReceiver<u64>) -> u64; 4] = [
        |receiver| receiver.recv().unwrap(),
        |mut receiver| receiver.try_recv().unwrap(),
        |mut receiver| receiver.recv_timeout(LONG).unwrap(),
        |mut receiver| receiver.recv_deadline(Instant::now() + LONG).unwrap(),
    ];
    for way in ways {
        let (sender, receiver) = oneshot();
        assert_eq!(sender.send(1), Ok(()));
        assert_eq!(way(receiver), 1);
    }
}

#[test]
fn a_thread_that_waits_is_woken_by_the_value_and_by_the_lack_of_one() {
    for value in [Some(1), None] {
        let (sender, receiver) = oneshot();
        let thread = thread::spawn(move || receiver.recv());
        thread::sleep(SHORT);
        match value {
            Some(value) => sender.send(value).unwrap(),
            None => drop(sender),
        }
        assert_eq!(thread.join().unwrap(), value.ok_or(RecvError));
    }
}

#[test]
fn a_task_that_waits_is_woken_once_and_only_by_its_latest_waker() {
    for value in [Some(1), None] {
        let (sender, mut receiver) = oneshot();
        let (early, waker) = CountingWaker::new();
        let mut pinned = Pin::new(&mut receiver);
        assert!(
            pinned
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        let (late, waker) = CountingWaker::new();
        let mut cx = Context::from_waker(&waker);
        assert!(pinned.as_mut().poll(&mut cx).is_pending());
        assert_eq!(Arc::strong_count(&early), 2, "the first waker is dropped");
        match value {
            Some(value) => sender.send(value).unwrap(),
            None => drop(sender),
        }
        assert_eq!((early.count(), late.count()), (0, 1));
        assert!(!pinned.is_terminated());
        assert_eq!(
            pinned.as_mut().poll(&mut cx),
            Poll::Ready(value.ok_or(RecvError))
        );
        assert!(pinned.is_terminated());
        assert_eq!(pinned.as_mut().poll(&mut cx), Poll::Ready(Err(RecvError)));
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    }
}

#[test]
fn waiting_ends_in_time_and_the_value_may_come_later() {
    let (sender, mut receiver) = oneshot();
    assert_eq!(receiver.recv_timeout(SHORT), Err(RecvTimeoutError::Timeout));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    sender.send(1).unwrap();
    assert_eq!(receiver.recv_timeout(SHORT), Ok(1));
    assert_eq!(
        receiver.recv_timeout(LONG),
        Err(RecvTimeoutError::Disconnected)
    );
}

#[test]
fn a_receiver_that_closes_keeps_the_value_that_was_sent_and_refuses_a_later_one() {
    let (sender, mut receiver) = oneshot();
    sender.send(1).unwrap();
    receiver.close();
    assert_eq!(receiver.try_recv(), Ok(1));

    let (sender, mut receiver) = oneshot();
    receiver.close();
    receiver.close();
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    assert_eq!(sender.send(1), Err(1));
    assert_eq!(receiver.recv(), Err(RecvError));
}

#[test]
fn a_sender_sees_that_the_receiver_is_gone_and_is_woken_once() {
    for close in [true, false] {
        let (mut sender, mut receiver) = oneshot::<u64>();
        let (counting, waker) = CountingWaker::new();
        let mut cx = Context::from_waker(&waker);
        {
            let mut closed = pin!(sender.closed());
            assert!(closed.as_mut().poll(&mut cx).is_pending());
            assert!(closed.as_mut().poll(&mut cx).is_pending());
        }
        assert!(!sender.is_closed());
        assert!(!sender.closed_timeout(SHORT));
        assert!(sender.poll_closed(&mut cx).is_pending());
        if close {
            receiver.close();
            receiver.close();
        }
        drop(receiver);
        assert_eq!(counting.count(), 1);
        assert!(sender.is_closed());
        assert!(sender.closed_timeout(Duration::ZERO));
        assert!(sender.poll_closed(&mut cx).is_ready());
        assert_eq!(sender.send(1), Err(1));
    }
}

#[test]
fn a_thread_that_waits_for_the_end_of_the_receiver_is_woken() {
    let (mut sender, receiver) = oneshot::<u64>();
    let thread = thread::spawn(move || sender.closed_timeout(Duration::MAX));
    thread::sleep(SHORT);
    drop(receiver);
    assert!(thread.join().unwrap());
}

#[test]
fn the_value_and_the_wakers_are_dropped_once() {
    let witness = Arc::new(());
    let (sender, receiver) = oneshot();
    sender.send(Arc::clone(&witness)).unwrap();
    assert_eq!(Arc::strong_count(&witness), 2);
    drop(receiver);
    assert_eq!(Arc::strong_count(&witness), 1);

    let (counting, waker) = CountingWaker::new();
    let mut cx = Context::from_waker(&waker);
    let (mut sender, mut receiver) = oneshot();
    assert!(sender.poll_closed(&mut cx).is_pending());
    assert!(Pin::new(&mut receiver).poll(&mut cx).is_pending());
    sender.send(Arc::clone(&witness)).unwrap();
    assert_eq!(
        Arc::strong_count(&counting),
        2,
        "neither side is registered"
    );
    assert_eq!(Arc::strong_count(&witness), 2);
    drop(receiver.recv().unwrap());
    assert_eq!(Arc::strong_count(&witness), 1);
}
