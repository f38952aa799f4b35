//! Which threads serve clients: as few as can.
//!
//! A thread that has something to do all the time answers with no wake-up in between, and two
//! threads that each do half of it wake up for every command. So clients *gather* on few *open*
//! threads, and *spread* to more when these are always busy: contention decides here too.
//!
//! The keeper looks at the threads every [`LOOK`]. A [`Judge`] sees how busy each was and how many
//! of its clients were active, and decides. A client moves by itself, between two commands, when
//! its thread asks for it: once a look at most, and only if it is active. So no thread is woken for
//! a move, a client that waits for a message or for the end of a pause stays where it is, and so do
//! the clients of a thread that does not turn, until it does.

use crate::connection::Served;
use crate::keeper::{Pulse, next_worker};
use crate::server::Arrival;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc::WeakUnboundedSender;

/// How often the keeper decides. As often as Redis looks at its clients, so that an idle server
/// sleeps as well as Redis does.
pub(crate) const LOOK: Duration = Duration::from_millis(100);

/// From this share of its time on, in thousandths, a thread cannot serve its clients alone: they
/// wait for it, not it for them.
const CROWDED: usize = 950;

/// How much less busy another thread is that can relieve a crowded one.
const GAP: usize = 300;

/// If none of the open threads is crowded, and they are busy for less than this share of their time
/// together, one fewer may do. Of two threads that are busy for .55 of the time, each spends some
/// of it on waking up and on waiting for a processor, so the sum is more than one thread will need.
/// Whether it is too much, the try shows.
///
/// `docs/results/notes.md` has the measurement. Commands that come one at a time keep two threads
/// busy for up to half of the time each, and one thread serves them as well: a lower limit would
/// leave them on two. A load that keeps two threads busy for .6 of the time or more needs both. In
/// between, pipelines may need both too, and then the one thread is [`CROWDED`] at once.
const FREE: usize = 550;

/// How many looks in a row must be calm before clients gather.
const CALM: u32 = 5;

/// If the processors of the machine are idle for no more than this, in thousandths of the time of
/// one, another thread would take its time from others, most likely from clients on this machine:
/// they and the threads would wait for each other. How much more than this the looks of a crowd
/// have shown in all, until another thread is opened, is [`ENOUGH`]: so an idle processor suffices
/// at once, and a look that happened to show a little more does not.
///
/// `docs/results/notes.md` has the measurement.
const TAKEN: usize = 600;
const ENOUGH: usize = 400;

/// How many looks pass between two spreads among open threads, so that the first shows its effect.
const APART: u32 = 2;

/// The most looks for which a change waits, because earlier ones had to be taken back, or because
/// no processor is idle: then others take them for long, and the server takes its share.
const LONGEST: u32 = 256;

/// How many looks of a crowd one look without a crowd takes back. Where other processes take the
/// processors, a thread that has more to do than it can do still waits for its clients now and
/// then.
const EASED: u32 = 4;

/// A change that is taken back within this number of looks was a mistake.
const SOON: u32 = 20;

/// The threads of a server, as connections and the keeper see them.
pub(crate) struct Threads {
    pulses: Box<[Pulse]>,
    peers: Box<[Peer]>,
    /// Whether clients gather. If not, all threads stay open.
    pub(crate) gather: bool,
    /// Counts the looks, modulo 2^32.
    look: AtomicU32,
    pub(crate) gathers: AtomicU64,
    pub(crate) spreads: AtomicU64,
    pub(crate) moves: AtomicU64,
}

/// How clients get to a thread.
pub(crate) struct Peer {
    /// Weak, because a worker ends when the server has dropped the strong one.
    pub(crate) arrivals: WeakUnboundedSender<Arrival>,
    pub(crate) handle: Handle,
}

