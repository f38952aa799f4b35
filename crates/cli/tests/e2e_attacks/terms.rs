//! Terms that grow, atoms without end, and searches that take long.

use crate::support::Server;
use crate::support::ets::{ask, check};
use crate::support::has_answer;
use crate::support::resp::{Connection, encode};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::Write;

/// Replaces the value of each row by a tuple that has it twice.
const DOUBLE: &str = "[{{'$1','$2'},[],[{{'$1',{{'$2','$2'}}}}]}]";

/// Makes one row `{1, Value}` whose value is doubled this many times; returns the last answer.
fn doubled(client: &mut Connection, times: usize) -> String {
    ask(client, "ETS.NEW  dag");
    ask(client, "ETS.INSERT  dag  {1,a}");
    let mut last = String::new();
    for _ in 0..times {
        last = ask(client, &format!("ETS.SELECT_REPLACE  dag  {DOUBLE}"));
    }
    last
}

/// Fails if a term may grow beyond the limit, or if a refused replacement changes the row.
#[test]
fn a_term_that_doubles_is_refused_at_the_limit() {
    let server = Server::tremula(&["--max-term", "64kb"]);
    let mut client = server.connect();
    let refused = doubled(&mut client, 60);
    assert!(
        refused.starts_with("-BADARG select_replace, argument 2: a term of "),
        "{refused}"
    );
    assert!(
        refused.ends_with("with shared parts counted in full; the limit is 65536"),
        "{refused}"
    );
    let row = ask(&mut client, "ETS.LOOKUP  dag  1");
    assert!(
        row.starts_with("[{1,{{") && row.len() < 65536,
        "{}",
        row.len()
    );
    let memory: usize = ask(&mut client, "ETS.INFO  dag  memory")
        .parse()
        .expect("a number");
    assert!(memory < 200_000, "{memory}");
    let equal = "[{{'$1','$2'},[{'==','$2','$2'},{'=:=','$_','$_'}],['$1']}]";
    check(
        &mut client,
        &[
            (&format!("ETS.SELECT  dag  {equal}"), "[1]"),
            ("ETS.FORMAT  etf", "+OK"),
        ],
    );
    let etf = client.call(&["ETS.LOOKUP", "dag", "1"]);
    assert!(etf.starts_with(b"$") && etf.len() < 65536, "{}", etf.len());
}

/// Fails if a size, a text or an external form takes more than the limits of terms and replies, for
/// terms as large as the flags allow.
#[test]
fn the_largest_terms_are_measured_at_once_and_written_up_to_the_limit_of_a_reply() {
    let server = Server::tremula(&["--max-term", "512gb", "--max-output-buffer", "100kb"]);
    let mut client = server.connect();
    let refused = doubled(&mut client, 60);
    assert!(refused.ends_with("the limit is 549755813888"), "{refused}");
    let memory: u64 = ask(&mut client, "ETS.INFO  dag  memory")
        .parse()
        .expect("a number");
    assert!(memory > 256 << 30, "{memory}");
    let info = ask(&mut client, "ETS.INFO  dag");
    assert!(info.contains(&format!("{{memory,{memory}}}")), "{info}");
    let too_long = "-ERR the term exceeds the output buffer limit of 102400 bytes; ask for less at \
                    once, with a limit";
    let all = "ETS.TAB2LIST  dag";
    let steps = [
        ("ETS.LOOKUP  dag  1", too_long),
        (all, too_long),
        ("ETS.FORMAT  etf", "+OK"),
        ("ETS.LOOKUP  dag  1", too_long),
        (all, too_long),
        ("ETS.FORMAT  text", "+OK"),
        ("ETS.MEMBER  dag  1", "true"),
    ];
    check(&mut client, &steps);
    assert!(
        server.resident_kib() < 200 << 10,
        "{}",
        server.resident_kib()
    );
}

