//! Keys out of a real Redis, its files and its connections, and out again as lines.

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};
use support::resp::{Connection, bulk, elements};
use support::{Server, run};

fn tremula(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
    run(command.args(arguments), b"")
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path of text")
}

/// What a command that succeeds prints, and its errors.
fn done(arguments: &[&str]) -> (String, String) {
    let output = tremula(arguments);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let errors = text(output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    (text(output.stdout), errors)
}

fn refused(arguments: &[&str]) -> String {
    let output = tremula(arguments);
    let errors = String::from_utf8(output.stderr).expect("text");
    assert!(!output.status.success(), "{arguments:?}");
    assert!(errors.starts_with("error: "), "{errors}");
    errors
}

type Contents = BTreeMap<(u8, Vec<u8>), Vec<u8>>;

/// Strings of all forms that a file has: numbers, short, long, compressed, bytes.
fn strings() -> Contents {
    let mut all = Contents::new();
    for number in [
        "0",
        "-1",
        "127",
        "-129",
        "32767",
        "-32769",
        "2147483647",
        "9999999999",
        "007",
    ] {
        all.insert((0, format!("n{number}").into()), number.into());
    }
    for length in [0, 1, 63, 64, 16_383, 16_384, 70_000] {
        all.insert((3, format!("same{length}").into()), vec![b'x'; length]);
        let varied = (0..length).map(|at| (at * at / 7 % 251) as u8).collect();
        all.insert((15, format!("varied{length}").into()), varied);
    }
    all.insert((0, b"\0\xff\r\n\t".to_vec()), b"\xfe\n\0".to_vec());
    all.insert((0, Vec::new()), b"under the empty key".to_vec());
    all.insert((0, "long key ".repeat(40).into()), b"its value".to_vec());
    all
}

fn fill(redis: &Server, strings: &Contents) {
    let mut client = redis.connect();
    for ((database, key), value) in strings {
        client.call(&["select", &database.to_string()]);
        assert_eq!(client.call(&[&b"set"[..], key, value]), b"+OK\r\n");
    }
}

/// Keys that expire, and one that has, which Redis writes into its file all the same. Returns the
/// others with the times in milliseconds.
fn fill_expiring(redis: &Server) -> [(&'static str, Vec<u8>); 3] {
    let mut client = redis.connect();
    for command in [
        "debug set-active-expire 0",
        "set soon value ex 1000",
        "set later value px 100000000",
        "set at-the-end-of-times value exat 9000000000000",
        "set gone value px 1",
    ] {
        assert_eq!(client.text(command), "+OK\r\n", "{command}");
    }
    std::thread::sleep(std::time::Duration::from_millis(2));
    ["soon", "later", "at-the-end-of-times"].map(|key| (key, client.call(&["pexpiretime", key])))
}

/// Keys that are not imported: of other types.
fn fill_others(redis: &Server) {
    let mut client = redis.connect();
    let many: Vec<String> = (0..200).map(|number| format!("element {number}")).collect();
    let mut list = vec!["rpush", "long list"];
    list.extend(many.iter().map(String::as_str));
    client.call(&list);
    let mut set = vec!["sadd", "long set"];
    set.extend(many.iter().map(String::as_str));
    client.call(&set);
    for command in [
        "rpush list a b c",
        "sadd numbers 1 2 3",
        "sadd set a b c",
        "zadd sorted 1.5 a inf b -inf c",
        "hset hash a 1 b 2",
        "xadd stream 1-1 a 1",
        "xadd stream 2-1 a 2",
        "xgroup create stream group 0",
    ] {
        let reply = client.text(command);
        assert!(!reply.starts_with('-'), "{command}: {reply}");
    }
    for number in 0..200 {
        let (member, score) = (format!("member {number}"), format!("{number}.25"));
        client.call(&["zadd", "long sorted", &score, &member]);
        client.call(&["hset", "long hash", &member, &"v".repeat(100)]);
    }
    client.text("xreadgroup group group reader count 1 streams stream >");
    client.call(&[
        "function",
        "load",
        "#!lua name=mine\nredis.register_function('f', function() return 1 end)",
    ]);
}

const NOT_IMPORTED: &str = "\
not imported: 1 key whose time had come
not imported: 2 keys of the type hash
not imported: 2 keys of the type list
not imported: 3 keys of the type set
not imported: 2 keys of the type sorted set
not imported: 1 key of the type stream
not imported: functions
";

/// Everything in a directory, as a server shows it. The keys that expire do so at their times.
fn served(directory: &Path, expiring: &[(&str, Vec<u8>)]) -> Contents {
    let server = Server::kept(directory, &[]);
    let mut client = server.connect();
    for (key, millis) in expiring {
        let millis = match *key {
            // Later than there are times here.
            "at-the-end-of-times" => format!(":{}\r\n", (1_u64 << 48) - 1).into_bytes(),
            _ => millis.clone(),
        };
        assert_eq!(client.call(&["pexpiretime", key]), millis, "{key}");
        assert_eq!(client.call(&["getdel", key]), b"$5\r\nvalue\r\n");
    }
    contents(&mut client)
}

fn contents(client: &mut Connection) -> Contents {
    let mut all = Contents::new();
    for database in 0..16_u8 {
        client.text(&format!("select {database}"));
        let entries = elements(&client.call(&["range", "-", "+", "withvalues"]));
        for pair in entries.chunks(2) {
            all.insert((database, bulk(&pair[0])), bulk(&pair[1]));
        }
    }
    all
}

/// Has Redis write its file, and returns where that is.
fn saved(redis: &Server, settings: &[[&str; 2]]) -> std::path::PathBuf {
    let mut client = redis.connect();
    for [name, value] in settings {
        assert_eq!(client.call(&["config", "set", name, value]), b"+OK\r\n");
    }
    assert_eq!(client.text("save"), "+OK\r\n");
    let setting = |client: &mut Connection, name: &str| {
        let reply = elements(&client.call(&["config", "get", name]));
        String::from_utf8(bulk(&reply[1])).expect("text")
    };
    Path::new(&setting(&mut client, "dir")).join(setting(&mut client, "dbfilename"))
}

#[test]
fn what_redis_has_is_imported_from_its_file_and_from_itself() {
    let place = tempfile::tempdir().expect("a directory");
    let redis = Server::redis_with(&["--dir", path(place.path()), "--enable-debug-command", "yes"]);
    let strings = strings();
    fill(&redis, &strings);
    fill_others(&redis);
    let expiring = fill_expiring(&redis);
    let at = |name: &str| place.path().join(name);
    for (number, setting) in [["rdbcompression", "yes"], ["rdbcompression", "no"]]
        .into_iter()
        .enumerate()
    {
        let file = saved(&redis, &[setting]);
        let into = at(&format!("store{number}"));
        let (out, errors) = done(&["import", path(&into), path(&file)]);
        let count = strings.len() + expiring.len();
        assert!(
            out.starts_with(&format!("imported {count} keys from ")),
            "{out}"
        );
        assert!(out.ends_with("\n3 of them will expire\n"), "{out}");
        assert_eq!(errors, NOT_IMPORTED);
        assert!(
            served(&into, &expiring) == strings,
            "other keys than Redis has"
        );
    }
    // From the server, into a directory that has keys already.
    assert_eq!(redis.connect().text("del n0"), ":1\r\n");
    redis.connect().call(&["set", "n-1", "replaced"]);
    let url = format!("redis://127.0.0.1:{}", redis.port());
    let (_, errors) = done(&["import", path(&at("store0")), "--from", &url]);
    assert_eq!(errors, NOT_IMPORTED);
    let mut expected = strings.clone();
    expected.insert((0, b"n-1".to_vec()), b"replaced".to_vec());
    assert!(served(&at("store0"), &expiring) == expected);
    // With a password.
    assert_eq!(
        redis.connect().text("config set requirepass secret"),
        "+OK\r\n"
    );
    let told = refused(&["import", path(&at("store9")), "--from", &url]);
    assert!(told.contains("NOAUTH"), "{told}");
    let with_password = url.replace("redis://", "redis://:secret@");
    done(&["import", path(&at("store9")), "--from", &with_password]);
    let mut expected = strings;
    expected.remove(&(0, b"n0".to_vec()));
    expected.insert((0, b"n-1".to_vec()), b"replaced".to_vec());
    assert!(served(&at("store9"), &expiring) == expected);
}

/// Each damage to a file is noticed by its checksum, or by what it says, before anything is
/// imported; and what is no file is named.
#[test]
fn what_is_damaged_imports_nothing() {
    let place = tempfile::tempdir().expect("a directory");
    let redis = Server::redis_with(&["--dir", path(place.path())]);
    let mut client = redis.connect();
    client.text("set key value");
    client.text("rpush list a b c");
    let file = saved(&redis, &[]);
    let whole = std::fs::read(&file).expect("its bytes");
    let into = place.path().join("store");
    let mut kinds = BTreeMap::new();
    for at in 0..whole.len() + 1 {
        // One in five of the places, the head and the end.
        if at > 12 && at + 12 < whole.len() && at % 5 > 0 {
            continue;
        }
        let mut damaged = whole.clone();
        match at % 3 {
            _ if at == whole.len() => damaged.push(0),
            0 => damaged.truncate(at),
            _ => damaged[at] ^= 0x55,
        }
        std::fs::write(&file, &damaged).expect("damage");
        let told = refused(&["import", path(&into), path(&file)]);
        assert!(told.contains("nothing was imported"), "{told}");
        let kind = if told.contains("damaged at offset") {
            "damaged"
        } else {
            "other"
        };
        *kinds.entry(kind).or_insert(0) += 1;
        assert!(!into.exists(), "byte {at}");
    }
    assert!(kinds["damaged"] > 20, "{kinds:?}");
    std::fs::write(&file, b"REDIS0099").expect("a file");
    let told = refused(&["import", path(&into), path(&file)]);
    assert!(
        told.contains("version 99, and this program knows versions up to 11"),
        "{told}"
    );
    let told = refused(&["import", path(&into), path(&place.path().join("none"))]);
    assert!(told.contains("No such file"), "{told}");
    let told = refused(&["import", path(&into), "--from", "redis://127.0.0.1:1"]);
    assert!(
        told.contains("redis://127.0.0.1:1: cannot connect"),
        "{told}"
    );
    // A directory that is in use.
    std::fs::write(&file, &whole).expect("as it was");
    let _server = Server::kept(&into, &[]);
    let told = refused(&["import", path(&into), path(&file)]);
    assert!(told.contains("is in use by process"), "{told}");
}

/// What is exported is loaded again by `--load`, from a directory, from a server, and from Redis.
#[test]
fn what_is_exported_can_be_loaded() {
    let place = tempfile::tempdir().expect("a directory");
    let at = |name: &str| place.path().join(name);
    let redis = Server::redis_with(&["--dir", path(place.path())]);
    let mut expected = Contents::new();
    for number in 0..3000 {
        let key = format!("key {number:04}, \"quoted\"").into_bytes();
        expected.insert((0, key), format!("värde\t{number}").into_bytes());
    }
    fill(&redis, &expected);
    redis.connect().text("rpush list a b");
    let url = format!("redis://127.0.0.1:{}", redis.port());
    let store = at("store");
    done(&["import", path(&store), "--from", &url]);
    for format in ["tsv", "csv", "jsonl"] {
        let file = at(&format!("keys.{format}"));
        let from_directory = ["export", path(&store), "--format", format];
        let into_file = [&from_directory[..], &["--output", path(&file)]].concat();
        let (out, errors) = done(&into_file);
        assert_eq!((&*out, &*errors), ("", "exported 3000 keys\n"));
        let lines = std::fs::read_to_string(&file).expect("text");
        assert_eq!(lines.lines().count(), 3000);
        if format != "csv" {
            assert!(lines.lines().is_sorted(), "{format}");
        }
        let value: &[&str] = if format == "jsonl" {
            &["--load-value", "value"]
        } else {
            &[]
        };
        let server = Server::tremula(&[&["--load", path(&file)], value].concat());
        assert!(contents(&mut server.connect()) == expected, "{format}");
        // Twice onto one file is refused.
        let told = refused(&into_file);
        assert!(told.contains("File exists"), "{told}");
        let url = format!("redis://127.0.0.1:{}", server.port());
        let (out, errors) = done(&["export", "--from", &url, "--format", format]);
        assert_eq!(errors, "exported 3000 keys\n");
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&out), sorted(&lines));
    }
    let (_, errors) = done(&["export", "--from", &url, "--format", "csv"]);
    assert_eq!(
        errors,
        "exported 3000 keys\nnot exported: 1 keys of the type list\n"
    );
    redis.connect().call(&[&b"set"[..], b"bytes", b"\xff\n"]);
    for format in ["tsv", "jsonl"] {
        let told = refused(&["export", "--from", &url, "--format", format]);
        assert!(told.contains("the key \"bytes\" or its value"), "{told}");
        assert!(told.contains("use csv"), "{told}");
    }
    let told = refused(&["export", path(&at("none")), "--format", "csv"]);
    assert!(told.contains("none/log"), "{told}");
    assert!(!at("none").exists());
}
