//! Tells the lab which compiler and which profile it was built by, for its records.

use std::{env, path::Path, process::Command};

/// The profile that published figures are made by.
const MEASURE: &str = "measure";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let compiler = env::var_os("RUSTC").expect("cargo names the compiler");
    let output = Command::new(compiler).arg("--version").output();
    let output = output.expect("the compiler starts");
    let version = String::from_utf8_lossy(&output.stdout);
    println!("cargo:rustc-env=TREMULA_LAB_RUSTC={}", version.trim());

    // The folder `target/PROFILE/build/PACKAGE/out`: cargo tells of a profile only what it inherits.
    let out = env::var_os("OUT_DIR").expect("cargo names the folder");
    let profile = Path::new(&out).ancestors().nth(3).and_then(Path::file_name);
    println!("cargo:rustc-check-cfg=cfg(measure)");
    if profile.is_some_and(|profile| profile == MEASURE) {
        println!("cargo:rustc-cfg=measure");
    }
}
