//! A row of the stress tests: see `stress.rs`.

/// Runs both stress tests on the engine that an expression makes.
macro_rules! engine {
    ($name:ident, $make:expr) => {
        mod $name {
            use super::*;

            #[test]
            fn what_threads_see_validates_itself() {
                crate::support::self_validating::run(&$make);
            }

            #[test]
            fn snapshots_are_of_one_moment() {
                crate::support::moments::run(&$make);
            }
        }
    };
}

pub(crate) use engine;
