//! The mailboxes of a store with a log that are kept, and their messages.

mod support;

use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;
use support::{new_folder, new_log};
use tremula_log::Log;
use tremula_mailbox::{Config, Mode};
use tremula_store::{Engine, Folder, Lease, NotSent, Post, Store, StoreConfig, Value};
use tremula_table::{Access, BadArgument, Options, Term};

fn open(log: &Arc<dyn Log>, folder: &Folder) -> Store {
    let config = StoreConfig::new(Engine::Aspen);
    support::open(&config, log, folder).0
}

/// What is ready at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("it waits"),
    }
}

fn lease(post: &Arc<Post>) -> Lease {
    now(post.lease()).expect("nobody else receives")
}

fn name(number: u8) -> Vec<u8> {
    format!("m{number}").into_bytes()
}

fn add(store: &Store, number: u8, config: Config) -> Option<Arc<Post>> {
    let (tables, name) = (store.tables(), name(number));
    let added = store.commit(|effects| {
        let made = (&name[..], Mode::default(), config);
        store.mailboxes().add_kept(effects, tables, made)
    });
    added.expect("the log takes it").ok()
}

fn send(store: &Store, post: &Post, texts: &[u32]) -> (usize, Option<NotSent>) {
    let messages = texts
        .iter()
        .map(|text| Value::from(&text.to_be_bytes()[..]));
    let messages: Vec<Value> = messages.collect();
    let sent = store.commit(|effects| post.send_kept(effects, &messages));
    sent.expect("the log takes it")
}

fn number_of(message: &Value) -> u32 {
    u32::from_be_bytes(message[..].try_into().expect("four bytes"))
}

/// Receives up to `count` messages that are there, and gives them back unless they are delivered.
fn receive(store: &Store, post: &Arc<Post>, count: usize, is_delivered: bool) -> Vec<u32> {
    let mut lease = lease(post);
    lease.receive_more(count);
    let taken = lease.taken().iter().map(number_of).collect();
    if is_delivered {
        store.delivered(lease);
    }
    taken
}

#[derive(Clone, Debug)]
enum Operation {
    Add(u8, Option<usize>),
    Drop(u8),
    Send(u8, usize),
    Receive(u8, usize, bool),
    Save,
    Reopen,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let mailbox = || 0..3_u8;
    let operation = prop_oneof![
        2 => (mailbox(), prop::option::of(1..6_usize))
            .prop_map(|(mailbox, capacity)| Operation::Add(mailbox, capacity)),
        1 => mailbox().prop_map(Operation::Drop),
        6 => (mailbox(), 0..4_usize).prop_map(|(mailbox, count)| Operation::Send(mailbox, count)),
        4 => (mailbox(), 0..4_usize, any::<bool>())
            .prop_map(|(mailbox, count, is)| Operation::Receive(mailbox, count, is)),
        1 => Just(Operation::Save),
        1 => Just(Operation::Reopen),
    ];
    prop::collection::vec(operation, 1..80)
}

/// What a mailbox should hold.
struct Model {
    capacity: usize,
    messages: VecDeque<u32>,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_was_not_delivered_is_there_again(operations in operations()) {
        let (_directory, folder) = new_folder();
        let log = new_log();
        let mut store = open(&log, &folder);
        let mut models: BTreeMap<u8, Model> = BTreeMap::new();
        let mut next = 0;
        for operation in operations.into_iter().chain([Operation::Reopen]) {
            let find = |store: &Store, number: u8| store.mailboxes().get(&name(number));
            match operation {
                Operation::Add(number, capacity) => {
                    let config = capacity.map_or(Config::default(), |most| Config::default().bounded(most));
                    let added = add(&store, number, config).is_some();
                    prop_assert_eq!(added, !models.contains_key(&number));
                    let messages = VecDeque::new();
                    let capacity = capacity.unwrap_or(usize::MAX);
                    models.entry(number).or_insert(Model { capacity, messages });
                }
                Operation::Drop(number) => {
                    let dropped = store.commit(|effects| store.mailboxes().remove(effects, &name(number)));
                    let left = models.remove(&number).map(|model| model.messages.len());
                    prop_assert_eq!(dropped.expect("the log takes it"), left);
                }
                Operation::Send(number, count) => {
                    let Some(model) = models.get_mut(&number) else { continue };
                    let texts: Vec<u32> = (next..next + count as u32).collect();
                    next += count as u32;
                    let room = model.capacity - model.messages.len();
                    let post = find(&store, number).expect("it is there");
                    let (sent, why) = send(&store, &post, &texts);
                    prop_assert_eq!(sent, count.min(room));
                    prop_assert_eq!(why, (count > room).then_some(NotSent::Full));
                    model.messages.extend(&texts[..sent]);
                }
                Operation::Receive(number, count, is_delivered) => {
                    let Some(model) = models.get_mut(&number) else { continue };
                    let post = find(&store, number).expect("it is there");
                    let expected: Vec<u32> = model.messages.iter().copied().take(count).collect();
                    prop_assert_eq!(&receive(&store, &post, count, is_delivered), &expected);
                    if is_delivered {
                        model.messages.drain(..expected.len());
                    }
                }
                Operation::Save => {
                    store.save(&folder).expect("a snapshot");
                }
                Operation::Reopen => {
                    drop(store);
                    store = open(&log, &folder);
                    prop_assert_eq!(store.mailboxes().count(), models.len());
                    for (number, model) in &models {
                        let post = find(&store, *number).expect("it is there");
                        prop_assert!(post.is_kept());
                        prop_assert_eq!(post.config.capacity().unwrap_or(usize::MAX), model.capacity);
                        prop_assert_eq!(post.bytes(), model.messages.len() * 52);
                        let expected: Vec<u32> = model.messages.iter().copied().collect();
                        prop_assert_eq!(&receive(&store, &post, usize::MAX, false), &expected);
                    }
                }
            }
        }
    }
}

