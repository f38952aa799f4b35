//! Names and owners when several threads use them at once, and when owners go.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;
use tremula_table::{Access, BadArgument, Kind, MatchSpec, Options, Problem, Table, Tables, Term};

/// How long to wait for something quick on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn term(text: &str) -> Term {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn problem<T: std::fmt::Debug>(result: Result<T, BadArgument>) -> Problem {
    result.unwrap_err().problem
}

fn public() -> Options {
    Options::new().access(Access::Public)
}

/// Runs two closures at once, the second a little later each round.
fn at_once(round: usize, one: impl FnOnce() + Send, two: impl FnOnce()) {
    let ready = AtomicUsize::new(0);
    let meet = || {
        ready.fetch_add(1, Ordering::SeqCst);
        let mut looked = 0;
        while ready.load(Ordering::SeqCst) < 2 {
            looked += 1;
            // On a busy machine the other thread may need this processor.
            if looked % 1_000 == 0 {
                thread::yield_now();
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            meet();
            one();
        });
        meet();
        for _ in 0..round % 64 {
            std::hint::spin_loop();
        }
        two();
    });
}

/// Fails if a table that is renamed while it is deleted, or while its owner goes, leaves a name
/// behind that no table has and no table can get.
#[test]
fn a_rename_brings_no_deleted_table_back() {
    const ROUNDS: usize = 4_000;
    for round in 0..ROUNDS {
        let tables = Tables::new();
        let goes_with_owner = round % 2 == 0;
        let owner = tables.owner();
        let table = if goes_with_owner {
            owner.create("a", public().named())
        } else {
            tables.create("a", public().named())
        };
        let table = table.unwrap();
        let rename = || drop(table.rename("b"));
        if goes_with_owner {
            at_once(round, rename, || drop(owner));
        } else {
            at_once(round, rename, || table.delete().unwrap());
        }
        assert!(table.is_deleted());
        for name in ["a", "b"] {
            let made = tables.create(name, public().named());
            assert!(
                made.is_ok(),
                "round {round}: {made:?}, but no table is there"
            );
        }
    }
}

/// Fails if the name of a deleted table stays taken until its rows are gone, or if the table is
/// found until then.
#[test]
fn a_name_is_free_as_soon_as_its_table_is_deleted() {
    let tables = Tables::new();
    let table = tables.create("t", public().named()).unwrap();
    for key in 0..300_000 {
        let row = Term::tuple([Term::from(key), Term::tuple([Term::from(key)])]);
        table.insert(row).unwrap();
    }
    thread::scope(|scope| {
        scope.spawn(|| table.delete().unwrap());
        while !table.is_deleted() {
            thread::yield_now();
        }
        assert!(tables.whereis("t").is_none());
        assert!(tables.find(&table.id().into()).is_none());
        assert!(tables.all().is_empty());
        let next = tables.create("t", public().named()).unwrap();
        assert_eq!(next.size().unwrap(), 0);
    });
    assert_eq!(tables.all().len(), 1, "the second one is still there");
    assert_eq!(problem(table.rename("u")), Problem::NoTable);
    assert!(tables.create("t", public().named()).is_err());
}

struct Looks(Tables);

impl Wake for Looks {
    fn wake(self: Arc<Self>) {
        let _ = self.0.whereis("t");
    }
}

