//! Tells the lab which compiler it was built by, for its records.

use std::{env, process::Command};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let compiler = env::var_os("RUSTC").expect("cargo names the compiler");
    let output = Command::new(compiler).arg("--version").output();
    let output = output.expect("the compiler starts");
    let version = String::from_utf8_lossy(&output.stdout);
    println!("cargo:rustc-env=TREMULA_LAB_RUSTC={}", version.trim());
}
