//! TXN: commands that run by conditions.

mod support;

use support::Server;
use support::resp::Connection;

/// Conditions of every kind, with what runs if they hold, and if not.
#[test]
fn commands_run_by_condition() {
    let server = Server::tremula(&["--threads", "1"]);
    let mut client = server.connect();
    for (line, reply) in [
        (
            "txn if absent a then 3 set a 1",
            "*2\r\n:1\r\n*1\r\n+OK\r\n",
        ),
        ("txn if absent a then 3 set a 2", "*2\r\n:0\r\n*0\r\n"),
        (
            "txn if absent a then 3 set a 2 else 2 get a 2 incr a",
            "*2\r\n:0\r\n*2\r\n$1\r\n1\r\n:2\r\n",
        ),
        (
            "TXN IF PRESENT a VALUE a 2 THEN 2 GET a ELSE 2 DEL a",
            "*2\r\n:1\r\n*1\r\n$1\r\n2\r\n",
        ),
        (
            "txn if present a value a 3 then 2 del a",
            "*2\r\n:0\r\n*0\r\n",
        ),
        ("txn if value nope x then 2 get a", "*2\r\n:0\r\n*0\r\n"),
        (
            "txn if empty [b (c then 3 set b1 x",
            "*2\r\n:1\r\n*1\r\n+OK\r\n",
        ),
        ("txn if empty [b (c then 3 set b2 x", "*2\r\n:0\r\n*0\r\n"),
        (
            "txn if empty (c [b then 2 get a",
            "*2\r\n:1\r\n*1\r\n$1\r\n2\r\n",
        ),
        (
            "txn if version nope 0 then 2 get a",
            "*2\r\n:1\r\n*1\r\n$1\r\n2\r\n",
        ),
        ("txn if version a 0 then 2 get a", "*2\r\n:0\r\n*0\r\n"),
        ("txn then 2 get a", "*2\r\n:1\r\n*1\r\n$1\r\n2\r\n"),
        (
            "txn then 2 incr b1 2 incr a",
            "*2\r\n:1\r\n*2\r\n-ERR value is not an integer or out of range\r\n:3\r\n",
        ),
        ("txn if then else", "*2\r\n:1\r\n*0\r\n"),
        ("txn get a x", "-ERR TXN: THEN expected, not 'get'\r\n"),
        ("txn if absent a", "-ERR TXN: THEN expected at the end\r\n"),
        (
            "txn if absent",
            "-ERR wrong number of arguments for 'txn' command\r\n",
        ),
        (
            "txn if present a value a",
            "-ERR TXN: a condition ends early, with 'a'\r\n",
        ),
        (
            "txn if nope a then",
            "-ERR TXN: VALUE, VERSION, PRESENT, ABSENT, EMPTY or THEN expected, not 'nope'\r\n",
        ),
        ("txn if version a x then", "-ERR TXN: no version is 'x'\r\n"),
        (
            "txn if version a -1 then",
            "-ERR TXN: no version is '-1'\r\n",
        ),
        (
            "txn if version a 281474976710656 then",
            "-ERR TXN: no version is '281474976710656'\r\n",
        ),
        (
            "txn if empty b c then",
            "-ERR min or max not valid string range item\r\n",
        ),
        (
            "txn then 3 get a",
            "-ERR TXN: the number of words of a command, 1 to 2, expected, not '3'\r\n",
        ),
        (
            "txn then get a",
            "-ERR TXN: the number of words of a command, 1 to 1, expected, not 'get'\r\n",
        ),
        (
            "txn then 1 nosuch",
            "-ERR unknown command 'nosuch', with args beginning with: \r\n",
        ),
        (
            "txn then 1 get",
            "-ERR wrong number of arguments for 'get' command\r\n",
        ),
        (
            "txn then 2 get a else 2 ets.new t",
            "-ERR Command not allowed inside a transaction: 'ets.new', because rows of tables are \
             not held together with keys\r\n",
        ),
        (
            "txn then 2 get a else 2 get a else 2 get a",
            "-ERR TXN: the number of words of a command, or ELSE expected, not 'else'\r\n",
        ),
        ("get a", "$1\r\n3\r\n"),
        ("select 1", "+OK\r\n"),
        (
            "txn if absent a then 2 select 0 2 get a",
            "*2\r\n:1\r\n*2\r\n+OK\r\n$1\r\n3\r\n",
        ),
    ] {
        assert_eq!(client.text(line), reply, "{line}");
    }
    // By version: what somebody else has changed meanwhile is not overwritten.
    client.text("select 0");
    let version = |client: &mut Connection| {
        let reply = client.text("getv a");
        let number = reply
            .rsplit(':')
            .next()
            .expect("a number")
            .trim()
            .to_owned();
        number.parse::<u64>().expect("a version")
    };
    let first = version(&mut client);
    let line = |version| format!("txn if version a {version} then 3 set a x else 2 get a");
    assert_eq!(client.text(&line(first)), "*2\r\n:1\r\n*1\r\n+OK\r\n");
    assert_eq!(client.text(&line(first)), "*2\r\n:0\r\n*1\r\n$1\r\nx\r\n");
    let second = version(&mut client);
    client.text("set a x");
    assert_ne!(version(&mut client), second);
    // A user needs the keys of the conditions, too.
    client.text("acl setuser u on >p ~a* +@all");
    client.text("auth u p");
    for (line, is_denied) in [
        ("txn if absent b then 2 get a", true),
        ("txn if empty [a (c then 2 get a", true),
        ("txn if empty [a (b then 2 get a", false),
        ("txn if present a then 2 get b", true),
        ("txn if present a then 2 get a else 2 get b", true),
        ("txn if present a then 2 get a", false),
    ] {
        assert_eq!(
            client.text(line).starts_with("-NOPERM"),
            is_denied,
            "{line}"
        );
    }
}
