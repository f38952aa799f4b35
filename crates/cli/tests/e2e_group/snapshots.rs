//! Groups whose log is cut behind snapshots: nodes that are new, late, or were put aside.

use crate::cluster::Cluster;
use crate::support::resp::{bulk, encode};
use crate::support::{Server, eventually, run};
use crate::{Known, catch_up, check, write};
use async_nats::jetstream;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Instant;
use tokio::io::AsyncReadExt;

/// Snapshots are made often.
const OFTEN: &[&str] = &["--group-snapshot-every", "100kb"];

/// Writes values of some length until the log is cut behind this message, and returns its first
/// one.
fn fill(cluster: &Cluster, leader: usize, behind: u64) -> u64 {
    let value = "x".repeat(1000);
    let mut connection = cluster.connect(leader).expect("the leader listens");
    let mut number = 0;
    let mut first = 0;
    eventually("the log is cut", || {
        for _ in 0..50 {
            number += 1;
            let key = format!("fill:{}", number % 100);
            connection.send(&encode(&["set", &key, &value]));
            assert_eq!(connection.reply().as_deref(), Some(&b"+OK\r\n"[..]));
        }
        first = (0..2)
            .filter_map(|at| first_of(cluster, at))
            .max()
            .unwrap_or(0);
        first > behind
    });
    first
}

fn first_of(cluster: &Cluster, at: usize) -> Option<u64> {
    cluster.nodes[at].as_ref()?;
    cluster.figure(at, "group_log_first")?.parse().ok()
}

fn standing(cluster: &Cluster, at: usize) -> String {
    cluster.figure(at, "group_standing").unwrap_or_default()
}

/// The first record of a node's own log.
fn first_own(cluster: &Cluster, at: usize) -> u64 {
    let log = cluster.directory(at).join("log");
    let names = fs::read_dir(log).expect("a log").map(|entry| {
        let name = entry.expect("a file").file_name();
        name.into_string().expect("text")
    });
    let firsts = names.filter_map(|name| name.strip_suffix(".segment")?.parse().ok());
    firsts.min().expect("a segment")
}

/// Runs something with a client of NATS.
fn nats<T>(cluster: &Cluster, work: impl AsyncFnOnce(jetstream::Context) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("an event loop").block_on(async {
        let client = async_nats::connect(cluster.url()).await;
        work(jetstream::new(client.expect("NATS"))).await
    })
}

/// The name of the newest snapshot.
async fn newest(store: &jetstream::object_store::ObjectStore) -> String {
    let mut list = store.list().await.expect("a list");
    let mut names = Vec::new();
    while let Some(info) = futures_next(&mut list).await {
        names.extend(info.name.strip_suffix(".manifest").map(str::to_owned));
    }
    names.into_iter().max().expect("a snapshot")
}

async fn futures_next(
    list: &mut jetstream::object_store::List,
) -> Option<jetstream::object_store::ObjectInfo> {
    use futures_util::StreamExt;
    list.next().await.map(|info| info.expect("an object"))
}

/// Ends writers also when the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

fn rejoin(directory: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
    run(command.args(["cluster", "rejoin"]).arg(directory), b"")
}

#[test]
fn a_new_node_joins_a_log_that_is_cut_while_others_write() {
    let mut cluster = Cluster::with(1, 3, 2, OFTEN);
    let leader = cluster.leader();
    let is_over = AtomicBool::new(false);
    let known = thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let view = cluster.view();
                let is_over = &is_over;
                scope.spawn(move || write(&view, writer, is_over))
            })
            .collect();
        let over = Over(&is_over);
        let first = fill(&cluster, leader, 1);
        cluster.start_again(2);
        eventually("the new node follows", || {
            standing(&cluster, 2) == "follower"
        });
        assert!(
            first_own(&cluster, 2) > 1,
            "it has read from message {first}"
        );
        // And once more, from what it has now.
        cluster.start_again(2);
        eventually("the new node follows", || {
            standing(&cluster, 2) == "follower"
        });
        drop(over);
        let known = writers
            .into_iter()
            .map(|writer| writer.join().expect("no panic"));
        known.flatten().collect::<Known>()
    });
    assert!(known.values().any(|(acknowledged, _)| *acknowledged > 0));
    catch_up(&cluster, 2, leader);
    check(&cluster, 2, &known);
    let mut connection = cluster.connect(2).expect("it listens");
    assert_eq!(bulk(&connection.call(&["get", "fill:7"])).len(), 1000);
    // Not the leader, unless it was alone at first.
    let made = cluster.figure(1 - leader, "group_snapshots_made");
    assert_ne!(made.as_deref(), Some("0"));
}

