//! Sends transactions, and checks that the server did what was asked.
//!
//! `redis-benchmark` sends one command at a time, so it has no transactions of random keys: here a
//! thread of this program is a client, the same for every server.

use super::{
    client::{Checked, Client, VALUE, encoded, fill, for_each_key, key},
    process::ServerProcess,
};
use crate::{
    LabError,
    measure::{Lap, Sample, Span, together_for},
    workload::{Transaction, TransactionJob},
};
use std::{io, net::SocketAddr};

/// Empties the server, fills it as the transaction needs, and has clients send the transaction for
/// as long as the job says.
pub(super) fn measure(
    engine: &'static str,
    server: &ServerProcess,
    job: &TransactionJob,
) -> Result<Sample, LabError> {
    let lost = |error: io::Error| LabError::Program {
        program: engine.to_owned(),
        error,
    };
    let wrong = |fault| LabError::Wrong { engine, fault };
    let mut client = Client::connect(server.address).map_err(lost)?;
    replies_are_right(&mut client, job.transaction)
        .map_err(lost)?
        .map_err(wrong)?;
    if job.transaction != Transaction::Exec {
        fill(&mut client, job.keys).map_err(lost)?.map_err(wrong)?;
    }
    let streams: Vec<_> = (0..job.clients).map(|client| job.stream(client)).collect();
    let commands: Vec<_> = streams
        .iter()
        .map(|stream| commands(job.transaction, stream))
        .collect();
    let before = server.work();
    let timed = together_for(job.clients, Span::warmed(job.duration), |client, lap| {
        send(server.address, job, &commands[client], lap)
    });
    let worked = server
        .work()
        .zip(before)
        .map(|(now, before)| now.saturating_sub(before));
    let mut sent = Vec::new();
    for result in timed.results {
        sent.push(result.map_err(lost)?.map_err(wrong)?);
    }
    check(&mut client, job, &streams, &sent)
        .map_err(lost)?
        .map_err(wrong)?;
    let mut sample = Sample::new(timed.operations, timed.elapsed);
    if let Some(worked) = worked {
        // The server works for the warm-up, too.
        let all = sent.iter().sum::<usize>();
        let each = worked.as_secs_f64() * 1e6 / all as f64;
        sample
            .figures
            .push(("server_us_per_transaction".to_owned(), each));
    }
    Ok(sample)
}

/// The commands of each transaction of a stream of keys.
fn commands(transaction: Transaction, stream: &[u64]) -> Vec<Vec<u8>> {
    let transactions = stream.chunks_exact(transaction.keys());
    transactions
        .map(|numbers| {
            let keys: Vec<_> = numbers.iter().map(|number| key(*number)).collect();
            one(transaction, &keys)
        })
        .collect()
}

/// The commands of one transaction.
fn one(transaction: Transaction, keys: &[String]) -> Vec<u8> {
    let sets = |keys: &[String]| -> Vec<u8> {
        let sets = keys.iter().flat_map(|key| encoded(&["SET", key, VALUE]));
        sets.collect()
    };
    let (asked, set) = keys.split_at(keys.len() / 2);
    match transaction {
        Transaction::Exec => [encoded(&["MULTI"]), sets(keys), encoded(&["EXEC"])].concat(),
        Transaction::Txn => {
            let mut words = vec!["TXN", "IF"];
            words.extend(asked.iter().flat_map(|key| ["VALUE", key, VALUE]));
            words.push("THEN");
            words.extend(set.iter().flat_map(|key| ["3", "SET", key, VALUE]));
            encoded(&words)
        }
        Transaction::Plain => {
            let gets = asked.iter().flat_map(|key| encoded(&["GET", key]));
            gets.chain(sets(set)).collect()
        }
    }
}

/// What a server answers to one transaction.
fn answer(transaction: Transaction) -> String {
    let half = transaction.keys() / 2;
    let done = |count| "+OK\r\n".repeat(count);
    match transaction {
        Transaction::Exec => {
            let count = transaction.keys();
            let queued = "+QUEUED\r\n".repeat(count);
            format!("+OK\r\n{queued}*{count}\r\n{}", done(count))
        }
        Transaction::Txn => format!("*2\r\n:1\r\n*{half}\r\n{}", done(half)),
        Transaction::Plain => {
            let got = format!("${}\r\n{VALUE}\r\n", VALUE.len());
            format!("{}{}", got.repeat(half), done(half))
        }
    }
}

