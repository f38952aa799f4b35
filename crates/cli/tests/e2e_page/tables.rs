//! Tables as maps of the page: a load on a few keys of one, and who may see them.

use crate::columns::sums;
use crate::support::ets::{ask, check};
use crate::support::eventually;
use crate::support::http::{WithPage, get, post, request, with_page};
use crate::support::resp::encode;
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

/// The keys `{user, N}`, and those that all clients write.
const KEYS: u32 = 20_000;
const HOT: std::ops::Range<u32> = 10_000..10_100;

/// The map of the first table that is walked.
fn table(maps: &Value) -> Option<&Value> {
    let maps = maps["maps"].as_array()?;
    maps.iter()
        .find(|map| map["kind"] == "table" && map["walked"] == true)
}

/// The number in the bound `{user,N}`.
fn number(bound: &str) -> u32 {
    let digits = bound.trim_start_matches("{user,").trim_end_matches('}');
    digits.parse().unwrap_or(0)
}

#[test]
fn the_map_of_a_table_shows_the_hot_range_where_it_is() {
    let WithPage { server, page, .. } = with_page(&["--threads", "4", "--gather", "no"]);
    let mut client = server.connect();
    assert_eq!(
        ask(&mut client, "ETS.NEW  ages  ordered_set  public"),
        "ages"
    );
    for from in (0..KEYS).step_by(1000) {
        let mut rows = String::from("[");
        for number in from..from + 1000 {
            let comma = if number == from { "" } else { "," };
            write!(rows, "{comma}{{{{user,{number}}},0}}").expect("it fits");
        }
        let inserted = ask(&mut client, &format!("ETS.INSERT  ages  {rows}]"));
        assert_eq!(inserted, "true");
    }
    let maps = get(page, "/api/maps").json();
    let map = table(&maps).expect("a table that is walked");
    assert_eq!(
        (&map["name"], &map["engine"], &map["keys"]),
        (&json!("table ages"), &json!("aspen"), &json!(KEYS))
    );
    let id = map["id"].as_str().expect("an id").to_owned();
    let columns = |from: u64| {
        let map = get(page, &format!("/api/map/{id}?from={from}")).json();
        map["columns"].as_array().cloned().unwrap_or_default()
    };
    let sum = |column: &Value, layer: &str| {
        let of = column[layer].as_array().expect("a layer");
        of.iter().filter_map(Value::as_u64).sum::<u64>()
    };
    eventually("the keys are in the map", || {
        columns(0)
            .last()
            .is_some_and(|last| sum(last, "entries") == u64::from(KEYS))
    });
    let begin = columns(0)
        .last()
        .map_or(0, |last| last["at"].as_u64().expect("a time"));
    // The first column from there on is the one before the load.
    let since = || columns(begin).split_off(1);
    let stops = AtomicBool::new(false);
    thread::scope(|scope| {
        for seed in 0..4_u32 {
            let (mut client, stops) = (server.connect(), &stops);
            scope.spawn(move || {
                let mut random = seed;
                while !stops.load(Relaxed) {
                    let mut commands = Vec::new();
                    for _ in 0..64 {
                        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        let number = HOT.start + (random >> 8) % (HOT.end - HOT.start);
                        let key = format!("{{user,{number}}}");
                        commands.extend(encode(&["ETS.UPDATE_COUNTER", "ages", &key, "1"]));
                    }
                    client.send(&commands);
                    (0..64).for_each(|_| assert!(client.reply().is_some()));
                }
            });
        }
        let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually("the load is in the map", || {
                let seen: u64 = columns(begin)
                    .iter()
                    .skip(1)
                    .map(|column| sum(column, "acquisitions"))
                    .sum();
                seen > 10_000
            });
        }));
        stops.store(true, Relaxed);
        assert!(seen.is_ok());
    });
    let with_bounds = columns(begin);
    let mut columns = since();
    if columns[0]["bounds"].is_null() {
        columns[0]["bounds"] = with_bounds[0]["bounds"].clone();
    }
    let (hot, all) = sums(&columns, "acquisitions", &HOT, number);
    assert!(hot * 10 >= all * 9, "{hot} of {all} are in the hot range");
    // The keys of a bucket, from a bound on, in the order of terms.
    let tree = get(page, &format!("/api/map/{id}/tree")).json();
    let node = &tree["nodes"].as_array().expect("leaves")[1];
    let (low, raw) = (&node["low"], node["raw"].as_str().expect("a form"));
    let keys = get(page, &format!("/api/map/{id}/keys?from={raw}&limit=3")).json();
    let texts: Vec<_> = keys["keys"]
        .as_array()
        .expect("keys")
        .iter()
        .map(|key| number(key["text"].as_str().expect("a text")))
        .collect();
    let first = number(low.as_str().expect("a text"));
    assert_eq!(texts, [first, first + 1, first + 2]);
    assert_eq!(
        (&keys["more"], &keys["keys"][0]["type"]),
        (&json!(true), &json!("row"))
    );
    // What was slow there.
    check(
        &mut client,
        &[
            ("CONFIG  SET  slowlog-log-slower-than  0", "+OK"),
            // On a busy machine some of the load was slow, too.
            ("SLOWLOG  RESET", "+OK"),
            ("ETS.LOOKUP  ages  {user,7}", "[{{user,7},0}]"),
            ("ETS.INSERT  ages  {{user,8},1}", "true"),
            ("CONFIG  SET  slowlog-log-slower-than  -1", "+OK"),
        ],
    );
    let keys = get(page, &format!("/api/map/{id}/keys?limit=1")).json();
    let slow: Vec<_> = keys["slow"]
        .as_array()
        .expect("commands")
        .iter()
        .map(|slow| &slow["key"])
        .collect();
    assert_eq!(slow, ["{user,8}", "{user,7}"]);
}

