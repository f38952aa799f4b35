//! The state of a run: virtual threads with their clocks, cores with the threads that wait for
//! them, and the queue of what happens next.
//!
//! # What holds
//!
//! 1. Of the threads of a core, at most one has the core. It is the current thread, or it is in the
//!    queue of events; the others are blocked, or in the core's `ready` list.
//! 2. The current thread's access takes place only when no event is earlier than its clock.
//! 3. The time of a thread since its birth is the sum of its [`Spent`].
//! 4. A thread that learns in another way than from a word how far another one has come, by being
//!    woken or by waiting for its end, does so after all that the other has stored is seen.

use super::directory::{After, ByAddress, Charge, Directory, Kind, LINE};
use super::loaded::Loaded;
use super::machine::{Machine, Picoseconds};
use super::once::Once;
use super::outcome::{Blame, Spent};
use super::random::Random;
use super::stores::{Bits, Stores};
use corosensei::{Coroutine, Yielder};
use std::any::Any;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::panic::Location;

/// The number of a virtual thread.
pub(super) type Id = usize;

/// What happens at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The thread goes on.
    Run(Id),
    /// The thread's sleep ends, if it is still the sleep with this number.
    Timer(Id, u32),
}

/// When something happens, a random number that breaks ties, and what it is.
type Entry = Reverse<(Picoseconds, u64, Event)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    HasCore,
    Ready,
    Blocked,
    Ended,
}

pub(super) struct Thread {
    pub(super) clock: Picoseconds,
    standing: Standing,
    /// The place where the thread runs: one of the threads of a core.
    place: usize,
    /// Until when the thread's stores are on their way.
    stores: Picoseconds,
    /// The words to which they go, and when others see them there.
    stored: VecDeque<(usize, Picoseconds)>,
    /// The address of the line that the thread accessed last, as a number of lines.
    line: usize,
    /// The addresses that the thread has loaded last.
    loaded: Loaded,
    /// The lines that the thread has asked for ahead, the last of them.
    coming: VecDeque<Coming>,
    pub(super) spent: Spent,
    born: Picoseconds,
    /// Whether the thread was woken before it slept.
    pub(super) token: bool,
    /// Whether the thread is blocked until it is unparked, and not in a lock or a join.
    pub(super) parked: bool,
    sleeps: u32,
    /// Whether the lock for which the thread slept was handed over to it.
    handed: bool,
    /// Threads that wait for its end.
    joining: Vec<Id>,
    pub(super) coroutine: Option<Coroutine<(), (), ()>>,
    pub(super) yielder: *const Yielder<(), ()>,
    pub(super) locals: Vec<Local>,
    pub(super) name: Option<String>,
    pub(super) index: usize,
}

/// A thread's own value.
pub(super) struct Local {
    /// The address of its [`LocalKey`](super::local::LocalKey).
    pub(super) key: usize,
    pub(super) value: *mut dyn Any,
    /// Whether there is something to do when it is dropped, and it has not been. As std's, a value
    /// without that is there until the thread has ended.
    pub(super) is_to_drop: bool,
}

/// A line that a thread has asked for and does not wait for yet.
#[derive(Clone, Copy)]
struct Coming {
    line: usize,
    arrives: Picoseconds,
    /// The part of its way that it takes because of other cores.
    transfer: Picoseconds,
}

/// The longest time between two hand-overs of a lock whose waiters sleep; it is drawn anew each
/// time, as in `parking_lot_core`.
const LONGEST_UNFAIR: Picoseconds = 1_000_000_000;

/// Of threads that slept at an address and have been woken.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Woken {
    /// Others still sleep there.
    pub(super) more: bool,
    /// The lock is handed over to those that have been woken.
    pub(super) fair: bool,
}

/// How many lines a thread asks for ahead: some ten misses of a core are under way at once.
const MOST_COMING: usize = 10;

/// A place where a thread runs.
#[derive(Default)]
struct Place {
    core: usize,
    holder: Option<Id>,
    last: Option<Id>,
    ready: VecDeque<Id>,
    since: Picoseconds,
    free_at: Picoseconds,
}

