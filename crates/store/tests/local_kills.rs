//! Maps that are kept in a directory, by a process that is killed.
//!
//! By itself: a child that another test starts holds, until it runs, the locks of all directories
//! that this process has open.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use tremula_store::local::{Durability, DurableMap, LocalOptions, WriteBatch};

fn options() -> LocalOptions {
    LocalOptions::default().segment_bytes(16 << 10)
}

/// The directory in which a child writes.
const DIRECTORY: &str = "TREMULA_LOCAL_CHILD";

/// Begins a line of a child that says which number is on the disk.
const DONE: &str = "done ";

const WRITERS: u64 = 3;

/// Three threads write pairs in one batch each; a number is printed once the map says that it is on
/// the disk.
fn write_until_killed(directory: &Path) -> ! {
    let options = options()
        .durability(Durability::Always)
        .snapshot_every(64 << 10);
    let map = DurableMap::<(u64, char), u64>::open_with(directory, &options).expect("a whole map");
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let map = map.clone();
            scope.spawn(move || {
                let begin = map.get(&(writer, 'a')).expect("its type").unwrap_or(0);
                for number in begin + 1.. {
                    let mut batch = WriteBatch::new();
                    batch.insert(&(writer, 'a'), &number);
                    batch.insert(&(writer, 'z'), &number);
                    batch.insert(&(WRITERS + number % 50, 'f'), &number);
                    map.write(batch).expect("written");
                    let line = format!("{DONE}{writer} {number}\n");
                    let mut out = std::io::stdout().lock();
                    out.write_all(line.as_bytes()).expect("a reader");
                    out.flush().expect("a reader");
                }
            });
        }
    });
    unreachable!("it was killed")
}

fn start_child(test: &str, directory: &Path) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(env::current_exe().expect("this program"))
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let out = BufReader::new(child.stdout.take().expect("its output"));
    (child, out)
}

#[test]
fn what_was_written_survives_kills_and_batches_are_whole() {
    if let Some(directory) = env::var_os(DIRECTORY) {
        write_until_killed(Path::new(&directory));
    }
    let test = "what_was_written_survives_kills_and_batches_are_whole";
    let directory = tempfile::tempdir().expect("a directory");
    let mut told = [0; WRITERS as usize];
    for kill in 0..6_u64 {
        let (mut child, out) = start_child(test, directory.path());
        // How many lines it may write.
        let mut left = 20 + kill * 67 % 90;
        for line in out.lines() {
            let line = line.expect("text");
            let Some(rest) = line.split(DONE).nth(1) else {
                continue;
            };
            let (writer, number) = rest.split_once(' ').expect("two numbers");
            let writer: usize = writer.parse().expect("a number");
            told[writer] = number.trim().parse().expect("a number");
            left -= 1;
            if left == 0 {
                child.kill().expect("killed");
                // What it has said before still comes.
                left = u64::MAX;
            }
        }
        child.wait().expect("its status");
        let map = DurableMap::<(u64, char), u64>::open_with(directory.path(), &options());
        let map = map.expect("a whole map");
        for (writer, told) in (0..).zip(told) {
            let halves = ['a', 'z'].map(|half| map.get(&(writer, half)).expect("its type"));
            assert_eq!(halves[0], halves[1], "half of a batch after kill {kill}");
            let there = halves[0].unwrap_or(0);
            assert!(
                there >= told,
                "kill {kill}: {told} was said, {there} is there"
            );
        }
    }
    assert!(
        told.iter().sum::<u64>() > 100,
        "{told:?} is too few to tell"
    );
}
