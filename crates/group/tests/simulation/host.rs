//! A machine with a node on it: its disk, its state, its clock.

use crate::model::{self, Answer, State};
use std::collections::HashMap;
use tremula_group::{Config, Moment, Node, OnceTable, Point, Record, Role, Start, records};
use tremula_log::{Batch, Chain, Sequence};

/// A reply that waits to be released.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) client: usize,
    pub(crate) op: u64,
    pub(crate) answer: Answer,
    pub(crate) is_write: bool,
}

/// What survives a crash.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub(crate) point: Point,
    pub(crate) once: OnceTable,
    pub(crate) state: State,
}

pub(crate) struct Host {
    pub(crate) node: Option<Node>,
    /// Which start of the machine this is: what was sent to an earlier one is lost.
    pub(crate) boot: u64,
    /// The state, with what is not confirmed.
    pub(crate) state: State,
    pub(crate) snapshot: Snapshot,
    /// Confirmed batches behind the snapshot, each with the chain behind it.
    pub(crate) own: Vec<(Sequence, Batch, Chain)>,
    /// How many of them are on the disk.
    pub(crate) synced: usize,
    pub(crate) held: HashMap<u64, Held>,
    /// The last record of a stale read, which must not go back.
    pub(crate) shown: Sequence,
    /// Real time passes this often faster than the machine's clock.
    pub(crate) rate: f64,
    pub(crate) offset: u64,
    pub(crate) paused_until: u64,
    pub(crate) isolated_until: u64,
    /// Until when the network holds back what the machine appends.
    pub(crate) held_until: u64,
    /// The reading of the node, and its next message.
    pub(crate) reading: (u64, u64),
    /// The last message that a reading has lost.
    pub(crate) glitch: u64,
    pub(crate) tick_serial: u64,
    /// When the log was heard of last.
    pub(crate) contact: u64,
}

impl Host {
    pub(crate) fn new(config: &Config, rate: f64, offset: u64) -> Self {
        let Start { point, once, .. } = Start::empty(config);
        Self {
            node: None,
            boot: 0,
            state: State::new(),
            snapshot: Snapshot {
                point,
                once,
                state: State::new(),
            },
            own: Vec::new(),
            synced: 0,
            held: HashMap::new(),
            shown: Sequence::NONE,
            rate,
            offset,
            paused_until: 0,
            isolated_until: 0,
            held_until: 0,
            reading: (0, 0),
            glitch: 0,
            tick_serial: 0,
            contact: 0,
        }
    }

    /// The machine's clock at a time of the world.
    pub(crate) fn clock(&self, time: u64) -> Moment {
        Moment::from_micros(self.offset + (time as f64 * self.rate) as u64)
    }

    /// The first time of the world at which the machine's clock shows this moment.
    pub(crate) fn time_of(&self, moment: Moment) -> u64 {
        (moment.micros().saturating_sub(self.offset) as f64 / self.rate).ceil() as u64 + 1
    }

    pub(crate) fn role(&self) -> Option<Role> {
        self.node.as_ref().map(Node::role)
    }

    /// The state that the disk has: the snapshot and the own log.
    pub(crate) fn reload(&mut self) {
        let mut state = self.snapshot.state.clone();
        for (first, batch, _) in &self.own {
            apply(&mut state, *first, batch);
        }
        self.state = state;
    }

    pub(crate) fn last_own(&self) -> Sequence {
        let last = self.own.last();
        last.map_or(self.snapshot.point.last, |(first, batch, _)| {
            first.plus(batch.len() as u64 - 1)
        })
    }

    pub(crate) fn commit(&mut self, first: Sequence, batch: Batch, is_new: bool) {
        assert_eq!(first, self.last_own().plus(1), "a batch was skipped");
        let before = self.own.last().map(|(_, _, chain)| *chain);
        let chain = batch.chain_behind(before.unwrap_or(self.snapshot.point.chain));
        if is_new {
            apply(&mut self.state, first, &batch);
        }
        self.own.push((first, batch, chain));
    }

    /// Puts what is confirmed into a new snapshot.
    pub(crate) fn save(&mut self) {
        let Some(node) = &self.node else { return };
        if node.point().last != self.last_own() {
            return; // The own log is not verified yet.
        }
        let (point, once) = (node.point().clone(), node.once_table().clone());
        let unconfirmed = self.state.clone();
        self.reload();
        let state = std::mem::replace(&mut self.state, unconfirmed);
        self.snapshot = Snapshot { point, once, state };
        self.own.clear();
        self.synced = 0;
    }

    /// Loses what is in memory, and of the own log what is not on the disk.
    pub(crate) fn crash(&mut self, kept: usize) {
        self.own.truncate(kept.max(self.synced));
        self.node = None;
        self.held.clear();
        self.boot += 1;
        self.shown = Sequence::NONE;
    }

    pub(crate) fn start(&self) -> Start {
        let own = self.own.last().map(|(.., chain)| (self.last_own(), *chain));
        Start {
            point: self.snapshot.point.clone(),
            once: self.snapshot.once.clone(),
            own,
        }
    }
}

fn apply(state: &mut State, first: Sequence, batch: &Batch) {
    for (_, record) in records(first, batch) {
        if let Record::Effect(effect) = record {
            model::apply(state, model::decode(effect).1);
        }
    }
}
