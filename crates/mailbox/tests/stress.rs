//! Real threads on one mailbox, in every mode, with thresholds so low that slots are installed,
//! grow, shrink and are removed all the time. Run under the sanitizers too.
//!
//! A message carries its sender's number, its own number there, and a box, so that a lost,
//! duplicated, overtaken or early freed message shows: the receiver requires 0, 1, 2 and so on from
//! each sender.
#![cfg(not(any(loom, shuttle)))]

use std::time::Duration;
use tremula_mailbox::{Config, Mailbox, Mode, Sender, mailbox};
use tremula_sync::atomic::{AtomicUsize, Ordering};
use tremula_sync::{Arc, thread};

/// Messages of each sender; fewer where a sanitizer slows each down.
const MESSAGES: u64 = if cfg!(tremula_tsan) { 2_000 } else { 60_000 };

type Message = (usize, Box<u64>);

/// What the receiver has seen of each sender.
struct Order(Vec<u64>);

impl Order {
    fn of(senders: usize) -> Self {
        Self(vec![0; senders])
    }

    fn see(&mut self, (sender, number): Message) {
        assert_eq!(*number, self.0[sender], "sender {sender} is out of order");
        self.0[sender] += 1;
    }

    fn complete(&self) {
        for (sender, count) in self.0.iter().enumerate() {
            assert_eq!(*count, MESSAGES, "messages of sender {sender} are missing");
        }
    }
}

/// Contention always rises.
fn nervous(mode: Mode) -> Config {
    Config::default()
        .mode(mode)
        .weights(8, -1)
        .install_above(8)
        .grow_above(8)
        .remove_below(20.0, 16)
        .slots(2)
}

/// `senders` threads send, each by its own clone; `receive` gets the mailbox.
fn run(senders: usize, config: Config, receive: impl FnOnce(Mailbox<Message>, &mut Order)) {
    drop(tremula_sync::epoch::pin());
    let (sender, mailbox) = mailbox(config);
    let threads: Vec<_> = (0..senders)
        .map(|number| {
            let sender = sender.clone();
            thread::spawn(move || {
                for count in 0..MESSAGES {
                    sender.send((number, Box::new(count))).expect("it is open");
                    if count % 1024 == 0 {
                        thread::yield_now();
                    }
                }
            })
        })
        .collect();
    drop(sender);
    let mut order = Order::of(senders);
    receive(mailbox, &mut order);
    for thread in threads {
        thread.join().expect("a sender found a fault");
    }
    order.complete();
}

fn one_by_one(mut mailbox: Mailbox<Message>, order: &mut Order) {
    while let Ok(message) = mailbox.recv() {
        order.see(message);
    }
    let stats = mailbox.stats();
    assert_eq!(stats.sends(), order.0.iter().sum::<u64>());
    assert_eq!(mailbox.len(), 0);
}

#[test]
fn every_sender_is_received_in_order_in_auto_mode() {
    run(4, nervous(Mode::Auto), one_by_one);
}

#[test]
fn every_sender_is_received_in_order_in_on_heap_mode() {
    run(4, nervous(Mode::OnHeap), one_by_one);
}

#[test]
fn every_sender_is_received_in_order_in_off_heap_mode() {
    run(4, nervous(Mode::OffHeap), one_by_one);
}

#[test]
fn every_sender_is_received_in_order_with_the_default_thresholds() {
    run(8, Config::default(), one_by_one);
}

#[test]
fn every_sender_is_received_in_order_by_many_at_once() {
    run(4, nervous(Mode::Auto), |mut mailbox, order| {
        let mut some = Vec::new();
        while mailbox.recv_many(&mut some, 100) > 0 {
            some.drain(..).for_each(|message| order.see(message));
        }
    });
}

#[test]
fn every_sender_is_received_in_order_by_selecting() {
    // Bounded, because a selective receive looks at all messages.
    run(4, nervous(Mode::Auto).bounded(50), |mut mailbox, order| {
        // Takes from each sender in turn, as long as it has messages.
        let mut turn = 0;
        loop {
            turn = (turn + 1) % 4;
            match mailbox.recv_matching_timeout(Duration::ZERO, |message| message.0 == turn) {
                Ok(message) => order.see(message),
                Err(_) => match mailbox.recv() {
                    Ok(message) => order.see(message),
                    Err(_) => return,
                },
            }
        }
    });
}

#[test]
fn every_sender_is_received_in_order_through_little_room() {
    run(4, nervous(Mode::Auto).bounded(3), one_by_one);
}

#[test]
fn every_sender_is_received_in_order_by_a_receiver_that_sleeps_much() {
    run(3, nervous(Mode::Auto), |mut mailbox, order| {
        // Timeouts so short that they coincide with wake-ups.
        loop {
            match mailbox.recv_timeout(Duration::from_micros(20)) {
                Ok(message) => order.see(message),
                Err(tremula_mailbox::RecvTimeoutError::Timeout) => {}
                Err(tremula_mailbox::RecvTimeoutError::Disconnected) => return,
            }
        }
    });
}