/// Fails if a match specification may compare for longer than its limit, or make a result beyond
/// the limit of terms.
#[test]
fn a_match_specification_is_cut_off_where_its_work_ends() {
    let server = Server::tremula(&["--max-term", "64kb"]);
    let mut client = server.connect();
    doubled(&mut client, 12);
    ask(&mut client, "ETS.INSERT  dag  {2,b}");
    for _ in 0..12 {
        ask(&mut client, &format!("ETS.SELECT_REPLACE  dag  {DOUBLE}"));
    }
    let work = "the match specification compares and copies more than 262144 bytes for one row";
    let same = "{'==','$2',{{{element,1,'$2'},{element,2,'$2'}}}}";
    let guards = vec![same; 100].join(",");
    let spec = format!("[{{{{'$1','$2'}},[{guards}],['$1']}}]");
    for (function, command) in [
        ("select", "ETS.SELECT  dag"),
        ("select_count", "ETS.SELECT_COUNT  dag"),
        ("select_delete", "ETS.SELECT_DELETE  dag"),
        ("match_spec_run", "ETS.MATCH_SPEC_RUN  VALUES"),
    ] {
        let row = ask(&mut client, "ETS.LOOKUP  dag  1");
        let command = command.replace("VALUES", &row);
        assert_eq!(
            ask(&mut client, &format!("{command}  {spec}")),
            format!("-BADARG {function}, argument 2: {work}")
        );
    }
    assert_eq!(ask(&mut client, "ETS.INFO  dag  size"), "2");
    let large = "[{{'$1','$2'},[],[{{'$2','$2','$2'}}]}]";
    let limit = "with shared parts counted in full; the limit is 65536";
    for command in ["ETS.SELECT  dag", "ETS.SELECT_COUNT  dag"] {
        let refused = ask(&mut client, &format!("{command}  {large}"));
        assert!(
            refused.starts_with("-BADARG select") && refused.ends_with(limit),
            "{refused}"
        );
    }
}

/// Fails if terms may be nested deeper than the limit by small steps.
#[test]
fn depth_ends_at_the_limit() {
    let server = Server::tremula(&["--max-term-depth", "100"]);
    let mut client = server.connect();
    check(
        &mut client,
        &[
            ("ETS.NEW  deep", "deep"),
            ("ETS.INSERT  deep  {1,a}", "true"),
        ],
    );
    let wrap = "[{{'$1','$2'},[],[{{'$1',{{'$2'}}}}]}]";
    for _ in 0..99 {
        assert_eq!(
            ask(&mut client, &format!("ETS.SELECT_REPLACE  deep  {wrap}")),
            "1"
        );
    }
    let refused = "-BADARG select_replace, argument 2: terms are nested 101 deep; the limit is 100";
    for _ in 0..3 {
        assert_eq!(
            ask(&mut client, &format!("ETS.SELECT_REPLACE  deep  {wrap}")),
            refused
        );
    }
    let row = format!("[{{1,{}a{}}}]", "{".repeat(99), "}".repeat(99));
    assert_eq!(ask(&mut client, "ETS.LOOKUP  deep  1"), row);
}

/// Fails if any command keeps a row beyond the limit, or changes anything before it refuses one.
#[test]
fn whatever_keeps_a_row_refuses_one_that_is_too_large() {
    let server = Server::tremula(&["--max-term", "1kb"]);
    let mut client = server.connect();
    let long = format!("<<\"{}\">>", "x".repeat(1000));
    let digits = format!("1{}", "0".repeat(2600));
    check(
        &mut client,
        &[
            ("ETS.NEW  t  ordered_set", "t"),
            ("ETS.INSERT  t  [{1,a},{2,5}]", "true"),
        ],
    );
    for command in [
        format!("ETS.INSERT  t  {{3,{long}}}"),
        format!("ETS.INSERT  t  [{{3,c}},{{1,{long}}}]"),
        format!("ETS.INSERT_NEW  t  {{3,{long}}}"),
        format!("ETS.INIT_TABLE  t  [{{3,{long}}}]"),
        format!("ETS.UPDATE_ELEMENT  t  1  {{2,{long}}}"),
        format!("ETS.UPDATE_ELEMENT  t  3  {{2,a}}  {{3,b,{long}}}"),
        format!("ETS.UPDATE_COUNTER  t  2  {{2,{digits}}}"),
        format!("ETS.UPDATE_COUNTER  t  3  1  {{3,1,{long}}}"),
    ] {
        let refused = ask(&mut client, &command);
        assert!(refused.starts_with("-BADARG "), "{command}: {refused}");
        assert!(
            refused.ends_with("counted in full; the limit is 1024"),
            "{refused}"
        );
    }
    assert_eq!(ask(&mut client, "ETS.TAB2LIST  t"), "[{1,a},{2,5}]");
}

