//! Compares each answer of a table of rows to random operations with that of a `BTreeSet`.

use super::row_table::{RowTable, row, spec};
use crate::workload::{Purpose, Rows, SELECTED_KEYS, Selected, generator};
use rand::RngExt;
use std::{collections::BTreeSet, fmt::Debug, ops::Bound};
use tremula_table::{BadArgument, Kind, Table, Term};

/// Enough keys for a few disjoint selects of a range.
const KEYS: u32 = 2 * SELECTED_KEYS;

const OPERATIONS: usize = 8000;

/// One operation in this many is a select.
const SELECT: usize = 200;

/// Does random operations to a new table of this kind.
///
/// # Errors
///
/// An answer differed from the model's.
pub(super) fn check(kind: RowTable, rows: Rows, seed: u64) -> Result<(), String> {
    let refused = |error: BadArgument| error.to_string();
    let table = kind.create().map_err(refused)?;
    let random = &mut generator(seed, Purpose::Stream, 0, 0);
    let mut model = BTreeSet::new();
    for number in 1..=OPERATIONS {
        let key = random.random_range(0..KEYS);
        let kind = random.random_range(0..8);
        operate(&table, &mut model, rows, key, kind).map_err(refused)??;
        if number % SELECT == 0 {
            select(&table, &model, rows, key).map_err(refused)??;
        }
    }
    Ok(())
}

fn operate(
    table: &Table,
    model: &mut BTreeSet<u32>,
    rows: Rows,
    key: u32,
    kind: u32,
) -> Result<Result<(), String>, BadArgument> {
    let term = Term::from(key);
    Ok(match kind {
        0..3 => {
            model.insert(key);
            table.insert(row(rows, key))?;
            same("size", table.size()?, model.len())
        }
        3 | 4 => {
            model.remove(&key);
            table.delete_key(&term)?;
            same("size", table.size()?, model.len())
        }
        5 | 6 => {
            let expected = model.contains(&key).then(|| row(rows, key));
            same(
                &format!("lookup {key}"),
                table.get(&term)?.map(Term::from),
                expected,
            )
        }
        // A set has no order to step through.
        _ if table.kind() == Kind::Set => Ok(()),
        _ => {
            let above = (Bound::Excluded(key), Bound::Unbounded);
            let next = model.range(above).next().map(|key| Term::from(*key));
            same(&format!("next {key}"), table.next(&term)?, next)
        }
    })
}

fn select(
    table: &Table,
    model: &BTreeSet<u32>,
    rows: Rows,
    from: u32,
) -> Result<Result<(), String>, BadArgument> {
    let mut found = table.select(&spec(rows, Selected::Range, from)?)?;
    if table.kind() == Kind::Set {
        found.sort();
    }
    let selected = model.range(from..from + SELECTED_KEYS);
    let expected: Vec<Term> = selected.map(|key| Term::from(*key)).collect();
    Ok(same(&format!("select from {from}"), found, expected))
}

fn same<T: PartialEq + Debug>(what: &str, found: T, expected: T) -> Result<(), String> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what}: {found:?}, expected {expected:?}"))
    }
}
