//! What goes wrong while clients use a group.

use crate::cluster::{Cluster, stop};
use crate::history::{Model, Round};
use crate::proxy::Mode;
use crate::support::eventually;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};
use tremula_check::{DEFAULT_BUDGET, History, Verdict, explain, search};

/// Clients of each round.
const CLIENTS: u64 = 4;

/// How long an ordinary run goes on, and a deep one.
const ORDINARY: Duration = Duration::from_secs(3 * 60);
const DEEP: Duration = Duration::from_secs(30 * 60);

/// How long clients run before and behind the faults.
const QUIET: Duration = Duration::from_millis(400);

/// The shortest and the longest time that a fault lasts, in milliseconds.
const SHORTEST: u64 = 500;
const LONGEST: u64 = 3_500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// `kill -9`, and a start again.
    KillLeader,
    KillFollower,
    /// The same, and another one takes its place that has nothing.
    ReplaceFollower,
    KillNats,
    /// Two of three: nothing can be confirmed.
    KillMostNats,
    /// `SIGSTOP`, and `SIGCONT`.
    StopLeader,
    StopFollower,
    StopNats,
    /// Between a node and all of NATS.
    CutLeader,
    HoldLeader,
    HoldFollower,
    DelayAll,
    /// They go away without a reply, or read it late.
    DisturbClients,
}

const FAULTS: [Fault; 13] = [
    Fault::KillLeader,
    Fault::HoldLeader,
    Fault::StopNats,
    Fault::StopLeader,
    Fault::KillNats,
    Fault::CutLeader,
    Fault::KillMostNats,
    Fault::KillFollower,
    Fault::DelayAll,
    Fault::StopFollower,
    Fault::HoldFollower,
    Fault::ReplaceFollower,
    Fault::DisturbClients,
];

/// What has to be healed.
#[derive(Default)]
struct Wounds {
    killed: Vec<usize>,
    killed_nats: Vec<usize>,
    stopped: Vec<usize>,
    stopped_nats: Vec<usize>,
}

impl Wounds {
    fn inflict(&mut self, cluster: &mut Cluster, fault: Fault, leader: usize, random: &mut StdRng) {
        let nodes = cluster.addresses.len();
        let follower = (leader + random.random_range(1..nodes)) % nodes;
        let nats = random.random_range(0..cluster.nats.len());
        match fault {
            Fault::KillLeader => self.kill(cluster, leader),
            Fault::KillFollower => self.kill(cluster, follower),
            Fault::ReplaceFollower => {
                self.kill(cluster, follower);
                let gone = std::fs::remove_dir_all(cluster.directory(follower));
                gone.expect("the directory goes");
            }
            Fault::KillNats => self.kill_nats(cluster, nats),
            Fault::KillMostNats => {
                self.kill_nats(cluster, nats);
                self.kill_nats(cluster, (nats + 1) % cluster.nats.len());
            }
            Fault::StopLeader => self.stop(cluster, leader),
            Fault::StopFollower => self.stop(cluster, follower),
            // One that is dead cannot be stopped.
            Fault::StopNats if self.killed_nats.contains(&nats) => {}
            Fault::StopNats => {
                cluster.nats[nats].signal("STOP");
                self.stopped_nats.push(nats);
            }
            Fault::CutLeader => cluster.set(leader, Mode::Cut),
            Fault::HoldLeader => cluster.set(leader, Mode::Hold),
            Fault::HoldFollower => cluster.set(follower, Mode::Hold),
            Fault::DelayAll => (0..nodes).for_each(|at| cluster.set(at, Mode::Delay)),
            Fault::DisturbClients => {}
        }
    }

    fn kill(&mut self, cluster: &mut Cluster, at: usize) {
        cluster.nodes[at] = None;
        self.killed.push(at);
    }

    fn kill_nats(&mut self, cluster: &mut Cluster, at: usize) {
        cluster.nats[at].kill();
        self.killed_nats.push(at);
    }

    fn stop(&mut self, cluster: &Cluster, at: usize) {
        if let Some(server) = &cluster.nodes[at] {
            stop(server);
            self.stopped.push(at);
        }
    }

    fn heal(self, cluster: &mut Cluster) {
        for at in self.stopped_nats {
            if !self.killed_nats.contains(&at) {
                cluster.nats[at].signal("CONT");
            }
        }
        for at in self.killed_nats {
            cluster.nats[at].again();
        }
        for at in 0..cluster.addresses.len() {
            cluster.set(at, Mode::Pass);
        }
        for at in self.stopped {
            if let Some(server) = &cluster.nodes[at] {
                server.signal("CONT");
            }
        }
        for at in self.killed {
            cluster.start_again(at);
        }
    }
}

