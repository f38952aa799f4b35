//! Effects: what writes report makes the same tables again, in the order in which it is reported,
//! from any point on, after every kind of write.

mod support;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use support::calls::Slot;
use support::effects::{Log, apply, contents, description, spec, state, term};
use support::operations::{Operation, Operations, SLOTS};
use tremula_index::{Engine, Update};
use tremula_table::table::effect::{ApplyProblem, Change, Effect, OwnedEffect, Recording};
use tremula_table::term::{Bounds, Limits};
use tremula_table::{
    Access, Action, Heir, Kind, MatchSpec, Options, Outcome, Owner, Table, Tables, Term,
};

/// Makes a call that may write. Returns whether it is one step; `None` if it only reads.
fn write(table: &Table, log: &mut Log, function: &str, arguments: &[Term]) -> Option<bool> {
    let mut noting = table.noting(log);
    // Errors are part of it: they must not report anything that has not happened.
    match (function, arguments) {
        ("insert", [rows]) => drop(noting.insert(rows.clone())),
        ("insert_new", [rows]) => drop(noting.insert_new(rows.clone())),
        ("take", [key]) => drop(noting.take(key)),
        ("delete", [key]) => drop(noting.delete_key(key)),
        ("delete_object", [row]) => drop(noting.delete_object(row)),
        ("delete_all_objects", []) => drop(noting.delete_all_objects()),
        ("update_counter", [key, update]) => drop(noting.update_counter(key, update)),
        ("update_counter", [key, update, default]) => {
            drop(noting.update_counter_or(key, update, default.clone()));
        }
        ("update_element", [key, update]) => drop(noting.update_element(key, update)),
        ("init_table", [rows]) => drop(noting.init_table([rows.clone()])),
        ("select_delete", [by]) => {
            let Ok(by) = MatchSpec::compile(by) else {
                return None;
            };
            drop(noting.select_delete(&by));
            return Some(false);
        }
        ("select_replace", [by]) => {
            let by = MatchSpec::compile(by).ok()?;
            let mut traversal = table.traverse(by, Action::Replace);
            // In steps of one key, each with a sink of its own.
            while let Ok(ControlFlow::Continue(rest)) = traversal.step_noting(log, || false) {
                traversal = rest;
            }
            return Some(false);
        }
        ("match_delete", [pattern]) => {
            drop(noting.match_delete(pattern));
            return Some(false);
        }
        _ => return None,
    }
    Some(true)
}

/// Tables of every type under random calls, and owners that come and go.
struct World {
    tables: Tables,
    owners: Vec<Owner>,
    slots: Vec<Option<Table>>,
    operations: Operations,
    random: StdRng,
    log: Log,
}

impl World {
    fn new(seed: u64) -> Self {
        let tables = Tables::new();
        let owners = (0..3).map(|_| tables.owner()).collect();
        Self {
            tables,
            owners,
            slots: (0..SLOTS).map(|_| None).collect(),
            operations: Operations::new(seed),
            random: StdRng::seed_from_u64(seed),
            log: Log::default(),
        }
    }

    fn step(&mut self) {
        let Operation {
            slot,
            function,
            arguments,
        } = self.operations.next();
        if function == "new" {
            self.create(slot, &arguments[0]);
            return;
        }
        if self.random.random_ratio(1, 50) {
            self.change_table(slot);
            return;
        }
        if self.random.random_ratio(1, 12) {
            self.change_expiry(slot);
            return;
        }
        let Some(table) = &self.slots[slot] else {
            return;
        };
        let before = self.log.steps.len();
        let is_one = write(table, &mut self.log, function, &arguments);
        let steps = self.log.steps.len() - before;
        match is_one {
            Some(true) => assert!(steps <= 1, "{function} {arguments:?} is {steps} steps"),
            Some(false) => {}
            None => assert_eq!(steps, 0, "{function}"),
        }
    }

    fn owner(&mut self) -> usize {
        self.random.random_range(0..self.owners.len())
    }

