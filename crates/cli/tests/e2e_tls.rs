//! The real server with TLS, and clients that others wrote: `redis-cli` and `openssl s_client`.

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Instant;
use support::load::{busy_beside, fill};
use support::resp::{Connection, bulk, encode};
use support::tls::{Authority, Tunnel, openssl, rest, succeed};
use support::{PATIENCE, Server, run};
use tempfile::TempDir;

/// The alert by which TLS says that a client's port has no TLS.
const HANDSHAKE_FAILURE: [u8; 7] = [21, 3, 3, 0, 2, 2, 40];

/// The alert by which TLS says that a server cannot go on.
const INTERNAL_ERROR: [u8; 7] = [21, 3, 3, 0, 2, 2, 80];

/// An authority, and a server with a certificate of it.
struct Scene {
    folder: TempDir,
    authority: Authority,
    client: [String; 2],
    log: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let authority = Authority::new(folder.path(), "one");
        authority.sign("server");
        let client = authority.sign("client");
        let log = folder.path().join("log");
        Self {
            folder,
            authority,
            client,
            log,
        }
    }

    /// Starts a server with the authority's certificate.
    fn server(&self, more: &[&str]) -> Server {
        let [certificate, key] = ["server.pem", "server.key"].map(|name| self.authority.file(name));
        let authority = self.authority.certificate();
        let log = self.log.to_str().expect("text");
        let flags = [
            "--tls-port",
            "0",
            "--tls-cert",
            &certificate,
            "--tls-key",
            &key,
            "--tls-ca",
            &authority,
            "--log-file",
            log,
        ];
        Server::tremula(&[&flags, more].concat())
    }

    /// A way through TLS with the client's certificate.
    fn tunnel(&self, server: &Server) -> Tunnel {
        Tunnel::new(server.tls_address(), &self.authority, Some(&self.client))
    }

    /// Waits until the log has a text this many times.
    fn logged(&self, part: &str, times: usize) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let text = fs::read_to_string(&self.log).unwrap_or_default();
            if text.matches(part).count() >= times {
                return;
            }
            assert!(Instant::now() < deadline, "no {part} in {text}");
            thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// What a client says to `PING`, and what it complains of.
fn ping(command: &mut Command) -> String {
    let output = run(command.arg("PING"), b"");
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

fn is_served(command: &mut Command) -> bool {
    let said = ping(command);
    let is_served = said == "PONG\n";
    assert!(is_served || !said.contains("PONG"), "{said}");
    is_served
}

/// A line of `INFO`, behind its name.
fn figure(client: &mut Connection, section: &str, name: &str) -> String {
    let text = client.text(&format!("INFO {section}"));
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {text}"))
        .to_owned()
}

fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "never: {what}");
    }
}

#[test]
fn certificates_of_clients_are_needed_optional_or_not_asked_for() {
    let scene = Scene::new();
    let other = Authority::new(scene.folder.path(), "other");
    let stranger = other.sign("stranger");
    for (asked, expected) in [
        (&[][..], [true, false, false]),
        (&["--tls-auth-clients", "yes"], [true, false, false]),
        (&["--tls-auth-clients", "optional"], [true, true, false]),
        (&["--tls-auth-clients", "no"], [true, true, true]),
    ] {
        let server = scene.server(asked);
        let files = [Some(&scene.client), None, Some(&stranger)];
        let served = files.map(|files| is_served(&mut server.redis_cli(&scene.authority, files)));
        assert_eq!(served, expected, "{asked:?}");
        // A client that does not know the server's authority does not trust it.
        assert!(!is_served(
            &mut server.redis_cli(&other, Some(&scene.client))
        ));
        assert!(is_served(
            &mut server.redis_cli(&scene.authority, Some(&scene.client))
        ));
    }
    scene.logged("peer sent no certificates", 2);
}

