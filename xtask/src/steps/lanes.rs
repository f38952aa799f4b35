//! Running the steps in two lanes, side by side: while one links, or its tests wait, the other has
//! the processors.

use super::report::Report;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Steps that run one after the other, since they share a build directory or fight for processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// What is tested as it ships.
    Tests,
    /// What reads the sources, and what builds them for a checker; and at its end the tests of the
    /// real server, which wait more than they work, so that something is built beside them.
    Checks,
}

/// A step that has run.
pub(super) struct Done {
    pub(super) report: Report,
    pub(super) took: Duration,
}

/// Runs the steps, each lane's in their order, until `proceed` says of one that it was the last; a
/// step that the other lane has begun by then is still run to its end. Returns what was done, in
/// the order of the steps.
pub(super) fn run<S: Sync, D: Send>(
    steps: &[S],
    lane: impl Fn(&S) -> Lane + Sync,
    proceed: impl Fn(&D) -> bool + Sync,
    one: impl Fn(&S) -> D + Sync,
) -> Vec<D> {
    let ended = AtomicBool::new(false);
    let run_lane = |which: Lane| {
        let steps = steps.iter().enumerate();
        let mut done = Vec::new();
        for (at, step) in steps.filter(|(_, step)| lane(step) == which) {
            if ended.load(Ordering::Relaxed) {
                break;
            }
            let did = one(step);
            if !proceed(&did) {
                ended.store(true, Ordering::Relaxed);
            }
            done.push((at, did));
        }
        done
    };
    let mut done = thread::scope(|scope| {
        let checks = scope.spawn(|| run_lane(Lane::Checks));
        let mut done = run_lane(Lane::Tests);
        done.extend(checks.join().expect("a step does not panic"));
        done
    });
    done.sort_by_key(|&(at, _)| at);
    done.into_iter().map(|(_, did)| did).collect()
}

#[cfg(test)]
mod unit_tests {
    use super::*;
    use std::sync::{Barrier, Mutex};

    #[test]
    fn lanes_run_side_by_side_and_each_in_its_order() {
        let steps = [(Lane::Tests, 0), (Lane::Checks, 1), (Lane::Tests, 2)];
        let order = Mutex::new(Vec::new());
        let meet = Barrier::new(2);
        let one = |&(lane, number): &(Lane, u32)| {
            if number < 2 {
                meet.wait();
            }
            order.lock().unwrap().push((lane, number));
            number
        };
        assert_eq!(run(&steps, |step| step.0, |_| true, one), [0, 1, 2]);
        let mut order = order.into_inner().unwrap();
        order.retain(|step| step.0 == Lane::Tests);
        assert_eq!(order, [(Lane::Tests, 0), (Lane::Tests, 2)]);
    }

    #[test]
    fn a_failure_ends_the_run_unless_it_is_to_go_on() {
        let steps = [Lane::Tests, Lane::Tests];
        let ran = |keep_going| run(&steps, |&lane| lane, |&()| keep_going, |_| ()).len();
        assert_eq!((ran(false), ran(true)), (1, 2));
    }
}
