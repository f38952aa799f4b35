//! What `CONFIG SET` changes, and what it refuses.

use super::*;
use crate::limits::Limits;
use crate::server::shared;
use tremula_store::{Engine, StoreConfig};

fn server() -> std::sync::Arc<Shared> {
    shared(
        Limits::default(),
        &StoreConfig::new(Engine::CaTree),
        Vec::new(),
    )
}

fn try_set(server: &Shared, words: &[&str]) -> Result<(), String> {
    let pairs = words
        .chunks(2)
        .map(|pair| (pair[0].as_bytes(), pair[1].as_bytes()));
    set(server, pairs).map_err(|refused| match refused {
        Refused::Unknown(name) => format!("{} is not known", name.escape_ascii()),
        Refused::Parameter(name, why) => format!("{}: {why}", name.escape_ascii()),
    })
}

fn get(server: &Shared, name: &str) -> String {
    let found = all(server).into_iter().find(|(known, _)| known == name);
    found.expect("a parameter").1
}

#[test]
fn every_parameter_takes_its_own_value() {
    let server = server();
    for (name, value) in all(&server) {
        assert_eq!(try_set(&server, &[&name, &value]), Ok(()), "{name} {value}");
        assert_eq!(get(&server, &name), value, "{name}");
    }
}

#[test]
fn values_have_redis_forms_and_reach_those_who_use_them() {
    let server = server();
    for (name, value, shown) in [
        ("maxmemory", "100mb", "104857600"),
        ("maxmemory", "1k", "1000"),
        ("MAXMEMORY", "7", "7"),
        ("max-memory", "0", "0"),
        ("maxmemory-policy", "allkeys-LFU", "allkeys-lfu"),
        ("latency-tracking", "no", "no"),
        (
            "latency-tracking-info-percentiles",
            "0.0 50 99.99",
            "0 50 99.99",
        ),
        ("slowlog-log-slower-than", "-1", "-1"),
        (
            "client-output-buffer-limit",
            "normal 0 0 0",
            "normal 0 0 0 pubsub 33554432 8388608 60",
        ),
        (
            "client-output-buffer-limit",
            "pubsub 0 1mb 5 Normal 2kb 1kb 7",
            "normal 2048 1024 7 pubsub 0 1048576 5",
        ),
        ("notify-keyspace-events", "KEA", "AKE"),
        ("max-pubsub-buffer", "1mb", "1048576"),
        ("acl-pubsub-default", "AllChannels", "allchannels"),
    ] {
        try_set(&server, &[name, value]).expect("right");
        let name = match name {
            "MAXMEMORY" | "max-memory" => "maxmemory",
            name => name,
        };
        assert_eq!(get(&server, name), shown, "{name} {value}");
    }
    assert_eq!(server.store.eviction().policy(), Policy::Lfu);
    assert_eq!(server.clients.soft_limit(), 1024);
    assert_eq!(server.live.max_output_buffer.get(), 2048);
    assert_eq!(server.live.noticeable(), (None, false));
}

#[test]
fn all_change_or_none_and_the_error_names_the_parameter() {
    let server = server();
    let before = all(&server);
    for (words, error) in [
        (&["timeout", "7", "nope", "1"][..], "nope is not known"),
        (
            &["timeout", "7", "databases", "1"],
            "databases: can't set immutable config",
        ),
        (
            &["timeout", "7", "TIMEOUT", "8"],
            "TIMEOUT: duplicate parameter",
        ),
        (
            &["timeout", "7", "maxmemory", "x"],
            "maxmemory: argument must be a memory value",
        ),
        (
            &["timeout", "7", "maxmemory", "-1"],
            "maxmemory: argument must be a memory value",
        ),
        (
            &["timeout", "x"],
            "timeout: argument couldn't be parsed into an integer",
        ),
        (
            &["timeout", "-1"],
            "timeout: argument must be between 0 and 31536000 inclusive",
        ),
        (
            &["latency-tracking", "1"],
            "latency-tracking: argument must be 'yes' or 'no'",
        ),
        (
            &["maxmemory-policy", "volatile-mru"],
            "maxmemory-policy: argument(s) must be one of the following: volatile-lru, \
             volatile-lfu, volatile-random, volatile-ttl, allkeys-lru, allkeys-lfu, allkeys-random, noeviction",
        ),
        (
            &["max-pubsub-buffer", "1000"],
            "max-pubsub-buffer: argument must be 0 or at least 1024",
        ),
        // These fail when the others have been changed already.
        (
            &[
                "timeout",
                "7",
                "loglevel",
                "debug",
                "client-output-buffer-limit",
                "replica 0 0 0",
            ],
            "client-output-buffer-limit: there are no clients of the class 'replica'",
        ),
        (
            &[
                "requirepass",
                "pw",
                "timeout",
                "7",
                "client-output-buffer-limit",
                "normal x 0 0",
            ],
            "client-output-buffer-limit: Error in hard, soft or soft_seconds setting in \
             buffer limit configuration.",
        ),
        (
            &["maxmemory", "7", "client-output-buffer-limit", "normal 0"],
            "client-output-buffer-limit: Wrong number of arguments in buffer limit \
             configuration.",
        ),
    ] {
        assert_eq!(try_set(&server, words), Err(error.to_owned()), "{words:?}");
        assert_eq!(all(&server), before, "{words:?}");
        assert!(server.users.lets_anybody_in());
    }
    try_set(&server, &["requirepass", "pw"]).expect("right");
    assert!(!server.users.lets_anybody_in());
    assert!(server.users.authenticate(DEFAULT, b"pw").is_some());
    assert_eq!(get(&server, "requirepass"), "", "it is not kept");
    try_set(&server, &["requirepass", ""]).expect("right");
    assert!(server.users.lets_anybody_in());
}