/// Sends the transactions, and again from the first one on, a pipeline at a time, until the time is
/// up. Returns how many; the inner error is a wrong answer.
fn send(
    address: SocketAddr,
    job: &TransactionJob,
    commands: &[Vec<u8>],
    lap: &mut Lap<'_>,
) -> io::Result<Result<usize, String>> {
    let at_once = job.pipelining.requests() as usize;
    let pipelines: Vec<_> = commands.chunks_exact(at_once).map(<[_]>::concat).collect();
    let expected = answer(job.transaction).repeat(at_once).into_bytes();
    let mut client = Client::connect(address)?;
    let mut sent = 0;
    for pipeline in pipelines.iter().cycle() {
        client.send_all(pipeline)?;
        if let Err(fault) = client.receive_all(&expected)? {
            return Ok(Err(fault));
        }
        sent += at_once;
        if !lap.done(at_once as u64) {
            break;
        }
    }
    Ok(Ok(sent))
}

/// Checks that what the transaction is made of answers as it should. Empties the server before and
/// after.
fn replies_are_right(client: &mut Client, transaction: Transaction) -> Checked {
    let set = (&["SET", "a", "old"][..], "+OK\r\n");
    let transaction: &[(&[&str], &str)] = match transaction {
        Transaction::Exec => &[
            (&["MULTI"], "+OK\r\n"),
            (&["GET", "a"], "+QUEUED\r\n"),
            (&["SET", "a", "xyz"], "+QUEUED\r\n"),
            (&["EXEC"], "*2\r\n$3\r\nold\r\n+OK\r\n"),
        ],
        Transaction::Txn => &[
            (
                &["TXN", "IF", "VALUE", "a", "no", "THEN", "2", "DEL", "a"],
                "*2\r\n:0\r\n*0\r\n",
            ),
            (
                &[
                    "TXN", "IF", "VALUE", "a", "old", "THEN", "3", "SET", "a", "xyz",
                ],
                "*2\r\n:1\r\n*1\r\n+OK\r\n",
            ),
        ],
        Transaction::Plain => &[(&["SET", "a", "xyz"], "+OK\r\n")],
    };
    let before = [(&["FLUSHALL"][..], "+OK\r\n"), set];
    let after = [
        (&["GET", "a"][..], "$3\r\nxyz\r\n"),
        (&["FLUSHALL"], "+OK\r\n"),
        (&["DBSIZE"], ":0\r\n"),
    ];
    for (words, expected) in before.iter().chain(transaction).chain(&after) {
        client.send(words)?;
        if let Err(fault) = client.receive_all(expected.as_bytes())? {
            return Ok(Err(format!("'{}': {fault}", words.join(" "))));
        }
    }
    Ok(Ok(()))
}

/// Checks that the server has the keys that this many transactions of each stream must have left,
/// and no others.
fn check(
    client: &mut Client,
    job: &TransactionJob,
    streams: &[Vec<u64>],
    sent: &[usize],
) -> Checked {
    let mut is_there = vec![job.transaction != Transaction::Exec; job.keys as usize];
    for (stream, sent) in streams.iter().zip(sent) {
        // From the end of the stream on the transactions repeat.
        for number in stream.iter().take(sent * job.transaction.keys()) {
            is_there[*number as usize] = true;
        }
    }
    let value = format!("${} {VALUE}", VALUE.len());
    let mut expected = is_there.iter().map(|there| match there {
        true => value.as_bytes(),
        false => b"$-1",
    });
    let get = |number| encoded(&["GET", &key(number)]);
    let done = for_each_key(client, job.keys, get, |answer| {
        expected.next() == Some(answer)
    })?;
    let size = client.ask(&["DBSIZE"])?;
    let count = is_there.iter().filter(|there| **there).count();
    Ok(done.and_then(|()| {
        if size == format!(":{count}").into_bytes() {
            return Ok(());
        }
        let size = String::from_utf8_lossy(&size);
        Err(format!("DBSIZE is answered '{size}', not ':{count}'"))
    }))
}

#[cfg(test)]
mod tests {
    use super::{super::client::tests::served, *};
    use crate::workload::Pipelining;
    use std::time::Duration;

