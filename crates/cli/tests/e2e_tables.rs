//! Tables over the server: every function of `ets`, both formats of terms, and refused calls.

mod support;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use support::Server;
use support::ets::{ask, check};
use support::resp::{Connection, bulk, elements, encode};

#[test]
fn rows_are_kept_by_their_keys() {
    let server = Server::tremula(&[]);
    let mut client = server.connect();
    check(
        &mut client,
        &[
            ("ETS.NEW  t  ordered_set  [{keypos, 1}]", "t"),
            ("ETS.INSERT  t  {42, \"A value\"}", "true"),
            ("ETS.LOOKUP  t  42", "[{42,\"A value\"}]"),
            ("ETS.INSERT  t  [{1, one}, {2, two}]", "true"),
            ("ETS.INSERT_NEW  t  {1, other}", "false"),
            ("ETS.INSERT_NEW  t  [{3, three, 3}, {4, 4}]", "true"),
            ("ETS.LOOKUP_ELEMENT  t  1  2", "one"),
            ("ETS.LOOKUP_ELEMENT  t  9  2  none", "none"),
            ("ETS.MEMBER  t  3", "true"),
            ("ETS.MEMBER  t  5", "false"),
            ("ETS.UPDATE_COUNTER  t  4  10", "14"),
            ("ETS.UPDATE_COUNTER  t  5  {2, 1}  {0, 7}", "8"),
            ("ETS.UPDATE_ELEMENT  t  3  {2, drei}", "true"),
            ("ETS.UPDATE_ELEMENT  t  6  {2, six}  {0, 0}", "true"),
            ("ETS.UPDATE_ELEMENT  t  77  {2, x}", "false"),
            ("ETS.FIRST  t", "1"),
            ("ETS.LAST  t", "42"),
            ("ETS.NEXT  t  6", "42"),
            ("ETS.NEXT  t  42", "'$end_of_table'"),
            ("ETS.PREV  t  2.5", "2"),
            ("ETS.FIRST_LOOKUP  t", "{1,[{1,one}]}"),
            ("ETS.LAST_LOOKUP  t", "{42,[{42,\"A value\"}]}"),
            ("ETS.NEXT_LOOKUP  t  5", "{6,[{6,six}]}"),
            ("ETS.PREV_LOOKUP  t  2", "{1,[{1,one}]}"),
            ("ETS.TAKE  t  42", "[{42,\"A value\"}]"),
            ("ETS.TAKE  t  42", "[]"),
            ("ETS.DELETE  t  1", "true"),
            ("ETS.DELETE_OBJECT  t  {2, no}", "true"),
            ("ETS.DELETE_OBJECT  t  {5, 8}", "true"),
            ("ETS.TAB2LIST  t", "[{2,two},{3,drei,3},{4,14},{6,six}]"),
            ("ETS.INIT_TABLE  t  {a, 1}  [{b, 2}, {c, 3}]", "true"),
            ("ETS.TAB2LIST  t", "[{a,1},{b,2},{c,3}]"),
            ("ETS.DELETE_ALL_OBJECTS  t", "true"),
            ("ETS.TAB2LIST  t", "[]"),
        ],
    );
}

#[test]
fn tables_are_made_named_told_about_and_deleted() {
    let server = Server::tremula(&[]);
    let (mut client, mut other) = (server.connect(), server.connect());
    check(
        &mut client,
        &[
            ("ETS.NEW  t  bag", "t"),
            ("ETS.INSERT  t  [{a, 1}, {a, 2}]", "true"),
            ("ETS.INFO  t  size", "2"),
            ("ETS.INFO  t  type", "bag"),
            ("ETS.INFO  t  protection", "public"),
            ("ETS.INFO  nobody", "undefined"),
            ("ETS.WHEREIS  nobody", "undefined"),
            ("ETS.SAFE_FIXTABLE  t  true", "true"),
            ("ETS.INFO  t  fixed", "true"),
            ("ETS.SAFE_FIXTABLE  t  false", "true"),
            (
                "ETS.NEW  'Other Name'  [set, {write_concurrency, auto}]",
                "'Other Name'",
            ),
            ("ETS.ALL", "[t,'Other Name']"),
            ("ETS.RENAME  t  u", "u"),
            ("ETS.ALL", "[u,'Other Name']"),
        ],
    );
    assert!(ask(&mut client, "ETS.INFO  u").contains("{keypos,1}"));
    let long = "x".repeat(100);
    ask(
        &mut client,
        &format!("ETS.INSERT  u  {{b, <<\"{long}\">>}}"),
    );
    let binaries = ask(&mut client, "ETS.INFO  u  binary");
    assert!(binaries.starts_with("[{0,100,"), "{binaries}");
    let stats = ask(&mut client, "ETS.INFO  u  stats");
    assert!(stats.starts_with("{{<<\""), "{stats}");
    let identifier = ask(&mut client, "ETS.WHEREIS  u");
    let rows = ask(&mut other, &format!("ETS.LOOKUP  {identifier}  a"));
    assert_eq!(rows, "[{a,1},{a,2}]");
    assert_eq!(ask(&mut other, "ETS.DELETE  u"), "true");
    assert_eq!(ask(&mut client, "ETS.ALL"), "['Other Name']");
}

