//! Commands that may take longer than a turn.

use super::{Command, Context, Failure, Next, Outcome};
use crate::apart::{Job, job};
use crate::memory::Promise;
use crate::resp::Arguments;
use crate::server::Shared;
use std::sync::mpsc::Receiver;

/// A command that may take longer than a turn, in steps.
pub(crate) trait Work: Send {
    /// Goes on until the command is done, or until `context.turn` is over. The arguments are the
    /// command's in every step.
    ///
    /// What a step writes is not sent before the command is done, so that an error can still
    /// replace it, unless the reply is a [stream](Reply::stream).
    fn step(
        &mut self,
        context: &mut Context<'_>,
        arguments: Arguments<'_>,
    ) -> Result<Step, Failure>;
}

/// How far a step has come.
pub(crate) enum Step {
    /// The command is done, and its reply written.
    Done,
    /// The turn is over, or a long part of the reply can be sent.
    Rest,
    /// As [`Rest`](Self::Rest), but the next step goes to the thread apart, because it may take
    /// long.
    Long,
    /// Goes on once the thread apart has done this.
    Apart(Job),
}

/// A command between two steps.
pub(crate) struct Unfinished {
    pub(super) command: &'static Command,
    pub(super) work: Box<dyn Work>,
    /// What the thread apart does before the next step.
    pub(crate) apart: Option<Job>,
    /// Whether the thread apart does the next step.
    pub(crate) is_long: bool,
    /// What the command has promised to take.
    pub(super) promise: Option<Promise>,
}

/// Begins a command that may take longer than a turn.
pub(super) fn begin(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    mut work: impl Work + 'static,
) -> Outcome {
    let (apart, is_long) = match work.step(context, arguments)? {
        Step::Done => return Ok(Next::Reply),
        Step::Rest => (None, false),
        Step::Long => (None, true),
        Step::Apart(job) => (Some(job), false),
    };
    Ok(Next::Work(Unfinished {
        command: context.command,
        work: Box::new(work),
        apart,
        is_long,
        promise: None,
    }))
}

/// Answers a command once the thread apart has done `run`: for what cannot be done in steps.
pub(super) fn apart<R: Send + 'static>(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    run: impl FnOnce(&Shared) -> R + Send + 'static,
    answer: fn(&mut Context<'_>, R) -> Result<(), Failure>,
) -> Outcome {
    let (job, result) = job(run);
    let work = Awaiting {
        job: Some(job),
        result,
        answer,
    };
    begin(context, arguments, work)
}

struct Awaiting<R> {
    job: Option<Job>,
    result: Receiver<R>,
    answer: fn(&mut Context<'_>, R) -> Result<(), Failure>,
}

impl<R: Send> Work for Awaiting<R> {
    fn step(&mut self, context: &mut Context<'_>, _: Arguments<'_>) -> Result<Step, Failure> {
        if let Some(job) = self.job.take() {
            return Ok(Step::Apart(job));
        }
        let result = self.result.try_recv().map_err(|_| Failure::STOPPING)?;
        (self.answer)(context, result)?;
        Ok(Step::Done)
    }
}