/// Fails, by waiting in vain, if a table is sent to its new owner under the lock that all look-ups
/// take: sending wakes the owner, and its waker may do anything.
#[test]
fn a_waker_may_look_at_the_tables() {
    for goes in [false, true] {
        let tables = Tables::new();
        let (from, mut to) = (tables.owner(), tables.owner());
        let options = Options::new().heir(to.pid().clone(), term("left"));
        let table = from.create("t", options).unwrap();
        let waker = Waker::from(Arc::new(Looks(tables)));
        let polled = to.transfers().poll_recv(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        let (done, is_done) = mpsc::channel();
        let pid = to.pid().clone();
        thread::spawn(move || {
            if !goes {
                table.give_away(&pid, term("given")).unwrap();
            }
            drop(from);
            done.send(()).unwrap();
        });
        if is_done.recv_timeout(PATIENCE).is_err() {
            // Dropping it would wait for the same lock, and the test would hang instead of failing.
            std::mem::forget(to);
            panic!("the waker waits for the one that wakes it");
        }
        let data = to.transfers().try_recv().unwrap().data;
        assert_eq!(data.to_string(), if goes { "left" } else { "given" });
    }
}

/// The same for an owner that goes, and with it the last sender to it.
#[test]
fn a_waker_of_an_owner_that_goes_may_look_at_the_tables() {
    let tables = Tables::new();
    let mut owner = tables.owner();
    let waker = Waker::from(Arc::new(Looks(tables.clone())));
    let polled = owner
        .transfers()
        .poll_recv(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || {
        drop(owner);
        done.send(()).unwrap();
    });
    is_done.recv_timeout(PATIENCE).expect("it goes");
    assert!(tables.whereis("t").is_none());
}

/// Fails if a handle that outlives its owner can fix a table: no thread would release it.
#[test]
fn an_owner_that_is_gone_fixes_nothing() {
    let tables = Tables::new();
    let table = tables.create("t", public()).unwrap();
    let owner = tables.owner();
    let handle = owner.adopt_handle(&table);
    handle.safe_fixtable(true).unwrap();
    handle.safe_fixtable(true).unwrap();
    handle.safe_fixtable(false).unwrap();
    let fixed = || table.info_item(&term("fixed")).unwrap().to_string();
    assert_eq!(fixed(), "true");
    let pid = owner.pid().clone();
    drop(owner);
    assert_eq!(fixed(), "false");
    let refused = problem(handle.safe_fixtable(true));
    assert_eq!(refused, Problem::NoOwner(pid.into()));
    assert_eq!(fixed(), "false");
    // The handle may still use the table.
    handle.insert(term("{1}")).unwrap();
    table.safe_fixtable(true).unwrap();
    assert_eq!(fixed(), "true");
}

/// Fails if the registry loses, or keeps, fixations of an owner that goes, while tables come and
/// go.
#[test]
fn what_an_owner_has_fixed_is_released_with_it() {
    let tables = Tables::new();
    let (stays, goes) = (tables.owner(), tables.owner());
    let made = |name: &str| tables.create(name, public()).unwrap();
    let (one, two, three) = (made("one"), made("two"), made("three"));
    for table in [&one, &two, &three] {
        for owner in [&stays, &goes] {
            owner.adopt_handle(table).safe_fixtable(true).unwrap();
        }
    }
    stays.adopt_handle(&one).safe_fixtable(false).unwrap();
    goes.adopt_handle(&two).safe_fixtable(false).unwrap();
    three.delete().unwrap();
    let refused = problem(goes.adopt_handle(&three).safe_fixtable(false));
    assert_eq!(refused, Problem::NoTable);
    drop(goes);
    let fixed = |table: &Table| table.info_item(&term("fixed")).unwrap().to_string();
    assert_eq!([fixed(&one), fixed(&two)], ["false", "true"]);
    drop(stays);
    assert_eq!(fixed(&two), "false");
}

/// Fails if an identifier or a continuation of one node refers to a table or an owner of another. A
/// `set` that accepted a continuation of an `ordered_set` would crash the process.
#[test]
fn what_one_node_gives_means_nothing_to_another() {
    let (here, there) = (Tables::new(), Tables::new());
    let ordered = here.create("t", public().kind(Kind::OrderedSet)).unwrap();
    let hashed = there.create("t", public().kind(Kind::Set)).unwrap();
    for key in 0..100 {
        ordered.insert(Term::tuple([Term::from(key)])).unwrap();
        hashed.insert(Term::tuple([Term::from(key)])).unwrap();
    }
    let spec = MatchSpec::compile(&term("[{{'$1'}, [{'<', '$1', 50}], ['$1']}]")).unwrap();
    let chunk = ordered.select_limit(&spec, 3).unwrap().unwrap();
    let rest = chunk.rest.unwrap();
    assert_eq!(
        problem(hashed.select_next(&rest)),
        Problem::NotItsContinuation
    );
    let step = hashed.traverse_on(&rest).step(|| false);
    assert_eq!(problem(step), Problem::NotItsContinuation);
    assert_eq!(
        problem(hashed.repair_continuation(&rest.to_term(), &spec)),
        Problem::NotItsContinuation
    );
    let on = ordered.repair_continuation(&rest.to_term(), &spec).unwrap();
    assert_eq!(ordered.select_next(&on).unwrap().unwrap().found.len(), 3);
    assert!(there.find(&ordered.id().into()).is_none());

    let (mine, theirs) = (here.owner(), there.owner());
    let table = mine.create("mine", Options::new()).unwrap();
    let given = problem(table.give_away(theirs.pid(), Term::NIL));
    assert_eq!(given, Problem::NoOwner(theirs.pid().clone().into()));
}

/// Fails if an owner that goes takes tables of others with it, or leaves its own behind.
#[test]
fn an_owner_that_goes_takes_its_own_tables_only() {
    let tables = Tables::new();
    let others: Vec<_> = (0..100)
        .map(|_| tables.create("t", Options::new()).unwrap())
        .collect();
    let owners: Vec<_> = (0..100).map(|_| tables.owner()).collect();
    let own = owners[0].create("own", Options::new()).unwrap();
    drop(owners);
    assert!(own.is_deleted());
    assert!(others.iter().all(|table| !table.is_deleted()));
}
