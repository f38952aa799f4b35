use super::*;
use crate::commands::lookup_full;
use crate::figures::{Stopwatch, Stripes};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use prost::Message;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

/// A collector that takes one request and keeps its spans: name, calls, and whether it was slow.
fn collector(listener: TcpListener) -> Vec<(String, i64, bool)> {
    let (mut stream, _) = listener.accept().expect("a request");
    let mut request = Vec::new();
    let body = loop {
        let mut part = [0; 4096];
        let read = stream.read(&mut part).expect("a request");
        assert!(read > 0, "the request ends early");
        request.extend(&part[..read]);
        let text = String::from_utf8_lossy(&request);
        let Some((head, _)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "));
        let length: usize = length.expect("a length").parse().expect("a number");
        assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
        let begin = head.len() + 4;
        if request.len() >= begin + length {
            break request.split_off(begin);
        }
    };
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        .expect("it is sent");
    let request = ExportTraceServiceRequest::decode(&*body).expect("spans");
    let spans = request
        .resource_spans
        .into_iter()
        .flat_map(|of| of.scope_spans);
    let spans = spans.flat_map(|of| of.spans).map(|span| {
        assert!(span.end_time_unix_nano >= span.start_time_unix_nano);
        let of = |key: &str| {
            let mut attributes = span.attributes.iter();
            let found = attributes.find(|attribute| attribute.key == key);
            found.and_then(|found| found.value.as_ref()?.value.clone())
        };
        let calls = match of("db.operation.batch.size") {
            Some(Value::IntValue(calls)) => calls,
            other => panic!("{other:?}"),
        };
        let is_slow = of("tremula.slow") == Some(Value::BoolValue(true));
        (span.name.clone(), calls, is_slow)
    });
    spans.collect()
}

#[test]
fn a_collector_sees_the_commands_that_are_sampled_and_all_slow_ones() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    let collected = thread::spawn(move || collector(listener));
    let spans = Spans::new(ENDPOINTS[1], endpoint, Some("0.25")).expect("an exporter");
    assert!(SPANS.set(spans).is_ok(), "no other test sends spans");
    let stripes = Stripes::new(1);
    let stripe = stripes.of(0, false);
    let mut stopwatch = Stopwatch::new();
    let mut run = |name: &str, times: usize| {
        let command = lookup_full(name.as_bytes()).expect("a command");
        for _ in 0..times {
            stopwatch.before(stripe, command, true);
            stopwatch.after(stripe, command, true, false);
        }
        stopwatch.end(stripe);
    };
    // Of five runs the first and the last are sampled. The fourth is slow.
    run("get", 3);
    run("set", 1);
    run("get", 1);
    let slow = lookup_full(b"config|get").expect("a command");
    ran(slow, Duration::from_secs(1), (1, 1), true);
    run("incr", 1);
    drop(Ending(()));
    let seen = collected.join().expect("a collector");
    let expected = [
        ("GET", 3, false),
        ("CONFIG GET", 1, true),
        ("INCR", 1, false),
    ];
    assert_eq!(
        seen,
        expected.map(|(name, calls, slow)| (name.to_owned(), calls, slow))
    );
}

#[test]
fn what_no_span_can_be_sent_with_is_refused_by_name() {
    let error = |value: &str, share| match Spans::new(ENDPOINTS[0], value.to_owned(), share) {
        Ok(_) => panic!("{value} {share:?}"),
        Err(error) => error.to_string(),
    };
    for share in ["2", "0", "-1", "NaN", "half"] {
        let error = error("http://127.0.0.1:4318/v1/traces", Some(share));
        assert!(
            error.contains(&format!("OTEL_TRACES_SAMPLER_ARG is '{share}'")),
            "{error}"
        );
    }
    for value in [
        "https://127.0.0.1:4318",
        "127.0.0.1:4318",
        "http://",
        "http://a b/",
    ] {
        let error = error(value, None);
        let named = format!("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is '{value}'");
        assert!(error.contains(&named), "{error}");
    }
}