    fn create(&mut self, slot: usize, options: &Term) {
        if let Some(table) = self.slots[slot].take() {
            let _ = table.noting(&mut self.log).delete();
        }
        let mut options = Options::from_term(options).unwrap();
        options.access = Access::Public;
        if slot.is_multiple_of(3) {
            options = options.named();
        }
        if options.kind == Kind::OrderedSet && slot.is_multiple_of(2) {
            options = options.engine(Engine::BTree);
        }
        let (owner, heir) = (self.owner(), self.owner());
        if slot.is_multiple_of(2) {
            let pid = self.owners[heir].pid().clone();
            options = options.heir(pid, Term::from(slot));
        }
        let name = format!("t{slot}");
        let table = if self.random.random() {
            self.tables.noting(&mut self.log).create(&name, options)
        } else {
            let owner = &self.owners[owner];
            owner.noting(&mut self.log).create(&name, options)
        };
        self.slots[slot] = table.ok();
    }

    /// Gives a key a time, or removes keys whose time has come.
    fn change_expiry(&mut self, slot: usize) {
        let (before, log) = (self.log.steps.len(), &mut self.log);
        if self.random.random_ratio(1, 8) {
            for due in self.tables.due(self.random.random_range(0..300), 3) {
                assert!(self.tables.noting(log).remove_due(&due));
            }
            return;
        }
        let Some(table) = &self.slots[slot] else {
            return;
        };
        let Ok(Some(key)) = (if self.random.random() {
            table.first()
        } else {
            table.last()
        }) else {
            return;
        };
        let update = match self.random.random_range(0..300_u64) {
            0..20 => Update::Remove,
            20..50 => Update::Put(None),
            time => Update::Put(Some(time)),
        };
        drop(table.noting(log).update_expiry(&key, &mut |_| update));
        assert!(log.steps.len() <= before + 1);
    }

    /// Something that concerns a whole table or an owner.
    fn change_table(&mut self, slot: usize) {
        let (owner, other) = (self.owner(), self.owner());
        let Some(table) = self.slots[slot].clone() else {
            return self.create(slot, &term("[set]"));
        };
        let to = self.owners[other].pid().clone();
        let table = self.owners[owner].adopt_handle(&table);
        let log = &mut self.log;
        let before = log.steps.len();
        match self.random.random_range(0..12) {
            0..=3 => drop(table.noting(log).rename(&format!("t{}", slot ^ 3))),
            4 | 5 => drop(table.noting(log).give_away(&to, Term::NIL)),
            6 => {
                let all = [Access::Public, Access::Protected, Access::Private];
                drop(table.noting(log).set_access(all[slot % 3]));
            }
            7 => {
                let options = format!("[{{protection, public}}, {{heir, {to}, [{slot}]}}]");
                drop(table.noting(log).setopts(&term(&options)));
            }
            8 => {
                let heir = Heir {
                    pid: to,
                    data: term("{a, 1}"),
                };
                drop(table.noting(log).set_heir(Some(heir)));
            }
            9 => drop(table.noting(log).set_heir(None)),
            10 => drop(table.noting(log).delete()),
            _ => {
                self.owners[owner].end(log);
                self.owners[owner] = self.tables.owner();
                return;
            }
        }
        assert!(log.steps.len() <= before + 1);
    }
}

/// Fails if a write that reports does anything else than one that does not.
#[test]
fn writes_that_report_do_what_others_do() {
    let (reporting, silent) = (Tables::new(), Tables::new());
    let mut operations = Operations::new(7);
    let mut slots: Vec<Option<(Slot, Slot)>> = (0..SLOTS).map(|_| None).collect();
    let mut log = Log::default();
    for step in 0..8_000 {
        let operation = operations.next();
        let (function, arguments) = (operation.function, &operation.arguments);
        let slot = &mut slots[operation.slot];
        if function == "new" {
            let new = |tables| Slot::new(tables, &arguments[0]);
            *slot = Some((new(&reporting), new(&silent)));
            continue;
        }
        let Some((one, other)) = slot else { continue };
        if write(&one.table, &mut log, function, arguments).is_some() {
            let _ = other.call(function, arguments);
        }
        if step % 20 == 0 {
            let [one, other] = [&one.table, &other.table].map(contents);
            assert_eq!(one, other, "{operation:?}");
        }
    }
    assert!(log.effects().count() > 1_000);
}

