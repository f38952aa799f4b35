//! How a mailbox closes and goes down: in order, whatever the user's code does meanwhile.
//!
//! No test asserts a time.
#![cfg(not(any(loom, shuttle)))]

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;
use tremula_mailbox::{Config, Mode, Reply, Sender, TryRecvError, mailbox};

/// How long a test waits for what must come.
const LIMIT: Duration = Duration::from_secs(60);

/// Counts how often it wakes.
#[derive(Default)]
struct CountingWaker(AtomicUsize);

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Panics when it should wake.
struct PanickingWaker;

impl Wake for PanickingWaker {
    fn wake(self: Arc<Self>) {
        panic!("a waker's panic");
    }
}

/// Panics when it is dropped; dropping its payload panics too.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        struct Payload;
        impl Drop for Payload {
            fn drop(&mut self) {
                panic!("a payload's drop");
            }
        }
        if !thread::panicking() {
            std::panic::panic_any(Payload);
        }
    }
}

// Order.

/// Fails if the ring's messages, which are the newest when the mailbox closes, come before older
/// ones that the receiver has taken and not yet handed out.
#[test]
fn closing_keeps_the_order_of_a_sender_wherever_its_messages_lie() {
    for mode in Mode::ALL {
        for bound in [None, Some(100_000)] {
            for taken_before in [0, 1, 1500, 2990] {
                let config = Config::default().mode(mode);
                let config = bound.map_or(config, |capacity| config.bounded(capacity));
                let (sender, mut mailbox) = mailbox(config);
                // More than the ring's capacity: the rest goes to the chain.
                (0..3000).for_each(|number| sender.send(number).unwrap());
                let before = mailbox.try_iter().take(taken_before);
                assert!(before.eq(0..taken_before as u64));
                (3000..3010).for_each(|number| sender.send(number).unwrap());
                mailbox.close();
                assert!(sender.send(0).is_err());
                let after: Vec<_> = mailbox.try_iter().collect();
                let expected: Vec<_> = (taken_before as u64..3010).collect();
                assert_eq!(after, expected, "{mode}, {bound:?}, {taken_before} before");
            }
        }
    }
}

#[test]
fn closing_keeps_the_order_of_what_a_selective_receive_has_left() {
    for mode in Mode::ALL {
        for seen in [5, 2500] {
            let (sender, mut mailbox) = mailbox(Config::default().mode(mode));
            (0..3000).for_each(|number| sender.send(number).unwrap());
            assert_eq!(mailbox.recv_matching(|number| *number == seen), Ok(seen));
            (3000..3010).for_each(|number| sender.send(number).unwrap());
            mailbox.close();
            let after: Vec<_> = mailbox.try_iter().collect();
            let expected: Vec<_> = (0..3010).filter(|number| *number != seen).collect();
            assert_eq!(after, expected, "{mode}");
        }
    }
}

// Monitors.

/// Fails if a closed mailbox, whose owner still answers, counts as down.
#[test]
fn a_monitor_of_a_closed_mailbox_is_told_when_it_goes_down_and_not_before() {
    for monitored_before in [false, true] {
        let (to_worker, mut worker) = mailbox::<Reply<u32>>(Config::default());
        let (to_watcher, mut watcher) = mailbox(Config::default());
        let early = monitored_before.then(|| to_worker.monitor(&to_watcher, "down"));
        worker.close();
        let late = to_worker.monitor(&to_watcher, "down");
        assert_eq!(watcher.try_recv(), Err(TryRecvError::Empty));
        // The owner of a closed mailbox continues with the messages sent before.
        to_watcher.send("the worker's last word").unwrap();
        assert!(worker.recv().is_err());
        assert_eq!(watcher.recv(), Ok("the worker's last word"));
        let withdrawn = to_worker.monitor(&to_watcher, "withdrawn");
        assert!(withdrawn.demonitor());
        assert_eq!(watcher.try_recv(), Err(TryRecvError::Empty));
        drop(worker);
        let told: Vec<_> = watcher.try_iter().collect();
        assert_eq!(told, vec!["down"; 1 + usize::from(monitored_before)]);
        assert!(!late.demonitor());
        drop(early);
        // The mailbox is down, so the notice comes at once.
        let _monitor = to_worker.monitor(&to_watcher, "too late");
        assert_eq!(watcher.try_recv(), Ok("too late"));
    }
}

#[test]
fn a_closed_mailbox_takes_no_urgent_message_whoever_monitors_it() {
    let (sender, mut mailbox) = mailbox(Config::default());
    let (watcher, _watcher) = tremula_mailbox::mailbox(Config::default());
    mailbox.close();
    assert!(sender.send_urgent(1).is_err());
    let _monitor = sender.monitor(&watcher, "down");
    assert!(sender.send_urgent(2).is_err());
    assert!(mailbox.try_recv().is_err());
}

// The user's code.

/// Fails if the panic of one notice (here of the value for a dead watcher, and of the payload of
/// that panic) ends the loop over all notices.
#[test]
fn a_notice_that_panics_keeps_no_watcher_from_its_own() {
    let (to_worker, worker) = mailbox::<Arc<()>>(Config::default());
    let witness = Arc::new(());
    to_worker.send(Arc::clone(&witness)).unwrap();
    let (to_first, first) = mailbox(Config::default());
    let (to_second, mut second) = mailbox(Config::default());
    let (to_third, third) = mailbox(Config::default());
    let _monitors = (
        to_worker.monitor(&to_first, Bomb),
        to_worker.monitor(&to_second, "down"),
        to_worker.monitor(&to_third, Bomb),
    );
    drop((first, third));
    drop(worker);
    assert_eq!(second.try_recv(), Ok("down"));
    assert_eq!(Arc::strong_count(&witness), 1);
    drop(to_worker);
    drop(to_second);
    // The list of notices, which held a sender, is gone.
    assert_eq!(second.try_recv(), Err(TryRecvError::Disconnected));
}

