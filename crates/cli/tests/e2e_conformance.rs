//! Sends the same commands to a real `redis-server` 7.0 and to `tremula`, and compares every reply
//! byte for byte.
//!
//! The streams are generated from seeds, which are printed; `TREMULA_SEED` adds one. The permitted
//! differences are all in [`comparison`], and are documented in `crates/server/README.md`. The test
//! would fail on a wrong value, type, error text, order of replies, null of the wrong version, or a
//! connection that only one server closes.

#[path = "support/generator.rs"]
mod generator;
mod support;

use generator::{Arguments, command, pattern, transaction};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use support::Server;
use support::resp::{Connection, bulk, elements, encode};

const SEEDS: [u64; 8] = [1, 2, 3, 5, 8, 13, 21, 34];
/// Commands of one seed.
const COMMANDS_PER_SEED: usize = 20_000;
const DEEPEST_PIPELINE: usize = 40;

/// How two replies are compared. Every variant except `Exactly` is an exception that the README
/// lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Exactly,
    /// Each server has its own order of the elements.
    AsSets,
    /// Each server has its own client numbers.
    WithoutClientId,
    /// Each server averages the times of other keys.
    WithoutAverage,
    /// The last time of a key here is in the year 10889.
    UpToTheLastTime,
    /// Redis without a password takes any for its default user. Tremula takes none.
    PasswordRefused,
}

/// All exceptions among the generated commands.
fn comparison(arguments: &[Vec<u8>]) -> Comparison {
    let word = |index: usize| {
        let word = arguments.get(index).map_or(&b""[..], |word| word);
        word.to_ascii_lowercase()
    };
    match (&word(0)[..], &word(1)[..]) {
        (b"auth", b"default") if arguments.len() == 3 => Comparison::PasswordRefused,
        (b"keys", _) | (b"config", b"get") => Comparison::AsSets,
        (b"info", _) => Comparison::WithoutAverage,
        (b"expiretime" | b"pexpiretime" | b"ttl" | b"pttl", _) => Comparison::UpToTheLastTime,
        (b"hello", _) | (b"client", b"id") => Comparison::WithoutClientId,
        _ => Comparison::Exactly,
    }
}

fn normal_form(reply: &[u8], comparison: Comparison) -> Vec<Vec<u8>> {
    match comparison {
        Comparison::Exactly => vec![reply.to_vec()],
        // One is a success and the other an error. A test of attacks looks at the latter.
        Comparison::PasswordRefused => Vec::new(),
        Comparison::UpToTheLastTime => {
            const LAST_SECOND: u64 = 281_474_976_710;
            let text = String::from_utf8_lossy(reply);
            let number = text.trim_start_matches(':').trim_end().parse::<u64>();
            match number {
                Ok(LAST_SECOND..) => vec![b"late".to_vec()],
                _ => vec![reply.to_vec()],
            }
        }
        Comparison::WithoutAverage => {
            // Behind the length, which depends on it.
            let text = reply.splitn(2, |byte| *byte == b'\n').last();
            let text = String::from_utf8_lossy(text.unwrap_or_default());
            let mut parts = text.split("avg_ttl=");
            let first = parts.next().into_iter();
            let rest = parts.map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()));
            let all = first.chain(rest).map(|part| part.as_bytes().to_vec());
            all.chain([reply[..1].to_vec()]).collect()
        }
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
    let (mut total, mut transactions) = (0, 0);
    for seed in SEEDS.into_iter().chain(extra) {
        println!("seed {seed}");
        let mut pair = Pair::new(&redis, &tremula, seed);
        pair.run();
        total += pair.compared;
        transactions += pair.transactions;
    }
    println!("{total} commands compared, {transactions} transactions have run");
    assert!(transactions >= 200, "most transactions are spoilt");
    assert!(total >= 20_000);
}

/// Every value that is appended to is in the cache, under each strategy, and none is evicted.
#[test]
fn replies_equal_those_of_redis_with_values_in_the_cache() {
    let redis = Server::redis();
    for (strategy, seed) in [("threading", 55), ("local_set", 89), ("affinity", 144)] {
        let cache = ["--cache", "256mb", "--cache-from", "1"];
        let arguments = [&["--threads", "2", "--strategy", strategy][..], &cache].concat();
        let tremula = Server::tremula(&arguments);
        println!("{strategy}, seed {seed}");
        Pair::new(&redis, &tremula, seed).run();
    }
}

/// The two servers, which get the same commands.
struct Pair<'a> {
    redis: &'a Server,
    tremula: &'a Server,
    connections: [Connection; 2],
    random: StdRng,
    seed: u64,
    compared: usize,
    /// Transactions that have run.
    transactions: usize,
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
            transactions: 0,
        }
    }

    fn run(&mut self) {
        self.pipeline(&[vec![b"FLUSHALL".to_vec()]], false);
        self.start();
        while self.compared < COMMANDS_PER_SEED {
            match self.random.random_range(0..100) {
                0..6 => {
                    let commands = transaction(&mut self.random);
                    self.pipeline(&commands, false);
                }
                6..80 => {
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

    /// After a connection, chooses each version of the protocol half of the time.
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

    /// Sends commands in one pipeline and compares their replies.
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
            let has_run = tremula.is_some_and(|reply| reply[0] == b'*' && reply[1] != b'-');
            self.transactions += usize::from(command[0] == b"EXEC" && has_run);
        }
    }

    /// Compares a whole iteration on both servers as sets.
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

    /// Sends input after which a server replies once more and closes.
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
        self.until_closed(&input[..input.len().min(80)]);
        self.compared += 1;
    }

    /// Compares the replies to this input until both servers close, and connects again. Returns the
    /// number of replies.
    fn until_closed(&mut self, input: &[u8]) -> usize {
        let mut count = 0;
        loop {
            let [redis, tremula] = self.replies();
            assert!(
                redis == tremula,
                "seed {}: {}\n redis:   {}\n tremula: {}",
                self.seed,
                input.escape_ascii(),
                show(&redis),
                show(&tremula),
            );
            if redis.is_none() {
                self.reconnect();
                return count;
            }
            count += 1;
        }
    }

    /// Sends valid input with some changed bytes, and ends the input.
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
        self.compared += self.until_closed(&bytes);
    }
}

fn show(reply: &Option<Vec<u8>>) -> String {
    match reply {
        Some(reply) => reply[..reply.len().min(400)].escape_ascii().to_string(),
        None => "closed".to_owned(),
    }
}

/// A command as an inline line, each word quoted in a random way.
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