/// Fails if a write does not report a change, reports one that did not happen, reports a row of
/// before, or rows of a bag in another order; if what is one step is reported as several; or if an
/// effect is not the same when it is read again.
#[test]
fn effects_make_the_tables_again() {
    let mut kinds = BTreeSet::new();
    for seed in 0..6 {
        let mut world = World::new(seed);
        let (again, mut applied) = (Tables::new(), 0);
        for step in 0..2_500 {
            world.step();
            if step % 50 == 49 {
                let new: Vec<_> = world.log.effects().skip(applied).collect();
                new.iter().for_each(|bytes| apply(&again, bytes));
                applied += new.len();
                assert_eq!(state(&again), state(&world.tables), "seed {seed}, {step}");
            }
        }
        let wanted = state(&world.tables);
        assert!(wanted.len() >= 3);
        // Once more from the beginning.
        world.log.effects().for_each(|bytes| apply(&again, bytes));
        assert_eq!(state(&again), wanted, "seed {seed}, twice");
        kinds.extend(world.log.effects().map(|bytes| bytes[0]));
    }
    assert!(kinds.into_iter().eq(1..=12), "every kind of effect is met");
}

/// Fails if effects that are already true of a later state do not lead to the same end: a snapshot
/// is taken while others write, and each key is in it as of another moment.
#[test]
fn effects_may_be_applied_to_a_later_state() {
    for seed in 10..16 {
        let mut world = World::new(seed);
        let mut random = StdRng::seed_from_u64(seed);
        for _ in 0..800 {
            world.step();
        }
        // A snapshot, of one table after another, while writes go on.
        let begun = world.log.effects().count();
        let mut snapshot = Vec::new();
        for table in world.tables.all() {
            for _ in 0..random.random_range(0..150) {
                world.step();
            }
            if !table.is_deleted() {
                snapshot.extend(description(&table));
            }
        }
        for _ in 0..300 {
            world.step();
        }
        let again = Tables::new();
        snapshot.iter().for_each(|bytes| apply(&again, bytes));
        let log: Vec<_> = world.log.effects().collect();
        for bytes in &log[begun..] {
            apply(&again, bytes);
        }
        assert_eq!(state(&again), state(&world.tables), "seed {seed}");
    }
}

/// Fails if rows that are added to a key of a bag are reported with all others, in another order,
/// or as if they came behind more or fewer rows.
#[test]
fn a_bag_reports_the_rows_that_are_added() {
    for kind in [Kind::Bag, Kind::DuplicateBag] {
        let table = Tables::new()
            .create("t", Options::new().kind(kind))
            .unwrap();
        // Rows from before there was a log are counted, too.
        table.insert(term("[{1, a}, {1, b}]")).unwrap();
        for after in [2, 5, 8] {
            let rows = ["c", "d", "e"].map(|name| format!("{{1, {name}{after}}}"));
            let mut log = Log::default();
            let list = format!("[{}]", rows.join(","));
            table.noting(&mut log).insert(term(&list)).unwrap();
            let mut found = Vec::new();
            for bytes in log.effects() {
                let effect = OwnedEffect::decode(bytes, &Limits::NONE).unwrap();
                let Change::Added { after, rows } = effect.borrow().change else {
                    panic!("{effect:?}");
                };
                let rows = rows.to_vec().into_iter();
                found.extend(rows.enumerate().map(|(place, row)| (after + place, row)));
            }
            let rows = rows.iter().map(|row| term(row).as_tuple().unwrap().clone());
            let wanted: Vec<_> = (after..).zip(rows).collect();
            assert_eq!(found, wanted, "{kind}");
        }
    }
}

/// Fails if a file that is damaged leaves effects, or one that is good is not one step.
#[test]
fn a_file_is_one_step_or_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.tab");
    let tables = Tables::new();
    for kind in Kind::ALL {
        let table = tables.create("t", Options::new().kind(kind)).unwrap();
        table
            .insert_rows((0..700).map(|key| (key % 500, key)))
            .unwrap();
        table.tab2file(&path, &[]).unwrap();
        let mut log = Log::default();
        let read = tables.noting(&mut log).file2tab(&path).unwrap();
        assert_eq!(log.steps.len(), 1);
        let again = Tables::new();
        log.effects().for_each(|bytes| apply(&again, bytes));
        let again = again.find(&read.id().into()).unwrap();
        assert_eq!(description(&again), description(&read));

        let mut bytes = std::fs::read(&path).unwrap();
        let last = bytes.len() - 5;
        bytes[last] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let mut log = Log::default();
        tables.noting(&mut log).file2tab(&path).unwrap_err();
        let owner = tables.owner();
        owner.noting(&mut log).file2tab(&path).unwrap_err();
        owner
            .noting(&mut log)
            .file2tab_unless_public(&path)
            .unwrap_err();
        assert_eq!(log.effects().count(), 0);
    }
}

