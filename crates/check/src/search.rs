//! The search for an order: that of Wing and Gong, with Lowe's memoization.
//!
//! From a state and a set of placed calls, the next call can be any that began before the first of
//! the remaining calls ended, if the specification's answer is what was seen. Wing and Gong
//! ("Testing and verifying concurrent objects", JPDC 1993) try all of them, depth first. Lowe
//! ("Testing for linearizability", Concurrency and Computation 2017) remembers each pair of placed
//! set and state, and visits none twice. They keep the set as bits, and the remaining calls in a
//! list from which calls are lifted and put back. Here the history is arranged in lanes of calls
//! that do not overlap, so the set is one length per lane, its size depends on how many calls
//! overlap and not on how many there are, and the candidates are the next calls of the lanes.
//!
//! A call that only read is placed as soon as its answer fits, and nothing else is tried there: if
//! there is an order in which it comes later, the same order with the call moved here is valid too.
//!
//! Deciding linearizability is NP-complete (Gibbons and Korach, "Testing shared memories", SIAM
//! Journal on Computing 1997), so there is a budget. Real histories are cheap because few calls
//! overlap, and most answers determine what came before.

use crate::history::{Event, History};
use crate::specification::Specification;
use std::collections::HashSet;

/// A history of the operations and responses of a specification.
pub type HistoryOf<S> = History<<S as Specification>::Operation, <S as Specification>::Response>;

/// A call of the operations and responses of a specification.
pub(crate) type EventOf<S> = Event<<S as Specification>::Operation, <S as Specification>::Response>;

/// The number of configurations (sets of placed calls, with the state that they leave) that a
/// search may visit by default. A linearizable history takes a few per call; a search of this many
/// takes some seconds.
pub const DEFAULT_BUDGET: usize = 1_000_000;

/// What a search found.
#[derive(Clone, Debug)]
pub enum Verdict<State> {
    /// There is an order.
    Linearizable(Linearization),
    /// No order exists.
    Stuck(Stuck<State>),
    /// The budget is exhausted. Nothing is known; treat this as a failure.
    Undecided,
}

/// An order in which the calls may have happened.
#[derive(Clone, Debug)]
pub struct Linearization {
    /// Places in [`History::events`]. Calls that never returned are there if they took effect.
    pub order: Vec<usize>,
    /// The configurations visited.
    pub configurations: usize,
}

/// How far the search got in a history without an order.
#[derive(Clone, Debug)]
pub struct Stuck<State> {
    /// The longest order of a part of the calls, by their places in [`History::events`].
    pub placed: Vec<usize>,
    /// The state that it leaves.
    pub state: State,
    /// The remaining call that ends first. No order can be continued without it.
    pub blocked: usize,
}

/// Searches for an order of the history's calls that the specification allows, visiting at most
/// `budget` configurations.
///
/// Takes O(c · n) steps of the specification, and memory for c configurations, where n is the
/// number of calls that overlap at once. c is about the number of calls if the answers determine
/// the order, and exponential in n at worst.
pub fn search<S: Specification>(
    specification: &S,
    history: &HistoryOf<S>,
    budget: usize,
) -> Verdict<S::State> {
    Search::new(specification, history).run(budget)
}

struct Search<'a, S: Specification> {
    specification: &'a S,
    history: &'a HistoryOf<S>,
    /// For each lane, how many of its calls are placed.
    placed: Vec<u32>,
    /// The calls placed, in order.
    order: Vec<usize>,
    /// The number of calls that returned and are not placed.
    left: usize,
    seen: HashSet<(Box<[u32]>, S::State)>,
    deepest: Option<Stuck<S::State>>,
}

/// A configuration on the path from the beginning to the current one.
struct Frame<State> {
    /// The lane whose call led here.
    lane: usize,
    /// The untried choices from here: each is a lane, and the state after its next call. The last
    /// choice is tried next.
    choices: Vec<(usize, State)>,
}