#[test]
fn match_specifications_and_patterns_pick_rows() {
    let server = Server::tremula(&[]);
    let mut client = server.connect();
    let above = "[{{'$1', '$2'}, [{'>', '$2', 1}], ['$1']}]";
    let is_small = "[{{'_', '$1'}, [{'<', '$1', 2}], [true]}]";
    let twice = "[{{'$1', '$2'}, [], [{{'$1', {'*', 2, '$2'}}}]}]";
    check(
        &mut client,
        &[
            ("ETS.NEW  t  ordered_set", "t"),
            ("ETS.INSERT  t  [{a, 1}, {b, 2}, {c, 3}]", "true"),
            (&format!("ETS.SELECT  t  {above}"), "[b,c]"),
            (&format!("ETS.SELECT_REVERSE  t  {above}"), "[c,b]"),
            (&format!("ETS.SELECT_COUNT  t  {is_small}"), "1"),
            ("ETS.MATCH  t  {'$2', '$1'}", "[[1,a],[2,b],[3,c]]"),
            ("ETS.MATCH_OBJECT  t  {'_', 2}", "[{b,2}]"),
            (&format!("ETS.SELECT_REPLACE  t  {twice}"), "3"),
            ("ETS.MATCH_DELETE  t  {b, '_'}", "true"),
            ("ETS.TAB2LIST  t", "[{a,2},{c,6}]"),
            (&format!("ETS.SELECT_DELETE  t  {above}"), "0"),
            ("ETS.SELECT_DELETE  t  [{{a, '_'}, [], [true]}]", "1"),
            (
                &format!("ETS.MATCH_SPEC_RUN  [{{x, 1}}, {{y, 2}}]  {above}"),
                "[y]",
            ),
            (&format!("ETS.TEST_MS  {{x, 7}}  {above}"), "{ok,x}"),
            (&format!("ETS.TEST_MS  {{x, 0}}  {above}"), "{ok,false}"),
            // A term that is not a row is not an error.
            (&format!("ETS.TEST_MS  #{{a => 1}}  {above}"), "{ok,false}"),
            ("ETS.TEST_MS  [1]  [{['$1'], [], ['$1']}]", "{ok,1}"),
            (
                "ETS.TEST_MS  {1}  [{{'_'}, [{foo}], [true]}]",
                "{error,[{error,\"clause 1, guard 1: there is no function foo/0, in {foo}\"}]}",
            ),
            (
                "ETS.MATCH_SPEC_RUN  [1, {2}]  [{'$1', [], ['$1']}]",
                "[1,{2}]",
            ),
            (
                "ETS.MATCH_SPEC_RUN  [1 | x]  [{'$1', [], ['$1']}]",
                "-BADARG match_spec_run, argument 1: [1|x] is no proper list",
            ),
        ],
    );
    // `{self}` is the connection.
    let me = ask(&mut client, "ETS.TEST_MS  {x}  [{{x}, [], [{self}]}]");
    assert!(me.starts_with("{ok,#Pid<"), "{me}");
}

/// The rows that a chunk found, and its continuation.
fn split(chunk: &str) -> (&str, &str) {
    let inside = chunk
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    let (found, rest) = inside
        .and_then(|inside| inside.split_once("],"))
        .expect("a chunk");
    (found, rest)
}

