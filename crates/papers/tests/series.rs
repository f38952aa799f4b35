//! The compression of time series against the points themselves, and with arbitrary bytes; the
//! cache of series against a model.
#![cfg(not(any(loom, shuttle)))]

use proptest::prelude::*;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use std::collections::BTreeMap;
use tremula_papers::series::{Block, Point, SeriesCache, SeriesConfig};

/// Compares values as bits, so that a NaN equals itself.
fn bits(points: impl IntoIterator<Item = Point>) -> Vec<(i64, u64)> {
    let bits = |point: Point| (point.timestamp, point.value.to_bits());
    points.into_iter().map(bits).collect()
}

fn value() -> impl Strategy<Value = f64> {
    let special = [
        0.0,
        -0.0,
        1.0,
        f64::NAN,
        -f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MIN,
        f64::MAX,
        f64::MIN_POSITIVE,
        f64::from_bits(1),
        f64::from_bits(0x7ff0_0000_0000_0001),
    ];
    prop_oneof![
        3 => any::<u64>().prop_map(f64::from_bits),
        2 => prop::sample::select(special.to_vec()),
        // One bit, or a few adjacent bits, to reach every window.
        2 => (any::<u64>(), 0..64_u32, 0..64_u32)
            .prop_map(|(bits, left, right)| f64::from_bits(bits << left >> right)),
        2 => (0..100_u32).prop_map(f64::from),
    ]
}

fn timestamp() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        prop::sample::select(vec![i64::MIN, -1, 0, 1, i64::MAX]),
        // Around the widths of the codes.
        (0..64_u32, -2..=2_i64).prop_map(|(shift, near)| (1_i64 << shift).wrapping_add(near)),
        (0..64_u32, -2..=2_i64).prop_map(|(shift, near)| (-1_i64 << shift).wrapping_add(near)),
        0..100_000_i64,
    ]
}

