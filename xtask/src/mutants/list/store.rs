//! Bugs to plant in the way of effects into the log, and back.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

pub(super) const fn store(target: Target, filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package: "tremula-store",
        target,
        filter,
    }
}

const fn durable(filter: &'static str) -> Checker {
    store(Target::Test("durable"), filter)
}

/// Random operations, and the store opened again.
const AGAIN: Checker = durable("what_was_written_is_there_again");

/// Threads that write the same keys, and snapshots meanwhile.
const THREADS: Checker = durable("what_threads_write_at_once");

/// Batches that a follower applies on several threads.
const SHARED: Checker = store(Target::Lib, "disk::tests");

/// Asks what is on the disk, and kills servers.
const DURABLE: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-cli",
    target: Target::Test("e2e_durable"),
    filter: "",
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "store_numbers_effects_outside_the_lock",
        file: "crates/store/src/database.rs",
        original: "        let noted = key.clone();\n        let old = self.index.update(key, &mut |current| {\n            let mut decided = decide(effects, current.filter(|value| self.is_alive(value)));\n            match (&mut decided, current) {\n                (Update::Put(value), _) => {\n                    if value.cached().is_none() {\n                        effects.put(self.kept.number, &noted, current, value);\n                    }\n                    self.note_expiry(&noted, current, value.expiry());\n                    self.report_put(effects, &noted, current, value.expiry());\n                }\n                (Update::Remove, Some(before)) => {\n                    effects.delete(self.kept.number, &noted, current);\n                    self.note_expiry(&noted, current, None);\n                    self.report_removed(effects, &noted, before);\n                }\n                (Update::Keep | Update::Remove, _) => {}\n            }\n            decided\n        });\n",
        replacement: "        let mut late = None;\n        let noted = key.clone();\n        let old = self.index.update(key, &mut |current| {\n            let mut decided = decide(effects, current.filter(|value| self.is_alive(value)));\n            match (&mut decided, current) {\n                (Update::Put(value), _) => {\n                    if value.cached().is_none() {\n                        late = Some(value.clone());\n                    }\n                    self.note_expiry(&noted, current, value.expiry());\n                    self.report_put(effects, &noted, current, value.expiry());\n                }\n                (Update::Remove, Some(before)) => {\n                    effects.delete(self.kept.number, &noted, current);\n                    self.note_expiry(&noted, current, None);\n                    self.report_removed(effects, &noted, before);\n                }\n                (Update::Keep | Update::Remove, _) => {}\n            }\n            decided\n        });\n        if let Some(mut value) = late {\n            effects.put(self.kept.number, &noted, None, &mut value);\n        }\n",
        why: "Of two writes of a key the later one can have the lower number, so that a restart brings the older value back.",
        checker: durable("order_of_the_effects"),
        hangs: false,
    },
    Mutant {
        name: "store_snapshot_begins_where_it_ends",
        file: "crates/store/src/recover.rs",
        original: "                    from = loaded.begins;\n",
        replacement: "                    from = loaded.ends.plus(1);\n",
        why: "What was written while the snapshot was made, behind the place that it had come to, is not applied.",
        checker: durable("make_a_whole"),
        hangs: false,
    },
    Mutant {
        name: "store_snapshot_does_not_wait_for_the_log",
        file: "crates/store/src/disk/folder.rs",
        original: "        log.wait(written.ends)?;\n",
        replacement: "",
        why: "After a loss of power the snapshot has effects that the log has not: a later one without an earlier one.",
        checker: durable("a_snapshot_has_seen_nothing"),
        hangs: false,
    },
    Mutant {
        name: "store_evictions_are_not_logged",
        file: "crates/store/src/eviction/mod.rs",
        original: "            databases.commit_anyway(|effects| {\n",
        replacement: "            databases.commit_anyway(|_| {\n                let effects = &mut crate::effects::Effects::new(None);\n",
        why: "What was evicted is there again after a restart, and memory is short at once.",
        checker: AGAIN,
        hangs: false,
    },
    Mutant {
        name: "store_values_that_the_cache_evicts_stay_in_the_log",
        file: "crates/store/src/values.rs",
        original: "        self.databases.for_eviction().commit_anyway(|effects| {\n            database.update(effects, key.clone(), &mut |current| match current\n",
        replacement: "        self.databases.for_eviction().commit_anyway(|_| {\n            let effects = &mut Effects::new(None);\n            database.update(effects, key.clone(), &mut |current| match current\n",
        why: "A value that the cache has given up comes back after a restart.",
        checker: durable("what_the_cache_has_evicted"),
        hangs: false,
    },
    Mutant {
        name: "store_logs_a_step_in_pieces",
        file: "crates/store/src/effects/mod.rs",
        original: "            journal.write(first, changes.into_iter());\n",
        replacement: "            for (number, change) in (first..).zip(changes) {\n                journal.write(number, std::iter::once(change));\n                journal.forward();\n            }\n",
        why: "A crash can leave half of an MSET.",
        checker: durable("no_beginning_of_the_log"),
        hangs: false,
    },
    Mutant {
        name: "store_removed_ranges_are_not_logged",
        file: "crates/store/src/database.rs",
        original: "            effects.delete_range(self.kept.number, low, high);\n",
        replacement: "",
        why: "FLUSHALL is undone by a restart.",
        checker: AGAIN,
        hangs: false,
    },
    Mutant {
        name: "store_ranges_take_their_upper_bound_along",
        file: "crates/store/src/effects/record.rs",
        original: "            out.push(EXCLUDED);\n",
        replacement: "            out.push(INCLUDED);\n",
        why: "A restart removes the first key behind each range that was removed.",
        checker: store(Target::Lib, "what_is_written_is_read_back"),
        hangs: false,
    },
    Mutant {
        name: "store_follower_spreads_a_key_over_threads",
        file: "crates/store/src/disk/replay.rs",
        original: "        (hasher.hash_one(subject) % self.threads as u64) as usize\n",
        replacement: "        let _ = hasher.hash_one(subject);\n        static TURN: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);\n        TURN.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % self.threads\n",
        why: "A record is applied by no thread or by two, and those of a key not in their order.",
        checker: SHARED,
        hangs: false,
    },
    Mutant {
        name: "store_follower_keeps_a_part_of_a_batch_to_itself",
        file: "crates/store/src/disk/replay.rs",
        original: "        shared.apply_batch(0, first, batch.records());\n        true\n",
        replacement: "        shared.apply_batch(1, first, batch.records());\n        true\n",
        why: "What one of the threads is to apply is lost.",
        checker: SHARED,
        hangs: false,
    },
    Mutant {
        name: "store_replays_a_range_without_waiting",
        file: "crates/store/src/disk/replay.rs",
        original: "            self.barrier.wait();\n            let applied = if number == 0 {",
        replacement: "            let applied = if number == 0 {",
        why: "One thread removes a range while another has not come to it, and that one then stores what should be gone.",
        checker: THREADS,
        hangs: true,
    },
    Mutant {
        name: "store_appends_are_logged_at_the_wrong_place",
        file: "crates/store/src/values.rs",
        original: "let offset = appended - suffix.len();",
        replacement: "let offset = appended;",
        why: "What a snapshot has seen of a value in the cache is appended to it once more.",
        checker: durable("make_a_whole"),
        hangs: false,
    },
    Mutant {
        name: "store_values_that_move_to_the_cache_are_not_logged",
        file: "crates/store/src/values.rs",
        original: "                effects.put_cached(database.number(), key, &mut now, || {\n                    Value::from([front, suffix].concat()).expiring(expiry)\n                });\n",
        replacement: "                Effects::new(None).stamp_unlogged(&mut now);\n",
        why: "The append that moved a value into the cache is lost by a restart.",
        checker: AGAIN,
        hangs: false,
    },
    Mutant {
        name: "store_forwards_past_a_gap",
        file: "crates/store/src/effects/journal.rs",
        original: "            if piece.first != next {\n                break;\n            }\n",
        replacement: "            if piece.first < next {\n                break;\n            }\n            next = piece.first;\n",
        why: "An effect whose thread is slow comes behind its successors in the log.",
        checker: THREADS,
        hangs: true,
    },
    Mutant {
        name: "store_believes_a_damaged_snapshot",
        file: "crates/store/src/disk/read.rs",
        original: "    if sum == block.sum {\n",
        replacement: "    if sum == block.sum || block.kind != END {\n",
        why: "A flipped bit on the disk becomes a wrong value.",
        checker: durable("a_damaged_snapshot"),
        hangs: false,
    },
    Mutant {
        name: "store_truncates_for_the_newest_snapshot",
        file: "crates/store/src/disk/folder.rs",
        original: "all.len().saturating_sub(KEPT);",
        replacement: "all.len().saturating_sub(1);",
        why: "If the newest snapshot proves to be damaged, the log does not reach back to the one before it.",
        checker: durable("a_damaged_snapshot"),
        hangs: false,
    },
    Mutant {
        name: "store_writes_on_when_the_disk_is_full",
        file: "crates/store/src/databases.rs",
        original: "            journal.admit()?;\n",
        replacement: "            let _ = journal.admit();\n",
        why: "Clients are told that their writes succeeded while none of them is kept.",
        checker: durable("a_full_disk"),
        hangs: true,
    },
    Mutant {
        name: "server_answers_before_the_disk_has_it",
        file: "crates/server/src/connection/send.rs",
        original: "            if durability == Durability::Always && ",
        replacement: "            if durability == Durability::No && ",
        why: "A write that was acknowledged with `always` is gone after a kill.",
        checker: DURABLE,
        hangs: false,
    },
    Mutant {
        name: "server_shows_what_the_disk_does_not_have",
        file: "crates/server/src/connection/send.rs",
        original: "            self.server.store.forward();\n        }\n        if self.server.group.is_some()",
        replacement: "            self.server.store.forward();\n        } else {\n            return self.send_now().await;\n        }\n        if self.server.group.is_some()",
        why: "A client has read a value with `always` that is gone after a kill.",
        checker: DURABLE,
        hangs: false,
    },
];