#[test]
fn chunks_go_on_on_any_connection_whatever_happened_meanwhile() {
    let server = Server::tremula(&[]);
    let (mut client, mut other) = (server.connect(), server.connect());
    ask(&mut client, "ETS.NEW  t  ordered_set");
    ask(&mut client, "ETS.INSERT  t  [{1}, {2}, {3}, {4}, {5}]");
    for (command, found) in [
        (
            "ETS.SELECT  t  [{{'$1'}, [], ['$1']}]",
            ["[1,2", "[3,4", "[5"],
        ),
        (
            "ETS.SELECT_REVERSE  t  [{{'$1'}, [], ['$1']}]",
            ["[5,4", "[3,2", "[1"],
        ),
        ("ETS.MATCH  t  {'$1'}", ["[[1],[2", "[[3],[4", "[[5"]),
        (
            "ETS.MATCH_OBJECT  t  {'_'}",
            ["[{1},{2}", "[{3},{4}", "[{5}"],
        ),
    ] {
        let name = command.split("  ").next().unwrap();
        let first = ask(&mut client, &format!("{command}  2"));
        let found_in = |chunk: &str, index: usize| {
            let (there, rest) = split_lists(chunk);
            assert_eq!(there, found[index], "{command}: {chunk}");
            rest
        };
        let rest = found_in(&first, 0);
        let second = ask(&mut other, &format!("{name}  {rest}"));
        let rest = found_in(&second, 1);
        let third = ask(&mut client, &format!("{name}  {rest}"));
        assert_eq!(found_in(&third, 2), "'$end_of_table'");
        assert_eq!(
            ask(&mut client, &format!("{name}  '$end_of_table'")),
            "'$end_of_table'"
        );
    }
    let first = ask(&mut client, "ETS.SELECT  t  [{{'$1'}, [], ['$1']}]  2");
    let (_, rest) = split(&first);
    ask(&mut client, "ETS.DELETE  t  2");
    let negated = "[{{'$1'}, [], [{'-', '$1'}]}]";
    let repaired = ask(
        &mut client,
        &format!("ETS.REPAIR_CONTINUATION  {rest}  {negated}"),
    );
    let second = ask(&mut client, &format!("ETS.SELECT  {repaired}"));
    assert_eq!(split(&second).0, "[-3,-4");
    let error = ask(&mut client, "ETS.SELECT  {1, 2}");
    assert_eq!(
        error,
        "-BADARG select, argument 1: {1,2} is no continuation"
    );
}

/// Like [`split`], also for lists of lists.
fn split_lists(chunk: &str) -> (&str, String) {
    let end = chunk
        .find("],{{#Ref")
        .or_else(|| chunk.find("],'$end_of_table'}"))
        .expect("a continuation");
    let rest = chunk[end + 2..].strip_suffix('}').expect("a tuple");
    let found = chunk[1..end].trim_end_matches(']');
    (found, rest.to_owned())
}

#[test]
fn the_external_format_goes_both_ways() {
    let server = Server::tremula(&[]);
    let (mut client, mut other) = (server.connect(), server.connect());
    ask(&mut client, "ETS.NEW  t");
    // {7, []}
    let row = [131, 104, 2, 97, 7, 106];
    assert_eq!(
        client.call(&[&b"ETS.INSERT"[..], b"t", &row]),
        b"$4\r\ntrue\r\n"
    );
    assert_eq!(ask(&mut client, "ETS.LOOKUP  t  7"), "[{7,[]}]");
    assert_eq!(ask(&mut client, "ETS.FORMAT  etf"), "+OK");
    // [{7, []}]
    let rows = [131, 108, 0, 0, 0, 1, 104, 2, 97, 7, 106, 106];
    assert_eq!(
        bulk(&client.call(&[&b"ETS.LOOKUP"[..], b"t", &[131, 97, 7]])),
        rows
    );
    assert_eq!(bulk(&client.call(&["ETS.LOOKUP", "t", "7"])), rows);
    // The format belongs to the connection.
    assert_eq!(ask(&mut other, "ETS.LOOKUP  t  7"), "[{7,[]}]");
    assert_eq!(ask(&mut client, "ETS.FORMAT  text"), "+OK");
    assert_eq!(ask(&mut client, "ETS.LOOKUP  t  7"), "[{7,[]}]");
    ask(&mut client, "ETS.FORMAT  etf");
    assert_eq!(ask(&mut client, "RESET"), "+RESET");
    assert_eq!(ask(&mut client, "ETS.LOOKUP  t  7"), "[{7,[]}]");
    assert_eq!(
        ask(&mut client, "ETS.FORMAT  json"),
        "-ERR there is no format 'json'; there are text and etf"
    );
    let error = String::from_utf8(client.call(&[&b"ETS.INSERT"[..], b"t", &row[..4]])).unwrap();
    assert_eq!(
        error,
        "-BADARG insert, argument 2: byte 4: the bytes end here; at least 1 more are needed\r\n"
    );
}