fn points() -> impl Strategy<Value = Vec<Point>> {
    let point = (timestamp(), value()).prop_map(|(timestamp, value)| Point { timestamp, value });
    prop::collection::vec(point, 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_points_come_back_bit_for_bit(points in points()) {
        let block: Block = points.iter().copied().collect();
        prop_assert_eq!(bits(block.points()), bits(points.clone()));
        let copy = Block::from_bytes(&block.to_bytes()).unwrap();
        prop_assert_eq!(bits(copy.points()), bits(points.clone()));
        prop_assert_eq!(copy.span(), block.span());
        prop_assert_eq!(copy.len(), points.len() as u64);
        let times = || points.iter().map(|point| point.timestamp);
        prop_assert_eq!(block.span(), times().min().map(|least| least..=times().max().unwrap()));
    }

    #[test]
    fn any_bytes_are_a_block_or_an_error(
        count in prop_oneof![0..50_u64, any::<u64>()],
        coded in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let bytes = [&count.to_be_bytes(), &coded[..]].concat();
        if let Ok(block) = Block::from_bytes(&bytes) {
            prop_assert_eq!(block.points().count() as u64, count);
            // Other bits may encode the same points. The encoder's own bits must come back.
            let again: Block = block.points().collect();
            prop_assert_eq!(bits(again.points()), bits(block.points()));
        }
        let _ = Block::from_bytes(&coded);
    }

    #[test]
    fn a_damaged_block_is_a_block_or_an_error(
        points in points(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8_u32), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = points.into_iter().collect::<Block>().to_bytes();
        for (place, bit) in flips {
            let place = place.index(bytes.len());
            bytes[place] ^= 1 << bit;
        }
        if let Ok(block) = Block::from_bytes(&bytes) {
            prop_assert_eq!(block.points().count() as u64, block.len());
        }
        let _ = Block::from_bytes(&bytes[..cut.index(bytes.len())]);
    }
}

#[test]
fn errors_name_what_is_wrong() {
    let error = |bytes: &[u8]| Block::from_bytes(bytes).unwrap_err().to_string();
    assert!(error(&[0; 7]).contains("here are 7"));
    let mut two = [(0, 1.0), (9, 2.0)]
        .map(|(timestamp, value)| Point { timestamp, value })
        .into_iter()
        .collect::<Block>()
        .to_bytes();
    two[7] = 200;
    let broken = error(&two);
    assert!(
        broken.contains("200 points") && broken.contains("point 5 (from 0) at bit 167"),
        "{broken}"
    );
    two[7] = 2;
    assert!(Block::from_bytes(&two).is_ok());
    two.push(0);
    assert!(error(&two).contains("follows the last point"));
}

/// Points as a monitored service has them: one a minute, one in 25 a second late, with a level that
/// mostly stays the same and otherwise is counted up or down.
fn service(points: usize) -> Vec<Point> {
    let mut random = StdRng::seed_from_u64(1);
    let mut level = 120_i32;
    let point = |minute: usize| {
        if random.random_ratio(2, 5) {
            level = (level + random.random_range(-6..=6)).clamp(0, 1000);
        }
        let late = i64::from(random.random_ratio(1, 25));
        Point {
            timestamp: 1_700_000_000 + 60 * minute as i64 + late,
            value: f64::from(level),
        }
    };
    (0..points).map(point).collect()
}

#[test]
fn a_regular_series_takes_at_most_1_6_bytes_a_point() {
    let points = service(100_000);
    let cache = SeriesCache::new(SeriesConfig::default().retain(u64::MAX));
    for point in &points {
        cache.append(1, point.timestamp, point.value).unwrap();
    }
    assert_eq!(
        bits(cache.range(1, ..).unwrap()),
        bits(points.iter().copied())
    );
    let whole: Block = points.iter().copied().collect();
    let coded = whole.to_bytes().len() as f64 / points.len() as f64;
    let held = cache.bytes() as f64 / points.len() as f64;
    assert!(coded <= 1.6, "{coded:.3} bytes a point in one block");
    // Blocks of two hours have 120 points, a first one of 16 bytes, and a head.
    assert!(held <= 1.6, "{held:.3} bytes a point, all counted");
    println!("{coded:.3} bytes a point in one block, {held:.3} in blocks of two hours");
}

#[derive(Clone, Debug)]
enum Step {
    /// Appends to this series, at this distance from the last point of all series, this value.
    Append(u64, i64, f64),
    Range(u64, i64, i64),
    Remove(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let series = 0..4_u64;
    let step = prop_oneof![
        12 => (series.clone(), -3..15_i64, value())
            .prop_map(|(series, after, value)| Step::Append(series, after, value)),
        3 => (series.clone(), -20..400_i64, 0..200_i64)
            .prop_map(|(series, from, length)| Step::Range(series, from, from + length)),
        1 => series.prop_map(Step::Remove),
    ];
    prop::collection::vec(step, 0..200)
}

proptest! {
    #[test]
    fn the_cache_does_what_a_map_of_points_does(steps in steps(), span in 1..50_u32) {
        let config = SeriesConfig::default().block_span(span).retain(u64::MAX).cells(2);
        let cache = SeriesCache::new(config);
        let mut model: BTreeMap<u64, Vec<Point>> = BTreeMap::new();
        let mut now = -30_i64;
        for step in steps {
            match step {
                Step::Append(series, after, value) => {
                    let timestamp = now + after;
                    let last = model.get(&series).and_then(|points| points.last());
                    let late = last.is_some_and(|last| timestamp < last.timestamp);
                    prop_assert_eq!(cache.append(series, timestamp, value).is_err(), late);
                    if !late {
                        model.entry(series).or_default().push(Point { timestamp, value });
                        now = timestamp;
                    }
                }
                Step::Range(series, from, to) => {
                    let inside = |point: &&Point| (from..to).contains(&point.timestamp);
                    let expected = model
                        .get(&series)
                        .map(|points| bits(points.iter().filter(inside).copied()));
                    prop_assert_eq!(cache.range(series, from..to).map(bits), expected);
                }
                Step::Remove(series) => {
                    prop_assert_eq!(cache.remove(series), model.remove(&series).is_some());
                }
            }
            prop_assert_eq!(cache.len(), model.len());
        }
        for (series, points) in &model {
            prop_assert_eq!(cache.range(*series, ..).map(bits), Some(bits(points.iter().copied())));
            cache.remove(*series);
        }
        prop_assert_eq!(cache.bytes(), 0);
    }
}

#[test]
fn old_blocks_go_and_what_is_retained_stays() {
    let cache = SeriesCache::new(SeriesConfig::default().block_span(10).retain(25));
    let mut most = 0;
    for timestamp in 0..10_000 {
        cache.append(0, timestamp, 1.0).unwrap();
        let points = cache.range(0, ..).unwrap();
        assert!(points.len() <= 46 && points[0].timestamp <= (timestamp - 25).max(0));
        most = most.max(cache.bytes());
    }
    assert!(most < 2_000, "{most} bytes");
    // As far apart as possible.
    cache.append(1, i64::MIN, 1.0).unwrap();
    cache.append(1, i64::MAX, 1.0).unwrap();
    assert_eq!(cache.range(1, ..).unwrap().len(), 1);
}

#[test]
fn threads_append_to_series_of_their_own_and_to_one_of_all() {
    let cache = SeriesCache::default();
    std::thread::scope(|scope| {
        for own in 1..5_u64 {
            let cache = &cache;
            scope.spawn(move || {
                for timestamp in 0..2_000 {
                    cache.append(own, timestamp, own as f64).unwrap();
                    // Refused as late if another thread was faster.
                    let _ = cache.append(0, timestamp, own as f64);
                }
            });
        }
    });
    for own in 1..5 {
        let points = cache.range(own, ..).unwrap();
        assert!(points.iter().map(|point| point.timestamp).eq(0..2_000));
        assert!(points.iter().all(|point| point.value == own as f64));
    }
    let all = cache.range(0, ..).unwrap();
    assert!(all.is_sorted_by_key(|point| point.timestamp) && all.len() >= 2_000);
}
