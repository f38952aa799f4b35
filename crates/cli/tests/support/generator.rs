//! Random commands for the comparison with a real Redis: mostly well formed, over few keys, with
//! values at the limits of what the commands accept.

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

/// The words of one command.
pub(crate) type Arguments = Vec<Vec<u8>>;

fn key(random: &mut StdRng) -> Vec<u8> {
    match random.random_range(0..12) {
        0 => b"".to_vec(),
        1 => b"\xff\x00\r\n".to_vec(),
        2 => vec![b'k'; 100],
        3..6 => format!("key:{}", random.random_range(0..20)).into_bytes(),
        6..9 => format!("n{}", random.random_range(0..6)).into_bytes(),
        _ => format!("f{}", random.random_range(0..4)).into_bytes(),
    }
}

fn value(random: &mut StdRng) -> Vec<u8> {
    match random.random_range(0..10) {
        0 => b"".to_vec(),
        1 => (0..random.random_range(0..40))
            .map(|_| random.random())
            .collect(),
        2 => vec![b'v'; random.random_range(0..3000)],
        3..6 => integer(random),
        6..8 => float(random),
        _ => format!("value {}", random.random_range(0..100)).into_bytes(),
    }
}

fn integer(random: &mut StdRng) -> Vec<u8> {
    let edge = [
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "-1",
        "0",
        "00",
        "-0",
        "+1",
        " 1",
        "1 ",
        "",
        "1.0",
        "abc",
        "0x10",
        "99999999999999999999999",
        "1\0",
        "2147483648",
        "4294967296",
        "-9223372036854775807",
        "16",
        "15",
    ];
    match random.random_range(0..3) {
        0 => edge.choose(random).expect("some").as_bytes().to_vec(),
        1 => random.random::<i64>().to_string().into_bytes(),
        _ => random.random_range(-20..20_i64).to_string().into_bytes(),
    }
}

fn float(random: &mut StdRng) -> Vec<u8> {
    let edge = [
        "inf",
        "-inf",
        "infinity",
        "nan",
        "1e4900",
        "-1e4900",
        "1e-4940",
        "1e5000",
        "1e-5000",
        "0x1p-3",
        "0x1.fffffffffffffffffp5",
        "0xp1",
        ".5",
        "5.",
        ".",
        "1e",
        "1e+",
        "+3.0e3",
        " 1.5",
        "1.5 ",
        "",
        "-0",
        "-0.0",
        "1e17",
        "123456789012345678901234567890",
        "0.00000000000000001",
        "-0.000000000000000001",
        "1.7976931348623157e308",
        "abc",
        "1e4932",
        "-1e-30",
        "3.6e-4951",
        "1.1\0",
    ];
    match random.random_range(0..6) {
        0 => edge.choose(random).expect("some").as_bytes().to_vec(),
        1 => random.random::<f64>().to_string().into_bytes(),
        2 => {
            let exponent = random.random_range(-40..40);
            format!(
                "{:.*e}",
                random.random_range(0..25),
                random.random::<f64>() - 0.5
            )
            .split('e')
            .next()
            .map(|digits| format!("{digits}e{exponent}").into_bytes())
            .unwrap_or_default()
        }
        3 => format!("{}.{}", random.random::<i64>(), random.random::<u64>()).into_bytes(),
        4 => format!("0.{:017}", random.random::<u64>() % 100_000_000_000_000_000).into_bytes(),
        _ => format!(
            "{:.*}",
            random.random_range(0..20),
            random.random_range(-1e6..1e6)
        )
        .into_bytes(),
    }
}

pub(crate) fn pattern(random: &mut StdRng) -> Vec<u8> {
    let fixed = [
        "*",
        "**",
        "key:*",
        "n?",
        "[nf][0-3]",
        "[^k]*",
        "*\\*",
        "k*:?",
        "",
        "key:1",
        "[",
        "n[",
        "[a-",
        "?*",
        "\\n*",
    ];
    if random.random_bool(0.7) {
        return fixed.choose(random).expect("some").as_bytes().to_vec();
    }
    let length = random.random_range(0..8);
    (0..length)
        .map(|_| *b"*?[]^-\\knf0123:".choose(random).expect("some"))
        .collect()
}

