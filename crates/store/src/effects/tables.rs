//! Effects as the sink of tables.

use super::Effects;
use super::record::Change;
use tremula_table::Term;
use tremula_table::table::effect::{Change as TableChange, Effect, Rows, Sink};
use tremula_table::term::Tuple;

/// The bytes of an effect from which the rows of a key go into several records.
const LONG: usize = if cfg!(test) { 256 } else { 16 << 20 };

/// Numbers are taken where the table reports: under the lock under which the change takes effect.
impl Sink for Effects<'_> {
    fn effect(&mut self, effect: &Effect<'_>) {
        if !self.are_logged() {
            return;
        }
        let (first, rest) = records(effect);
        let first = Change::Table(first);
        let rest = rest.into_iter().map(Change::Table);
        if let Some(step) = &mut self.begun {
            step.push(first);
            step.extend(rest);
        } else if rest.len() == 0 {
            self.alone(first);
        } else {
            self.together(std::iter::once(first).chain(rest).collect());
        }
    }

    fn begin(&mut self) {
        self.begun = Some(Vec::new());
    }

    fn end(&mut self) {
        let changes = self.begun.take().unwrap_or_default();
        self.together(changes);
    }

    fn abandon(&mut self) {
        self.begun = None;
    }
}

/// The bytes of an effect: of one record, and of further ones for the rest of the rows of one key
/// if they are long. Each has to come behind the one before it.
pub(crate) fn records(effect: &Effect<'_>) -> (Vec<u8>, Vec<Vec<u8>>) {
    let bytes = encoded(effect);
    let (before, rows) = match &effect.change {
        TableChange::Rows(rows) if bytes.len() >= LONG => (0, rows),
        TableChange::Added { after, rows } if bytes.len() >= LONG => (*after, rows),
        _ => return (bytes, Vec::new()),
    };
    drop(bytes);
    let (position, all) = (rows.key_position(), rows.to_vec());
    let mut parts = Vec::new();
    let mut left = &all[..];
    while !left.is_empty() {
        let after = before + (all.len() - left.len());
        let (part, rest) = left.split_at(fitting(left));
        left = rest;
        let Some(rows) = Rows::given(position, part) else {
            unreachable!("the rows of a key have that key");
        };
        let change = match after {
            0 => TableChange::Rows(rows),
            after => TableChange::Added { after, rows },
        };
        parts.push(encoded(&Effect::new(effect.table, change)));
    }
    (parts.remove(0), parts)
}

/// How many of the rows go into one record: at least one.
fn fitting(rows: &[Tuple]) -> usize {
    let mut room = LONG;
    let fits = |row: &&Tuple| {
        let fits = room > 0;
        room = room.saturating_sub(Term::from((*row).clone()).heap_bytes());
        fits
    };
    rows.iter().take_while(fits).count()
}

fn encoded(effect: &Effect<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    match effect.encode(&mut bytes) {
        Ok(()) => bytes,
        // A store with a log bounds the terms.
        Err(error) => panic!("a row that a log cannot have: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tremula_table::table::effect::{OwnedEffect, Recording};
    use tremula_table::term::Limits;
    use tremula_table::{Kind, Options, Tables};

    /// Long rows of one key of a bag, in several records, make the same key.
    #[test]
    fn many_rows_of_a_key_go_into_several_records() {
        let tables = Tables::new();
        let options = Options::new().kind(Kind::DuplicateBag);
        let mut log = Recording::new();
        let table = tables.noting(&mut log).create("bag", options);
        let table = table.expect("a table");
        let rows = (0..100_u64).map(|number| Term::tuple([Term::from(1), Term::from(number)]));
        let inserted = table
            .noting(&mut log)
            .insert(Term::list(rows.collect::<Vec<_>>()));
        inserted.expect("rows");
        // What is left of the key is one effect.
        let row = Term::tuple([Term::from(1), Term::from(50)]);
        let removed = table.noting(&mut log).delete_object(&row);
        removed.expect("a row");
        let again = Tables::new();
        let mut most = 0;
        for effect in log.effects() {
            let (first, rest) = records(&effect.borrow());
            most = most.max(rest.len());
            for bytes in std::iter::once(first).chain(rest) {
                let effect = OwnedEffect::decode(&bytes, &Limits::NONE).expect("an effect");
                again.apply(&effect.borrow()).expect("it fits");
            }
        }
        assert!(most > 5, "{most} records behind the first");
        let again = again.find(&table.id().into()).expect("the table");
        let all = |table: &tremula_table::Table| table.lookup(&Term::from(1)).expect("rows");
        assert_eq!(all(&again), all(&table));
        assert_eq!(all(&again).len(), 99);
    }
}
