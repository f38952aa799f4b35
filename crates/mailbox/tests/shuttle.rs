//! More threads and more messages than every interleaving allows, under random schedules.
//!
//! The tests fail on: a receiver that sees a sender's messages out of order or incompletely; a
//! thread that is never woken (shuttle reports the deadlock); a message that is dropped twice or
//! never.
#![cfg(shuttle)]

use std::time::Duration;
use tremula_mailbox::{Config, Mailbox, Mode, Sender, mailbox};
use tremula_sync::model::check;
use tremula_sync::{Arc, thread};

const SENDERS: usize = 4;
const MESSAGES: usize = 5;

/// A message: its sender, its number there, and something to leak. Small enough for the hand.
type Message = (u32, u32, Arc<()>);

const _: () = assert!(size_of::<Message>() <= 16);

/// Contention rises with each send, and slots are removed after two flushes.
fn changing(mode: Mode) -> Config {
    Config::default()
        .mode(mode)
        .slots(2)
        .weights(1, -1)
        .install_above(2)
        .grow_above(1)
        .remove_below(3.0, 2)
}

struct Run {
    witness: Arc<()>,
    threads: Vec<thread::JoinHandle<()>>,
    seen: [usize; SENDERS],
}

impl Run {
    fn begin(config: Config) -> (Self, Mailbox<Message>) {
        let (sender, mailbox) = mailbox(config);
        let witness = Arc::new(());
        let threads = (0..SENDERS)
            .map(|number| {
                let (sender, witness): (Sender<Message>, _) =
                    (sender.clone(), Arc::clone(&witness));
                thread::spawn(move || {
                    for count in 0..MESSAGES as u32 {
                        sender
                            .send((number as u32, count, Arc::clone(&witness)))
                            .unwrap();
                    }
                })
            })
            .collect();
        let run = Self {
            witness,
            threads,
            seen: [0; SENDERS],
        };
        (run, mailbox)
    }

    fn see(&mut self, message: Message) {
        let (sender, count) = (message.0 as usize, message.1 as usize);
        assert_eq!(count, self.seen[sender], "sender {sender} is out of order");
        self.seen[sender] += 1;
    }

    fn end(self, mailbox: Mailbox<Message>) {
        for thread in self.threads {
            thread.join().unwrap();
        }
        assert_eq!(self.seen, [MESSAGES; SENDERS]);
        assert_eq!(mailbox.stats().sends(), (SENDERS * MESSAGES) as u64);
        assert_eq!(mailbox.len(), 0);
        drop(mailbox);
        assert_eq!(Arc::strong_count(&self.witness), 1);
    }
}

fn received_in_order(config: Config) {
    let (mut run, mut mailbox) = Run::begin(config);
    while let Ok(message) = mailbox.recv() {
        run.see(message);
    }
    run.end(mailbox);
}

#[test]
fn four_senders_are_received_in_order_while_slots_come_grow_and_go() {
    check(
        "four_senders_are_received_in_order_while_slots_come_grow_and_go",
        3_000,
        || received_in_order(changing(Mode::Auto)),
    );
}

#[test]
fn four_senders_are_received_in_order_off_heap() {
    check("four_senders_are_received_in_order_off_heap", 2_000, || {
        received_in_order(changing(Mode::OffHeap).remove_below(0.0, 1000));
    });
}

#[test]
fn four_senders_are_received_in_order_on_heap() {
    check("four_senders_are_received_in_order_on_heap", 2_000, || {
        received_in_order(changing(Mode::OnHeap));
    });
}

#[test]
fn a_slot_that_grows_during_a_flush_keeps_the_order() {
    // Here and not under loom, which remembers only the latest access to the pointer of the lower
    // array, and so does not try the switch that matters.
    check(
        "a_slot_that_grows_during_a_flush_keeps_the_order",
        4_000,
        || {
            let config = changing(Mode::OffHeap)
                .slots(1)
                .install_above(0)
                .remove_below(0.0, 1000);
            let (sender, mut mailbox) = mailbox(config);
            sender.send(0).unwrap();
            sender.send(1).unwrap();
            let thread =
                thread::spawn(move || (2..6).for_each(|number| sender.send(number).unwrap()));
            let all: Vec<_> = mailbox.iter().collect();
            assert_eq!(all, [0, 1, 2, 3, 4, 5]);
            thread.join().unwrap();
        },
    );
}

#[test]
fn four_senders_share_room_for_two() {
    check("four_senders_share_room_for_two", 2_000, || {
        received_in_order(changing(Mode::Auto).bounded(2));
    });
}

#[test]
fn selecting_takes_each_sender_in_turn_and_keeps_the_rest_in_order() {
    check(
        "selecting_takes_each_sender_in_turn_and_keeps_the_rest_in_order",
        2_000,
        || {
            let (mut run, mut mailbox) = Run::begin(changing(Mode::Auto));
            for turn in 0..SENDERS - 1 {
                for _ in 0..MESSAGES {
                    let message = mailbox
                        .recv_matching(|message| message.0 == turn as u32)
                        .unwrap();
                    run.see(message);
                }
            }
            while let Ok(message) = mailbox.recv() {
                run.see(message);
            }
            run.end(mailbox);
        },
    );
}

