//! Random operations and configurations against a model: for each sender the received sequence is
//! the sent one, through every change, and nothing is lost or duplicated.
#![cfg(not(any(loom, shuttle)))]

use futures_sink::Sink;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tremula_mailbox::{Config, Mailbox, Mode, Permit, Sender, TryRecvError, bounded, mailbox};
use tremula_sync::thread;

const SENDERS: usize = 5;

/// A message: its sender, and a stamp that rises with each send of the test.
type Message = (usize, u64);

#[derive(Clone, Debug)]
enum Step {
    Send(usize, usize),
    SendUrgent(usize),
    SendBehindAll(usize),
    Recv(usize),
    RecvMany(usize),
    /// Takes a message whose stamp is divisible by this.
    RecvMatching(u64),
    /// Replaces a sender by a clone of another, with an order of its own.
    Replace(usize, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let sender = 0..SENDERS;
    let step = prop_oneof![
        8 => (sender.clone(), 1..40_usize).prop_map(|(sender, count)| Step::Send(sender, count)),
        1 => sender.clone().prop_map(Step::SendUrgent),
        1 => sender.clone().prop_map(Step::SendBehindAll),
        4 => (1..60_usize).prop_map(Step::Recv),
        2 => (0..90_usize).prop_map(Step::RecvMany),
        3 => (1..30_u64).prop_map(Step::RecvMatching),
        1 => (sender.clone(), sender).prop_map(|(one, other)| Step::Replace(one, other)),
    ];
    prop::collection::vec(step, 1..120)
}

/// Thresholds so low that changes happen constantly, even without contention.
fn configs() -> impl Strategy<Value = Config> {
    let modes = prop::sample::select(Mode::ALL.to_vec());
    (
        modes,
        1..=64_u32,
        -3..3_i32,
        0..20_i32,
        0..20_i32,
        0..10_u8,
        1..8_u32,
    )
        .prop_map(
            |(mode, slots, uncontended, install, grow, fewest, window)| {
                Config::default()
                    .mode(mode)
                    .slots(slots)
                    .weights(20, uncontended)
                    .install_above(install)
                    .grow_above(grow)
                    .remove_below(f32::from(fewest), window)
            },
        )
}

/// The expected content of the mailbox.
#[derive(Default)]
struct Model {
    ordinary: [VecDeque<u64>; SENDERS],
    urgent: VecDeque<Message>,
    /// Stamps of messages that were sent behind all.
    behind_all: Vec<u64>,
    stamp: u64,
    received: u64,
}

impl Model {
    fn stamp(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp
    }

    fn len(&self) -> usize {
        self.urgent.len() + self.ordinary.iter().map(VecDeque::len).sum::<usize>()
    }

    /// Checks a message that was received as the next one.
    fn next(&mut self, message: Message) {
        self.received += 1;
        if let Some(urgent) = self.urgent.pop_front() {
            assert_eq!(message, urgent, "urgent messages come first and in order");
            return;
        }
        let (sender, stamp) = message;
        assert_eq!(
            self.ordinary[sender].pop_front(),
            Some(stamp),
            "out of order"
        );
        if self.behind_all.contains(&stamp) {
            let before = self.ordinary.iter().flatten().any(|other| *other < stamp);
            assert!(!before, "a message overtook some that it was sent behind");
        }
    }

