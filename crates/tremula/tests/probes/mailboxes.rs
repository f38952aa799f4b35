//! What users of `std::sync::mpsc`, crossbeam-channel, flume and tokio type.

use crate::support::block_on;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;
use tremula::mailbox::{
    Config, Mailbox, RecvError, Reply, Sender, TryRecvError, TrySendError, WeakSender, bounded,
    mailbox, oneshot, unbounded,
};

#[test]
fn a_producer_and_a_loop() {
    let (sender, mut mailbox) = unbounded();
    let producer = thread::spawn(move || (0..5).try_for_each(|number| sender.send(number)));
    let mut sum = 0;
    for number in &mut mailbox {
        sum += number;
    }
    assert_eq!((sum, producer.join().unwrap()), (10, Ok(())));
}

#[test]
fn for_over_the_mailbox_itself() {
    let (sender, mailbox) = unbounded();
    sender.send(1).unwrap();
    drop(sender);
    for number in mailbox {
        assert_eq!(number, 1);
    }
}

#[test]
fn while_let_until_the_senders_are_gone() {
    let (sender, mut mailbox) = unbounded();
    thread::spawn(move || sender.send("only").unwrap());
    let mut messages = Vec::new();
    while let Ok(message) = mailbox.recv() {
        messages.push(message);
    }
    assert_eq!(messages, ["only"]);
}

#[test]
fn a_sender_for_each_thread() {
    let (sender, mut mailbox) = unbounded();
    for number in 0..4 {
        let sender = sender.clone();
        thread::spawn(move || sender.send(number).unwrap());
    }
    drop(sender);
    let mut all: Vec<_> = mailbox.iter().collect();
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 3]);
}

#[test]
fn one_sender_for_scoped_threads() {
    let (sender, mut mailbox) = unbounded();
    thread::scope(|scope| {
        for number in [1, 2] {
            let sender = &sender;
            scope.spawn(move || sender.send(number).unwrap());
        }
    });
    assert_eq!(mailbox.try_iter().sum::<i32>(), 3);
}

#[test]
fn a_match_on_try_recv() {
    let (sender, mut mailbox) = unbounded::<i32>();
    assert_eq!(mailbox.try_recv(), Err(TryRecvError::Empty));
    drop(sender);
    match mailbox.try_recv() {
        Err(TryRecvError::Disconnected) => {}
        other => unreachable!("{other:?}"),
    }
}

#[test]
fn a_full_mailbox_gives_the_message_back() {
    let (sender, _mailbox) = bounded(1);
    sender.try_send("first".to_owned()).unwrap();
    match sender.try_send("second".to_owned()) {
        Err(TrySendError::Full(message)) => assert_eq!(message, "second"),
        other => unreachable!("{other:?}"),
    }
}

#[test]
fn a_closed_mailbox_gives_the_message_back() {
    let (sender, mailbox) = unbounded();
    drop(mailbox);
    let message = sender.send(vec![1]).unwrap_err().into_inner();
    assert_eq!((message, sender.is_closed()), (vec![1], true));
}

#[test]
fn a_sender_in_a_struct() {
    #[derive(Clone, Debug)]
    struct Logger {
        lines: Sender<String>,
    }
    let (lines, mut mailbox) = unbounded();
    let logger = Logger { lines };
    logger.clone().lines.send("started".into()).unwrap();
    assert_eq!(mailbox.recv().as_deref(), Ok("started"));
}

#[test]
fn an_enum_of_messages_with_a_reply() {
    enum Request {
        Add(i32),
        Total(Reply<i32>),
    }
    let (sender, mut mailbox) = unbounded();
    let server = thread::spawn(move || {
        let mut total = 0;
        for request in &mut mailbox {
            match request {
                Request::Add(number) => total += number,
                Request::Total(reply) => reply.send(total).unwrap(),
            }
        }
    });
    sender.send(Request::Add(40)).unwrap();
    sender.send(Request::Add(2)).unwrap();
    assert_eq!(sender.call(Request::Total, Duration::from_secs(60)), Ok(42));
    drop(sender);
    server.join().unwrap();
}