/// Threads send while one receives and snapshots are made: when the store is opened again, each
/// message that was not delivered is there once, in the order of its sender.
#[test]
fn every_message_is_delivered_once_over_a_restart() {
    const SENDERS: u32 = 3;
    const MESSAGES: u32 = 3_000;
    let (_directory, folder) = new_folder();
    let log = new_log();
    let store = open(&log, &folder);
    let post = add(&store, 0, Config::default()).expect("a new mailbox");
    let are_sent = AtomicBool::new(false);
    let mut delivered: Vec<u32> = Vec::new();
    thread::scope(|scope| {
        let (store, post) = (&store, &post);
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                scope.spawn(move || {
                    for message in 0..MESSAGES / 2 {
                        let first = (sender << 16) | (2 * message);
                        assert_eq!(send(store, post, &[first, first + 1]), (2, None));
                    }
                })
            })
            .collect();
        let (folder, are_sent) = (&folder, &are_sent);
        scope.spawn(move || {
            while !are_sent.load(Ordering::Acquire) {
                store.save(folder).expect("a snapshot");
            }
        });
        while delivered.len() < 4_000 {
            delivered.extend(receive(store, post, 7, true));
            // These go back.
            receive(store, post, 3, false);
        }
        senders
            .into_iter()
            .for_each(|sender| sender.join().expect("a sender"));
        are_sent.store(true, Ordering::Release);
    });
    drop((post, store));
    let (_empty, no_snapshots) = new_folder();
    let store = open(&log, &no_snapshots);
    let post = store.mailboxes().get(&name(0)).expect("it is there");
    let from_log = receive(&store, &post, usize::MAX, false);
    drop((post, store));
    let store = open(&log, &folder);
    let post = store.mailboxes().get(&name(0)).expect("it is there");
    let left = receive(&store, &post, usize::MAX, true);
    assert_eq!(from_log, left, "the log and the snapshots disagree");
    delivered.extend(left);
    for sender in 0..SENDERS {
        let its = delivered.iter().filter(|message| **message >> 16 == sender);
        let its: Vec<u32> = its.map(|message| message & 0xffff).collect();
        assert_eq!(its, (0..MESSAGES).collect::<Vec<_>>(), "of sender {sender}");
    }
    drop((post, store));
    let store = open(&log, &folder);
    let post = store.mailboxes().get(&name(0)).expect("it is there");
    assert_eq!(post.len(), 0);
}

/// A mailbox that is kept is an heir over a crash: it gets the table, and a message.
#[test]
fn a_kept_mailbox_inherits_after_a_crash() {
    let (_directory, folder) = new_folder();
    let log = new_log();
    let store = open(&log, &folder);
    let post = add(&store, 0, Config::default()).expect("a new mailbox");
    let heir = post.pid(store.tables()).expect("it is there");
    let owner = store.table_owner();
    let made = store.commit(|effects| {
        let options = Options::new().access(Access::Private).named();
        let options = options.heir(heir.clone(), Term::from(7));
        owner.create(effects, "left", options)?;
        let given = owner.create(effects, "given", Options::new().named())?;
        given.noting(effects).insert_row((1, 2))?;
        given.noting(effects).give_away(&heir, Term::from(8))?;
        post.forward_transfers(effects);
        Ok::<_, BadArgument>(())
    });
    made.expect("the log takes it").expect("new tables");
    store.forward();
    // The crash: nothing of this store is written any more.
    for _ in 0..2 {
        let again = open(&log, &folder);
        let tables = again.tables().made_after(None, 10);
        let names: Vec<_> = tables.iter().map(|table| table.name().text()).collect();
        assert_eq!(names, ["left", "given"]);
        // The mailbox owns them, and so everyone may use them.
        assert_eq!(tables[0].lookup(&Term::from(1)), Ok(Vec::new()));
        let post = again.mailboxes().get(&name(0)).expect("it is there");
        let mut lease = lease(&post);
        lease.receive_more(10);
        let told = lease
            .taken()
            .iter()
            .map(|message| String::from_utf8_lossy(message));
        let told: Vec<String> = told.map(|text| text.into_owned()).collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].contains("given") && told[0].ends_with(",8}"),
            "{told:?}"
        );
        assert!(
            told[1].contains("left") && told[1].ends_with(",7}"),
            "{told:?}"
        );
    }
    let again = open(&log, &folder);
    let dropped = again.commit(|effects| again.mailboxes().remove(effects, &name(0)));
    assert_eq!(dropped.expect("the log takes it"), Some(2));
    assert_eq!(again.tables().len(), 0);
    drop(again);
    let again = open(&log, &folder);
    assert_eq!((again.tables().len(), again.mailboxes().count()), (0, 0));
    std::mem::forget(owner);
}
