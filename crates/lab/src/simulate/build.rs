//! Builds the lab that simulates, and starts it.

use crate::LabError;
use std::{
    env,
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
};

/// The folder in the build directory, as the step `sim` of the tests has it.
const FOLDER: &str = "sim";
const PROGRAM: &str = "tremula-lab";

/// Starts the lab that simulates, with these arguments, and waits for it.
pub(crate) fn start(arguments: &[OsString]) -> Result<ExitStatus, LabError> {
    let program = build()?;
    Command::new(&program)
        .args(arguments)
        .status()
        .map_err(|error| LabError::Program {
            program: program.display().to_string(),
            error,
        })
}

/// Builds it in the workspace that the present folder belongs to; returns where it is.
fn build() -> Result<PathBuf, LabError> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let failed = |error: io::Error| LabError::Program {
        program: cargo.to_string_lossy().into_owned(),
        error,
    };
    let located = Command::new(&cargo)
        .args(["locate-project", "--workspace", "--message-format", "plain"])
        .stderr(Stdio::inherit())
        .output()
        .map_err(failed)?;
    let manifest = String::from_utf8_lossy(&located.stdout).trim().to_owned();
    let root = Path::new(&manifest).parent();
    let lab = root.map(|root| root.join("crates/lab/Cargo.toml"));
    let (Some(root), Some(true)) = (root, lab.map(|lab| lab.exists())) else {
        return Err(LabError::NoSources);
    };
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let target = target.join(FOLDER);
    let given = env::var("RUSTFLAGS").unwrap_or_default();
    eprintln!("note: building the lab that simulates, if its sources have changed");
    let status = Command::new(&cargo)
        .args(["build", "--quiet", "--release", "-p", PROGRAM])
        .current_dir(root)
        .env("CARGO_TARGET_DIR", &target)
        .env("RUSTFLAGS", format!("{given} --cfg sim").trim())
        // The simulator is not what is measured, and is linked sooner so.
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()
        .map_err(failed)?;
    if !status.success() {
        return Err(LabError::Build);
    }
    Ok(target.join("release").join(PROGRAM))
}
