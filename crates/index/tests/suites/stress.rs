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

/// The same for an engine whose scans are not as of one moment.
#[allow(unused_macros, reason = "each test program uses a part of it")]
macro_rules! ordered_engine {
    ($name:ident, $make:expr) => {
        mod $name {
            use super::*;

            #[test]
            fn what_threads_see_validates_itself() {
                crate::support::self_validating::run(&$make);
            }
        }
    };
}

/// Runs the tests on a registered engine, in the configuration that users get.
macro_rules! registered {
    ($name:ident, $Index:ident, $keys:ident, OneMoment) => {
        engine!($name, $Index::<_, _>::new());
    };
    ($name:ident, $Index:ident, $keys:ident, Ordered) => {
        ordered_engine!($name, $Index::<_, _>::new());
    };
}

#[allow(unused_imports, reason = "each test program uses a part of it")]
pub(crate) use {engine, ordered_engine, registered};
