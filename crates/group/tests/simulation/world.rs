//! The world: machines, clients, the shared log and the network between them, in one thread and in
//! virtual time. Everything that happens is an event; its time and a serial number order it.

use crate::clients::Clients;
use crate::host::{Held, Host};
use crate::model::{Answer, Op, apply, effects};
use crate::objects::Objects;
use crate::oracle::Oracle;
use crate::plan::{Loss, MS, Plan};
use crate::stream::Stream;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::sync::Arc;
use tremula_group::{
    Action, Attempt, Epoch, MessageId, Node, Outcome, Position, Ready, Refusal, Role, TryAgain,
};
use tremula_log::Sequence;

/// What happens.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// An append comes to the log.
    Append {
        host: usize,
        boot: u64,
        attempt: Attempt,
        expected: Position,
        id: MessageId,
        bytes: Arc<[u8]>,
    },
    /// The question for the log's end comes to it.
    Ask {
        host: usize,
        boot: u64,
        question: u64,
    },
    /// What comes to a machine; it waits while the machine is stopped.
    At {
        host: usize,
        boot: Option<u64>,
        what: What,
    },
    Reply {
        client: usize,
        op: u64,
        result: Result<Answer, Failed>,
    },
    Step {
        client: usize,
    },
    Timeout {
        client: usize,
        op: u64,
        attempt: u32,
    },
    Restart {
        host: usize,
    },
    Fault,
    Heal,
    Lose,
}

/// What comes to a machine.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Appended(Attempt, Outcome),
    End(u64, Position),
    Deliver(u64),
    Tick(u64),
    Request {
        client: usize,
        op: u64,
        command: Op,
        is_once: bool,
    },
    StaleRead {
        wanted: Option<Sequence>,
    },
    /// A read of the state was made in this epoch; now the node is asked whether it may go out.
    HasRead {
        epoch: Epoch,
        held: Held,
    },
}

/// Why a client has no answer.
#[derive(Clone, Debug)]
pub(crate) struct Failed {
    /// Whether the command has certainly not happened.
    pub(crate) is_undone: bool,
    pub(crate) leader: Option<usize>,
}

pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) random: SmallRng,
    pub(crate) time: u64,
    serial: u64,
    events: BTreeMap<(u64, u64), Event>,
    pub(crate) stream: Stream,
    pub(crate) objects: Objects,
    pub(crate) oracle: Oracle,
    pub(crate) hosts: Vec<Host>,
    pub(crate) clients: Clients,
    /// Until when the log answers nothing.
    pub(crate) outage_until: u64,
    /// Readings that have come to the end of the log.
    pub(crate) idle: Vec<bool>,
    /// A host that is to crash after some more actions.
    pub(crate) crash_in: Option<(usize, u32)>,
    tokens: u64,
    /// When the first write was acknowledged after the faults were over.
    pub(crate) first_ack: Option<u64>,
    /// Machines that had read what the log has lost, or that need it, and up to where.
    pub(crate) ahead: Vec<(usize, Position)>,
    /// What the log has lost.
    pub(crate) lost: Vec<(Position, Arc<[u8]>)>,
    /// What has happened, for a report.
    pub(crate) counts: BTreeMap<&'static str, u64>,
}

