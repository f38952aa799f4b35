//! Every interleaving of two or three threads on one mailbox.
//!
//! Under the checker blocks hold one or two messages, arrays have two slots, and contention rises
//! with each send, so that few sends reach each change. The receiver requires each sender's
//! messages completely and in order. A lost wake-up shows as a deadlock; memory that is freed early
//! or shared without a lock as a violation of loom's cells; a message that is not dropped as a leak
//! of loom's `Arc`.
#![cfg(loom)]

use std::time::Duration;
use tremula_mailbox::{Config, Mailbox, Mode, RecvError, Sender, mailbox, oneshot};
use tremula_sync::model::check;
use tremula_sync::{Arc, thread};

/// A message: its sender, its number there, and something to leak.
type Message = (usize, usize, Arc<()>);

/// Contention rises with each send.
fn rising(install_above: i32) -> Config {
    Config::default()
        .mode(Mode::OffHeap)
        .slots(2)
        .weights(1, -1)
        .install_above(install_above)
        .grow_above(1000)
        .remove_below(0.0, 1000)
}

fn send(sender: &Sender<Message>, number: usize, count: std::ops::Range<usize>) {
    for message in count {
        sender.send((number, message, Arc::new(()))).unwrap();
    }
}

/// Receives until all senders are gone. Checks that each sender's messages are in order, and are
/// `counts` in number.
fn receive_all<const SENDERS: usize>(
    mailbox: &mut Mailbox<Message>,
    mut seen: [usize; SENDERS],
    counts: [usize; SENDERS],
) {
    while let Ok((sender, message, _)) = mailbox.recv() {
        assert_eq!(message, seen[sender], "sender {sender} is out of order");
        seen[sender] += 1;
    }
    assert_eq!(seen, counts);
}

