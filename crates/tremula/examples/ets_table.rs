//! A table of rows as Erlang's ETS has it: counters that many threads raise, questions as match
//! specifications, and a table that survives its owner.
//!
//! `cargo run -p tremula --features table --example ets_table`

use std::error::Error;
use std::thread;
use tremula::table::{Access, Kind, MatchSpec, Options, Owner, Table, Tables, Term};
use tremula::table::{BadArgument, WriteConcurrency};
use tremula::table::{match_spec, table::Increment};

/// The key of a user's row: `{user, Id}`.
fn user(id: i64) -> Term {
    Term::from((atom("user"), id))
}

fn atom(text: &str) -> Term {
    Term::atom(text).expect("a short text")
}

/// Counts a request, in one step: one more, of this size. The first makes the row
/// `{{user, Id}, Requests, Bytes}`.
fn count(table: &Table, id: i64, bytes: i64) -> Result<(), BadArgument> {
    let key = user(id);
    let both = [Increment::new(2, 1), Increment::new(3, bytes)];
    table.update_counter_or(&key, &both.into(), (&key, 0, 0).into())?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let tables = Tables::new();
    // The heir does nothing with the table but keep it while its owner is replaced.
    let mut heir = tables.owner();
    let owner = tables.owner();
    let options = Options::new()
        .kind(Kind::OrderedSet)
        .named()
        .access(Access::Public)
        .write_concurrency(WriteConcurrency::Auto)
        .heir(heir.pid().clone(), atom("the_owner_is_gone"));
    let table = owner.create("traffic", options)?;

    // Four threads count; no thread waits for a lock of the whole table.
    thread::scope(|scope| {
        let threads = [0, 1, 2, 3].map(|thread| {
            let table = &table;
            scope.spawn(move || {
                (0..1000).try_for_each(|turn| count(table, (turn * 7 + thread) % 100, 10))
            })
        });
        let mut results = threads.into_iter().map(|thread| thread.join());
        results.try_for_each(|result| result.expect("a thread ends"))
    })?;
    assert_eq!(table.size()?, 100);
    assert_eq!(table.lookup_element(&user(42), 2)?, 40);
    let row = table.get(&user(42))?.ok_or("no such user")?;
    assert_eq!(row, (user(42), 40, 400));

    questions(&table)?;
    inheritance(owner, &mut heir)
}

/// Match specifications, written as closures or in Erlang's syntax.
fn questions(table: &Table) -> Result<(), Box<dyn Error>> {
    count(table, 7, 5000)?;
    let name = atom("user");

    // Which users sent more than 1000 bytes, and how many?
    let heavy: Term =
        match_spec!(|{{(name.clone()), id}, _, bytes}| when bytes > 1000 => (id, bytes));
    let found = table.select(&MatchSpec::compile(&heavy)?)?;
    assert_eq!(found, [(7, 5400)]);

    // A condition on the key bounds the search: these rows are found without visiting the others.
    let first: Term = match_spec!(|{{(name.clone()), id}, _, _}| when id < 5 => id);
    let first = MatchSpec::compile(&first)?;
    assert_eq!(table.select(&first)?, [0, 1, 2, 3, 4]);
    println!("the search {}", first.explain(0));

    // In the syntax of Erlang. A range of keys goes in one step.
    let guests = "[{{{user, '$1'}, '_', '_'}, [{'>=', '$1', 90}], [true]}]".parse()?;
    let guests = MatchSpec::compile(&guests)?;
    assert_eq!(table.select_count(&guests)?, 10);
    assert_eq!(table.select_delete(&guests)?, 10);
    assert_eq!(table.size()?, 90);
    assert_eq!(table.last()?, Some(user(89)));

    // A list of rows goes in as one step, and rows of other shapes may lie in the same table.
    let limit = |name| (atom("limit"), atom(name));
    table.insert_rows([(limit("bytes"), 10_000), (limit("requests"), 50)])?;
    assert_eq!(table.lookup_element(&limit("requests").into(), 2)?, 50);
    assert_eq!(table.next(&limit("z").into())?, Some(user(0)));
    Ok(())
}

/// The owner goes, the heir receives the table, and a new owner gets it.
fn inheritance(owner: Owner, heir: &mut Owner) -> Result<(), Box<dyn Error>> {
    // In a program this is the end of the thread that had it, orderly or in a panic.
    thread::spawn(move || drop(owner)).join().expect("it ends");
    let transfer = heir.transfers().recv()?;
    assert_eq!(transfer.data, atom("the_owner_is_gone"));
    assert_eq!(transfer.table.size()?, 92, "no row is lost");

    let mut successor = heir.tables().owner();
    transfer
        .table
        .give_away(successor.pid(), atom("take_over"))?;
    let transfer = successor.transfers().recv()?;
    assert_eq!(transfer.from, *heir.pid());
    let table = transfer.table;
    table.set_access(Access::Protected)?;
    count(&table, 0, 10)?;

    // Others find it by its name, and may read it now, but not write.
    let found = heir.whereis("traffic").ok_or("no such table")?;
    assert_eq!(found.lookup_element(&user(0), 2)?, 41);
    let refused = count(&found, 0, 10).expect_err("it is protected");
    println!("as expected: {refused}");
    table.delete()?;
    assert!(heir.whereis("traffic").is_none());
    Ok(())
}

#[test]
fn the_example_holds() -> Result<(), Box<dyn Error>> {
    main()
}
