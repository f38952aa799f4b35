//! Real threads use shards that move all the time and that workers and callers run. Runs under the
//! sanitizers too.
//!
//! Each caller counts its requests to each shard, and the state holds the next number expected from
//! each caller. So a request that is lost, run twice, overtaken or run beside another shows. A lost
//! answer shows because its caller waits for ever, and an answer given twice because it belongs to
//! another call.
#![cfg(not(any(loom, shuttle)))]

use tremula_shard::{Balance, Call, Config, Operation, Shards, Strategy};
use tremula_sync::atomic::{AtomicBool, Ordering};
use tremula_sync::{Arc, thread};

const CALLERS: usize = 4;
const SHARDS: usize = 6;

/// Requests of each caller: fewer where a sanitizer slows them down, ten million in all if
/// `TREMULA_DEEP` is 1.
fn requests() -> usize {
    if std::env::var("TREMULA_DEEP").is_ok_and(|deep| deep == "1") {
        10_000_000 / CALLERS
    } else if cfg!(tremula_tsan) {
        3_000
    } else {
        200_000 / CALLERS
    }
}

/// The next request number expected from each caller, in a box so that a use after free shows.
type State = Box<[usize; CALLERS]>;

fn expect(state: &mut State, caller: usize, number: usize) -> usize {
    assert_eq!(state[caller], number, "caller {caller} is out of order");
    state[caller] += 1;
    number
}

/// Waits for calls, each of which returns its number.
fn wait_for<O: Operation<State, Output = usize>>(calls: &mut Vec<(usize, Call<State, O>)>) {
    for (number, call) in calls.drain(..) {
        assert_eq!(call.wait(), Ok(number));
    }
}

fn stress(config: Config) {
    let shards = Arc::new(Shards::start(config, |_| State::default()).unwrap());
    let over = Arc::new(AtomicBool::new(false));
    if cfg!(tremula_tsan) {
        // ThreadSanitizer does not see the fence by which the last owner of an `Arc` takes over.
        std::mem::forget((Arc::clone(&shards), Arc::clone(&over)));
    }
    let mover = {
        let (shards, over) = (Arc::clone(&shards), Arc::clone(&over));
        thread::spawn(move || {
            let mut round = 0;
            // At least until each shard has been with each worker, even if this thread gets a core
            // late.
            while round < 3 * SHARDS || !over.load(Ordering::Acquire) {
                shards
                    .move_shard(round % SHARDS, round / SHARDS % 3)
                    .unwrap();
                round += 1;
                thread::yield_now();
            }
        })
    };
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let shards = Arc::clone(&shards);
            thread::spawn(move || {
                let key = |shard| (0_u64..).find(|key| shards.shard_of(key) == shard).unwrap();
                let keys: Vec<u64> = (0..SHARDS).map(key).collect();
                let mut sent = [0; SHARDS];
                let mut calls = Vec::new();
                for step in 0..requests() {
                    let shard = (step * 7 + step / 64 + caller) % SHARDS;
                    let number = sent[shard];
                    sent[shard] += 1;
                    let job = move |state: &mut State| expect(state, caller, number);
                    calls.push((number, shards.call(keys[shard], job)));
                    // Several calls are under way at once, but fewer than a queue holds.
                    if calls.len() == 16 {
                        wait_for(&mut calls);
                    }
                }
                wait_for(&mut calls);
                sent
            })
        })
        .collect();
    let sent: Vec<[usize; SHARDS]> = callers
        .into_iter()
        .map(|caller| caller.join().expect("a caller found a fault"))
        .collect();
    over.store(true, Ordering::Release);
    mover.join().unwrap();
    for (key, shard) in (0_u64..).map(|key| (key, shards.shard_of(key))).take(1000) {
        let state = shards.call(key, |state| **state).wait().unwrap();
        let expected: Vec<usize> = sent.iter().map(|sent| sent[shard]).collect();
        assert_eq!(state[..], expected, "requests are missing");
    }
    let shape = shards.shape();
    assert_eq!(shape.requests, (CALLERS * requests() + 1000) as u64);
    assert!(
        shape.moves > 0 && shape.panics == 0 && shape.cancelled == 0,
        "{shape:?}"
    );
}

/// Workers compare loads after every request and give away what they can.
fn nervous(strategy: Strategy) -> Config {
    let balance = Balance::default().window(1).tolerance(0);
    Config::new(strategy)
        .workers(3)
        .shards(SHARDS)
        .balance(Some(balance))
}

#[test]
fn nothing_is_lost_or_reordered_while_shards_move_under_affinity() {
    stress(nervous(Strategy::Affinity).delegate(false));
}

/// Not under ThreadSanitizer, which does not see the fences by which the last owners of tokio's
/// runtime take over. The worker's own code is the same as under `affinity`.
#[cfg(not(tremula_tsan))]
#[test]
fn nothing_is_lost_or_reordered_while_shards_move_under_local_set() {
    stress(nervous(Strategy::LocalSet).delegate(false));
}

#[test]
fn nothing_is_lost_or_reordered_while_shards_move_and_callers_help() {
    stress(nervous(Strategy::Affinity));
}

/// All threads read one shard for a while, then change it, and so on, so that it is shared and
/// taken back. A reader must see all that it changed before.
#[test]
fn nothing_is_lost_or_reordered_while_a_shard_is_shared_and_taken_back() {
    const PHASE: usize = 1 << 10;
    let shards =
        Arc::new(Shards::start(nervous(Strategy::Affinity), |_| State::default()).unwrap());
    if cfg!(tremula_tsan) {
        // ThreadSanitizer does not see the fence by which the last owner of an `Arc` takes over.
        std::mem::forget(Arc::clone(&shards));
    }
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let shards = Arc::clone(&shards);
            thread::spawn(move || {
                let (mut sent, mut calls) = (0, Vec::new());
                for step in 0..requests() {
                    let reads = (step / PHASE).is_multiple_of(2) && !step.is_multiple_of(64);
                    if reads {
                        let seen = shards.read(0, move |state: &State| state[caller]);
                        assert_eq!(seen.wait(), Ok(sent), "caller {caller} missed a change");
                        continue;
                    }
                    let number = sent;
                    sent += 1;
                    let job = move |state: &mut State| expect(state, caller, number);
                    calls.push((number, shards.call(0, job)));
                    if calls.len() == 16 {
                        wait_for(&mut calls);
                    }
                }
                wait_for(&mut calls);
                sent
            })
        })
        .collect();
    let sent: Vec<usize> = callers
        .into_iter()
        .map(|caller| caller.join().expect("a caller found a fault"))
        .collect();
    let state = shards.call(0, |state| **state).wait().unwrap();
    assert_eq!(state[..], sent, "requests are missing");
    let shape = shards.shape();
    assert_eq!(shape.requests, (CALLERS * requests() + 1) as u64);
    assert!(shape.panics == 0 && shape.cancelled == 0, "{shape:?}");
}
