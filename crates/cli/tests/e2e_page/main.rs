//! The page and the metrics of a server: what each visitor gets, and whether it is true.

mod columns;
mod forms;
mod hot_range;
mod metrics;
mod parts;
#[path = "../support/mod.rs"]
mod support;
mod tables;

use serde_json::json;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use support::http::{WithPage, events, get, post, request, with_page};
use support::{PATIENCE, Server, eventually, failure, free_address};

/// Where the page is if nothing is said.
const USUAL: &str = "127.0.0.1:6381";

fn tremula(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
    command.arg("serve").args(arguments).stderr(Stdio::piped());
    command
}

/// What a server with these arguments has logged until it is asked to stop.
fn log_of(arguments: &[&str]) -> String {
    let mut server = Server::of(&mut tremula(arguments));
    let mut log = server.log();
    server.signal("TERM");
    assert!(server.wait().success());
    let mut text = String::new();
    log.read_to_string(&mut text).expect("a log");
    text
}

#[test]
fn a_taken_usual_address_is_a_warning_and_one_that_was_asked_for_is_an_error() {
    // If another process has it, it is taken too.
    let _holder = TcpListener::bind(USUAL);
    let port = free_address().port().to_string();
    let usual = ["--port", &port, "--memory-only"];
    let log = log_of(&usual);
    assert!(
        log.contains("127.0.0.1:6381 is taken, so there is no page"),
        "{log}"
    );
    let off = log_of(&[&usual[..], &["--http", "off"]].concat());
    assert!(
        !off.contains("is taken") && !off.contains("page on"),
        "{off}"
    );
    let free = log_of(&["--port", "0"]);
    assert!(
        !free.contains("is taken") && !free.contains("page on"),
        "{free}"
    );
    let error = failure(&mut tremula(&["--port", "0", "--http", USUAL]));
    assert!(
        error.contains("cannot listen on 127.0.0.1:6381 for HTTP"),
        "{error}"
    );
    let error = failure(&mut tremula(&["--port", "0", "--http", "nowhere"]));
    assert!(
        error.contains("'nowhere' is no address and port"),
        "{error}"
    );
    let none = [
        "--port",
        "0",
        "--http",
        "127.0.0.1:0",
        "--http-user",
        "nobody",
    ];
    let error = failure(&mut tremula(&none));
    assert!(
        error.contains("--http-user nobody: there is no such user"),
        "{error}"
    );
}

#[test]
fn requests_for_other_hosts_and_out_of_other_pages_are_refused() {
    let WithPage { server, page, .. } = with_page(&[]);
    let host = page.to_string();
    let ask = |method, path, headers: &[(&str, &str)]| request(page, (method, path), headers, "");
    for host in [
        "evil.example",
        "evil.example:6381",
        "10.0.0.1",
        "127.0.0.1.evil.example",
    ] {
        for path in [
            "/",
            "/metrics",
            "/api/clients",
            "/assets/app.js",
            "/api/events",
        ] {
            let answer = ask("GET", path, &[("Host", host)]);
            assert_eq!(answer.status, 403, "{host} {path}");
            assert!(answer.error().contains(host), "{}", answer.error());
        }
    }
    for origin in [
        "http://evil.example",
        "null",
        "http://127.0.0.1:1",
        "https://localhost",
    ] {
        let answer = ask("GET", "/api/overview", &[("Origin", origin)]);
        assert_eq!(answer.status, 403, "{origin}");
        assert!(answer.error().contains(origin));
    }
    let own = format!("http://{host}");
    assert_eq!(ask("GET", "/api/overview", &[("Origin", &own)]).status, 200);
    let local = format!("localhost:{}", page.port());
    assert_eq!(ask("GET", "/api/overview", &[("Host", &local)]).status, 200);
    let crossed = [("Sec-Fetch-Site", "cross-site")];
    assert_eq!(ask("GET", "/api/overview", &crossed).status, 403);
    assert_eq!(ask("GET", "/", &crossed).status, 200, "a link to the page");
    // A page of another site can send this without asking first.
    let simple = [
        ("Content-Type", "text/plain"),
        ("Origin", "http://evil.example"),
    ];
    let body = json!({ "args": ["SET", "k", "v"] }).to_string();
    assert_eq!(
        request(page, ("POST", "/api/command"), &simple, &body).status,
        403
    );
    let simple = [("Content-Type", "text/plain")];
    assert_eq!(
        request(page, ("POST", "/api/command"), &simple, &body).status,
        400
    );
    assert_eq!(server.connect().text("dbsize"), ":0\r\n");
}