/// New clients get the new certificate, and must have one of the new authority. A client that is
/// there stays. Wrong files change nothing.
#[test]
fn certificates_are_read_again_on_sighup_and_clients_stay() {
    let scene = Scene::new();
    let server = scene.server(&[]);
    let tunnel = scene.tunnel(&server);
    let mut stays = tunnel.connect();
    assert_eq!(stays.text("SET key before"), "+OK\r\n");
    let next = Authority::new(scene.folder.path(), "next");
    let [certificate, key] = next.sign("server");
    let client = next.sign("client");
    let replace = |from: &str, name: &str| {
        fs::copy(from, scene.authority.file(name)).expect("copied");
    };
    let old = Authority::new(scene.folder.path(), "old");
    fs::copy(scene.authority.certificate(), old.certificate()).expect("copied");
    let is_next = || {
        [
            is_served(&mut server.redis_cli(&next, Some(&client))),
            is_served(&mut server.redis_cli(&old, Some(&scene.client))),
        ]
    };
    assert_eq!(is_next(), [false, true]);

    // One file after the other, with wrong states in between.
    replace(&certificate, "server.pem");
    server.signal("HUP");
    scene.logged("SIGHUP: the certificates stay: ", 1);
    scene.logged("server.key: this is not the key of the certificate in ", 1);
    assert_eq!(is_next(), [false, true], "nothing has changed");
    replace(&key, "server.key");
    let authorities = scene.authority.certificate();
    fs::write(&authorities, "nothing\n").expect("written");
    server.signal("HUP");
    scene.logged("ca.pem: there is no certificate in it", 1);
    assert_eq!(is_next(), [false, true], "nothing has changed");
    fs::remove_file(&authorities).expect("removed");
    server.signal("HUP");
    scene.logged("ca.pem: No such file", 1);
    replace(&next.certificate(), "ca.pem");
    server.signal("HUP");
    scene.logged("SIGHUP: the certificates are read again", 1);
    assert_eq!(is_next(), [true, false]);

    assert_eq!(stays.text("APPEND key ,after"), ":12\r\n");
    assert_eq!(stays.text("GET key"), "$12\r\nbefore,after\r\n");
}

/// The standard error of a failure to start.
fn failure(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
    support::failure(command.args(["serve", "--port", "0"]).args(arguments))
}

#[test]
fn wrong_files_are_named_at_the_start() {
    let scene = Scene::new();
    let file = |name: &str| scene.authority.file(name);
    let [certificate, key, authority] = ["server.pem", "server.key", "ca.pem"].map(file);
    let [garbage, locked, cut, missing] = ["garbage", "locked", "cut", "missing"].map(file);
    fs::write(&garbage, b"\x00\xff not PEM\n").expect("written");
    let text = fs::read_to_string(&certificate).expect("read");
    fs::write(&cut, &text[..text.len() / 2]).expect("written");
    let lock = ["-passout", "pass:secret", "-out", &locked];
    succeed(openssl(&["pkcs8", "-topk8", "-in", &key]).args(lock));
    let other = file("client.key");
    for (files, expected) in [
        ([&missing, &key, &authority], "missing: No such file"),
        (
            [&garbage, &key, &authority],
            "garbage: there is no certificate",
        ),
        ([&cut, &key, &authority], "cut: "),
        (
            [&key, &key, &authority],
            "server.key: there is no certificate",
        ),
        (
            [&certificate, &missing, &authority],
            "missing: No such file",
        ),
        (
            [&certificate, &garbage, &authority],
            "garbage: there is no private key",
        ),
        (
            [&certificate, &certificate, &authority],
            "server.pem: there is no private key",
        ),
        (
            [&certificate, &locked, &authority],
            "locked: there is no private key that needs no pass",
        ),
        (
            [&certificate, &other, &authority],
            "client.key: this is not the key of the certificate",
        ),
        ([&certificate, &key, &missing], "missing: No such file"),
        (
            [&certificate, &key, &garbage],
            "garbage: there is no certificate",
        ),
    ] {
        let [certificate, key, authority] = files;
        let flags = [
            "--tls-port",
            "0",
            "--tls-cert",
            certificate,
            "--tls-key",
            key,
        ];
        let error = failure(&[&flags[..], &["--tls-ca", authority]].concat());
        assert!(
            error.starts_with("error: ") && error.contains(expected),
            "{error}"
        );
    }
    let pair = ["--tls-cert", &certificate, "--tls-key", &key];
    for (flags, expected) in [
        (&["--tls-port", "0"][..], "--tls-cert"),
        (&pair, "--tls-port"),
        (&["--port", "none"], "there is nothing to listen on"),
        (&["--port", "65536"], "'65536'"),
        (&["--tls-auth-clients", "maybe"], "'maybe'"),
        (
            &[&pair[..], &["--tls-port", "0"]].concat(),
            "--tls-auth-clients yes needs a file of authorities (--tls-ca)",
        ),
    ] {
        let error = failure(flags);
        assert!(error.contains(expected), "{flags:?}: {error}");
    }
}