#[test]
fn a_late_node_whose_place_was_cut_loads_a_snapshot() {
    let mut cluster = Cluster::with(1, 2, 2, OFTEN);
    let leader = cluster.leader();
    let late = 1 - leader;
    let reply = cluster.ask(leader, &["set", "old", "1"]);
    assert_eq!(reply.as_deref(), Some(&b"+OK\r\n"[..]));
    catch_up(&cluster, late, leader);
    cluster.nodes[late] = None;
    // Otherwise the log waits half a minute for it.
    let forget = async |context: jetstream::Context| {
        let store = context.get_key_value("TREMULA_main_nodes").await;
        let Ok(store) = store else { return false };
        store.purge(&format!("node{late}")).await.is_ok()
    };
    eventually("the node is forgotten", || nats(&cluster, forget));
    let reply = cluster.ask(leader, &["del", "old"]);
    assert_eq!(reply.as_deref(), Some(&b":1\r\n"[..]));
    let first = fill(&cluster, leader, 1);
    cluster.start_again(late);
    eventually("the late node follows", || {
        standing(&cluster, late) == "follower"
    });
    assert!(
        first_own(&cluster, late) > 1,
        "it has read from message {first}"
    );
    catch_up(&cluster, late, leader);
    let mut connection = cluster.connect(late).expect("it listens");
    assert_eq!(connection.call(&["get", "old"]), b"$-1\r\n");
    assert_eq!(bulk(&connection.call(&["get", "fill:7"])).len(), 1000);
}

#[test]
fn a_damaged_snapshot_is_replaced_by_the_one_before_it() {
    let mut cluster = Cluster::with(1, 4, 2, OFTEN);
    fill(&cluster, cluster.leader(), 1);
    // From now on no node makes another one.
    cluster.flags = ["--group-snapshot-every", "0"].map(str::to_owned).to_vec();
    for at in 0..2 {
        cluster.start_again(at);
    }
    let leader = cluster.leader();
    let objects = async |context: jetstream::Context| {
        let store = context.get_object_store("TREMULA_main_snapshots").await;
        store.expect("a bucket")
    };
    // One byte of a value: nothing but the checksum shows it.
    let damage = async |context: jetstream::Context| {
        let store = objects(context).await;
        let name = format!("{}.package", newest(&store).await);
        let mut package = Vec::new();
        let mut object = store.get(&name).await.expect("a package");
        object.read_to_end(&mut package).await.expect("its bytes");
        let at = package.windows(100).position(|part| part == [b'x'; 100]);
        package[at.expect("a value") + 50] = b'y';
        let put = store.put(name.as_str(), &mut &package[..]).await;
        put.expect("it is put");
    };
    nats(&cluster, damage);
    cluster.start_again(2);
    eventually("the new node follows", || {
        standing(&cluster, 2) == "follower"
    });
    assert!(first_own(&cluster, 2) > 1);
    catch_up(&cluster, 2, leader);
    let mut connection = cluster.connect(2).expect("it listens");
    let value = bulk(&connection.call(&["get", "fill:7"]));
    assert_eq!(value, [b'x'; 1000]);
    // And now no snapshot is left.
    let remove = async |context: jetstream::Context| {
        let store = objects(context).await;
        loop {
            let mut list = store.list().await.expect("a list");
            let Some(info) = futures_next(&mut list).await else {
                break;
            };
            store.delete(&info.name).await.expect("it goes");
        }
    };
    nats(&cluster, remove);
    cluster.start_again(3);
    eventually("the new node says what it needs", || {
        let why = cluster.figure(3, "group_refusal").unwrap_or_default();
        standing(&cluster, 3) == "behind" && why.contains("no snapshot leads there")
    });
    let reply = cluster.ask(3, &["get", "fill:7"]).expect("a reply");
    assert!(reply.starts_with(b"-TRYAGAIN "), "{}", reply.escape_ascii());
}

#[test]
fn a_node_with_another_history_joins_anew() {
    let mut cluster = Cluster::with(1, 2, 2, &[]);
    let leader = cluster.leader();
    let reply = cluster.ask(leader, &["set", "key", "old"]);
    assert_eq!(reply.as_deref(), Some(&b"+OK\r\n"[..]));
    catch_up(&cluster, 1 - leader, leader);
    let used = rejoin(&cluster.directory(leader));
    assert!(!used.status.success(), "the node runs");
    for at in 0..2 {
        cluster.nodes[at] = None;
    }
    cluster.nats[0].kill();
    fs::remove_dir_all(cluster.folder().join("nats0")).expect("the folder goes");
    cluster.nats[0].again();
    // The first one begins a new history, the other one has still the old one, and says so.
    let rejoined = rejoin(&cluster.directory(0));
    assert!(rejoined.status.success(), "{rejoined:?}");
    cluster.start_again(0);
    eventually("a node leads", || standing(&cluster, 0) == "leader");
    let reply = cluster.ask(0, &["set", "key", "new"]);
    assert_eq!(reply.as_deref(), Some(&b"+OK\r\n"[..]));
    cluster.start_again(1);
    eventually("the other one refuses", || {
        standing(&cluster, 1) == "refusing"
    });
    let why = cluster.figure(1, "group_refusal").unwrap_or_default();
    assert!(why.contains("tremula cluster rejoin"), "{why}");
    cluster.nodes[1] = None;
    let rejoined = rejoin(&cluster.directory(1));
    assert!(rejoined.status.success(), "{rejoined:?}");
    cluster.start_again(1);
    eventually("it follows", || standing(&cluster, 1) == "follower");
    catch_up(&cluster, 1, 0);
    let mut connection = cluster.connect(1).expect("it listens");
    assert_eq!(bulk(&connection.call(&["get", "key"])), b"new");
    // What it had is still there.
    let aside = cluster.directory(1).join("before-rejoin-1");
    let restored = cluster.folder().join("restored");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
    let restore = run(command.arg("restore").args([&aside, &restored]), b"");
    assert!(restore.status.success(), "{restore:?}");
    let alone = Server::kept(&restored, &[]);
    assert_eq!(bulk(&alone.connect().call(&["get", "key"])), b"old");
    let no_node = rejoin(&restored);
    let why = String::from_utf8_lossy(&no_node.stderr).into_owned();
    assert!(why.contains("no directory of a node"), "{why}");
}

