//! An observer that sees each message at the moment at which the log has it.

use crate::model::{self, State};
use std::collections::HashMap;
use tremula_group::{
    Action, Config, Epoch, Moment, Node, Position, Record, Refusal, Start, records,
};
use tremula_log::Sequence;

pub(crate) struct Oracle {
    node: Node,
    /// The state at each sequence, from 0 on, and when the log had it.
    pub(crate) states: Vec<State>,
    pub(crate) times: Vec<u64>,
    /// For each command, how many effects of it the log has.
    pub(crate) effects: HashMap<u64, usize>,
    pub(crate) refusal: Option<Refusal>,
}

impl Oracle {
    pub(crate) fn new(config: &Config) -> Self {
        let config = config.clone();
        let start = Start::empty(&config);
        let node = Node::start(config, "", u64::MAX, start, Moment::default());
        Self {
            node: node.expect("a node"),
            states: vec![State::new()],
            times: vec![0],
            effects: HashMap::new(),
            refusal: None,
        }
    }

    pub(crate) fn stored(&mut self, time: u64, position: Position, bytes: &[u8]) {
        self.node.record(Moment::default(), 1, position, bytes);
        while let Some(action) = self.node.next_action() {
            match action {
                Action::Commit { first, batch, .. } => {
                    for (_, record) in records(first, &batch) {
                        let mut state = self.states[self.states.len() - 1].clone();
                        match record {
                            Record::Effect(effect) => {
                                let (op, change) = model::decode(effect);
                                model::apply(&mut state, change);
                                *self.effects.entry(op).or_default() += 1;
                            }
                            Record::Once { id, .. } => {
                                let op = u64::from_le_bytes(id.try_into().expect("a number"));
                                self.effects.entry(op).or_default();
                            }
                        }
                        self.states.push(state);
                        self.times.push(time);
                    }
                }
                Action::Refuse(refusal) => self.refusal = Some(refusal),
                _ => {}
            }
        }
    }

    /// The newest claim in the log.
    pub(crate) fn epoch(&self) -> Epoch {
        self.node.point().reign.epoch
    }

    pub(crate) fn last(&self) -> Sequence {
        Sequence::new(self.states.len() as u64 - 1)
    }

    /// The last record that the log had at this time.
    pub(crate) fn last_at(&self, time: u64) -> Sequence {
        let known = self.times.partition_point(|stored| *stored <= time);
        Sequence::new(known as u64 - 1)
    }
}
