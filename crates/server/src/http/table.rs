//! A table as a map of the page.
//!
//! The page knows keys by their byte forms, which compare as the keys do. Of a long form it has the
//! beginning, which is below the key or at it: enough to tell ranges apart, and to show them.

use super::database::{SLOW, hex, micros, millis, text};
use crate::server::Shared;
use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::sync::Arc;
use tremula_observe::{KeyInfo, Keys, LONGEST_KEY, Leaf, MapInfo, ObservedMap, SlowKey};
use tremula_store::Table;
use tremula_table::term::{Limits, Tuple};
use tremula_table::{Kind, Term};

/// With what the ids of tables begin.
pub(super) const TABLE: &str = "table";

/// Tables that are looked at each second, those that were made first.
const MOST_LOOKED_AT: usize = 1000;

/// Tables that are shown, of those with rows.
const MOST_TABLES: usize = 32;

/// Keys that are passed over from the beginning of a leaf to where a list begins.
const MOST_PASSED: usize = 1 << 14;

/// Adds the tables to the maps: those that can be walked, and one for all others.
pub(super) fn add_tables(server: &Arc<Shared>, maps: &mut Vec<Arc<dyn ObservedMap>>) {
    let tables = server.store.tables();
    let mut others = tables.len();
    let mut shown = 0;
    for table in tables.made_after(None, MOST_LOOKED_AT) {
        let is_walked = || {
            matches!(
                table.walk_parts(&mut |_| ControlFlow::Break(())),
                Ok(Some(_))
            )
        };
        let has_rows = table.size().is_ok_and(|rows| rows > 0);
        if shown < MOST_TABLES && table.kind() == Kind::OrderedSet && has_rows && is_walked() {
            shown += 1;
            others = others.saturating_sub(1);
            let server = Arc::clone(server);
            maps.push(Arc::new(OfTable { server, table }));
        }
    }
    if others > 0 {
        maps.push(Arc::new(Others(others)));
    }
}

/// An `ordered_set` whose index can be walked.
struct OfTable {
    server: Arc<Shared>,
    table: Table,
}

impl ObservedMap for OfTable {
    fn info(&self) -> MapInfo {
        MapInfo {
            id: format!("{TABLE}{}", self.table.number()),
            name: format!("table {}", self.table.name()),
            kind: "table",
            engine: self.table.engine().to_owned(),
            keys: self.table.size().unwrap_or(0) as u64,
            walked: true,
            reason: None,
        }
    }

    fn walk(&self, visit: &mut dyn FnMut(&Leaf<'_>) -> ControlFlow<()>) -> Option<(u64, u64)> {
        let mut before = Vec::new();
        let walked = self.table.walk_parts(&mut |part| {
            let low = part.low.map(|low| low.to_byte_form_within(LONGEST_KEY));
            // Leaves whose lows do not differ in what is known of them are one.
            let low = low.filter(|low| *low > before);
            let shown = visit(&Leaf {
                low: low.as_deref(),
                entries: part.entries,
                waits: part.waits,
                acquisitions: part.acquisitions,
                format: part.format,
            });
            before = low.unwrap_or_else(|| std::mem::take(&mut before));
            shown
        });
        let adapted = walked.ok()??;
        Some((adapted.splits, adapted.joins))
    }

    fn bytes_at(&self, low: &[u8]) -> Option<u64> {
        let mut bytes = None;
        // Where a form was cut, the leaf is not looked for: it takes a walk, and this comes often.
        let begin = match low {
            [] => None,
            low => Some(Term::from_byte_form(low, &limits()).ok()?),
        };
        self.rows_from(begin, &mut |_, rows| {
            bytes = Some(bytes_of(rows));
            ControlFlow::Break(())
        });
        bytes
    }

    fn text(&self, key: &[u8]) -> String {
        match Term::glimpse_byte_form(key) {
            Ok(seen) => seen.to_string(),
            Err(_) => hex(key),
        }
    }

    fn keys(&self, from: &[u8], to: Option<&[u8]>, limit: usize) -> Result<Keys, String> {
        let mut found = Keys::default();
        let mut passed = 0;
        self.rows_from(self.begin(from), &mut |key, rows| {
            if key.cmp_byte_form(from).is_lt() && passed < MOST_PASSED {
                passed += 1;
                return ControlFlow::Continue(());
            }
            if to.is_some_and(|to| key.cmp_byte_form(to).is_ge()) {
                return ControlFlow::Break(());
            }
            if found.keys.len() == limit || passed == MOST_PASSED {
                found.more = true;
                return ControlFlow::Break(());
            }
            let form = key.to_byte_form_within(LONGEST_KEY);
            found.keys.push(KeyInfo {
                text: self.text(&form),
                raw: hex(&form),
                kind: "row".to_owned(),
                size: bytes_of(rows),
            });
            ControlFlow::Continue(())
        });
        found.slow = self.slow(from, to);
        Ok(found)
    }
}

impl OfTable {
    /// A key at or below all keys from this form on, and not far below.
    fn begin(&self, from: &[u8]) -> Option<Term> {
        if let Ok(key) = Term::from_byte_form(from, &limits()) {
            return Some(key);
        }
        let mut begin = None;
        let below = &mut |part: &tremula_table::TablePart<'_>| match part.low {
            Some(low) if low.cmp_byte_form(from) == Ordering::Greater => ControlFlow::Break(()),
            low => {
                begin = low.cloned().or_else(|| begin.take());
                ControlFlow::Continue(())
            }
        };
        // A table that is gone has no rows either.
        self.table.walk_parts(below).ok()?;
        begin
    }

