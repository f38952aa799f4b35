//! Programs that must not compile, beside the probes in `tests/probes/` that must. Each names the
//! error that refuses it. rustdoc compares that code on a nightly toolchain only, so look at the
//! error when you write one.

/// A value that must stay on its thread: another thread could take it out of the map.
///
/// ```compile_fail,E0277
/// use std::{cell::RefCell, rc::Rc};
/// let map = tremula::OrderedMap::new();
/// map.insert(1, Rc::new(RefCell::new(1)));
/// ```
const VALUE_OF_ONE_THREAD: () = ();

/// A key that must stay on its thread.
///
/// ```compile_fail,E0277
/// use std::rc::Rc;
/// let set = tremula::OrderedSet::new();
/// set.insert(Rc::new(1));
/// ```
const KEY_OF_ONE_THREAD: () = ();

/// A value that threads may not look at together: two lookups would share the cell. A `Mutex` in
/// an `Arc` serves.
///
/// ```compile_fail,E0277
/// use std::{cell::Cell, sync::Arc};
/// let map = tremula::OrderedMap::new();
/// map.insert(1, Arc::new(Cell::new(1)));
/// ```
const VALUE_THAT_IS_NOT_SHARED: () = ();

/// A local text as a key: removed keys are freed later, perhaps by another thread, so keys and
/// values own what they refer to.
///
/// ```compile_fail,E0597
/// let map = tremula::OrderedMap::new();
/// {
///     let local = String::from("key");
///     map.insert(local.as_str(), 1);
/// }
/// ```
const BORROWED_KEY: () = ();

/// A reference that is kept longer than `get_with` runs: the value may be removed then.
///
/// ```compile_fail,E0521
/// let map = tremula::OrderedMap::from([(1, String::from("text"))]);
/// let mut kept: Option<&String> = None;
/// map.get_with(&1, |text| kept = Some(text));
/// assert!(kept.is_some());
/// ```
///
/// It returns what is read, which may be a copy:
///
/// ```
/// let map = tremula::OrderedMap::from([(1, String::from("text"))]);
/// let kept: Option<String> = map.get_with(&1, |text| text.clone());
/// assert!(kept.is_some());
/// ```
const REFERENCE_OUT_OF_GET_WITH: () = ();

/// A reference that is kept longer than the visit of `for_each`.
///
/// ```compile_fail,E0521
/// use std::ops::ControlFlow;
/// use tremula::{Direction, OrderedMap};
/// let map = OrderedMap::from([(1, String::from("text"))]);
/// let mut kept: Vec<&String> = Vec::new();
/// let _ = map.for_each::<()>(.., Direction::Ascending, |_, text| {
///     kept.push(text);
///     ControlFlow::Continue(())
/// });
/// ```
const REFERENCE_OUT_OF_FOR_EACH: () = ();

/// A value without `Clone`: a lookup copies it, and so does a removal beside which another thread
/// reads. An `Arc` around it serves.
///
/// ```compile_fail,E0277
/// use std::sync::Mutex;
/// let map = tremula::OrderedMap::new();
/// map.insert(1, Mutex::new(1));
/// ```
const VALUE_WITHOUT_CLONE: () = ();

/// A boxed closure, which has no `Clone` either. `Arc<dyn Fn() + Send + Sync>` serves.
///
/// ```compile_fail,E0277
/// type Command = Box<dyn Fn() -> i32 + Send + Sync>;
/// let map = tremula::OrderedMap::new();
/// map.insert(1, Box::new(|| 1) as Command);
/// ```
const BOXED_CLOSURE: () = ();

/// A plain float as a key: it has no total order. `TotalF64` has one.
///
/// ```compile_fail,E0277
/// let map = tremula::OrderedMap::new();
/// map.insert(1.5, "a key");
/// ```
const PLAIN_FLOAT: () = ();

/// A key without an order.
///
/// ```compile_fail,E0277
/// #[derive(Clone, PartialEq, Eq)]
/// struct Unordered(i32);
/// let set = tremula::OrderedSet::new();
/// set.insert(Unordered(1));
/// ```
const KEY_WITHOUT_ORDER: () = ();

/// A static map without `LazyLock`: making one allocates, which a constant cannot.
///
/// ```compile_fail,E0015
/// static MAP: tremula::OrderedMap<i32, i32> = tremula::OrderedMap::new();
/// ```
const STATIC_MAP: () = ();

/// A value in place, as `map[&key]` and `get_mut` give it: no reference into a shared map outlives
/// a call. `update` changes a value.
///
/// ```compile_fail,E0608
/// let map = tremula::OrderedMap::from([(1, 'a')]);
/// let letter = map[&1];
/// ```
///
/// ```compile_fail,E0599
/// let mut map = tremula::OrderedMap::from([(1, 'a')]);
/// *map.get_mut(&1).unwrap() = 'b';
/// ```
const VALUE_IN_PLACE: () = ();

