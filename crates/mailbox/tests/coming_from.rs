//! What users of other channels type, by the tables of the README: it compiles, and does what it
//! does there.
#![cfg(not(any(loom, shuttle)))]

use futures_util::{SinkExt, StreamExt, stream};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};
use tremula_mailbox::{
    RecvError, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError, bounded,
    oneshot, unbounded,
};

const SHORT: Duration = Duration::from_millis(2);

/// Runs a future on this thread, which looks again and again.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
        thread::yield_now();
    }
}

#[test]
fn crossbeam_channel() {
    let (s, mut r) = bounded(2);
    let s2 = s.clone();
    assert_eq!((s.capacity(), s.len(), r.len()), (Some(2), 0, 0));
    assert!(s.is_empty() && r.is_empty());
    thread::scope(|scope| {
        scope.spawn(|| s2.send("Hello, world!").unwrap());
        assert_eq!(r.recv(), Ok("Hello, world!"));
    });
    assert_eq!(r.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(r.recv_timeout(SHORT), Err(RecvTimeoutError::Timeout));
    let soon = Instant::now() + SHORT;
    assert_eq!(r.recv_deadline(soon), Err(RecvTimeoutError::Timeout));
    s.send_timeout("1", SHORT).unwrap();
    s.send_deadline("2", soon).unwrap();
    assert!(s.is_full() && r.is_full());
    assert_eq!(s.try_send("3"), Err(TrySendError::Full("3")));
    let late = s.send_deadline("3", soon);
    assert_eq!(late, Err(SendTimeoutError::Timeout("3")));
    assert!(s.same_mailbox(&s2));
    drop((s, s2));
    assert_eq!(r.try_iter().next(), Some("1"));
    assert_eq!(r.iter().next(), Some("2"));
    assert_eq!(r.recv(), Err(RecvError));
    assert_eq!(r.into_iter().count(), 0);

    let (s, r) = unbounded();
    drop(r);
    let error = s.send(1).unwrap_err();
    assert_eq!(
        (error.to_string(), error.into_inner()),
        ("the mailbox is closed".to_owned(), 1)
    );
}

#[test]
fn tokio_mpsc() {
    let (tx, mut rx) = bounded(3);
    block_on(async {
        tx.send_async(1).await.unwrap();
        let permit = tx.reserve().await.unwrap();
        assert_eq!((tx.free_capacity(), tx.capacity()), (Some(1), Some(3)));
        permit.send(2).unwrap();
        tx.try_reserve().unwrap().send(3).unwrap();
        assert_eq!(tx.try_reserve().unwrap_err(), TrySendError::Full(()));
        assert_eq!(rx.recv_async().await, Ok(1));
        let mut buffer = Vec::new();
        assert_eq!(rx.recv_many_async(&mut buffer, 10).await, 2);
        assert_eq!(buffer, [2, 3]);
    });
    let weak = tx.downgrade();
    assert_eq!((tx.sender_count(), rx.sender_count()), (1, 1));
    weak.upgrade().unwrap().try_send(4).unwrap();
    rx.close();
    assert!(tx.is_closed() && rx.is_closed());
    block_on(tx.closed());
    assert_eq!(block_on(tx.send_async(5)), Err(SendError(5)));
    assert_eq!(block_on(rx.next()), Some(4));
    assert_eq!(block_on(rx.next()), None);
    drop(tx);
    assert!(weak.upgrade().is_none());
}

#[test]
fn streams_and_sinks() {
    let (mut tx, rx) = bounded(10);
    block_on(async {
        tx.feed(1).await.unwrap();
        tx.send_all(&mut stream::iter([Ok(2), Ok(3)]))
            .await
            .unwrap();
        tx.flush().await.unwrap();
        stream::iter([4, 5]).map(Ok).forward(tx).await.unwrap();
        let all: Vec<_> = rx.map(|number| 10 * number).collect().await;
        assert_eq!(all, [10, 20, 30, 40, 50]);
    });
}

#[test]
fn tokio_oneshot() {
    block_on(async {
        let (tx, rx) = oneshot();
        tx.send(3).unwrap();
        assert_eq!(rx.await, Ok(3));

        let (mut tx, rx) = oneshot::<u32>();
        drop(rx);
        tx.closed().await;
        assert!(tx.is_closed());
        assert_eq!(tx.send(1), Err(1));

        let (tx, mut rx) = oneshot::<u32>();
        assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
        drop(tx);
        assert_eq!((&mut rx).await, Err(RecvError));
    });
    let (tx, rx) = oneshot();
    let thread = thread::spawn(move || rx.recv());
    tx.send("blocking").unwrap();
    assert_eq!(thread.join().unwrap(), Ok("blocking"));
}