impl Threads {
    pub(crate) fn new(peers: Vec<Peer>, gather: bool) -> Self {
        let pulses = (0..peers.len()).map(|number| Pulse::new(!gather || number == 0));
        Self {
            pulses: pulses.collect(),
            peers: peers.into(),
            gather,
            look: AtomicU32::new(0),
            gathers: AtomicU64::new(0),
            spreads: AtomicU64::new(0),
            moves: AtomicU64::new(0),
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.pulses.len()
    }

    pub(crate) fn pulses(&self) -> &[Pulse] {
        &self.pulses
    }

    /// Whether the keeper saw every thread turn at its last look.
    pub(crate) fn all_turn(&self) -> bool {
        self.pulses.iter().all(Pulse::turns)
    }

    pub(crate) fn pulse(&self, worker: usize) -> &Pulse {
        &self.pulses[worker]
    }

    pub(crate) fn handle(&self, worker: usize) -> &Handle {
        &self.peers[worker].handle
    }

    /// The thread for the next client: of the open ones that with the least load.
    pub(crate) fn next(&self) -> usize {
        next_worker(&self.pulses).unwrap_or(0)
    }

    /// Lets a client in that comes from this process itself. Returns whether that was possible.
    pub(crate) fn let_in(&self, client: Arrival) -> bool {
        let to = self.next();
        let arrivals = self.peers.get(to).and_then(|peer| peer.arrivals.upgrade());
        let Some(arrivals) = arrivals else {
            return false;
        };
        self.pulses[to].clients.fetch_add(1, Relaxed);
        let sent = arrivals.send(client).is_ok();
        if !sent {
            self.pulses[to].clients.fetch_sub(1, Relaxed);
        }
        sent
    }

    /// A client between two commands asks whether it should go to another thread. `seen` is the
    /// last look at which it asked.
    #[inline]
    pub(crate) fn asks_to_leave(&self, worker: usize, seen: &mut u32) -> Option<usize> {
        let look = self.look.load(Relaxed);
        if look == *seen {
            return None;
        }
        *seen = look;
        let pulse = &self.pulses[worker];
        pulse.active.fetch_add(1, Relaxed);
        let to = pulse.take_leave()?.unwrap_or_else(|| self.next());
        (to != worker).then_some(to)
    }

    /// Moves a client. If that is not possible, because the server ends or has no resources, gives
    /// it back.
    pub(crate) fn move_to(&self, to: usize, mut client: Box<Served>) -> Result<(), Box<Served>> {
        let peer = &self.peers[to];
        // While this sender is there, the other worker does not end.
        let Some(arrivals) = peer.arrivals.upgrade() else {
            return Err(client);
        };
        if let Err(error) = client.register_with(&peer.handle) {
            tracing::debug!(%error, "a client stays on its thread");
            return Err(client);
        }
        self.pulses[to].clients.fetch_add(1, Relaxed);
        self.pulses[to].moved_in.fetch_add(1, Relaxed);
        if let Some(from) = self.pulses.get(client.worker()) {
            from.moved_out.fetch_add(1, Relaxed);
        }
        self.moves.fetch_add(1, Relaxed);
        // Cannot fail: a worker ends only after its senders are dropped.
        let _ = arrivals.send(Arrival::Moved(client));
        Ok(())
    }

    /// Looks at the threads, decides, and lets the clients know.
    pub(crate) fn look(&self, judge: &mut Judge, idle: usize) {
        if !self.gather {
            return;
        }
        let seen: Vec<Seen> = self.pulses.iter().map(Pulse::seen).collect();
        let decision = judge.decide(&seen, idle);
        match decision {
            Decision::Stay => (),
            Decision::Gather(from) => {
                self.pulses[from].set_open(false);
                self.gathers.fetch_add(1, Relaxed);
            }
            Decision::Spread { to, .. } => {
                self.pulses[to].set_open(true);
                self.spreads.fetch_add(1, Relaxed);
            }
        }
        for (number, pulse) in self.pulses.iter().enumerate() {
            match decision {
                Decision::Spread { from, to, clients } if from == number => {
                    pulse.let_leave(clients, Some(to));
                }
                _ if pulse.is_open() => pulse.let_leave(0, None),
                _ => pulse.let_leave(usize::MAX, None),
            }
        }
        self.look.fetch_add(1, Relaxed);
    }
}

/// What a look shows of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Its busy time since the last look, in thousandths.
    pub(crate) busy: usize,
    /// Its clients that have completed a command since the last look.
    pub(crate) active: usize,
    pub(crate) is_open: bool,
    pub(crate) is_stuck: bool,
}

