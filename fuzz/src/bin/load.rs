//! Runs `tremula_server::fuzz::load` on inputs that libFuzzer makes.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tremula_server::fuzz::load(data));