pub(super) struct State {
    pub(super) machine: Machine,
    directory: Directory,
    stores: Stores,
    pub(super) threads: Vec<Thread>,
    places: Vec<Place>,
    events: BinaryHeap<Entry>,
    /// The thread that the current one gives way to, if that is known.
    following: Option<Id>,
    pub(super) current: Id,
    random: Random,
    /// The threads that sleep at an address, each with whether it wants to write.
    sleepers: ByAddress<VecDeque<(Id, bool)>>,
    /// When the lock at an address is handed over next.
    fair_at: ByAddress<Picoseconds>,
    /// From where each lock was taken last.
    locks: ByAddress<&'static Location<'static>>,
    pub(super) once: Once,
    free_indices: BinaryHeap<Reverse<usize>>,
    next_index: usize,
    pub(super) accesses: u64,
    blame: Option<BTreeMap<(&'static str, u32, u32), Blame>>,
}

impl Thread {
    fn take_coming(&mut self, line: usize) -> Option<Coming> {
        let place = self.coming.iter().position(|coming| coming.line == line);
        self.coming.remove(place?)
    }
}

impl State {
    pub(super) fn new(machine: &Machine, seed: u64, blames: bool) -> Self {
        let (cores, of_first) = (machine.all_cores(), machine.all_threads());
        let place = |number: usize| Place {
            core: if number == of_first {
                0
            } else {
                number % cores
            },
            ..Place::default()
        };
        Self {
            machine: *machine,
            directory: Directory::new(machine),
            stores: Stores::default(),
            threads: Vec::new(),
            places: (0..=of_first).map(place).collect(),
            events: BinaryHeap::new(),
            following: None,
            current: 0,
            random: Random::new(seed),
            sleepers: ByAddress::default(),
            fair_at: ByAddress::default(),
            locks: ByAddress::default(),
            once: Once::default(),
            free_indices: BinaryHeap::new(),
            next_index: 0,
            accesses: 0,
            blame: blames.then(BTreeMap::new),
        }
    }

    /// A new thread; it begins at time `at`.
    pub(super) fn add(
        &mut self,
        at: Picoseconds,
        name: Option<String>,
        body: Coroutine<(), (), ()>,
    ) -> Id {
        let id = self.threads.len();
        let index = self.free_indices.pop().map_or_else(
            || {
                self.next_index += 1;
                self.next_index - 1
            },
            |Reverse(index)| index,
        );
        // The first thread of a run, which only prepares what the others do, and sets when
        // they end, has a place of its own in the first core: else it would wait there for the
        // end of a time slice, and a measurement would take as long as that.
        let threads = self.machine.all_threads();
        let place = id.checked_sub(1).map_or(threads, |id| id % threads);
        self.threads.push(Thread {
            clock: at,
            standing: Standing::Blocked,
            place,
            stores: 0,
            stored: VecDeque::new(),
            line: 0,
            loaded: Loaded::default(),
            coming: VecDeque::new(),
            spent: Spent::default(),
            born: at,
            token: false,
            parked: false,
            sleeps: 0,
            handed: false,
            joining: Vec::new(),
            coroutine: Some(body),
            yielder: std::ptr::null(),
            locals: Vec::new(),
            name,
            index,
        });
        self.make_ready(id, at);
        id
    }

    pub(super) fn me(&mut self) -> &mut Thread {
        &mut self.threads[self.current]
    }

    fn push(&mut self, at: Picoseconds, event: Event) {
        // Ties are broken by chance.
        let tie = self.random.next();
        self.events.push(Reverse((at, tie, event)));
    }

    /// What happens next. Timers are handled here, so it is always a thread that goes on.
    pub(super) fn next(&mut self) -> Option<Id> {
        if let Some(id) = self.following.take() {
            self.current = id;
            return Some(id);
        }
        loop {
            let Reverse((at, _, event)) = self.events.pop()?;
            match event {
                Event::Run(id) => {
                    self.current = id;
                    return Some(id);
                }
                Event::Timer(id, sleep) => {
                    let thread = &self.threads[id];
                    if thread.standing == Standing::Blocked && thread.sleeps == sleep {
                        self.make_ready(id, at);
                    }
                }
            }
        }
    }

    /// Whether the current thread must let others go first. If so, it is in a queue, and must stop.
    pub(super) fn gives_way(&mut self) -> bool {
        let (id, clock, place) = (self.current, self.me().clock, self.me().place);
        let slice = self.machine.slice;
        let place = &self.places[place];
        if !place.ready.is_empty() && clock.saturating_sub(place.since) >= slice {
            self.leave_core();
            return true;
        }
        let Some(&Reverse((at, _, event))) = self.events.peek() else {
            return false;
        };
        if at >= clock {
            return false;
        }
        match event {
            Event::Timer(..) => self.push(clock, Event::Run(id)),
            Event::Run(following) => {
                // This thread takes the other's place: one step in the queue, not two.
                let tie = self.random.next();
                if let Some(mut first) = self.events.peek_mut() {
                    *first = Reverse((clock, tie, Event::Run(id)));
                }
                self.following = Some(following);
            }
        }
        true
    }

