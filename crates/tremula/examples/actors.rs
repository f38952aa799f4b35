//! Actors on threads: a supervisor, its workers, and clients that ask.
//!
//! Each actor is a thread with a mailbox. Clients send requests that carry the handle for the
//! answer. The supervisor monitors its workers: when one goes down, it learns so *behind*
//! everything that the worker sent before, so it knows exactly which jobs are left to do. It starts
//! a new worker for these, and reports the job that the old one died of.
//!
//! `cargo run -p tremula --example actors`

use std::collections::{BTreeMap, VecDeque};
use std::thread;
use std::time::Duration;
use tremula::mailbox::{CallError, Mailbox, Reply, Sender, bounded, unbounded};

/// A division: what a worker does with its time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Job {
    number: u64,
    divisor: u64,
}

type WorkerId = usize;

/// What the supervisor receives.
enum Event {
    /// Answered when a worker has the job.
    Submit(Job, Reply<()>),
    Done(WorkerId, Job, u64),
    Down(WorkerId),
    /// Asks how many jobs have ended. Answered at once.
    Progress(Reply<usize>),
    /// Asks for the report. Answered when every job has ended.
    Report(Reply<Report>),
    Stop,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Report {
    results: BTreeMap<u64, u64>,
    /// The jobs of which a worker died, by number.
    failed: BTreeMap<u64, Job>,
}

/// Works until no sender is left, or until a job kills it. Either way its mailbox goes down with
/// it, as it would in a panic.
fn work(id: WorkerId, jobs: Mailbox<Job>, supervisor: &Sender<Event>) {
    for job in jobs {
        let Some(result) = 5040_u64.checked_div(job.divisor) else {
            return; // the crash of this example
        };
        if supervisor.send(Event::Done(id, job, result)).is_err() {
            return;
        }
    }
}

struct Worker {
    jobs: Sender<Job>,
    /// What it was given and has not finished, in the order in which it was given.
    outstanding: VecDeque<Job>,
    thread: thread::JoinHandle<()>,
}

struct Supervisor {
    mailbox: Mailbox<Event>,
    /// Its own address, for the workers.
    address: Sender<Event>,
    workers: Vec<Worker>,
    report: Report,
    submitted: usize,
    waiting: Vec<Reply<Report>>,
}

impl Supervisor {
    fn start(workers: usize) -> (Sender<Event>, thread::JoinHandle<Report>) {
        let (address, mailbox) = unbounded();
        let mut supervisor = Self {
            mailbox,
            address: address.clone(),
            workers: Vec::new(),
            report: Report::default(),
            submitted: 0,
            waiting: Vec::new(),
        };
        let thread = thread::spawn(move || {
            supervisor.workers = (0..workers).map(|id| supervisor.hire(id)).collect();
            supervisor.run()
        });
        (address, thread)
    }

    fn hire(&self, id: WorkerId) -> Worker {
        // Bounded: a supervisor that is ahead of its workers waits for them.
        let (jobs, inbox) = bounded(100);
        jobs.monitor(&self.address, Event::Down(id));
        let supervisor = self.address.clone();
        Worker {
            jobs,
            outstanding: VecDeque::new(),
            thread: thread::spawn(move || work(id, inbox, &supervisor)),
        }
    }

    fn give(&mut self, id: WorkerId, job: Job) {
        let worker = &mut self.workers[id];
        worker.outstanding.push_back(job);
        // If it is down by now, the notice is on its way: then the job is given to its successor.
        let _ = worker.jobs.send(job);
    }

    fn run(mut self) -> Report {
        while let Ok(event) = self.mailbox.recv() {
            match event {
                Event::Submit(job, reply) => {
                    self.give(self.submitted % self.workers.len(), job);
                    self.submitted += 1;
                    let _ = reply.send(()); // the caller may have given up
                }
                Event::Done(id, job, result) => {
                    let first = self.workers[id].outstanding.pop_front();
                    assert_eq!(first, Some(job), "jobs are done in order");
                    self.report.results.insert(job.number, result);
                }
                Event::Down(id) => self.replace(id),
                Event::Progress(reply) => drop(reply.send(self.ended())),
                Event::Report(reply) => self.waiting.push(reply),
                Event::Stop => break,
            }
            if self.ended() == self.submitted {
                for reply in self.waiting.drain(..) {
                    let _ = reply.send(self.report.clone());
                }
            }
        }
        self.stop()
    }

    fn ended(&self) -> usize {
        self.report.results.len() + self.report.failed.len()
    }

    fn replace(&mut self, id: WorkerId) {
        let new = self.hire(id);
        let old = std::mem::replace(&mut self.workers[id], new);
        old.thread.join().expect("it has ended");
        // Jobs are done in order, so the worker died of the first that it has not finished.
        let mut outstanding = old.outstanding.into_iter();
        if let Some(job) = outstanding.next() {
            self.report.failed.insert(job.number, job);
        }
        outstanding.for_each(|job| self.give(id, job));
    }

    /// Ends the workers one after the other. A selective receive waits for the notice of each, and
    /// leaves all other events where they are.
    fn stop(mut self) -> Report {
        for (id, worker) in self.workers.into_iter().enumerate() {
            drop(worker.jobs);
            let is_down = |event: &Event| matches!(event, Event::Down(down) if *down == id);
            let notice = self.mailbox.recv_matching(is_down);
            assert!(notice.is_ok(), "every worker is monitored");
            worker.thread.join().expect("it has ended");
        }
        self.report
    }
}

fn main() -> Result<(), CallError> {
    const LIMIT: Duration = Duration::from_secs(60);
    let (supervisor, thread) = Supervisor::start(3);
    // Two clients submit; every tenth job kills its worker.
    let clients = [0, 1].map(|client| {
        let supervisor = supervisor.clone();
        thread::spawn(move || {
            for number in (client..100).step_by(2) {
                let divisor = number % 10;
                let job = Job { number, divisor };
                supervisor.call(|reply| Event::Submit(job, reply), LIMIT)?;
            }
            Ok(())
        })
    });
    for client in clients {
        client.join().expect("a client ends")?;
    }
    assert!(supervisor.call(Event::Progress, LIMIT)? <= 100);
    let report = supervisor.call(Event::Report, LIMIT)?;

    // Every job was done once or is known to have failed, whatever happened to the workers.
    assert_eq!(report.results.len(), 90);
    for (number, result) in &report.results {
        assert_eq!(*result, 5040 / (number % 10));
    }
    assert!(report.failed.keys().copied().eq((0..100).step_by(10)));
    println!("failed: {:?}", report.failed.keys());

    supervisor.send(Event::Stop).expect("it runs");
    assert_eq!(thread.join().expect("the supervisor ends"), report);
    let late = supervisor.call(Event::Progress, LIMIT);
    assert_eq!(late, Err(CallError::Down));
    Ok(())
}

#[test]
fn the_example_holds() -> Result<(), CallError> {
    main()
}
