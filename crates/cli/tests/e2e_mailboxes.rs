//! Mailboxes over the server: order, waiting, and no loss when a client goes away.

mod support;

use std::thread;
use std::time::{Duration, Instant};
use support::resp::{Connection, bulk, elements, encode};
use support::{PATIENCE, Server};

fn texts(reply: &[u8]) -> Vec<String> {
    let text = |element: &Vec<u8>| String::from_utf8(bulk(element)).expect("text");
    elements(reply).iter().map(text).collect()
}

/// Waits until the mailbox `q` has a receiver, or has none.
fn await_receiver(client: &mut Connection, there: bool) {
    let wanted = format!("$9\r\nreceiving\r\n:{}\r\n", u8::from(there));
    let deadline = Instant::now() + PATIENCE;
    while !client.text("MAILBOX.INFO q").contains(&wanted) {
        assert!(
            Instant::now() < deadline,
            "no receiver came, or went: {there}"
        );
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn messages_are_received_in_the_order_of_their_sender() {
    let server = Server::tremula(&[]);
    let mut client = server.connect();
    assert_eq!(client.text("MAILBOX.NEW q"), "+OK\r\n");
    assert_eq!(client.text("MAILBOX.SEND q one two three"), ":3\r\n");
    assert_eq!(client.text("MAILBOX.LEN q"), ":3\r\n");
    assert_eq!(client.text("MAILBOX.RECV q"), "$3\r\none\r\n");
    assert_eq!(
        texts(&client.call(&["MAILBOX.RECV", "q", "COUNT", "9"])),
        ["two", "three"]
    );
    assert_eq!(client.text("MAILBOX.RECV q"), "$-1\r\n");
    assert_eq!(client.text("MAILBOX.RECV q COUNT 2"), "*-1\r\n");
    assert_eq!(client.text("MAILBOX.RECV q BLOCK 20"), "$-1\r\n");
    let info = client.text("MAILBOX.INFO q");
    assert!(info.contains("$4\r\nmode\r\n$4\r\nauto\r\n"), "{info}");
    assert!(
        info.contains("$17\r\nuncontended_sends\r\n:3\r\n"),
        "{info}"
    );
    client.text("MAILBOX.SEND q left");
    assert_eq!(client.text("MAILBOX.DROP q"), ":1\r\n");
}

#[test]
fn bad_requests_are_told_what_is_wrong() {
    let server = Server::tremula(&[]);
    let mut client = server.connect();
    client.text("MAILBOX.NEW q CAPACITY 2");
    for (command, error) in [
        ("MAILBOX.NEW q", "-ERR there is a mailbox 'q' already\r\n"),
        (
            "MAILBOX.NEW r MODE quick",
            "-ERR there is no mailbox mode 'quick'; there are auto, on_heap and off_heap\r\n",
        ),
        (
            "MAILBOX.NEW r CAPACITY 0",
            "-ERR capacity '0' is not a number of messages, 1 or more\r\n",
        ),
        ("MAILBOX.NEW r CAPACITY", "-ERR syntax error\r\n"),
        (
            "MAILBOX.SEND r x",
            "-NOMAILBOX there is no mailbox 'r'; MAILBOX.NEW makes one\r\n",
        ),
        (
            "MAILBOX.RECV r",
            "-NOMAILBOX there is no mailbox 'r'; MAILBOX.NEW makes one\r\n",
        ),
        (
            "MAILBOX.RECV q BLOCK -1",
            "-ERR timeout '-1' is not a number of milliseconds, 0 (for ever) or more\r\n",
        ),
        (
            "MAILBOX.RECV q COUNT 0",
            "-ERR count '0' is not a number of messages, 1 or more\r\n",
        ),
        (
            "MAILBOX.SEND q a b c",
            "-FULL mailbox 'q' is full at 2 messages: 2 of 3 were taken\r\n",
        ),
        (
            "MAILBOX.DROP r",
            "-NOMAILBOX there is no mailbox 'r'; MAILBOX.NEW makes one\r\n",
        ),
    ] {
        assert_eq!(client.text(command), error, "{command}");
    }
    assert_eq!(
        texts(&client.call(&["MAILBOX.RECV", "q", "COUNT", "5"])),
        ["a", "b"]
    );
}

#[test]
fn a_waiting_receiver_gets_what_is_sent_and_a_second_one_an_error() {
    let server = Server::tremula(&[]);
    let (mut sender, mut receiver) = (server.connect(), server.connect());
    sender.text("MAILBOX.NEW q");
    // The commands behind it in the pipeline wait, too.
    receiver.send(&encode(&["MAILBOX.RECV", "q", "BLOCK", "0"]));
    receiver.send(&encode(&["PING"]));
    await_receiver(&mut sender, true);
    assert_eq!(
        sender.text("MAILBOX.RECV q"),
        "-BUSY mailbox 'q' has a receiver already; it serves one at a time\r\n"
    );
    assert_eq!(sender.text("MAILBOX.SEND q hello"), ":1\r\n");
    assert_eq!(receiver.reply().unwrap(), b"$5\r\nhello\r\n");
    assert_eq!(receiver.reply().unwrap(), b"+PONG\r\n");
    // Dropping a mailbox wakes its receiver.
    receiver.send(&encode(&["MAILBOX.RECV", "q", "BLOCK", "0"]));
    await_receiver(&mut sender, true);
    assert_eq!(sender.text("MAILBOX.DROP q"), ":0\r\n");
    assert_eq!(
        receiver.reply().unwrap(),
        b"-NOMAILBOX mailbox 'q' was dropped\r\n"
    );
    // A sender to the old mailbox does not send to the new one of the same name.
    sender.text("MAILBOX.NEW q");
    assert_eq!(sender.text("MAILBOX.SEND q again"), ":1\r\n");
    assert_eq!(receiver.text("MAILBOX.RECV q"), "$5\r\nagain\r\n");
}

#[test]
fn a_receiver_that_goes_away_loses_nothing() {
    let server = Server::tremula(&[]);
    let mut sender = server.connect();
    sender.text("MAILBOX.NEW q");
    for round in 0..20 {
        let mut receiver = server.connect();
        receiver.send(&encode(&["MAILBOX.RECV", "q", "BLOCK", "0"]));
        await_receiver(&mut sender, true);
        drop(receiver);
        await_receiver(&mut sender, false);
        assert_eq!(sender.text(&format!("MAILBOX.SEND q {round}")), ":1\r\n");
        assert_eq!(
            bulk(&sender.call(&["MAILBOX.RECV", "q"])),
            round.to_string().as_bytes()
        );
    }
}

/// More bytes than the server reads ahead from a client that waits for a message.
const FAR_AHEAD: usize = 70_000;

/// A command that waits for a message in `q`, and behind it `bytes` bytes of other commands.
fn receive_with_others_behind(bytes: usize) -> Vec<u8> {
    let ping = encode(&["PING"]);
    let mut all = encode(&["MAILBOX.RECV", "q", "BLOCK", "0"]);
    all.extend(ping.repeat(bytes.div_ceil(ping.len())));
    all
}

/// The end of the client's input is then behind commands that are not read yet. A server that
/// notices the end only while reading keeps the mailbox for a client that is gone, and gives it the
/// next message.
#[test]
fn a_receiver_that_sends_much_ahead_and_goes_away_loses_nothing() {
    let server = Server::tremula(&["--threads", "2", "--gather", "no"]);
    let mut sender = server.connect();
    sender.text("MAILBOX.NEW q");
    for round in 0..3 {
        let mut receiver = server.connect();
        receiver.send(&receive_with_others_behind(FAR_AHEAD));
        await_receiver(&mut sender, true);
        drop(receiver);
        await_receiver(&mut sender, false);
        assert_eq!(sender.text(&format!("MAILBOX.SEND q {round}")), ":1\r\n");
        assert_eq!(
            sender.text("MAILBOX.RECV q BLOCK 1000"),
            format!("$1\r\n{round}\r\n")
        );
    }
}

/// Waits until the server's system knows that the client has ended its input. The client's own end
/// of the connection is then beyond ESTABLISHED (01) and FIN_WAIT1 (04).
fn await_end_of_input(client: &Connection) {
    let port = client.stream.local_addr().expect("its address").port();
    let ending = format!(":{port:04X}");
    let deadline = Instant::now() + PATIENCE;
    let is_open = || {
        let sockets = std::fs::read_to_string("/proc/net/tcp").expect("the sockets");
        sockets.lines().any(|line| {
            let mut words = line.split_whitespace().skip(1);
            let local = words.next().unwrap_or_default();
            let state = words.nth(1).unwrap_or_default();
            local.ends_with(&ending) && matches!(state, "01" | "04")
        })
    };
    while is_open() {
        assert!(Instant::now() < deadline, "the server does not acknowledge");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The message is sent after the client has ended its input. If the end is behind much input, the
/// message is sent before the server has checked for the end. A server that takes the message first
/// and checks the client later, or never, loses it.
#[test]
fn what_is_sent_after_a_receiver_left_is_not_given_to_it() {
    let server = Server::tremula(&["--threads", "2", "--gather", "no"]);
    // A connection on each thread.
    let mut senders = [server.connect(), server.connect()];
    senders[0].text("MAILBOX.NEW q");
    for round in 0..40 {
        let sender = &mut senders[round % 2];
        let mut receiver = server.connect();
        let behind = if round % 4 < 2 { 0 } else { FAR_AHEAD };
        receiver.send(&receive_with_others_behind(behind));
        await_receiver(sender, true);
        receiver.finish();
        await_end_of_input(&receiver);
        assert_eq!(sender.text(&format!("MAILBOX.SEND q {round}")), ":1\r\n");
        let received = sender.call(&["MAILBOX.RECV", "q", "BLOCK", "10000"]);
        assert_eq!(bulk(&received), round.to_string().as_bytes());
    }
}

/// One of the two permitted clients is gone, so there is room for another.
#[test]
fn a_receiver_that_sent_much_ahead_and_left_takes_no_place() {
    let server = Server::tremula(&["--max-clients", "2", "--reserved-clients", "0"]);
    let mut client = server.connect();
    client.text("MAILBOX.NEW q");
    let mut receiver = server.connect();
    receiver.send(&receive_with_others_behind(FAR_AHEAD));
    await_receiver(&mut client, true);
    drop(receiver);
    let deadline = Instant::now() + PATIENCE;
    while server.connect().call(&["PING"]) != b"+PONG\r\n" {
        assert!(Instant::now() < deadline, "its place is still taken");
        thread::sleep(Duration::from_millis(2));
    }
}

/// As with `nc -N`: the client has sent everything, and waits for the replies.
#[test]
fn a_client_that_ended_its_input_gets_the_messages_that_are_there() {
    let server = Server::tremula(&[]);
    let mut sender = server.connect();
    sender.text("MAILBOX.NEW q");
    sender.text("MAILBOX.SEND q one two");
    let mut receiver = server.connect();
    receiver.send(&encode(&["MAILBOX.RECV", "q"]));
    receiver.send(&encode(&["MAILBOX.RECV", "q", "BLOCK", "0"]));
    receiver.send(&encode(&["MAILBOX.RECV", "q", "BLOCK", "0"]));
    receiver.finish();
    assert_eq!(receiver.reply().unwrap(), b"$3\r\none\r\n");
    assert_eq!(receiver.reply().unwrap(), b"$3\r\ntwo\r\n");
    assert_eq!(receiver.reply().unwrap(), b"$-1\r\n");
    assert_eq!(receiver.reply(), None);
}

/// A connection keeps about a kilobyte for each mailbox that it has sent to. Some workers send each
/// answer to a mailbox made for it. The server would grow by that much with every answer if the
/// connection kept them all.
#[test]
fn a_connection_does_not_keep_the_mailboxes_that_were_dropped() {
    const MAILBOXES: usize = 40_000;
    const AT_ONCE: usize = 200;
    let server = Server::tremula(&["--threads", "1"]);
    let mut client = server.connect();
    let mut answer = |first: usize| {
        let mut commands = Vec::new();
        for number in first..first + AT_ONCE {
            let name = format!("reply:{number}");
            commands.extend(encode(&["MAILBOX.NEW", &name]));
            commands.extend(encode(&["MAILBOX.SEND", &name, "x"]));
            commands.extend(encode(&["MAILBOX.DROP", &name]));
        }
        client.send(&commands);
        for _ in 0..AT_ONCE {
            assert_eq!(client.reply().unwrap(), b"+OK\r\n");
            assert_eq!(client.reply().unwrap(), b":1\r\n");
            assert_eq!(client.reply().unwrap(), b":1\r\n");
        }
    };
    // The server allocates what it needs only once before the measurement begins.
    (0..5).for_each(|batch| answer(batch * AT_ONCE));
    let before = server.resident_kib();
    (5..MAILBOXES / AT_ONCE).for_each(|batch| answer(batch * AT_ONCE));
    let grown = server.resident_kib().saturating_sub(before);
    assert!(
        grown < 10 << 10,
        "{grown} KiB more after {MAILBOXES} mailboxes"
    );
}

/// A client leaves without reading its reply, which is far longer than the system's buffers. The
/// messages in the reply go back to the front.
#[test]
fn messages_that_could_not_be_written_go_back_in_order() {
    let server = Server::tremula(&[]);
    let mut sender = server.connect();
    sender.text("MAILBOX.NEW q");
    let message = |number: usize| vec![b'a' + number as u8; 4 << 20];
    for number in 0..8 {
        sender.call(&[&b"MAILBOX.SEND"[..], b"q", &message(number)]);
    }
    let mut receiver = server.connect();
    receiver.send(&encode(&["MAILBOX.RECV", "q", "COUNT", "6"]));
    await_receiver(&mut sender, true);
    drop(receiver);
    await_receiver(&mut sender, false);
    assert_eq!(sender.text("MAILBOX.LEN q"), ":8\r\n");
    for number in 0..8 {
        assert_eq!(
            bulk(&sender.call(&["MAILBOX.RECV", "q"])),
            message(number),
            "{number}"
        );
    }
}

#[test]
fn connections_send_at_once_and_each_keeps_its_order() {
    const SENDERS: usize = 4;
    const MESSAGES: usize = 2_000;
    let server = Server::tremula(&["--threads", "2", "--gather", "no"]);
    let mut receiver = server.connect();
    receiver.text("MAILBOX.NEW q");
    thread::scope(|scope| {
        for sender in 0..SENDERS {
            let mut client = server.connect();
            scope.spawn(move || {
                for number in 0..MESSAGES {
                    let message = format!("{sender} {number}");
                    assert_eq!(client.call(&["MAILBOX.SEND", "q", &message]), b":1\r\n");
                }
            });
        }
        let mut next = [0; SENDERS];
        while next.iter().sum::<usize>() < SENDERS * MESSAGES {
            let reply = receiver.call(&["MAILBOX.RECV", "q", "COUNT", "100", "BLOCK", "0"]);
            for message in texts(&reply) {
                let (sender, number) = message.split_once(' ').unwrap();
                let sender: usize = sender.parse().unwrap();
                assert_eq!(number.parse::<usize>().unwrap(), next[sender], "{message}");
                next[sender] += 1;
            }
        }
    });
    assert_eq!(receiver.text("MAILBOX.LEN q"), ":0\r\n");
}

#[test]
fn a_server_that_is_told_to_stop_lets_go_of_who_waits() {
    let mut server = Server::tremula(&[]);
    let (mut client, mut receiver) = (server.connect(), server.connect());
    client.text("MAILBOX.NEW q");
    receiver.send(&encode(&["MAILBOX.RECV", "q", "BLOCK", "0"]));
    await_receiver(&mut client, true);
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0));
    assert_eq!(receiver.reply(), Some(b"$-1\r\n".to_vec()));
    assert_eq!(receiver.reply(), None);
}

/// It gets the replies to everything that it has sent. If the server did not notice the request to
/// stop, it would exit without them when the drain time is over.
#[test]
fn a_server_that_is_told_to_stop_answers_who_waits_and_sent_much_ahead() {
    let mut server = Server::tremula(&[]);
    let (mut client, mut receiver) = (server.connect(), server.connect());
    client.text("MAILBOX.NEW q");
    receiver.send(&receive_with_others_behind(FAR_AHEAD));
    await_receiver(&mut client, true);
    server.signal("TERM");
    assert_eq!(receiver.reply(), Some(b"$-1\r\n".to_vec()));
    assert_eq!(receiver.reply(), Some(b"+PONG\r\n".to_vec()));
    assert_eq!(server.wait().code(), Some(0));
}
