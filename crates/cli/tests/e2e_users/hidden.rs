//! What a user may not see: keys, tables and mailboxes.

use crate::support::Server;
use crate::support::resp::{Connection, bulk, elements};

fn set(connection: &mut Connection, keys: &[&str]) {
    for key in keys {
        assert_eq!(connection.call(&["set", key, key]), b"+OK\r\n");
    }
}

fn listed(reply: &[u8]) -> Vec<String> {
    let texts = elements(reply).into_iter().map(|element| bulk(&element));
    texts
        .map(|text| String::from_utf8(text).expect("text"))
        .collect()
}

/// Keys outside of a user's ranges and patterns are as if they were not there.
#[test]
fn hidden_keys_are_neither_returned_nor_counted() {
    // So short a turn that every command is interrupted among the hidden keys.
    let tremula = Server::tremula(&["--threads", "1", "--turn", "10us"]);
    let mut all = tremula.connect();
    set(&mut all, &["a1", "b1", "b2", "b3", "c1", "d1", "e1", "e2"]);
    for number in 0..2000 {
        set(
            &mut all,
            &[&format!("hidden{number}"), &format!("z{number}")],
        );
    }
    let rules = "acl setuser some on nopass +@all %R:[b2,(c %R~e* %W:[d,(e";
    assert_eq!(all.text(rules), "+OK\r\n");
    all.text("acl setuser other on >pw");
    let mut some = tremula.connect();
    assert_eq!(some.text("auth some x"), "+OK\r\n");
    for (command, expected) in [
        ("range - +", &["b2", "b3", "e1", "e2"][..]),
        ("range - + limit 3", &["b2", "b3", "e1"]),
        ("range + - rev limit 3", &["e2", "e1", "b3"]),
        ("range [b3 [e1 withvalues", &["b3", "b3", "e1", "e1"]),
        ("range [b2 (c snapshot", &["b2", "b3"]),
        ("keys *", &["b2", "b3", "e1", "e2"]),
        ("keys h*", &[]),
        ("first", &["b2", "b2"]),
        ("last", &["e2", "e2"]),
        ("next b3", &["e1", "e1"]),
        ("prev e1", &["b3", "b3"]),
        ("prev hidden7", &["e2", "e2"]),
    ] {
        assert_eq!(listed(&some.call(&words(command))), expected, "{command}");
    }
    for (command, expected) in [
        ("dbsize", ":4\r\n"),
        ("next e2", "*-1\r\n"),
        ("prev b2", "*-1\r\n"),
        ("get b2", "$2\r\nb2\r\n"),
        ("get b1", REFUSED),
        ("get d1", REFUSED),
        ("mget b2 c1", REFUSED),
        ("set b2 x", REFUSED),
        ("set d9 x", "+OK\r\n"),
        ("set d9 x get", REFUSED),
        ("range [b2 [c snapshot", REFUSED),
        ("delrange [d (f", REFUSED),
        ("delrange - +", REFUSED),
        ("flushdb", REFUSED),
        ("flushall", REFUSED),
        ("shape", REFUSED),
        ("delrange [d2 (e", ":1\r\n"),
        (
            "delrange x y",
            "-ERR min or max not valid string range item\r\n",
        ),
    ] {
        assert_eq!(some.text(command), expected, "{command}");
    }
    // A scan ends, shows each key once, and its pages are full of what is shown.
    let (mut cursor, mut seen) = ("0".to_owned(), Vec::new());
    loop {
        let reply = elements(&some.call(&["scan", &cursor, "count", "3"]));
        cursor = String::from_utf8(bulk(&reply[0])).expect("a number");
        let page = listed(&reply[1]);
        assert!(cursor == "0" || page.len() == 3, "{page:?}");
        seen.extend(page);
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(seen, ["b2", "b3", "e1", "e2"]);
    assert_eq!(all.text("dbsize"), ":4008\r\n");
}

const REFUSED: &str =
    "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n";

fn words(command: &str) -> Vec<&str> {
    command.split(' ').collect()
}

/// Tables and mailboxes outside of a user's patterns are refused under any name, and not listed.
#[test]
fn hidden_tables_and_mailboxes_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().to_str().expect("a path");
    let tremula = Server::tremula(&["--threads", "1", "--table-directory", directory]);
    let mut all = tremula.connect();
    for name in ["mine", "theirs"] {
        all.text(&format!("ets.new {name}"));
        all.text(&format!("ets.insert {name} {{1,2}}"));
        all.text(&format!("mailbox.new {name}"));
    }
    all.text("acl setuser some on nopass >pw +@all tables:mi* mailboxes:mi*");
    all.text("acl setuser some nopass");
    all.text("acl setuser other on >pw");
    let identifier = bulk(&all.call(&["ets.whereis", "theirs"]));
    let mut some = tremula.connect();
    assert_eq!(some.text("auth some x"), "+OK\r\n");
    for command in [
        "ets.lookup theirs 1",
        "ets.new theirs2",
        "ets.rename mine yours",
        "ets.delete theirs",
        "ets.info theirs",
        "ets.whereis theirs",
        "ets.select theirs [{'_',[],['$_']}]",
        "ets.new mine2 {heir,theirs,x}",
        "ets.give_away mine theirs x",
        "ets.tab2file mine file",
        "ets.file2tab file",
        "mailbox.send theirs x",
        "mailbox.recv theirs",
        "mailbox.len theirs",
        "mailbox.new theirs3",
        "mailbox.drop theirs",
        "get x",
    ] {
        let reply = some.text(command);
        assert!(reply.starts_with("-NOPERM "), "{command}: {reply}");
    }
    let by_identifier = some.call(&[&b"ets.lookup"[..], &identifier, b"1"]);
    assert!(by_identifier.starts_with(b"-NOPERM "), "by its identifier");
    for (command, expected) in [
        ("ets.all", "$6\r\n[mine]\r\n"),
        ("ets.lookup mine 1", "$7\r\n[{1,2}]\r\n"),
        ("ets.new mine3", "$5\r\nmine3\r\n"),
        ("mailbox.send mine x", ":1\r\n"),
        ("mailbox.recv mine", "$1\r\nx\r\n"),
    ] {
        assert_eq!(some.text(command), expected, "{command}");
    }
    // A continuation leads to no other table.
    all.text("ets.insert theirs [{2,2},{3,3}]");
    let chunk = bulk(&all.call(&["ets.select", "theirs", "[{'_',[],['$_']}]", "1"]));
    let chunk = String::from_utf8(chunk).expect("text");
    let place = chunk.find("],{").map(|at| &chunk[at + 2..chunk.len() - 1]);
    let place = place.unwrap_or_else(|| panic!("no continuation in {chunk}"));
    let reply = some.call(&["ets.select", place]);
    assert!(reply.starts_with(b"-NOPERM "), "{}", reply.escape_ascii());
    let log = all.call(&["acl", "log", "100"]);
    for reason in ["table", "mailbox", "key"] {
        let entry = format!("${}\r\n{reason}\r\n", reason.len());
        let is_there = log
            .windows(entry.len())
            .any(|part| part == entry.as_bytes());
        assert!(is_there, "{reason}");
    }
}