#[test]
fn every_answer_says_to_browsers_what_they_may_do() {
    let WithPage {
        page,
        server: _server,
        ..
    } = with_page(&[]);
    for path in [
        "/",
        "/assets/app.js",
        "/metrics",
        "/api/overview",
        "/api/none",
        "/nowhere",
    ] {
        let answer = get(page, path);
        let header = |name: &str| answer.headers.get(name).map_or("", String::as_str);
        let policy = header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'"), "{path}: {policy}");
        assert!(
            !policy.contains("unsafe") && !policy.contains("http"),
            "{policy}"
        );
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(header("x-frame-options"), "DENY", "{path}");
        assert_eq!(header("referrer-policy"), "no-referrer", "{path}");
        let kept = path == "/" || path.starts_with("/assets/");
        assert_eq!(
            header("cache-control"),
            if kept { "no-cache" } else { "no-store" }
        );
        assert!(
            !answer.headers.contains_key("access-control-allow-origin"),
            "{path}"
        );
    }
    assert!(
        get(page, "/")
            .body
            .to_ascii_lowercase()
            .contains("<!doctype html>")
    );
}

#[test]
fn what_writes_needs_the_token_or_a_login() {
    let WithPage {
        server,
        page,
        token,
    } = with_page(&[]);
    let run =
        |token: &str, words: &[&str]| post(page, "/api/command", token, &json!({ "args": words }));
    assert_eq!(run("", &["GET", "k"]).json(), json!({ "reply": null }));
    let refused = run("", &["SET", "k", "v"]);
    assert_eq!(refused.status, 401);
    assert!(
        refused.error().contains("set may change something"),
        "{}",
        refused.error()
    );
    for words in [
        &["FLUSHALL"][..],
        &["CONFIG", "SET", "timeout", "1"],
        &["SHUTDOWN"],
    ] {
        assert_eq!(run("", words).status, 401, "{words:?}");
    }
    let wrong = run("00", &["SET", "k", "v"]);
    assert_eq!((wrong.status, wrong.error().contains("token")), (401, true));
    assert_eq!(
        run(&token, &["SET", "k", "v"]).json(),
        json!({ "reply": { "status": "OK" } })
    );
    assert_eq!(
        run("", &["GET", "k"]).json(),
        json!({ "reply": { "bulk": "v" } })
    );
    assert_eq!(run(&token, &["STRLEN", "k"]).json(), json!({ "reply": 1 }));
    let unknown = run("", &["NOSUCH"]).json();
    assert!(
        unknown["reply"]["error"]
            .as_str()
            .is_some_and(|text| text.contains("NOSUCH"))
    );
    for (words, why) in [
        (&["SUBSCRIBE", "c"][..], "never ends"),
        (&["MONITOR"][..], "never ends"),
        (&["MAILBOX.RECV", "m"][..], "wait for ever"),
        (&["MULTI"][..], "about its connection"),
    ] {
        let answer = run(&token, words);
        assert_eq!(answer.status, 400, "{words:?}");
        assert!(answer.error().contains(why), "{}", answer.error());
    }
    // Users: one may write some keys, and his rights are those of the page.
    let mut client = server.connect();
    assert_eq!(
        client.text("acl setuser ann on >secret ~ann:* +@all"),
        "+OK\r\n"
    );
    let log_in = |user, password| {
        post(
            page,
            "/api/login",
            "",
            &json!({ "user": user, "password": password }),
        )
    };
    let wrong = log_in("ann", "guess");
    assert_eq!(wrong.status, 401);
    assert!(wrong.error().contains("'ann'"), "{}", wrong.error());
    assert_eq!(
        log_in("default", "any").status,
        401,
        "a user without a password proves nothing"
    );
    let right = log_in("ann", "secret").json();
    assert_eq!(right["user"], "ann");
    let own = right["token"].as_str().expect("a token").to_owned();
    let set = |key| run(&own, &["SET", key, "v"]).json();
    assert_eq!(set("ann:k"), json!({ "reply": { "status": "OK" } }));
    let denied = set("k");
    assert!(
        denied["reply"]["error"]
            .as_str()
            .is_some_and(|text| text.starts_with("NOPERM"))
    );
    let keys = request(
        page,
        ("GET", "/api/map/db0/keys"),
        &[("Tremula-Token", &own)],
        "",
    );
    assert_eq!(keys.status, 403, "she does not see all keys");
    // The guesses are bounded.
    let mut statuses: Vec<u16> = (0..12).map(|_| run("guess", &["PING"]).status).collect();
    statuses.dedup();
    assert_eq!(statuses, [401, 429]);
    assert_eq!(log_in("ann", "secret").status, 429);
    assert_eq!(
        run(&own, &["GET", "ann:k"]).status,
        200,
        "a valid token works still"
    );
    assert_eq!(client.text("acl deluser ann"), ":1\r\n");
    assert_eq!(run(&own, &["GET", "ann:k"]).status, 401, "the user is gone");
}