fn info(client: &mut Connection, field: &str) -> u64 {
    let info = ask(client, "INFO  terms");
    let value = info
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    value.expect("the field").parse().expect("a number")
}

/// Fails if an address gets more atoms by connecting again, or if what exists suffers when its
/// atoms are spent. Another test shows that addresses have quotas of their own, because all
/// addresses of this machine count as one.
#[test]
fn an_address_that_makes_atoms_without_end_stops_only_itself() {
    let server = Server::tremula(&["--max-client-atoms", "100"]);
    let (mut greedy, mut other) = (server.connect(), server.connect());
    let names = |from: usize| -> String {
        let names: Vec<_> = (from..from + 60).map(|n| format!("greedy_{n}")).collect();
        format!(
            "ETS.TEST_MS  {{[{}]}}  [{{'_',[],[true]}}]",
            names.join(",")
        )
    };
    assert_eq!(ask(&mut greedy, &names(0)), "{ok,true}");
    check(
        &mut other,
        &[
            ("ETS.NEW  table_of_another", "table_of_another"),
            ("ETS.INSERT  table_of_another  {greedy_5,1}", "true"),
        ],
    );
    for from in [60, 120] {
        let refused = ask(&mut greedy, &names(from));
        assert!(
            refused.starts_with("-BADARG test_ms, argument 1: byte "),
            "{refused}"
        );
        assert!(
            refused.contains("100 atoms have been made here already"),
            "{refused}"
        );
    }
    assert_eq!(ask(&mut greedy, "RESET"), "+RESET");
    assert_eq!(info(&mut greedy, "client_atoms"), 100);
    // It comes back as a new client.
    let mut again = server.connect();
    let refused = ask(&mut again, "ETS.NEW  greedy_table");
    assert!(
        refused.contains("100 atoms have been made here already"),
        "{refused}"
    );
    assert_eq!(info(&mut again, "client_atoms"), 100);
    // What exists can be named by all.
    for client in [&mut other, &mut again] {
        check(
            client,
            &[
                ("ETS.LOOKUP  table_of_another  greedy_5", "[{greedy_5,1}]"),
                (&names(0), "{ok,true}"),
            ],
        );
    }
}

/// Fails if there may be more atoms than the limit, or if what exists suffers when they are spent.
#[test]
fn the_atoms_of_all_clients_end_at_the_limit() {
    let server = Server::tremula(&["--max-atoms", "400", "--max-client-atoms", "1000"]);
    let mut first = server.connect();
    ask(&mut first, "ETS.NEW  table");
    ask(&mut first, "ETS.INSERT  table  {key,value}");
    let mut refused = String::new();
    for client in 0..3 {
        let mut greedy = server.connect();
        for number in 0..300 {
            let name = format!("atom_{client}_{number}");
            refused = ask(&mut greedy, &format!("ETS.MEMBER  table  {name}"));
        }
    }
    assert!(
        refused.contains("there are 400 atoms already, the limit for all"),
        "{refused}"
    );
    assert_eq!(
        (info(&mut first, "atoms"), info(&mut first, "max_atoms")),
        (400, 400)
    );
    check(
        &mut first,
        &[
            ("ETS.LOOKUP  table  key", "[{key,value}]"),
            ("ETS.INSERT  table  {key,atom_0_1}", "true"),
        ],
    );
}

