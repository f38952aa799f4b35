//! Bugs to plant in what is kept of tables and mailboxes, and in where it is kept.

use super::store::store;
use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

const fn tables(filter: &'static str) -> Checker {
    store(Target::Test("durable_tables"), filter)
}

const fn mailboxes(filter: &'static str) -> Checker {
    store(Target::Test("durable_mailboxes"), filter)
}

const SERVER_DIRECTORY: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-server",
    target: Target::Lib,
    filter: "data_is_kept_in_the_state_directory",
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "store_removed_rows_are_not_logged",
        file: "crates/store/src/effects/tables.rs",
        original: "        if !self.are_logged() {\n            return;\n        }\n",
        replacement: "        if !self.are_logged() || matches!(effect.change, TableChange::Removed(_)) {\n            return;\n        }\n",
        why: "A row that was deleted is there again after a restart.",
        checker: tables("what_was_done_to_tables"),
        hangs: false,
    },
    Mutant {
        name: "store_snapshots_tables_without_their_access",
        file: "crates/store/src/disk/write.rs",
        original: "    fn effect(&mut self, effect: &Effect<'_>) -> io::Result<()> {\n",
        replacement: "    fn effect(&mut self, effect: &Effect<'_>) -> io::Result<()> {\n        if let tremula_table::table::effect::Change::Access(_) = effect.change {\n            return Ok(());\n        }\n",
        why: "A table that was made protected is public again after a snapshot and a restart.",
        checker: tables("what_was_done_to_tables"),
        hangs: false,
    },
    Mutant {
        name: "store_keeps_tables_of_connections_over_a_crash",
        file: "crates/store/src/recover.rs",
        original: "        self.tables().end_absent_owners(&mut effects);\n",
        replacement: "",
        why: "A private table that nobody can use any more stays for ever.",
        checker: tables("tables_of_a_connection_end"),
        hangs: false,
    },
    Mutant {
        name: "store_numbers_the_rows_of_a_list_one_by_one",
        file: "crates/store/src/effects/tables.rs",
        original: "        self.together(changes);\n",
        replacement: "        for change in changes {\n            self.alone(change);\n            self.submit();\n            self.journal.into_iter().for_each(|journal| journal.forward());\n        }\n",
        why: "A crash can leave half of a list of rows.",
        checker: tables("half_of_a_list_of_rows"),
        hangs: false,
    },
    Mutant {
        name: "store_applies_tables_without_waiting",
        file: "crates/store/src/disk/replay.rs",
        original: "            Record::Table(Subject::Table(_), _) => None,\n",
        replacement: "            Record::Table(Subject::Table(table), _) => Some(self.owner(table)),\n",
        why: "One thread makes a table while another has not deleted the one that had its name.",
        checker: tables("at_once_is_there_again"),
        hangs: false,
    },
    Mutant {
        name: "store_cuts_the_rows_of_a_long_key",
        file: "crates/store/src/effects/tables.rs",
        original: "        let after = before + (all.len() - left.len());\n",
        replacement: "        let after = before;\n",
        why: "Of a key of a bag with many rows only the last ones come back.",
        checker: store(Target::Lib, "many_rows_of_a_key"),
        hangs: false,
    },
    Mutant {
        name: "store_loads_tables_beside_their_rows",
        file: "crates/store/src/disk/read.rs",
        original: "            if ![TABLES, MAIL].contains(&block.kind) {\n",
        replacement: "            if MAIL != block.kind {\n",
        why: "A thread loads rows before another has made their table, and drops them.",
        checker: tables("what_was_done_to_tables"),
        hangs: false,
    },
    Mutant {
        name: "store_delivers_a_message_twice",
        file: "crates/store/src/kept_mail.rs",
        original: "        effects.mail(vec![self.mail(MailChange::Received(kept.first))]);\n",
        replacement: "",
        why: "A message that was delivered comes again after a restart.",
        checker: mailboxes("what_was_not_delivered"),
        hangs: false,
    },
    Mutant {
        name: "store_numbers_messages_outside_the_lock",
        file: "crates/store/src/kept_mail.rs",
        original: "        effects.mail(changes.map(|change| self.mail(change)).collect());\n        messages[..sent].iter().cloned().for_each(send);\n",
        replacement: "        let changes = changes.map(|change| self.mail(change)).collect();\n        messages[..sent].iter().cloned().for_each(send);\n        drop(kept);\n        std::thread::sleep(std::time::Duration::from_micros(50));\n        effects.mail(changes);\n",
        why: "The log has messages in another order than the mailbox, and a restart loses some.",
        checker: mailboxes("delivered_once"),
        hangs: false,
    },
    Mutant {
        name: "store_gives_the_number_of_a_kept_mailbox_again",
        file: "crates/store/src/mailboxes.rs",
        original: "        self.last_kept.store(images.last, SeqCst);\n",
        replacement: "",
        why: "After a restart two mailboxes have one number, and one gets the messages of the other.",
        checker: mailboxes("what_was_not_delivered"),
        hangs: false,
    },
    Mutant {
        name: "store_brings_dropped_mailboxes_back",
        file: "crates/store/src/kept_mail.rs",
        original: "        effects.mail(vec![self.mail(MailChange::Dropped)]);\n",
        replacement: "",
        why: "A mailbox that was dropped is there again after a restart, with its messages.",
        checker: mailboxes("what_was_not_delivered"),
        hangs: false,
    },
    Mutant {
        name: "store_forgets_the_tables_of_a_kept_mailbox",
        file: "crates/store/src/mailboxes.rs",
        original: "            let owner = tables.0.restore_owner(&made.owner);\n",
        replacement: "            let owner = Some(tables.0.owner());\n",
        why: "The tables of a durable mailbox are deleted by a restart.",
        checker: mailboxes("inherits_after_a_crash"),
        hangs: false,
    },
    Mutant {
        name: "server_keeps_data_under_a_free_port",
        file: "crates/server/src/persist.rs",
        original: "        let Port(Some(port @ 1..)) = port else {\n",
        replacement: "        let Port(Some(port)) = port else {\n",
        why: "Servers on free ports use one directory, and all but the first are refused.",
        checker: SERVER_DIRECTORY,
        hangs: false,
    },
    Mutant {
        name: "server_takes_a_relative_state_directory",
        file: "crates/server/src/persist.rs",
        original: ".filter(|path| path.is_absolute())",
        replacement: ".filter(|path| !path.as_os_str().is_empty())",
        why: "The data of a server is where it was started, and not there the next time.",
        checker: SERVER_DIRECTORY,
        hangs: false,
    },
];
