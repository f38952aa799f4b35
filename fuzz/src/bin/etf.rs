//! Runs `tremula_table::fuzz::etf` on inputs that libFuzzer makes.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tremula_table::fuzz::etf(data));
