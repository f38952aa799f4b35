//! Lines whose address a thread has just loaded: it cannot ask for them before.

use super::{Elapsed, two_sockets};
use tremula_sync::CachePadded;
use tremula_sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use tremula_sync::sim::{Machine, Simulation, scoped, work};

type Node = CachePadded<AtomicU64>;

/// What a thread waits for a node that another has changed, in nanoseconds, if it knows where the
/// node is, or is led there by a pointer with bits of another meaning.
fn waits(machine: Machine, is_led: bool, changes: bool) -> u64 {
    let run = Simulation::on(machine).run(move || {
        // 64 of them, so that no pointer is beside the one that is looked at.
        let nodes: Box<[Node]> = (0..64).map(|_| Node::default()).collect();
        let node = &nodes[32];
        let tagged = (&raw const *node).map_addr(|address| address | 1 << 50 | 1);
        let [link, another] = [tagged, &raw const nodes[0]]
            .map(|node| Box::new(CachePadded::new(AtomicPtr::new(node.cast_mut()))));
        let times = scoped(
            2,
            |thread| {
                if thread == 0 {
                    node.store(1, Ordering::Relaxed);
                    return 0;
                }
                work(2_000);
                link.load(Ordering::Relaxed);
                if !is_led {
                    // The pointer was loaded so long ago that the line would be here.
                    (0..4).for_each(|_| _ = another.load(Ordering::Relaxed));
                }
                let begun = tremula_sync::now();
                if changes {
                    node.fetch_add(1, Ordering::Relaxed);
                } else {
                    node.load(Ordering::Relaxed);
                }
                begun.elapsed_virtually()
            },
            || {},
        );
        times[1]
    });
    run.result
}

#[test]
fn a_changed_line_costs_more_if_its_address_was_loaded_right_before() {
    let machine = Machine {
        led: 300,
        ..two_sockets()
    };
    // A line that another core of the cluster has changed takes 45 ns, and an addition 6 more.
    let [known, led] = [false, true].map(|is_led| waits(machine, is_led, false));
    assert!((45..=50).contains(&known), "{known}");
    assert!((135..=140).contains(&led), "{led}");
    let [known, led] = [false, true].map(|is_led| waits(machine, is_led, true));
    assert!((50..=56).contains(&known), "{known}");
    assert!((140..=146).contains(&led), "{led}");
    assert_eq!(
        waits(two_sockets(), true, false),
        waits(two_sockets(), false, false)
    );
}
