//! On how many threads clients are.

use clap::ArgAction;
use clap::builder::BoolishValueParser;

/// Whether clients gather: with little load, one thread answers faster than several, because each
/// of these would wake up for every command.
const GATHER: bool = true;

/// The flag of gathering.
#[derive(clap::Args, Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatherLimits {
    /// Serve clients on as few threads as can: yes; or no, on all threads evenly
    #[arg(long, value_name = "YES|NO", default_value_t = GATHER, action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub gather: bool,
}

impl Default for GatherLimits {
    fn default() -> Self {
        Self { gather: GATHER }
    }
}