    /// The current thread lets the other threads of its place run.
    pub(super) fn leave_core(&mut self) {
        let id = self.current;
        let (clock, place) = (self.me().clock, self.me().place);
        self.me().standing = Standing::Ready;
        self.places[place].ready.push_back(id);
        self.free_place(place, clock);
    }

    pub(super) fn others_wait_for_core(&mut self) -> bool {
        let place = self.me().place;
        !self.places[place].ready.is_empty()
    }

    fn free_place(&mut self, number: usize, at: Picoseconds) {
        let place = &mut self.places[number];
        place.holder = None;
        place.free_at = at;
        self.fill_place(number);
    }

    fn fill_place(&mut self, number: usize) {
        let place = &mut self.places[number];
        if place.holder.is_some() {
            return;
        }
        let Some(id) = place.ready.pop_front() else {
            return;
        };
        let changes = place.last.is_some_and(|last| last != id);
        let free_at = place.free_at;
        let switch = if changes {
            self.varied(self.machine.prices.switch)
        } else {
            0
        };
        let thread = &mut self.threads[id];
        let begin = thread.clock.max(free_at) + switch;
        thread.spent.off += begin - thread.clock;
        thread.clock = begin;
        thread.standing = Standing::HasCore;
        let place = &mut self.places[number];
        place.holder = Some(id);
        place.last = Some(id);
        place.since = begin;
        self.push(begin, Event::Run(id));
    }

    fn make_ready(&mut self, id: Id, at: Picoseconds) {
        let thread = &mut self.threads[id];
        let late = at.saturating_sub(thread.clock);
        thread.spent.off += late;
        thread.clock += late;
        thread.standing = Standing::Ready;
        let place = thread.place;
        self.places[place].ready.push_back(id);
        self.fill_place(place);
    }

    /// The current thread does private work.
    pub(super) fn work(&mut self, time: Picoseconds) {
        let time = self.slowed(time);
        let me = self.me();
        me.clock += time;
        me.spent.work += time;
    }

    /// The current thread calls the system.
    pub(super) fn call(&mut self, price: Picoseconds) {
        let time = self.varied(price);
        self.work(time);
    }

    /// What a call of the system takes this time.
    pub(super) fn varied(&mut self, price: Picoseconds) -> Picoseconds {
        match price * self.machine.jitter / 100 {
            0 => price,
            most => price - most + self.random.below(2 * most + 1),
        }
    }

    /// The current thread has allocated or freed this often since its last access.
    pub(super) fn allocated(&mut self, count: u64) {
        if count > 0 {
            self.work(count * self.machine.prices.allocation);
        }
    }

    /// The time that work takes if other threads of the core run meanwhile.
    fn slowed(&mut self, time: Picoseconds) -> Picoseconds {
        let cores = self.machine.all_cores();
        if self.machine.threads == 1 {
            return time;
        }
        let mine = self.me().place;
        let siblings = (mine % cores..self.machine.all_threads()).step_by(cores);
        let busy = siblings
            .filter(|place| *place != mine && self.places[*place].holder.is_some())
            .count();
        if busy == 0 {
            time
        } else {
            time * 100 / self.machine.shared_speed
        }
    }

