//! Runs `tremula_table::fuzz::effects` on inputs that libFuzzer makes.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tremula_table::fuzz::effects(data));
