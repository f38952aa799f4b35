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

pub(super) const MUTANTS: &[Mutant] = &[
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
        original: "        signals.lower(BASE | SLOTS);\n        let mut count = base.hand_over(inbox);\n        if let Some(array) = self.array() {",
        replacement: "        let mut count = base.hand_over(inbox);\n        let array = self.array();\n        if let Some(array) = array {\n            self.flush(array, &mut base, &mut inbox.taken, &mut inbox.spares);\n        }\n        signals.lower(BASE | SLOTS);\n        if let Some(array) = array.filter(|_| false) {",
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
        file: "crates/mailbox/src/sender.rs",
        original: "                && self.0.leave(&turn).is_taken()\n            {\n                self.0.give(1);\n            }",
        replacement: "            {\n                self.0.leave(&turn);\n            }",
        why: "Room that was given to a send which is given up is lost to all others.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-mailbox",
            target: Target::Test("behaviour"),
            filter: "given_up",
        },
        hangs: true,
    },
];