/// One command: mostly well formed, sometimes with too many or too few arguments.
pub(crate) fn command(random: &mut StdRng) -> Arguments {
    let mut arguments = well_formed(random);
    match random.random_range(0..40) {
        0 => arguments.push(value(random)),
        1 if arguments.len() > 1 => drop(arguments.pop()),
        2 => arguments.truncate(1),
        3 => {
            let index = random.random_range(0..arguments.len());
            // Not the command's name, because the result could be a command that Tremula lacks.
            if index > 0 {
                arguments[index] = value(random);
            }
        }
        _ => (),
    }
    // Commands that these changes must not turn into something else.
    let name = arguments[0].to_ascii_lowercase();
    let unsafe_to_change = [
        &b"scan"[..],
        b"client",
        b"command",
        b"config",
        b"info",
        b"quit",
    ];
    if unsafe_to_change.contains(&&name[..]) {
        return vec![b"PING".to_vec()];
    }
    if expires_soon(&arguments) {
        return vec![b"PING".to_vec()];
    }
    if random.random_bool(0.1) {
        return about_the_server(random);
    }
    if random.random_bool(0.01) {
        let mut index = || match random.random_range(0..20) {
            0 => b"x".to_vec(),
            1 => b"16".to_vec(),
            2 => b"-1".to_vec(),
            3 => b"4294967296".to_vec(),
            _ => random.random_range(0..3).to_string().into_bytes(),
        };
        return vec![b"SWAPDB".to_vec(), index(), index()];
    }
    arguments[0] = match random.random_range(0..3) {
        0 => name,
        _ => name.to_ascii_uppercase(),
    };
    arguments
}

/// A transaction of up to twelve commands. Some are spoilt by a command that is refused, and some
/// are discarded.
pub(crate) fn transaction(random: &mut StdRng) -> Vec<Arguments> {
    /// What has another reply here, or is refused in a transaction.
    const NOT_WITHIN: [&[u8]; 10] = [
        b"keys",
        b"ttl",
        b"pttl",
        b"expiretime",
        b"pexpiretime",
        b"scan",
        b"client",
        b"command",
        b"config",
        b"info",
    ];
    let mut all = Vec::new();
    if random.random_bool(0.3) {
        all.push(vec![b"watch".to_vec(), key(random)]);
        if random.random_bool(0.3) {
            all.push(vec![b"append".to_vec(), key(random), value(random)]);
        }
        if random.random_bool(0.2) {
            all.push(words(&["unwatch"]));
        }
    }
    all.push(words(&["MULTI"]));
    for _ in 0..random.random_range(0..12) {
        let arguments = match random.random_range(0..30) {
            0 => words(&["multi"]),
            1 => vec![b"watch".to_vec(), key(random)],
            _ => well_formed(random),
        };
        let name = arguments[0].to_ascii_lowercase();
        // Most transactions would be spoilt.
        let is_unknown = !["multi", "watch"].map(str::as_bytes).contains(&&name[..])
            && arguments.len() > 1
            && random.random_bool(0.9)
            && [
                &b"foo"[..],
                b"",
                b"gett",
                b"set\r\n",
                b"\xc3\xbf",
                b"get\0",
                b"objectx",
            ]
            .contains(&&name[..]);
        if !NOT_WITHIN.contains(&&name[..]) && !expires_soon(&arguments) && !is_unknown {
            all.push(arguments);
        }
    }
    all.push(words(&[if random.random_bool(0.9) {
        "EXEC"
    } else {
        "discard"
    }]));
    all
}

