//! The hand: a place for one message, in the receiver's cache line, beside the signals' word.
//!
//! ```text
//!  receiver                                 sender, which holds the base lock
//!  raise LOOKING, look at the word          base queue empty? word LOOKING, not HANDED?
//!  HANDED: read the hand          <-----.   write the hand
//!  lower HANDED and LOOKING              `- raise HANDED
//! ```
//!
//! A receiver that looks for messages reads the word again and again. A message that came through
//! the base queue would cost it three cache lines of the sender's more: the lock, the queue, and
//! the memory of the queue. A message in the hand comes with the word.
//!
//! The hand holds the oldest message of the queue. A sender fills it only while the base queue is
//! empty and there are no slots; the receiver takes it before it takes anything else from the
//! queue.
//!
//! Two threads never access the hand at the same time. While `HANDED` is lowered, only the holder
//! of the base lock may access it. While it is raised, only the receiver may. Each raises or lowers
//! the bit after its access, and the other begins its own access after it has seen that.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;
use tremula_sync::cell::UnsafeCell;

/// The memory: what the receiver's cache line has left.
type Place = [u64; 2];

/// A place for a message that is small enough for it, or for none.
pub(super) struct Hand<T> {
    place: UnsafeCell<MaybeUninit<Place>>,
    message: PhantomData<T>,
}

impl<T> Hand<T> {
    /// Whether messages of this type are small enough.
    pub(super) const FITS: bool =
        size_of::<T>() <= size_of::<Place>() && align_of::<T>() <= align_of::<Place>();

    pub(super) fn new() -> Self {
        Self {
            place: UnsafeCell::new(MaybeUninit::uninit()),
            message: PhantomData,
        }
    }

    /// Moves the message at `message` into the hand.
    ///
    /// # Safety
    ///
    /// Messages of this type [fit](Self::FITS). No other thread accesses the hand meanwhile, and
    /// there is no message in it. `message` is valid to read, and the caller does not use or drop
    /// it any more.
    #[inline]
    pub(super) unsafe fn put(&self, message: *const T) {
        debug_assert!(Self::FITS);
        let place = self.place.get_mut();
        // SAFETY: the caller gives the message away, which fits, and excludes all other threads.
        unsafe { ptr::copy_nonoverlapping(message, place.deref().as_mut_ptr().cast::<T>(), 1) };
    }

    /// Takes the message out of the hand.
    ///
    /// # Safety
    ///
    /// No other thread accesses the hand meanwhile, and there is a message in it, which the caller
    /// takes only once.
    #[inline]
    pub(super) unsafe fn take(&self) -> T {
        let place = self.place.get_mut();
        // SAFETY: `put` has written a message here, and the caller excludes all other threads.
        unsafe { place.deref().as_ptr().cast::<T>().read() }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::queue::{HANDED, SLOTS};
    use crate::{Config, Mailbox, Mode, Sender, TryRecvError, mailbox};
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn what_is_larger_or_more_aligned_than_the_hand_does_not_fit() {
        #[repr(align(16))]
        struct Aligned;
        let small = [Hand::<()>::FITS, Hand::<u64>::FITS, Hand::<&str>::FITS];
        assert_eq!(small, [true; 3]);
        let others = [Hand::<[u8; 17]>::FITS, Hand::<Aligned>::FITS];
        assert_eq!(others, [false; 2]);
    }

    /// Whether the first message to a receiver that looks goes to the hand.
    fn is_handed<T>(config: Config, message: T) -> bool {
        let (sender, mailbox) = mailbox(config);
        mailbox.shared.signals().look();
        sender
            .send(message)
            .unwrap_or_else(|_| panic!("it is open"));
        mailbox.shared.signals().any(HANDED)
    }

    #[test]
    fn only_a_small_message_is_handed_and_only_where_messages_are_written_in_place() {
        let mode = |mode| Config::default().mode(mode);
        assert!(is_handed(mode(Mode::Auto), 1) && is_handed(mode(Mode::OnHeap), 1));
        assert!(!is_handed(mode(Mode::OffHeap), 1));
        assert!(!is_handed(mode(Mode::Auto), [1_u64; 3]));
    }

    const SENDERS: usize = 3;

    /// A message: its sender, its number there, and something to drop once.
    type Message = (u16, u32, Arc<()>);

    #[derive(Clone, Copy, Debug)]
    enum Step {
        /// The receiver looks, so that the next message may be handed.
        Look,
        Send(usize),
        SendUrgent(usize),
        SendBehindAll(usize),
        TryRecv,
        /// Looks, finds nothing or something, and no longer looks.
        RecvTimeout,
        RecvMany(usize),
        /// Takes a message whose number is divisible by this.
        RecvMatching(u32),
        /// Collects and frees the memory, as before a long sleep.
        PollRecv,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            6 => Just(Step::Look),
            6 => (0..SENDERS).prop_map(Step::Send),
            1 => (0..SENDERS).prop_map(Step::SendUrgent),
            1 => (0..SENDERS).prop_map(Step::SendBehindAll),
            4 => Just(Step::TryRecv),
            1 => Just(Step::RecvTimeout),
            1 => (1..4_usize).prop_map(Step::RecvMany),
            1 => (2..4_u32).prop_map(Step::RecvMatching),
            1 => Just(Step::PollRecv),
        ];
        prop::collection::vec(step, 1..50)
    }

    /// What was sent and not received: in its order the messages of each sender, and all urgent
    /// ones together.
    #[derive(Default)]
    struct Model {
        ordinary: [VecDeque<u32>; SENDERS],
        urgent: VecDeque<(usize, u32)>,
        sent: u32,
        handed: usize,
    }

    impl Model {
        fn len(&self) -> usize {
            self.urgent.len() + self.ordinary.iter().map(VecDeque::len).sum::<usize>()
        }