    fn job(transaction: Transaction) -> TransactionJob {
        TransactionJob {
            transaction,
            pipelining: Pipelining::None,
            clients: 2,
            keys: 30,
            seed: 42,
            run: 0,
            duration: Duration::from_millis(1),
        }
    }

    /// The words of encoded commands, and how many commands these are.
    fn words(commands: &[u8]) -> (usize, Vec<String>) {
        let text = String::from_utf8(commands.to_vec()).unwrap();
        let lines: Vec<_> = text.split_terminator("\r\n").collect();
        let is_head = |line: &&&str| line.starts_with('*');
        let words = lines.iter().filter(|line| !line.starts_with(['*', '$']));
        (
            lines.iter().filter(is_head).count(),
            words.map(ToString::to_string).collect(),
        )
    }

    #[test]
    fn a_transaction_names_all_of_its_keys_in_order() {
        for transaction in Transaction::ALL {
            let job = job(transaction);
            let stream = job.stream(1);
            assert_eq!(stream.len(), TransactionJob::STREAM * transaction.keys());
            assert_ne!(stream, job.stream(0));
            let all = commands(transaction, &stream);
            assert_eq!(all.len(), TransactionJob::STREAM);
            for (numbers, commands) in stream.chunks(transaction.keys()).zip(all) {
                let (_, words) = words(&commands);
                let keys: Vec<_> = words.iter().filter(|word| word.contains(':')).collect();
                let expected: Vec<_> = numbers.iter().map(|number| key(*number)).collect();
                assert!(keys.into_iter().eq(&expected), "{words:?}");
            }
        }
    }

    #[test]
    fn a_transaction_has_its_commands() {
        let keys: Vec<_> = (0..10).map(|number| number.to_string()).collect();
        let (count, exec) = words(&one(Transaction::Exec, &keys));
        assert_eq!((count, &*exec[0], &*exec[31]), (12, "MULTI", "EXEC"));
        let sets = exec[1..31].chunks(3);
        assert!(
            sets.into_iter()
                .all(|set| set[0] == "SET" && set[2] == "abc")
        );
        let keys = &keys[..8];
        assert_eq!(
            words(&one(Transaction::Txn, keys)),
            (
                1,
                "TXN IF VALUE 0 abc VALUE 1 abc VALUE 2 abc VALUE 3 abc THEN 3 SET 4 abc \
                 3 SET 5 abc 3 SET 6 abc 3 SET 7 abc"
                    .split(' ')
                    .map(str::to_owned)
                    .collect()
            )
        );
        assert_eq!(
            words(&one(Transaction::Plain, keys)).1.join(" "),
            "GET 0 GET 1 GET 2 GET 3 SET 4 abc SET 5 abc SET 6 abc SET 7 abc"
        );
    }

    #[test]
    fn answers_are_counted() {
        assert_eq!(answer(Transaction::Exec).matches("\r\n").count(), 22);
        assert_eq!(
            answer(Transaction::Txn),
            "*2\r\n:1\r\n*4\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n"
        );
        let plain = answer(Transaction::Plain);
        assert_eq!(plain.matches("$3\r\nabc\r\n").count(), 4);
        assert_eq!(plain.matches("+OK\r\n").count(), 4);
    }

    #[test]
    fn what_transactions_left_is_compared() {
        let job = job(Transaction::Exec);
        let streams = [job.stream(0), job.stream(1)];
        let client = &mut served("");
        // The first client sends one transaction, the second one none.
        for number in &streams[0][..10] {
            client.ask(&["SET", &key(*number), VALUE]).unwrap();
        }
        let mut check = |sent: [usize; 2]| check(client, &job, &streams, &sent).unwrap();
        assert_eq!(check([1, 0]), Ok(()));
        for wrong in [[0, 0], [2, 0], [1, 1]] {
            assert!(check(wrong).is_err(), "{wrong:?}");
        }
        client.ask(&["SET", "other", VALUE]).unwrap();
        let more = super::check(client, &job, &streams, &[1, 0]).unwrap();
        assert!(more.unwrap_err().contains("DBSIZE"));
    }

    #[test]
    fn wrong_replies_are_found() {
        let right = |mistake| replies_are_right(&mut served(mistake), Transaction::Plain).unwrap();
        assert_eq!(right(""), Ok(()));
        assert!(right("GET").unwrap_err().contains("'GET a'"));
    }
}
