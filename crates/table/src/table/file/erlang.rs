//! Files that Erlang's `ets:tab2file` wrote: logs of the module `disk_log`.
//!
//! A file has eight bytes, of which the second four say whether the log was closed; then items,
//! each of
//!
//! ```text
//! | length, 4 bytes | 98 87 76 65 | MD5 of the length, 16 bytes, if it is ≥ 65,528 | payload |
//! ```
//!
//! The first payload is the table's properties, a tuple of pairs. Each row is an item. If extended
//! information was requested, the last item is `['$end_of_table', Info]` with the number of rows.
//! This module does not check the MD5 of the rows there, and items have no checksums: as in Erlang,
//! damage is only found where it shows in the structure. Source: observed on files of OTP 25.

use super::error::FileProblem;
use super::properties::TabfileInfo;
use super::read::Opened;
use super::records::Records;
use crate::term::{Atom, List, Term, Tuple};

/// The first bytes of such a file.
pub(super) const MAGIC: [u8; 4] = [1, 2, 3, 4];

/// The next bytes, if the log was closed.
const CLOSED: [u8; 4] = [99, 88, 77, 11];

/// The bytes behind the length of each item.
const ITEM: [u8; 4] = [98, 87, 76, 65];

/// Items of at least this length have the MD5 of their length, 16 bytes.
const WITH_MD5_FROM: u32 = 65_528;

/// Reads the rest of the head, and the table's properties.
pub(super) fn properties(records: &mut Records) -> Result<TabfileInfo, FileProblem> {
    if records.array::<4>()? != CLOSED {
        return Err(FileProblem::NotClosed);
    }
    let offset = records.offset();
    let info = match item(records)? {
        Term::Tuple(pairs) => TabfileInfo::from_pairs(pairs.iter()),
        _ => None,
    };
    let wanted = "the properties of a table";
    info.ok_or(FileProblem::Unexpected { offset, wanted })
}

/// Passes all rows to `put`, which returns whether a term is a row.
pub(super) fn rows(opened: Opened, put: &mut dyn FnMut(&Term) -> bool) -> Result<(), FileProblem> {
    let mut records = opened.records;
    let has_end = !opened.info.extended_info.is_empty();
    let mut found = 0;
    while !records.is_over() {
        let offset = records.offset();
        let term = item(&mut records)?;
        if put(&term) {
            found += 1;
            continue;
        }
        let said = match &term {
            Term::List(list) if has_end => end(list),
            _ => None,
        };
        let wanted = "a row, or the end";
        let said = said.ok_or(FileProblem::Unexpected { offset, wanted })?;
        return records.check_end(offset, said.unwrap_or(found), found);
    }
    if has_end {
        let offset = records.offset();
        return Err(FileProblem::Truncated { offset });
    }
    records.check_end(8, opened.info.size, found)
}

/// The number of rows in the last item, if it has one; `None` if this is not a last item.
fn end(list: &List) -> Option<Option<u64>> {
    let mut elements = list.iter();
    let (Some(Term::Atom(mark)), Some(Term::List(info)), None) =
        (elements.next(), elements.next(), elements.next())
    else {
        return None;
    };
    let count = |pair: &Term| match pair {
        Term::Tuple(pair) => count_of(pair, "count"),
        _ => None,
    };
    (*mark == Atom::END_OF_TABLE).then(|| info.iter().find_map(count))
}

/// The number in a pair with this name.
pub(super) fn count_of(pair: &Tuple, name: &str) -> Option<u64> {
    match pair.elements() {
        [Term::Atom(atom), Term::Integer(count)] if atom.text() == name => {
            u64::try_from(*count).ok()
        }
        _ => None,
    }
}

fn item(records: &mut Records) -> Result<Term, FileProblem> {
    let offset = records.offset();
    let length = u32::from_be_bytes(records.array()?);
    if records.array::<4>()? != ITEM {
        return Err(FileProblem::Damaged { offset });
    }
    if length >= WITH_MD5_FROM {
        records.array::<16>()?;
    }
    let payload = records.bytes(length)?;
    records.term(&payload)
}
