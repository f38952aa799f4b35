//! Clients: one command after the other, to the node that they take for the leader; their history.

use crate::model::{Answer, Op};
use crate::plan::MS;
use crate::world::{Event, Failed, What, World};
use rand::RngExt;
use std::collections::{BTreeSet, HashMap};
use tremula_check::Event as Call;
use tremula_log::Sequence;

/// How long a client waits for an answer.
const TIMEOUT: u64 = 700 * MS;

/// How often it tries a command that may be tried again.
const MOST_TRIES: u32 = 40;

#[derive(Default)]
pub(crate) struct Clients {
    all: Vec<Client>,
    /// All commands, by their number.
    pub(crate) commands: Vec<Command>,
    /// How many effects a command has made, each time that a leader has carried it out.
    pub(crate) changes: BTreeSet<(u64, usize)>,
    pub(crate) acknowledged: BTreeSet<u64>,
    pub(crate) last_acked: Sequence,
}

#[derive(Clone, Default)]
struct Client {
    leader: Option<usize>,
    /// The command that has no answer yet.
    current: Option<u64>,
    tries: u32,
}

pub(crate) struct Command {
    client: usize,
    called: u64,
    pub(crate) op: Op,
    is_once: bool,
    answered: Option<(u64, Answer)>,
}

impl Clients {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            all: vec![Client::default(); count],
            ..Self::default()
        }
    }

    /// The commands as a history. Those without an answer are left out if the log has no effect of
    /// them, which is known when the run is over.
    pub(crate) fn history(&self, effects: &HashMap<u64, usize>) -> Vec<Call<Op, Answer>> {
        let mut calls = Vec::new();
        for (number, command) in (0..).zip(&self.commands) {
            let Command {
                client, called, op, ..
            } = *command;
            match &command.answered {
                Some((at, answer)) => {
                    calls.push(Call::returned(client, called..=*at, op, answer.clone()));
                }
                None if effects.contains_key(&number) => {
                    calls.push(Call::pending(client, called, op));
                }
                None => {}
            }
        }
        calls
    }
}

impl Answer {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Done => vec![0],
            Self::Flag(flag) => vec![1, u8::from(*flag)],
            Self::Value(Some(value)) => [&[2][..], &value.to_le_bytes()].concat(),
            other => panic!("{other} is no answer of a write"),
        }
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        match bytes {
            [0] => Self::Done,
            [1, flag] => Self::Flag(*flag == 1),
            [2, value @ ..] => Self::Value(Some(u64::from_le_bytes(value.try_into().unwrap()))),
            _ => panic!("{bytes:?} is no answer"),
        }
    }
}

impl World {
    /// A client begins its next command, and sometimes looks at a follower.
    pub(crate) fn step(&mut self, client: usize) {
        self.look_at_follower();
        if self.time + 3_000 * MS > self.plan.end {
            return;
        }
        let number = self.clients.commands.len() as u64;
        let op = self.command(number);
        let is_once = !op.only_reads() && self.random.random_bool(0.6);
        self.clients.commands.push(Command {
            client,
            called: self.time,
            op,
            is_once,
            answered: None,
        });
        let state = &mut self.clients.all[client];
        state.current = Some(number);
        state.tries = 0;
        self.send(client);
    }

    fn command(&mut self, number: u64) -> Op {
        let register = self.random.random_range(0..2);
        let member = self.random.random_range(20..23);
        match self.random.random_range(0..10) {
            0..2 => Op::Put(register, number),
            2..4 => Op::Get(self.random.random_range(0..2)),
            4 | 5 => Op::Raise(10),
            6 => Op::Add(member),
            7 => Op::Remove(member),
            8 => Op::Move(register + 30, 31 - register),
            _ => Op::Range(0, 40),
        }
    }

    fn look_at_follower(&mut self) {
        let host = self.random.random_range(0..self.hosts.len());
        let wanted = self
            .random
            .random_bool(0.3)
            .then_some(self.clients.last_acked);
        let delay = self.delay();
        let what = What::StaleRead { wanted };
        self.later(
            delay,
            Event::At {
                host,
                boot: None,
                what,
            },
        );
    }

    fn send(&mut self, client: usize) {
        let any = self.random.random_range(0..self.hosts.len());
        let strays = self.random.random_bool(0.1);
        let state = &mut self.clients.all[client];
        let Some(op) = state.current else { return };
        state.tries += 1;
        let attempt = state.tries;
        let host = state.leader.filter(|_| !strays).unwrap_or(any);
        state.leader = Some(host);
        let command = &self.clients.commands[op as usize];
        let what = What::Request {
            client,
            op,
            command: command.op,
            is_once: command.is_once,
        };
        let delay = self.delay();
        self.later(
            delay,
            Event::At {
                host,
                boot: None,
                what,
            },
        );
        self.later(
            TIMEOUT,
            Event::Timeout {
                client,
                op,
                attempt,
            },
        );
    }

    pub(crate) fn replied(&mut self, client: usize, op: u64, result: Result<Answer, Failed>) {
        if self.clients.all[client].current != Some(op) {
            return;
        }
        match result {
            Ok(answer) => {
                self.clients.commands[op as usize].answered = Some((self.time, answer));
                self.count("answers");
                self.next_command(client);
            }
            Err(failed) => {
                self.clients.all[client].leader = failed.leader;
                self.again_or_next(client, op, failed.is_undone, 20 * MS);
            }
        }
    }

    pub(crate) fn timed_out(&mut self, client: usize, op: u64, attempt: u32) {
        let state = &mut self.clients.all[client];
        if state.current == Some(op) && state.tries == attempt {
            state.leader = None;
            self.again_or_next(client, op, false, 0);
        }
    }

    /// A command is tried again if it has not happened, or if trying it twice does no harm.
    fn again_or_next(&mut self, client: usize, op: u64, is_undone: bool, delay: u64) {
        let command = &self.clients.commands[op as usize];
        // An earlier try may have happened even if this one has not.
        let is_first = self.clients.all[client].tries == 1;
        let may = command.is_once || command.op.only_reads() || (is_undone && is_first);
        if may && self.clients.all[client].tries < MOST_TRIES {
            match delay {
                0 => self.send(client),
                delay => {
                    let attempt = self.clients.all[client].tries;
                    self.later(
                        delay,
                        Event::Timeout {
                            client,
                            op,
                            attempt,
                        },
                    );
                }
            }
            return;
        }
        self.count("without an answer");
        self.next_command(client);
    }

    fn next_command(&mut self, client: usize) {
        self.clients.all[client].current = None;
        let most = if self.time > self.plan.healed {
            400
        } else {
            150
        };
        let think = self.random.random_range(1..most * MS);
        self.later(think, Event::Step { client });
    }
}