/// Forms of terms that say little and would take much, in text and in the external format. Fails if
/// one takes memory, or ends anything but its command.
#[test]
fn forms_that_would_take_much_are_refused() {
    let server = Server::tremula(&["--max-term", "1mb"]);
    let mut client = server.connect();
    ask(&mut client, "ETS.NEW  t");
    let before = crate::memory::info(&mut client, "used_memory");
    let mut zeros = ZlibEncoder::new(Vec::new(), Compression::best());
    zeros.write_all(&vec![0; 64 << 20]).expect("in memory");
    let zeros = zeros.finish().expect("in memory");
    let declared = |tag: u8| [&[131, tag][..], &[0xff; 4], &[97, 1]].concat();
    let expanding_to = |length: u32| [&[131, 80][..], &length.to_be_bytes(), &zeros].concat();
    let nested = |one: &[u8]| [&[131][..], &one.repeat(200_000), &[106]].concat();
    let forms = [
        b"[".repeat(200_000),
        b"{".repeat(200_000),
        b"#{a=>".repeat(200_000),
        b"[a|".repeat(200_000),
        [&[b'a'; 1][..], &b"b".repeat(65 << 10)].concat(),
        b"9".repeat(4 << 20),
        nested(&[108, 0, 0, 0, 1]),
        nested(&[104, 1]),
        nested(&[116, 0, 0, 0, 1, 97, 1]),
        declared(105),
        declared(108),
        declared(109),
        declared(111),
        declared(116),
        expanding_to(1 << 30),
        expanding_to(1000),
    ];
    for form in forms {
        let refused = client.call(&[b"ETS.INSERT", &b"t"[..], &form]);
        let shown = refused.escape_ascii().to_string();
        assert!(
            refused.starts_with(b"-BADARG insert, argument 2: "),
            "{shown}"
        );
    }
    assert_eq!(ask(&mut client, "ETS.INFO  t  size"), "0");
    let peak = crate::memory::info(&mut client, "used_memory_peak");
    assert!(peak - before < 48 << 20, "{before}, then {peak}");
}

/// Sends a command, and then asks on another connection until the command is answered. Returns how
/// many times the other was answered before.
fn answers_meanwhile(busy: &mut Connection, other: &mut Connection, command: &str) -> usize {
    let arguments: Vec<_> = command.split("  ").collect();
    busy.send(&encode(&arguments));
    let mut answers = 0;
    while !has_answer(busy) {
        assert_eq!(other.text("PING"), "+PONG\r\n");
        answers += usize::from(!has_answer(busy));
    }
    answers
}

/// Each command that may take long lets another client of the only thread in. Fails if one runs to
/// its end at once: then at most the first `PING`, which may arrive before it begins, is answered
/// before it.
#[test]
fn long_commands_of_tables_let_others_in() {
    const ROWS: usize = 100_000;
    let server = Server::tremula(&["--threads", "1", "--turn", "100us"]);
    let (mut busy, mut other) = (server.connect(), server.connect());
    let rows: Vec<_> = (0..ROWS).map(|key| format!("{{{key},{key}}}")).collect();
    let rows = format!("[{}]", rows.join(","));
    let guards = vec!["{'<','$1',1000000}"; 300].join(",");
    let heavy = format!("[{{{{'$1','$2'}},[{guards}],[false]}}]");
    let light = "[{{'$1','$2'},[{'<','$2',0}],['$1']}]";
    let few: Vec<_> = (0..5000).map(|key| format!("{{{key},{key}}}")).collect();
    for kind in ["set", "ordered_set"] {
        check(
            &mut busy,
            &[
                (&format!("ETS.NEW  {kind}  {kind}"), kind),
                (&format!("ETS.INSERT  {kind}  {rows}"), "true"),
            ],
        );
        for (command, answer) in [
            (format!("ETS.SELECT_COUNT  {kind}  {heavy}"), Some("0")),
            (format!("ETS.SELECT  {kind}  {light}"), Some("[]")),
            (
                format!("ETS.MATCH_SPEC_RUN  [{}]  {heavy}", few.join(",")),
                None,
            ),
            (format!("ETS.TAB2LIST  {kind}"), None),
            (format!("ETS.INFO  {kind}"), None),
            (format!("ETS.DELETE  {kind}"), Some("true")),
        ] {
            let answers = answers_meanwhile(&mut busy, &mut other, &command);
            let reply = busy.reply().expect("a reply");
            assert!(reply.starts_with(b"$"), "{}", reply.escape_ascii());
            if let Some(answer) = answer {
                let reply = crate::support::resp::bulk(&reply);
                assert_eq!(
                    String::from_utf8(reply).as_deref(),
                    Ok(answer),
                    "{command:.60}"
                );
            }
            assert!(answers >= 2, "{command:.60}: {answers}");
        }
    }
    check(
        &mut busy,
        &[
            ("ETS.NEW  set", "set"),
            (&format!("ETS.INSERT  set  {rows}"), "true"),
        ],
    );
    let answers = answers_meanwhile(&mut busy, &mut other, "ETS.DELETE_ALL_OBJECTS  set");
    assert!(answers >= 2, "{answers}");
    busy.reply().expect("a reply");
    assert_eq!(ask(&mut busy, "ETS.INFO  set  size"), "0");
}
