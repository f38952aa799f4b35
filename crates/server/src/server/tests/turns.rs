//! No command holds its thread: while it runs, another client of the thread is answered.
//!
//! Clients and worker share one thread, and a turn is over at every look at the clock. So the tests
//! do not depend on speed. They fail if a command runs to its end at once: then its whole reply is
//! there before the other client's.

use super::*;

const KEYS: usize = 15_000;

/// Behind a reply, the mark of its end.
const MARK: &[u8] = b"$3\r\nend\r\n";

impl Visitor {
    /// Sends commands, each a list of words, and at last asks for the mark, all in one packet.
    async fn send_with_mark(&mut self, commands: &[Vec<String>]) -> io::Result<()> {
        let mut packet = Vec::new();
        for command in commands.iter().chain([&words("ECHO end")]) {
            packet.extend(format!("*{}\r\n", command.len()).bytes());
            for word in command {
                packet.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
            }
        }
        self.0.write_all(&packet).await
    }

    /// Reads replies up to the mark.
    async fn replies(&mut self) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        while !all.ends_with(MARK) {
            self.0.read_buf(&mut all).await?;
        }
        Ok(all)
    }

    /// How much of the replies has arrived, up to this number of bytes.
    fn arrived(&self, most: usize) -> usize {
        let mut bytes = vec![std::mem::MaybeUninit::uninit(); most];
        match SockRef::from(&self.0).peek(&mut bytes) {
            Ok(arrived) => arrived,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => panic!("the connection is lost: {error}"),
        }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn key(number: usize) -> String {
    format!("key:{number:05}")
}

/// A command with every key, and perhaps with something behind each.
fn with_keys(name: &str, behind: Option<&str>) -> Vec<String> {
    let keys = (0..KEYS).flat_map(|number| [Some(key(number)), behind.map(str::to_owned)]);
    std::iter::once(name.to_owned())
        .chain(keys.flatten())
        .collect()
}

/// Lets a client send commands, and lets the other be answered while they run. Returns the replies.
async fn visit(
    slow: &mut Visitor,
    other: &mut Visitor,
    commands: &[Vec<String>],
    least: usize,
) -> io::Result<String> {
    let name = commands[0].join(" ").chars().take(30).collect::<String>();
    slow.send_with_mark(commands).await?;
    let runs = format!("cmd={} ", commands[0][0].to_ascii_lowercase());
    loop {
        other.send("CLIENT LIST").await?;
        let list = other.reply().await?;
        let arrived = slow.arrived(least);
        assert!(arrived < least, "{name} held its thread until its reply");
        if list.contains(&runs) {
            break;
        }
    }
    let replies = slow.replies().await?;
    assert!(replies.len() >= least, "{name}");
    let replies = &replies[..replies.len() - MARK.len()];
    Ok(String::from_utf8_lossy(replies).into_owned())
}

#[test]
fn no_command_holds_its_thread() {
    let runtime = event_loop().expect("an event loop");
    let visits = async {
        let limits = Limits {
            turn: TurnLimits {
                time: Time(Duration::ZERO),
                ..TurnLimits::default()
            },
            ..Limits::default()
        };
        let shared = Arc::new(shared(limits));
        let (sockets, incoming) = mpsc::unbounded_channel();
        let worker = tokio::spawn(work(incoming, Arc::clone(&shared), 0, Arc::default()));
        let slow = &mut Visitor::come(&sockets, &shared).await?;
        let other = &mut Visitor::come(&sockets, &shared).await?;

        let all = [with_keys("MSET", Some("v"))];
        assert_eq!(visit(slow, other, &all, 5 + MARK.len()).await?, "+OK\r\n");
        let listed: String = (0..KEYS)
            .map(|at| format!("$9\r\n{}\r\n", key(at)))
            .collect();
        let list = format!("*{KEYS}\r\n{listed}");
        let with_values: String = (0..KEYS)
            .map(|at| format!("$9\r\n{}\r\n$1\r\nv\r\n", key(at)))
            .collect();
        let with_values = format!("*{}\r\n{with_values}", 2 * KEYS);
        let values = format!("*{KEYS}\r\n{}", "$1\r\nv\r\n".repeat(KEYS));
        let count = format!(":{KEYS}\r\n");
        for (command, expected) in [
            (words("KEYS *"), list.clone()),
            (words("KEYS *5*4*3*2*1*0*"), "*0\r\n".to_owned()),
            (
                words("SCAN 0 COUNT 15001"),
                format!("*2\r\n$1\r\n0\r\n{list}"),
            ),
            (words("RANGE - +"), list.clone()),
            (words("RANGE - + WITHVALUES"), with_values),
            (with_keys("MGET", None), values),
            (with_keys("EXISTS", None), count.clone()),
            (with_keys("DEL", None), count.clone()),
        ] {
            let least = expected.len() + MARK.len();
            let replies = visit(slow, other, &[command], least).await?;
            assert!(replies == expected, "{replies:.100}");
        }

        // A pipeline gives way between its commands, short ones and such as write long replies.
        let reply = ":0\r\n".repeat(KEYS);
        let commands = vec![words("DBSIZE"); KEYS];
        assert_eq!(visit(slow, other, &commands, reply.len()).await?, reply);

        // What is of one moment runs on the thread apart, which is kept busy meanwhile.
        for (removal, expected) in [
            ("RANGE - + SNAPSHOT", &list),
            ("FLUSHALL", &"+OK\r\n".to_owned()),
            ("FLUSHDB", &"+OK\r\n".to_owned()),
            ("DELRANGE - +", &count),
        ] {
            visit(slow, other, &all, 5).await?;
            let (release, released) = std_mpsc::channel::<()>();
            let busy = tokio::task::spawn_blocking(move || released.recv());
            slow.send_with_mark(&[words(removal)]).await?;
            let name = removal.split(' ').next().unwrap_or_default();
            let runs = format!("cmd={} ", name.to_ascii_lowercase());
            loop {
                other.send("CLIENT LIST").await?;
                let list = other.reply().await?;
                assert_eq!(slow.arrived(1), 0, "{removal} held its thread");
                if list.contains(&runs) {
                    break;
                }
            }
            drop(release);
            let _ = busy.await.expect("it only waits");
            let replies = slow.replies().await?;
            let replies = String::from_utf8_lossy(&replies);
            assert!(replies.starts_with(expected), "{replies:.100}");
        }

        // Long values are copied in pieces, and the replies to some of them sent in pieces.
        let long = "x".repeat(4 << 20);
        let length = |length: usize| format!(":{length}\r\n");
        let bulk = format!("${}\r\n{long}\r\n", long.len());
        for (command, expected) in [
            (
                vec!["SET".to_owned(), "k".to_owned(), long.clone()],
                "+OK\r\n".to_owned(),
            ),
            (
                vec!["MSET".to_owned(), "k".to_owned(), long.clone()],
                "+OK\r\n".to_owned(),
            ),
            (words("GET k"), bulk),
            (words("APPEND k y"), length(long.len() + 1)),
            (words("SETRANGE k 6000000 z"), length(6_000_001)),
            (words("SETRANGE fresh 6000000 z"), length(6_000_001)),
        ] {
            let least = expected.len() + MARK.len();
            let replies = visit(slow, other, &[command], least).await?;
            assert!(replies == expected, "{replies:.100}");
        }
        slow.send("GETRANGE k 4194302 4194305").await?;
        assert_eq!(slow.reply().await?, "xxy\0");
        drop((sockets, worker));
        Ok::<(), io::Error>(())
    };
    let visited = runtime.block_on(async { tokio::time::timeout(PATIENCE, visits).await });
    visited.expect("in time").expect("connections hold");
}