/// Megabytes go both ways while neither side waits for the other.
#[test]
fn long_pipelines_go_both_ways() {
    let scene = Scene::new();
    let server = scene.server(&[]);
    let tunnel = scene.tunnel(&server);
    let mut client = tunnel.connect();
    let value = |number: usize| {
        let bytes = (0..300_000).map(|at| u8::try_from(at * (number + 7) % 251).expect("a byte"));
        bytes.collect::<Vec<u8>>()
    };
    let mut requests = Vec::new();
    for number in 0..16 {
        let key = format!("key:{number}");
        requests.extend(encode(&[b"SET", key.as_bytes(), &value(number)]));
        requests.extend(encode(&["GET", &key]));
        requests.extend(encode(&["INCR", "count"]).repeat(200));
    }
    let mut sender = client.stream.try_clone().expect("another descriptor");
    let sender = thread::spawn(move || sender.write_all(&requests));
    for number in 0..16 {
        assert_eq!(client.reply().as_deref(), Some(&b"+OK\r\n"[..]));
        assert_eq!(bulk(&client.reply().expect("a value")), value(number));
        for count in 1..=200 {
            let expected = format!(":{}\r\n", number * 200 + count).into_bytes();
            assert_eq!(client.reply(), Some(expected));
        }
    }
    sender.join().expect("no panic").expect("all is sent");

    // A command of some megabytes runs on the thread apart, and the session waits for it.
    let long = value(3).repeat(10);
    assert_eq!(client.call(&[&b"SET"[..], b"long", &long]), b"+OK\r\n");
    assert_eq!(bulk(&client.call(&["GET", "long"])), long);

    // The client reads nothing for a while; then a reply of megabytes is there, and what waits is
    // shown to others.
    client.send(&encode(&["MGET", "key:1", "key:2"]).repeat(40));
    let mut other = server.connect();
    eventually("unsent bytes", || {
        let list = other.text("CLIENT LIST");
        let tls = list.lines().find(|line| line.contains(" cmd=mget "));
        tls.is_some_and(|line| !line.contains(" obl=0 ") && line.contains(" events=rw "))
    });
    for _ in 0..40 {
        let reply = client.reply().expect("two values");
        assert_eq!(reply.len(), 4 + 2 * (value(1).len() + 11));
    }
}

/// A client that waits for a message gets it, and one that has left does not.
#[test]
fn messages_come_through_tls() {
    let scene = Scene::new();
    let server = scene.server(&[]);
    let mut sender = server.connect();
    assert_eq!(sender.text("MAILBOX.NEW m"), "+OK\r\n");
    let tunnel = scene.tunnel(&server);
    let mut receiver = tunnel.connect();
    receiver.send(&encode(&["MAILBOX.RECV", "m", "BLOCK", "0"]));
    let is_blocked = |sender: &mut Connection| sender.text("CLIENT LIST").contains("flags=b ");
    eventually("it waits", || is_blocked(&mut sender));
    assert_eq!(sender.text("MAILBOX.SEND m one"), ":1\r\n");
    assert_eq!(receiver.reply().as_deref(), Some(&b"$3\r\none\r\n"[..]));
    receiver.send(&encode(&["MAILBOX.RECV", "m", "BLOCK", "0"]));
    eventually("it waits again", || is_blocked(&mut sender));
    drop((receiver, tunnel));
    eventually("it is gone", || !is_blocked(&mut sender));
    assert_eq!(sender.text("MAILBOX.SEND m two"), ":1\r\n");
    assert_eq!(sender.text("MAILBOX.LEN m"), ":1\r\n");
}

