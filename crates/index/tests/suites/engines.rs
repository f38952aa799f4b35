//! Rows of the suite of all engines (`support/suite.rs`): one for each engine with each container.

/// Runs the suite for the engine that a generic function makes.
macro_rules! engine {
    ($name:ident, $make:expr) => {
        mod $name {
            use super::support::suite;
            use super::*;

            #[test]
            fn random_operations_match_a_model() {
                suite::model::<u64, u64, _>($make);
            }

            #[test]
            fn random_operations_on_strings_match_a_model() {
                suite::model::<String, String, _>($make);
            }

            #[test]
            fn random_operations_on_pairs_match_a_model() {
                suite::model::<(u8, String), u64, _>($make);
            }

            #[test]
            fn random_operations_on_byte_strings_without_values_match_a_model() {
                suite::model::<Box<[u8]>, (), _>($make);
            }

            #[test]
            fn writers_of_disjoint_keys_do_not_disturb_one_another() {
                suite::disjoint_writers($make);
            }

            #[test]
            fn no_increment_is_lost() {
                suite::counters($make);
            }

            #[test]
            fn of_threads_that_insert_one_key_if_absent_one_wins() {
                suite::one_winner($make);
            }

            #[test]
            fn a_key_inserted_if_absent_serves_as_a_lock() {
                suite::keys_as_locks($make);
            }

            #[test]
            fn each_entry_is_popped_once() {
                suite::pops($make);
            }

            #[test]
            fn the_closure_of_range_may_write() {
                suite::range_may_write($make);
            }

            #[test]
            fn everything_made_is_dropped_once() {
                suite::drops($make);
            }
        }
    };
}

/// Runs the tests of panics for the engine that a generic function makes.
macro_rules! engine_under_panics {
    ($name:ident, $make:expr) => {
        #[test]
        fn $name() {
            support::suite::panics($make);
        }
    };
}

/// Runs the suite on a registered engine, in the configuration that users get.
macro_rules! registered {
    ($name:ident, $Index:ident, $($facts:ident),*) => {
        engine!($name, $Index::<_, _>::new);
    };
}

/// Runs the tests of panics on a registered engine, in the configuration that users get.
macro_rules! registered_under_panics {
    ($name:ident, $Index:ident, $($facts:ident),*) => {
        engine_under_panics!($name, $Index::<_, _>::new);
    };
}

pub(crate) use {engine, engine_under_panics, registered, registered_under_panics};
