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
