//! What an object does when one thread uses it.

use std::fmt::{Debug, Display};
use std::hash::Hash;

/// A sequential, deterministic object: what each operation answers, and what state it leaves.
///
/// A history is linearizable if its operations, in some order that keeps those in order that did
/// not overlap, are a run of this object (Herlihy and Wing, "Linearizability: a correctness
/// condition for concurrent objects", 1990).
///
/// ```
/// use tremula_check::{DEFAULT_BUDGET, Event, History, Specification, search, Verdict};
///
/// /// A number, from which each operation takes something or nothing; it answers with what it
/// /// found.
/// struct Tank(u64);
///
/// impl Specification for Tank {
///     type State = u64;
///     type Operation = u64;
///     type Response = u64;
///
///     fn initial(&self) -> u64 {
///         self.0
///     }
///
///     fn step(&self, level: &mut u64, taken: &u64) -> u64 {
///         let found = *level;
///         *level -= taken.min(&found);
///         found
///     }
/// }
///
/// // Two threads at once find the tank full: one of them did not see the other.
/// let both_found = |found: [u64; 2]| {
///     let events = vec![
///         Event::returned(0, 0..=2, 1, found[0]),
///         Event::returned(1, 1..=3, 1, found[1]),
///     ];
///     let history = History::new(events).unwrap();
///     search(&Tank(5), &history, DEFAULT_BUDGET)
/// };
/// assert!(matches!(both_found([4, 5]), Verdict::Linearizable(_)));
/// assert!(matches!(both_found([5, 5]), Verdict::Stuck(_)));
/// ```
pub trait Specification {
    /// Everything on which the answers of later operations depend. Equal states must answer alike,
    /// because the search visits equal ones once.
    type State: Clone + Eq + Hash + Debug;
    /// An operation with its arguments.
    type Operation: Clone + Display;
    /// The answer of an operation, or the part of it that was seen.
    type Response: Clone + PartialEq + Display;

    /// The state before the history begins.
    fn initial(&self) -> Self::State;

    /// Carries out an operation, and returns the answer.
    fn step(&self, state: &mut Self::State, operation: &Self::Operation) -> Self::Response;

    /// Whether an operation whose answer is `answer` may have been observed as `observed`. Override
    /// it for a subject that reports less than the specification; an observation that is not the
    /// answer must then say less than the answer, never something different.
    fn accepts(&self, answer: &Self::Response, observed: &Self::Response) -> bool {
        answer == observed
    }

    /// Whether this operation, judging by the part of its answer that was seen, left the state
    /// unchanged, *whatever* the state was. `observed` is `None` if the operation never returned.
    /// The search places such operations as soon as it can, and leaves them out to shorten
    /// counterexamples. `false` is always correct.
    fn only_reads(&self, operation: &Self::Operation, observed: Option<&Self::Response>) -> bool {
        let _ = (operation, observed);
        false
    }
}
