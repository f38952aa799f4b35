//! The memory of a mailbox, measured by an allocator that counts only what the test's own thread
//! allocates, because the thread that runs the tests allocates too.
#![cfg(not(any(loom, shuttle)))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::{Duration, Instant};
use tremula_mailbox::{Config, Mailbox, Mode, mailbox};

struct Counting;

thread_local! {
    /// The bytes that this thread has allocated, minus those that it has freed.
    static ALLOCATED: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // A thread that ends may free memory after its thread-locals are gone.
    let _ = ALLOCATED.try_with(|allocated| allocated.set(allocated.get() + bytes));
}

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: passed on to the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: passed on to the caller.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The most bytes of a mailbox that waits.
const IDLE: isize = 256;
/// The most additional bytes of one that has had urgent messages.
const URGENT: isize = 256;
/// The most bytes for a few messages that a selective receive has kept.
const KEPT: isize = 64;
/// The least bytes of an array of 64 slots.
const ARRAY: isize = 64 * 64;
/// How long it may take on a busy machine until a mailbox has waited undisturbed.
const PATIENCE: Duration = Duration::from_secs(120);

fn allocated() -> isize {
    ALLOCATED.get()
}

/// Waits in vain, longer than a mailbox keeps memory for further messages, and repeats this as long
/// as it keeps any: a mailbox that is woken so late that its time is up frees nothing.
fn idle(mailbox: &mut Mailbox<u64>, before: isize, when: &str) {
    let begun = Instant::now();
    loop {
        assert!(mailbox.recv_timeout(Duration::from_millis(30)).is_err());
        let kept = allocated() - before;
        if kept <= IDLE {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{when}: {kept} bytes");
    }
}

#[test]
fn memory_is_what_is_needed_and_goes_back() {
    for mode in Mode::ALL {
        let before = allocated();
        let (sender, mut mailbox) = mailbox(Config::default().mode(mode));
        assert!(allocated() - before <= IDLE, "{mode}: when new");

        for number in 0..1_000_000 {
            sender.send(number).unwrap();
        }
        let each = (allocated() - before) as f64 / 1e6;
        assert!(each < 9.0, "{mode}: {each} bytes a message of 8");
        assert!(mailbox.try_iter().eq(0..1_000_000));
        assert_eq!(mailbox.stats().installs, 0);
        idle(&mut mailbox, before, "after a burst");
        drop((sender, mailbox));
        assert_eq!(allocated(), before, "{mode}: when gone");
    }

    // Contention that always rises.
    let before = allocated();
    let (sender, mut mailbox) = mailbox(Config::default().weights(1, -1));
    (0..100_000).for_each(|number| sender.send(number).unwrap());
    assert!(mailbox.is_contended());
    assert!(allocated() - before > ARRAY);
    assert!(mailbox.try_iter().eq(0..100_000));
    idle(&mut mailbox, before, "after contention");
    assert!(!mailbox.is_contended());
    let stats = mailbox.stats();
    assert_eq!((stats.installs, stats.removals), (1, 1), "{stats:?}");

    // Urgent messages, which have queues of their own, and messages kept by a selective receive.
    (0..100_000).for_each(|number| sender.send_urgent(number).unwrap());
    assert!(mailbox.try_iter().eq(0..100_000));
    sender.send_urgent(0).unwrap();
    assert_eq!(mailbox.recv(), Ok(0));
    idle(&mut mailbox, before + URGENT, "after urgent messages");
    (0..100_000).for_each(|number| sender.send(number).unwrap());
    assert_eq!(
        mailbox.recv_matching(|number| *number == 99_999),
        Ok(99_999)
    );
    assert!(mailbox.try_iter().take(99_998).eq(0..99_998));
    let begun = Instant::now();
    while allocated() - before > IDLE + URGENT + KEPT {
        let none = mailbox.recv_matching_timeout(Duration::from_millis(30), |_| false);
        assert!(none.is_err());
        let kept = allocated() - before;
        assert!(begun.elapsed() < PATIENCE, "with one message: {kept} bytes");
    }
    assert_eq!(mailbox.try_recv(), Ok(99_998));
    let before = before + URGENT;

    // A task frees the memory whenever it waits.
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    (0..100_000).for_each(|number| sender.send(number).unwrap());
    assert!(allocated() - before > ARRAY);
    for number in 0..100_000 {
        assert_eq!(
            mailbox.poll_recv(&mut cx),
            std::task::Poll::Ready(Ok(number))
        );
    }
    assert!(mailbox.poll_recv(&mut cx).is_pending());
    assert!(allocated() - before <= IDLE, "when a task waits");
}

/// Fails if a weak sender keeps what messages needed.
#[test]
fn a_weak_sender_keeps_an_empty_mailbox_and_the_last_one_frees_it() {
    let before = allocated();
    let (sender, mut mailbox) = mailbox(Config::default().weights(1, -1));
    let weak = sender.downgrade();
    (0..100_000).for_each(|number| sender.send(number).unwrap());
    (0..100_000).for_each(|number| sender.send_urgent(number).unwrap());
    assert!(!sender.closed_timeout(Duration::ZERO));
    assert!(allocated() - before > ARRAY);
    assert_eq!(mailbox.recv(), Ok(0));
    drop(mailbox);
    let kept = allocated() - before;
    assert!(kept <= IDLE + URGENT, "without a receiver: {kept} bytes");
    drop(sender);
    let other = weak.clone();
    drop(weak);
    let kept = allocated() - before;
    assert!(kept <= IDLE + URGENT, "with a weak sender: {kept} bytes");
    drop(other);
    assert_eq!(allocated(), before, "when gone");
}

#[test]
fn senders_that_wait_for_the_end_leave_little_behind() {
    let before = allocated();
    let (sender, mailbox) = mailbox::<u64>(Config::default());
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(std::pin::pin!(sender.closed()).poll(&mut cx).is_pending());
    let kept = allocated() - before;
    assert!(kept <= IDLE + URGENT, "{kept} bytes");
    drop((mailbox, sender));
    assert_eq!(allocated(), before, "when gone");
}