    /// The current thread accesses a line.
    pub(super) fn access(&mut self, address: usize, kind: Kind, from: &'static Location<'static>) {
        self.accesses += 1;
        let id = self.current;
        let (mut now, stores) = (self.me().clock, self.me().stores);
        let place = self.me().place;
        let core = self.places[place].core;
        let lag = self.machine.prices.store_lag;
        // A read-modify-write waits for the thread's stores; a store, until few are on their way.
        let mut drained = match kind {
            Kind::Load => 0,
            Kind::Store => stores.saturating_sub(now).saturating_sub(lag),
            Kind::ReadModifyWrite => stores.saturating_sub(now),
        };
        now += drained;
        let random = &mut self.random;
        let line = address / LINE;
        let before = std::mem::replace(&mut self.threads[id].line, line);
        let after = After::of(
            kind,
            line,
            before,
            self.threads[id].loaded.leads_to(address),
        );
        // A store does not wait for its line.
        let coming = match kind {
            Kind::Store => None,
            _ => self.threads[id].take_coming(line),
        };
        let late = coming.map_or(0, |coming| coming.arrives.saturating_sub(now));
        let mut charge = self
            .directory
            .access(core, address, (kind, after), now + late, random);
        let of_others = late.min(coming.map_or(0, |coming| coming.transfer));
        charge.transfer += of_others;
        charge.fetching += late - of_others;
        let Charge {
            mut waiting,
            mut transfer,
            mut fetching,
            ..
        } = charge;
        let own = self.slowed(charge.own);
        self.note(from, now, &charge);
        if kind == Kind::Store && waiting + transfer + fetching > 0 {
            // The core asks for the lines of all stores that are on their way at the same time, and
            // writes them one after the other.
            let arrives = stores.max(now + waiting + transfer + fetching);
            let ahead = arrives.saturating_sub(now + own).saturating_sub(lag);
            drained += ahead;
            (waiting, transfer, fetching) = (0, 0, 0);
            self.threads[id].stores = arrives;
        }
        let me = &mut self.threads[id];
        me.spent.waiting += waiting;
        me.spent.transfers += transfer + drained;
        me.spent.work += fetching + own;
        me.clock += drained + waiting + transfer + fetching + own;
    }

    /// The current thread asks for a line that it will access, or write, soon.
    pub(super) fn prefetch(&mut self, address: usize, writes: bool) {
        self.accesses += 1;
        let id = self.current;
        let (now, place) = (self.me().clock, self.me().place);
        let core = self.places[place].core;
        let kind = if writes { Kind::Store } else { Kind::Load };
        let random = &mut self.random;
        let asked = (kind, After::Another);
        let charge = self.directory.access(core, address, asked, now, random);
        let transfer = charge.waiting + charge.transfer;
        if transfer + charge.fetching > 0 {
            let coming = &mut self.threads[id].coming;
            if coming.len() == MOST_COMING {
                coming.pop_front();
            }
            coming.push_back(Coming {
                line: address / LINE,
                arrives: now + transfer + charge.fetching,
                transfer,
            });
        }
        self.work(self.machine.prices.instructions);
    }

    fn note(&mut self, from: &'static Location<'static>, at: Picoseconds, charge: &Charge) {
        // The first thread prepares what the others do.
        if charge.waiting + charge.transfer == 0 || self.current == 0 {
            return;
        }
        let Some(blame) = &mut self.blame else { return };
        let place = (from.file(), from.line(), from.column());
        let entry = blame.entry(place).or_insert_with(|| Blame::at(from));
        entry.add(charge.line, at, (charge.waiting, charge.transfer));
    }

    pub(super) fn lock_taken(&mut self, address: usize, from: &'static Location<'static>) {
        if self.blame.is_some() {
            self.locks.insert(address, from);
        }
    }

    pub(super) fn lock_place(&self, address: usize) -> Option<&'static Location<'static>> {
        self.locks.get(&address).copied()
    }

    /// What the current thread sees in a word, if that is not what memory has.
    pub(super) fn seen(&mut self, address: usize) -> Option<Bits> {
        let (id, now) = (self.current, self.me().clock);
        self.stores.seen_by(address, id, now)
    }

    /// What the current thread loads from a word for which memory has `in_memory`.
    pub(super) fn loads(&mut self, address: usize, in_memory: Bits) -> Bits {
        let value = self.seen(address).unwrap_or(in_memory);
        self.me().loaded.add(value.addr());
        value
    }

    /// The current thread, which has just accessed a word, writes it. Returns whether memory takes
    /// the value.
    pub(super) fn store(&mut self, address: usize, in_memory: Bits, value: Bits) -> bool {
        let (id, me) = (self.current, &mut self.threads[self.current]);
        let (now, seen) = (me.clock, me.stores);
        while let Some(&(word, _)) = me.stored.front().filter(|(_, seen)| *seen <= now) {
            me.stored.pop_front();
            self.stores.forget(word, now);
        }
        if seen > now {
            me.stored.push_back((address, seen));
        }
        let times = (id, now, seen);
        self.stores.add(address, times, (in_memory, value))
    }

    pub(super) fn fence(&mut self) {
        self.drain();
        self.work(self.machine.prices.fence);
    }

    /// The current thread waits until others see all its stores.
    pub(super) fn drain(&mut self) {
        let me = self.me();
        let drained = me.stores.saturating_sub(me.clock);
        me.spent.transfers += drained;
        me.clock += drained;
    }

