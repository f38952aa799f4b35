//! A real Erlang that answers questions: `erlang/oracle.escript`.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tremula_table::Term;
use tremula_table::term::Limits;

const PROGRAM: &str = include_str!("../../erlang/oracle.escript");

/// A number from the environment, or the default.
pub(crate) fn from_environment(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(value) => value
            .parse()
            .unwrap_or_else(|_| panic!("{name} is a number")),
        Err(_) => default,
    }
}

/// A running Erlang. Dropping it ends the process.
pub(crate) struct Oracle(Child);

impl Oracle {
    /// Starts an Erlang; `name` is the test's, so that no two tests write the same file.
    ///
    /// # Panics
    ///
    /// There is no `escript`: the test fails and says how to get it.
    pub(crate) fn start(name: &str) -> Self {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.escript"));
        fs::write(&program, PROGRAM).unwrap();
        let child = Command::new("escript")
            .arg(&program)
            // An Erlang that crashes leaves no dump behind.
            .env("ERL_CRASH_DUMP_SECONDS", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                panic!(
                    "this test needs Erlang: 'escript' cannot be run ({error}); install it \
                     (Debian and Ubuntu: apt-get install erlang-base)"
                )
            });
        Self(child)
    }

    /// Asks questions of one kind, in batches. Returns one answer per question.
    pub(crate) fn ask(&mut self, kind: &str, questions: &[Term]) -> Vec<Term> {
        let mut answers = Vec::with_capacity(questions.len());
        for some in questions.chunks(1000) {
            let message = Term::tuple([Term::atom(kind).unwrap(), Term::list(some.to_vec())]);
            let Term::List(reply) = self.exchange(&message) else {
                panic!("answers are in a list");
            };
            answers.extend(reply.iter().cloned());
        }
        assert_eq!(answers.len(), questions.len());
        answers
    }

    /// Exchanges one message each way: the length in four bytes, and a term.
    fn exchange(&mut self, message: &Term) -> Term {
        let bytes = message.to_etf().unwrap();
        let input = self.0.stdin.as_mut().unwrap();
        let length = u32::try_from(bytes.len()).unwrap();
        input.write_all(&length.to_be_bytes()).unwrap();
        input.write_all(&bytes).unwrap();
        input.flush().unwrap();
        let output = self.0.stdout.as_mut().unwrap();
        let mut length = [0; 4];
        output
            .read_exact(&mut length)
            .expect("Erlang answers; if it has not, it has printed why");
        let mut reply = vec![0; u32::from_be_bytes(length) as usize];
        output.read_exact(&mut reply).unwrap();
        Term::from_etf(&reply, &Limits::NONE).expect("the answer is a term")
    }
}

impl Drop for Oracle {
    /// Erlang ends when its input ends.
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