#[test]
fn a_message_whose_drop_panics_keeps_no_watcher_from_its_notice() {
    let (to_worker, worker) = mailbox(Config::default());
    let (to_watcher, mut watcher) = mailbox(Config::default());
    let _monitor = to_worker.monitor(&to_watcher, "down");
    to_worker.send(Some(Bomb)).unwrap();
    to_worker.send(None).unwrap();
    let dropped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(worker)));
    std::mem::forget(dropped.expect_err("the message's panic is its owner's"));
    assert_eq!(watcher.try_recv(), Ok("down"));
    assert!(to_worker.send(None).is_err());
}

/// One send that waits as a task whose waker panics, and then one that waits as a thread.
fn waits_behind_a_panicking_waker(sender: &Sender<u32>, then: impl FnOnce()) -> bool {
    let waker = Waker::from(Arc::new(PanickingWaker));
    let mut task = pin!(sender.send_async(1));
    assert!(
        task.as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    // Waits behind it in the same queue, as a task, so that the test can observe it.
    let counting = Arc::new(CountingWaker::default());
    let waker = Waker::from(Arc::clone(&counting));
    let mut cx = Context::from_waker(&waker);
    let mut other = pin!(sender.send_async(2));
    assert!(other.as_mut().poll(&mut cx).is_pending());
    then();
    counting.0.load(Ordering::SeqCst) > 0
}

/// Fails if the panic of the first waker ends the loop over the waiting senders.
#[test]
fn a_waker_that_panics_keeps_no_sender_from_learning_that_the_mailbox_is_gone() {
    let (sender, mailbox) = mailbox(Config::default().bounded(1));
    sender.send(0).unwrap();
    assert!(waits_behind_a_panicking_waker(&sender, || drop(mailbox)));
}

/// Fails if the panic of the first waker ends the loop that hands out capacity, or drops the
/// message received.
#[test]
fn a_waker_that_panics_keeps_no_sender_from_its_room_and_no_message_from_the_receiver() {
    let (sender, mut mailbox) = mailbox(Config::default().bounded(2));
    sender.send(7).unwrap();
    sender.send(8).unwrap();
    assert!(waits_behind_a_panicking_waker(&sender, || {
        let mut all = Vec::new();
        assert_eq!(mailbox.recv_many(&mut all, 2), 2);
        assert_eq!(all, [7, 8]);
    }));
}

#[test]
fn a_waker_that_panics_does_not_undo_a_send() {
    let (sender, mut mailbox) = mailbox(Config::default());
    let waker = Waker::from(Arc::new(PanickingWaker));
    let mut cx = Context::from_waker(&waker);
    assert!(mailbox.poll_recv(&mut cx).is_pending());
    assert_eq!(sender.send(1), Ok(()));
    assert_eq!(mailbox.try_recv(), Ok(1));
    assert!(mailbox.poll_recv(&mut cx).is_pending());
    drop(sender); // the last one, which wakes, too
    assert!(mailbox.poll_recv(&mut cx).is_ready());
}

/// Fails if the waker of a cancelled receive stays until the last sender is gone: it may hold a
/// task, and everything that the task holds.
#[test]
fn a_mailbox_that_is_gone_keeps_no_waker() {
    let (sender, mut mailbox) = mailbox::<u32>(Config::default());
    let counting = Arc::new(CountingWaker::default());
    let waker = Waker::from(Arc::clone(&counting));
    assert_eq!(
        mailbox.poll_recv(&mut Context::from_waker(&waker)),
        Poll::Pending
    );
    drop(waker);
    assert_eq!(Arc::strong_count(&counting), 2);
    drop(mailbox);
    assert_eq!(Arc::strong_count(&counting), 1);
    drop(sender);
    assert_eq!(counting.0.load(Ordering::SeqCst), 0);
}

// Capacity.

/// Fails if a cancelled send and a receive together pay more than the mailbox owes for a message
/// without a credit: from then on the mailbox would keep all capacity that is given back. Threads
/// rarely collide here; in the model `a_send_that_is_given_up_pays_what_is_owed_once` they always
/// do.
#[test]
fn room_is_what_it_was_after_messages_that_took_none() {
    for _ in 0..200 {
        let (sender, mut mailbox) = mailbox(Config::default().bounded(1));
        sender.send(1).unwrap();
        let given_up = {
            let sender = sender.clone();
            let mut future = Box::pin(async move { sender.send_async(3).await });
            let mut cx = Context::from_waker(Waker::noop());
            assert!(future.as_mut().poll(&mut cx).is_pending());
            future
        };
        assert_eq!(mailbox.recv(), Ok(1));
        sender.send_behind_all(2).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| drop(given_up));
            assert_eq!(mailbox.recv(), Ok(2));
        });
        assert_eq!(sender.send_timeout(4, LIMIT), Ok(()));
        assert!(sender.try_send(5).is_err());
    }
}