/// What changes after a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Stay,
    /// Closes a thread: its clients move to the open ones.
    Gather(usize),
    /// Opens a thread, if it is closed, and lets some clients of another move to it.
    Spread {
        from: usize,
        to: usize,
        clients: usize,
    },
}

/// Decides on how many threads clients are, from what it sees at each look.
///
/// A change that had to be taken back soon was a mistake, and the next one of its kind waits twice
/// as long, up to [`LONGEST`] looks. So clients do not go to and fro.
#[derive(Debug)]
pub(crate) struct Judge {
    /// How many looks in a row one thread fewer might do.
    calm: u32,
    /// How many such looks it takes.
    patience: u32,
    since_gather: u32,
    since_spread: u32,
    /// How many looks a thread was crowded and no closed one could be opened, less [`EASED`] for
    /// each look without a crowd.
    scarce: u32,
    /// How much the processors were idle in these looks beyond what is [`TAKEN`].
    spare: usize,
    /// How many looks pass between two spreads among open threads.
    apart: u32,
    /// The last spread, from and to.
    last: Option<(usize, usize)>,
}

impl Default for Judge {
    fn default() -> Self {
        Self {
            calm: 0,
            patience: CALM,
            since_gather: u32::MAX,
            since_spread: u32::MAX,
            scarce: 0,
            spare: 0,
            apart: APART,
            last: None,
        }
    }
}

impl Judge {
    /// `idle` is how much the processors of the machine were idle since the last look, in
    /// thousandths of the time of one.
    pub(crate) fn decide(&mut self, threads: &[Seen], idle: usize) -> Decision {
        self.since_gather = self.since_gather.saturating_add(1);
        self.since_spread = self.since_spread.saturating_add(1);
        let is_crowded = |one: &Seen| one.is_open && one.busy >= CROWDED;
        if threads.iter().any(is_crowded) {
            self.scarce += 1;
            self.spare = (self.spare + idle).saturating_sub(TAKEN);
        } else {
            self.scarce = self.scarce.saturating_sub(EASED);
            self.spare = 0;
        }
        if let Some(spread) = self.spread(threads) {
            self.calm = 0;
            return spread;
        }
        self.gather(threads).map_or(Decision::Stay, |from| {
            self.calm = 0;
            self.since_gather = 0;
            Decision::Gather(from)
        })
    }

    fn spread(&mut self, threads: &[Seen]) -> Option<Decision> {
        let turning = || threads.iter().enumerate().filter(|(_, one)| !one.is_stuck);
        let open = || turning().filter(|(_, one)| one.is_open);
        let closed = || turning().filter(|(_, one)| !one.is_open);
        let least = |(number, one): &(usize, &Seen)| (one.busy, *number);
        if open().next().is_none() {
            // The clients of the stuck thread cannot move, but new ones can go elsewhere.
            let (to, _) = closed().min_by_key(least)?;
            let from = threads.iter().position(|one| one.is_open).unwrap_or(to);
            return Some(Decision::Spread {
                from,
                to,
                clients: 0,
            });
        }
        let crowded = open().filter(|(_, one)| one.busy >= CROWDED && one.active > 1);
        let (from, busiest) = crowded.max_by_key(|(_, one)| one.busy)?;
        let relieves = |(_, one): &(usize, &Seen)| one.busy + GAP <= busiest.busy;
        let even = (self.since_spread >= self.apart)
            .then(|| open().filter(relieves).min_by_key(least))
            .flatten();
        let may_open = self.spare >= ENOUGH || self.scarce >= LONGEST;
        let another = || closed().filter(relieves).min_by_key(least);
        let relief = even.or_else(|| another().filter(|_| may_open));
        let (to, other) = relief?;
        let clients = busiest.active * (busiest.busy - other.busy) / (2 * busiest.busy);
        if clients == 0 {
            return None;
        }
        if other.is_open {
            let takes_back =
                self.last == Some((to, from)) && self.since_spread < SOON + 2 * self.apart;
            self.apart = longer(self.apart, takes_back, APART);
        } else {
            self.patience = longer(self.patience, self.since_gather < SOON, CALM);
            (self.scarce, self.spare) = (0, 0);
        }
        self.last = Some((from, to));
        self.since_spread = 0;
        Some(Decision::Spread { from, to, clients })
    }

