//! Keys of tables whose rows expire, over the socket: what the commands answer, when rows go, and
//! what a kill leaves.

mod support;

use std::thread;
use std::time::{Duration, SystemTime};
use support::Server;
use support::ets::{ask, await_answer, check};
use support::resp::Connection;

const TYPES: [&str; 4] = ["set", "ordered_set", "bag", "duplicate_bag"];

/// A moment in the far future, in milliseconds since 1970.
const FAR: &str = "4102444800000";

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.expect("after 1970").as_millis() as u64
}

/// Fails if a table of some type, of a server with a log or without, answers other than as the
/// commands of keys do, or a key that comes anew has an old time.
#[test]
fn times_belong_to_keys_and_go_with_their_rows() {
    let directory = tempfile::tempdir().expect("a directory");
    for server in [Server::tremula(&[]), Server::kept(directory.path(), &[])] {
        let mut client = server.connect();
        for kind in TYPES {
            assert_eq!(ask(&mut client, &format!("ETS.NEW  t  {kind}")), "t");
            check(
                &mut client,
                &[
                    ("ETS.TTL  t  1", ":-2"),
                    ("ETS.EXPIRE  t  1  100", ":0"),
                    ("ETS.PERSIST  t  1", ":0"),
                    ("ETS.INSERT  t  [{1, a}, {2, b}]", "true"),
                    ("ETS.TTL  t  1", ":-1"),
                    ("ETS.PTTL  t  1", ":-1"),
                    ("ETS.EXPIREAT  t  1  4102444800  xx", ":0"),
                    ("ETS.EXPIREAT  t  1  4102444800  GT", ":0"),
                    ("ETS.EXPIREAT  t  1  4102444800  NX", ":1"),
                    ("ETS.EXPIREAT  t  1  4102444801  NX", ":0"),
                    ("ETS.EXPIRETIME  t  1", ":4102444800"),
                    ("ETS.PEXPIRETIME  t  1", ":4102444800000"),
                    ("ETS.PEXPIREAT  t  1  4102444799999  GT", ":0"),
                    ("ETS.PEXPIREAT  t  1  4102444800001  LT", ":0"),
                    ("ETS.PEXPIREAT  t  1  4102444800001  gt  xx", ":1"),
                    ("ETS.PEXPIRETIME  t  1", ":4102444800001"),
                    // Other rows in its place, or beside it.
                    ("ETS.INSERT  t  {1, c}", "true"),
                    ("ETS.PEXPIRETIME  t  1", ":4102444800001"),
                    ("ETS.DELETE_OBJECT  t  {1, none}", "true"),
                    ("ETS.PEXPIRETIME  t  1", ":4102444800001"),
                    ("ETS.RENAME  t  other", "other"),
                    ("ETS.PEXPIRETIME  other  1", ":4102444800001"),
                    ("ETS.RENAME  other  t", "t"),
                    ("ETS.PERSIST  t  1", ":1"),
                    ("ETS.PERSIST  t  1", ":0"),
                    ("ETS.PEXPIRETIME  t  1", ":-1"),
                ],
            );
            for ends in [
                "ETS.DELETE  t  1",
                "ETS.TAKE  t  1",
                "ETS.MATCH_DELETE  t  {1, '_'}",
                "ETS.SELECT_DELETE  t  [{{'$1', '_'}, [{'<', '$1', 2}], [true]}]",
                "ETS.DELETE_ALL_OBJECTS  t",
                "ETS.INIT_TABLE  t  {2, b}",
                "ETS.EXPIRE  t  1  -1",
                "ETS.PEXPIREAT  t  1  1",
            ] {
                assert_eq!(
                    ask(&mut client, &format!("ETS.PEXPIREAT  t  1  {FAR}")),
                    ":1",
                    "before {ends}"
                );
                ask(&mut client, ends);
                check(
                    &mut client,
                    &[
                        ("ETS.LOOKUP  t  1", "[]"),
                        ("ETS.TTL  t  1", ":-2"),
                        ("ETS.INSERT  t  {1, a}", "true"),
                        ("ETS.TTL  t  1", ":-1"),
                    ],
                );
            }
            check(
                &mut client,
                &[
                    ("ETS.DELETE_OBJECT  t  {1, a}", "true"),
                    ("ETS.INSERT  t  {1, a}", "true"),
                    ("ETS.EXPIRE  t  1  1000", ":1"),
                    ("ETS.DELETE_OBJECT  t  {1, a}", "true"),
                    ("ETS.TTL  t  1", ":-2"),
                    ("ETS.DELETE  t", "true"),
                ],
            );
        }
        // Keys are compared as the table does.
        check(
            &mut client,
            &[
                ("ETS.NEW  o  ordered_set", "o"),
                ("ETS.NEW  s  set", "s"),
                ("ETS.INSERT  o  {1, a}", "true"),
                ("ETS.INSERT  s  {1, a}", "true"),
                ("ETS.EXPIREAT  o  1.0  4102444800", ":1"),
                ("ETS.EXPIREAT  s  1.0  4102444800", ":0"),
                ("ETS.EXPIRETIME  o  1", ":4102444800"),
                ("ETS.DELETE  o  1.0", "true"),
                ("ETS.TTL  o  1", ":-2"),
            ],
        );
        let left = ask(&mut client, "ETS.EXPIRE  s  1  100");
        assert_eq!(left, ":1");
        let left: u64 = ask(&mut client, "ETS.PTTL  s  1")[1..]
            .parse()
            .expect("time");
        assert!((1..=100_000).contains(&left), "{left}");
        let quotas = client.info("quotas");
        assert_eq!(quotas["expiring_table_keys"], "1");
    }
}