/// Two threads that send `counts` messages each, by senders of their own, to a receiver that sleeps
/// when there is nothing.
fn two_senders(config: Config, counts: [usize; 2]) {
    let (first, mut mailbox) = mailbox(config);
    let second = first.clone();
    let threads = [(first, 0), (second, 1)]
        .map(|(sender, number)| thread::spawn(move || send(&sender, number, 0..counts[number])));
    receive_all(&mut mailbox, [0; 2], counts);
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn no_wake_up_is_lost_in_place() {
    check("no_wake_up_is_lost_in_place", 2, || {
        two_senders(Config::default(), [1, 1]);
    });
}

#[test]
fn no_wake_up_is_lost_between_a_slot_and_a_receiver_that_falls_asleep() {
    check(
        "no_wake_up_is_lost_between_a_slot_and_a_receiver_that_falls_asleep",
        4,
        || {
            let (sender, mut mailbox) = mailbox(rising(0));
            // Installs the slots.
            send(&sender, 0, 0..1);
            assert!(mailbox.is_contended());
            let other = sender.clone();
            let thread = thread::spawn(move || send(&other, 1, 0..2));
            drop(sender);
            receive_all(&mut mailbox, [0, 0], [1, 2]);
            thread.join().unwrap();
        },
    );
}

#[test]
fn a_send_by_a_slot_is_seen_when_another_is_on_its_way() {
    check(
        "a_send_by_a_slot_is_seen_when_another_is_on_its_way",
        2,
        || {
            let (first, mut mailbox) = mailbox(rising(0));
            send(&first, 0, 0..1);
            assert_eq!(mailbox.recv().map(|message| message.1), Ok(0));
            let second = first.clone();
            let thread = thread::spawn(move || send(&second, 1, 0..1));
            // A send that has returned is seen, whatever the other sender has done so far.
            send(&first, 0, 1..2);
            let mut own = false;
            while let Ok((sender, ..)) = mailbox.try_recv() {
                own |= sender == 0;
            }
            assert!(own, "a message was not seen");
            thread.join().unwrap();
        },
    );
}

#[test]
fn slots_that_come_during_a_send_keep_the_order() {
    check("slots_that_come_during_a_send_keep_the_order", 2, || {
        two_senders(rising(1), [2, 1]);
    });
}

#[test]
fn the_mode_switches_during_a_send_and_keeps_the_order() {
    check(
        "the_mode_switches_during_a_send_and_keeps_the_order",
        2,
        || two_senders(rising(1).mode(Mode::Auto), [3, 0]),
    );
}

#[test]
fn slots_that_go_during_a_send_keep_the_order() {
    check("slots_that_go_during_a_send_keep_the_order", 3, || {
        // The window is one flush: each receive removes the slots, and the next send installs them.
        let (sender, mut mailbox) = mailbox(rising(0).remove_below(1e9, 1));
        send(&sender, 0, 0..1);
        assert!(mailbox.is_contended());
        let thread = thread::spawn(move || send(&sender, 0, 1..4));
        receive_all(&mut mailbox, [0], [4]);
        thread.join().unwrap();
        assert!(mailbox.stats().removals > 0);
    });
}

#[test]
fn a_slot_that_grows_during_a_flush_keeps_the_order() {
    check(
        "a_slot_that_grows_during_a_flush_keeps_the_order",
        4,
        || {
            let (sender, mut mailbox) = mailbox(rising(0).slots(1).grow_above(2));
            // The first message installs the slots; the second is in a slot when the flush begins.
            send(&sender, 0, 0..2);
            let thread = thread::spawn(move || send(&sender, 0, 2..5));
            receive_all(&mut mailbox, [0], [5]);
            thread.join().unwrap();
            assert!(mailbox.stats().growths > 0);
        },
    );
}

#[test]
fn a_slot_that_shrinks_during_a_send_keeps_the_order() {
    check(
        "a_slot_that_shrinks_during_a_send_keeps_the_order",
        4,
        || {
            // The first send installs slots, the second grows an array. From then on each second
            // flush of an array removes it, first the lower one.
            let config = rising(0).slots(1).grow_above(0).remove_below(1e9, 2);
            let (sender, mut mailbox) = mailbox(config);
            send(&sender, 0, 0..3);
            assert_eq!(mailbox.recv().map(|message| message.1), Ok(0));
            assert_eq!(mailbox.stats().growths, 1);
            let thread = thread::spawn(move || send(&sender, 0, 3..5));
            receive_all(&mut mailbox, [1], [5]);
            thread.join().unwrap();
        },
    );
}

#[test]
fn what_crosses_with_closing_is_dropped_or_comes_back() {
    for (name, config) in [
        ("what_crosses_with_closing_in_place", Config::default()),
        ("what_crosses_with_closing_by_a_slot", rising(0)),
    ] {
        check(name, 3, move || {
            let (sender, mailbox) = mailbox(config);
            sender.send(Arc::new(())).unwrap();
            let witness = Arc::new(());
            let message = Arc::clone(&witness);
            let thread = thread::spawn(move || match sender.send(message) {
                Ok(()) => {}
                Err(back) => assert_eq!(Arc::strong_count(&back.into_inner()), 2),
            });
            drop(mailbox);
            thread.join().unwrap();
            assert_eq!(Arc::strong_count(&witness), 1);
        });
    }
}

#[test]
fn the_last_sender_wakes_a_receiver_that_falls_asleep() {
    check(
        "the_last_sender_wakes_a_receiver_that_falls_asleep",
        3,
        || {
            let (sender, mut mailbox) = mailbox::<Message>(Config::default());
            let other = sender.clone();
            let threads = [sender, other].map(|sender| thread::spawn(move || drop(sender)));
            assert_eq!(mailbox.recv().unwrap_err(), RecvError);
            for thread in threads {
                thread.join().unwrap();
            }
        },
    );
}

#[test]
fn a_send_that_waits_for_room_gets_it() {
    check("a_send_that_waits_for_room_gets_it", 2, || {
        let (sender, mut mailbox) = mailbox(Config::default().bounded(1));
        let thread = thread::spawn(move || send(&sender, 0, 0..3));
        receive_all(&mut mailbox, [0], [3]);
        thread.join().unwrap();
    });
}

#[test]
fn a_send_that_waits_for_room_is_told_that_the_mailbox_closes() {
    check(
        "a_send_that_waits_for_room_is_told_that_the_mailbox_closes",
        5,
        || {
            let (sender, mailbox) = mailbox(Config::default().bounded(1));
            sender.send(1).unwrap();
            let thread = thread::spawn(move || sender.send(2).is_err());
            drop(mailbox);
            assert!(thread.join().unwrap());
        },
    );
}

#[test]
fn a_send_that_is_given_up_pays_what_is_owed_once() {
    check("a_send_that_is_given_up_pays_what_is_owed_once", 3, || {
        let (sender, mut mailbox) = mailbox(Config::default().bounded(1));
        sender.send(1).unwrap();
        let waiting = sender.clone();
        let mut given_up = Box::pin(async move { waiting.send_async(2).await });
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(given_up.as_mut().poll(&mut cx).is_pending());
        // The capacity goes to the waiting send; then the mailbox owes for a message without a
        // credit.
        assert_eq!(mailbox.recv(), Ok(1));
        sender.send_behind_all(3).unwrap();
        // Both threads give capacity back at the same time, and only one of them must pay.
        let thread = thread::spawn(move || drop(given_up));
        assert_eq!(mailbox.recv(), Ok(3));
        thread.join().unwrap();
        assert_eq!(sender.try_send(4), Ok(()));
        assert!(sender.try_send(5).is_err());
    });
}

#[test]
fn a_monitor_that_crosses_with_going_down_is_told_once() {
    check(
        "a_monitor_that_crosses_with_going_down_is_told_once",
        3,
        || {
            let (to_worker, mut worker) = mailbox::<()>(Config::default());
            let (to_watcher, mut watcher) = mailbox(Config::default());
            worker.close();
            let thread = thread::spawn(move || drop(worker));
            let monitor = to_worker.monitor(&to_watcher, "down");
            thread.join().unwrap();
            assert_eq!(watcher.try_recv(), Ok("down"));
            assert!(watcher.try_recv().is_err());
            drop(monitor);
        },
    );
}

#[test]
fn urgent_messages_keep_their_order_and_wake() {
    check("urgent_messages_keep_their_order_and_wake", 3, || {
        let (sender, mut mailbox) = mailbox(Config::default());
        let thread = thread::spawn(move || {
            sender.send_urgent(1).unwrap();
            sender.send_urgent(2).unwrap();
        });
        assert_eq!(mailbox.recv(), Ok(1));
        assert_eq!(mailbox.recv(), Ok(2));
        assert_eq!(mailbox.recv(), Err(RecvError));
        thread.join().unwrap();
    });
}

#[test]
fn a_message_behind_all_comes_behind_what_lies_in_slots() {
    check(
        "a_message_behind_all_comes_behind_what_lies_in_slots",
        4,
        || {
            let (sender, mut mailbox) = mailbox(rising(0));
            send(&sender, 0, 0..1);
            let other = sender.clone();
            let thread = thread::spawn(move || {
                send(&sender, 0, 1..2);
                other.send_behind_all((0, 2, Arc::new(()))).unwrap();
            });
            receive_all(&mut mailbox, [0], [3]);
            thread.join().unwrap();
        },
    );
}

#[test]
fn an_answer_or_the_lack_of_one_wakes_the_caller() {
    check("an_answer_or_the_lack_of_one_wakes_the_caller", 3, || {
        let (sender, mut mailbox) = mailbox::<tremula_mailbox::Reply<u32>>(Config::default());
        let thread = thread::spawn(move || {
            mailbox.recv().unwrap().send(1).unwrap();
            drop(mailbox.recv().unwrap());
        });
        let limit = Duration::MAX;
        assert_eq!(sender.call(|reply| reply, limit), Ok(1));
        assert!(sender.call(|reply| reply, limit).is_err());
        thread.join().unwrap();
    });
}

/// Fails if the value, or the lack of one, comes between the receiver's look and its registration
/// and wakes nobody.
#[test]
fn a_value_or_the_lack_of_one_wakes_a_receiver_that_falls_asleep() {
    for (name, sends) in [
        ("a_value_wakes_a_receiver_that_falls_asleep", true),
        (
            "the_lack_of_a_value_wakes_a_receiver_that_falls_asleep",
            false,
        ),
    ] {
        check(name, 4, move || {
            let (sender, receiver) = oneshot();
            let value = Arc::new(());
            let sent = Arc::clone(&value);
            let thread = thread::spawn(move || {
                if sends {
                    sender.send(sent).unwrap();
                }
            });
            assert_eq!(receiver.recv().is_ok(), sends);
            thread.join().unwrap();
            assert_eq!(Arc::strong_count(&value), 1);
        });
    }
}

#[test]
fn a_value_that_crosses_with_its_receiver_is_dropped_or_comes_back() {
    check(
        "a_value_that_crosses_with_its_receiver_is_dropped_or_comes_back",
        4,
        || {
            let (sender, mut receiver) = oneshot();
            let value = Arc::new(());
            let sent = Arc::clone(&value);
            let thread = thread::spawn(move || sender.send(sent).is_ok());
            receiver.close();
            let received = receiver.recv().is_ok();
            assert_eq!(thread.join().unwrap(), received);
            assert_eq!(Arc::strong_count(&value), 1);
        },
    );
}

#[test]
fn a_receiver_that_goes_wakes_a_sender_that_waits_for_it() {
    check(
        "a_receiver_that_goes_wakes_a_sender_that_waits_for_it",
        4,
        || {
            let (mut sender, receiver) = oneshot::<u32>();
            let thread = thread::spawn(move || drop(receiver));
            assert!(sender.closed_timeout(Duration::MAX));
            assert_eq!(sender.send(1), Err(1));
            thread.join().unwrap();
        },
    );
}

/// Fails if a sender is made after the last one has disconnected the mailbox: the receiver is gone
/// by the time that its message comes.
#[test]
fn a_weak_sender_that_crosses_with_the_last_sender_is_heard_or_makes_none() {
    check(
        "a_weak_sender_that_crosses_with_the_last_sender_is_heard_or_makes_none",
        3,
        || {
            let (sender, mut mailbox) = mailbox(Config::default());
            let weak = sender.downgrade();
            let last = thread::spawn(move || drop(sender));
            let upgrade = thread::spawn(move || {
                weak.upgrade()
                    .is_some_and(|sender| sender.send(Arc::new(())).is_ok())
            });
            let received = mailbox.iter().count();
            assert_eq!(usize::from(upgrade.join().unwrap()), received);
            last.join().unwrap();
        },
    );
}

/// Fails if the shared part is freed twice, early or never: it owns one of loom's `Arc`s, which
/// loom misses.
#[test]
fn the_last_of_all_handles_frees_the_mailbox_once() {
    check("the_last_of_all_handles_frees_the_mailbox_once", 3, || {
        let (sender, mailbox) = mailbox::<()>(Config::default());
        assert!(!sender.closed_timeout(Duration::ZERO)); // makes what owns the `Arc`
        let weak = sender.downgrade();
        let threads = [
            thread::spawn(move || drop(sender)),
            thread::spawn(move || drop(weak)),
        ];
        drop(mailbox);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// Fails if a wait for the end is registered after the mailbox has looked for those that wait.
#[test]
fn a_mailbox_that_closes_wakes_every_sender_that_waits_for_it() {
    check(
        "a_mailbox_that_closes_wakes_every_sender_that_waits_for_it",
        3,
        || {
            let (sender, mut mailbox) = mailbox::<()>(Config::default());
            let other = sender.clone();
            let threads = [sender, other]
                .map(|sender| thread::spawn(move || assert!(sender.closed_timeout(Duration::MAX))));
            mailbox.close();
            for thread in threads {
                thread.join().unwrap();
            }
        },
    );
}

/// Fails if a permit that is dropped, or used, gives its capacity back never, twice, or without
/// waking a sender that waits for it.
#[test]
fn permits_give_their_capacity_back_once() {
    check("permits_give_their_capacity_back_once", 3, || {
        let (sender, mut mailbox) = mailbox(Config::default().bounded(1));
        let permit = sender.try_reserve().unwrap();
        let other = sender.clone();
        let thread = thread::spawn(move || {
            let permit = other.reserve_timeout(Duration::MAX).unwrap();
            permit.send(1).unwrap();
        });
        drop(permit);
        assert_eq!(mailbox.recv(), Ok(1));
        thread.join().unwrap();
        let permit = sender.try_reserve().unwrap();
        assert!(sender.try_reserve().is_err(), "there is room for one");
        drop(permit);
    });
}

#[test]
fn permits_that_cross_with_closing_return_the_message_or_drop_it() {
    check(
        "permits_that_cross_with_closing_return_the_message_or_drop_it",
        3,
        || {
            let (sender, mailbox) = mailbox(Config::default().bounded(1));
            let message = Arc::new(());
            let sent = Arc::clone(&message);
            let thread = thread::spawn(move || {
                if let Ok(permit) = sender.reserve_timeout(Duration::MAX) {
                    let _ = permit.send(sent);
                }
            });
            drop(mailbox);
            thread.join().unwrap();
            assert_eq!(Arc::strong_count(&message), 1);
        },
    );
}

/// A message that is small enough for the hand, and that loom misses if it leaks.
type Small = Arc<(u32, u32)>;

const _: () = assert!(size_of::<Small>() <= 16);

fn send_small(sender: &Sender<Small>, number: u32, count: std::ops::Range<u32>) {
    for message in count {
        sender.send(Arc::new((number, message))).unwrap();
    }
}

/// Fails if a message in the hand is lost, received twice, read while the next one is written, or
/// received after one that was sent later; or if the receiver falls asleep on it.
#[test]
fn small_messages_are_received_in_order_one_by_one() {
    for (name, preemptions, config) in [
        ("small_messages_are_received_in_order", 3, Config::default()),
        (
            "small_messages_are_received_in_order_with_room_for_one",
            2,
            Config::default().bounded(1),
        ),
    ] {
        check(name, preemptions, move || {
            let (sender, mut mailbox) = mailbox(config);
            let thread = thread::spawn(move || send_small(&sender, 0, 0..3));
            for count in 0..3 {
                let message = mailbox.recv().unwrap();
                assert_eq!(message.1, count, "out of order");
            }
            assert!(mailbox.recv().is_err());
            assert_eq!(mailbox.len(), 0);
            thread.join().unwrap();
        });
    }
}

/// Fails if a message in the hand comes after the content of the base queue in a collect.
#[test]
fn small_messages_are_received_in_order_by_many_at_once() {
    check(
        "small_messages_are_received_in_order_by_many_at_once",
        3,
        || {
            let (sender, mut mailbox) = mailbox(Config::default());
            let thread = thread::spawn(move || send_small(&sender, 0, 0..3));
            let mut all = Vec::new();
            while mailbox.recv_many(&mut all, 10) > 0 {}
            let counts: Vec<_> = all.iter().map(|message| message.1).collect();
            assert_eq!(counts, [0, 1, 2]);
            thread.join().unwrap();
        },
    );
}

#[test]
fn small_messages_of_two_senders_are_received_in_order() {
    check(
        "small_messages_of_two_senders_are_received_in_order",
        2,
        || {
            let (first, mut mailbox) = mailbox(Config::default());
            let second = first.clone();
            let threads = [(first, 0), (second, 1)]
                .map(|(sender, number)| thread::spawn(move || send_small(&sender, number, 0..2)));
            let mut seen = [0; 2];
            while let Ok(message) = mailbox.recv() {
                let (sender, count) = *message;
                assert_eq!(count, seen[sender as usize], "out of order");
                seen[sender as usize] += 1;
            }
            assert_eq!(seen, [2, 2]);
            for thread in threads {
                thread.join().unwrap();
            }
        },
    );
}

/// Fails if a message that is put into the hand while the receiver gives up is forgotten by a
/// mailbox that closes, or counted wrongly.
#[test]
fn a_small_message_that_crosses_with_closing_is_received_or_comes_back() {
    check(
        "a_small_message_that_crosses_with_closing_is_received_or_comes_back",
        4,
        || {
            let (sender, mut mailbox) = mailbox(Config::default());
            let witness = Arc::new(());
            let message = Arc::clone(&witness);
            let thread = thread::spawn(move || sender.send(message).is_ok());
            let mut received = mailbox.recv_timeout(Duration::ZERO).is_ok();
            mailbox.close();
            let rest = mailbox.len();
            received |= mailbox.try_recv().is_ok();
            assert_eq!(mailbox.len(), 0);
            assert_eq!(thread.join().unwrap(), received);
            assert!(received || rest == 0);
            assert_eq!(Arc::strong_count(&witness), 1);
        },
    );
}

#[test]
fn a_small_message_that_crosses_with_dropping_is_dropped_or_comes_back() {
    check(
        "a_small_message_that_crosses_with_dropping_is_dropped_or_comes_back",
        4,
        || {
            let (sender, mut mailbox) = mailbox(Config::default());
            let witness = Arc::new(());
            let message = Arc::clone(&witness);
            let thread = thread::spawn(move || drop(sender.send(message)));
            drop(mailbox.recv_timeout(Duration::ZERO));
            drop(mailbox);
            thread.join().unwrap();
            assert_eq!(Arc::strong_count(&witness), 1);
        },
    );
}

/// Fails if slots come while a message is in the hand, and a message of the same sender in a slot
/// overtakes it.
#[test]
fn a_small_message_comes_before_what_its_sender_sends_by_a_slot() {
    check(
        "a_small_message_comes_before_what_its_sender_sends_by_a_slot",
        3,
        || {
            let (sender, mut mailbox) = mailbox(rising(1).mode(Mode::Auto));
            let thread = thread::spawn(move || send_small(&sender, 0, 0..3));
            let counts: Vec<_> = mailbox.iter().map(|message| message.1).collect();
            assert_eq!(counts, [0, 1, 2]);
            thread.join().unwrap();
        },
    );
}

#[test]
fn a_message_behind_all_comes_behind_one_in_the_hand() {
    check(
        "a_message_behind_all_comes_behind_one_in_the_hand",
        3,
        || {
            let (sender, mut mailbox) = mailbox(Config::default());
            let other = sender.clone();
            let thread = thread::spawn(move || {
                send_small(&sender, 0, 0..1);
                other.send_behind_all(Arc::new((0, 1))).unwrap();
                other.send_urgent(Arc::new((1, 0))).unwrap();
            });
            let all: Vec<_> = mailbox.iter().map(|message| *message).collect();
            let ordinary: Vec<_> = all.iter().filter(|message| message.0 == 0).collect();
            assert_eq!(ordinary, [&(0, 0), &(0, 1)]);
            assert_eq!(all.len(), 3);
            thread.join().unwrap();
        },
    );
}