/// Sets a flag when dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// One round of faults, and what the clients have seen meanwhile. Returns how many calls there
/// were, and how long writes took to go on once the faults were gone.
fn round(cluster: &mut Cluster, number: u64, faults: &[Fault]) -> (usize, Duration) {
    let mut random = StdRng::seed_from_u64(number);
    let leader = cluster.leader();
    // The clients need only to know where the nodes are.
    let view = cluster.view();
    let round = Round::new(&view, number);
    let (mut events, reads, back) = thread::scope(|scope| {
        // The clients end also if this thread panics.
        let _over = Over(&round.is_over);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                scope.spawn({
                    let round = &round;
                    move || round.client(client)
                })
            })
            .collect();
        let watchers: Vec<_> = (0..view.addresses.len())
            .map(|at| {
                scope.spawn({
                    let round = &round;
                    move || round.watch(at)
                })
            })
            .collect();
        thread::sleep(QUIET);
        let mut wounds = Wounds::default();
        let disturbs = faults.contains(&Fault::DisturbClients);
        round.are_disturbed.store(disturbs, SeqCst);
        for fault in faults {
            wounds.inflict(cluster, *fault, leader, &mut random);
        }
        thread::sleep(Duration::from_millis(
            random.random_range(SHORTEST..LONGEST),
        ));
        wounds.heal(cluster);
        round.are_disturbed.store(false, SeqCst);
        let healed = Instant::now();
        cluster.leader();
        let back = healed.elapsed();
        println!("round {number}: {faults:?}, writes again after {back:?}");
        thread::sleep(QUIET);
        round.is_over.store(true, SeqCst);
        let events = clients
            .into_iter()
            .flat_map(|client| client.join().expect("no panic"));
        let events: Vec<_> = events.collect();
        let reads = watchers
            .into_iter()
            .map(|watcher| watcher.join().expect("no panic"));
        (events, reads.sum::<u64>(), back)
    });
    let answered = events
        .iter()
        .filter(|event| event.returned.is_some())
        .count();
    assert!(
        answered > 0 && reads > 0,
        "{answered} answers, {reads} reads"
    );
    // What is left is a part of the history.
    let leader = cluster.leader();
    let left = round.look(leader).expect("the leader answers");
    for at in (0..view.addresses.len()).filter(|at| *at != leader) {
        eventually("a follower shows what the leader does", || {
            let seen = round.look(at);
            seen.is_some_and(|seen| seen.response() == left.response())
        });
    }
    events.push(left);
    let calls = events.len();
    let history = History::new(events).expect("a history");
    match search(&Model, &history, DEFAULT_BUDGET) {
        Verdict::Linearizable(_) => println!("round {number}: {calls} calls, {answered} answered"),
        Verdict::Undecided => panic!("round {number}: {calls} calls are too many to order"),
        Verdict::Stuck(stuck) => panic!(
            "round {number}, {faults:?}: {}",
            explain(&Model, &history, &stuck)
        ),
    }
    (calls, back)
}

/// Each fault once, and then one to three at a time until the time is up.
pub(crate) fn campaign() {
    // So often that the log is cut, and that a node which has nothing loads a snapshot.
    let mut cluster = Cluster::between_proxies(3, 3, &["--group-snapshot-every", "40kb"]);
    let begun = Instant::now();
    let deep = std::env::var_os("TREMULA_DEEP");
    let time = deep.map_or(ORDINARY, |_| DEEP);
    let (mut all, mut slowest) = (0, Duration::ZERO);
    let mut rounds = 0_u64;
    while rounds < FAULTS.len() as u64 || begun.elapsed() < time {
        let faults = match FAULTS.get(rounds as usize) {
            Some(fault) => vec![*fault],
            None => several(rounds),
        };
        let (calls, back) = round(&mut cluster, rounds, &faults);
        (all, slowest) = (all + calls, slowest.max(back));
        rounds += 1;
    }
    println!("{rounds} rounds, {all} calls; the longest time until writes went on: {slowest:?}");
}

/// One to three faults at a time.
fn several(number: u64) -> Vec<Fault> {
    let mut random = StdRng::seed_from_u64(number << 32);
    let count = random.random_range(1..=3);
    let mut faults = Vec::new();
    while faults.len() < count {
        let fault = FAULTS[random.random_range(0..FAULTS.len())];
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }
    faults
}