#[test]
fn what_is_wrong_is_named() {
    let server = Server::tremula(&[]);
    let (mut client, mut other) = (server.connect(), server.connect());
    check(
        &mut client,
        &[
            ("ETS.NEW  t", "t"),
            ("ETS.INSERT  t  {1, a}", "true"),
            (
                "ETS.EXPIRE  t  1",
                "-ERR wrong number of arguments for 'ets.expire' command",
            ),
            (
                "ETS.TTL  t",
                "-ERR wrong number of arguments for 'ets.ttl' command",
            ),
            (
                "ETS.EXPIRE  t  1  soon",
                "-ERR value is not an integer or out of range",
            ),
            (
                "ETS.EXPIRE  t  1  1.5",
                "-ERR value is not an integer or out of range",
            ),
            (
                "ETS.EXPIRE  t  1  9223372036854775807",
                "-ERR invalid expire time in 'ets.expire' command",
            ),
            (
                "ETS.PEXPIRE  t  1  9223372036854775807",
                "-ERR invalid expire time in 'ets.pexpire' command",
            ),
            (
                "ETS.EXPIRE  t  1  10  never",
                "-ERR Unsupported option never",
            ),
            (
                "ETS.EXPIRE  t  1  10  NX  XX",
                "-ERR NX and XX, GT or LT options at the same time are not compatible",
            ),
            (
                "ETS.EXPIRE  t  1  10  GT  LT",
                "-ERR GT and LT options at the same time are not compatible",
            ),
            ("ETS.TTL  t  1", ":-1"),
            ("ETS.NEW  shown  protected", "shown"),
            ("ETS.NEW  hidden  private", "hidden"),
            ("ETS.INSERT  shown  {1, a}", "true"),
            ("ETS.INSERT  hidden  {1, a}", "true"),
            ("ETS.EXPIRE  shown  1  1000", ":1"),
        ],
    );
    assert_ne!(ask(&mut other, "ETS.TTL  shown  1"), ":-1");
    for (command, begin) in [
        ("ETS.EXPIRE  none  1  10", "-BADARG expire, argument 1: "),
        ("ETS.TTL  none  1", "-BADARG ttl, argument 1: "),
        ("ETS.EXPIRE  t  {1  10", "-BADARG expire, argument 2: "),
        ("ETS.EXPIRE  shown  1  10", "-BADARG expire, argument 1: "),
        ("ETS.PERSIST  shown  1", "-BADARG expire, argument 1: "),
        ("ETS.EXPIRE  hidden  1  10", "-BADARG expire, argument 1: "),
        ("ETS.TTL  hidden  1", "-BADARG ttl, argument 1: "),
    ] {
        let answer = ask(&mut other, command);
        assert!(answer.starts_with(begin), "{command}: {answer}");
    }
    assert_eq!(other.text("multi"), "+OK\r\n");
    assert_eq!(
        ask(&mut other, "ETS.EXPIRE  t  1  10"),
        "-ERR Command not allowed inside a transaction: 'ets.expire', because rows of tables are \
         not held together with keys"
    );
}

