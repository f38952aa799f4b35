//! Which shards a worker gives away.

/// The most shards that a worker gives away at once. Enough to even out the loads within a few
/// windows, and few enough that a passing peak does not scatter the shards.
const MOST: usize = 8;

/// Which shards the worker `me` should give to which workers, from the owner and the load of each
/// shard. It gives the largest shards that leave the other worker with no more load than itself, so
/// that a single hot shard stays and the others go. It gives nothing unless its load exceeds the
/// average by more than `tolerance` percent.
///
/// O(shards × moves).
pub(super) fn plan(
    shards: &[(usize, u64)],
    workers: usize,
    me: usize,
    tolerance: u64,
) -> Vec<(usize, usize)> {
    let mut of_workers = vec![0_u64; workers];
    for &(owner, load) in shards {
        of_workers[owner] += load;
    }
    let average = of_workers.iter().sum::<u64>() / workers as u64;
    let bearable = bearable(average, tolerance);
    let mut mine: Vec<(u64, usize)> = shards
        .iter()
        .enumerate()
        .filter(|(_, (owner, load))| *owner == me && *load > 0)
        .map(|(shard, (_, load))| (*load, shard))
        .collect();
    mine.sort_unstable();
    let mut moves = Vec::new();
    while moves.len() < MOST && of_workers[me] > bearable {
        let to = (0..workers)
            .min_by_key(|&worker| of_workers[worker])
            .unwrap_or(me);
        let gap = of_workers[me] - of_workers[to];
        let fitting = mine.partition_point(|(load, _)| *load <= gap / 2);
        let Some(largest) = fitting.checked_sub(1) else {
            break;
        };
        let (load, shard) = mine.remove(largest);
        of_workers[me] -= load;
        of_workers[to] += load;
        moves.push((shard, to));
    }
    moves
}

/// The average and `tolerance` percent of it. If that exceeds a `u64`, every load is tolerated.
fn bearable(average: u64, tolerance: u64) -> u64 {
    let more = u128::from(average) * u128::from(tolerance) / 100;
    average.saturating_add(u64::try_from(more).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn loads(shards: &[(usize, u64)], workers: usize) -> Vec<u64> {
        let of = |worker| shards.iter().filter(move |shard| shard.0 == worker);
        (0..workers)
            .map(|worker| of(worker).map(|shard| shard.1).sum())
            .collect()
    }

    #[test]
    fn hot_shards_of_one_worker_are_shared_out() {
        let shards = [
            (0, 100),
            (1, 0),
            (0, 100),
            (1, 0),
            (0, 100),
            (1, 0),
            (0, 100),
        ];
        let mut after = shards;
        for (shard, worker) in plan(&shards, 2, 0, 20) {
            after[shard].0 = worker;
        }
        assert_eq!(loads(&after, 2), [200, 200]);
    }

    #[test]
    fn a_single_hot_shard_stays_and_the_others_go() {
        let shards = [(0, 1000), (0, 10), (0, 10), (1, 20)];
        assert_eq!(plan(&shards, 2, 0, 20), [(2, 1), (1, 1)]);
    }

    /// Would fail if the percentage overflowed: with overflow checks the worker would panic and
    /// end, without them it would give away what it should keep.
    #[test]
    fn a_tolerance_however_large_tolerates() {
        let shards = [(0, 1000), (0, 1000), (1, 0)];
        assert!(!plan(&shards, 2, 0, 20).is_empty());
        for tolerance in [u64::MAX, u64::MAX / 1000, 1 << 60] {
            assert_eq!(plan(&shards, 2, 0, tolerance), []);
        }
    }

    proptest! {
        #[test]
        fn what_is_given_away_is_ones_own_and_makes_nobody_busier_than_one_was(
            shards in prop::collection::vec((0..4_usize, 0..1000_u64), 0..60),
            tolerance in 0..50_u64,
        ) {
            let before = loads(&shards, 4);
            let mut after = shards.clone();
            for (shard, to) in plan(&shards, 4, 1, tolerance) {
                prop_assert_eq!(after[shard].0, 1);
                prop_assert_ne!(to, 1);
                after[shard].0 = to;
            }
            let after = loads(&after, 4);
            for worker in [0, 2, 3] {
                prop_assert!(after[worker] <= before[worker].max(before[1]));
            }
            prop_assert!(after[1] <= before[1]);
        }
    }
}
