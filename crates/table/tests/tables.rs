//! Examples of what each function of a table does.

use tremula_index::{Engine, Keys};
use tremula_papers::AnyEngine;
use tremula_table::term::Tuple;
use tremula_table::{
    Access, BadArgument, Kind, Options, Problem, Table, Tables, Term, WriteConcurrency,
};

fn term(text: &str) -> Term {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn table(kind: Kind) -> Table {
    Tables::new()
        .create("t", Options::new().kind(kind))
        .unwrap()
}

/// A table of each type, and an `ordered_set` on each engine.
fn all_tables() -> Vec<Table> {
    let tables = Tables::new();
    let mut all = Vec::new();
    for kind in Kind::ALL {
        for write in [WriteConcurrency::Off, WriteConcurrency::On] {
            let options = Options::new().kind(kind).write_concurrency(write);
            all.push(tables.create("t", options.clone()).unwrap());
            all.push(tables.create("t", options.compressed()).unwrap());
        }
    }
    for engine in AnyEngine::ALL {
        let options = Options::new().kind(Kind::OrderedSet).engine(engine);
        match tables.create("t", options) {
            Ok(table) => all.push(table),
            Err(error) => assert!(engine.facts().keys == Keys::Bytes, "{error}"),
        }
    }
    all
}

fn text(rows: Vec<Tuple>) -> String {
    Term::list(rows.into_iter().map(Term::from).collect::<Vec<_>>()).to_string()
}

fn problem<T: std::fmt::Debug>(result: Result<T, BadArgument>) -> Problem {
    result.unwrap_err().problem
}

/// Equal keys of an `ordered_set` need not be identical; a step returns the key of the row.
#[test]
fn steps_give_the_key_of_the_row_and_not_its_equal() {
    let pairs = [
        ("1", "1.0"),
        ("1.0", "1"),
        ("{1}", "{1.0}"),
        ("{1.0}", "{1}"),
        ("{a,[1]}", "{a,[1.0]}"),
        ("[{1}]", "[{1.0}]"),
        ("#{a => 1}", "#{a => 1.0}"),
    ];
    for (old, new) in pairs {
        for table in all_tables() {
            if table.kind() != Kind::OrderedSet {
                continue;
            }
            for row in [format!("{{{old},1}}"), format!("{{{new},2}}")] {
                table.insert(term(&row)).unwrap();
            }
            let new = term(new);
            let before = term("0");
            for key in [
                table.first().unwrap(),
                table.last().unwrap(),
                table.next(&before).unwrap(),
            ] {
                let key = key.unwrap();
                assert!(key.is_identical(&new), "{key} of the row with {new}");
            }
        }
    }
}

#[test]
fn rows_come_back_as_they_were_put_in() {
    for table in all_tables() {
        for row in [
            "{1}",
            "{2,two}",
            "{a}",
            "{<<\"key\">>}",
            "{<<\"key 2\">>,[]}",
            "{[1]}",
            "{{1,2}}",
            "{2.5}",
            "{100000000000000000000}",
            "{#{a => 1}}",
            "{[]}",
            "{[],x}",
        ] {
            let row = term(row);
            table.insert(row.clone()).unwrap();
            let Term::Tuple(tuple) = &row else {
                panic!("a row")
            };
            let found = table.lookup(&tuple[0]).unwrap();
            assert!(
                found
                    .iter()
                    .any(|found| Term::from(found.clone()).is_identical(&row)),
                "{row}"
            );
            assert!(table.member(&tuple[0]).unwrap());
        }
        assert_eq!(table.lookup(&term("nothing")).unwrap().len(), 0);
    }
}

#[test]
fn long_rows_are_compressed_and_come_back() {
    let tables = Tables::new();
    let long =
        "{Key, [{key, Key}], <<0:8000>>, \"a text that is there a text that is there a text\"}";
    let keys = ["1", "1.0", "a", "[]", "{1,2.0}", "<<\"k\">>"];
    for kind in Kind::ALL {
        let plain = tables.create("t", Options::new().kind(kind)).unwrap();
        let packed = tables
            .create("t", Options::new().kind(kind).compressed())
            .unwrap();
        for key in keys {
            let row = term(&long.replace("Key", key));
            plain.insert(row.clone()).unwrap();
            packed.insert(row.clone()).unwrap();
            let found = packed.lookup(&term(key)).unwrap();
            assert_eq!(found.len(), 1);
            assert!(Term::from(found[0].clone()).is_identical(&row), "{key}");
        }
        assert_eq!(
            text(packed.tab2list().unwrap()).len(),
            text(plain.tab2list().unwrap()).len()
        );
        assert!(packed.memory() < plain.memory());
    }
}

#[test]
fn an_ordered_set_tells_keys_apart_by_value_and_keeps_the_last_row() {
    for table in all_tables() {
        if table.info().unwrap().kind != Kind::OrderedSet {
            continue;
        }
        let found = |key: &str| text(table.lookup(&term(key)).unwrap());
        table.insert(term("{1}")).unwrap();
        assert_eq!(found("1.0"), "[{1}]");
        table.insert(term("{1.0}")).unwrap();
        assert_eq!(found("1"), "[{1.0}]");
        assert_eq!(table.first().unwrap().unwrap().to_string(), "1.0");
        table.insert(term("{1}")).unwrap();
        assert_eq!(found("1.0"), "[{1}]");
        assert_eq!(table.size().unwrap(), 1);
        table.delete_object(&term("{1.0}")).unwrap();
        assert_eq!(table.size().unwrap(), 1, "matched by identity");
        table.insert(term("{1.0, 5}")).unwrap();
        assert_eq!(
            table.update_counter(&term("1"), &term("2")).unwrap(),
            term("7")
        );
        assert_eq!(found("1"), "[{1.0,7}]", "the stored key stays");
        assert_eq!(
            table
                .update_counter_or(&term("7.0"), &term("{2,1}"), term("{9,1}"))
                .unwrap(),
            term("2")
        );
        assert_eq!(found("7"), "[{7.0,2}]");
    }
}

#[test]
fn the_hash_types_tell_keys_apart_by_identity() {
    for kind in [Kind::Set, Kind::Bag, Kind::DuplicateBag] {
        let table = table(kind);
        table.insert(term("[{1},{1.0}]")).unwrap();
        assert_eq!(table.size().unwrap(), 2);
        assert_eq!(text(table.take(&term("1.0")).unwrap()), "[{1.0}]");
        assert_eq!(text(table.tab2list().unwrap()), "[{1}]");
    }
}

#[test]
fn bags_keep_the_order_of_insertion() {
    let bag = table(Kind::Bag);
    let duplicates = table(Kind::DuplicateBag);
    for table in [&bag, &duplicates] {
        for value in [3, 1, 2, 1] {
            table
                .insert(Term::tuple([term("k"), Term::from(value)]))
                .unwrap();
        }
    }
    assert_eq!(text(bag.lookup(&term("k")).unwrap()), "[{k,3},{k,1},{k,2}]");
    assert_eq!(
        text(duplicates.lookup(&term("k")).unwrap()),
        "[{k,3},{k,1},{k,2},{k,1}]"
    );
    assert_eq!(
        duplicates.lookup_element(&term("k"), 2).unwrap(),
        term("[3,1,2,1]")
    );
    duplicates.delete_object(&term("{k,1}")).unwrap();
    assert_eq!(
        text(duplicates.lookup(&term("k")).unwrap()),
        "[{k,3},{k,2}]"
    );
    duplicates.insert(term("{k}")).unwrap();
    assert_eq!(duplicates.size().unwrap(), 3);
    assert_eq!(
        text(duplicates.take(&term("k")).unwrap()),
        "[{k,3},{k,2},{k}]"
    );
    assert_eq!((duplicates.size().unwrap(), bag.size().unwrap()), (0, 3));
    bag.delete_all_objects().unwrap();
    assert_eq!(bag.size().unwrap(), 0);
}

#[test]
fn a_list_is_inserted_wholly_or_not_at_all() {
    for table in all_tables() {
        table.insert(term("[]")).unwrap();
        assert!(table.insert_new(term("[]")).unwrap());
        for bad in ["[{1}, {}]", "[{1}, a]", "[{1} | {2}]", "a", "{}"] {
            assert!(table.insert(term(bad)).is_err(), "{bad}");
            assert!(table.insert_new(term(bad)).is_err(), "{bad}");
        }
        assert_eq!(table.size().unwrap(), 0);
        assert!(table.insert_new(term("[{1}, {2}]")).unwrap());
        assert!(!table.insert_new(term("[{3}, {2}]")).unwrap());
        assert!(!table.insert_new(term("{2, x}")).unwrap());
        assert_eq!(table.size().unwrap(), 2);
    }
}

#[test]
fn the_key_may_be_elsewhere() {
    let options = Options::new().kind(Kind::OrderedSet).keypos(2);
    let table = Tables::new().create("t", options).unwrap();
    table.insert(term("[{b, 2}, {a, 1}, {c, 3, 30}]")).unwrap();
    assert_eq!(text(table.tab2list().unwrap()), "[{a,1},{b,2},{c,3,30}]");
    assert_eq!(
        table.update_counter(&term("3"), &term("5")).unwrap(),
        term("35")
    );
    assert!(matches!(
        problem(table.insert(term("{a}"))),
        Problem::NoKey { keypos: 2, .. }
    ));
    assert_eq!(
        problem(table.update_counter(&term("3"), &term("{2,1}"))),
        Problem::KeyPosition(2)
    );
}

#[test]
fn counters_turn_over_and_grow_without_end() {
    let table = table(Kind::Set);
    table.insert(term("{k, 2, 9223372036854775807}")).unwrap();
    let count = |update: &str| table.update_counter(&term("k"), &term(update));
    assert_eq!(count("{2,5,3,7}").unwrap(), term("7"));
    assert_eq!(count("{2,-5,3,0}").unwrap(), term("0"));
    assert_eq!(count("{2,0,-3,9}").unwrap(), term("9"));
    assert_eq!(
        count("[{3,1},{2,1},{2,1}]").unwrap(),
        term("[9223372036854775808,10,11]")
    );
    assert_eq!(count("{3,-1}").unwrap(), term("9223372036854775807"));
    assert_eq!(count("[]").unwrap(), term("[]"));
    for bad in [
        "{2,a}",
        "{0,1}",
        "{9,1}",
        "{1,1}",
        "[{2,1},{9,1}]",
        "[1]",
        "{2,1,a,b}",
        "a",
    ] {
        assert_eq!(count(bad).unwrap_err().argument, 3, "{bad}");
    }
    assert_eq!(
        table.lookup_element(&term("k"), 2).unwrap(),
        term("11"),
        "all or nothing"
    );
    let absent =
        |default: &str| table.update_counter_or(&term("new"), &term("{2,1}"), term(default));
    assert!(absent("{x,a}").is_err() && absent("{}").is_err() && absent("x").is_err());
    assert!(!table.member(&term("new")).unwrap());
    assert_eq!(absent("{x,1}").unwrap(), term("2"));
    assert!(matches!(
        problem(table.update_counter(&term("none"), &term("1"))),
        Problem::KeyNotFound(_)
    ));
}

#[test]
fn elements_are_updated_all_or_none() {
    let table = table(Kind::Set);
    table.insert(term("{k, a, b}")).unwrap();
    let update = |key: &str, update: &str| table.update_element(&term(key), &term(update));
    assert!(update("k", "[{2, x}, {3, y}]").unwrap());
    assert!(update("k", "[{2, z}, {4, y}]").is_err());
    assert_eq!(text(table.tab2list().unwrap()), "[{k,x,y}]");
    assert!(!update("none", "{9, x}").unwrap());
    assert!(update("k", "[]").unwrap());
    assert!(
        table
            .update_element_or(&term("new"), &term("{2, 7}"), term("{x, 1}"))
            .unwrap()
    );
    assert_eq!(text(table.lookup(&term("new")).unwrap()), "[{new,7}]");
}

#[test]
fn steps_go_through_all_keys() {
    for table in all_tables() {
        for number in 0..100 {
            table.insert(Term::tuple([Term::from(number)])).unwrap();
        }
        let mut keys = Vec::new();
        let mut key = table.first().unwrap();
        while let Some(found) = key {
            key = table.next(&found).unwrap();
            keys.push(found);
        }
        let by_lookup = table.next_lookup(&keys[0]).unwrap().unwrap();
        assert_eq!(by_lookup.0, keys[1]);
        assert_eq!(by_lookup.1.len(), 1);
        let is_ordered = table.info().unwrap().kind == Kind::OrderedSet;
        assert_eq!(table.last().unwrap().as_ref() == keys.last(), is_ordered);
        assert_eq!(table.next(&term("nothing")).is_ok(), is_ordered);
        keys.sort();
        assert_eq!(keys, (0..100).map(Term::from).collect::<Vec<_>>());
        assert!(table.next(&term("'$end_of_table'")).is_err());
    }
}

#[test]
fn a_fixed_table_is_gone_through_while_rows_go_and_come() {
    for table in all_tables() {
        for number in 0..1000 {
            table.insert(Term::tuple([Term::from(number)])).unwrap();
        }
        table.safe_fixtable(true).unwrap();
        let mut seen = 0;
        let mut key = table.first().unwrap();
        let mut new = 1000;
        while let Some(found) = key {
            seen += i32::from(found < 1000);
            table.delete_key(&found).unwrap();
            for _ in 0..2 {
                if new < 3000 {
                    table.insert(Term::tuple([Term::from(new)])).unwrap();
                    new += 1;
                }
            }
            key = table.next(&found).unwrap();
        }
        assert_eq!(seen, 1000, "every row that was there throughout");
        let fixed = table.info_item(&term("safe_fixed")).unwrap().to_string();
        assert!(fixed.ends_with(",1}]}"), "{fixed}");
        table.safe_fixtable(false).unwrap();
        assert_eq!(table.info_item(&term("safe_fixed")).unwrap(), term("false"));
        assert_eq!(table.info_item(&term("fixed")).unwrap(), term("false"));
    }
}

#[test]
fn who_may_do_what() {
    let tables = Tables::new();
    let owner = tables.owner();
    for access in [Access::Public, Access::Protected, Access::Private] {
        let mine = owner.create("t", Options::new().access(access)).unwrap();
        let theirs = tables.find(&mine.id().into()).unwrap();
        mine.insert(term("{1}")).unwrap();
        assert_eq!(theirs.insert(term("{2}")).is_ok(), access == Access::Public);
        assert_eq!(theirs.lookup(&term("1")).is_ok(), access != Access::Private);
        assert_eq!(theirs.delete().is_ok(), access == Access::Public);
        assert!(theirs.info().is_some() || access == Access::Public);
    }
    let mine = owner.create("t", Options::new()).unwrap();
    let theirs = tables.find(&mine.id().into()).unwrap();
    assert_eq!(
        problem(theirs.insert(term("{1}"))),
        Problem::NoAccess(Access::Protected)
    );
    assert_eq!(problem(theirs.set_heir(None)), Problem::NotOwner);
    mine.setopts(&term("[{protection, public}, {heir, none}]"))
        .unwrap();
    theirs.insert(term("{1}")).unwrap();
    mine.delete().unwrap();
    assert_eq!(problem(theirs.insert(term("{1}"))), Problem::NoTable);
    assert_eq!(problem(mine.first()), Problem::NoTable);
    assert!(theirs.info().is_none());
    assert_eq!(theirs.info_item(&term("size")).unwrap(), term("undefined"));
}

#[test]
fn names_are_unique_and_can_be_changed() {
    let tables = Tables::new();
    let one = tables.create("one", Options::new().named()).unwrap();
    let error = tables.create("one", Options::new().named()).unwrap_err();
    assert_eq!(error.problem, Problem::NameTaken(term("one")));
    tables.create("one", Options::new()).unwrap();
    let two = tables.create("two", Options::new().named()).unwrap();
    assert_eq!(problem(two.rename("one")), Problem::NameTaken(term("one")));
    one.rename("three").unwrap();
    two.rename("one").unwrap();
    assert_eq!(tables.whereis("one").unwrap().id(), two.id());
    assert_eq!(tables.find(&term("three")).unwrap().id(), one.id());
    two.delete().unwrap();
    assert!(tables.whereis("one").is_none());
    assert_eq!(tables.all().len(), 2);
}

#[test]
fn a_table_goes_to_its_heir_or_is_deleted() {
    let tables = Tables::new();
    let mut heir = tables.owner();
    let mut owner = tables.owner();
    let lost = owner.create("lost", Options::new()).unwrap();
    let kept = owner
        .create("kept", Options::new().heir(heir.pid().clone(), term("d")))
        .unwrap();
    let given = heir.create("given", Options::new()).unwrap();
    given.give_away(owner.pid(), term("gift")).unwrap();
    assert_eq!(
        problem(given.insert(term("{1}"))),
        Problem::NoAccess(Access::Protected)
    );
    let transfer = owner.transfers().try_recv().unwrap();
    assert_eq!((&transfer.from, transfer.data), (heir.pid(), term("gift")));
    transfer
        .table
        .set_heir(Some(tremula_table::Heir {
            pid: heir.pid().clone(),
            data: term("e"),
        }))
        .unwrap();
    kept.safe_fixtable(true).unwrap();
    let from = owner.pid().clone();
    drop(owner);
    assert!(lost.is_deleted());
    assert_eq!(kept.info_item(&term("fixed")).unwrap(), term("false"));
    let mut data = Vec::new();
    while let Ok(transfer) = heir.transfers().try_recv() {
        assert_eq!(transfer.from, from);
        transfer.table.insert(term("{1}")).unwrap();
        data.push(transfer.data.to_string());
    }
    assert_eq!(data, ["d", "e"]);
    drop(heir);
    assert!(kept.is_deleted());
    assert!(tables.all().is_empty());
}

#[test]
fn options_are_read_as_in_erlang() {
    let kind = |text: &str| Options::from_term(&term(text)).unwrap().kind;
    assert_eq!(kind("[bag, set]"), Kind::Bag);
    assert_eq!(kind("[ordered_set, bag]"), Kind::Bag);
    assert_eq!(kind("[]"), Kind::Set);
    for bad in [
        "[foo]",
        "foo",
        "[set | bag]",
        "[{keypos, 0}]",
        "[{keypos, a}]",
        "[{heir, a}]",
        "[{engine, foo}]",
        "[{write_concurrency, 1}]",
    ] {
        assert!(Options::from_term(&term(bad)).is_err(), "{bad}");
    }
    let options = Options::from_term(&term(
        "[{write_concurrency,auto},public,named_table,compressed]",
    ));
    let info = Tables::new()
        .create("t", options.unwrap())
        .unwrap()
        .info()
        .unwrap();
    assert!(info.decentralized_counters && info.named && info.compressed);
    let error = Tables::new()
        .create("t", Options::new().engine(Engine::CaTree))
        .unwrap_err();
    assert!(error.to_string().contains("ca_tree"), "{error}");
}

#[test]
fn a_table_is_folded_and_filled_anew() {
    for table in all_tables() {
        table.insert(term("[{1, a}, {2, b}, {3, c}]")).unwrap();
        assert_eq!(table.foldl(0, |row, sum| sum + row.len()).unwrap(), 6);
        assert_eq!(table.foldr(0, |_, count| count + 1).unwrap(), 3);
        assert!(table.init_table([term("{7}"), term("x")]).is_err());
        assert_eq!(table.size().unwrap(), 3);
        table.init_table([term("{7}"), term("[{8}, {9}]")]).unwrap();
        assert_eq!(table.size().unwrap(), 3);
        assert!(table.member(&term("9")).unwrap() && !table.member(&term("1")).unwrap());
    }
}
