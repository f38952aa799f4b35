//! A load on a few keys of many, and where the map shows it.

use crate::columns;
use crate::support::http::{WithPage, get, with_page};
use crate::support::resp::{Connection, encode};
use crate::support::{PATIENCE, eventually};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// The keys of the load, and those that all clients write.
const KEYS: u32 = 100_000;
const HOT: std::ops::Range<u32> = 50_000..50_200;

fn key(number: u32) -> String {
    format!("user:{number:06}")
}

/// Writes hot keys until it should stop.
fn write_hot(mut client: Connection, seed: u32, stops: &AtomicBool) {
    let mut random = seed;
    while !stops.load(Relaxed) {
        let mut commands = Vec::new();
        for _ in 0..64 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let number = HOT.start + (random >> 8) % (HOT.end - HOT.start);
            commands.extend(encode(&["incrby", &key(number), "1"]));
        }
        client.send(&commands);
        (0..64).for_each(|_| assert!(client.reply().is_some()));
    }
}

/// The sums of a layer: of buckets that have hot keys, and of all.
fn sums(columns: &[Value], layer: &str) -> (u64, u64) {
    let hot = key(HOT.start)..key(HOT.end);
    columns::sums(columns, layer, &hot, str::to_owned)
}

#[test]
fn the_map_shows_the_hot_range_where_it_is() {
    let WithPage { server, page, .. } = with_page(&["--threads", "4", "--gather", "no"]);
    let mut client = server.connect();
    let columns = || {
        let map = get(page, "/api/map/db0").json();
        // There is no map before the observer has looked for the first time.
        map["columns"].as_array().cloned().unwrap_or_default()
    };
    // What has split before that is no news.
    eventually("the observer looks", || !columns().is_empty());
    for from in (0..KEYS).step_by(1000) {
        let mut words = vec!["mset".to_owned()];
        words.extend((from..from + 1000).flat_map(|number| [key(number), "0".to_owned()]));
        client.call(&words);
    }
    let loaded = |column: &Value| {
        let entries = column["entries"].as_array().expect("entries");
        entries.len() > 100
            && entries.iter().filter_map(Value::as_u64).sum::<u64>() == u64::from(KEYS)
    };
    eventually("the keys are in the map", || {
        columns().last().is_some_and(loaded)
    });
    let marks = columns()
        .iter()
        .flat_map(|column| column["marks"].as_array().cloned().unwrap_or_default())
        .count();
    assert!(marks > 0, "loading has split leaves");
    let begin = columns()
        .last()
        .map_or(0, |column| column["at"].as_u64().expect("a time"));
    let stops = AtomicBool::new(false);
    let since = || {
        let map = get(page, &format!("/api/map/db0?from={begin}")).json();
        // The first of them is the one before the load.
        let mut columns = map["columns"].as_array().expect("columns").clone();
        if let Some(first) = columns.first_mut() {
            for layer in ["acquisitions", "waits", "writes", "reads"] {
                let zeros = first[layer].as_array().map_or(0, Vec::len);
                first[layer] = json!(vec![0; zeros]);
            }
        }
        columns
    };
    thread::scope(|scope| {
        for seed in 0..6 {
            let (client, stops) = (server.connect(), &stops);
            scope.spawn(move || write_hot(client, seed, stops));
        }
        let is_seen = || {
            let columns = since();
            let enough = |layer, least| sums(&columns, layer).1 >= least;
            enough("waits", 20) && enough("writes", 10_000) && enough("acquisitions", 10_000)
        };
        let deadline = Instant::now() + PATIENCE;
        while !is_seen() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(100));
        }
        stops.store(true, Relaxed);
        assert!(
            is_seen(),
            "{:?}",
            ["waits", "writes", "acquisitions"].map(|layer| sums(&since(), layer))
        );
    });
    let columns = since();
    for layer in ["waits", "writes", "acquisitions"] {
        let (hot, all) = sums(&columns, layer);
        assert!(
            hot * 10 >= all * 9,
            "{layer}: {hot} of {all} are in the hot range"
        );
    }
    // Of a hundred thousand keys, those in buckets with a hot key are few.
    let last = columns.len() - 1;
    let with_bounds = columns
        .iter()
        .rposition(|column| column["bounds"].is_array())
        .unwrap_or(0);
    let mut column = columns[last].clone();
    column["bounds"] = columns[with_bounds].clone()["bounds"].take();
    let (near, all) = sums(&[column], "entries");
    assert!(
        near * 20 <= all,
        "{near} of {all} keys are near the hot range"
    );
}
