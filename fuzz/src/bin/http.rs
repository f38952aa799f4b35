//! Runs `tremula_server::fuzz::http` on inputs that libFuzzer makes.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tremula_server::fuzz::http(data));
