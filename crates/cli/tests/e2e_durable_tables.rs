//! Tables that are kept over restarts and kills.

mod support;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use support::Server;
use support::ets::{ask, check};
use support::resp::{Connection, encode};

/// Kills of the ordinary run, and of a deep one.
const KILLS: [u64; 2] = [8, 200];

const TABLES: [&str; 5] = ["set", "ordered", "bag", "twice", "packed"];

/// A random command that every table of its kind answers in the same way, whatever the order of
/// its keys.
fn command(random: &mut StdRng) -> String {
    let table = TABLES[random.random_range(0..TABLES.len())];
    let key = random.random_range(0..12);
    let value = [
        "1",
        "2.5",
        "x",
        "\"text\"",
        "{a, [b]}",
        "#{k => v}",
        "<<1, 2:3>>",
    ];
    let value = value[random.random_range(0..value.len())];
    let other = random.random_range(0..5);
    match random.random_range(0..20) {
        0 => format!("ETS.DELETE  {table}  {key}"),
        1 => format!("ETS.TAKE  {table}  {key}"),
        2 => format!("ETS.DELETE_OBJECT  {table}  {{{key}, {value}, {other}}}"),
        3 => format!("ETS.INSERT_NEW  {table}  [{{{key}, {value}, 0}}, {{n{key}, 1, 1}}]"),
        4 => format!("ETS.SELECT_DELETE  {table}  [{{{{'$1', '_', {other}}}, [], [true]}}]"),
        5 => format!(
            "ETS.SELECT_DELETE  {table}  [{{{{'$1', '_', '_'}}, [{{'<', '$1', {other}}}], [true]}}]"
        ),
        6 => format!("ETS.MATCH_DELETE  {table}  {{'_', {value}, '_'}}"),
        7 => format!(
            "ETS.SELECT_REPLACE  {table}  [{{{{'$1', '$2', {other}}}, [], [{{{{'$1', '$2', {key}}}}}]}}]"
        ),
        8 => format!("ETS.UPDATE_COUNTER  {table}  {key}  {{3, {other}}}  {{{key}, new, 7}}"),
        9 => format!("ETS.UPDATE_ELEMENT  {table}  {key}  {{2, {value}}}"),
        10 if key == 0 => format!("ETS.DELETE_ALL_OBJECTS  {table}"),
        11 if key == 0 => format!("ETS.INIT_TABLE  {table}  [{{{key}, {value}, 1}}, {{1, x, 2}}]"),
        12 if key == 0 => format!("ETS.DELETE  {table}"),
        13 => format!("ETS.RENAME  {table}  other"),
        14 => format!("ETS.RENAME  other  {table}"),
        15 => {
            format!("ETS.INSERT  {table}  [{{{key}, {value}, {other}}}, {{{other}, {value}, 3}}]")
        }
        _ => format!("ETS.INSERT  {table}  {{{key}, {value}, {other}}}"),
    }
}

fn make_tables(client: &mut Connection) {
    for (table, options) in TABLES.iter().zip([
        "set",
        "ordered_set",
        "bag",
        "duplicate_bag",
        "[set, compressed, {read_concurrency, true}]",
    ]) {
        // Those that are there are refused.
        ask(client, &format!("ETS.NEW  {table}  {options}"));
    }
}

/// What a client sees of all tables.
fn seen(client: &mut Connection) -> Vec<String> {
    let mut all = Vec::new();
    for table in TABLES.iter().chain(&["other"]) {
        for item in ["size", "type", "keypos", "protection", "compressed", "heir"] {
            all.push(ask(client, &format!("ETS.INFO  {table}  {item}")));
        }
        for key in (0..12).map(|key| key.to_string()) {
            all.push(ask(client, &format!("ETS.LOOKUP  {table}  {key}")));
            all.push(ask(client, &format!("ETS.LOOKUP  {table}  n{key}")));
        }
    }
    all.push(ask(client, "ETS.TAB2LIST  ordered"));
    all
}

/// A server that keeps its tables, and one that is never ended, get the same commands: whatever
/// ends the first, they go on answering the same.
#[test]
fn tables_are_there_after_orderly_ends_and_kills() {
    let directory = tempfile::tempdir().expect("a directory");
    let model = Server::tremula(&[]);
    let mut model = model.connect();
    let mut random = StdRng::seed_from_u64(23);
    let mut rows = 0;
    for round in 0..6 {
        let mut server = Server::kept(directory.path(), &["--durability", "always"]);
        let mut client = server.connect();
        assert_eq!(seen(&mut client), seen(&mut model), "round {round}");
        rows += ask(&mut model, "ETS.INFO  bag  size").parse().unwrap_or(0);
        for clients in [&mut client, &mut model] {
            make_tables(clients);
        }
        for step in 0..250 {
            if step == 100 && round % 3 == 1 {
                assert_eq!(client.text("save"), "+OK\r\n");
            }
            let command = command(&mut random);
            let [answer, expected] = [&mut client, &mut model].map(|one| ask(one, &command));
            assert_eq!(answer, expected, "{command}, round {round}");
        }
        if round % 2 == 0 {
            server.signal("TERM");
            assert!(server.wait().success());
        } else {
            server.signal("KILL");
            server.wait();
        }
    }
    assert!(rows > 0, "tables without rows tell nothing");
}