/// An entry, between whose lookup and insertion another thread could come. `update` and
/// `get_or_insert_with` do both in one step.
///
/// ```compile_fail,E0599
/// let map = tremula::OrderedMap::from([(1, 1)]);
/// *map.entry(1).or_insert(0) += 1;
/// ```
const ENTRY: () = ();

/// A range of owned keys between borrowed texts. `range_by` takes them.
///
/// ```compile_fail,E0277
/// let map = tremula::OrderedMap::from([(String::from("a"), 1)]);
/// let count = map.range("a".."b").count();
/// ```
const RANGE_OF_BORROWED_TEXTS: () = ();

/// A lookup by a key of another type: its order may be another one.
///
/// ```compile_fail,E0277
/// let map = tremula::OrderedMap::from([(1_u64, 'a')]);
/// let letter = map.get(&1_u32);
/// ```
const KEY_OF_ANOTHER_TYPE: () = ();

/// Iteration of a map that is gone. `OrderedMap::range_of` keeps an `Arc` of the map.
///
/// ```compile_fail,E0505
/// let map = tremula::OrderedMap::from([(1, 'a')]);
/// let entries = map.iter();
/// drop(map);
/// assert_eq!(entries.count(), 1);
/// ```
const ITERATOR_WITHOUT_ITS_MAP: () = ();

/// A thread that may outlive the map that it borrows. `std::thread::scope` and `Arc` serve.
///
/// ```compile_fail,E0373
/// let map = tremula::OrderedMap::from([(1, 'a')]);
/// std::thread::spawn(|| map.insert(2, 'b'));
/// ```
const THREAD_THAT_BORROWS: () = ();

/// A radix tree of keys that have no byte form. `#[derive(ByteKey)]` gives them one.
///
/// ```compile_fail,E0277
/// #[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
/// struct Plain(i32);
/// let tree = tremula::OrderedMap::on(tremula::Art::new());
/// tree.insert(Plain(1), 1);
/// ```
const RADIX_TREE_WITHOUT_BYTES: () = ();

/// Two receivers of one mailbox: it has one, and a message goes to it.
///
/// ```compile_fail,E0599
/// let (sender, mailbox) = tremula::mailbox::unbounded::<i32>();
/// let other = mailbox.clone();
/// ```
const SECOND_RECEIVER: () = ();

/// A message that must stay on its thread, sent by another one.
///
/// ```compile_fail,E0277
/// let (sender, mailbox) = tremula::mailbox::unbounded();
/// std::thread::spawn(move || sender.send(std::rc::Rc::new(1)));
/// ```
const MESSAGE_OF_ONE_THREAD: () = ();

/// An answer that is given twice.
///
/// ```compile_fail,E0382
/// let (sender, receiver) = tremula::mailbox::oneshot();
/// sender.send(1).unwrap();
/// sender.send(2).unwrap();
/// ```
const SECOND_ANSWER: () = ();

/// A shard's function that borrows a local: it may run later, on another thread.
///
/// ```compile_fail,E0373
/// use tremula::shard::{Config, Shards};
/// let shards = Shards::start(Config::default(), |_| 0).unwrap();
/// let number = 5;
/// let call = shards.call(1, |state| *state += number);
/// ```
const FUNCTION_THAT_BORROWS: () = ();

/// A state's reference out of the function on its shard.
///
/// ```compile_fail
/// use tremula::shard::{Config, Shards};
/// let shards = Shards::start(Config::default(), |_| String::new()).unwrap();
/// let text: &String = shards.call(1, |state| &*state).wait().unwrap();
/// ```
const REFERENCE_OUT_OF_A_SHARD: () = ();

/// A float in `Term::from`: it may be none that a term can hold. `insert_row`, `try_from` and
/// `into_term` return an error.
///
/// ```compile_fail,E0277
/// let term = tremula::table::Term::from((1, 2.5));
/// ```
const FLOAT_IN_A_TERM: () = ();

/// Byte forms of what has none. The documentation of `#[derive(ByteKey)]` shows this code.
///
/// ```compile_fail
/// #[derive(Clone, Copy, tremula::ByteKey)]
/// union Word { number: u64, bytes: [u8; 8] }
/// ```
///
/// ```compile_fail
/// #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, tremula::ByteKey)]
/// struct Name<'a>(&'a str);
/// ```
///
/// ```compile_fail
/// #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, tremula::ByteKey)]
/// #[repr(packed)]
/// struct Pair(u8, u64);
/// ```
///
/// ```compile_fail,E0277
/// #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, tremula::ByteKey)]
/// struct Path(std::path::PathBuf);
/// ```
const DERIVED_FORM: () = ();