#[test]
fn boxed_closures_as_messages() {
    type Job = Box<dyn FnOnce() -> i32 + Send>;
    let (sender, mut mailbox) = unbounded::<Job>();
    let base = 40;
    sender.send(Box::new(move || base + 2)).unwrap();
    let job = mailbox.recv().unwrap();
    assert_eq!(job(), 42);
}

#[test]
fn a_message_without_debug_is_unwrapped() {
    struct Opaque;
    let (sender, mut mailbox) = bounded(1);
    sender.send(Opaque).unwrap();
    assert!(mailbox.recv().is_ok());
}

#[test]
fn messages_that_are_not_send_stay_on_one_thread() {
    let (sender, mut mailbox) = unbounded();
    sender.send(std::rc::Rc::new(7)).unwrap();
    assert_eq!(mailbox.recv().as_deref(), Ok(&7));
}

#[test]
fn a_weak_sender_keeps_no_mailbox_open() {
    let (sender, mut mailbox) = unbounded::<i32>();
    let weak: WeakSender<i32> = sender.downgrade();
    weak.upgrade().unwrap().send(1).unwrap();
    drop(sender);
    assert!(weak.upgrade().is_none());
    assert_eq!((mailbox.recv(), mailbox.recv()), (Ok(1), Err(RecvError)));
}

#[test]
fn a_reserved_place() {
    let (sender, mut mailbox) = bounded(1);
    let permit = sender.try_reserve().unwrap();
    assert!(sender.try_send(2).is_err(), "the place is taken");
    permit.send(1).unwrap();
    assert_eq!(mailbox.recv(), Ok(1));
}

#[test]
fn a_configured_mailbox() {
    let (sender, mailbox): (Sender<i32>, Mailbox<i32>) = mailbox(Config::default().bounded(8));
    assert_eq!((mailbox.capacity(), sender.is_empty()), (Some(8), true));
}

#[test]
fn send_and_receive_asynchronously() {
    let (sender, mut mailbox) = bounded(1);
    let thread = thread::spawn(move || {
        block_on(async {
            for number in 0..10 {
                sender.send_async(number).await?;
            }
            Ok::<_, tremula::mailbox::SendError<i32>>(())
        })
    });
    let sum = block_on(async {
        let mut sum = 0;
        while let Ok(number) = mailbox.recv_async().await {
            sum += number;
        }
        sum
    });
    assert_eq!((sum, thread.join().unwrap()), (45, Ok(())));
}

#[test]
fn futures_of_a_mailbox_are_send() {
    fn spawn<F: Future + Send + 'static>(future: F) -> F::Output {
        block_on(future)
    }
    let (sender, mut mailbox) = bounded(2);
    spawn(async move {
        sender.send_async(1).await.unwrap();
        sender.reserve().await.unwrap().send(2).unwrap();
    });
    assert!(mailbox.try_iter().eq([1, 2]));
}

#[test]
fn closed_is_awaited() {
    let (sender, mailbox) = unbounded::<i32>();
    let mut closed = pin!(sender.closed());
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(closed.as_mut().poll(&mut context), Poll::Pending);
    drop(mailbox);
    block_on(closed);
}

#[test]
fn a_oneshot_is_awaited() {
    let (sender, receiver) = oneshot();
    let thread = thread::spawn(move || sender.send("done"));
    assert_eq!(block_on(receiver), Ok("done"));
    assert_eq!(thread.join().unwrap(), Ok(()));
}

#[test]
fn a_oneshot_answers_within_a_message() {
    let (sender, mut mailbox) = unbounded();
    let (answer, question) = oneshot();
    sender.send((21, answer)).unwrap();
    let (number, answer) = mailbox.recv().unwrap();
    answer.send(number * 2).unwrap();
    assert_eq!(question.recv(), Ok(42));
}