/// `ACL DRYRUN` refuses the tables and mailboxes that the command itself refuses, and no others.
#[test]
fn a_dry_run_tells_what_the_command_would() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().to_str().expect("a path");
    let tremula = Server::tremula(&["--threads", "1", "--table-directory", directory]);
    let mut all = tremula.connect();
    all.text("acl setuser some on nopass >pw +@all tables:mi* mailboxes:mi*");
    all.text("acl setuser some nopass");
    all.text("acl setuser other on >pw");
    let (mut asked, mut refused) = (0, 0);
    for category in ["ets", "mailbox"] {
        let names = listed(&all.call(&["command", "list", "filterby", "aclcat", category]));
        for name in names {
            let about = elements(&elements(&all.call(&["command", "info", &name]))[0]);
            let arity = String::from_utf8(about[1].clone()).expect("a number");
            let arity: i32 = arity[1..].trim().parse().expect("a number");
            for places in [["theirs", "theirs"], ["mine", "theirs"], ["mine", "mine"]] {
                for name in ["mine", "theirs"] {
                    all.text(&format!("ets.new {name}"));
                    all.text(&format!("mailbox.new {name}"));
                }
                let arguments = places.into_iter().chain(std::iter::repeat("x"));
                let count = usize::try_from(arity.abs() - 1).expect("an arity");
                let mut command = vec![&*name];
                command.extend(arguments.take(count));
                asked += 1;
                refused += u32::from(compare(&mut all, &tremula, &command));
            }
        }
    }
    println!("{asked} asked, {refused} refused");
    assert!(asked > 100 && refused > 40);
    for (command, is_refused) in [
        ("ets.new mine2 {heir,mine,x}", false),
        ("ets.new mine3 {heir,theirs,x}", true),
        ("ets.new mine4 [named_table,{heir,theirs,x}]", true),
        ("ets.setopts mine [{heir,theirs,x}]", true),
        ("ets.setopts mine {heir,mine,x}", false),
    ] {
        let found = compare(&mut all, &tremula, &words(command));
        assert_eq!(found, is_refused, "{command}");
    }
    // By its identifier, and by a continuation.
    all.text("ets.new theirs");
    all.text("ets.insert theirs [{1,1},{2,2},{3,3}]");
    let identifier = bulk(&all.call(&["ets.whereis", "theirs"]));
    let identifier = String::from_utf8(identifier).expect("text");
    assert!(compare(
        &mut all,
        &tremula,
        &["ets.member", &identifier, "1"]
    ));
    let chunk = bulk(&all.call(&["ets.select", "theirs", "[{'_',[],['$_']}]", "1"]));
    let chunk = String::from_utf8(chunk).expect("text");
    let place = chunk.find("],{").map(|at| &chunk[at + 2..chunk.len() - 1]);
    let place = place.unwrap_or_else(|| panic!("no continuation in {chunk}"));
    assert!(compare(&mut all, &tremula, &["ets.select", place]));
    let repair = ["ets.repair_continuation", place, "[{'_',[],['$_']}]"];
    assert!(compare(&mut all, &tremula, &repair));
}

/// Tries a command as the user `some`, and asks `ACL DRYRUN` about it before. Returns whether it is
/// refused.
fn compare(all: &mut Connection, server: &Server, command: &[&str]) -> bool {
    let dry = all.call(&[&["acl", "dryrun", "some"], command].concat());
    let dry = String::from_utf8(dry).expect("text");
    // Of its own, because a table that a connection makes may end with it.
    let mut some = server.connect();
    assert_eq!(some.text("auth some x"), "+OK\r\n");
    let reply = some.call(command);
    let is_refused = reply.starts_with(b"-NOPERM ");
    if is_refused {
        // The reply names what is refused in the same words.
        let text = String::from_utf8(reply).expect("text");
        let (_, what) = text.split_once(" access the ").expect(&text);
        let (kind, name) = what.trim_end().split_once(' ').expect(&text);
        let expected = format!("access the {name} {kind}\r\n");
        assert!(dry.ends_with(&expected), "{command:?}: {dry}, and {text}");
    } else {
        assert_eq!(dry, "+OK\r\n", "{command:?}: {}", reply.escape_ascii());
    }
    is_refused
}
