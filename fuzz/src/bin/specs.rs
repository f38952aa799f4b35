//! Runs `tremula_table::fuzz::specs` on inputs that libFuzzer makes.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tremula_table::fuzz::specs(data));
