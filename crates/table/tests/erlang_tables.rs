//! Compares tables with a real Erlang: the same random calls on both, and what each call returns.
//! These tests need `escript`; without it they fail and say how to get it.

mod support;

use std::collections::BTreeMap;
use support::calls::{Slot, elements};
use support::operations::{EVEN_SLOT, Operation, Operations, SLOTS};
use support::oracle::{Oracle, from_environment};
use tremula_table::match_spec::Returns;
use tremula_table::term::{Atom, Exact};
use tremula_table::{Kind, MatchSpec, Tables, Term};

/// Calls in an ordinary run, and in a deep one (`TREMULA_DEEP`). `TREMULA_TABLE_CALLS` overrides
/// both.
const CALLS: u64 = 200_000;
const DEEP_CALLS: u64 = 5_000_000;

/// Calls per batch: the calls of a deep run would not fit into memory at once.
const CALLS_AT_ONCE: u64 = 100_000;

/// The seed of the random numbers. `TREMULA_SEED` overrides it.
const SEED: u64 = 44;

/// How a result is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// The result as it is.
    Matters,
    /// A list without a defined order in Erlang.
    Open,
    /// A list of such lists: their sizes matter, and their elements taken together.
    OpenChunks,
}

/// The order that Erlang defines for a result.
fn order(operation: &Operation, kind: Kind, has_lists: bool) -> Order {
    if kind == Kind::OrderedSet {
        return Order::Matters;
    }
    match operation.function {
        "keys" | "drain" | "tab2list" | "foldl" | "foldr" | "select" | "select_reverse"
        | "match" | "match_object" => Order::Open,
        "chunks" => Order::OpenChunks,
        // Erlang 25 may reverse a list that is inserted into a bag.
        "lookup" | "take" | "lookup_element" if has_lists => Order::Open,
        _ => Order::Matters,
    }
}

fn sorted(mut terms: Vec<Term>) -> Term {
    // Zeros with different signs are identical, so the text decides.
    terms.sort_by(|one, two| {
        let by_text = || one.to_string().cmp(&two.to_string());
        one.cmp_exact(two).then_with(by_text)
    });
    Term::list(terms)
}

/// Whether two terms are the same, down to the sign of zero.
fn is_same(one: &Term, two: &Term) -> bool {
    let text = |term: &Term| term.to_string();
    one.is_identical(two) && text(one) == text(two)
}

fn is_end(term: &Term) -> bool {
    matches!(term, Term::Atom(atom) if *atom == Atom::END_OF_TABLE)
}

/// Whether our chunk says that it is the last one where Erlang's says so only with the next chunk:
/// ours uses guards, too, to find out that only one key can match.
fn knows_the_end(ours: &Term, said: &Term) -> bool {
    match (ours, said) {
        (Term::Tuple(ours), Term::Tuple(said)) if ours.len() == 2 && said.len() == 2 => {
            ours[0].is_identical(&said[0]) && is_end(&ours[1]) && !is_end(&said[1])
        }
        _ => false,
    }
}

fn normal(result: &Term, order: Order) -> Term {
    let Some(parts) = elements(result) else {
        return result.clone();
    };
    match order {
        Order::Matters => result.clone(),
        Order::Open => sorted(parts),
        Order::OpenChunks => {
            // Whether the last full chunk has a continuation depends on what is known about the
            // keys, and on the order of visits.
            let parts = match parts.as_slice() {
                [chunks @ .., end] if !chunks.is_empty() && is_end(end) => chunks,
                all => all,
            };
            let sizes = parts.iter().map(|chunk| match elements(chunk) {
                Some(chunk) => Term::from(chunk.len()),
                None => chunk.clone(),
            });
            let sizes: Vec<_> = sizes.collect();
            let all = parts.iter().filter_map(elements).flatten().collect();
            Term::tuple([Term::list(sizes), sorted(all)])
        }
    }
}

/// The tables, and statistics of the calls.
#[derive(Default)]
struct Run {
    tables: Tables,
    slots: [Option<Slot>; SLOTS],
    has_lists: [bool; SLOTS],
    /// How often each function succeeded, and failed.
    told: BTreeMap<&'static str, [usize; 2]>,
    /// How often a range of keys was deleted without visiting its rows.
    ranges: usize,
}

