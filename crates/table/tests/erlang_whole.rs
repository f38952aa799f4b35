//! Compares what concerns whole tables with a real Erlang: names, `info`, files, limits, and trying
//! out match specifications. These tests need `escript`; without it they fail and say how to get
//! it.

mod support;

use std::path::Path;
use support::calls::{BadCall, Called};
use support::oracle::Oracle;
use tremula_table::term::Atom;
use tremula_table::{Chunk, FileProblem, MatchSpec, Options, Owner, Table, Tables, Term};

fn term(text: &str) -> Term {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn atom(text: &str) -> Term {
    Term::atom(text).unwrap()
}

fn bad(why: impl ToString) -> BadCall {
    BadCall(why.to_string())
}

/// An owner here and a real Erlang, which get the same calls.
struct Both {
    oracle: Oracle,
    owner: Owner,
    folder: tempfile::TempDir,
}

impl Both {
    fn start(name: &str) -> Self {
        Self {
            oracle: Oracle::start(name),
            owner: Tables::new().owner(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// The path of a file for one side.
    fn path(&self, side: &str, name: &Term) -> Term {
        let path = self.folder.path().join(format!("{side}-{name}"));
        Term::binary(path.to_str().unwrap().as_bytes())
    }

    fn said(&mut self, function: &str, arguments: Vec<Term>) -> Option<Term> {
        let question = Term::tuple([atom(function), Term::list(arguments)]);
        match self.oracle.ask("ets", &[question]).remove(0) {
            Term::Tuple(answer) => Some(answer[1].clone()),
            _ => None,
        }
    }

    /// Makes a call on both sides, compares the results, and returns the text of the result. An
    /// argument names a file; each side has its own path for it.
    fn call(&mut self, function: &str, arguments: &str) -> String {
        let given: Vec<_> = match term(arguments) {
            Term::List(list) => list.iter().cloned().collect(),
            other => panic!("{other} are no arguments"),
        };
        let (mut here, mut there) = (given.clone(), given);
        if let "tab2file" | "file2tab" = function {
            let file = here.pop().unwrap();
            here.push(self.path("ours", &file));
            there.pop();
            there.push(self.path("theirs", &file));
        }
        let said = self.said(function, there);
        let value = call(&self.owner, function, &here);
        let text = |term: &Term| term.to_string();
        let (ours, theirs) = (value.as_ref().ok().map(text), said.as_ref().map(text));
        assert_eq!(
            ours, theirs,
            "{function}({arguments}): {value:?}, and there"
        );
        ours.unwrap_or_else(|| "badarg".to_owned())
    }
}

fn call(owner: &Owner, function: &str, arguments: &[Term]) -> Called {
    let table = |name: &Term| owner.find(name).ok_or_else(|| bad("no table"));
    let path = |name: &Term| match name {
        Term::Bitstring(name) => String::from_utf8(name.bytes().to_vec()).unwrap(),
        other => panic!("{other} is no path"),
    };
    let name_of = |table: &Table| Term::from(table.name());
    let error = |reason: &str| Term::tuple([Atom::ERROR.into(), atom(reason)]);
    let key = |key: Option<Term>| key.unwrap_or(Atom::END_OF_TABLE.into());
    Ok(match (function, arguments) {
        ("new", [Term::Atom(name), options]) => {
            name_of(&owner.create(name.text(), Options::from_term(options)?)?)
        }
        ("rename", [of, Term::Atom(name)]) => {
            table(of)?.rename(name.text())?;
            Term::from(*name)
        }
        ("delete", [of]) => {
            table(of)?.delete()?;
            true.into()
        }
        ("insert", [of, rows]) => {
            table(of)?.insert(rows.clone())?;
            true.into()
        }
        ("delete_object", [of, row]) => {
            table(of)?.delete_object(row)?;
            true.into()
        }
        ("first", [of]) => key(table(of)?.first()?),
        ("last", [of]) => key(table(of)?.last()?),
        ("next", [of, behind]) => key(table(of)?.next(behind)?),
        ("info", [of, item]) => match owner.find(of) {
            Some(table) => table.info_item(item)?,
            None => Atom::UNDEFINED.into(),
        },
        ("binary_sizes", [of]) => {
            let Term::List(all) = table(of)?.info_item(&atom("binary"))? else {
                panic!("a list");
            };
            let sizes = all.iter().map(|one| match one {
                Term::Tuple(one) => one[1].clone(),
                other => panic!("{other} is no binary"),
            });
            let mut sizes: Vec<_> = sizes.collect();
            sizes.sort();
            Term::list(sizes)
        }
        ("has_stats", [of]) => {
            let stats = table(of)?.info_item(&atom("stats"))?;
            matches!(stats, Term::Tuple(_)).into()
        }
        ("chunk", [of, pattern, limit]) => {
            let Term::Integer(limit) = limit else {
                return Err(bad("no limit"));
            };
            let limit = usize::try_from(*limit).map_err(bad)?;
            match table(of)?.match_pattern_limit(pattern, limit)? {
                None => Atom::END_OF_TABLE.into(),
                Some(Chunk { found, rest, .. }) => {
                    let rest = rest.map_or(Atom::END_OF_TABLE.into(), |_| atom("more"));
                    Term::tuple([Term::list(found), rest])
                }
            }
        }
        ("test_ms", [of, spec]) => match MatchSpec::test(spec, of) {
            Ok(made) => Term::tuple([Atom::OK.into(), made.unwrap_or(false.into())]),
            Err(_) => Atom::ERROR.into(),
        },
        ("match_spec_run", [Term::List(all), spec]) if all.is_proper() => {
            let spec = MatchSpec::compile(spec).map_err(bad)?;
            let mut matcher = spec.matcher();
            let made = all.iter().filter_map(|one| matcher.run_term(one));
            Term::list(made.collect::<Vec<_>>())
        }
        ("match_spec_run", _) => return Err(bad("no list")),
        ("tab2file", [of, name]) => match table(of) {
            Ok(table) => {
                table.tab2file(path(name), &[]).map_err(bad)?;
                Atom::OK.into()
            }
            Err(_) => error("badtab"),
        },
        ("file2tab", [name]) => match owner.file2tab(path(name)) {
            Ok(table) => Term::tuple([Atom::OK.into(), name_of(&table)]),
            Err(failed) => match *failed.problem {
                FileProblem::Table(_) => error("cannot_create_table"),
                other => panic!("{other}"),
            },
        },
        _ => panic!("no call of {function} with {arguments:?}"),
    })
}

/// Fails if a table can be renamed to its own name, which is taken.
#[test]
fn erlang_agrees_about_names() {
    let mut both = Both::start("erlang_names");
    both.call("new", "[t, [named_table]]");
    both.call("new", "[u, [named_table]]");
    assert_eq!(both.call("rename", "[t, t]"), "badarg");
    assert_eq!(both.call("rename", "[t, u]"), "badarg");
    assert_eq!(both.call("rename", "[t, v]"), "v");
    assert_eq!(both.call("rename", "[u, t]"), "t");
    both.call("delete", "[t]");
    assert_eq!(both.call("rename", "[v, t]"), "t");
    assert_eq!(both.call("rename", "[v, w]"), "badarg");
    assert_eq!(both.call("info", "[t, nothing]"), "badarg");
    assert_eq!(both.call("info", "[v, nothing]"), "undefined");
}

/// Compares `info` for every table that the options can make. Fails if it shows an option as
/// requested where Erlang shows what the table has.
#[test]
fn erlang_agrees_about_what_a_table_is() {
    const ITEMS: [&str; 9] = [
        "type",
        "protection",
        "keypos",
        "name",
        "named_table",
        "compressed",
        "read_concurrency",
        "write_concurrency",
        "decentralized_counters",
    ];
    let mut both = Both::start("erlang_info");
    let mut kinds_of_counters = [0, 0];
    for kind in ["set", "ordered_set", "bag", "duplicate_bag"] {
        for access in ["public", "protected", "private"] {
            for write in ["false", "true", "auto"] {
                for rest in [
                    "",
                    ", {decentralized_counters, true}, {read_concurrency, true}",
                    ", {decentralized_counters, false}, {keypos, 2}, compressed",
                ] {
                    both.call(
                        "new",
                        &format!("[t, [named_table, {kind}, {access}, {{write_concurrency, {write}}}{rest}]]"),
                    );
                    for item in ITEMS {
                        let value = both.call("info", &format!("[t, {item}]"));
                        if item == "decentralized_counters" {
                            kinds_of_counters[usize::from(value == "true")] += 1;
                        }
                    }
                    both.call("delete", "[t]");
                }
            }
        }
    }
    assert!(kinds_of_counters.iter().all(|count| *count > 20));
}

/// Fails if `info(binary)` lacks binaries, or lists others than those that Erlang keeps outside the
/// rows.
#[test]
fn erlang_agrees_about_the_binaries_of_a_table() {
    let mut both = Both::start("erlang_binaries");
    for kind in ["set", "ordered_set", "bag"] {
        both.call("new", &format!("[t, [named_table, {kind}]]"));
        assert_eq!(both.call("binary_sizes", "[t]"), "[]");
        for size in [1, 64, 65, 100, 1000] {
            let (key, text) = ("k".repeat(size), "v".repeat(size));
            both.call(
                "insert",
                &format!("[t, {{{size}, [x, {{<<\"{text}\">>}}]}}]"),
            );
            both.call(
                "insert",
                &format!("[t, {{<<\"{key}\">>, #{{a => <<\"{text}\">>}}}}]"),
            );
        }
        let sizes = both.call("binary_sizes", "[t]");
        assert_eq!(sizes, "[65,65,65,100,100,100,1000,1000,1000]");
        both.call("delete", "[t]");
    }
    for kind in ["set", "bag"] {
        both.call("new", &format!("[t, [named_table, {kind}]]"));
        assert_eq!(both.call("has_stats", "[t]"), "true");
        both.call("delete", "[t]");
    }
}

/// Fails if a table comes back from its file with other properties, for example with another
/// access.
#[test]
fn erlang_agrees_about_tables_that_come_back_from_files() {
    let mut both = Both::start("erlang_file2tab");
    for access in ["public", "protected", "private"] {
        for options in ["set", "ordered_set, {keypos, 2}", "bag, compressed"] {
            both.call("new", &format!("[t, [named_table, {options}, {access}]]"));
            both.call("insert", "[t, [{a, 1}, {b, 2}]]");
            both.call("tab2file", "[t, file]");
            assert_eq!(
                both.call("file2tab", "[file]"),
                "{error,cannot_create_table}"
            );
            both.call("delete", "[t]");
            assert_eq!(both.call("tab2file", "[t, other]"), "{error,badtab}");
            assert_eq!(both.call("file2tab", "[file]"), "{ok,t}");
            for item in [
                "type",
                "protection",
                "keypos",
                "named_table",
                "size",
                "compressed",
            ] {
                both.call("info", &format!("[t, {item}]"));
            }
            assert_eq!(both.call("info", "[t, protection]"), access);
            both.call("delete", "[t]");
            // Erlang's file is read here, too.
            let Term::Bitstring(theirs) = both.path("theirs", &atom("file")) else {
                panic!("a path");
            };
            let theirs = String::from_utf8(theirs.bytes().to_vec()).unwrap();
            let table = both.owner.file2tab(Path::new(&theirs)).unwrap();
            assert_eq!(table.info().unwrap().access.atom().text(), access);
            table.delete().unwrap();
        }
    }
}

/// Fails if a limit of 2^59 or more is accepted.
#[test]
fn erlang_agrees_about_limits() {
    let mut both = Both::start("erlang_limits");
    both.call("new", "[t, [named_table]]");
    both.call("insert", "[t, [{a, 1}]]");
    for limit in [
        "0",
        "-1",
        "1",
        "576460752303423487",
        "576460752303423488",
        "9223372036854775807",
        "18446744073709551616",
        "a",
    ] {
        both.call("chunk", &format!("[t, {{'$1', '_'}}, {limit}]"));
    }
}

/// Fails if a step returns `0.0` for the row with `-0.0` that replaced it.
#[test]
fn erlang_agrees_about_the_signs_of_zeros() {
    let mut both = Both::start("erlang_zeros");
    for kind in ["set", "ordered_set", "bag", "duplicate_bag"] {
        for (old, new) in [
            ("0.0", "-0.0"),
            ("-0.0", "0.0"),
            ("{x, 0.0}", "{x, -0.0}"),
            ("{x, [0.0]}", "{x, [-0.0]}"),
            ("[1 | -0.0]", "[1 | 0.0]"),
            ("#{a => [0.0]}", "#{a => [-0.0]}"),
        ] {
            both.call("new", &format!("[t, [named_table, {kind}]]"));
            both.call("insert", &format!("[t, {{{old}, a}}]"));
            both.call("first", "[t]");
            both.call("insert", &format!("[t, {{{new}, b}}]"));
            both.call("first", "[t]");
            both.call("last", "[t]");
            both.call("next", &format!("[t, {old}]"));
            if kind.ends_with("bag") {
                both.call("delete_object", &format!("[t, {{{new}, b}}]"));
                both.call("first", "[t]");
            }
            both.call("delete", "[t]");
        }
    }
}

/// Fails if a term that is not a row is refused, or matches another clause than in Erlang.
#[test]
fn erlang_agrees_about_specifications_of_what_is_no_row() {
    const TERMS: [&str; 14] = [
        "1",
        "1.0",
        "0.0",
        "-0.0",
        "a",
        "{1}",
        "{}",
        "[]",
        "[1]",
        "[1, 2]",
        "\"ab\"",
        "#{}",
        "#{a => 1, b => 2}",
        "<<\"a\">>",
    ];
    let mut both = Both::start("erlang_no_rows");
    let all = TERMS.join(",");
    let heads = TERMS.into_iter().chain([
        "'_'",
        "'$1'",
        "['$1']",
        "['$1' | '_']",
        "['$1' | '$2']",
        "['$1' | '$1']",
        "#{a => '$1'}",
        "{'$1'}",
    ]);
    for head in heads {
        for rest in [
            "[], ['$_']",
            "[{is_integer, '$1'}], [{{'$1', '$_'}}]",
            "[], ['$$']",
        ] {
            let spec = format!("[{{{head}, {rest}}}, {{{{'_'}}, [], [row]}}]");
            both.call("match_spec_run", &format!("[[{all}], {spec}]"));
            for one in TERMS {
                both.call("test_ms", &format!("[{one}, {spec}]"));
            }
        }
    }
    for wrong in [
        "foo",
        "[]",
        "[foo]",
        "[{foo}]",
        "[{{'_'}, foo, [true]}]",
        "[{{'_'}, [{foo}], [true]}]",
        "[{{'_'}, [], []}]",
        "[{{'_'}, [], [true]} | x]",
        "[{{'_'}, [], [{}]}]",
    ] {
        assert_eq!(both.call("test_ms", &format!("[{{1}}, {wrong}]")), "error");
        assert_eq!(
            both.call("match_spec_run", &format!("[[{{1}}], {wrong}]")),
            "badarg"
        );
    }
    for no_list in ["1", "[1 | x]", "{1}"] {
        let called = both.call(
            "match_spec_run",
            &format!("[{no_list}, [{{'_', [], ['$_']}}]]"),
        );
        assert_eq!(called, "badarg");
    }
}