#[test]
fn slots_come_and_go_without_a_loss() {
    // Contention always rises, and no array ever brings enough messages.
    let config = Config::default()
        .weights(100, -1)
        .install_above(100)
        .grow_above(50)
        .remove_below(1e9, 1)
        .slots(1);
    run(6, config, |mut mailbox, order| {
        while let Ok(message) = mailbox.recv() {
            order.see(message);
        }
        let stats = mailbox.stats();
        assert!(stats.installs > 0 && stats.removals > 0, "{stats:?}");
    });
}

#[test]
fn what_is_sent_while_the_mailbox_goes_down_is_dropped_once_or_comes_back() {
    drop(tremula_sync::epoch::pin());
    /// Counts the live instances.
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let alive = Arc::new(AtomicUsize::new(0));
    let rounds = if cfg!(tremula_tsan) { 10 } else { 30 };
    for round in 0..rounds {
        let (sender, mut mailbox) = mailbox(nervous(Mode::ALL[round % 3]));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (sender, alive): (Sender<Counted>, _) = (sender.clone(), Arc::clone(&alive));
                thread::spawn(move || {
                    let mut sent = 0;
                    loop {
                        alive.fetch_add(1, Ordering::SeqCst);
                        if sender.send(Counted(Arc::clone(&alive))).is_err() {
                            return sent;
                        }
                        sent += 1;
                    }
                })
            })
            .collect();
        for _ in 0..10 * round {
            drop(mailbox.recv());
        }
        drop(mailbox);
        for thread in threads {
            thread.join().expect("a sender found a fault");
        }
        assert_eq!(alive.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn two_mailboxes_call_each_other() {
    drop(tremula_sync::epoch::pin());
    let calls = MESSAGES / 10;
    let (there, mut inbox_there) = mailbox::<u64>(Config::default());
    let (back, mut inbox_back) = mailbox::<u64>(Config::default());
    let echo = thread::spawn(move || {
        while let Ok(number) = inbox_there.recv() {
            back.send(number + 1).expect("it is open");
        }
    });
    for number in 0..calls {
        there.send(number).expect("it is open");
        assert_eq!(inbox_back.recv(), Ok(number + 1));
    }
    drop(there);
    echo.join().expect("the echo found a fault");
}

#[test]
fn down_comes_behind_everything_the_owner_sent() {
    drop(tremula_sync::epoch::pin());
    let rounds = if cfg!(tremula_tsan) { 30 } else { 300 };
    let (to_watcher, mut watcher) = mailbox::<Option<u64>>(nervous(Mode::Auto));
    // Others keep the watcher's mailbox contended.
    let stop = Arc::new(AtomicUsize::new(0));
    let noise: Vec<_> = (0..2)
        .map(|_| {
            let (sender, stop) = (to_watcher.clone(), Arc::clone(&stop));
            thread::spawn(move || {
                while stop.load(Ordering::SeqCst) == 0 {
                    sender.send(Some(u64::MAX)).expect("it is open");
                    thread::yield_now();
                }
            })
        })
        .collect();
    for round in 0..rounds {
        let (to_worker, worker) = mailbox::<()>(Config::default());
        let _monitor = to_worker.monitor(&to_watcher, None);
        let answers = to_watcher.clone();
        let work = thread::spawn(move || {
            (0..10).for_each(|number| answers.send(Some(round * 10 + number)).expect("open"));
            drop(worker);
        });
        let mut next = round * 10;
        loop {
            match watcher.recv() {
                Ok(Some(u64::MAX)) => {}
                Ok(Some(number)) => {
                    assert_eq!(number, next);
                    next += 1;
                }
                Ok(None) => break,
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(next, round * 10 + 10, "down overtook a message");
        work.join().expect("the worker found a fault");
    }
    stop.store(1, Ordering::SeqCst);
    for thread in noise {
        thread.join().expect("a sender found a fault");
    }
}

/// Fails if a message that goes through the hand is lost, duplicated or torn, or if one of the two
/// sleeps on it.
#[test]
fn two_threads_that_answer_each_other_receive_every_message_once() {
    let (to_echo, mut echo) = mailbox::<Box<u64>>(Config::default());
    let (to_caller, mut caller) = mailbox::<(u64, Box<u64>)>(Config::default());
    let thread = thread::spawn(move || {
        while let Ok(number) = echo.recv() {
            to_caller.send((*number, number)).expect("it is open");
        }
        assert_eq!(to_caller.len(), 0);
    });
    for number in 0..MESSAGES {
        to_echo.send(Box::new(number)).expect("it is open");
        if number % 8 == 0 {
            // A second message, which must come behind the first.
            to_echo.send(Box::new(number)).expect("it is open");
            assert_eq!(caller.recv().expect("it answers").0, number);
        }
        let (one, other) = caller.recv().expect("it answers");
        assert_eq!((one, *other), (number, number));
    }
    drop(to_echo);
    assert!(caller.recv().is_err());
    thread.join().expect("the echo found a fault");
}