#[test]
fn what_is_wrong_is_told_and_the_connection_goes_on() {
    let server = Server::tremula(&[]);
    let mut client = server.connect();
    check(
        &mut client,
        &[
            ("ETS.NEW  t", "t"),
            (
                "ETS.NEW  t",
                "-BADARG new, argument 1: there is a table named t already",
            ),
            (
                "ETS.NEW  1",
                "-BADARG new, argument 1: 1 is no atom, which a name has to be",
            ),
            (
                "ETS.NEW  u  quick",
                "-BADARG new, argument 2: quick is no option; for the options see the documentation of Options",
            ),
            (
                "ETS.NEW  u  {heir, nobody, x}",
                "-BADARG new, argument 2: nobody is not the name of a mailbox; MAILBOX.NEW makes one",
            ),
            (
                "ETS.LOOKUP  nobody  1",
                "-BADARG lookup, argument 1: there is no such table",
            ),
            (
                "ETS.INSERT  t  {a, B}",
                "-BADARG insert, argument 2: byte 4: B is a variable; a term has none",
            ),
            (
                "ETS.INSERT  t  7",
                "-BADARG insert, argument 2: 7 is neither a row (a tuple with a key) nor a proper list of rows",
            ),
            (
                "ETS.LOOKUP_ELEMENT  t  1  0",
                "-BADARG lookup_element, argument 3: 0 is not a position in the row",
            ),
            (
                "ETS.SAFE_FIXTABLE  t  sometimes",
                "-BADARG safe_fixtable, argument 2: sometimes is neither true nor false",
            ),
            (
                "ETS.SELECT  t  []  0",
                "-BADARG select, argument 2: a match specification has one clause or more, in []",
            ),
            (
                "ETS.SELECT  t  [{'_', [], ['$_']}]  0",
                "-BADARG select, argument 3: 0 is no limit: it has to be a positive integer below 2^59",
            ),
            (
                "ETS.MATCH  t  {'_'}  576460752303423488",
                "-BADARG match, argument 3: 576460752303423488 is no limit: it has to be a positive integer below 2^59",
            ),
            (
                "ETS.RENAME  t  t",
                "-BADARG rename, argument 2: there is a table named t already",
            ),
            (
                "ETS.INFO  t  nothing",
                "-BADARG info, argument 2: nothing is no item of info",
            ),
            (
                "ETS.INFO  1  size",
                "-BADARG info, argument 1: there is no such table",
            ),
            (
                "ETS.SETOPTS  t  {protection, private}",
                "-BADARG setopts, argument 1: the caller is not the owner of the table",
            ),
            (
                "ETS.LOOKUP  t",
                "-ERR wrong number of arguments for 'ets.lookup' command",
            ),
            (
                "ETS.DELETE  t  1  2",
                "-ERR wrong number of arguments for 'ets.delete' command",
            ),
            (
                "ETS.TAB2FILE  t  \"x\"",
                "-ERR this server keeps no files of tables; --table-directory names a directory for them",
            ),
        ],
    );
    let deep = "[".repeat(1_000_000);
    let error = ask(&mut client, &format!("ETS.INSERT  t  {deep}"));
    assert!(
        error.starts_with("-BADARG insert, argument 2: byte "),
        "{error}"
    );
    let long = format!("ETS.INSERT  t  \"{}\"", "x".repeat(1_000_000));
    let error = ask(&mut client, &long);
    assert!(
        error.starts_with("-BADARG insert") && error.len() < 2_000,
        "{}",
        error.len()
    );
    assert_eq!(ask(&mut client, "ETS.INSERT  t  {1}"), "true");
}

#[test]
fn a_reply_that_is_too_long_is_an_error_and_the_connection_goes_on() {
    let server = Server::tremula(&["--max-output-buffer", "4kb"]);
    let mut client = server.connect();
    ask(&mut client, "ETS.NEW  t  ordered_set");
    for key in 0..600 {
        ask(&mut client, &format!("ETS.INSERT  t  {{{key}, value}}"));
    }
    for format in ["text", "etf"] {
        ask(&mut client, &format!("ETS.FORMAT  {format}"));
        let error = ask(&mut client, "ETS.TAB2LIST  t");
        assert!(error.starts_with("-ERR the term exceeds"), "{error}");
    }
    ask(&mut client, "ETS.FORMAT  text");
    assert_eq!(ask(&mut client, "ETS.LOOKUP  t  5"), "[{5,value}]");
}