    /// The thread to close, if one fewer may do.
    fn gather(&mut self, threads: &[Seen]) -> Option<usize> {
        let open = || {
            let open = |(_, one): &(usize, &Seen)| one.is_open && !one.is_stuck;
            threads.iter().enumerate().filter(open)
        };
        let busy: usize = open().map(|(_, one)| one.busy).sum();
        let count = open().count();
        let is_crowded = open().any(|(_, one)| one.busy >= CROWDED);
        if count < 2 || busy >= FREE * count || is_crowded {
            self.calm = 0;
            return None;
        }
        self.calm += 1;
        if self.calm < self.patience {
            return None;
        }
        // The last of those that are alike, so that the first thread stays open.
        let rank = |(number, one): &(usize, &Seen)| (one.busy, usize::MAX - number);
        open().min_by_key(rank).map(|(number, _)| number)
    }
}

/// Twice as long after a mistake; else as at first.
fn longer(time: u32, was_mistake: bool, first: u32) -> u32 {
    if was_mistake {
        (2 * time).min(LONGEST)
    } else {
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One processor is idle.
    const IDLE: usize = 1000;

    fn open(busy: usize, active: usize) -> Seen {
        Seen {
            busy,
            active,
            is_open: true,
            is_stuck: false,
        }
    }

    fn closed() -> Seen {
        Seen::default()
    }

    fn stuck(is_open: bool) -> Seen {
        Seen {
            busy: 1000,
            active: 1,
            is_open,
            is_stuck: true,
        }
    }

    fn spread(from: usize, to: usize, clients: usize) -> Decision {
        Decision::Spread { from, to, clients }
    }

    #[test]
    fn a_crowded_thread_gives_half_of_its_active_clients_to_an_idle_one() {
        let mut judge = Judge::default();
        assert_eq!(
            judge.decide(&[open(949, 50), closed()], IDLE),
            Decision::Stay
        );
        assert_eq!(
            judge.decide(&[open(950, 50), closed()], IDLE),
            spread(0, 1, 25)
        );
        assert_eq!(
            judge.decide(&[open(1000, 50)], IDLE),
            Decision::Stay,
            "no other"
        );
    }

    #[test]
    fn no_thread_is_opened_while_all_processors_are_taken_unless_for_long() {
        let mut judge = Judge::default();
        let threads = [open(1000, 50), closed()];
        // Now and then a look shows a little more.
        let idle = [500, 300, 700, 600, 500];
        for look in 1..LONGEST {
            let idle = idle[look as usize % idle.len()];
            assert_eq!(judge.decide(&threads, idle), Decision::Stay, "look {look}");
        }
        assert_eq!(judge.decide(&threads, 0), spread(0, 1, 25));
        assert_eq!(judge.decide(&threads, 999), Decision::Stay);
        assert_eq!(
            judge.decide(&[open(900, 50), closed()], 999),
            Decision::Stay
        );
        assert_eq!(judge.decide(&threads, 999), Decision::Stay, "another crowd");
        assert_eq!(judge.decide(&threads, 999), spread(0, 1, 25));
        // Among open threads clients spread as before.
        assert_eq!(
            judge.decide(&[open(300, 5), open(1000, 20)], 0),
            Decision::Stay
        );
        assert_eq!(
            judge.decide(&[open(300, 5), open(1000, 20)], 0),
            spread(1, 0, 7)
        );
    }

    #[test]
    fn a_thread_that_waits_now_and_then_is_relieved_and_one_that_often_waits_is_not() {
        let spreads_within = |looks, apart| {
            let mut judge = Judge::default();
            (1..=looks).any(|look| {
                let busy = if look % apart == 0 { 930 } else { 1000 };
                judge.decide(&[open(busy, 50), closed()], 0) == spread(0, 1, 25)
            })
        };
        assert!(!spreads_within(LONGEST, 16));
        assert!(spreads_within(2 * LONGEST, 16));
        assert!(!spreads_within(100 * LONGEST, EASED + 1));
    }

    #[test]
    fn one_client_does_not_run_from_itself() {
        let mut judge = Judge::default();
        for _ in 0..100 {
            assert_eq!(
                judge.decide(&[open(1000, 1), closed()], IDLE),
                Decision::Stay
            );
        }
        let threads = [open(1000, 1), open(960, 50), closed()];
        assert_eq!(judge.decide(&threads, IDLE), spread(1, 2, 25));
    }

    #[test]
    fn an_open_thread_with_room_comes_before_a_closed_one() {
        let mut judge = Judge::default();
        let threads = [open(1000, 10), closed(), open(400, 3)];
        assert_eq!(judge.decide(&threads, IDLE), spread(0, 2, 3));
        let threads = [open(1000, 10), closed(), open(800, 3)];
        assert_eq!(judge.decide(&threads, IDLE), spread(0, 1, 5));
        let threads = [open(1000, 10), open(800, 3)];
        assert_eq!(judge.decide(&threads, IDLE), Decision::Stay, "nearly even");
    }

    #[test]
    fn clients_gather_after_some_calm() {
        let mut judge = Judge::default();
        let calm = [open(600, 5), open(300, 5), open(300, 5)];
        for _ in 1..CALM {
            assert_eq!(judge.decide(&calm, IDLE), Decision::Stay);
        }
        assert_eq!(judge.decide(&calm, IDLE), Decision::Gather(2));
        for _ in 1..CALM {
            assert_eq!(judge.decide(&calm[..2], IDLE), Decision::Stay);
        }
        assert_eq!(
            judge.decide(&[open(810, 9), open(800, 9)], IDLE),
            Decision::Stay
        );
        for _ in 1..CALM {
            assert_eq!(
                judge.decide(&calm[..2], IDLE),
                Decision::Stay,
                "begins anew"
            );
        }
        assert_eq!(judge.decide(&calm[..2], IDLE), Decision::Gather(1));
        for _ in 0..100 {
            assert_eq!(
                judge.decide(&[open(0, 0), closed()], IDLE),
                Decision::Stay,
                "one stays"
            );
        }
    }

    /// Plays a load that one thread cannot serve, though two of them look half idle.
    #[test]
    fn a_gathering_that_fails_is_tried_ever_more_rarely() {
        let mut judge = Judge::default();
        let mut is_open = true;
        let mut gathers = Vec::new();
        for look in 0..10_000_u32 {
            let threads = match is_open {
                true => [open(540, 25), open(540, 25)],
                false => [open(1000, 50), closed()],
            };
            match judge.decide(&threads, IDLE) {
                Decision::Stay => (),
                Decision::Gather(1) => {
                    is_open = false;
                    gathers.push(look);
                }
                Decision::Spread { to: 1, .. } => is_open = true,
                other => panic!("{other:?}"),
            }
        }
        let waits: Vec<u32> = gathers.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(waits.is_sorted(), "{waits:?}");
        assert!(waits.last() >= Some(&LONGEST), "{waits:?}");
    }

    /// Plays a client that alone fills a thread, moves with each spread, and leaves crowds behind.
    #[test]
    fn a_heavy_client_does_not_go_to_and_fro() {
        let mut judge = Judge::default();
        let mut heavy = 0;
        let mut moves = 0;
        for _ in 0..10_000 {
            let mut threads = [open(50, 5); 2];
            threads[heavy] = open(1000, 6);
            match judge.decide(&threads, IDLE) {
                Decision::Spread { from, to, .. } => {
                    assert_eq!(from, heavy);
                    heavy = to;
                    moves += 1;
                }
                Decision::Stay => (),
                other => panic!("{other:?}"),
            }
        }
        assert!(moves < 100, "{moves}");
    }

    #[test]
    fn a_stuck_thread_is_replaced_and_relieves_none() {
        let mut judge = Judge::default();
        assert_eq!(
            judge.decide(&[stuck(true), closed()], IDLE),
            spread(0, 1, 0)
        );
        let threads = [stuck(false), open(1000, 8), stuck(false)];
        assert_eq!(judge.decide(&threads, IDLE), Decision::Stay);
        assert_eq!(judge.decide(&[stuck(true); 2], IDLE), Decision::Stay);
        for _ in 0..100 {
            let threads = [stuck(true), open(10, 1)];
            assert_eq!(
                judge.decide(&threads, IDLE),
                Decision::Stay,
                "the last that turns"
            );
        }
    }
}
