//! A real Erlang: ETS tables of type `ordered_set`, and processes. This project takes both as its
//! models.

mod counter;
mod machine;
mod process;
mod table;

pub use counter::{EtsCounter, EtsCounterContestant};
pub use machine::ErlangMachine;
pub use process::{ErlangProcess, MessageQueue};
pub use table::{Ets, EtsTable};

use super::contestant::is_on_path;

/// What this machine lacks to run Erlang, and how to get it.
fn missing() -> Option<&'static str> {
    (!is_on_path(machine::ESCRIPT)).then_some(
        "'escript' is not on the PATH; install Erlang \
         (Debian and Ubuntu: apt-get install erlang-base)",
    )
}