/// Silent and endless handshakes are ended, and others are served meanwhile.
#[test]
fn a_handshake_has_a_time_and_a_size() {
    let scene = Scene::new();
    let limits = ["--handshake-timeout", "1", "--max-handshake", "8kb"];
    let server = scene.server(&[&limits[..], &["--log-level", "debug"]].concat());
    let connect = || TcpStream::connect(server.tls_address()).expect("a connection");
    let mut plain = server.connect();
    // One that only looks whether the port is open has not failed.
    drop(connect());
    scene.logged("the client left before it sent anything", 1);
    let (mut silent, mut half) = (connect(), connect());
    half.write_all(&[22, 3, 1, 2, 0, 1, 0]).expect("sent");
    eventually("two are under way", || {
        figure(&mut plain, "clients", "tls_handshakes") == "2"
    });
    assert!(is_served(
        &mut server.redis_cli(&scene.authority, Some(&scene.client))
    ));
    // Both end without a client that does anything. An alert may come before.
    assert!(rest(&mut silent).len() <= 7);
    assert!(rest(&mut half).len() <= 7);
    scene.logged("took longer than 1 seconds (--handshake-timeout)", 1);
    assert_eq!(figure(&mut plain, "clients", "tls_handshakes"), "0");
    assert_eq!(figure(&mut plain, "clients", "tls_handshakes_failed"), "2");

    // A hello of 60,000 bytes, in records of 4,000.
    let mut endless = connect();
    let hello = [&[1, 0, 0xea, 0x60][..], &[0; 60_000]].concat();
    for part in hello.chunks(4000) {
        let length = u16::try_from(part.len())
            .expect("a short part")
            .to_be_bytes();
        // The server may have closed.
        if endless
            .write_all(&[&[22, 3, 1][..], &length, part].concat())
            .is_err()
        {
            break;
        }
    }
    rest(&mut endless);
    scene.logged(
        "the handshake has more than 8192 bytes (--max-handshake)",
        1,
    );
    eventually("the third has failed", || {
        figure(&mut plain, "clients", "tls_handshakes_failed") == "3"
    });
    assert!(is_served(
        &mut server.redis_cli(&scene.authority, Some(&scene.client))
    ));
}

/// A client at the wrong port, or one that sends nonsense, gets an answer.
#[test]
fn nonsense_is_answered() {
    let scene = Scene::new();
    let server = scene.server(&[]);
    let connect = |address: SocketAddr| TcpStream::connect(address).expect("a connection");
    for plain in [
        &b"PING\r\n"[..],
        b"*1\r\n$4\r\nPING\r\n",
        b"\0",
        b"GET / HTTP/1.1\r\n\r\n",
    ] {
        let mut stream = connect(server.tls_address());
        stream.write_all(plain).expect("sent");
        let answer = rest(&mut stream);
        assert!(
            answer.starts_with(b"-ERR this port speaks TLS") && answer.ends_with(b"\r\n"),
            "{}",
            answer.escape_ascii()
        );
    }
    scene.logged("the client does not speak TLS", 1);
    for garbage in [
        &[22, 3, 1, 0, 5, 9, 9, 9, 9, 9][..],
        &[22, 0xff, 0xff, 0xff, 0xff, 0, 0, 0],
        &[&[22, 3, 3, 0, 4][..], &[1, 0xff, 0xff, 0xff], &[0x55; 100]].concat(),
    ] {
        let mut stream = connect(server.tls_address());
        stream.write_all(garbage).expect("sent");
        // Some of it is the beginning of more.
        stream.shutdown(Shutdown::Write).expect("ended");
        let answer = rest(&mut stream);
        assert!(
            answer.is_empty() || answer[0] == 21,
            "{}",
            answer.escape_ascii()
        );
    }
    // TLS at the port without it.
    let mut stream = connect(server.address);
    stream
        .write_all(&[22, 3, 1, 2, 0, 1, 0, 1, 0xfc])
        .expect("sent");
    assert_eq!(rest(&mut stream), HANDSHAKE_FAILURE);
    scene.logged("begins TLS at a port without it", 1);
    let address = server.address.to_string();
    let output = run(&mut openssl(&["s_client", "-connect", &address]), b"");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("alert handshake failure"), "{said}");
    // A command that begins with that byte later is one that nobody knows.
    let mut client = server.connect();
    assert_eq!(client.text("PING"), "+PONG\r\n");
    client.send(b"\x16\x03\r\n");
    let reply = client.reply().expect("an error");
    assert!(
        reply.starts_with(b"-ERR unknown command"),
        "{}",
        reply.escape_ascii()
    );
}

