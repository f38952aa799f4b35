//! Walks over the parts of an index.

use super::*;
use std::fmt::Debug;
use std::time::{Duration, Instant};

/// How long a walk may take. Normally it takes less than a millisecond.
const PATIENCE: Duration = Duration::from_secs(20);

/// Fails if a part begins above one of its keys, or at or below one of the part before it; if the
/// first part has a beginning, or another part none; or if a part shows a wrong number of entries.
/// No other thread changes the index.
pub(crate) fn check_parts<K: Ord + Clone + Debug, V: Clone>(
    index: &impl Index<K, V>,
    model: &BTreeMap<K, V>,
) {
    let mut parts: Vec<(Option<K>, usize)> = Vec::new();
    let adapted = index.steps().walk(&mut |part| {
        let entries = part.entries.expect("nobody changes it");
        // A part without entries may begin where there is no key.
        if part.low.is_some() || parts.is_empty() {
            parts.push((part.low.clone(), entries));
        } else {
            assert_eq!(entries, 0, "a part with entries has no beginning");
        }
        ControlFlow::Continue(())
    });
    assert!(parts.is_sorted_by(|(one, _), (other, _)| one < other));
    assert!(parts[0].0.is_none(), "the first part begins with the keys");
    assert!(parts.len() == 1 || adapted.splits > 0);
    let ends = parts[1..].iter().map(|(low, _)| low.as_ref()).chain([None]);
    for ((low, entries), end) in parts.iter().zip(ends) {
        let low = low.as_ref().map_or(Bound::Unbounded, Bound::Included);
        let end = end.map_or(Bound::Unbounded, Bound::Excluded);
        let found = model.range((low, end)).count();
        assert_eq!(*entries, found, "from {low:?} to {end:?}");
    }
}

/// Fails if a part of short keys, whose heads have bits to spare, or of keys with a gap in their
/// heads does not begin where it says.
#[test]
fn parts_of_an_aspen_map_begin_where_they_say() {
    fn check<K: tremula_index::ByteKey + Debug>(keys: impl Iterator<Item = K>) {
        let index = aspen::<K, u64>();
        let mut model = BTreeMap::new();
        for (key, value) in keys.zip(0..) {
            index.insert(key.clone(), value);
            model.insert(key, value);
        }
        check_parts(&index, &model);
        let random = &mut Random::new(1);
        model.retain(|key, _| {
            let stays = random.below(10) == 0;
            if !stays {
                index.remove(key);
            }
            stays
        });
        check_parts(&index, &model);
    }
    check((0..=u16::MAX).rev());
    check((0..40_000_u64).map(|number| (number * 40_503 % 65_536) as u16));
    check((0..=u8::MAX).map(|number| number as i8));
    check(('\u{c000}'..'\u{f000}').rev());
    check((0..20_000_u32).filter_map(|number| char::from_u32(number * 7919 % 0x11_0000)));
}

/// Fails if a walk waits for a writer that has locked a part, or shows what it cannot know.
pub(crate) fn a_walk_waits_for_no_writer<I: Index<u64, u64>>(make: fn() -> I) {
    let index = &make();
    for key in 0..300 {
        index.insert(key, key);
    }
    let (held, done) = (&AtomicBool::new(false), &AtomicBool::new(false));
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            index.steps().atomically(&[KeyRange::all()], &mut |step| {
                // Splits parts while they are locked.
                for key in 300..400 {
                    step.insert(key, key);
                }
                held.store(true, Ordering::Release);
                let begun = Instant::now();
                while !done.load(Ordering::Acquire) {
                    assert!(begun.elapsed() < PATIENCE, "a walk waits for a writer");
                    thread::yield_now();
                }
            });
        });
        while !held.load(Ordering::Acquire) {
            assert!(!writer.is_finished(), "the step panicked");
            thread::yield_now();
        }
        let mut parts = Vec::new();
        index.steps().walk(&mut |part| {
            parts.push(part.clone());
            ControlFlow::Continue(())
        });
        done.store(true, Ordering::Release);
        assert!(parts.len() > 1 && parts.is_sorted_by(|one, other| one.low < other.low));
        assert!(parts[0].acquisitions > 0, "it was written before");
        for part in parts {
            assert_eq!(part.entries, None, "{part:?} is locked");
        }
    });
    check_parts(index, &(0..400).map(|key| (key, key)).collect());
}