    /// Shows the keys from one on, with their rows, until `visit` breaks.
    fn rows_from(
        &self,
        begin: Option<Term>,
        visit: &mut dyn FnMut(&Term, &[Tuple]) -> ControlFlow<()>,
    ) {
        let mut next = match begin {
            None => self.table.first_lookup(),
            Some(key) => match self.table.lookup(&key) {
                Ok(rows) if !rows.is_empty() => Ok(Some((key, rows))),
                _ => self.table.next_lookup(&key),
            },
        };
        // A table that was deleted meanwhile ends here.
        while let Ok(Some((key, rows))) = next {
            if visit(&key, &rows).is_break() {
                break;
            }
            next = self.table.next_lookup(&key);
        }
    }

    /// The slow commands on a key of a range.
    fn slow(&self, from: &[u8], to: Option<&[u8]>) -> Vec<SlowKey> {
        let name = self.table.name();
        let of_table = |word: &[u8]| word == name.text().as_bytes();
        let entries = self.server.slowlog.newest(SLOW).into_iter();
        let shown = entries.filter_map(|entry| {
            let [command, table, written, ..] = entry.arguments.as_slice() else {
                return None;
            };
            let is_of_tables = command.get(..4)?.eq_ignore_ascii_case(b"ets.");
            let written = std::str::from_utf8(written).ok()?;
            let term = Term::parse(written, &limits()).ok()?;
            let key = match &term {
                Term::Tuple(row) if self.table.key_of(row).is_some() && !has_key(command) => {
                    self.table.key_of(row)?
                }
                key => key,
            };
            let is_in = key.cmp_byte_form(from).is_ge()
                && to.is_none_or(|to| key.cmp_byte_form(to).is_lt());
            (is_of_tables && of_table(table) && is_in).then(|| SlowKey {
                at: millis(entry.time),
                us: micros(entry.took),
                command: text(command),
                key: self.text(&key.to_byte_form_within(LONGEST_KEY)),
            })
        });
        shown.collect()
    }
}

/// Whether the second argument of a command on a table is a key; else it may be a row.
fn has_key(command: &[u8]) -> bool {
    !command.to_ascii_lowercase().starts_with(b"ets.insert")
}

fn bytes_of(rows: &[Tuple]) -> u64 {
    let bytes = rows.iter().map(|row| Term::from(row.clone()).heap_bytes());
    bytes.sum::<usize>() as u64
}

/// Limits of terms that a visitor names: no atom is made for them.
fn limits() -> Limits {
    Limits::default().new_atoms(false).nesting(LONGEST_KEY)
}

/// The tables that are not walked.
struct Others(usize);

impl ObservedMap for Others {
    fn info(&self) -> MapInfo {
        let many = if self.0 == 1 { "" } else { "s" };
        MapInfo {
            id: format!("{TABLE}s"),
            name: format!("{} other table{many}", self.0),
            kind: "table",
            engine: String::new(),
            keys: self.0 as u64,
            walked: false,
            reason: Some(format!(
                "only an ordered_set has an order to show, if it has rows, is not private, and is \
                 one of the first {MOST_TABLES}"
            )),
        }
    }

    fn walk(&self, _: &mut dyn FnMut(&Leaf<'_>) -> ControlFlow<()>) -> Option<(u64, u64)> {
        None
    }

    fn text(&self, key: &[u8]) -> String {
        hex(key)
    }

    fn keys(&self, _: &[u8], _: Option<&[u8]>, _: usize) -> Result<Keys, String> {
        Err("these tables do not show their keys here; use ETS.SELECT".to_owned())
    }
}
