//! Bugs to plant in mailboxes.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

/// The mailbox's models.
const MAILBOX_LOOM: Checker = Checker {
    flavour: Flavour::Loom,
    package: "tremula-mailbox",
    target: Target::Test("loom"),
    filter: "",
};

/// The mailbox's tests of closing and going down.
const MAILBOX_CLOSING: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-mailbox",
    target: Target::Test("closing"),
    filter: "",
};

/// The mailbox's unit tests.
const MAILBOX_LIB: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-mailbox",
    target: Target::Lib,
    filter: "",
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "mailbox_closing_puts_the_newest_first",
        file: "crates/mailbox/src/queue/base.rs",
        original: "        if !inbox.taken.has_no_block() {\n            self.hand_over_behind(&mut inbox.taken);\n        } else if inbox.front",
        replacement: "        if inbox.front",
        why: "What lies in the ring when a mailbox closes comes before older messages that the receiver has taken and not given out.",
        checker: MAILBOX_CLOSING,
        hangs: false,
    },
    Mutant {
        name: "mailbox_debt_is_paid_twice",
        file: "crates/mailbox/src/credits.rs",
        original: "            match self.debt.compare_exchange_weak(\n                owed,\n                owed - paid,\n                Ordering::Relaxed,\n                Ordering::Relaxed,\n            ) {\n                Ok(_) => return count - paid,\n                Err(now) => owed = now,\n            }",
        replacement: "            owed = self.debt.fetch_sub(paid, Ordering::Relaxed);\n            if owed < usize::MAX {\n                return count - paid;\n            }",
        why: "A receive and a send that is given up both pay the last of what is owed; the debt underflows, and all room that is given back from then on is kept.",
        checker: Checker {
            filter: "pays_what_is_owed_once",
            ..MAILBOX_LOOM
        },
        hangs: false,
    },
    Mutant {
        name: "mailbox_that_is_closed_passes_for_down",
        file: "crates/mailbox/src/queue/mod.rs",
        original: "(!base.down).then(|| work(base.closed))",
        replacement: "(!base.closed).then(|| work(base.closed))",
        why: "Who monitors a mailbox that is closed is told at once that it is down, before its owner's last words.",
        checker: MAILBOX_CLOSING,
        hangs: false,
    },
    Mutant {
        name: "mailbox_takes_monitors_that_nobody_will_tell",
        file: "crates/mailbox/src/queue/mod.rs",
        original: "        self.base.lock().down = true;\n",
        replacement: "        let _ = self.base.lock();\n",
        why: "A monitor's list is made after the receiver has looked for one: its notice is never sent.",
        checker: Checker {
            filter: "crosses_with_going_down",
            ..MAILBOX_LOOM
        },
        hangs: false,
    },
    Mutant {
        name: "mailbox_notice_that_panics_ends_all_notices",
        file: "crates/mailbox/src/shared.rs",
        original: "                contained(notice);\n",
        replacement: "                notice();\n",
        why: "The panic of one notice keeps all later watchers from theirs, and leaks the mailbox.",
        checker: MAILBOX_CLOSING,
        hangs: true,
    },
    Mutant {
        name: "waker_that_panics_ends_the_loop_over_others",
        file: "crates/sync/src/waiter.rs",
        original: "                contained(|| waker.wake());\n",
        replacement: "                waker.wake();\n",
        why: "The panic of one task's waker keeps all that wait behind it from being woken.",
        checker: MAILBOX_CLOSING,
        hangs: false,
    },
    Mutant {
        name: "mailbox_that_is_gone_keeps_its_waker",
        file: "crates/mailbox/src/shared.rs",
        original: "        self.signals().forget_waiter();\n",
        replacement: "",
        why: "The task that received last, and all that it holds, lives until the last sender goes.",
        checker: MAILBOX_CLOSING,
        hangs: false,
    },
    Mutant {
        name: "mailbox_receiver_gives_its_core_away_near_its_deadline",
        file: "crates/mailbox/src/recv.rs",
        original: "deadline.saturating_duration_since(now()) <= NEAR",
        replacement: "deadline < now()",
        why: "A receive with a timeout is late by a scheduler's slice, or by one for each yield of its budget.",
        checker: MAILBOX_LIB,
        hangs: false,
    },
    Mutant {
        name: "mailbox_long_wait_counts_as_a_brief_one",
        file: "crates/mailbox/src/queue/contention.rs",
        original: "            Wait::Long if limits.contended > 0 => i32::MAX,\n            Wait::Long => self.0,",
        replacement: "            Wait::Long => self.0.saturating_add(i32::from(limits.contended)),",
        why: "A slow sender that cannot get the lock between fast ones waits again and again: their sends take off more than its waits add.",
        checker: MAILBOX_LIB,
        hangs: false,
    },
    Mutant {
        name: "mailbox_weights_overflow",
        file: "crates/mailbox/src/queue/contention.rs",
        original: "            Wait::None => self.0.saturating_sub(limits.uncontended),\n",
        replacement: "            Wait::None => self.0.saturating_add(-limits.uncontended),\n",
        why: "The smallest weight has no opposite number: a build with checks panics under the lock.",
        checker: MAILBOX_LIB,
        hangs: false,
    },
    Mutant {
        name: "short_lock_says_nothing_of_long_waits",
        file: "crates/sync/src/short_lock.rs",
        original: "let wait = if turns < LONG {",
        replacement: "let wait = if turns <= u32::MAX {",
        why: "A thread that waited for a lock until its core was given away many times counts as one that waited for an instant.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-sync",
            target: Target::Lib,
            filter: "short_lock",
        },
        hangs: false,
    },
    Mutant {
        name: "counting_allocator_counts_what_is_refused",
        file: "crates/sync/src/counting_allocator.rs",
        original: "    if !block.is_null() {\n        note(bytes);\n    }",
        replacement: "    let _ = block;\n    note(bytes);",
        why: "An allocation that fails is counted as memory in use.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-sync",
            target: Target::Lib,
            filter: "counting_allocator",
        },
        hangs: false,
    },
    Mutant {
        name: "mailbox_keeps_the_memory_of_urgent_messages",
        file: "crates/mailbox/src/recv.rs",
        original: "            extras.free_memory();\n",
        replacement: "            let _ = extras;\n",
        why: "What a burst of urgent messages needed is kept for as long as the mailbox lives.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-mailbox",
            target: Target::Test("memory"),
            filter: "",
        },
        hangs: false,
    },
    Mutant {
        name: "mailbox_keeps_the_memory_around_one_message",
        file: "crates/mailbox/src/queue/inbox.rs",
        original: "                queue.shrink_to_fit();\n",
        replacement: "",
        why: "One message that a selective receive has kept holds the memory of all that were seen beside it.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-mailbox",
            target: Target::Test("memory"),
            filter: "",
        },
        hangs: false,
    },
    Mutant {
        name: "mailbox_removes_slots_without_draining",
        file: "crates/mailbox/src/queue/mod.rs",
        original: "unsafe { Box::from_raw(array) }.drain(into)",
        replacement: "{ drop(unsafe { Box::from_raw(array) }); let _ = into; Taken::default() }",
        why: "Messages that lie in slots when these are removed are lost.",
        checker: MAILBOX_LOOM,
        hangs: false,
    },
    Mutant {
        name: "mailbox_frees_slots_that_a_sender_uses",
        file: "crates/mailbox/src/queue/mod.rs",
        original: "        self.read_mostly.stripes.pass(); // invariant 5\n",
        replacement: "",
        why: "A sender that has found its slot before the array was unlinked writes to freed memory.",
        checker: MAILBOX_LOOM,
        hangs: false,
    },
    Mutant {
        name: "mailbox_message_behind_all_overtakes_slots",
        file: "crates/mailbox/src/queue/mod.rs",
        original: "            self.flush(array, &mut base, &mut chain, &mut Spares::none());\n",
        replacement: "            let _ = (array, Spares::<T>::none(), &mut chain);\n",
        why: "A message goes to the base queue while slots are not flushed, and overtakes what its own sender and all others sent by these.",
        checker: MAILBOX_LOOM,
        hangs: false,
    },
    Mutant {
        name: "mailbox_flush_looks_for_children_too_late",
        file: "crates/mailbox/src/queue/mod.rs",
        original: "            let children = slot.children();\n            drop(stripe);",
        replacement: "            drop(stripe);\n            let children = slot.children();",
        why: "What is sent to a slot after its flush is overtaken by what is sent below it, when it grows in between.",
        checker: Checker {
            flavour: Flavour::Shuttle,
            package: "tremula-mailbox",
            target: Target::Test("shuttle"),
            filter: "a_slot_that_grows",
        },
        hangs: false,
    },
    Mutant {
        name: "mailbox_announces_to_the_parent_first",
        file: "crates/mailbox/src/queue/mod.rs",
        original: "        for depth in (0..=self.depth).rev() {\n            let array = self.arrays[depth].expect(\"a path has an array at each depth\");\n            array.mark(self.places[depth]);\n        }\n        signals.raise_if_lowered(SLOTS)",
        replacement: "        let wake = signals.raise_if_lowered(SLOTS);\n        for depth in (0..=self.depth).rev() {\n            let array = self.arrays[depth].expect(\"a path has an array at each depth\");\n            array.mark(self.places[depth]);\n        }\n        wake",
        why: "The receiver is told before the bit of the slot is set: it looks, finds nothing, and sleeps on a message.",
        checker: MAILBOX_LOOM,
        hangs: false,
    },
    Mutant {
        name: "mailbox_lowers_signals_after_looking",
        file: "crates/mailbox/src/queue/mod.rs",
        original: "        self.begin_collecting(&mut base, signals);\n        let mut count = base.hand_over(inbox);\n        if let Some(array) = self.array() {",
        replacement: "        let mut count = base.hand_over(inbox);\n        let array = self.array();\n        if let Some(array) = array {\n            self.flush(array, &mut base, &mut inbox.taken, &mut inbox.spares);\n        }\n        self.begin_collecting(&mut base, signals);\n        if let Some(array) = array.filter(|_| false) {",
        why: "The signal of a message that came after the look is wiped out: its wake-up is lost.",
        checker: MAILBOX_LOOM,
        hangs: false,
    },
    Mutant {
        name: "mailbox_falls_asleep_on_a_message",
        file: "crates/mailbox/src/queue/signals.rs",
        original: "        matches!(sleeping, Ok(_) | Err(SLEEPING))",
        replacement: "        sleeping.is_ok() || sleeping.is_err()",
        why: "A receiver sleeps although a bit was raised before it announced that it sleeps; nobody wakes it.",
        checker: MAILBOX_LOOM,
        hangs: false,
    },
    Mutant {
        name: "mailbox_sends_in_place_before_the_chain",
        file: "crates/mailbox/src/queue/base.rs",
        original: "in_place && self.chain.has_no_block() && self.ring.len()",
        replacement: "in_place && self.ring.len()",
        why: "A message in the ring overtakes one of the same sender that lies in the chain.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-mailbox",
            target: Target::Test("properties"),
            filter: "",
        },
        hangs: false,
    },
    Mutant {
        name: "mailbox_credit_is_lost_with_a_future",
        file: "crates/mailbox/src/claim.rs",
        original: "            Self::Queued(turn) => credits.leave(&turn).is_taken(),\n",
        replacement: "            Self::Queued(turn) => credits.leave(&turn).is_taken() && false,\n",
        why: "Room that was given to a send which is given up is lost to all others.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-mailbox",
            target: Target::Test("behaviour"),
            filter: "given_up",
        },
        hangs: true,
    },
    Mutant {
        name: "oneshot_falls_asleep_on_a_value",
        file: "crates/mailbox/src/oneshot.rs",
        original: "            let before = receiver.replace(waiter);\n            drop(state);\n            drop(before);\n            return None;",
        replacement: "            let _ = receiver;\n            drop(state);\n            if let State::Open { receiver, .. } = &mut *self.0.lock() {\n                *receiver = Some(waiter);\n            }\n            return None;",
        why: "A receiver looks and registers in two steps: a value that comes in between finds nobody to wake, and the receiver sleeps on it.",
        checker: Checker {
            filter: "a_value_or_the_lack_of_one",
            ..MAILBOX_LOOM
        },
        hangs: false,
    },
    Mutant {
        name: "oneshot_that_is_refused_wakes_nobody",
        file: "crates/mailbox/src/oneshot.rs",
        original: "            if let Some(sender) = sender {\n                sender.wake();\n            }\n            drop(receiver);",
        replacement: "            drop((sender, receiver));",
        why: "A sender that waits until its receiver is gone is not woken.",
        checker: Checker {
            filter: "a_receiver_that_goes",
            ..MAILBOX_LOOM
        },
        hangs: false,
    },
    Mutant {
        name: "mailbox_weak_sender_brings_a_mailbox_back",
        file: "crates/mailbox/src/shared.rs",
        original: "            match self.senders.compare_exchange_weak(\n                senders,\n                senders + 1,\n                Ordering::Relaxed,\n                Ordering::Relaxed,\n            ) {\n                Ok(_) => return Some((Self(self.0), self.queue.number_for_sender())),\n                Err(now) => senders = now,\n            }",
        replacement: "            senders = self.senders.fetch_add(1, Ordering::Relaxed);\n            return Some((Self(self.0), self.queue.number_for_sender()));",
        why: "A weak sender looks at the count and raises it in two steps: in between the last sender disconnects the mailbox, and what the new one sends is never received.",
        checker: Checker {
            filter: "crosses_with_the_last_sender",
            ..MAILBOX_LOOM
        },
        hangs: false,
    },
    Mutant {
        name: "mailbox_weak_sender_releases_nothing",
        file: "crates/mailbox/src/weak.rs",
        original: "        self.shared.remove_holder();\n",
        replacement: "        let _ = &self.shared;\n",
        why: "The memory of a mailbox that ever had a weak sender is never freed.",
        checker: Checker {
            filter: "frees_the_mailbox_once",
            ..MAILBOX_LOOM
        },
        hangs: false,
    },
    Mutant {
        name: "mailbox_wait_for_the_end_begins_too_late",
        file: "crates/mailbox/src/extras.rs",
        original: "        if guard.closed {\n            return Err(entry);\n        }\n",
        replacement: "        let _ = guard.closed;\n",
        why: "A sender registers for the end of a mailbox after this has woken those that wait, and sleeps for ever.",
        checker: Checker {
            filter: "a_mailbox_that_closes_wakes",
            ..MAILBOX_LOOM
        },
        hangs: false,
    },
    Mutant {
        name: "mailbox_extras_of_a_closed_mailbox_are_open",
        file: "crates/mailbox/src/extras.rs",
        original: "            closing: Registry::new(closed),\n",
        replacement: "            closing: Registry::new(false),\n",
        why: "The list of those that wait for the end is made after the receiver has looked for one: nobody wakes them.",
        checker: Checker {
            filter: "a_mailbox_that_closes_wakes",
            ..MAILBOX_LOOM
        },
        hangs: false,
    },
    Mutant {
        name: "mailbox_permit_gives_its_capacity_back_twice",
        file: "crates/mailbox/src/permit.rs",
        original: "        let permit = ManuallyDrop::new(self);\n        permit.sender.deliver(message)",
        replacement: "        let permit = self;\n        let _ = ManuallyDrop::new(());\n        permit.sender.deliver(message)",
        why: "The capacity of a message that was sent by a permit comes back from the permit and again from the receiver: a bounded mailbox grows without a limit.",
        checker: Checker {
            filter: "permits",
            ..MAILBOX_LOOM
        },
        hangs: false,
    },
    Mutant {
        name: "mailbox_sink_keeps_its_capacity_when_it_goes",
        file: "crates/mailbox/src/sender.rs",
        original: "        self.give_up_claim();\n",
        replacement: "",
        why: "The capacity that a sender has reserved as a sink is lost to all others when the sender is dropped.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-mailbox",
            target: Target::Test("handles"),
            filter: "sink",
        },
        hangs: false,
    },
    Mutant {
        name: "mailbox_hands_a_message_past_others",
        file: "crates/mailbox/src/queue/mod.rs",
        original: "if in_place && base.is_empty() && !contended {",
        replacement: "if in_place && !contended {",
        why: "A message goes to the hand although an earlier one of the same sender lies in the base queue, and overtakes it.",
        checker: Checker {
            filter: "small_messages",
            ..MAILBOX_LOOM
        },
        hangs: false,
    },
    Mutant {
        name: "mailbox_writes_over_a_message_in_the_hand",
        file: "crates/mailbox/src/queue/signals.rs",
        original: "& (LOOKING | HANDED) != LOOKING {",
        replacement: "& LOOKING == 0 {",
        why: "A second message goes to the hand before the receiver has taken the first, which is lost.",
        checker: Checker {
            filter: "small_messages",
            ..MAILBOX_LOOM
        },
        hangs: false,
    },
    Mutant {
        name: "mailbox_takes_a_message_from_the_hand_twice",
        file: "crates/mailbox/src/queue/signals.rs",
        original: "        self.lower(HANDED);\n        Some(message)",
        replacement: "        Some(message)",
        why: "The receiver takes the message and leaves its bit raised: it takes the same message again.",
        checker: Checker {
            filter: "small_messages",
            ..MAILBOX_LOOM
        },
        hangs: false,
    },
    Mutant {
        name: "mailbox_fills_the_hand_without_looking_that_it_was_read",
        file: "crates/mailbox/src/queue/signals.rs",
        original: "self.word.load(Ordering::Acquire) & (LOOKING",
        replacement: "self.word.load(Ordering::Relaxed) & (LOOKING",
        why: "The sender sees that the bit is lowered, but nothing orders the read of the earlier message before its own write.",
        checker: Checker {
            filter: "small_messages",
            ..MAILBOX_LOOM
        },
        hangs: false,
    },
    Mutant {
        name: "mailbox_announces_the_hand_before_it_is_filled",
        file: "crates/mailbox/src/queue/signals.rs",
        original: "        Some(self.raise(HANDED))",
        replacement: "        Some(self.word.fetch_or(HANDED, Ordering::Relaxed) == SLEEPING)",
        why: "Nothing orders the write of the message before its bit: the receiver reads what was in the hand before.",
        checker: Checker {
            filter: "small_messages",
            ..MAILBOX_LOOM
        },
        hangs: false,
    },
    Mutant {
        name: "mailbox_hands_a_message_without_waking",
        file: "crates/mailbox/src/queue/signals.rs",
        original: "        Some(self.raise(HANDED))",
        replacement: "        let _ = self.raise(HANDED);\n        Some(false)",
        why: "The receiver has stopped looking and fallen asleep before the bit is raised, and nobody wakes it.",
        checker: Checker {
            filter: "small_messages",
            ..MAILBOX_LOOM
        },
        hangs: false,
    },
    Mutant {
        name: "mailbox_forgets_the_hand_when_it_closes",
        file: "crates/mailbox/src/queue/mod.rs",
        original: "        self.begin_collecting(&mut base, signals);\n        base.closed = true;",
        replacement: "        signals.lower(BASE | SLOTS);\n        base.closed = true;",
        why: "A message that a sender puts into the hand as the receiver goes is never dropped.",
        checker: Checker {
            filter: "crosses_with_dropping",
            ..MAILBOX_LOOM
        },
        hangs: false,
    },
    Mutant {
        name: "mailbox_collects_the_hand_last",
        file: "crates/mailbox/src/queue/base.rs",
        original: "self.ring.push_front(message);",
        replacement: "self.ring.push_back(message);",
        why: "In a collect the message in the hand comes after later ones of the base queue.",
        checker: Checker {
            filter: "by_many_at_once",
            ..MAILBOX_LOOM
        },
        hangs: false,
    },
    Mutant {
        name: "mailbox_looks_while_it_sleeps",
        file: "crates/mailbox/src/queue/signals.rs",
        original: "self.word.fetch_and(!LOOKING, Ordering::Relaxed) & FINDINGS",
        replacement: "self.word.load(Ordering::Relaxed) & FINDINGS",
        why: "A receiver that has stopped looking leaves its announcement in the word, and so can never fall asleep.",
        checker: Checker {
            filter: "small_messages",
            ..MAILBOX_LOOM
        },
        hangs: false,
    },
];