#[test]
fn who_owned_tables_is_gone_after_a_kill_and_its_heirs_are_asked() {
    let directory = tempfile::tempdir().expect("a directory");
    let files = tempfile::tempdir().expect("a directory");
    let files = files.path().to_str().expect("a path of text");
    let arguments = ["--durability", "always", "--table-directory", files];
    for end in ["KILL", "TERM"] {
        let mut server = Server::kept(directory.path(), &arguments);
        let mut client = server.connect();
        check(
            &mut client,
            &[
                ("ETS.ALL", "[]"),
                ("ETS.NEW  shared", "shared"),
                ("ETS.NEW  mine  protected", "mine"),
                ("ETS.NEW  secret  private", "secret"),
                ("ETS.INSERT  shared  {1, kept}", "true"),
                ("ETS.INSERT  mine  {1, gone}", "true"),
                ("ETS.NEW  from_file  {keypos, 2}", "from_file"),
                ("ETS.INSERT  from_file  [{a, 1}, {b, 2}]", "true"),
                ("ETS.TAB2FILE  from_file  file", "ok"),
                ("ETS.DELETE  from_file", "true"),
                ("ETS.FILE2TAB  file", "{ok,from_file}"),
            ],
        );
        assert_eq!(client.text("mailbox.new m"), "+OK\r\n");
        check(
            &mut client,
            &[
                ("ETS.NEW  inherited  {heir, m, data}", "inherited"),
                ("ETS.NEW  given  protected", "given"),
                ("ETS.GIVE_AWAY  given  m  data", "true"),
                ("ETS.ALL", "[shared,mine,secret,from_file,inherited,given]"),
            ],
        );
        server.signal(end);
        assert_eq!(server.wait().success(), end == "TERM");
        let mut server = Server::kept(directory.path(), &arguments);
        let mut client = server.connect();
        check(
            &mut client,
            &[
                // The mailbox is not kept, and what it owned ends with it.
                ("ETS.ALL", "[shared,from_file]"),
                ("ETS.TAB2LIST  shared", "[{1,kept}]"),
                ("ETS.LOOKUP  from_file  2", "[{b,2}]"),
                ("ETS.INFO  from_file  keypos", "2"),
                ("ETS.NEW  mine", "mine"),
                ("ETS.TAB2LIST  mine", "[]"),
                ("ETS.DELETE  mine", "true"),
                ("ETS.DELETE  shared", "true"),
                ("ETS.DELETE  from_file", "true"),
            ],
        );
        // Keys come and go; tables stay.
        assert_eq!(ask(&mut client, "ETS.NEW  stays"), "stays");
        assert_eq!(client.text("flushall"), "+OK\r\n");
        assert_eq!(ask(&mut client, "ETS.ALL"), "[stays]");
        server.signal("KILL");
        server.wait();
        let server = Server::kept(directory.path(), &arguments);
        let mut client = server.connect();
        check(
            &mut client,
            &[("ETS.ALL", "[stays]"), ("ETS.DELETE  stays", "true")],
        );
    }
}

/// Clients write with `always` and note what was acknowledged; the server is killed at a random
/// moment. What was acknowledged is there, and of each list of rows all or none.
#[test]
fn rows_that_are_acknowledged_survive_kills() {
    const CLIENTS: usize = 4;
    let is_deep = std::env::var_os("TREMULA_DEEP").is_some();
    let directory = tempfile::tempdir().expect("a directory");
    let acknowledged: Vec<AtomicU64> = (0..CLIENTS).map(|_| AtomicU64::new(0)).collect();
    let mut random = StdRng::seed_from_u64(7);
    for kill in 0..KILLS[usize::from(is_deep)] {
        let mut server = Server::kept(directory.path(), &["--durability", "always"]);
        let mut client = server.connect();
        ask(&mut client, "ETS.NEW  t  ordered_set");
        ask(&mut client, "ETS.NEW  counts");
        for (writer, acknowledged) in acknowledged.iter().enumerate() {
            let [one, other] = ["a", "b"].map(|half| number(&mut client, "t", half, writer));
            assert_eq!(one, other, "half of a list, after kill {kill}");
            let least = acknowledged.load(Ordering::Relaxed);
            assert!(
                one >= least,
                "kill {kill}: {least} was acknowledged, {one} is there"
            );
            let counted = number(&mut client, "counts", "c", writer);
            // A kill between the two commands leaves one without the other.
            assert!(counted + kill >= least, "kill {kill}: {counted} of {least}");
        }
        thread::scope(|scope| {
            for (writer, acknowledged) in acknowledged.iter().enumerate() {
                let mut client = server.connect();
                let begin = number(&mut client, "t", "a", writer);
                scope.spawn(move || write_until_killed(&mut client, writer, begin, acknowledged));
            }
            if kill % 3 == 1 {
                assert!(client.text("bgsave").starts_with("+Background"));
            }
            thread::sleep(Duration::from_millis(random.random_range(10..70)));
            server.signal("KILL");
            server.wait();
        });
    }
    let all = acknowledged.iter().map(|one| one.load(Ordering::Relaxed));
    let total: u64 = all.sum();
    assert!(total > 20, "{total} writes are too few to tell");
}

fn number(client: &mut Connection, table: &str, half: &str, writer: usize) -> u64 {
    let command = format!("ETS.LOOKUP_ELEMENT  {table}  {half}{writer}  2  0");
    ask(client, &command).parse().expect("a number")
}

fn write_until_killed(
    client: &mut Connection,
    writer: usize,
    begin: u64,
    acknowledged: &AtomicU64,
) {
    for number in begin + 1.. {
        let rows = format!("[{{a{writer}, {number}}}, {{b{writer}, {number}}}]");
        let (key, row) = (format!("c{writer}"), format!("{{c{writer}, 0}}"));
        let mut commands = encode(&["ets.insert", "t", &rows]);
        commands.extend(encode(&["ets.update_counter", "counts", &key, "1", &row]));
        client.send(&commands);
        for _ in 0..2 {
            match client.reply_or_end() {
                Some(reply) => assert_eq!(reply[0], b'$', "{}", reply.escape_ascii()),
                None => return,
            }
        }
        acknowledged.store(number, Ordering::Relaxed);
    }
}