impl World {
    pub(crate) fn new(seed: u64, loss: Option<Loss>) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let plan = Plan::new(&mut random, loss);
        let drift = plan.drift;
        let host = |number: usize, random: &mut SmallRng| {
            let rate = 1.0
                + if number.is_multiple_of(2) {
                    drift
                } else {
                    -drift
                };
            Host::new(&plan.config, rate, random.random_range(0..1 << 40))
        };
        let hosts: Vec<Host> = (0..plan.nodes).map(|n| host(n, &mut random)).collect();
        let mut world = Self {
            oracle: Oracle::new(&plan.config),
            clients: Clients::new(plan.clients),
            idle: vec![false; hosts.len()],
            hosts,
            plan,
            random,
            time: 0,
            serial: 0,
            events: BTreeMap::new(),
            stream: Stream::default(),
            objects: Objects::default(),
            outage_until: 0,
            crash_in: None,
            tokens: 0,
            first_ack: None,
            ahead: Vec::new(),
            lost: Vec::new(),
            counts: BTreeMap::new(),
        };
        for host in 0..world.hosts.len() {
            world.later(0, Event::Restart { host });
        }
        for client in 0..world.plan.clients {
            world.later(10 * MS, Event::Step { client });
        }
        world.later(500 * MS, Event::Fault);
        world.at(world.plan.healed, Event::Heal);
        if world.plan.loss.is_some() {
            let when = world.random.random_range(2_000..4_000) * MS;
            world.at(when, Event::Lose);
        }
        world
    }

    /// Runs to the end.
    pub(crate) fn run(&mut self) {
        while let Some(((time, _), event)) = self.events.pop_first() {
            if time > self.plan.end {
                return;
            }
            self.time = time;
            *self.counts.entry("events").or_default() += 1;
            self.happen(event);
        }
    }

    pub(crate) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    pub(crate) fn at(&mut self, time: u64, event: Event) {
        self.serial += 1;
        self.events.insert((time, self.serial), event);
    }

    pub(crate) fn later(&mut self, delay: u64, event: Event) {
        self.at(self.time + delay, event);
    }

    pub(crate) fn delay(&mut self) -> u64 {
        let usual = self.random.random_range(1..=self.plan.delay);
        match self.random.random_range(0..100) {
            0 => usual * 50,
            _ => usual,
        }
    }

    fn odds(&mut self, of_a_thousand: u32) -> bool {
        self.time < self.plan.healed && self.random.random_range(0..1000) < of_a_thousand
    }

    fn come_to(&mut self, delay: u64, host: usize, what: What) {
        let boot = Some(self.hosts[host].boot);
        self.later(delay, Event::At { host, boot, what });
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Append {
                host,
                boot,
                attempt,
                expected,
                id,
                bytes,
            } => {
                if self.time < self.outage_until {
                    return;
                }
                let before = self.stream.end();
                let outcome = self.stream.append(expected, id, Arc::clone(&bytes));
                if self.stream.end() > before {
                    self.oracle.stored(self.time, self.stream.end(), &bytes);
                    self.wake();
                    (0..self.hosts.len()).for_each(|host| self.leases_are_apart(host));
                }
                for _ in 0..1 + u32::from(self.odds(self.plan.repeated)) {
                    if self.odds(self.plan.lost) || self.hosts[host].isolated_until > self.time {
                        continue;
                    }
                    let what = What::Appended(attempt, outcome);
                    let boot = Some(boot);
                    let delay = self.delay();
                    self.later(delay, Event::At { host, boot, what });
                }
            }
            Event::Ask {
                host,
                boot,
                question,
            } => {
                if self.time >= self.outage_until && self.hosts[host].isolated_until <= self.time {
                    let what = What::End(question, self.stream.end());
                    let (boot, delay) = (Some(boot), self.delay());
                    self.later(delay, Event::At { host, boot, what });
                }
            }
            Event::At { host, boot, what } => {
                let machine = &self.hosts[host];
                if boot.is_some_and(|boot| boot != machine.boot) || machine.node.is_none() {
                    return;
                }
                match machine.paused_until > self.time {
                    true => self.at(machine.paused_until, Event::At { host, boot, what }),
                    false => self.arrive(host, what),
                }
            }
            Event::Reply { client, op, result } => self.replied(client, op, result),
            Event::Step { client } => self.step(client),
            Event::Timeout {
                client,
                op,
                attempt,
            } => self.timed_out(client, op, attempt),
            Event::Restart { host } => self.restart(host),
            Event::Fault => self.fault(),
            Event::Heal => self.heal(),
            Event::Lose => self.lose(),
        }
    }

    /// A machine's node takes what has come.
    fn arrive(&mut self, host: usize, what: What) {
        let now = self.hosts[host].clock(self.time);
        let newest_tick = self.hosts[host].tick_serial;
        if matches!(what, What::Appended(..)) {
            self.hosts[host].contact = self.time;
        }
        let Some(node) = self.hosts[host].node.as_mut() else {
            return;
        };
        match what {
            What::Appended(attempt, outcome) => node.appended(now, attempt, outcome),
            What::End(question, end) => node.end(now, question, end),
            What::Tick(serial) if serial != newest_tick => return,
            What::Tick(_) => node.tick(now),
            What::Deliver(reading) => return self.deliver(host, reading),
            What::Request {
                client,
                op,
                command,
                is_once,
            } => return self.request(host, client, op, command, is_once),
            What::StaleRead { wanted } => return self.stale_read(host, wanted),
            What::HasRead { epoch, held } => {
                let token = self.tokens;
                self.tokens += 1;
                match node.read(now, epoch, token) {
                    Ok(Ready::Now(_)) => {
                        let newest = self.oracle.epoch();
                        let is_newest = epoch == newest || self.plan.loss.is_some();
                        assert!(is_newest, "a read of epoch {epoch} is shown in {newest}");
                        self.answer(held.client, held.op, Ok(held.answer));
                    }
                    Ok(Ready::Later) => {
                        self.hosts[host].held.insert(token, held);
                    }
                    Err(why) => self.fail(held.client, held.op, true, &why),
                }
            }
        }
        self.carry_out(host);
    }

    /// The reading of a machine comes to its next message.
    fn deliver(&mut self, host: usize, reading: u64) {
        let isolated_until = self.hosts[host].isolated_until;
        if self.hosts[host].reading.0 != reading {
            return;
        }
        if isolated_until > self.time {
            let delay = isolated_until - self.time + self.delay();
            return self.come_to(delay, host, What::Deliver(reading));
        }
        let from = Position::new(self.hosts[host].reading.1);
        let now = self.hosts[host].clock(self.time);
        let first = self.stream.first();
        let Some(node) = self.hosts[host].node.as_mut() else {
            return;
        };
        if from < first {
            node.truncated(now, reading, first);
            self.hosts[host].reading.1 = first.get();
            self.carry_out(host);
            let delay = self.delay();
            return self.come_to(delay, host, What::Deliver(reading));
        }
        let Some((position, bytes)) = self.stream.next(from) else {
            self.idle[host] = true;
            return;
        };
        self.hosts[host].reading.1 = position.get() + 1;
        // A message that a reading has lost is there in the next one.
        let is_lost = position.get() > self.hosts[host].glitch && self.odds(self.plan.glitches);
        let times = 1 + u32::from(self.odds(self.plan.glitches));
        if is_lost {
            self.hosts[host].glitch = position.get();
        } else {
            self.hosts[host].contact = self.time;
            if let Some(node) = self.hosts[host].node.as_mut() {
                (0..times).for_each(|_| node.record(now, reading, position, &bytes));
            }
            self.carry_out(host);
        }
        let delay = self.delay() / 4 + 1;
        if self.hosts[host].node.is_some() {
            self.come_to(delay, host, What::Deliver(reading));
        }
    }

    fn wake(&mut self) {
        for host in 0..self.hosts.len() {
            if std::mem::take(&mut self.idle[host]) {
                let reading = self.hosts[host].reading.0;
                let delay = self.delay();
                self.come_to(delay, host, What::Deliver(reading));
            }
        }
    }

    /// A client's command comes to a machine.
    fn request(&mut self, host: usize, client: usize, op: u64, command: Op, is_once: bool) {
        let now = self.hosts[host].clock(self.time);
        let token = self.tokens;
        self.tokens += 1;
        let machine = &mut self.hosts[host];
        let Some(node) = machine.node.as_mut() else {
            return;
        };
        let epoch = match node.role() {
            Role::Leader(epoch) => epoch,
            _ => return self.not_leading(host, client, op),
        };
        if is_once {
            match node.once(now, &op.to_le_bytes(), token) {
                Ok(None) => {}
                Ok(Some((answer, Ready::Now(_)))) => {
                    self.count("answered again");
                    return self.answer(client, op, Ok(Answer::from_bytes(&answer.bytes)));
                }
                Ok(Some((answer, Ready::Later))) => {
                    let answer = Answer::from_bytes(&answer.bytes);
                    machine.held.insert(
                        token,
                        Held {
                            client,
                            op,
                            answer,
                            is_write: true,
                        },
                    );
                    return;
                }
                Err(why) => return self.fail(client, op, true, &why),
            }
        }
        let (answer, changes) = command.run(&machine.state);
        let is_write = !changes.is_empty() || is_once;
        let held = Held {
            client,
            op,
            answer,
            is_write,
        };
        if !is_write {
            // The thread may be stopped between its read of the state and its look at the clock.
            let stopped = match self.random.random_range(0..20) {
                0 => self.random.random_range(0..3_000 * MS),
                _ => 0,
            };
            return self.come_to(stopped, host, What::HasRead { epoch, held });
        }
        let mut effects = effects(op, &changes, self.plan.filler);
        if is_once {
            assert!(effects.answer_once(&op.to_le_bytes(), &held.answer.to_bytes()));
        }
        if let Err(why) = node.admits(now, effects.as_batch().bytes()) {
            return self.fail(client, op, true, &why);
        }
        for change in &changes {
            apply(&mut machine.state, *change);
        }
        machine.held.insert(token, held);
        node.propose(now, epoch, &effects, token)
            .expect("what was admitted is taken");
        self.clients.changes.insert((op, changes.len()));
        self.carry_out(host);
    }

    /// A read of a follower's state, which may be stale.
    fn stale_read(&mut self, host: usize, wanted: Option<Sequence>) {
        let machine = &mut self.hosts[host];
        let now = machine.clock(self.time);
        let Some(node) = machine.node.as_mut() else {
            return;
        };
        if let Some(wanted) = wanted {
            let until = now.after(std::time::Duration::from_secs(1));
            if let Ok(Ready::Now(shown)) = node.wait_for(now, wanted, u64::MAX, until) {
                assert!(
                    shown >= wanted,
                    "record {wanted} was asked for, not {shown}"
                );
            }
            return self.carry_out(host);
        }
        let is_leader = matches!(node.role(), Role::Leader(_));
        let Ok(fresh) = node.freshness(now) else {
            return;
        };
        if is_leader || self.plan.loss.is_some() {
            return;
        }
        let shown = fresh.sequence;
        assert!(shown >= machine.shown, "a follower went back to {shown}");
        machine.shown = shown;
        let right = &self.oracle.states[shown.get() as usize];
        assert_eq!(&machine.state, right, "host {host} at {shown}");
        let staleness = (fresh.staleness.as_micros() as f64 / machine.rate) as u64;
        let silence = self.time - machine.contact;
        assert!(
            staleness + MS >= silence,
            "{silence} µs of silence are shown as {staleness}"
        );
        // What the log had before the staleness, and the time that its messages take, is there;
        // unless the machine was cut off and has just begun to read what it had missed.
        let slowest = 55 * self.plan.delay * 10;
        let since = self.time.saturating_sub(staleness + slowest);
        if since > self.plan.healed + 4_000 * MS {
            let least = self.oracle.last_at(since);
            assert!(shown >= least, "{shown} is staler than shown: {least}");
            self.count("bounded reads");
        }
        self.count("stale reads");
    }

    /// A leader that was replaced has no lease any more, whether a client happens to read there or
    /// not.
    fn leases_are_apart(&self, host: usize) {
        let machine = &self.hosts[host];
        let Some(node) = machine.node.as_ref().filter(|_| self.plan.loss.is_none()) else {
            return;
        };
        let (Role::Leader(epoch), Some(until)) = (node.role(), node.lease_until()) else {
            return;
        };
        let holds = machine.clock(self.time) < until;
        let newest = self.oracle.epoch();
        assert!(
            epoch == newest || !holds,
            "host {host} still has the lease of epoch {epoch} in epoch {newest}"
        );
    }

    /// Carries out what a node asks for, and looks when it is to be called again.
    fn carry_out(&mut self, host: usize) {
        while let Some(action) = self.hosts[host].node.as_mut().and_then(Node::next_action) {
            if self.crashes_now(host) {
                return self.crash(host);
            }
            self.act(host, action);
        }
        self.leases_are_apart(host);
        let machine = &mut self.hosts[host];
        let Some(deadline) = machine.node.as_ref().and_then(Node::deadline) else {
            return;
        };
        machine.tick_serial += 1;
        let (serial, at) = (machine.tick_serial, machine.time_of(deadline));
        let delay = at.saturating_sub(self.time).max(1);
        self.come_to(delay, host, What::Tick(serial));
    }

    fn act(&mut self, host: usize, action: Action) {
        let boot = self.hosts[host].boot;
        match action {
            Action::Append {
                attempt,
                expected,
                id,
                bytes,
            } => {
                if attempt.number > 1 {
                    self.count("retries");
                }
                if self.hosts[host].isolated_until > self.time || self.odds(self.plan.lost) {
                    return;
                }
                let held_back = self.hosts[host].held_until.saturating_sub(self.time);
                let delay = held_back + self.delay();
                let event = Event::Append {
                    host,
                    boot,
                    attempt,
                    expected,
                    id,
                    bytes,
                };
                self.later(delay, event);
            }
            Action::Read { reading, from } => {
                self.hosts[host].reading = (reading, from.get());
                self.idle[host] = false;
                let delay = self.delay();
                self.come_to(delay, host, What::Deliver(reading));
            }
            Action::Ask { question } => {
                let delay = self.delay();
                let event = Event::Ask {
                    host,
                    boot,
                    question,
                };
                self.later(delay, event);
            }
            Action::Commit {
                first,
                batch,
                apply,
            } => {
                self.hosts[host].commit(first, batch, apply);
                if self.random.random_bool(0.3) {
                    self.hosts[host].synced = self.hosts[host].own.len();
                }
            }
            Action::Release { token, sequence } => self.release(host, token, sequence),
            Action::Retract { token, why } => {
                if let Some(held) = self.hosts[host].held.remove(&token) {
                    self.fail(held.client, held.op, !held.is_write, &why);
                }
            }
            Action::Reload(point) => {
                assert_eq!(self.hosts[host].last_own(), point.last);
                assert!(self.hosts[host].held.is_empty(), "a reply was forgotten");
                self.hosts[host].reload();
                self.count("steps down");
            }
            Action::Became(Role::Leader(_)) => self.count("leaders"),
            Action::Became(_) => {}
            Action::Refuse(Refusal::Truncated { .. }) => {
                self.count("snapshots loaded");
                let snapshot = self.objects.load(self.stream.first());
                let machine = &mut self.hosts[host];
                machine.synced = 0;
                machine.crash(0);
                machine.snapshot = snapshot;
                self.later(MS, Event::Restart { host });
            }
            Action::Refuse(_) => self.count("refusals"),
        }
    }

    /// A reply goes out: the log must have what it shows.
    fn release(&mut self, host: usize, token: u64, sequence: Sequence) {
        if token == u64::MAX {
            // A stale read that has waited for a record.
            let last = self.hosts[host].last_own();
            assert!(last >= sequence || self.plan.loss.is_some());
            return self.count("waits for records");
        }
        let Some(held) = self.hosts[host].held.remove(&token) else {
            panic!("a reply is released twice");
        };
        if self.plan.loss.is_none() {
            let op = held.op;
            assert!(
                sequence <= self.oracle.last(),
                "record {sequence} of command {op} is acknowledged before the log has it"
            );
            if held.is_write {
                let found = self.oracle.effects.contains_key(&op);
                assert!(found, "command {op} is acknowledged, and is not in the log");
            }
        }
        if held.is_write {
            self.clients.acknowledged.insert(held.op);
            self.clients.last_acked = self.clients.last_acked.max(sequence);
            if self.time > self.plan.healed {
                self.first_ack.get_or_insert(self.time);
            }
        }
        self.answer(held.client, held.op, Ok(held.answer));
    }

    fn answer(&mut self, client: usize, op: u64, result: Result<Answer, Failed>) {
        let delay = self.delay();
        self.later(delay, Event::Reply { client, op, result });
    }

    fn not_leading(&mut self, host: usize, client: usize, op: u64) {
        let leader = self.hosts[host].node.as_ref().and_then(Node::leader);
        let why = TryAgain::NotLeading {
            leader: leader.map(str::to_owned),
        };
        self.fail(client, op, true, &why);
    }

    fn fail(&mut self, client: usize, op: u64, is_undone: bool, why: &TryAgain) {
        let leader = match why {
            TryAgain::NotLeading { leader } => leader.as_ref().and_then(|name| name.parse().ok()),
            _ => None,
        };
        self.answer(client, op, Err(Failed { is_undone, leader }));
    }

    pub(crate) fn restart(&mut self, host: usize) {
        let incarnation = self.random.random();
        let config = self.plan.config.clone();
        let machine = &mut self.hosts[host];
        if machine.node.is_some() {
            return;
        }
        machine.reload();
        machine.contact = self.time;
        let now = machine.clock(self.time);
        let node = Node::start(config, &host.to_string(), incarnation, machine.start(), now);
        machine.node = Some(node.expect("a node"));
        self.carry_out(host);
    }
}
