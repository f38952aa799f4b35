//! The page in a real browser: over a real server whose hot keys are known, and over a server with
//! made-up figures, which has a day of them, ten thousand leaves, and an engine without a walk.

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use support::crowd::grow_and_fold;
use support::http::{WithPage, with_page_at};
use support::resp::{Connection, encode};
use support::scripts::{self, browser};
use support::{root, run};
use tremula_index::OrderedMap;
use tremula_observe::{Maps, Page, Settings};

/// Runs Node.js in the folder of the page's sources.
fn node(arguments: &[&str]) {
    let mut command = Command::new("node");
    command
        .current_dir(root().join("crates/observe/page"))
        .args(arguments);
    let output = run(&mut command, b"");
    assert!(
        output.status.success(),
        "{command:?}\n{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_built_files_are_those_of_the_sources() {
    node(&["build.mjs", "--check"]);
}

#[test]
fn the_modules_pass_their_tests() {
    node(&["--test", "modules.test.mjs"]);
}

#[test]
fn the_page_shows_made_up_figures() {
    scripts::passes(browser().arg("--mock"), |_| None);
}

/// The keys that most writes go to: from the first, up to the second.
const HOT: [&str; 2] = ["user:4100", "user:4400"];

/// Keys that are there before, evenly over all numbers of four digits.
const KEYS: usize = 100_000;

/// Commands that a client sends at once, and how long it rests then: enough for a picture, and
/// little enough to leave the browser a processor.
const AT_ONCE: u64 = 50;
const REST: Duration = Duration::from_millis(10);

/// Stores the keys that are there before.
fn fill(client: &mut Connection) {
    for from in (0..KEYS).step_by(1000) {
        let mut words = vec!["mset".to_owned()];
        for number in from..from + 1000 {
            words.extend([
                format!("user:{:04}:{}", number / 10, number % 10),
                "0".into(),
            ]);
        }
        client.call(&words);
    }
}

/// Sends commands until there is an error, or it should stop. Four in five write in the hot range,
/// and one of ten of those a new key, so that leaves split there.
fn load(address: SocketAddr, client: u64, stop: &AtomicBool) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(support::PATIENCE))?;
    let mut number = client;
    let mut replies = [0; 4096];
    while !stop.load(Relaxed) {
        let mut sent = Vec::new();
        for _ in 0..AT_ONCE {
            number += 2;
            let anywhere = format!("user:{:04}:0", number.wrapping_mul(7919) % 10_000);
            let hot = 4100 + number.wrapping_mul(31) % 300;
            let command = match number / 2 % 10 {
                0 => vec!["GET".to_owned(), anywhere],
                1 => vec!["SET".to_owned(), anywhere, "cold".to_owned()],
                2 => vec![
                    "SET".to_owned(),
                    format!("user:{hot}:{number}"),
                    "new".to_owned(),
                ],
                _ => vec!["SET".to_owned(), format!("user:{hot}:1"), "hot".to_owned()],
            };
            sent.extend(encode(&command));
        }
        stream.write_all(&sent)?;
        thread::sleep(REST);
        if stream.read(&mut replies)? == 0 {
            break;
        }
    }
    Ok(())
}

#[test]
fn the_page_shows_a_real_server_and_survives_its_death() {
    let arguments = ["--memory-only", "--threads", "2"];
    let first = with_page_at(["0", "127.0.0.1:0"], &arguments);
    let (address, page) = (first.server.address, first.page);
    fill(&mut first.server.connect());
    let mut script = browser();
    script
        .args(["--address", &page.to_string(), "--token", &first.token])
        .args(["--low", HOT[0], "--high", HOT[1]]);
    let (port, place) = (first.server.port(), page.to_string());
    let mut running: Option<WithPage> = Some(first);
    let stop = AtomicBool::new(false);
    thread::scope(|threads| {
        for client in 0..2 {
            let stop = &stop;
            threads.spawn(move || {
                while !stop.load(Relaxed) {
                    // Fails while the server is dead.
                    let _ = load(address, client, stop);
                    thread::sleep(REST);
                }
            });
        }
        // The clients end also if the script fails.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            scripts::passes(&mut script, |line| match line {
                "kill" => {
                    // Dropping a server kills it with signal 9.
                    drop(running.take());
                    Some("killed")
                }
                "start" => {
                    running = Some(with_page_at([&port, &place], &arguments));
                    assert!(running.as_ref().is_some_and(|server| server.page == page));
                    Some("started")
                }
                _ => None,
            });
        }));
        stop.store(true, Relaxed);
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    });
}

#[test]
fn a_user_signs_in_and_sees_mailboxes_and_threads() {
    let WithPage { server, page, .. } = with_page_at(
        ["0", "127.0.0.1:0"],
        &["--memory-only", "--threads", "4", "--gather", "no"],
    );
    let mut client = server.connect();
    assert_eq!(client.text("MAILBOX.NEW mail"), "+OK\r\n");
    grow_and_fold(&server, page, "mail", || {
        let mut rules = vec!["ACL", "SETUSER", "ann", "on", ">secret", "allkeys", "+@all"];
        rules.extend(["alltables", "allmailboxes", "allchannels"]);
        assert_eq!(client.call(&rules), b"+OK\r\n");
        assert_eq!(client.text("CONFIG SET requirepass other"), "+OK\r\n");
        let mut script = browser();
        let login = ["--user", "ann", "--password", "secret", "--mailbox", "mail"];
        script.args(["--address", &page.to_string()]).args(login);
        scripts::passes(&mut script, |_| None);
    });
}

#[test]
fn the_page_shows_the_maps_of_a_program() {
    let map = Arc::new(OrderedMap::<u64, u64>::new());
    for key in 0..100_000 {
        map.insert(key, 0);
    }
    let maps = Maps::new("counts", "1.0").with("pages", Arc::clone(&map));
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let page = Page::bind(any, Settings::default()).expect("a page");
    page.show(Arc::new(maps)).expect("an observer");
    let stop = AtomicBool::new(false);
    thread::scope(|threads| {
        threads.spawn(|| {
            while !stop.load(Relaxed) {
                for key in 50_000..50_100 {
                    map.insert(key, 1);
                }
                thread::sleep(REST);
            }
        });
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut script = browser();
            script.args(["--embedded", "--address", &page.address().to_string()]);
            script.args(["--low", "50000", "--high", "50100"]);
            scripts::passes(&mut script, |_| None);
        }));
        stop.store(true, Relaxed);
        assert!(outcome.is_ok());
    });
}
