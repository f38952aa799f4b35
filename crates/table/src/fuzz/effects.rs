//! Effects from bytes.

use crate::table::effect::{Change, Effect, OwnedEffect};
use crate::term::{Atom, Bounds, Limits, Tuple};
use crate::{Kind, Options, Table, Tables};
use std::ops::ControlFlow;

/// Atoms are never freed. From this number on, inputs may only use those that exist.
const MOST_ATOMS: u32 = 100_000;

/// Limits that short inputs reach.
fn tight() -> Limits {
    Limits::default()
        .nesting(6)
        .integer_bits(256)
        .new_atoms(Atom::count() < MOST_ATOMS)
}

/// The bounds of the tables.
const BOUNDS: Bounds = Bounds {
    bytes: 400,
    depth: 4,
};

fn encoded(effect: &Effect<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    match effect.encode(&mut bytes) {
        Ok(()) => bytes,
        Err(error) => panic!("no short term is too large for the format: {error}"),
    }
}

/// A table of each type, with rows.
fn tables() -> (Tables, Vec<Table>) {
    let tables = Tables::bounded(BOUNDS);
    let all = Kind::ALL.into_iter().map(|kind| {
        let table = match tables.create("t", Options::new().kind(kind)) {
            Ok(table) => table,
            Err(error) => panic!("{error}"),
        };
        let rows = table.insert_rows([(1, 2), (1, 3), (5, 0)]);
        assert_eq!(rows, Ok(()));
        table
    });
    let all = all.collect();
    (tables, all)
}

/// Bytes that may be an effect, and then another one.
///
/// An error names a byte of the input. An effect that is read is written as bytes that read as the
/// same effect. Any table has it or refuses it, and keeps to the bounds, and has it twice as it has
/// it once.
///
/// # Panics
///
/// One of these does not hold.
pub fn effects(data: &[u8]) {
    let effect = match OwnedEffect::decode(data, &tight()) {
        Ok(effect) => effect,
        Err(error) => {
            assert!(error.offset <= data.len(), "{error}");
            return;
        }
    };
    let bytes = encoded(&effect.borrow());
    match OwnedEffect::decode(&bytes, &tight()) {
        Ok(again) => assert_eq!(encoded(&again.borrow()), bytes, "{effect:?}"),
        Err(error) => panic!("{effect:?}: {error}"),
    }
    let (tables, all) = tables();
    for table in &all {
        let change = effect.borrow().change;
        let its = Effect::new(table.number(), change);
        let before = described(table);
        let applied = tables.apply(&its);
        let after = described(table);
        if applied.is_err() {
            assert_eq!(
                before, after,
                "{effect:?} is refused, but changes the table"
            );
        }
        assert_eq!(tables.apply(&its), applied, "{effect:?}");
        assert_eq!(
            described(table),
            after,
            "{effect:?} is another one the second time"
        );
        if matches!(its.change, Change::Deleted) {
            assert!(table.is_deleted());
        } else {
            let rows = rows_of(table);
            assert_eq!(table.size(), Ok(rows.len()));
            assert!(rows.iter().all(|row| BOUNDS.check_row(row).is_ok()));
        }
    }
    // The table that it names, which is there only if it makes it.
    let is_made = tables.apply(&effect.borrow()).is_ok()
        && matches!(effect.borrow().change, Change::Created { .. });
    if is_made && let Ok(new) = tables.create("new", Options::new()) {
        assert!(new.number() > effect.borrow().table);
    }
}

/// The effects that make the table again; those of its rows in the order of their bytes.
fn described(table: &Table) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    table.describe(&mut |effect| {
        all.push(encoded(effect));
        ControlFlow::Continue(())
    });
    all.sort();
    all
}

/// The rows, for a caller that may not read them.
fn rows_of(table: &Table) -> Vec<Tuple> {
    let mut all = Vec::new();
    table.describe(&mut |effect| {
        if let Change::Rows(rows) = &effect.change {
            all.extend(rows.to_vec());
        }
        ControlFlow::Continue(())
    });
    all
}