        fn next(&mut self, (sender, number, _): &Message) {
            let sender = usize::from(*sender);
            match self.urgent.pop_front() {
                Some(urgent) => assert_eq!((sender, *number), urgent),
                None => assert_eq!(self.ordinary[sender].pop_front(), Some(*number)),
            }
        }

        fn matching(&mut self, (sender, number, _): &Message, divisor: u32) {
            let sender = usize::from(*sender);
            let fits = |number: &u32| number.is_multiple_of(divisor);
            if let Some(place) = self.urgent.iter().position(|(_, number)| fits(number)) {
                assert_eq!(self.urgent.remove(place), Some((sender, *number)));
                return;
            }
            let place = self.ordinary[sender].iter().position(fits);
            let place = place.expect("it was sent");
            assert_eq!(self.ordinary[sender].remove(place), Some(*number));
        }
    }

    fn send(step: Step, senders: &[Sender<Message>], model: &mut Model, witness: &Arc<()>) {
        model.sent += 1;
        let number = model.sent;
        let message = |sender: usize| (sender as u16, number, Arc::clone(witness));
        let sent = match step {
            Step::Send(sender) => {
                model.ordinary[sender].push_back(number);
                senders[sender].send(message(sender))
            }
            Step::SendUrgent(sender) => {
                model.urgent.push_back((sender, number));
                senders[sender].send_urgent(message(sender))
            }
            Step::SendBehindAll(sender) => {
                model.ordinary[sender].push_back(number);
                senders[sender].send_behind_all(message(sender))
            }
            _ => unreachable!("it is no send"),
        };
        sent.unwrap();
    }

    fn receive(step: Step, mailbox: &mut Mailbox<Message>, model: &mut Model) {
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        match step {
            Step::TryRecv => match mailbox.try_recv() {
                Ok(message) => model.next(&message),
                Err(error) => assert_eq!((error, model.len()), (TryRecvError::Empty, 0)),
            },
            Step::RecvTimeout => match mailbox.recv_timeout(Duration::ZERO) {
                Ok(message) => model.next(&message),
                Err(_) => assert_eq!(model.len(), 0),
            },
            Step::RecvMany(limit) if model.len() > 0 => {
                let mut some = Vec::new();
                mailbox.recv_many(&mut some, limit);
                assert_eq!(some.len(), limit.min(model.len()));
                some.iter().for_each(|message| model.next(message));
            }
            Step::RecvMatching(divisor) => {
                let found = mailbox.try_recv_matching(|message| message.1.is_multiple_of(divisor));
                if let Ok(message) = found {
                    model.matching(&message, divisor);
                }
            }
            Step::PollRecv => match mailbox.poll_recv(&mut cx) {
                std::task::Poll::Ready(message) => model.next(&message.unwrap()),
                std::task::Poll::Pending => assert_eq!(model.len(), 0),
            },
            _ => {}
        }
    }

    /// Runs the steps, and then drops the mailbox or receives what is left of a closed one. Returns
    /// how many messages were handed.
    fn run(steps: &[Step], config: Config, drops: bool) -> usize {
        let (sender, mut mailbox) = mailbox(config);
        let senders: [_; SENDERS] = std::array::from_fn(|_| sender.clone());
        let (mut model, witness) = (Model::default(), Arc::new(()));
        // A message behind all takes no capacity.
        let overdrawn = steps
            .iter()
            .any(|step| matches!(step, Step::SendBehindAll(_)));
        for step in steps {
            match step {
                Step::Look => drop(mailbox.shared.signals().look()),
                Step::Send(_) | Step::SendUrgent(_) | Step::SendBehindAll(_) => {
                    let full = mailbox.is_full();
                    if !full || matches!(step, Step::SendBehindAll(_)) {
                        let before = mailbox.shared.signals().any(HANDED);
                        send(*step, &senders, &mut model, &witness);
                        let after = mailbox.shared.signals().any(HANDED);
                        model.handed += usize::from(after && !before);
                    }
                }
                step => receive(*step, &mut mailbox, &mut model),
            }
            assert_eq!(mailbox.len(), model.len());
            assert_eq!(Arc::strong_count(&witness), model.len() + 1);
            if let Some(capacity) = mailbox.capacity()
                && !overdrawn
            {
                let free = capacity.saturating_sub(model.len());
                assert_eq!(mailbox.free_capacity(), Some(free));
            }
        }
        if !drops {
            mailbox.close();
            assert!(!mailbox.shared.signals().any(HANDED | SLOTS));
            while let Ok(message) = mailbox.try_recv() {
                model.next(&message);
            }
            assert_eq!(model.len(), 0);
        }
        drop(mailbox);
        assert_eq!(Arc::strong_count(&witness), 1);
        model.handed
    }

    /// Fails if a message in the hand is lost, duplicated, overtaken or not counted, by whichever
    /// way of sending, receiving and closing.
    #[test]
    fn the_hand_changes_nothing_that_can_be_observed() {
        let configs = prop_oneof![
            Just(Config::default()),
            Just(Config::default().bounded(3)),
            // Slots come and go all the time, without contention.
            Just(
                Config::default()
                    .weights(1, -1)
                    .install_above(4)
                    .remove_below(1e9, 2)
            ),
        ];
        let handed = std::cell::Cell::new(0);
        let mut runner = proptest::test_runner::TestRunner::default();
        let cases = (steps(), configs, any::<bool>());
        let outcome = runner.run(&cases, |(steps, config, drops)| {
            handed.set(handed.get() + run(&steps, config, drops));
            Ok(())
        });
        outcome.unwrap_or_else(|error| panic!("{error}"));
        assert!(handed.get() > 100, "only {} were handed", handed.get());
    }
}
