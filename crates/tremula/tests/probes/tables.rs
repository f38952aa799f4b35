//! Erlang's tables from Rust.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tremula::table::serde::{from_row, from_term, to_row, to_term};
use tremula::table::term::{Atom, Tuple};
use tremula::table::{
    Access, BadArgument, Kind, MatchSpec, Options, Table, Tables, Term, match_spec,
};

fn table(kind: Kind) -> Table {
    let table = Tables::new()
        .create("probe", Options::new().kind(kind))
        .unwrap();
    table
        .insert_rows([(1, "ann"), (2, "ben"), (3, "cho")])
        .unwrap();
    table
}

#[test]
fn a_row_is_compared_with_a_tuple() -> Result<(), BadArgument> {
    let table = table(Kind::Set);
    assert_eq!(table.get(&2.into())?.unwrap(), (2, "ben"));
    assert_eq!(table.lookup(&1.into())?, [(1, "ann")]);
    assert_eq!(table.get(&9.into())?, None);
    Ok(())
}

#[test]
fn a_row_is_read_into_variables() {
    let row = table(Kind::Set).get(&2.into()).unwrap().unwrap();
    let (id, name): (i64, String) = row.try_into().unwrap();
    assert_eq!((id, name.as_str()), (2, "ben"));
}

#[test]
fn fields_of_a_row_are_indexed() {
    let row = table(Kind::Set).get(&2.into()).unwrap().unwrap();
    assert_eq!((row[0].as_i64(), row[1].as_str()), (Some(2), Some("ben")));
    assert_eq!((row.len(), row.iter().count()), (2, 2));
}

#[test]
fn rows_are_shown_as_erlang_shows_them() {
    let row = Tuple::from((1, "ann", true, [7, 8]));
    assert_eq!(row.to_string(), "{1,<<\"ann\">>,true,[7,8]}");
    assert_eq!(format!("{row:?}"), row.to_string());
}

#[test]
fn terms_from_rust_values() {
    assert_eq!(Term::from(7), 7);
    assert_eq!(Term::from("ann"), "ann");
    assert_eq!(Term::from(vec![1, 2]), [1, 2]);
    assert_eq!(Term::from((1, "a")), (1, "a"));
    assert_eq!(Term::from(None::<i64>), Term::atom("undefined").unwrap());
    assert_eq!(
        Term::from(BTreeMap::from([(1, "a")])).to_string(),
        "#{1 => <<\"a\">>}"
    );
}

#[test]
fn rust_values_from_terms() {
    let term: Term = "{7, [1.5, 2], ok, <<\"text\">>}".parse().unwrap();
    let (number, floats, atom, text): (u8, Vec<f64>, Atom, &str) = (&term).try_into().unwrap();
    assert_eq!(
        (number, floats, atom, text),
        (7, vec![1.5, 2.0], Atom::OK, "text")
    );
}

#[test]
fn floats_in_rows() {
    let table = Tables::new().create("floats", Options::new()).unwrap();
    table.insert_row(("pi", 3.5)).unwrap();
    assert_eq!(table.get(&"pi".into()).unwrap().unwrap(), ("pi", 3.5));
}

#[test]
fn insert_new_refuses_a_taken_key() {
    let table = table(Kind::Set);
    assert_eq!(table.insert_new_row((1, "zoe")), Ok(false));
    assert_eq!(table.insert_new_row((4, "zoe")), Ok(true));
    assert_eq!(table.size(), Ok(4));
}

#[test]
fn counters() {
    let table = Tables::new().create("hits", Options::new()).unwrap();
    table.insert_row(("home", 0, 0)).unwrap();
    let home = Term::from("home");
    assert_eq!(table.update_counter(&home, &5.into()).unwrap(), 5);
    assert_eq!(table.update_counter(&home, &(3, 1).into()).unwrap(), 1);
    assert_eq!(
        table
            .update_counter_or(&"new".into(), &1.into(), ("new", 9).into())
            .unwrap(),
        10
    );
}

#[test]
fn elements_are_looked_up_and_updated() {
    let (table, key) = (table(Kind::Set), Term::from(1));
    assert_eq!(table.update_element(&key, &(2, "amy").into()), Ok(true));
    assert_eq!(table.lookup_element(&key, 2).unwrap(), "amy");
}

#[test]
fn rows_are_taken_and_deleted() {
    let table = table(Kind::Set);
    assert_eq!(table.take(&1.into()).unwrap(), [(1, "ann")]);
    table.delete_key(&2.into()).unwrap();
    assert!(!table.member(&2.into()).unwrap());
    assert_eq!(table.size(), Ok(1));
}

#[test]
fn an_ordered_table_is_walked() -> Result<(), BadArgument> {
    let table = table(Kind::OrderedSet);
    let mut keys = Vec::new();
    let mut at = table.first()?;
    while let Some(key) = at {
        at = table.next(&key)?;
        keys.push(key.as_i64().unwrap());
    }
    assert_eq!(keys, [1, 2, 3]);
    Ok(())
}

#[test]
fn a_bag_holds_several_rows_of_a_key() {
    let table = table(Kind::Bag);
    table.insert_row((1, "amy")).unwrap();
    assert_eq!(table.lookup(&1.into()).unwrap(), [(1, "ann"), (1, "amy")]);
}

#[test]
fn a_match_specification_by_the_macro() {
    let table = table(Kind::OrderedSet);
    let spec = MatchSpec::compile(&match_spec!(|{id, name}| when id > 1 => name)).unwrap();
    assert_eq!(table.select(&spec).unwrap(), ["ben", "cho"]);
    assert_eq!(
        table.select_count(&spec),
        Ok(0),
        "only bodies that are true count"
    );
}

#[test]
fn a_match_specification_by_text() {
    let table = table(Kind::OrderedSet);
    let spec = MatchSpec::compile(&"[{{'$1', '_'}, [{'<', '$1', 3}], [true]}]".parse().unwrap());
    assert_eq!(table.select_delete(&spec.unwrap()), Ok(2));
    assert_eq!(table.first().unwrap().unwrap(), 3);
}

#[test]
fn threads_share_a_public_table() {
    let options = Options::new().access(Access::Public);
    let table = Tables::new().create("shared", options).unwrap();
    std::thread::scope(|scope| {
        for number in 0..4 {
            let table = &table;
            scope.spawn(move || table.insert_row((number, "x")).unwrap());
        }
    });
    assert_eq!(table.size(), Ok(4));
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct User {
    id: u64,
    name: String,
    tags: Vec<String>,
    parent: Option<u64>,
}

fn ann() -> User {
    User {
        id: 7,
        name: "ann".into(),
        tags: vec!["new".into()],
        parent: None,
    }
}

#[test]
fn a_struct_is_a_row() {
    let users = Tables::new().create("users", Options::new()).unwrap();
    users.insert(to_term(&ann()).unwrap()).unwrap();
    let row = users.get(&7.into()).unwrap().unwrap();
    assert_eq!(from_row::<User>(&row).unwrap(), ann());
}

#[test]
fn a_struct_is_inserted_as_a_row() {
    let users = Tables::new().create("users", Options::new()).unwrap();
    users.insert_row(to_row(&ann()).unwrap()).unwrap();
    assert_eq!(users.get(&7.into()).unwrap().unwrap()[1], "ann");
}

#[test]
fn an_enum_is_a_term() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum State {
        Idle,
        Busy(u32),
    }
    assert_eq!(to_term(&State::Idle).unwrap(), Term::atom("idle").unwrap());
    let busy: State = from_term(&to_term(&State::Busy(3)).unwrap()).unwrap();
    assert_eq!(busy, State::Busy(3));
}
