//! The same commands to a real `redis-server` 7.0 and to `tremula`, and every reply compared
//! byte for byte.
//!
//! The streams are generated from seeds, which are printed; `TREMULA_SEED` adds one. What may
//! differ is in [`comparison`], one place, and is documented in `crates/server/README.md`. The
//! test would fail on a wrong value, type, error text, order of replies, null of the wrong
//! version, or a connection that one server closes and the other does not.

mod support;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use support::Server;
use support::resp::{Connection, bulk, elements, encode};

const SEEDS: [u64; 8] = [1, 2, 3, 5, 8, 13, 21, 34];
/// Commands of one seed; with all seeds well above 20 000.
const COMMANDS_PER_SEED: usize = 20_000;
const DEEPEST_PIPELINE: usize = 40;

type Arguments = Vec<Vec<u8>>;

/// How two replies are compared. Anything but `Exactly` is an exception that the README lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Exactly,
    /// The order of the elements is each server's own.
    AsSets,
    /// Client numbers are each server's own.
    WithoutClientId,
}

/// The one list of exceptions among the commands that are generated.
fn comparison(arguments: &[Vec<u8>]) -> Comparison {
    let word = |index: usize| {
        let word = arguments.get(index).map_or(&b""[..], |word| word);
        word.to_ascii_lowercase()
    };
    match (&word(0)[..], &word(1)[..]) {
        (b"keys", _) | (b"config", b"get") => Comparison::AsSets,
        (b"hello", _) | (b"client", b"id") => Comparison::WithoutClientId,
        _ => Comparison::Exactly,
    }
}

fn normal_form(reply: &[u8], comparison: Comparison) -> Vec<Vec<u8>> {
    match comparison {
        Comparison::Exactly => vec![reply.to_vec()],
        Comparison::AsSets => {
            let mut all = elements(reply);
            all.sort();
            all.push(reply[..1].to_vec());
            all
        }
        Comparison::WithoutClientId if reply[0] == b':' => vec![b":".to_vec()],
        Comparison::WithoutClientId => {
            let mut all = elements(reply);
            if all.is_empty() {
                all.push(reply.to_vec());
            }
            if let Some(id) = all.iter().position(|element| element == b"$2\r\nid\r\n") {
                all[id + 1] = b":id\r\n".to_vec();
            }
            all.push(reply[..1].to_vec());
            all
        }
    }
}

#[test]
fn replies_equal_those_of_redis() {
    let (redis, tremula) = (Server::redis(), Server::tremula(&["--threads", "2"]));
    let extra = std::env::var("TREMULA_SEED").ok();
    let extra = extra.map(|seed| seed.parse().expect("TREMULA_SEED is a number"));
    let mut total = 0;
    for seed in SEEDS.into_iter().chain(extra) {
        println!("seed {seed}");
        let mut pair = Pair::new(&redis, &tremula, seed);
        pair.run();
        total += pair.compared;
    }
    println!("{total} commands compared");
    assert!(total >= 20_000);
}

/// The two servers, spoken to in step.
struct Pair<'a> {
    redis: &'a Server,
    tremula: &'a Server,
    connections: [Connection; 2],
    random: StdRng,
    seed: u64,
    compared: usize,
}

impl<'a> Pair<'a> {
    fn new(redis: &'a Server, tremula: &'a Server, seed: u64) -> Self {
        Self {
            redis,
            tremula,
            connections: [redis.connect(), tremula.connect()],
            random: StdRng::seed_from_u64(seed),
            seed,
            compared: 0,
        }
    }

    fn run(&mut self) {
        self.pipeline(&[vec![b"FLUSHALL".to_vec()]], false);
        self.start();
        while self.compared < COMMANDS_PER_SEED {
            match self.random.random_range(0..100) {
                0..80 => {
                    let depth = match self.random.random_range(0..3) {
                        0 => 1,
                        _ => self.random.random_range(1..=DEEPEST_PIPELINE),
                    };
                    let commands: Vec<_> = (0..depth).map(|_| command(&mut self.random)).collect();
                    let inline = self.random.random_bool(0.2);
                    self.pipeline(&commands, inline);
                }
                80..86 => self.scan(),
                86..92 => self.last_words(),
                _ => self.noise(),
            }
        }
    }

    /// After a (re)connection: both versions of the protocol are spoken half of the time.
    fn start(&mut self) {
        if self.random.random_bool(0.5) {
            self.pipeline(&[vec![b"HELLO".to_vec(), b"3".to_vec()]], false);
        }
    }

