//! The columns of a contention map.

use serde_json::Value;
use std::ops::Range;

/// The sums of a layer: of buckets that have hot keys, and of all. `key` reads a bound; it may be
/// shorter than a key. A column without bounds has those of the one before; the first has some.
pub(crate) fn sums<K: PartialOrd>(
    columns: &[Value],
    layer: &str,
    hot: &Range<K>,
    key: impl Fn(&str) -> K,
) -> (u64, u64) {
    let (mut near, mut all) = (0, 0);
    let mut bounds: Vec<K> = Vec::new();
    for column in columns {
        if let Some(new) = column["bounds"].as_array() {
            let texts = new.iter().map(|low| low.as_str().unwrap_or(""));
            bounds = texts.map(&key).collect();
        }
        let counts = column[layer].as_array().expect("a layer");
        for (at, count) in counts.iter().enumerate() {
            let count = count.as_u64().expect("a count");
            let is_below = bounds.get(at + 1).is_some_and(|end| *end <= hot.start);
            all += count;
            if !is_below && bounds[at] < hot.end {
                near += count;
            }
        }
    }
    (near, all)
}

#[test]
fn buckets_that_have_a_hot_key_are_counted_apart() {
    let columns = [
        serde_json::json!({ "bounds": ["", "10", "20", "30"], "writes": [1, 2, 4, 8] }),
        serde_json::json!({ "bounds": null, "writes": [16, 32, 64, 128] }),
        serde_json::json!({ "bounds": ["", "29"], "writes": [256, 512] }),
    ];
    let number = |bound: &str| bound.parse().unwrap_or(0);
    let of = |hot| sums(&columns, "writes", &hot, number);
    assert_eq!(of(10..20), (2 + 32 + 256, 1023));
    assert_eq!(of(19..30), (2 + 4 + 32 + 64 + 256 + 512, 1023));
    assert_eq!(of(40..50), (8 + 128 + 512, 1023));
}