#[test]
fn a_group_goes_on_from_the_own_log_of_a_node() {
    let mut cluster = Cluster::with(1, 3, 2, &[]);
    let leader = cluster.leader();
    let other = 1 - leader;
    let set = |cluster: &Cluster, at, value| {
        let reply = cluster.ask(at, &["set", "key", value]);
        assert_eq!(reply.as_deref(), Some(&b"+OK\r\n"[..]));
    };
    set(&cluster, leader, "old");
    catch_up(&cluster, other, leader);
    cluster.nodes[other] = None;
    set(&cluster, leader, "newer");
    // Orderly: the group has confirmed it, and the own log may not yet have it on the disk.
    let mut server = cluster.nodes[leader].take().expect("it runs");
    server.signal("TERM");
    assert!(server.wait().success());
    cluster.nats[0].kill();
    fs::remove_dir_all(cluster.folder().join("nats0")).expect("the folder goes");
    cluster.nats[0].again();
    let publish = |flags: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
        command
            .args(["cluster", "publish", "--replicate", cluster.url()])
            .args(flags)
            .arg(cluster.directory(leader));
        run(&mut command, b"")
    };
    let published = publish(&[]);
    assert!(published.status.success(), "{published:?}");
    let again = publish(&[]);
    let why = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(
        !again.status.success() && why.contains("--replace"),
        "{why}"
    );
    let again = publish(&["--replace"]);
    assert!(again.status.success(), "{again:?}");
    cluster.start_again(leader);
    eventually("the node leads", || standing(&cluster, leader) == "leader");
    // One that has less, and one that has nothing.
    for at in [other, 2] {
        cluster.start_again(at);
        eventually("the node follows", || standing(&cluster, at) == "follower");
        catch_up(&cluster, at, leader);
        let mut connection = cluster.connect(at).expect("it listens");
        assert_eq!(bulk(&connection.call(&["get", "key"])), b"newer");
    }
    set(&cluster, leader, "newest");
    catch_up(&cluster, 2, leader);
    let mut connection = cluster.connect(2).expect("it listens");
    assert_eq!(bulk(&connection.call(&["get", "key"])), b"newest");
}

/// Prints how long a new node takes until it shows what a leader with a million keys does, while
/// others write. Only in deep runs.
#[test]
fn a_node_joins_a_million_keys() {
    if std::env::var_os("TREMULA_DEEP").is_none() {
        return;
    }
    let mut cluster = Cluster::with(3, 3, 2, &["--group-snapshot-every", "20mb"]);
    let leader = cluster.leader();
    let mut connection = cluster.connect(leader).expect("the leader listens");
    for part in 0..1000 {
        let mut words = vec!["mset".to_owned()];
        for key in 0..1000 {
            words.push(format!("key:{:07}", part * 1000 + key));
            words.push("0123456789abcdef".to_owned());
        }
        connection.send(&encode(&words));
        assert_eq!(connection.reply().as_deref(), Some(&b"+OK\r\n"[..]));
    }
    fill(&cluster, leader, 1);
    let bytes = cluster.figure(1 - leader, "group_snapshot_bytes");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let view = cluster.view();
        let is_over = &is_over;
        scope.spawn(move || write(&view, 0, is_over));
        let began = Instant::now();
        cluster.start_again(2);
        eventually("the new node follows", || {
            standing(&cluster, 2) == "follower"
        });
        println!(
            "a node has joined {} keys, of which a snapshot has {} bytes, in {:?}",
            1_000_000,
            bytes.unwrap_or_default(),
            began.elapsed()
        );
        is_over.store(true, SeqCst);
    });
    assert!(first_own(&cluster, 2) > 1);
    catch_up(&cluster, 2, leader);
    let size = |at| cluster.ask(at, &["dbsize"]).expect("a reply");
    assert_eq!(size(2), size(leader));
}
