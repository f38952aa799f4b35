//! States on shards.

use crate::support::block_on;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use tremula::mailbox::oneshot;
use tremula::shard::{CallError, Config, Shards, Strategy};

type Counts = HashMap<String, u32>;

/// Two workers that own their shards.
fn config() -> Config {
    Config::new(Strategy::Affinity).workers(2).shards(4)
}

fn counts() -> Shards<Counts> {
    Shards::start(config(), |_| Counts::new()).unwrap()
}

#[test]
fn shards_with_the_default_configuration() {
    let shards = Shards::start(Config::default(), |_| 0).unwrap();
    assert_eq!(
        shards
            .call("key", |state| std::mem::replace(state, 5))
            .wait(),
        Ok(0)
    );
    assert_eq!(shards.call("key", |state| *state).wait(), Ok(5));
}

#[test]
fn a_call_moves_an_owned_key() {
    let shards = counts();
    let word = String::from("ash");
    let call = shards.call(word.clone(), move |counts| {
        let count = counts.entry(word).or_default();
        *count += 1;
        *count
    });
    assert_eq!(call.wait(), Ok(1));
}

#[test]
fn a_send_is_done_before_the_next_call() {
    let shards = counts();
    shards
        .send("ash", |counts| {
            *counts.entry("ash".into()).or_default() += 1
        })
        .unwrap();
    assert_eq!(shards.call("ash", |counts| counts["ash"]).wait(), Ok(1));
}

#[test]
fn a_read_is_a_call_by_shared_reference() {
    let shards = counts();
    assert_eq!(shards.read(7, HashMap::len).wait(), Ok(0));
}

#[test]
fn a_call_is_awaited() {
    let shards = counts();
    let sum = block_on(async {
        let (left, right) = (shards.call(1, |_| 40), shards.call(2, |_| 2));
        Ok::<_, CallError>(left.await? + right.await?)
    });
    assert_eq!(sum, Ok(42));
}

#[test]
fn an_asynchronous_function_waits_for_a_channel() {
    let shards = counts();
    let (sender, receiver) = oneshot();
    let call = shards.call_async("ash", async move |counts| {
        counts.insert("ash".into(), receiver.await.unwrap());
        counts.len()
    });
    sender.send(9).unwrap();
    assert_eq!(block_on(call), Ok(1));
}

#[test]
fn all_shards_are_asked() {
    let shards = Shards::start(config(), |shard| shard).unwrap();
    let all = block_on(shards.map_all(|shard| *shard));
    let numbers: Result<Vec<_>, _> = all.into_iter().collect();
    assert_eq!(numbers.unwrap(), [0, 1, 2, 3]);
}

#[test]
fn threads_share_shards() {
    let shards = Arc::new(Shards::start(config(), |_| 0).unwrap());
    let threads = [0; 4].map(|_| {
        let shards = Arc::clone(&shards);
        thread::spawn(move || shards.call((), |total| *total += 1).wait())
    });
    threads
        .into_iter()
        .for_each(|thread| assert_eq!(thread.join().unwrap(), Ok(())));
    assert_eq!(shards.call((), |total| *total).wait(), Ok(4));
}

#[test]
fn scoped_threads_borrow_shards() {
    let shards = Shards::start(config(), |_| 0).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| shards.call((), |total| *total += 1).wait().unwrap());
        }
    });
    assert_eq!(shards.call((), |total| *total).wait(), Ok(4));
}

#[test]
fn a_panic_fails_its_own_call() {
    let shards = counts();
    let failed = shards.call(1, |_| -> u32 { panic!("on purpose") }).wait();
    assert_eq!(failed, Err(CallError::Panicked("on purpose".to_owned())));
    assert_eq!(shards.call(1, |_| 1).wait(), Ok(1));
}

#[test]
fn shutdown_gives_the_states_back() {
    let shards = counts();
    shards
        .send("ash", |counts| _ = counts.insert("ash".into(), 1))
        .unwrap();
    let total: usize = shards
        .shutdown()
        .into_iter()
        .map(|state| state.unwrap().len())
        .sum();
    assert_eq!(total, 1);
    assert_eq!(shards.call("ash", |_| ()).wait(), Err(CallError::Closed));
}

#[test]
fn states_that_are_not_send() {
    let shards = Shards::start_local(config(), |_| Rc::new(RefCell::new(vec![1]))).unwrap();
    let length = shards.call(1, |state| {
        state.borrow_mut().push(2);
        state.borrow().len()
    });
    assert_eq!(length.wait(), Ok(2));
}

#[test]
fn shards_in_a_struct() {
    struct Service {
        counts: Shards<Counts>,
    }
    impl Service {
        fn count(&self, word: &'static str) -> Result<u32, CallError> {
            let call = self
                .counts
                .call(word, |counts| *counts.entry(word.into()).or_insert(1));
            call.wait()
        }
    }
    assert_eq!(Service { counts: counts() }.count("ash"), Ok(1));
}

#[test]
fn the_shard_of_a_key() {
    let shards = counts();
    assert!(shards.shard_of("ash") < shards.len());
    assert_eq!(shards.shard_of("ash"), shards.shard_of(String::from("ash")));
}