/// Fails if, after a restart, a table of an owner that is not there is not handed on, one of an
/// owner that is restored is, or a new table or owner gets the number of an old one.
#[test]
fn owners_that_do_not_come_back_hand_their_tables_on() {
    let mut log = Recording::new();
    let before = Tables::new();
    let (lost, mut kept) = (before.owner(), before.owner());
    let options = || Options::new().named();
    let heir = |pid: &Owner| options().heir(pid.pid().clone(), term("[data]"));
    let to_heir = lost.noting(&mut log).create("to_heir", heir(&kept));
    let to_nobody = lost.noting(&mut log).create("to_nobody", heir(&lost));
    let stays = kept.noting(&mut log).create("stays", options()).unwrap();
    let nodes = before.noting(&mut log).create("nodes", options()).unwrap();
    let (to_heir, to_nobody) = (to_heir.unwrap(), to_nobody.unwrap());
    to_heir.noting(&mut log).insert(term("{1}")).unwrap();

    let after = Tables::new();
    for effect in log.effects() {
        after.apply(&effect.borrow()).unwrap();
    }
    let mut again = after.restore_owner(kept.pid()).unwrap();
    assert!(after.restore_owner(kept.pid()).is_none(), "it is there");
    assert!(after.restore_owner(&nodes.info().unwrap().owner).is_none());
    let mut log = Log::default();
    assert_eq!(after.noting(&mut log).end_absent_owners(), 2);
    assert_eq!(log.effects().count(), 2);
    let transfer = again.transfers().try_recv().unwrap();
    assert_eq!(transfer.table.id(), to_heir.id());
    assert_eq!(transfer.from, *lost.pid());
    assert_eq!(transfer.data, term("[data]"));
    assert_eq!(transfer.table.tab2list().unwrap().len(), 1);
    assert!(after.find(&to_nobody.id().into()).is_none());
    for (table, owner) in [(&stays, &kept), (&to_heir, &kept)] {
        let table = after.find(&table.id().into()).unwrap();
        assert_eq!(table.info().unwrap().owner, *owner.pid());
    }
    again.end(&mut log);
    assert!(again.create("late", options()).is_err());
    assert_eq!(after.len(), 1);
    assert_eq!(log.effects().count(), 4);
    kept.end(&mut log);

    // A number far beyond all that there are.
    let far = u64::from(u32::MAX) << 8;
    let created = log_of_one(|log| drop(before.noting(log).create("far", Options::new())));
    let Change::Created { name, options, .. } = created.borrow().change else {
        panic!("{created:?}");
    };
    let far_owner = tremula_table::term::Pid::new(nodes.info().unwrap().owner.node(), 7, 99, 0);
    let change = Change::Created {
        name,
        options,
        owner: far_owner.clone(),
        heir: None,
    };
    after.apply(&Effect::new(far, change)).unwrap();
    assert!(after.create("new", Options::new()).unwrap().number() > far);
    assert!(*after.owner().pid() > far_owner);
}

fn log_of_one(write: impl FnOnce(&mut Recording)) -> OwnedEffect {
    let mut log = Recording::new();
    write(&mut log);
    assert_eq!(log.effects().len(), 1);
    log.effects()[0].clone()
}