fn words(words: &[&str]) -> Arguments {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

/// Whether a key may expire while the test runs, or has done so without being removed; or the error
/// is an exception.
fn expires_soon(arguments: &Arguments) -> bool {
    let name = arguments[0].to_ascii_lowercase();
    let relative = [&b"setex"[..], b"psetex", b"expire", b"pexpire"].contains(&&name[..]);
    let has_option = [&b"set"[..], b"getex"].contains(&&name[..])
        && arguments.iter().skip(2).any(|word| {
            let units = ["ex", "px", "exat", "pxat"].map(str::as_bytes);
            units.iter().any(|unit| word.eq_ignore_ascii_case(unit))
        });
    let soon = |word: &Vec<u8>| {
        let number = std::str::from_utf8(word).ok();
        let number = number.and_then(|text| text.parse::<i64>().ok());
        number.is_some_and(|number| (1..4_000_000_000).contains(&number))
    };
    // Redis repeats an option of any length in its error.
    let is_long = name.starts_with(b"expire") || name.starts_with(b"pexpire");
    let is_long = is_long && arguments.iter().any(|word| word.len() > 128);
    (relative || has_option) && arguments.iter().skip(2).any(soon) || is_long
}

/// Seconds of the year 2096, or what no command takes. Times that come while the test runs would
/// come for one server sooner than for the other.
fn seconds(random: &mut StdRng) -> Vec<u8> {
    let wrong = ["0", "-1", "abc", "", "9223372036854775807", "1.5"];
    if random.random_bool(0.2) {
        return wrong.choose(random).expect("some").as_bytes().to_vec();
    }
    let number = 4_000_000_000_u64 + random.random_range(0..3);
    number.to_string().into_bytes()
}

fn milliseconds(random: &mut StdRng) -> Vec<u8> {
    let mut time = seconds(random);
    if time.starts_with(b"4") {
        time.extend_from_slice(b"123");
    } else if time.starts_with(b"9") {
        time.push(b'9');
    }
    time
}

/// Commands about when keys expire.
fn expiring(random: &mut StdRng) -> Arguments {
    let name = |text: &str| text.as_bytes().to_vec();
    let mut choose = |from: &[&str]| name(from.choose(random).expect("some"));
    let command = choose(&[
        "expireat",
        "pexpireat",
        "expireat",
        "pexpireat",
        "expiretime",
        "pexpiretime",
        "pexpiretime",
        "persist",
        "expire",
        "setex",
        "psetex",
        "getex",
        "getex",
    ]);
    let condition = choose(&["nx", "XX", "gt", "LT", "foo"]);
    let unit = choose(&["exat", "PXAT", "ex", "px", "foo", ""]);
    let wrong = choose(&[
        "-1",
        "-100",
        "abc",
        "",
        "9223372036854775807",
        "-9223372036854775808",
    ]);
    let mut all = vec![command.clone(), key(random)];
    match &command[..] {
        b"expireat" | b"pexpireat" => {
            let is_past = random.random_bool(0.1);
            all.push(match &command[..] {
                _ if is_past => b"1".to_vec(),
                b"expireat" => seconds(random),
                _ => milliseconds(random),
            });
            for _ in 0..2 {
                if random.random_bool(0.3) {
                    all.push(condition.clone());
                }
            }
        }
        b"expire" => all.push(wrong),
        b"setex" | b"psetex" => all.extend([wrong, value(random)]),
        b"getex" if random.random_bool(0.3) => all.push(name("persist")),
        b"getex" if random.random_bool(0.7) => {
            let time = match &unit[..] {
                b"exat" => seconds(random),
                b"PXAT" => milliseconds(random),
                _ => wrong,
            };
            all.extend([unit, time]);
        }
        _ => {}
    }
    all
}

fn well_formed(random: &mut StdRng) -> Arguments {
    if random.random_bool(0.12) {
        return expiring(random);
    }
    let name = |text: &str| text.as_bytes().to_vec();
    let small = |random: &mut StdRng| random.random_range(-12..12_i64).to_string().into_bytes();
    match random.random_range(0..100) {
        0..12 => vec![name("get"), key(random)],
        12..30 => {
            let mut set = vec![name("set"), key(random), value(random)];
            for _ in 0..random.random_range(0..4) {
                let options = ["nx", "XX", "get", "GET", "keepttl", "foo", "NX", ""];
                if random.random_bool(0.4) {
                    set.push(name(options.choose(random).expect("some")));
                }
                if random.random_bool(0.1) {
                    set.extend([name("exat"), seconds(random)]);
                }
                if random.random_bool(0.1) {
                    set.extend([name("Pxat"), milliseconds(random)]);
                }
            }
            set
        }
        30..33 => vec![name("setnx"), key(random), value(random)],
        33..36 => vec![name("getset"), key(random), value(random)],
        36..39 => vec![name("getdel"), key(random)],
        39..42 => {
            let mut all = vec![name("mget")];
            all.extend((0..random.random_range(1..6)).map(|_| key(random)));
            all
        }
        42..45 => {
            let mut all = vec![name("mset")];
            for _ in 0..random.random_range(1..4) {
                all.extend([key(random), value(random)]);
            }
            all
        }
        45..48 => {
            let command = *["del", "unlink"].choose(random).expect("some");
            let mut all = vec![name(command)];
            all.extend((0..random.random_range(1..4)).map(|_| key(random)));
            all
        }
        48..51 => {
            let command = *["exists", "touch"].choose(random).expect("some");
            let mut all = vec![name(command)];
            all.extend((0..random.random_range(1..4)).map(|_| key(random)));
            all
        }
        51..56 => {
            let command = *["incr", "decr"].choose(random).expect("some");
            vec![name(command), key(random)]
        }
        56..61 => {
            let command = *["incrby", "decrby"].choose(random).expect("some");
            vec![name(command), key(random), integer(random)]
        }
        61..72 => {
            let key = format!("f{}", random.random_range(0..4)).into_bytes();
            vec![name("incrbyfloat"), key, float(random)]
        }
        72..75 => vec![name("append"), key(random), value(random)],
        75..77 => vec![name("strlen"), key(random)],
        77..82 => {
            let (from, to) = (small(random), small(random));
            let to = if random.random_bool(0.1) {
                integer(random)
            } else {
                to
            };
            vec![name("getrange"), key(random), from, to]
        }
        82..86 => {
            // Not an offset that would make a string of half a gigabyte.
            let far = ["536870912", "9223372036854775807", "-1", "x", "300"];
            let offset = match random.random_range(0..3) {
                0 => name(far.choose(random).expect("some")),
                _ => random.random_range(0..30).to_string().into_bytes(),
            };
            vec![name("setrange"), key(random), offset, value(random)]
        }
        86 => vec![name("type"), key(random)],
        87 => copy(random),
        88..90 => vec![name("keys"), pattern(random)],
        90 => vec![name("dbsize")],
        91 => vec![name("echo"), value(random)],
        92 => vec![name("ping"), value(random)],
        93 => vec![name("ping")],
        94..96 => {
            let number = *["0", "0", "0", "1", "15", "16", "-1", "a"]
                .choose(random)
                .expect("some");
            vec![name("select"), name(number)]
        }
        96 if random.random_bool(0.1) => {
            let command = *["flushall", "flushdb"].choose(random).expect("some");
            let option = *["sync", "async", "ASYNC", "x"]
                .choose(random)
                .expect("some");
            vec![name(command), name(option)]
        }
        _ => {
            let unknown = ["foo", "", "gett", "set\r\n", "\u{ff}", "GET\0", "objectx"];
            let mut all = vec![name(unknown.choose(random).expect("some"))];
            all.extend((0..random.random_range(0..4)).map(|_| value(random)));
            all
        }
    }
}

fn copy(random: &mut StdRng) -> Arguments {
    let mut copy = vec![b"copy".to_vec(), key(random), key(random)];
    if random.random_bool(0.5) {
        copy.push(b"replace".to_vec());
    }
    if random.random_bool(0.3) {
        let number = ["0", "1", "15", "16", "-1", "a", "2147483648"];
        let number = number.choose(random).expect("some");
        copy.extend([b"DB".to_vec(), number.as_bytes().to_vec()]);
    }
    if random.random_bool(0.1) {
        let option = ["db", "REPLACE", "x"].choose(random).expect("some");
        copy.push(option.as_bytes().to_vec());
    }
    copy
}

/// Commands about the server and the connection with only one right answer.
fn about_the_server(random: &mut StdRng) -> Arguments {
    let all: [&[&str]; 77] = [
        &["hello"],
        &["hello", "2"],
        &["HELLO", "3"],
        &["hello", "3", "setname", "bob"],
        &["hello", "2", "SETNAME", "a b"],
        &["hello", "2", "setname"],
        &["hello", "3", "auth", "x", "y", "setname", "z"],
        &["hello", "3", "foo"],
        &["hello", "4"],
        &["hello", "x"],
        &["auth", "x"],
        &["auth", "default", "x"],
        &["auth", "x", "y"],
        &["auth", "x", "y", "z"],
        &["auth"],
        &["reset"],
        &["reset", "x"],
        &["client"],
        &["client", "foo"],
        &["client", "foo\r\nbar"],
        &["client", "id"],
        &["client", "id", "x"],
        &["client", "getname"],
        &["client", "setname", "alice"],
        &["client", "setname", "a\nb"],
        &["client", "setname", "\u{e9}"],
        &["client", "setname", ""],
        &["client", "setname"],
        &["client", "list", "type", "pubsub"],
        &["client", "list", "type", "foo"],
        &["client", "list", "id", "x"],
        &["client", "list", "id", "999999999"],
        &["client", "list", "id", "-1"],
        &["client", "list", "foo"],
        &["client", "list", "id"],
        &["client", "info", "x"],
        &["config"],
        &["config", "foo"],
        &["config", "get"],
        &["config", "get", "save"],
        &["config", "get", "maxclients", "DATABASES", "appendonl?"],
        &["config", "get", "proto-max-bulk-len"],
        &["config", "get", "nosuch*"],
        &["info", "keyspace"],
        &["info", "nosuch"],
        &["info", "KEYSPACE", "nosuch", "keyspace"],
        &["command", "foo"],
        &["command", "count", "x"],
        &["command", "docs", "nosuch"],
        &["command", "info", "nosuch", "get", "SET", "mset", "del"],
        &[
            "command",
            "info",
            "touch",
            "copy",
            "object|freq",
            "memory|usage",
        ],
        &["command", "info", "command|list", "command|getkeys"],
        &["command", "list", "x"],
        &["command", "list", "filterby", "pattern"],
        &["command", "list", "filterby", "pattern", "GE[ts]"],
        &["command", "list", "FILTERBY", "module", "x"],
        &["command", "list", "filterby", "aclcat", "x"],
        &["command", "list", "filterby", "x", "x"],
        &["command", "getkeys", "set"],
        &["command", "getkeys", "nosuch", "x"],
        &["command", "getkeys", "ping", "x"],
        &["command", "getkeys", "GET", "x", "y"],
        &["command", "getkeys", "mset", "x", "1", "y", "2"],
        &["command", "getkeys", "object", "freq", "x"],
        &["command", "getkeysandflags", "copy", "x", "y", "replace"],
        &["command", "getkeysandflags", "set", "x", "y", "GET"],
        &[
            "command",
            "info",
            "incrbyfloat",
            "append",
            "setrange",
            "getrange",
            "getdel",
            "setnx",
        ],
        &[
            "command", "info", "scan", "keys", "dbsize", "flushall", "flushdb", "type", "exists",
        ],
        &[
            "command", "info", "ping", "echo", "select", "reset", "quit", "hello", "auth", "info",
        ],
        &[
            "command",
            "info",
            "client|id",
            "client|list",
            "config|get",
            "command|docs",
            "client|x",
        ],
        &[
            "command", "info", "mget", "getset", "incr", "decr", "incrby", "decrby", "strlen",
            "unlink",
        ],
        &["scan", "x"],
        &["scan", "0", "x"],
        &["scan", "0", "count", "0"],
        &["scan", "0", "count", "x"],
        &["scan", "0", "match"],
        &["scan", "18446744073709551616", "count", "5"],
    ];
    words(all.choose(random).expect("some"))
}