    fn reconnect(&mut self) {
        self.connections = [self.redis.connect(), self.tremula.connect()];
        self.start();
    }

    fn send(&mut self, bytes: &[u8]) {
        for connection in &mut self.connections {
            connection.send(bytes);
        }
    }

    fn replies(&mut self) -> [Option<Vec<u8>>; 2] {
        self.connections.each_mut().map(Connection::reply)
    }

    /// Sends commands at once and compares their replies.
    fn pipeline(&mut self, commands: &[Arguments], inline: bool) {
        let encoded: Vec<_> = commands
            .iter()
            .map(|command| {
                if inline {
                    quote(command, &mut self.random)
                } else {
                    encode(command)
                }
            })
            .collect();
        self.send(&encoded.concat());
        for (command, bytes) in commands.iter().zip(&encoded) {
            let [redis, tremula] = self.replies();
            let comparison = comparison(command);
            let form = |reply: &Option<Vec<u8>>| {
                reply.as_ref().map(|reply| normal_form(reply, comparison))
            };
            assert!(
                form(&redis) == form(&tremula),
                "seed {}, command {}: {}\n redis:   {}\n tremula: {}",
                self.seed,
                self.compared,
                bytes.escape_ascii(),
                show(&redis),
                show(&tremula),
            );
            self.compared += 1;
        }
    }

    /// A whole iteration on both, compared as sets.
    fn scan(&mut self) {
        let random = &mut self.random;
        let mut options: Arguments = Vec::new();
        if random.random_bool(0.5) {
            options.extend([b"MATCH".to_vec(), pattern(random)]);
        }
        if random.random_bool(0.5) {
            let count = *[1, 2, 7, 100].choose(random).expect("some");
            options.extend([b"COUNT".to_vec(), count.to_string().into_bytes()]);
        }
        if random.random_bool(0.2) {
            let kind = *["string", "STRING", "list", "x"]
                .choose(random)
                .expect("some");
            options.extend([b"TYPE".to_vec(), kind.as_bytes().to_vec()]);
        }
        let [redis, tremula] = self.connections.each_mut().map(|connection| {
            let mut found = Vec::new();
            let mut cursor = b"0".to_vec();
            loop {
                let mut command = vec![b"SCAN".to_vec(), cursor];
                command.extend(options.iter().cloned());
                let page = elements(&connection.call(&command));
                found.extend(elements(&page[1]));
                cursor = bulk(&page[0]);
                if cursor == b"0" {
                    break;
                }
            }
            found.sort();
            found.dedup();
            found
        });
        assert_eq!(redis, tremula, "seed {}: SCAN {options:?}", self.seed);
        self.compared += 1;
    }

    /// Input after which the server says one thing more and closes.
    fn last_words(&mut self) {
        let long = "1".repeat(70_000);
        let inputs: [&[u8]; 24] = [
            b"QUIT\r\n",
            b"*2\r\n$4\r\nquit\r\n$1\r\nx\r\n",
            b"*1\r\n$4\r\nPOST\r\n",
            b"Host: localhost\r\n",
            b"*x\r\n",
            b"*01\r\n",
            b"* 1\r\n",
            b"*+1\r\n",
            b"*\r\n",
            b"*2147483648\r\n",
            b"*9223372036854775808\r\n",
            b"*1\r\n:1\r\n",
            b"*1\r\n\n\r\n",
            b"*1\r\n\xff\r\n",
            b"*1\r\n\r\n\r\n",
            b"*1\r\n$-1\r\n",
            b"*1\r\n$536870913\r\n",
            b"*1\r\n$x\r\n",
            b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n+1\r\n",
            b"set a \"b\r\n",
            b"set a 'b'c\r\n",
            &[b"*", long.as_bytes()].concat(),
            &[b"*1\r\n$", long.as_bytes()].concat(),
            long.as_bytes(),
        ];
        let input = *inputs.choose(&mut self.random).expect("some");
        self.pipeline(&[vec![b"PING".to_vec()]], false);
        self.send(input);
        loop {
            let [redis, tremula] = self.replies();
            let input = input[..input.len().min(80)].escape_ascii();
            assert!(
                redis == tremula,
                "seed {}: {input}\n redis:   {}\n tremula: {}",
                self.seed,
                show(&redis),
                show(&tremula),
            );
            if redis.is_none() {
                break;
            }
        }
        self.compared += 1;
        self.reconnect();
    }

