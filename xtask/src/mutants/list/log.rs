//! Bugs to plant in the log.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

const fn plain(target: Target, filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package: "tremula-log",
        target,
        filter,
    }
}

/// Random steps on a disk that fails, against a model.
const CRASHES: Checker = plain(Target::Test("crashes"), "what_was_promised_survives");

/// Every byte of small logs, damaged.
const DAMAGE: Checker = plain(Target::Test("damage"), "");

const BEHAVIOUR: Checker = plain(Target::Test("behaviour"), "");

const LIB: Checker = plain(Target::Lib, "");

const LOOM: Checker = Checker {
    flavour: Flavour::Loom,
    package: "tremula-log",
    target: Target::Test("loom"),
    filter: "",
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "log_promises_before_the_sync",
        file: "crates/log/src/files/flusher.rs",
        original: "        let failure = self.segment.failure(\"sync\");\n",
        replacement: "        self.shared.watermark.advance(self.written);\n        let failure = self.segment.failure(\"sync\");\n",
        why: "A writer is promised its record while it is on its way to the disk: a loss of power then, or a failure of the sync, takes it back.",
        checker: plain(Target::Test("crashes"), "never_tried_again"),
        hangs: false,
    },
    Mutant {
        name: "log_sync_that_failed_is_tried_again",
        file: "crates/log/src/files/flusher.rs",
        original: "            .sync()\n            .map_err(failure)",
        replacement: "            .sync()\n            .or_else(|_| self.segment.file.sync())\n            .map_err(failure)",
        why: "The system marks pages clean that it could not write; the second sync succeeds and has written nothing.",
        checker: plain(Target::Test("crashes"), "never_tried_again"),
        hangs: false,
    },
    Mutant {
        name: "log_believes_what_it_finds",
        file: "crates/log/src/files/recover.rs",
        original: "        write(segment, chunk, at)?;\n",
        replacement: "",
        why: "After a failed sync and a restart the batches are in the system's memory only, and are promised to all that read them.",
        checker: plain(Target::Test("crashes"), "written_again_after_a_restart"),
        hangs: false,
    },
    Mutant {
        name: "log_leaves_what_is_behind_its_end",
        file: "crates/log/src/files/recover.rs",
        original: "        write(segment, &buffer[..count], at)?;\n",
        replacement: "",
        why: "Frames of a write that was torn pass for frames of this log once new ones reach up to them.",
        checker: plain(Target::Test("crashes"), "never_found_again"),
        hangs: false,
    },
    Mutant {
        name: "log_cuts_what_was_durable",
        file: "crates/log/src/files/recover.rs",
        original: "    if cursor.finds_witness(segment, next)? {",
        replacement: "    if false && cursor.finds_witness(segment, next)? {",
        why: "Damage in the middle of the last segment passes for the torn end of a write, and takes everything behind it away.",
        checker: DAMAGE,
        hangs: false,
    },
    Mutant {
        name: "log_forgets_where_it_was_closed",
        file: "crates/log/src/files/recover.rs",
        original: "    let differs = |closed: &Closed| closed.tail() != tail;",
        replacement: "    let differs = |closed: &Closed| closed.tail() == tail && false;",
        why: "The loss of the end of a log that was closed is not noticed.",
        checker: DAMAGE,
        hangs: false,
    },
    Mutant {
        name: "log_does_not_miss_the_next_segment",
        file: "crates/log/src/files/recover.rs",
        original: "    if let Step::Continued = cursor.step(segment)? {",
        replacement: "    if cursor.tail.next == crate::sequence::Sequence::NONE {",
        why: "A log whose last file is missing opens after a crash as if it had ended before.",
        checker: DAMAGE,
        hangs: false,
    },
    Mutant {
        name: "log_does_not_compare_chains",
        file: "crates/log/src/files/segment.rs",
        original: "        if head.chain != self.tail.chain {",
        replacement: "        if head.chain != self.tail.chain && head.first == Sequence::NONE {",
        why: "A frame of another history of the same log passes, because its checksums fit.",
        checker: DAMAGE,
        hangs: false,
    },
    Mutant {
        name: "log_frames_do_not_know_their_segment",
        file: "crates/log/src/files/format.rs",
        original: "        Salt(crc32c::crc32c(&hash.to_le_bytes()))",
        replacement: "        Salt(crc32c::crc32c(&hash.to_le_bytes()[..0]))",
        why: "What an earlier use of a file has left, or a record that looks like a frame, passes for a frame.",
        checker: LIB,
        hangs: false,
    },
    Mutant {
        name: "log_does_not_check_bodies",
        file: "crates/log/src/files/segment.rs",
        original: "        if !head.fits(body) {",
        replacement: "        if !head.fits(body) && body.is_empty() {",
        why: "A bit that has flipped in a record is read as if it had been written.",
        checker: DAMAGE,
        hangs: false,
    },
    Mutant {
        name: "log_names_a_segment_before_its_head_is_durable",
        file: "crates/log/src/files/segment.rs",
        original: "    segment.file.sync().map_err(segment.failure(\"sync\"))?;\n",
        replacement: "",
        why: "After a loss of power the last segment has its name and no head, and the log does not open.",
        checker: CRASHES,
        hangs: false,
    },
    Mutant {
        name: "log_goes_on_before_the_last_segment_is_durable",
        file: "crates/log/src/files/flusher.rs",
        original: "        if self.written > self.durable {\n            self.sync()?;\n        }\n        self.announce();",
        replacement: "        self.announce();",
        why: "The next sync is of the new segment only, and passes the records of the old one for durable.",
        checker: CRASHES,
        hangs: false,
    },
    Mutant {
        name: "log_frame_is_a_witness_of_itself",
        file: "crates/log/src/files/flusher.rs",
        original: "                durable: self.durable,\n",
        replacement: "                durable: frame.last(),\n",
        why: "A torn write, of which a later frame is there and an earlier one is not, passes for damage, and the log does not open after a crash.",
        checker: CRASHES,
        hangs: false,
    },
    Mutant {
        name: "log_waiter_comes_too_late_for_the_watermark",
        file: "crates/log/src/watermark.rs",
        original: "        let mut state = self.state.lock();\n        if self.get() >= sequence {\n            return Some(Ok(()));\n        }\n        if let Some(why)",
        replacement: "        let mut state = self.state.lock();\n        if let Some(why)",
        why: "The watermark rises between a waiter's look at it and its registration: nobody wakes the waiter.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "log_wait_does_not_call_the_flusher",
        file: "crates/log/src/watermark.rs",
        original: "            self.demand.raise();\n        }\n        let waiter = waiter();",
        replacement: "            let _ = &self.demand;\n        }\n        let waiter = waiter();",
        why: "A writer waits for a sync that nobody does, or that comes only with the period.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "log_stop_wakes_nobody",
        file: "crates/log/src/watermark.rs",
        original: "        let all = mem::take(&mut state.waiters);\n",
        replacement: "        let all = BTreeMap::<(u64, u64), Waiter>::new();\n",
        why: "Writers wait for ever for a log whose disk has failed.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "log_flusher_forgets_a_call_while_it_falls_asleep",
        file: "crates/log/src/signal.rs",
        original: "            *self.sleeper.lock() = Some(Waiter::this_thread());\n            if self.raised.swap(false, Ordering::AcqRel) {\n                return true;\n            }\n",
        replacement: "            *self.sleeper.lock() = Some(Waiter::this_thread());\n",
        why: "A writer's call comes between the flusher's look and its sleep, and finds nobody to wake.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "log_batch_is_split_in_two",
        file: "crates/log/src/batch.rs",
        original: "            *prefix &= !1;",
        replacement: "            *prefix &= !0;",
        why: "Each record says that it is the last of its batch: a reader may see a part of a batch.",
        checker: LIB,
        hangs: false,
    },
    Mutant {
        name: "log_fences_only_those_who_are_late",
        file: "crates/log/src/files/queue.rs",
        original: ".filter(|expected| *expected != tail.next)",
        replacement: ".filter(|expected| *expected < tail.next)",
        why: "A writer that expects what another one has appended, and that was lost, appends in its place.",
        checker: BEHAVIOUR,
        hangs: false,
    },
    Mutant {
        name: "log_truncates_the_record_that_is_kept",
        file: "crates/log/src/files/mod.rs",
        original: "second.head.first <= sequence",
        replacement: "second.head.first <= sequence.plus(1)",
        why: "The first record that a snapshot does not have goes with those that it has.",
        checker: BEHAVIOUR,
        hangs: false,
    },
    Mutant {
        name: "log_reader_reads_what_is_not_durable",
        file: "crates/log/src/files/reader.rs",
        original: "        if durable < next {\n            return Ok(false);",
        replacement: "        if durable < next && durable == Sequence::NONE {\n            return Ok(false);",
        why: "A reader looks for records that are not durable, and reports them as damage or shows what a loss of power takes back.",
        checker: plain(Target::Test("behaviour"), "a_reader_goes_on"),
        hangs: false,
    },
    Mutant {
        name: "log_full_disk_takes_what_has_no_room",
        file: "crates/log/src/files/queue.rs",
        original: "            if needed as u64 > self.room {",
        replacement: "            if needed as u64 > self.room.max(1 << 40) {",
        why: "On a full disk writers are promised room that is not there, until all memory is used.",
        checker: LIB,
        hangs: false,
    },
    Mutant {
        name: "log_two_processes_write_one_directory",
        file: "crates/log/src/disk/os.rs",
        original: "        take(&mut lock, directory, &path)?;\n        let own",
        replacement: "        let own",
        why: "Two servers on one directory overwrite each other's records.",
        checker: plain(Target::Test("processes"), "second_process"),
        hangs: false,
    },
];