    /// Checks a message that was received because its stamp matches.
    fn matching(&mut self, found: Option<Message>, divisor: u64) {
        let fits = |stamp: &u64| stamp.is_multiple_of(divisor);
        if let Some(place) = self.urgent.iter().position(|(_, stamp)| fits(stamp)) {
            assert_eq!(
                found,
                self.urgent.remove(place),
                "urgent messages come first"
            );
            self.received += 1;
            return;
        }
        let Some((sender, stamp)) = found else {
            assert!(!self.ordinary.iter().flatten().any(fits), "a message fits");
            return;
        };
        let queue = &mut self.ordinary[sender];
        let first = queue.iter().position(fits).expect("it must be there");
        assert_eq!(queue.remove(first), Some(stamp), "not the first that fits");
        self.received += 1;
    }
}

fn perform(
    step: &Step,
    senders: &mut [Sender<Message>],
    mailbox: &mut Mailbox<Message>,
    model: &mut Model,
) {
    match *step {
        Step::Send(sender, count) => {
            for _ in 0..count {
                let stamp = model.stamp();
                model.ordinary[sender].push_back(stamp);
                senders[sender].send((sender, stamp)).unwrap();
            }
        }
        Step::SendUrgent(sender) => {
            let message = (sender, model.stamp());
            model.urgent.push_back(message);
            senders[sender].send_urgent(message).unwrap();
        }
        Step::SendBehindAll(sender) => {
            let stamp = model.stamp();
            model.ordinary[sender].push_back(stamp);
            model.behind_all.push(stamp);
            senders[sender].send_behind_all((sender, stamp)).unwrap();
        }
        Step::Recv(count) => {
            for _ in 0..count {
                match mailbox.try_recv() {
                    Ok(message) => model.next(message),
                    Err(error) => {
                        assert_eq!(error, TryRecvError::Empty);
                        assert_eq!(model.len(), 0, "a message that was sent is not seen");
                    }
                }
            }
        }
        Step::RecvMany(limit) => {
            let mut some = Vec::new();
            if model.len() > 0 {
                let count = mailbox.recv_many(&mut some, limit);
                assert_eq!(count, some.len());
                assert_eq!(count, limit.min(model.len()));
            }
            some.into_iter().for_each(|message| model.next(message));
        }
        Step::RecvMatching(divisor) => {
            let found = mailbox.try_recv_matching(|(_, stamp)| stamp.is_multiple_of(divisor));
            model.matching(found.ok(), divisor);
        }
        Step::Replace(one, other) => {
            // Only a sender without messages in the mailbox, because its clone has an order of its
            // own.
            if model.ordinary[one].is_empty() {
                senders[one] = senders[other].clone();
            }
        }
    }
    assert_eq!(mailbox.len(), model.len());
    assert_eq!(senders[0].len(), model.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_sender_is_received_as_it_sent(
        config in configs(),
        steps in steps(),
        closes in any::<bool>(),
    ) {
        let (sender, mut mailbox) = mailbox(config);
        let mut senders = vec![sender; SENDERS];
        let mut model = Model::default();
        for step in &steps {
            perform(step, &mut senders, &mut mailbox, &mut model);
        }
        if closes {
            mailbox.close();
            prop_assert!(senders[0].send((0, 0)).is_err());
            prop_assert_eq!(mailbox.len(), model.len());
        }
        drop(senders);
        while let Ok(message) = mailbox.recv() {
            model.next(message);
        }
        prop_assert_eq!(model.len(), 0);
        prop_assert_eq!(model.received, model.stamp);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn threads_are_received_as_they_sent(
        config in configs(),
        counts in prop::collection::vec(0..3_000_u64, 1..6),
        capacity in prop::option::weighted(0.3, 1..50_usize),
        batch in 0..100_usize,
    ) {
        let config = capacity.map_or(config, |capacity| config.bounded(capacity));
        let (sender, mut mailbox) = mailbox(config);
        let threads: Vec<_> = counts.iter().copied().enumerate().map(|(number, count)| {
            let sender = sender.clone();
            thread::spawn(move || {
                (0..count).for_each(|stamp| sender.send((number, stamp)).unwrap());
            })
        }).collect();
        drop(sender);
        let mut seen = vec![0; counts.len()];
        let mut some = Vec::new();
        while mailbox.recv_many(&mut some, batch.max(1)) > 0 {
            for (number, stamp) in some.drain(..) {
                assert_eq!(stamp, seen[number], "sender {number} is out of order");
                seen[number] += 1;
            }
        }
        for thread in threads {
            thread.join().unwrap();
        }
        prop_assert_eq!(&seen, &counts);
        prop_assert_eq!(mailbox.stats().sends(), counts.iter().sum::<u64>());
    }
}

/// A step of those that want capacity of a bounded mailbox, hold it, or give it back.
#[derive(Clone, Debug)]
enum Room {
    TrySend,
    /// Begins to wait: with a send, a reservation, or a sink.
    WaitToSend,
    WaitToReserve,
    WaitToBeReady,
    /// Polls all that wait.
    PollAll,
    /// One of those that wait or hold capacity, by its number, gives it up.
    GiveUp(usize),
    /// One of those that hold capacity sends with it.
    Use(usize),
    Recv,
}

fn rooms() -> impl Strategy<Value = Vec<Room>> {
    let step = prop_oneof![
        4 => Just(Room::TrySend),
        2 => Just(Room::WaitToSend),
        2 => Just(Room::WaitToReserve),
        2 => Just(Room::WaitToBeReady),
        3 => Just(Room::PollAll),
        3 => (0..8_usize).prop_map(Room::GiveUp),
        3 => (0..8_usize).prop_map(Room::Use),
        6 => Just(Room::Recv),
    ];
    prop::collection::vec(step, 1..100)
}

/// One that waits for capacity, or holds it.
enum Party<'a> {
    Sending(Pin<Box<dyn Future<Output = bool> + 'a>>),
    Reserving(Pin<Box<dyn Future<Output = Option<Permit<'a, u64>>> + 'a>>),
    Permitted(Permit<'a, u64>),
    Sink { sender: Sender<u64>, ready: bool },
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Capacity is neither lost nor made: what is free, what is held, and what lies in the mailbox
    /// together are the capacity; and nobody waits while capacity is free.
    #[test]
    fn capacity_is_neither_lost_nor_made(capacity in 1..4_usize, steps in rooms()) {
        let (sender, mut mailbox) = bounded::<u64>(capacity);
        let mut cx = Context::from_waker(Waker::noop());
        let mut parties: Vec<Party<'_>> = Vec::new();
        for step in steps {
            match step {
                Room::TrySend => {
                    let _ = sender.try_send(1);
                }
                Room::WaitToSend => parties.push(Party::Sending(Box::pin(async {
                    sender.send_async(1).await.is_ok()
                }))),
                Room::WaitToReserve => parties.push(Party::Reserving(Box::pin(async {
                    sender.reserve().await.ok()
                }))),
                Room::WaitToBeReady => parties.push(Party::Sink {
                    sender: sender.clone(),
                    ready: false,
                }),
                Room::PollAll => parties = poll_all(parties, &mut cx),
                Room::GiveUp(number) => {
                    if number < parties.len() {
                        drop(parties.remove(number));
                    }
                }
                Room::Use(number) => {
                    if number < parties.len() {
                        match parties.remove(number) {
                            Party::Permitted(permit) => permit.send(1).unwrap(),
                            Party::Sink { mut sender, ready: true } => {
                                Pin::new(&mut sender).start_send(1).unwrap();
                            }
                            other => parties.push(other),
                        }
                    }
                }
                Room::Recv => {
                    let _ = mailbox.try_recv();
                }
            }
            prop_assert!(mailbox.len() <= capacity);
        }
        let held = |parties: &[Party<'_>]| parties.iter().filter(|party| {
            matches!(party, Party::Permitted(_) | Party::Sink { ready: true, .. })
        }).count();
        // Those that were given capacity take it.
        let parties = poll_all(parties, &mut cx);
        let waiting = parties.len() - held(&parties);
        let free = sender.free_capacity().unwrap();
        prop_assert_eq!(free + held(&parties) + mailbox.len(), capacity);
        prop_assert!(waiting == 0 || free == 0, "{} wait, and {} are free", waiting, free);
        drop(parties);
        mailbox.try_iter().for_each(drop);
        prop_assert_eq!(sender.free_capacity(), Some(capacity));
    }
}

/// Polls each party once, and returns those that still wait or hold capacity.
fn poll_all<'a>(parties: Vec<Party<'a>>, cx: &mut Context<'_>) -> Vec<Party<'a>> {
    parties
        .into_iter()
        .filter_map(|party| match party {
            Party::Sending(mut send) => match send.as_mut().poll(cx) {
                Poll::Ready(_) => None,
                Poll::Pending => Some(Party::Sending(send)),
            },
            Party::Reserving(mut reserve) => match reserve.as_mut().poll(cx) {
                Poll::Ready(permit) => permit.map(Party::Permitted),
                Poll::Pending => Some(Party::Reserving(reserve)),
            },
            Party::Sink { mut sender, .. } => {
                let ready = Pin::new(&mut sender).poll_ready(cx).is_ready();
                Some(Party::Sink { sender, ready })
            }
            permitted @ Party::Permitted(_) => Some(permitted),
        })
        .collect()
}