    /// The current thread leaves its place until it is woken, or until `deadline`.
    pub(super) fn block(&mut self, deadline: Option<Picoseconds>) {
        self.drain();
        let id = self.current;
        let me = self.me();
        me.sleeps += 1;
        me.standing = Standing::Blocked;
        let (sleep, clock, place) = (me.sleeps, me.clock, me.place);
        if let Some(deadline) = deadline {
            self.push(deadline.max(clock), Event::Timer(id, sleep));
        }
        self.free_place(place, clock);
    }

    /// The current thread wakes another, if that one is blocked.
    pub(super) fn wake(&mut self, id: Id) -> bool {
        if self.threads[id].standing != Standing::Blocked {
            return false;
        }
        self.call(self.machine.prices.wake);
        let at = self.me().clock + self.varied(self.machine.prices.wake_delay);
        // A timer of the same sleep must not wake the thread again.
        self.threads[id].sleeps += 1;
        self.make_ready(id, at);
        true
    }

    /// The current thread sleeps at an address, and wants to write or not.
    pub(super) fn sleep_at(&mut self, address: usize, writes: bool) {
        let sleeper = (self.current, writes);
        self.sleepers.entry(address).or_default().push_back(sleeper);
        self.call(self.machine.prices.sleep);
        self.block(None);
    }

    pub(super) fn take_handed(&mut self) -> bool {
        std::mem::take(&mut self.me().handed)
    }

    /// Wakes the first threads that sleep at the address, as long as `wakes` says so of whether
    /// they want to write.
    pub(super) fn wake_at(&mut self, address: usize, mut wakes: impl FnMut(bool) -> bool) -> Woken {
        let Some(queue) = self.sleepers.get_mut(&address) else {
            return Woken::default();
        };
        let count = queue
            .iter()
            .take_while(|(_, writes)| wakes(*writes))
            .count();
        let first: Vec<Id> = queue.drain(..count).map(|(id, _)| id).collect();
        let more = !queue.is_empty();
        let fair = count > 0 && self.is_fair_now(address);
        for id in first {
            self.threads[id].handed = fair;
            self.wake(id);
        }
        Woken { more, fair }
    }

    /// Whether the lock at the address is handed over now.
    fn is_fair_now(&mut self, address: usize) -> bool {
        let now = self.me().clock;
        let fair_at = self.fair_at.entry(address).or_default();
        let is_now = now > *fair_at;
        if is_now {
            *fair_at = now + self.random.below(LONGEST_UNFAIR);
        }
        is_now
    }

    /// Whether the thread has ended; if not, the current thread is woken when it does.
    pub(super) fn has_ended_or_tells_me(&mut self, id: Id) -> bool {
        let me = self.current;
        if self.has_ended(id) {
            let late = self.threads[id].clock.saturating_sub(self.me().clock);
            self.me().spent.off += late;
            self.me().clock += late;
            return true;
        }
        self.threads[id].joining.push(me);
        self.block(None);
        false
    }

    pub(super) fn has_ended(&self, id: Id) -> bool {
        self.threads[id].standing == Standing::Ended
    }

    /// Whether the thread has ended by the time of the current one.
    pub(super) fn sees_end_of(&mut self, id: Id) -> bool {
        self.has_ended(id) && self.threads[id].clock <= self.me().clock
    }

    /// The current thread has ended.
    pub(super) fn end(&mut self) {
        self.drain();
        let me = self.me();
        me.standing = Standing::Ended;
        let joining = std::mem::take(&mut me.joining);
        let (clock, place, index) = (me.clock, me.place, me.index);
        for waiting in joining {
            if self.threads[waiting].standing == Standing::Blocked {
                self.threads[waiting].sleeps += 1;
                self.make_ready(waiting, clock);
            }
        }
        self.free_indices.push(Reverse(index));
        self.free_place(place, clock);
    }

    /// What each thread has spent, and how long each was there.
    pub(super) fn spent(&self) -> Vec<(Picoseconds, Spent)> {
        let threads = self.threads.iter();
        threads
            .map(|thread| (thread.clock - thread.born, thread.spent))
            .collect()
    }

    pub(super) fn take_blame(&mut self) -> Vec<Blame> {
        let all = self.blame.take().unwrap_or_default();
        let mut all: Vec<Blame> = all.into_values().collect();
        all.sort_by_key(|blame| Reverse(blame.time()));
        all
    }
}