#[test]
fn a_mailbox_that_goes_down_drops_or_returns_every_message() {
    check(
        "a_mailbox_that_goes_down_drops_or_returns_every_message",
        2_000,
        || {
            let (sender, mut mailbox) = mailbox(changing(Mode::Auto).bounded(4));
            let witness = Arc::new(());
            let threads: Vec<_> = (0..SENDERS)
                .map(|_| {
                    let (sender, witness): (Sender<Arc<()>>, _) =
                        (sender.clone(), Arc::clone(&witness));
                    thread::spawn(move || while sender.send(Arc::clone(&witness)).is_ok() {})
                })
                .collect();
            for _ in 0..3 {
                mailbox.recv().unwrap();
            }
            drop(mailbox);
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(Arc::strong_count(&witness), 1);
        },
    );
}

/// Fails if the content of the base queue when the mailbox closes comes before what the receiver
/// took out of it earlier.
#[test]
fn closing_while_senders_send_keeps_the_order_of_each() {
    for (name, mode) in [
        (
            "closing_while_senders_send_keeps_the_order_of_each",
            Mode::Auto,
        ),
        (
            "closing_while_senders_send_on_heap_keeps_the_order_of_each",
            Mode::OnHeap,
        ),
    ] {
        check(name, 2_000, move || {
            let (sender, mut mailbox) = mailbox(changing(mode).install_above(8));
            let threads: Vec<_> = (0..2)
                .map(|number| {
                    let sender = sender.clone();
                    thread::spawn(move || {
                        let mut sent = 0;
                        while sent < 2 * MESSAGES && sender.send((number, sent)).is_ok() {
                            sent += 1;
                        }
                        sent
                    })
                })
                .collect();
            drop(sender);
            let mut seen = [0; 2];
            let mut see = |(number, count): (usize, usize)| {
                assert_eq!(count, seen[number], "sender {number} is out of order");
                seen[number] += 1;
            };
            for _ in 0..MESSAGES {
                see(mailbox.recv().unwrap());
            }
            mailbox.close();
            mailbox.try_iter().for_each(&mut see);
            let sent: Vec<_> = threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect();
            assert_eq!(sent, seen, "all that was sent, and no more");
        });
    }
}

#[test]
fn down_comes_behind_what_the_owner_sent() {
    check("down_comes_behind_what_the_owner_sent", 2_000, || {
        let (to_watcher, mut watcher) = mailbox(changing(Mode::Auto));
        let (to_worker, worker) = mailbox::<()>(Config::default());
        let noise = to_watcher.clone();
        let noise = thread::spawn(move || (0..4).for_each(|_| noise.send("noise").unwrap()));
        let _monitor = to_worker.monitor(&to_watcher, "down");
        let work = thread::spawn(move || {
            to_watcher.send("last word").unwrap();
            drop(worker);
        });
        let signals: Vec<_> = watcher.iter().filter(|signal| *signal != "noise").collect();
        assert_eq!(signals, ["last word", "down"]);
        noise.join().unwrap();
        work.join().unwrap();
    });
}

#[test]
fn permits_that_are_used_or_dropped_leave_the_capacity_as_it_was() {
    check(
        "permits_that_are_used_or_dropped_leave_the_capacity_as_it_was",
        2_000,
        || {
            let (sender, mut mailbox) = mailbox(changing(Mode::Auto).bounded(2));
            let weak = sender.downgrade();
            let threads: Vec<_> = (0..SENDERS)
                .map(|number| {
                    let sender = sender.clone();
                    thread::spawn(move || {
                        for count in 0..MESSAGES {
                            drop(sender.reserve_timeout(Duration::MAX).unwrap());
                            let permit = sender.reserve_timeout(Duration::MAX).unwrap();
                            permit.send((number, count)).unwrap();
                        }
                    })
                })
                .collect();
            let again = thread::spawn(move || {
                weak.upgrade()
                    .is_some_and(|sender| sender.send((SENDERS, 0)).is_ok())
            });
            drop(sender);
            let mut seen = [0; SENDERS + 1];
            while let Ok((number, count)) = mailbox.recv() {
                assert_eq!(count, seen[number], "sender {number} is out of order");
                seen[number] += 1;
            }
            for thread in threads {
                thread.join().unwrap();
            }
            let upgraded = usize::from(again.join().unwrap());
            assert_eq!(seen[..SENDERS], [MESSAGES; SENDERS]);
            assert_eq!(seen[SENDERS], upgraded);
            assert_eq!(mailbox.free_capacity(), Some(2));
        },
    );
}

#[test]
fn a_mailbox_that_goes_down_wakes_all_who_wait_for_its_end() {
    check(
        "a_mailbox_that_goes_down_wakes_all_who_wait_for_its_end",
        2_000,
        || {
            let (sender, mailbox) = mailbox::<()>(Config::default());
            let threads: Vec<_> = (0..SENDERS)
                .map(|_| {
                    let sender = sender.clone();
                    thread::spawn(move || assert!(sender.closed_timeout(Duration::MAX)))
                })
                .collect();
            drop(mailbox);
            for thread in threads {
                thread.join().unwrap();
            }
        },
    );
}