impl<'a, S: Specification> Search<'a, S> {
    fn new(specification: &'a S, history: &'a HistoryOf<S>) -> Self {
        let returned = |event: &&EventOf<S>| event.returned.is_some();
        Self {
            specification,
            history,
            placed: vec![0; history.lanes().len()],
            order: Vec::new(),
            left: history.events().iter().filter(returned).count(),
            seen: HashSet::new(),
            deepest: None,
        }
    }

    fn run(mut self, budget: usize) -> Verdict<S::State> {
        if self.left == 0 {
            return self.linearizable();
        }
        let mut choices = self.choices(self.specification.initial());
        let mut path: Vec<Frame<S::State>> = Vec::new();
        loop {
            if let Some((lane, state)) = choices.pop() {
                self.place(lane);
                if self.left == 0 {
                    return self.linearizable();
                }
                let configuration = (self.placed.clone().into_boxed_slice(), state.clone());
                if !self.seen.insert(configuration) {
                    self.take_back(lane);
                    continue;
                }
                if self.seen.len() > budget {
                    return Verdict::Undecided;
                }
                let next = self.choices(state);
                path.push(Frame {
                    lane,
                    choices: std::mem::replace(&mut choices, next),
                });
            } else if let Some(frame) = path.pop() {
                self.take_back(frame.lane);
                choices = frame.choices;
            } else {
                // In a history without an order, the search has come to at least one dead end.
                return self.deepest.map_or(Verdict::Undecided, Verdict::Stuck);
            }
        }
    }

    fn linearizable(self) -> Verdict<S::State> {
        Verdict::Linearizable(Linearization {
            order: self.order,
            configurations: self.seen.len(),
        })
    }

    fn next(&self, lane: usize) -> Option<usize> {
        let placed = self.placed[lane] as usize;
        self.history.lanes()[lane].get(placed).copied()
    }

    fn place(&mut self, lane: usize) {
        if let Some(number) = self.next(lane) {
            self.placed[lane] += 1;
            self.order.push(number);
            self.left -= usize::from(self.history.events()[number].returned.is_some());
        }
    }

    fn take_back(&mut self, lane: usize) {
        self.placed[lane] -= 1;
        if let Some(number) = self.order.pop() {
            self.left += usize::from(self.history.events()[number].returned.is_some());
        }
    }

    /// The calls that can be next, as lanes, with the states after them; the call that ends first
    /// comes last. Records a dead end if there are none.
    fn choices(&mut self, state: S::State) -> Vec<(usize, S::State)> {
        let events = self.history.events();
        let next = (0..self.placed.len()).filter_map(|lane| Some((lane, self.next(lane)?)));
        let Some((_, blocked)) = next.clone().min_by_key(|&(_, number)| events[number].end())
        else {
            return Vec::new();
        };
        let mut choices = Vec::new();
        for (lane, number) in next {
            let event = &events[number];
            if event.called > events[blocked].end() {
                continue;
            }
            let mut after = state.clone();
            let answer = self.specification.step(&mut after, &event.operation);
            let observed = event.response();
            let fits = match observed {
                Some(observed) => self.specification.accepts(&answer, observed),
                None => after != state,
            };
            if !fits {
                continue;
            }
            if observed.is_some() && self.specification.only_reads(&event.operation, observed) {
                return vec![(lane, after)];
            }
            choices.push((event.end(), lane, after));
        }
        if choices.is_empty() {
            self.dead_end(state, blocked);
        }
        choices.sort_by_key(|(end, ..)| std::cmp::Reverse(*end));
        choices
            .into_iter()
            .map(|(_, lane, after)| (lane, after))
            .collect()
    }

    fn dead_end(&mut self, state: S::State, blocked: usize) {
        let deepest = self.deepest.as_ref().map(|stuck| stuck.placed.len());
        if deepest.is_none_or(|deepest| self.order.len() > deepest) {
            self.deepest = Some(Stuck {
                placed: self.order.clone(),
                state,
                blocked,
            });
        }
    }
}
