//! Bugs to plant in what a log keeps, and in copies of stores.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

const fn checker(package: &'static str, target: &'static str, filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package,
        target: Target::Test(target),
        filter,
    }
}

/// The reader of Redis's files.
const RDB: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-server",
    target: Target::Lib,
    filter: "rdb::",
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "log_is_cut_below_what_it_keeps",
        file: "crates/log/src/files/mod.rs",
        original: "        let sequence = sequence.min(self.keeps_from());\n",
        replacement: "",
        why: "What an operator has asked for goes with the next snapshot.",
        checker: checker("tremula-log", "copy", "what_is_to_be_kept"),
        hangs: false,
    },
    Mutant {
        name: "log_copy_ends_one_record_early",
        file: "crates/log/src/copy.rs",
        original: "                    if batch.last() > to {\n",
        replacement: "                    if batch.last() >= to {\n",
        why: "A restored state lacks the very write that was asked for.",
        checker: checker("tremula-log", "copy", "a_copy_has_the_batches"),
        hangs: false,
    },
    Mutant {
        name: "log_time_of_a_batch_is_that_of_its_segment",
        file: "crates/log/src/files/flusher.rs",
        original: "            self.tell_time();\n",
        replacement: "",
        why: "A state restored to a time has writes that were made after it.",
        checker: checker("tremula-log", "copy", "batches_have_the_time"),
        hangs: false,
    },
    Mutant {
        name: "log_copy_takes_damage_for_the_end",
        file: "crates/log/src/copy.rs",
        original: "                    if more {\n                        return Err(segment.damage(offset, what).into());\n                    }\n",
        replacement: "",
        why: "A backup of a damaged log ends before the damage, and nobody is told.",
        checker: checker("tremula-log", "copy", "no_damage_is_copied"),
        hangs: false,
    },
    Mutant {
        name: "store_backup_copies_the_log_before_the_snapshot",
        file: "crates/store/src/disk/backup.rs",
        original: "        let snapshots = self.snapshots(target, &mut damaged)?;\n        let from = snapshots.last().map_or(Sequence::FIRST, |last| last.begins);\n        let log = self.directory.join(LOG_FOLDER);\n        let copied = copy(&log, &target.path.join(LOG_FOLDER), from, self.to);\n",
        replacement: "        let all = Folder::new(self.directory).snapshots()?;\n        let from = all.last().map_or(Ok(Sequence::FIRST), |path| Folder::begins(path))?;\n        let log = self.directory.join(LOG_FOLDER);\n        let copied = copy(&log, &target.path.join(LOG_FOLDER), from, self.to);\n        let snapshots = self.snapshots(target, &mut damaged)?;\n",
        why: "A snapshot that was made meanwhile has seen what the copied log has not.",
        checker: checker("tremula-store", "copies", "written_and_saved"),
        hangs: false,
    },
    Mutant {
        name: "rdb_length_of_two_bytes_is_cut",
        file: "crates/server/src/rdb/read.rs",
        original: "            1 => Length::Bytes(u64::from(low) << 8 | u64::from(self.byte()?)),\n",
        replacement: "            1 => Length::Bytes(u64::from(low) << 7 | u64::from(self.byte()?)),\n",
        why: "Strings of 64 bytes and more end elsewhere, and the file is taken for damaged.",
        checker: RDB,
        hangs: false,
    },
    Mutant {
        name: "rdb_expiry_is_forgotten",
        file: "crates/server/src/rdb/read.rs",
        original: "                    expires = Some(u64::from_le_bytes(self.bytes()?));\n",
        replacement: "                    self.skip(8)?;\n",
        why: "Keys that were to expire stay for ever, and nobody is told.",
        checker: RDB,
        hangs: false,
    },
    Mutant {
        name: "rdb_checksum_is_not_compared",
        file: "crates/server/src/rdb/read.rs",
        original: "        if found != 0 && found != expected {\n",
        replacement: "        if found == 0 && found != expected && self.version > NEWEST {\n",
        why: "Damage within a value is imported.",
        checker: RDB,
        hangs: false,
    },
    Mutant {
        name: "rdb_copies_of_compressed_strings_begin_elsewhere",
        file: "crates/server/src/rdb/lzf.rs",
        original: "usize::from(take(&mut from)?)) + 1;\n",
        replacement: "usize::from(take(&mut from)?)) + 2;\n",
        why: "Compressed strings are other strings.",
        checker: RDB,
        hangs: false,
    },
    Mutant {
        name: "local_map_writes_a_batch_in_pieces",
        file: "crates/store/src/local/map.rs",
        original: "        self.commit(|index, effects| index.change_together(effects, batch.changes))\n",
        replacement: "        batch.changes.into_iter().try_for_each(|change| {\n            self.commit(|index, effects| index.change_together(effects, vec![change]))\n        })\n",
        why: "A reader sees half of a batch, and a crash leaves it.",
        checker: checker("tremula-store", "local", "threads_write_at_once"),
        hangs: false,
    },
    Mutant {
        name: "local_map_writes_though_it_is_closed",
        file: "crates/store/src/local/map.rs",
        original: "        if self.store.is_closed() {\n            return Err(Unlogged(Stopped::Closed.into()).into());\n        }\n",
        replacement: "",
        why: "A write is seen by readers and is gone after the restart.",
        checker: checker("tremula-store", "local", "what_is_wrong"),
        hangs: false,
    },
    Mutant {
        name: "local_key_loses_its_zero_bytes",
        file: "crates/store/src/local/keys.rs",
        original: "                255 => form.push(0),\n",
        replacement: "                255 => {}\n",
        why: "A range returns other keys than were inserted.",
        checker: checker("tremula-store", "local", "a_map_is_what"),
        hangs: false,
    },
    Mutant {
        name: "store_removes_the_snapshot_that_leads_to_what_the_log_keeps",
        file: "crates/store/src/disk/folder.rs",
        original: "        let oldest = base.unwrap_or(0).min(newest);\n",
        replacement: "        let oldest = newest;\n",
        why: "The log keeps a week, and nothing leads to its states.",
        checker: checker("tremula-store", "copies", "every_state"),
        hangs: false,
    },
];