#[test]
fn a_pipeline_of_long_commands_is_answered_in_order() {
    let server = Server::tremula(&[]);
    let mut client = server.connect();
    ask(&mut client, "ETS.NEW  t");
    let mut pipeline = Vec::new();
    for number in 0..100 {
        pipeline.extend(encode(&["ETS.INSERT", "t", &format!("{{key, {number}}}")]));
        pipeline.extend(encode(&["ETS.TAB2LIST", "t"]));
    }
    client.send(&pipeline);
    for number in 0..100 {
        assert_eq!(bulk(&client.reply().expect("a reply")), b"true");
        let rows = bulk(&client.reply().expect("a reply"));
        assert_eq!(rows, format!("[{{key,{number}}}]").as_bytes());
    }
}

/// The commands of tables, as `COMMAND` lists them.
fn table_commands(client: &mut Connection) -> Vec<String> {
    let all = client.call(&["COMMAND"]);
    let names = elements(&all).into_iter().map(|command| {
        let name = elements(&command).remove(0);
        String::from_utf8(bulk(&name)).expect("text")
    });
    names.filter(|name| name.starts_with("ets.")).collect()
}

#[test]
fn every_command_of_tables_is_listed_and_tried_here() {
    let server = Server::tremula(&[]);
    let commands = table_commands(&mut server.connect());
    assert_eq!(commands.len(), 53);
    for name in commands {
        let called = format!("{} ", name.to_ascii_uppercase());
        let alone = format!("\"{}\"", name.to_ascii_uppercase());
        let sources = [
            include_str!("e2e_tables.rs"),
            include_str!("e2e_table_owners.rs"),
            include_str!("e2e_table_expiry.rs"),
        ];
        let is_tried = |source: &str| source.contains(&called) || source.contains(&alone);
        assert!(sources.into_iter().any(is_tried), "{name}");
    }
}

/// Calls every command with arguments of all kinds, most of them wrong and some damaged. Each call
/// must return a term, a number or an error, and the connection must go on.
#[test]
fn no_arguments_bring_a_connection_down() {
    const CALLS: usize = 400;
    const SEED: u64 = 4_711;
    let parts: [&[u8]; 22] = [
        b"t",
        b"u",
        b"q",
        b"ordered_set",
        b"{heir, q, x}",
        b"private",
        b"1",
        b"-1",
        b"1.0e308",
        b"123456789012345678901234567890",
        b"{1, 2}",
        b"[{1, 2}, {b, 3, [x|y]}]",
        b"[{'$1', [], ['$_']}]",
        b"[{{'$1', '$2'}, [{'>', '$2', 1}], [{{'$1', {'*', '$2', '$2'}}}]}]",
        b"{'$1', '_'}",
        b"{{#Ref<nonode@nohost.0.1.0.0>,false,2,{1},[]},0,[{'$1',[],['$_']}]}",
        b"{2, 9223372036854775807}",
        b"[{2, 1, 5, 0}, {2, -1}]",
        b"#{a => <<1:3>>}",
        b"'$end_of_table'",
        &[131, 104, 2, 97, 7, 106],
        &[131, 80, 0, 0, 0, 255, 120],
    ];
    let server = Server::tremula(&[]);
    let (mut client, mut random) = (server.connect(), StdRng::seed_from_u64(SEED));
    let commands = table_commands(&mut client);
    ask(&mut client, "MAILBOX.NEW  q");
    let mut values = 0;
    for call in 0..CALLS {
        for command in &commands {
            for table in ["t", "u"] {
                let kind = ["set", "ordered_set", "bag"][call % 3];
                client.call(&["ETS.NEW", table, kind]);
            }
            let mut arguments = vec![command.clone().into_bytes()];
            for index in 0..random.random_range(0..5) {
                let mut part = match index {
                    0 if random.random_bool(0.7) => b"t".to_vec(),
                    _ => parts[random.random_range(0..parts.len())].to_vec(),
                };
                if random.random_bool(0.1) {
                    let at = random.random_range(0..part.len());
                    part[at] = random.random();
                }
                arguments.push(part);
            }
            let reply = client.call(&arguments);
            let shown = || (SEED, call, reply.escape_ascii().to_string());
            assert!(b"$+-:".contains(&reply[0]), "{arguments:?}: {:?}", shown());
            values += usize::from(reply[0] == b'$');
        }
    }
    assert!(values > CALLS, "only {values} calls were right");
    assert_eq!(client.text("PING"), "+PONG\r\n");
}
