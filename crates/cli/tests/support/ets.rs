//! Commands of tables as text, and their replies.

use super::PATIENCE;
use super::resp::{Connection, bulk};
use std::thread;
use std::time::{Duration, Instant};

/// Calls a command whose parts are separated by two blanks, and returns the text of its reply.
pub(crate) fn ask(client: &mut Connection, command: &str) -> String {
    let arguments: Vec<_> = command.split("  ").collect();
    let reply = client.call(&arguments);
    match reply[0] {
        b'$' => String::from_utf8(bulk(&reply)).expect("text"),
        _ => String::from_utf8(reply)
            .expect("text")
            .trim_end()
            .to_owned(),
    }
}

pub(crate) fn check(client: &mut Connection, steps: &[(&str, &str)]) {
    for (command, expected) in steps {
        assert_eq!(ask(client, command), *expected, "{command}");
    }
}

/// Asks repeatedly until the answer is `expected`.
pub(crate) fn await_answer(client: &mut Connection, command: &str, expected: &str) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = ask(client, command);
        if answer == expected {
            return;
        }
        assert!(Instant::now() < deadline, "{command}: {answer}");
        thread::sleep(Duration::from_millis(2));
    }
}