/// Fails if a row goes before its time, by the clock that server and test share, or never.
#[test]
fn rows_go_when_their_time_has_come_and_not_before() {
    let server = Server::tremula(&[]);
    let mut client = server.connect();
    // Of a table that nobody but this connection may use, too.
    for (table, options) in [("t", "bag"), ("mine", "[ordered_set, private]")] {
        assert_eq!(
            ask(&mut client, &format!("ETS.NEW  {table}  {options}")),
            table
        );
        let at = now() + 120;
        for key in 0..50 {
            let rows = format!("[{{{key}, a}}, {{{key}, b}}]");
            ask(&mut client, &format!("ETS.INSERT  {table}  {rows}"));
            let time = at + key * 3;
            let set = format!("ETS.PEXPIREAT  {table}  {key}  {time}");
            assert_eq!(ask(&mut client, &set), ":1");
        }
        assert_eq!(
            ask(&mut client, &format!("ETS.INSERT  {table}  {{stays, a}}")),
            "true"
        );
        for key in 0..50 {
            let (time, look) = (at + key * 3, format!("ETS.MEMBER  {table}  {key}"));
            await_answer(&mut client, &look, "false");
            assert!(now() >= time, "key {key} went before {time}");
        }
        check(
            &mut client,
            &[(&format!("ETS.TAB2LIST  {table}"), "[{stays,a}]")],
        );
    }
    assert_eq!(client.info("stats")["expired_table_keys"], "100");
    assert_eq!(client.info("stats")["expired_keys"], "0");
    assert_eq!(client.info("quotas")["expiring_table_keys"], "0");
}

/// What a client sees of keys 0 to 7 and their times.
fn seen(client: &mut Connection) -> Vec<String> {
    let mut all = Vec::new();
    for kind in TYPES {
        for key in 0..8 {
            all.push(ask(client, &format!("ETS.LOOKUP  {kind}  {key}")));
            all.push(ask(client, &format!("ETS.PEXPIRETIME  {kind}  {key}")));
        }
    }
    all
}

/// Fails if a kill or an end loses a time, brings one back, or brings back rows that had expired;
/// or if what expires while no server runs stays.
#[test]
fn times_are_there_after_kills_with_a_snapshot_and_without() {
    let directory = tempfile::tempdir().expect("a directory");
    for round in 0..4 {
        let mut server = Server::kept(directory.path(), &["--durability", "always"]);
        let mut client = server.connect();
        for kind in TYPES {
            ask(&mut client, &format!("ETS.NEW  {kind}  {kind}"));
            let rows: Vec<_> = (0..8).map(|key| format!("{{{key}, {round}}}")).collect();
            let call = |client: &mut Connection, command: &str, expected: &str| {
                assert_eq!(ask(client, command), expected, "{command}, round {round}");
            };
            let rows = rows.join(",");
            call(
                &mut client,
                &format!("ETS.INIT_TABLE  {kind}  [{rows}]"),
                "true",
            );
            for key in 0..7 {
                let time = 4_102_444_800_000_u64 + round * 10 + key;
                let set = format!("ETS.PEXPIREAT  {kind}  {key}  {time}");
                call(&mut client, &set, ":1");
            }
            if round % 2 == 1 {
                assert_eq!(client.text("save"), "+OK\r\n");
            }
            call(&mut client, &format!("ETS.PERSIST  {kind}  1"), ":1");
            call(&mut client, &format!("ETS.DELETE  {kind}  2"), "true");
            call(&mut client, &format!("ETS.DELETE  {kind}  3"), "true");
            call(
                &mut client,
                &format!("ETS.INSERT  {kind}  {{3, new}}"),
                "true",
            );
            call(&mut client, &format!("ETS.PEXPIRE  {kind}  4  0"), ":1");
            let soon = now() + 5;
            call(
                &mut client,
                &format!("ETS.PEXPIREAT  {kind}  5  {soon}"),
                ":1",
            );
            await_answer(&mut client, &format!("ETS.MEMBER  {kind}  5"), "false");
        }
        let before = seen(&mut client);
        // One that is about to go: it does, with the server or without.
        let soon = now() + 30;
        for kind in TYPES {
            let set = format!("ETS.PEXPIREAT  {kind}  6  {soon}");
            assert_eq!(ask(&mut client, &set), ":1");
        }
        server.signal(if round < 2 { "KILL" } else { "TERM" });
        server.wait();
        thread::sleep(Duration::from_millis(soon.saturating_sub(now())));
        let server = Server::kept(directory.path(), &[]);
        let mut client = server.connect();
        for kind in TYPES {
            await_answer(&mut client, &format!("ETS.LOOKUP  {kind}  6"), "[]");
        }
        let mut expected = before;
        for kind in 0..TYPES.len() {
            expected[kind * 16 + 12] = "[]".to_owned();
            expected[kind * 16 + 13] = ":-2".to_owned();
        }
        assert_eq!(seen(&mut client), expected, "round {round}");
        assert!(expected.iter().filter(|one| one.len() > 10).count() >= 4);
    }
}
