//! Servers of the Redis protocol.

use super::{Claim, Field, Measure, Original, Pick, Rule, Source, Threads};

const REDIS: Source = Source {
    name: "Redis 7.0.15, redis-benchmark with 50 clients on the same 2 cores, values of 64 bytes",
    cores: 2,
};

const CLIENTS: Threads = Threads::Just(50);

pub(super) static CLAIMS: [Claim; 5] = [
    pipelined(
        "Redis sets four and a half times as many keys if a client has 16 requests under way.",
        "set",
        465.0 / 104.0,
    ),
    pipelined(
        "Redis gets six times as many keys if a client has 16 requests under way.",
        "get",
        702.0 / 113.0,
    ),
    pipelined(
        "Redis reads twelve times as many ranges if a client has 16 requests under way.",
        "getrange",
        1111.0 / 93.0,
    ),
    costs(
        "A GET takes Redis seven microseconds of processor time if each comes by itself.",
        "pipeline_1",
        7.0,
    ),
    costs(
        "A GET takes Redis one and a half microseconds if 16 come at a time.",
        "pipeline_16",
        1.42,
    ),
];

const fn of_redis(workload: &'static str, key_set: &'static str, field: Field) -> Pick {
    Pick {
        workload,
        key_set,
        engine: "redis_server",
        threads: CLIENTS,
        field,
    }
}

/// A claim that Redis does so many times as much with 16 requests of a client under way.
const fn pipelined(says: &'static str, command: &'static str, original: f64) -> Claim {
    Claim {
        experiment: "redis",
        says,
        source: REDIS,
        original: Original::Figure(original),
        measure: Measure::Ratio(
            of_redis(command, "pipeline_16", Field::Mops),
            of_redis(command, "pipeline_1", Field::Mops),
        ),
        rule: Rule::SameSide,
        why: "",
    }
}

/// A claim that Redis needs so many microseconds for a `GET`.
const fn costs(says: &'static str, pipeline: &'static str, original: f64) -> Claim {
    Claim {
        experiment: "redis",
        says,
        source: REDIS,
        original: Original::Figure(original),
        measure: Measure::Value(of_redis(
            "get",
            pipeline,
            Field::Figure("server_us_per_request"),
        )),
        rule: Rule::Within(2.0),
        why: "",
    }
}