/// A hello of a real client with one byte changed, for each byte, or cut there: the server ends
/// each handshake, none with a fault of its own, and serves others.
#[test]
fn a_hello_with_any_byte_changed_does_no_harm() {
    let scene = Scene::new();
    let server = scene.server(&["--max-clients", "64"]);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address").to_string();
    let client = thread::spawn(move || {
        run(&mut openssl(&["s_client", "-connect", &address]), b"");
    });
    let (mut stream, _) = listener.accept().expect("the client comes");
    let mut hello = vec![0; 4096];
    let length = stream.read(&mut hello).expect("a hello");
    hello.truncate(length);
    drop((stream, listener));
    client.join().expect("it leaves");
    assert!(length > 100, "{}", hello.escape_ascii());
    for at in 0..length {
        let mut changed = hello.clone();
        changed[at] ^= 0x55;
        for bytes in [&changed[..], &hello[..at]] {
            let mut stream = TcpStream::connect(server.tls_address()).expect("a connection");
            stream.write_all(bytes).expect("sent");
            stream.shutdown(Shutdown::Write).expect("ended");
            let answer = rest(&mut stream);
            // An alert, or the server's part of a handshake; or plain text for another first byte.
            let is_sensible = matches!(answer.first(), None | Some(21 | 22))
                || (at == 0 && answer.starts_with(b"-ERR "));
            assert!(is_sensible, "{at}: {}", answer.escape_ascii());
        }
    }
    assert!(is_served(
        &mut server.redis_cli(&scene.authority, Some(&scene.client))
    ));
    let log = fs::read_to_string(&scene.log).expect("read");
    assert!(!log.contains("a fault of the server"), "{log}");
    let mut plain = server.connect();
    assert_eq!(figure(&mut plain, "clients", "tls_handshakes"), "0");
}

/// Before the handshake nothing can be encrypted, so the answer to a client without a place is an
/// alert.
#[test]
fn a_client_without_a_place_gets_an_alert() {
    let scene = Scene::new();
    let server = scene.server(&["--max-clients", "1", "--reserved-clients", "0"]);
    let tunnel = scene.tunnel(&server);
    let mut first = tunnel.connect();
    assert_eq!(first.text("PING"), "+PONG\r\n");
    let mut second = TcpStream::connect(server.tls_address()).expect("a connection");
    assert_eq!(rest(&mut second), INTERNAL_ERROR);
    assert_eq!(figure(&mut first, "stats", "rejected_connections"), "1");
    drop((first, tunnel));
    eventually("the place is free", || {
        is_served(&mut server.redis_cli(&scene.authority, Some(&scene.client)))
    });
}

/// Bytes that were changed on their way end the connection, and are no command.
#[test]
fn what_was_changed_on_its_way_is_not_taken() {
    let scene = Scene::new();
    let server = scene.server(&[]);
    // Between the client and the server, and changes what the client sends once that is on.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let between = listener.local_addr().expect("its address");
    let to = server.tls_address();
    let changes = Arc::new(AtomicBool::new(false));
    let is_on = Arc::clone(&changes);
    thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("the client comes");
        let mut server = TcpStream::connect(to).expect("a connection");
        let (mut from, mut back) = (
            server.try_clone().expect("another descriptor"),
            client.try_clone().expect("another descriptor"),
        );
        thread::spawn(move || std::io::copy(&mut from, &mut back));
        let mut bytes = vec![0; 64 << 10];
        while let Ok(read @ 1..) = client.read(&mut bytes) {
            if is_on.load(Relaxed) {
                bytes[read - 1] ^= 1;
            }
            if server.write_all(&bytes[..read]).is_err() {
                break;
            }
        }
    });
    let tunnel = Tunnel::new(between, &scene.authority, Some(&scene.client));
    let mut client = tunnel.connect();
    assert_eq!(client.text("SET key before"), "+OK\r\n");
    changes.store(true, Relaxed);
    client.send(&encode(&["SET", "key", "after"]));
    assert_eq!(client.reply(), None);
    assert_eq!(server.connect().text("GET key"), "$6\r\nbefore\r\n");
}

