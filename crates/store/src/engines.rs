//! The engines that the server accepts: those that can keep its promises.

use std::fmt;
use tremula_index::{Engine, Facts, Scans};

/// The engine cannot keep the promises of the server's commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnfitEngine {
    /// The name of the engine that was asked for.
    pub engine: &'static str,
}

impl fmt::Display for UnfitEngine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "engine '{}' cannot be served: its scans and its removals of ranges are not of one \
             moment, which RANGE, SCAN and DELRANGE promise; there are:{}",
            self.engine, ServedNames,
        )
    }
}

impl std::error::Error for UnfitEngine {}

/// The engine cannot keep a log: it has no step over several keys, and shows nothing under the lock
/// of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CannotLog {
    /// The name of the engine that was asked for.
    pub engine: &'static str,
}

impl fmt::Display for CannotLog {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "engine '{}' cannot keep its keys on a disk, because it has no steps over several keys; \
             these can:",
            self.engine
        )?;
        let mut can = served_engines().filter(|engine| engine.facts().transactional);
        can.try_for_each(|engine| write!(out, " {engine}"))
    }
}

impl std::error::Error for CannotLog {}

/// The names of the engines that can be served, each with a blank before it.
struct ServedNames;

impl fmt::Display for ServedNames {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        served_engines().try_for_each(|engine| write!(out, " {engine}"))
    }
}

/// The engines that can be served, the default one first.
pub fn served_engines() -> impl Iterator<Item = Engine> {
    Engine::ALL
        .into_iter()
        .filter(|engine| check(*engine).is_ok())
}

/// Whether an engine can be served.
pub(crate) fn check(engine: Engine) -> Result<(), UnfitEngine> {
    check_facts(engine.name(), engine.facts())
}

/// Whether a store of this engine can keep a log.
///
/// # Errors
///
/// It cannot, because the engine has no steps over several keys.
pub fn check_logged(engine: Engine) -> Result<(), CannotLog> {
    if engine.facts().transactional {
        Ok(())
    } else {
        let engine = engine.name();
        Err(CannotLog { engine })
    }
}

/// Whether an engine with this name and these facts can be served.
pub(crate) fn check_facts(engine: &'static str, facts: Facts) -> Result<(), UnfitEngine> {
    if facts.scans == Scans::OneMoment {
        Ok(())
    } else {
        Err(UnfitEngine { engine })
    }
}

/// Reads the name of an engine that can be served.
///
/// # Errors
///
/// The engine does not exist or cannot be served. The error is a sentence.
pub fn parse_engine(name: &str) -> Result<Engine, String> {
    let engine: Engine = name
        .parse()
        .map_err(|_| format!("unknown engine '{name}'; there are:{ServedNames}"))?;
    check(engine).map_err(|unfit| unfit.to_string())?;
    Ok(engine)
}
