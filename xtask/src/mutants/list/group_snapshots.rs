//! Bugs to plant where a group makes snapshots, cuts its log, and loads them.

use super::server_watch::over_socket;
use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

/// Whole groups, whose log is cut and whose snapshots get damaged.
const SIMULATED: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-group",
    target: Target::Test("simulation"),
    filter: "a_group_keeps_its_promises",
};

/// Snapshots that cannot be loaded.
const KEEPER: Checker = over_socket("e2e_group", "a_snapshot_that_cannot_be_loaded");

/// A node that is new, and a log that is cut.
const NEW: Checker = over_socket("e2e_group", "a_new_node_joins_a_log");

/// The newest snapshot is damaged.
const DAMAGED: Checker = over_socket("e2e_group", "a_damaged_snapshot_is_replaced");

/// Nodes that put aside what they have.
const REJOIN: Checker = over_socket("e2e_group", "a_node_with_another_history");

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "group_cuts_behind_its_newest_snapshot",
        file: "crates/group/src/shelf.rs",
        original: "self.all.get(KEPT - 1)",
        replacement: "self.all.first()",
        why: "If the newest snapshot proves to be damaged, nothing leads to where the log begins.",
        checker: SIMULATED,
        hangs: false,
    },
    Mutant {
        name: "group_cuts_what_its_snapshot_needs",
        file: "crates/group/src/shelf.rs",
        original: "        needs.fold(oldest.position(), Position::min)",
        replacement: "        drop(needs);\n        oldest.position().next().next()",
        why: "The log begins one message behind the one that a snapshot goes on with.",
        checker: SIMULATED,
        hangs: false,
    },
    Mutant {
        name: "group_takes_any_snapshot",
        file: "crates/group/src/shelf.rs",
        original: "manifest.position().next() >= first",
        replacement: "manifest.position() <= first.max(manifest.position())",
        why: "A node loads a snapshot that the log does not go on with, again and again.",
        checker: Checker {
            target: Target::Lib,
            filter: "shelf::",
            ..SIMULATED
        },
        hangs: false,
    },
    Mutant {
        name: "group_believes_a_snapshot_before_it_is_loaded",
        file: "crates/group/src/jetstream/keeper/mod.rs",
        original: "        self.apart(move || packing.check(&path, &of)).await?;\n        self.bucket.put_manifest(&name, &manifest).await?;",
        replacement: "        self.bucket.put_manifest(&name, &manifest).await?;\n        self.apart(move || packing.check(&path, &of)).await?;",
        why: "A snapshot that cannot be loaded counts, and the log is cut behind it.",
        checker: KEEPER,
        hangs: false,
    },
    Mutant {
        name: "group_snapshot_names_the_next_message",
        file: "crates/server/src/group/package.rs",
        original: "    let point = point.ok_or(\"this node serves nothing any more\")?;",
        replacement: "    let mut point = point.ok_or(\"this node serves nothing any more\")?;\n    point.position = point.position.next();",
        why: "A node that loads the snapshot skips a message.",
        checker: NEW,
        hangs: false,
    },
    Mutant {
        name: "group_loads_a_damaged_snapshot",
        file: "crates/group/src/jetstream/keeper/bucket.rs",
        original: "        if (bytes, checksum) != (manifest.bytes, manifest.checksum) {",
        replacement: "        if bytes != manifest.bytes {",
        why: "A node starts from a snapshot that is not what was written.",
        checker: DAMAGED,
        hangs: false,
    },
    Mutant {
        name: "group_gives_up_at_the_first_damaged_snapshot",
        file: "crates/group/src/jetstream/keeper/mod.rs",
        original: "                    why = format!(\"{why}; that at message {}: {error}\", manifest.position());",
        replacement: "                    return Err(error);",
        why: "The older snapshot, which is whole, is never tried.",
        checker: DAMAGED,
        hangs: false,
    },
    Mutant {
        name: "group_ends_when_a_snapshot_has_arrived",
        file: "crates/server/src/group/packing.rs",
        original: "        group.has_arrived.store(true, SeqCst);\n",
        replacement: "",
        why: "A node that has loaded a snapshot ends, and does not start from it.",
        checker: NEW,
        hangs: false,
    },
    Mutant {
        name: "group_rejoins_with_its_old_log",
        file: "crates/server/src/group/arrival.rs",
        original: "        all.push(log.clone());\n",
        replacement: "",
        why: "A node that is to join anew still has the history that the group does not have.",
        checker: REJOIN,
        hangs: false,
    },
];