impl Run {
    /// Makes a call and compares its result with Erlang's.
    fn compare(&mut self, number: u64, operation: &Operation, answer: &Term) {
        let Operation {
            slot,
            function,
            arguments,
        } = operation;
        if *function == "new" {
            if let Some(old) = self.slots[*slot].take() {
                old.table.delete().unwrap();
            }
            self.slots[*slot] = Some(Slot::new(&self.tables, &arguments[0]));
            self.has_lists[*slot] = false;
            return;
        }
        let target = self.slots[*slot].as_mut().unwrap();
        let kind = target.table.kind();
        let lists = matches!(*function, "insert" | "insert_new" | "init_table");
        self.has_lists[*slot] |= lists && elements(&arguments[0]).is_some();
        let order = order(operation, kind, self.has_lists[*slot]);
        let is_chunk = matches!(*function, "chunk" | "next_chunk");
        self.ranges += usize::from(*slot == EVEN_SLOT && removes_range(operation));
        let result = target.call(function, arguments);
        // Of rows, or of keys, that differ by the sign of zero alone, a bag keeps or shows the
        // first: another one than Erlang's if that has reversed a list.
        let signs_matter = kind == Kind::Set || order == Order::Matters || !self.has_lists[*slot];
        let here = || format!("call {number}, of an {kind}: {function}{arguments:?}");
        let failed = match (&result, answer) {
            (Ok(value), Term::Tuple(said)) => {
                let (value, said) = (normal(value, order), normal(&said[1], order));
                let is_alike = !signs_matter && value.is_identical(&said);
                assert!(
                    is_same(&value, &said) || is_alike || is_chunk && knows_the_end(&value, &said),
                    "{}: {value}, in Erlang {said}",
                    here()
                );
                false
            }
            (Err(_), Term::Atom(_)) => true,
            (result, said) => panic!("{}: {result:?}, in Erlang {said}", here()),
        };
        self.told.entry(function).or_default()[usize::from(failed)] += 1;
    }
}

/// Whether a call deletes a range of keys from a table whose rows all have two elements.
fn removes_range(operation: &Operation) -> bool {
    let [argument] = operation.arguments.as_slice() else {
        return false;
    };
    let spec = match operation.function {
        "select_delete" => MatchSpec::compile(argument),
        "match_delete" => MatchSpec::from_pattern(argument, Returns::True),
        _ => return false,
    };
    let said = spec.map_or(String::new(), |spec| spec.explain(0));
    said.ends_with("as a range") && !said.contains("if all rows")
        || said.contains("have 2 elements")
}

#[test]
fn erlang_agrees_about_every_call() {
    let seed = from_environment("TREMULA_SEED", SEED);
    println!("TREMULA_SEED={seed}");
    let usual = if std::env::var_os("TREMULA_DEEP").is_some() {
        DEEP_CALLS
    } else {
        CALLS
    };
    let count = from_environment("TREMULA_TABLE_CALLS", usual);
    let mut maker = Operations::new(seed);
    let mut oracle = Oracle::start("erlang_tables");
    let mut run = Run::default();
    let mut made = 0;
    while made < count {
        let some = CALLS_AT_ONCE.min(count - made);
        let operations: Vec<_> = (0..some).map(|_| maker.next()).collect();
        let questions: Vec<_> = operations.iter().map(Operation::to_term).collect();
        let answers = oracle.ask("tables", &questions);
        for (number, (operation, answer)) in (made..).zip(operations.iter().zip(&answers)) {
            run.compare(number, operation, answer);
        }
        made += some;
        println!("{made} calls are the same");
    }
    let Run { told, ranges, .. } = run;
    println!("calls that returned something, and that failed: {told:?}");
    // Otherwise the generator would miss the interesting cases.
    if count >= CALLS {
        for (function, [returned, failed]) in &told {
            assert!(*returned > 100, "{function} returned {returned} times");
            let can_fail = matches!(
                *function,
                "insert" | "update_counter" | "update_element" | "chunk" | "select_replace"
            );
            assert!(
                !can_fail || *failed > 100,
                "{function} failed {failed} times"
            );
        }
        assert!(told.len() >= 30, "{} functions", told.len());
        assert!(ranges > 100, "{ranges} ranges were removed");
    }
}

#[test]
fn files_that_erlang_wrote_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let long = Term::binary(&vec![7; 70_000]);
    let mut rows: Vec<_> = (0..300)
        .map(|n| Term::tuple([Term::from(n), Term::from(n * n)]))
        .collect();
    rows.push(Term::tuple([Term::atom("long").unwrap(), long]));
    let mut oracle = Oracle::start("erlang_files");
    for (name, options, extended) in [
        ("a.tab", "[set, public]", "[]"),
        (
            "b.tab",
            "[ordered_set, {keypos, 2}]",
            "[object_count, md5sum]",
        ),
        (
            "c.tab",
            "[duplicate_bag, private, compressed]",
            "[object_count]",
        ),
    ] {
        let path = folder.path().join(name);
        let question = Term::tuple([
            Term::binary(path.to_str().unwrap().as_bytes()),
            options.parse().unwrap(),
            Term::list(rows.clone()),
            extended.parse().unwrap(),
        ]);
        assert!(oracle.ask("files", &[question])[0].is_identical(&Term::from(true)));
        let tables = Tables::new();
        let table = tables
            .file2tab(&path)
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(table.name().text(), "from_erlang");
        let mut found: Vec<_> = table
            .tab2list()
            .unwrap()
            .into_iter()
            .map(|row| Exact(row.into()))
            .collect();
        let mut all: Vec<_> = rows.iter().cloned().map(Exact).collect();
        found.sort();
        all.sort();
        assert_eq!(found, all, "{name}");
        // Every truncation is noticed.
        let bytes = std::fs::read(&path).unwrap();
        for length in (0..bytes.len()).step_by(997) {
            std::fs::write(&path, &bytes[..length]).unwrap();
            let error = tables.file2tab(&path).unwrap_err();
            assert!(error.to_string().contains("byte "), "{error}");
        }
        assert_eq!(tables.all().len(), 1);
    }
}