    /// Valid input with some bytes changed, and then the end of it.
    fn noise(&mut self) {
        let random = &mut self.random;
        let mut bytes = Vec::new();
        for _ in 0..random.random_range(1..6) {
            let words: &[&[u8]] = match random.random_range(0..4) {
                0 => &[b"PING"],
                1 => &[b"ECHO", b"world"],
                2 => &[b"SET", b"noise", b"12345678901"],
                _ => &[b"GET", b"noise"],
            };
            bytes.extend(encode(words));
        }
        for _ in 0..random.random_range(1..4) {
            let index = random.random_range(0..bytes.len());
            match random.random_range(0..3) {
                0 => bytes[index] = *b"*$\r\n\0-+019 \"'x".choose(random).expect("some"),
                1 => bytes[index] = random.random(),
                _ => drop(bytes.remove(index)),
            }
        }
        self.send(&bytes);
        for connection in &self.connections {
            connection.finish();
        }
        loop {
            let [redis, tremula] = self.replies();
            assert!(
                redis == tremula,
                "seed {}: {}\n redis:   {}\n tremula: {}",
                self.seed,
                bytes.escape_ascii(),
                show(&redis),
                show(&tremula),
            );
            if redis.is_none() {
                break;
            }
            self.compared += 1;
        }
        self.reconnect();
    }
}

fn show(reply: &Option<Vec<u8>>) -> String {
    match reply {
        Some(reply) => reply[..reply.len().min(400)].escape_ascii().to_string(),
        None => "closed".to_owned(),
    }
}

/// A command as an inline line, each word quoted in one of the ways there are.
fn quote(arguments: &[Vec<u8>], random: &mut StdRng) -> Vec<u8> {
    let mut line = Vec::new();
    for argument in arguments {
        if !line.is_empty() {
            line.push(b' ');
        }
        let plain = argument
            .iter()
            .all(|byte| byte.is_ascii_graphic() && !b"\"'\\".contains(byte));
        if plain && !argument.is_empty() && random.random_bool(0.7) {
            line.extend(argument);
        } else if plain && random.random_bool(0.5) {
            line.push(b'\'');
            line.extend(argument);
            line.push(b'\'');
        } else {
            line.push(b'"');
            for byte in argument {
                match byte {
                    b'"' | b'\\' => line.extend([b'\\', *byte]),
                    b'\n' => line.extend(b"\\n"),
                    b' '..=b'~' => line.push(*byte),
                    _ => line.extend(format!("\\x{byte:02x}").bytes()),
                }
            }
            line.push(b'"');
        }
    }
    line.extend(if random.random_bool(0.5) {
        &b"\r\n"[..]
    } else {
        b"\n"
    });
    line
}

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

fn pattern(random: &mut StdRng) -> Vec<u8> {
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
fn command(random: &mut StdRng) -> Arguments {
    let mut arguments = well_formed(random);
    match random.random_range(0..40) {
        0 => arguments.push(value(random)),
        1 if arguments.len() > 1 => drop(arguments.pop()),
        2 => arguments.truncate(1),
        3 => {
            let index = random.random_range(0..arguments.len());
            // Not a command's name: the result could be a command that Tremula lacks.
            if index > 0 {
                arguments[index] = value(random);
            }
        }
        _ => (),
    }
    // What must not become something else by these changes.
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
    if random.random_bool(0.1) {
        return about_the_server(random);
    }
    arguments[0] = match random.random_range(0..3) {
        0 => name,
        _ => name.to_ascii_uppercase(),
    };
    arguments
}

fn words(words: &[&str]) -> Arguments {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

fn well_formed(random: &mut StdRng) -> Arguments {
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
            let mut all = vec![name("exists")];
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
            // Not an offset that makes a string of half a gigabyte.
            let far = ["536870912", "9223372036854775807", "-1", "x", "300"];
            let offset = match random.random_range(0..3) {
                0 => name(far.choose(random).expect("some")),
                _ => random.random_range(0..30).to_string().into_bytes(),
            };
            vec![name("setrange"), key(random), offset, value(random)]
        }
        86..88 => vec![name("type"), key(random)],
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

/// Commands about the server and the connection that have one right answer.
fn about_the_server(random: &mut StdRng) -> Arguments {
    let all: [&[&str]; 62] = [
        &["hello"],
        &["hello", "2"],
        &["HELLO", "3"],
        &["hello", "3", "setname", "bob"],
        &["hello", "2", "SETNAME", "a b"],
        &["hello", "2", "setname"],
        &["hello", "3", "auth", "default", "x"],
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