#[test]
fn a_bound_that_was_cut_begins_where_it_is() {
    let WithPage { server, page, .. } = with_page(&[]);
    let mut client = server.connect();
    assert_eq!(
        ask(&mut client, "ETS.NEW  long  ordered_set  public"),
        "long"
    );
    let key = |number: u32| format!("k{number:04}{}", "x".repeat(200));
    for from in (0..2000).step_by(100) {
        let rows: Vec<_> = (from..from + 100)
            .map(|n| format!("{{<<\"{}\">>,{n}}}", key(n)))
            .collect();
        let inserted = ask(
            &mut client,
            &format!("ETS.INSERT  long  [{}]", rows.join(",")),
        );
        assert_eq!(inserted, "true");
    }
    let maps = get(page, "/api/maps").json();
    let id = table(&maps).expect("a table")["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    // The byte form of a binary: its tag, and its bytes.
    let form = |number: u32| {
        let bytes = key(number).into_bytes();
        let digits = bytes[..100].iter().map(|byte| format!("{byte:02x}"));
        format!("44{}", digits.collect::<String>())
    };
    let path = format!(
        "/api/map/{id}/keys?from={}&to={}&limit=9",
        form(1500),
        form(1503)
    );
    let keys = get(page, &path).json();
    let texts = keys["keys"].as_array().expect("keys").iter();
    let begins: Vec<_> = texts
        .map(|key| key["text"].as_str().expect("a text")[..8].to_owned())
        .collect();
    assert_eq!(begins, ["<<\"k1500", "<<\"k1501", "<<\"k1502"]);
    let text = keys["keys"][0]["text"].as_str().expect("a text");
    assert!(text.len() < 150 && text.ends_with("...\">>"), "{text}");
}

#[test]
fn only_tables_with_an_order_that_are_open_are_shown_and_only_to_who_may_use_all() {
    let WithPage { server, page, .. } = with_page(&[]);
    let mut client = server.connect();
    check(
        &mut client,
        &[
            ("ETS.NEW  hidden  ordered_set  private", "hidden"),
            ("ETS.INSERT  hidden  {secret, 1}", "true"),
            ("ETS.NEW  bare  set  public", "bare"),
            ("ETS.INSERT  bare  {a, 1}", "true"),
        ],
    );
    let maps = get(page, "/api/maps").json();
    assert!(table(&maps).is_none(), "{maps}");
    let others = &maps["maps"].as_array().expect("maps")[1];
    assert_eq!(others["name"], "2 other tables");
    let reason = others["reason"].as_str().expect("a reason");
    assert!(
        reason.contains("ordered_set") && reason.contains("private"),
        "{reason}"
    );
    check(
        &mut client,
        &[
            ("ETS.NEW  open  ordered_set  public", "open"),
            ("ETS.INSERT  open  {a, 1}", "true"),
            (
                "ACL  SETUSER  ann  on  >secret  allkeys  tables:x*  +@all",
                "+OK",
            ),
        ],
    );
    let maps = get(page, "/api/maps").json();
    let id = table(&maps).expect("a table")["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let login = json!({ "user": "ann", "password": "secret" });
    let own = post(page, "/api/login", "", &login).json();
    let own = own["token"].as_str().expect("a token");
    let ask = |path: &str| {
        let path = format!("/api/map/{path}");
        request(page, ("GET", &path), &[("Tremula-Token", own)], "")
    };
    assert_eq!(ask("db0/keys").status, 200);
    for path in [format!("{id}/keys"), format!("{id}/tree"), id.clone()] {
        let refused = ask(&path);
        assert_eq!(refused.status, 403, "{path}");
        assert!(
            refused.error().contains("on all tables"),
            "{}",
            refused.error()
        );
    }
    let path = format!("/api/events?map={id}&token={own}");
    assert_eq!(get(page, &path).status, 403);
}
