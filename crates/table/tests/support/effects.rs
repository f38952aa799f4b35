//! Effects as bytes, what tables are as effects, and a sink that keeps the steps apart.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use tremula_table::table::effect::{Change, Effect, OwnedEffect, Sink, Subject};
use tremula_table::term::Limits;
use tremula_table::{MatchSpec, Table, Tables, Term};

pub(crate) fn term(text: &str) -> Term {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub(crate) fn spec(text: &str) -> MatchSpec {
    MatchSpec::compile(&term(text)).unwrap()
}

pub(crate) fn encoded(effect: &Effect<'_>) -> Vec<u8> {
    let mut bytes = vec![b'x'];
    effect.encode(&mut bytes).unwrap();
    assert_eq!(bytes.remove(0), b'x', "it is appended");
    bytes
}

/// Applies an effect after it has been written and read.
pub(crate) fn apply(tables: &Tables, bytes: &[u8]) {
    let effect = OwnedEffect::decode(bytes, &Limits::NONE).unwrap();
    assert_eq!(encoded(&effect.borrow()), bytes, "{effect:?}");
    let subject = match effect.borrow() {
        effect if effect.key().is_some() => Subject::Key(effect.table),
        effect => Subject::Table(effect.table),
    };
    assert_eq!(Subject::of(bytes), Ok(subject), "{effect:?}");
    tables.apply(&effect.borrow()).unwrap();
}

/// A table as a creation, an access and its rows, in the order of their bytes: that of a hash table
/// differs each time. The rows of a key are in one of these, in order.
pub(crate) fn description(table: &Table) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    table.describe(&mut |effect| {
        all.push(encoded(effect));
        ControlFlow::Continue(())
    });
    all[2..].sort();
    all
}

/// The rows of a table, as [`description`] has them, but without its number.
pub(crate) fn contents(table: &Table) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    table.describe(&mut |effect| {
        all.push(encoded(&Effect::new(0, effect.change.clone())));
        ControlFlow::Continue(())
    });
    all.drain(..2);
    all.sort();
    all
}

/// All that tables are, by their numbers.
pub(crate) fn state(tables: &Tables) -> BTreeMap<u64, Vec<Vec<u8>>> {
    let all = tables.all();
    for table in &all {
        let info = table.info().unwrap();
        let mut rows = 0;
        table.describe(&mut |effect| {
            if let Change::Rows(its) = &effect.change {
                rows += its.to_vec().len();
            }
            ControlFlow::Continue(())
        });
        assert_eq!(info.size, rows, "{table:?}");
        if info.named {
            let found = tables.whereis(info.name.text()).unwrap();
            assert_eq!(found.id(), table.id());
        }
    }
    all.iter()
        .map(|table| (table.number(), description(table)))
        .collect()
}

/// Encoded effects, of which those of one step are together.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) steps: Vec<Vec<Vec<u8>>>,
    begun: bool,
}

impl Log {
    pub(crate) fn effects(&self) -> impl Iterator<Item = &Vec<u8>> {
        assert!(!self.begun, "a step has not ended");
        self.steps.iter().flatten()
    }
}

impl Sink for Log {
    fn effect(&mut self, effect: &Effect<'_>) {
        if !self.begun {
            self.steps.push(Vec::new());
        }
        self.steps.last_mut().unwrap().push(encoded(effect));
    }

    fn begin(&mut self) {
        assert!(!self.begun, "steps are not nested");
        self.begun = true;
        self.steps.push(Vec::new());
    }

    fn end(&mut self) {
        assert!(self.begun, "a step ends that has not begun");
        self.begun = false;
        self.steps.pop_if(|step| step.is_empty());
    }

    fn abandon(&mut self) {
        self.steps.pop();
        self.begun = false;
    }
}