/// The session of TLS goes along when a client moves to another thread.
#[test]
fn clients_with_tls_move_between_threads() {
    let scene = Scene::new();
    let server = scene.server(&["--threads", "2"]);
    fill(&mut server.connect());
    let tunnels: Vec<_> = (0..3).map(|_| scene.tunnel(&server)).collect();
    let mut clients: Vec<_> = tunnels.iter().map(Tunnel::connect).collect();
    let threads_of = |client: &mut Connection| {
        let text = client.text("CLIENT INFO");
        let (_, thread) = text.rsplit_once("io-thread=").expect("a thread");
        thread.trim().to_owned()
    };
    busy_beside(&server, || {
        let before: Vec<_> = clients.iter_mut().map(threads_of).collect();
        let mut count = 0;
        let last = encode(&["ECHO", "half"]);
        let (half, other_half) = last.split_at(9);
        let deadline = Instant::now() + PATIENCE;
        let mut has_moved = false;
        while !has_moved && Instant::now() < deadline {
            for (client, before) in clients.iter_mut().zip(&before) {
                count += 1;
                client.send(&[&encode(&["INCR", "count"]), half].concat());
                let expected = format!(":{count}\r\n").into_bytes();
                assert_eq!(client.reply(), Some(expected));
                client.send(other_half);
                assert_eq!(client.reply().as_deref(), Some(&b"$4\r\nhalf\r\n"[..]));
                has_moved |= threads_of(client) != *before;
            }
        }
        assert!(has_moved, "no client moves");
    });
}

/// In protected mode, a client from elsewhere learns the reason through TLS.
#[test]
fn protected_mode_answers_through_tls() {
    let scene = Scene::new();
    let server = scene.server(&["--bind", "0.0.0.0"]);
    // Sends no packet. It finds the address that the machine would send from.
    let outward = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect("192.0.2.1:9")?;
        socket.local_addr()
    });
    let at = |address: IpAddr| {
        let port = server.tls_address().port().to_string();
        let mut command = server.redis_cli(&scene.authority, Some(&scene.client));
        ping(command.args(["-h", &address.to_string(), "-p", &port]))
    };
    assert_eq!(at([127, 0, 0, 1].into()), "PONG\n");
    match outward.map(|address| address.ip()) {
        Ok(ip) if !ip.is_loopback() && !ip.is_unspecified() => {
            let said = at(ip);
            assert!(
                said.contains("DENIED Tremula is running in protected mode"),
                "{said}"
            );
        }
        _ => println!("this machine has only loopback; nothing can come from elsewhere"),
    }
}

#[test]
fn a_server_can_be_for_tls_alone() {
    let scene = Scene::new();
    let server = scene.server(&["--port", "none"]);
    let port = server.tls_address().port();
    let places = format!(" ready on 127.0.0.1:{port} with TLS (engine ");
    assert!(server.ready_line.contains(&places), "{}", server.ready_line);
    let mut command = server.redis_cli(&scene.authority, Some(&scene.client));
    let output = run(
        &mut command,
        b"INFO server\nCONFIG GET *port*\nCLIENT LIST\n",
    );
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in [
        format!("listener0:name=tls,bind=127.0.0.1,port={port}"),
        format!("tcp_port:{port}\r\n"),
        format!("tls-port\n{port}\n"),
        "port\n0\n".to_owned(),
        format!("laddr=127.0.0.1:{port} "),
    ] {
        assert!(said.contains(&part), "{part} in {said}");
    }
}