/// Fails if a row is kept beyond the bounds of the node, or an effect of another type of table
/// does something.
#[test]
fn effects_that_a_table_cannot_have_are_refused() {
    let wide = Tables::new();
    let mut log = Recording::new();
    let options = Options::new().access(Access::Public);
    let table = wide.noting(&mut log).create("t", options).unwrap();
    table
        .noting(&mut log)
        .insert(term("{1, {{{{a}}}}}"))
        .unwrap();
    let bounds = Bounds {
        bytes: 1000,
        depth: 3,
    };
    let narrow = Tables::bounded(bounds);
    narrow.apply(&log.effects()[0].borrow()).unwrap();
    let error = narrow.apply(&log.effects()[1].borrow()).unwrap_err();
    assert!(
        matches!(error.problem, ApplyProblem::OutOfBounds(_)),
        "{error}"
    );
    let again = narrow.find(&table.id().into()).unwrap();
    assert_eq!(again.size().unwrap(), 0);

    let bag = Options::new().kind(Kind::Bag);
    let bag = wide.create("bag", bag).unwrap();
    bag.insert(term("{1, a}")).unwrap();
    let added = log_of_one(|log| bag.noting(log).insert(term("{1, b}")).unwrap());
    let ordered = Options::new().kind(Kind::OrderedSet);
    let ordered = wide.create("ordered", ordered).unwrap();
    ordered.insert(term("[{1}, {2}]")).unwrap();
    let range = spec("[{{'$1'}, [{'<', '$1', 2}], [true]}]");
    let range = log_of_one(|log| assert_eq!(ordered.noting(log).select_delete(&range), Ok(1)));
    for effect in [added, range] {
        let change = effect.borrow().change;
        let error = wide
            .apply(&Effect::new(table.number(), change))
            .unwrap_err();
        assert!(
            matches!(error.problem, ApplyProblem::Kind { .. }),
            "{error}"
        );
        assert!(error.to_string().contains("set"), "{error}");
    }
    assert_eq!(table.size().unwrap(), 1);
}

/// Fails if, in a debug build, a write of a node that is kept in a log can leave out its report; or
/// if one that reports, or an applied effect, cannot be.
#[test]
fn what_is_kept_in_a_log_has_to_be_reported() {
    let tables = Tables::for_log(Bounds::NONE);
    let mut log = Log::default();
    let options = Options::new().kind(Kind::OrderedSet);
    let mut owner = tables.owner();
    let table = owner.noting(&mut log).create("t", options).unwrap();
    let other = tables.noting(&mut log).create("u", Options::new());
    let other = other.unwrap();
    for table in [&table, &other] {
        let mut noting = table.noting(&mut log);
        noting.insert_rows((0..9).map(|key| (key, 1))).unwrap();
    }
    let one = Term::from(1);
    let silent: [(&str, &dyn Fn()); 9] = [
        ("insert", &|| drop(table.insert(term("{1, 2}")))),
        ("delete_key", &|| drop(other.delete_key(&one))),
        ("take", &|| drop(table.take(&one))),
        ("update_counter", &|| drop(other.update_counter(&one, &one))),
        ("delete_all", &|| drop(table.delete_all_objects())),
        ("rename", &|| drop(other.rename("v"))),
        ("access", &|| drop(other.set_access(Access::Public))),
        ("delete", &|| drop(other.delete())),
        ("create", &|| drop(tables.create("w", Options::new()))),
    ];
    let before = state(&tables);
    for (name, write) in silent {
        let written = catch_unwind(AssertUnwindSafe(write));
        assert_eq!(written.is_err(), cfg!(debug_assertions), "{name}");
        if cfg!(debug_assertions) {
            assert_eq!(state(&tables), before, "{name}");
        }
    }
    if cfg!(debug_assertions) {
        let again = Tables::for_log(Bounds::NONE);
        log.effects().for_each(|bytes| apply(&again, bytes));
        assert_eq!(state(&again), before);
        other.noting(&mut log).delete().unwrap();
        table.noting(&mut log).delete_all_objects().unwrap();
        owner.end(&mut log);
        assert_eq!(tables.len(), 0);
    }
}

/// Fails if a search in steps loses the effects of some step.
#[test]
fn searches_in_steps_report_each_step() {
    let tables = Tables::new();
    let mut made = Log::default();
    let table = tables
        .noting(&mut made)
        .create("t", Options::new())
        .unwrap();
    table
        .noting(&mut made)
        .insert_rows((0..100).map(|key| (key, key % 3)))
        .unwrap();
    let mut traversal = table.traverse(spec("[{{'_', 1}, [], [true]}]"), Action::Delete);
    let mut logs = vec![made];
    let count = loop {
        let mut log = Log::default();
        let mut left = 10;
        let step = traversal.step_noting(&mut log, || {
            left -= 1;
            left > 0
        });
        logs.push(log);
        match step.unwrap() {
            ControlFlow::Continue(rest) => traversal = rest,
            ControlFlow::Break(Outcome::Count(count)) => break count,
            ControlFlow::Break(other) => panic!("{other:?}"),
        }
    };
    assert_eq!(count, 33);
    assert!(logs.len() > 5);
    let again = Tables::new();
    for log in &logs {
        log.effects().for_each(|bytes| apply(&again, bytes));
    }
    assert_eq!(state(&again), state(&tables));
}
