//! The errors of this crate under `?`, shown and compared.

use std::error::Error;
use std::time::Duration;
use tremula::mailbox::{bounded, oneshot, unbounded};
use tremula::shard::{Config, Shards, Strategy};
use tremula::table::{MatchSpec, Options, Tables, Term};
use tremula::{Engine, OrderedMap};

/// What servers and tasks pass along.
type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

/// The text of the error.
fn text(outcome: Outcome) -> String {
    outcome.unwrap_err().to_string()
}

#[test]
fn the_name_of_no_engine() {
    let parse = || -> Outcome {
        let engine: Engine = "btree".parse()?;
        unreachable!("{engine} is not its name")
    };
    assert!(text(parse()).contains("btree"));
}

#[test]
fn entries_out_of_order() {
    let build = || -> Outcome {
        let map = OrderedMap::from_sorted([(2, 0), (1, 0)])?;
        unreachable!("{map:?}")
    };
    assert!(!text(build()).is_empty());
}

#[test]
fn a_closed_mailbox() {
    let send = || -> Outcome {
        let (sender, mailbox) = unbounded();
        drop(mailbox);
        Ok(sender.send(1)?)
    };
    assert_eq!(text(send()), "the mailbox is closed");
}

#[test]
fn a_full_mailbox() {
    let send = || -> Outcome {
        let (sender, _mailbox) = bounded(1);
        sender.try_send("one")?;
        Ok(sender.try_send("two")?)
    };
    assert_eq!(text(send()), "the mailbox is full");
}

#[test]
fn a_mailbox_that_stays_full() {
    let send = || -> Outcome {
        let (sender, _mailbox) = bounded(1);
        sender.send_timeout("one", Duration::ZERO)?;
        Ok(sender.send_timeout("two", Duration::ZERO)?)
    };
    assert!(text(send()).contains("full"));
}

#[test]
fn an_empty_mailbox() {
    let receive = || -> Outcome {
        let (sender, mut mailbox) = unbounded();
        sender.send(1)?;
        mailbox.try_recv()?;
        mailbox.recv_timeout(Duration::ZERO)?;
        Ok(())
    };
    assert!(text(receive()).contains("in time"));
}

#[test]
fn a_sender_that_is_gone() {
    let receive = || -> Outcome {
        let (sender, receiver) = oneshot();
        drop(sender);
        Ok(receiver.recv()?)
    };
    assert!(text(receive()).contains("no sender"));
}

#[test]
fn a_call_without_an_answer() {
    let call = || -> Outcome {
        let (sender, mailbox) = unbounded::<tremula::mailbox::Reply<()>>();
        drop(mailbox);
        Ok(sender.call(|reply| reply, Duration::from_secs(60))?)
    };
    assert!(text(call()).contains("without an answer"));
}

#[test]
fn shards_that_are_shut_down() {
    let call = || -> Outcome {
        let shards = Shards::start(Config::default().workers(1), |_| 0)?;
        shards.shutdown();
        Ok(shards.call(1, |state| *state = 1).wait()?)
    };
    assert!(text(call()).contains("shut down"));
}

#[test]
fn a_function_that_a_shard_refuses() {
    let send = || -> Outcome {
        let shards = Shards::start(Config::new(Strategy::Affinity).workers(1), |_| 0)?;
        shards.shutdown();
        Ok(shards.send(1, |state| *state = 1)?)
    };
    assert!(text(send()).contains("shut down"));
}

#[test]
fn the_name_of_no_strategy() {
    let parse = || -> Outcome {
        let strategy: Strategy = "magic".parse()?;
        unreachable!("{strategy:?}")
    };
    assert!(text(parse()).contains("magic"));
}

#[test]
fn a_bad_argument_of_a_table() {
    let insert = || -> Outcome {
        let table = Tables::new().create("rows", Options::new())?;
        Ok(table.insert(7.into())?)
    };
    assert!(text(insert()).contains('7'));
}

#[test]
fn a_term_that_is_none() {
    let parse = || -> Outcome {
        let term: Term = "{1, ".parse()?;
        unreachable!("{term}")
    };
    assert!(!text(parse()).is_empty());
}

#[test]
fn a_term_of_another_kind() {
    let read = || -> Outcome {
        let byte: u8 = Term::from(300).try_into()?;
        unreachable!("{byte}")
    };
    assert_eq!(text(read()), "300 is not an integer that fits in u8");
}

#[test]
fn a_float_that_no_term_holds() {
    let convert = || -> Outcome {
        let term = Term::try_from(f64::NAN)?;
        unreachable!("{term}")
    };
    assert!(!text(convert()).is_empty());
}

#[test]
fn a_wrong_match_specification() {
    let compile = || -> Outcome {
        let spec = MatchSpec::compile(&"[{x}]".parse()?)?;
        unreachable!("{spec:?}")
    };
    assert!(!text(compile()).is_empty());
}

#[test]
fn a_row_of_another_struct() {
    let read = || -> Outcome {
        let row = tremula::table::serde::to_row(&(1, "ada"))?;
        tremula::table::serde::from_row::<(u8, bool)>(&row)?;
        Ok(())
    };
    assert!(text(read()).contains("element 2"));
}