#[test]
fn with_a_password_everything_but_the_figures_for_machines_needs_a_login() {
    let WithPage {
        server,
        page,
        token,
    } = with_page(&[]);
    assert_eq!(get(page, "/api/clients").status, 200);
    assert_eq!(get(page, "/api/overview").json()["writes"], "token");
    let mut client = server.connect();
    assert_eq!(client.text("config set requirepass secret"), "+OK\r\n");
    assert_eq!(get(page, "/api/overview").json()["writes"], "login");
    for path in [
        "/api/clients",
        "/api/history",
        "/api/maps",
        "/api/events",
        "/api/slowlog",
    ] {
        let answer = get(page, path);
        assert_eq!(answer.status, 401, "{path}");
    }
    let ping = json!({ "args": ["PING"] });
    assert_eq!(post(page, "/api/command", "", &ping).status, 401);
    for path in ["/", "/metrics", "/health", "/ready"] {
        assert_eq!(get(page, path).status, 200, "{path}");
    }
    let login = json!({ "user": "default", "password": "secret" });
    let own = post(page, "/api/login", "", &login).json();
    let own = own["token"].as_str().expect("a token");
    for token in [own, &token] {
        let headers = [("Tremula-Token", token)];
        assert_eq!(
            request(page, ("GET", "/api/clients"), &headers, "").status,
            200
        );
        assert_eq!(post(page, "/api/command", token, &ping).status, 200);
        let seen = events(
            page,
            &format!("/api/events?token={token}"),
            &[],
            |_, event, _| Some(event.to_owned()),
        );
        assert_eq!(seen, "second");
    }
}

/// Begins to read an address. Returns the connection, which stays open, and the status.
fn open(page: SocketAddr, path: &str) -> (TcpStream, u16) {
    let mut stream = TcpStream::connect(page).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let head = format!("GET {path} HTTP/1.1\r\nHost: {page}\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("it is sent");
    let mut begin = [0; 12];
    stream.read_exact(&mut begin).expect("an answer");
    let status = String::from_utf8_lossy(&begin[9..]).parse();
    (stream, status.expect("a status"))
}

#[test]
fn streams_and_connections_have_limits() {
    let WithPage {
        page,
        server: _server,
        ..
    } = with_page(&[]);
    let streams: Vec<_> = (0..16).map(|_| open(page, "/api/events")).collect();
    assert!(streams.iter().all(|(_, status)| *status == 200));
    // It stays open, so that its place is not free by and by.
    let one_more = open(page, "/api/events");
    assert_eq!(one_more.1, 429);
    let others: Vec<_> = (0..64)
        .map(|_| TcpStream::connect(page).expect("a connection"))
        .collect();
    // They are accepted in their order, so that the last one comes when all places are taken.
    let mut last = others.last().expect("some");
    last.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut answer = String::new();
    last.read_to_string(&mut answer)
        .expect("an answer, and its end");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let length = format!("content-length: {}\r\n", body.len());
    assert!(head.contains(&length), "{answer}");
    assert!(head.contains("x-content-type-options: nosniff"), "{answer}");
    let body: serde_json::Value = serde_json::from_str(body).expect("a JSON text");
    let error = body["error"].as_str().unwrap_or_default();
    assert!(error.contains("64 connections"), "{error}");
    // A request that was sent before the answer was read does not cut it.
    let refused = get(page, "/health");
    assert_eq!(refused.status, 503);
    assert_eq!(refused.error(), error);
    drop((streams, one_more, others));
    eventually("there is room again", || get(page, "/health").status == 200);
}
