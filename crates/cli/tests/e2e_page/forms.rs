//! Every address answers in the form that the page reads, and refuses what is wrong.

use crate::support::eventually;
use crate::support::http::{WithPage, events, get, request, with_page};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The names of an object's fields.
fn fields(value: &Value) -> BTreeSet<&str> {
    let object = value
        .as_object()
        .unwrap_or_else(|| panic!("no object: {value}"));
    object.keys().map(String::as_str).collect()
}

#[test]
fn every_address_has_the_form_that_the_page_reads() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().to_str().expect("text");
    let WithPage { server, page, .. } =
        with_page(&["--dir", directory, "--slowlog-log-slower-than", "0"]);
    let mut client = server.connect();
    for number in 0..3000 {
        client.text(&format!("set key:{number:05} value"));
    }
    client.text("mailbox.new mail");
    let of = |path: &str| {
        let answer = get(page, path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.json()
    };
    let has = |value: &Value, names: &[&str]| {
        let missing: Vec<_> = names
            .iter()
            .filter(|name| !fields(value).contains(**name))
            .collect();
        assert!(missing.is_empty(), "{missing:?} in {value}");
    };
    let overview = of("/api/overview");
    has(
        &overview,
        &[
            "name", "version", "engine", "uptime_s", "role", "node", "sections",
        ],
    );
    assert_eq!(
        (&overview["embedded"], &overview["writes"]),
        (&json!(false), &json!("token"))
    );
    eventually("a second with commands", || {
        let seconds = of("/api/history");
        let seconds = seconds["seconds"].as_array().expect("seconds").clone();
        seconds.iter().any(|second| {
            has(
                second,
                &[
                    "seq",
                    "at",
                    "commands",
                    "clients",
                    "net_in",
                    "net_out",
                    "keys",
                    "memory",
                    "log",
                    "snapshots",
                    "replicas",
                    "evicted",
                    "expired",
                ],
            );
            has(&second["memory"], &["used", "limit", "kinds"]);
            has(&second["log"], &["lag_records", "lag_bytes", "sync_us"]);
            assert!(second["log"]["lag_bytes"].is_u64(), "{second}");
            has(&second["snapshots"], &["running", "progress", "last_at"]);
            let commands = second["commands"].as_array().expect("commands");
            let set = commands.iter().find(|command| command["name"] == "set");
            set.inspect(|set| {
                assert!(set["p50_us"].as_f64() > Some(0.0), "{set}");
                assert!(set["p50_us"].as_f64() <= set["p99_us"].as_f64(), "{set}");
                assert!(set["p99_us"].as_f64() <= set["p999_us"].as_f64(), "{set}");
            })
            .is_some()
        })
    });
    let maps = of("/api/maps");
    let map = &maps["maps"][0];
    has(
        map,
        &["id", "name", "kind", "engine", "keys", "walked", "reason"],
    );
    assert_eq!((&map["id"], &map["keys"]), (&json!("db0"), &json!(3000)));
    let mut columns = Vec::new();
    eventually("a column", || {
        let map = of("/api/map/db0?from=0&to=99999999999999&width=1000");
        columns = map["columns"].as_array().expect("columns").clone();
        columns.last().is_some_and(|column| {
            column["entries"]
                .as_array()
                .expect("entries")
                .iter()
                .filter_map(Value::as_u64)
                .sum::<u64>()
                == 3000
        })
    });
    let mut buckets = 0;
    for (at, column) in columns.iter().enumerate() {
        has(column, &["at", "width_ms", "bounds", "raw", "marks"]);
        if let Some(bounds) = column["bounds"].as_array() {
            buckets = bounds.len();
            assert_eq!(
                (&bounds[0], column["raw"][0].as_str()),
                (&json!(""), Some(""))
            );
        } else {
            assert!(at > 0, "the first column has bounds");
        }
        for layer in [
            "entries",
            "bytes",
            "acquisitions",
            "waits",
            "writes",
            "reads",
        ] {
            assert_eq!(
                column[layer].as_array().map(Vec::len),
                Some(buckets),
                "{layer}"
            );
        }
    }
    has(
        &of("/api/map/db0?width=10000"),
        &["id", "width_ms", "columns"],
    );
    let hex = |text: &str| {
        text.bytes()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let range = format!("from={}&to={}&limit=2", hex("key:00100"), hex("key:00200"));
    let keys = of(&format!("/api/map/db0/keys?{range}"));
    assert_eq!(
        (&keys["more"], keys["keys"].as_array().map(Vec::len)),
        (&json!(true), Some(2))
    );
    let first =
        json!({ "text": "key:00100", "raw": hex("key:00100"), "type": "string", "size": 5 });
    assert_eq!(keys["keys"][0], first);
    let slow = keys["slow"].as_array().expect("slow commands");
    assert!(
        slow.iter()
            .all(|one| ("key:00100".."key:00200").contains(&one["key"].as_str().unwrap_or("")))
    );
    let tree = of("/api/map/db0/tree");
    let nodes = tree["nodes"].as_array().expect("nodes");
    has(
        &nodes[0],
        &["low", "entries", "waits", "acquisitions", "bytes", "format"],
    );
    let entries: u64 = nodes
        .iter()
        .filter_map(|node| node["entries"].as_u64())
        .sum();
    assert_eq!((entries, &tree["cut"]), (3000, &json!(false)));
    assert!(nodes.len() > 10 && tree["depth"].as_u64() > Some(3));
    let slow = of("/api/slowlog");
    has(
        &slow["entries"][0],
        &["id", "at", "us", "command", "client"],
    );
    let clients = of("/api/clients");
    has(
        &clients["clients"][0],
        &[
            "id", "address", "name", "age_s", "idle_s", "command", "memory", "user",
        ],
    );
    assert_eq!(clients["clients"][0]["user"], "default");
    let mailboxes = of("/api/mailboxes");
    has(
        &mailboxes["mailboxes"][0],
        &[
            "name", "length", "capacity", "buffers", "grown", "folded", "senders", "waiting",
        ],
    );
    has(
        &of("/api/shards")["shards"][0],
        &["core", "load", "states", "moved_in", "moved_out"],
    );
    let commands = of("/api/commands");
    let commands = commands["commands"].as_array().expect("commands");
    let get = commands
        .iter()
        .find(|command| command["name"] == "get")
        .expect("GET");
    has(
        get,
        &["name", "arity", "group", "summary", "syntax", "writes"],
    );
    assert_eq!(get["writes"], json!(false));
    assert!(
        commands
            .iter()
            .any(|command| command["name"] == "set" && command["writes"] == true)
    );
}

#[test]
fn wrong_requests_get_an_error_that_names_the_value() {
    let WithPage {
        page,
        server: _server,
        ..
    } = with_page(&["--engine", "masstree"]);
    for (path, status, named) in [
        ("/nowhere", 404, "'/nowhere'"),
        ("/assets/no.js", 404, "'no.js'"),
        ("/api/map/db77", 404, "'db77'"),
        ("/api/map/db0", 404, "masstree"),
        ("/api/map/db0/tree", 404, "masstree"),
        ("/api/map/db0?width=7", 400, "7"),
        ("/api/map/db0?from=x", 400, "'x'"),
        ("/api/map/db0?from=1&from=2", 400, "'from'"),
        ("/api/map/db0?form=1", 400, "'form'"),
        ("/api/map/db0/keys?from=6", 400, "'6'"),
        ("/api/map/db0/keys?limit=0", 400, "0"),
        ("/api/map/db0/keys?limit=1001", 400, "1001"),
        ("/api/events?maps=db0", 400, "'maps'"),
    ] {
        let answer = get(page, path);
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        assert!(answer.error().contains(named), "{path}: {}", answer.error());
    }
    let walked = get(page, "/api/maps").json();
    assert_eq!(walked["maps"][0]["walked"], json!(false));
    assert!(
        walked["maps"][0]["reason"]
            .as_str()
            .is_some_and(|why| why.contains("masstree"))
    );
    assert_eq!(
        request(
            page,
            ("POST", "/api/maps"),
            &[("Content-Type", "application/json")],
            ""
        )
        .status,
        405
    );
    let sent = |path, body: &str| {
        request(
            page,
            ("POST", path),
            &[("Content-Type", "application/json")],
            body,
        )
    };
    for body in [
        "",
        "{",
        "[]",
        "{\"args\":[]}",
        "{\"args\":[1]}",
        "{\"args\":[\"PING\"],\"x\":1}",
    ] {
        assert_eq!(sent("/api/command", body).status, 400, "{body}");
    }
    let secret = sent("/api/login", "{\"user\":\"ann\",\"password\":7}");
    assert_eq!((secret.status, secret.body.contains('7')), (400, false));
    let long = format!("{{\"args\":[\"ECHO\",\"{}\"]}}", "x".repeat(70_000));
    assert_eq!(sent("/api/command", &long).status, 413);
    let last = [("Last-Event-ID", "seven")];
    let answer = request(page, ("GET", "/api/events"), &last, "");
    assert_eq!(answer.status, 400);
    assert!(answer.error().contains("'seven'"));
}

#[test]
fn a_page_that_comes_again_gets_what_it_has_missed() {
    let WithPage { server, page, .. } = with_page(&[]);
    server.connect().text("set k v");
    let three = |last: &str| {
        let headers = [("Last-Event-ID", last)];
        let headers = &headers[..usize::from(!last.is_empty())];
        let (mut seen, mut columns) = (Vec::new(), 0);
        events(page, "/api/events?map=db0", headers, |id, event, data| {
            match event {
                "second" => {
                    assert_eq!(data["seq"], json!(id));
                    seen.push(id);
                }
                "map" => {
                    assert_eq!(
                        data["bounds"].is_array(),
                        columns == 0,
                        "only if they are new"
                    );
                    columns += 1;
                }
                other => panic!("{other}"),
            }
            (seen.len() >= 3 && columns >= 3).then(|| seen.clone())
        })
    };
    let first = three("");
    let again = three(&first[0].to_string());
    assert_eq!(again[..2], first[1..3], "what comes behind the first");
    // Of a server that has started anew, all that there is.
    assert_eq!(three("99999")[0], 1);
}
