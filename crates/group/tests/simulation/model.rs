//! What the clients' commands do: a map from small keys to numbers.

use std::collections::BTreeMap;
use std::fmt;
use tremula_check::Specification;
use tremula_group::Effects;

pub(crate) type State = BTreeMap<u8, u64>;

/// A command of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// A register is written.
    Put(u8, u64),
    /// A register, a counter or a member of a set is read.
    Get(u8),
    /// A counter is raised; the answer is its new value.
    Raise(u8),
    /// A set gets a member; the answer is whether it is new.
    Add(u8),
    /// A set loses a member; the answer is whether it was there.
    Remove(u8),
    /// All keys between two are read.
    Range(u8, u8),
    /// A transaction: one unit goes from the first account to the second, if it has one; an account
    /// that is missing has ten.
    Move(u8, u8),
}

/// The answer to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    Value(Option<u64>),
    Flag(bool),
    Entries(Vec<(u8, u64)>),
}

/// What a key is now.
pub(crate) type Change = (u8, Option<u64>);

impl Op {
    /// What the command answers in this state, and what it changes.
    pub(crate) fn run(&self, state: &State) -> (Answer, Vec<Change>) {
        let unit = |account| state.get(&account).copied().unwrap_or(10);
        match *self {
            Self::Put(key, value) => (Answer::Done, vec![(key, Some(value))]),
            Self::Get(key) => (Answer::Value(state.get(&key).copied()), Vec::new()),
            Self::Raise(key) => {
                let value = state.get(&key).copied().unwrap_or(0) + 1;
                (Answer::Value(Some(value)), vec![(key, Some(value))])
            }
            Self::Add(key) => match state.contains_key(&key) {
                true => (Answer::Flag(false), Vec::new()),
                false => (Answer::Flag(true), vec![(key, Some(1))]),
            },
            Self::Remove(key) => match state.contains_key(&key) {
                true => (Answer::Flag(true), vec![(key, None)]),
                false => (Answer::Flag(false), Vec::new()),
            },
            Self::Range(low, high) => {
                let entries = state.range(low..=high).map(|(key, value)| (*key, *value));
                (Answer::Entries(entries.collect()), Vec::new())
            }
            Self::Move(from, to) => match unit(from) {
                0 => (Answer::Flag(false), Vec::new()),
                left => {
                    let changes = vec![(from, Some(left - 1)), (to, Some(unit(to) + 1))];
                    (Answer::Flag(true), changes)
                }
            },
        }
    }

    pub(crate) fn only_reads(&self) -> bool {
        matches!(self, Self::Get(_) | Self::Range(..))
    }
}

impl fmt::Display for Op {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self:?}")
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self:?}")
    }
}

pub(crate) fn apply(state: &mut State, (key, value): Change) {
    match value {
        Some(value) => state.insert(key, value),
        None => state.remove(&key),
    };
}

/// The first byte of every effect.
const KIND: u8 = 1;

/// The effects of a command, each with the command's number, and filled up to some length.
pub(crate) fn effects(op: u64, changes: &[Change], filler: usize) -> Effects {
    let mut effects = Effects::new();
    for (key, value) in changes {
        let mut bytes = vec![KIND];
        bytes.extend_from_slice(&op.to_le_bytes());
        bytes.push(*key);
        bytes.push(u8::from(value.is_some()));
        bytes.extend_from_slice(&value.unwrap_or(0).to_le_bytes());
        bytes.resize(bytes.len() + filler, b'.');
        effects.push(&bytes);
    }
    effects
}

/// The command and the change of an effect.
pub(crate) fn decode(effect: &[u8]) -> (u64, Change) {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes[..8].try_into().unwrap());
    let effect = &effect[1..];
    let value = (effect[9] == 1).then(|| number(&effect[10..]));
    (number(effect), (effect[8], value))
}

/// The commands one at a time.
pub(crate) struct Model;

impl Specification for Model {
    type State = State;
    type Operation = Op;
    type Response = Answer;

    fn initial(&self) -> State {
        State::new()
    }

    fn step(&self, state: &mut State, op: &Op) -> Answer {
        let (answer, changes) = op.run(state);
        changes.into_iter().for_each(|change| apply(state, change));
        answer
    }

    fn only_reads(&self, op: &Op, observed: Option<&Answer>) -> bool {
        op.only_reads() || observed == Some(&Answer::Flag(false))
    }
}
