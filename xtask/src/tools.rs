//! What the tests need besides the compiler: found, or installed, or asked for plainly.

mod clients;
mod nats;
mod source;

use crate::job::Job;
use crate::workspace::Workspace;
use std::path::{Path, PathBuf};

/// The Python packages of the end-to-end tests, in the versions they were written with.
const PYTHON_PACKAGES: [(&str, &str); 2] = [("redis", "8.1.0"), ("django", "5.2.19")];

/// Something that a step needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    /// `cargo fmt`.
    Rustfmt,
    /// `cargo clippy`.
    Clippy,
    /// A nightly toolchain, which alone has the sanitizers and what fuzzing needs.
    Nightly,
    /// A C++ compiler, which builds libFuzzer.
    Cpp,
    /// redis-server, redis-cli and redis-benchmark.
    Redis,
    /// The test suite of Redis, and the interpreter that runs it.
    RedisSuite,
    /// openssl, which makes certificates and speaks TLS.
    OpenSsl,
    /// A Python with the Redis client and Django in a virtual environment.
    Python,
    /// Node.js with two Redis clients.
    Node,
    /// Go with a Redis client.
    Go,
    /// `escript`, which runs Erlang programs.
    Erlang,
    /// Chromium, which opens the lab's report and the server's page.
    Chromium,
    /// What drives Chromium over the server's page.
    Browser,
    /// nats-server, which has the log of groups of nodes.
    Nats,
    /// What makes packages and checks them.
    Packaging,
}

/// A program, and the Debian package that has it.
type Program = (&'static str, &'static str);

const REDIS: [Program; 3] = [
    ("redis-server", "redis-server"),
    ("redis-cli", "redis-tools"),
    ("redis-benchmark", "redis-tools"),
];
const OPENSSL: [Program; 1] = [("openssl", "openssl")];
const CPP: [Program; 1] = [("c++", "g++")];
const ERLANG: [Program; 1] = [("escript", "erlang-base")];
const CHROMIUM: [Program; 1] = [("chromium", "chromium")];
const PYTHON: [Program; 1] = [("python3", "python3-venv")];
const TCL: [Program; 1] = [("tclsh", "tcl")];
const NODE: [Program; 2] = [("node", "nodejs"), ("npm", "npm")];
const GO: [Program; 1] = [("go", "golang-go")];
const PACKAGING: [Program; 10] = [
    ("xz", "xz-utils"),
    ("strip", "binutils"),
    ("ldd", "libc-bin"),
    ("dpkg-deb", "dpkg"),
    ("debootstrap", "debootstrap"),
    ("gpgv", "gpgv"),
    ("skopeo", "skopeo"),
    ("systemd-analyze", "systemd"),
    ("mandoc", "mandoc"),
    ("promtool", "prometheus"),
];

impl Tool {
    pub(crate) const ALL: [Self; 15] = [
        Self::Rustfmt,
        Self::Clippy,
        Self::Nightly,
        Self::Cpp,
        Self::Redis,
        Self::RedisSuite,
        Self::OpenSsl,
        Self::Python,
        Self::Node,
        Self::Go,
        Self::Erlang,
        Self::Chromium,
        Self::Browser,
        Self::Nats,
        Self::Packaging,
    ];

    /// Makes sure that the tool is there; what was run for it is added to `log`.
    pub(crate) fn provide(self, workspace: &Workspace, log: &mut String) -> Result<(), String> {
        match self {
            Self::Rustfmt => component("fmt", "rustfmt", log),
            Self::Clippy => component("clippy", "clippy", log),
            Self::Nightly => nightly(log),
            Self::Cpp => programs(&CPP, log),
            Self::Redis => programs(&REDIS, log),
            Self::OpenSsl => programs(&OPENSSL, log),
            Self::Erlang => programs(&ERLANG, log),
            Self::Chromium => programs(&CHROMIUM, log),
            Self::Browser => programs(&NODE, log).and_then(|()| clients::browser(workspace, log)),
            Self::RedisSuite => {
                programs(&TCL, log).and_then(|()| source::redis_suite(workspace, log))
            }
            Self::Nats => nats::server(workspace, log),
            Self::Packaging => programs(&PACKAGING, log),
            Self::Python => python(workspace, log),
            Self::Node => programs(&NODE, log).and_then(|()| clients::node(workspace, log)),
            Self::Go => programs(&GO, log).and_then(|()| clients::go(workspace, log)),
        }
    }
}

/// The interpreter of the virtual environment.
pub(crate) fn venv_python(workspace: &Workspace) -> PathBuf {
    workspace.target.join("venv/bin/python")
}

/// The server of NATS.
pub(crate) fn nats_server(workspace: &Workspace) -> PathBuf {
    workspace.target.join("nats/nats-server")
}

fn component(subcommand: &str, component: &str, log: &mut String) -> Result<(), String> {
    if works(&Job::new("cargo", ".").args([subcommand, "--version"])) {
        return Ok(());
    }
    let install = Job::new("rustup", ".").args(["component", "add", component]);
    attempt(&install, log).map_err(|why| {
        format!(
            "`cargo {subcommand}` is missing and could not be installed ({why}).\nInstall it: {}",
            install.told()
        )
    })
}

fn nightly(log: &mut String) -> Result<(), String> {
    if works(&Job::new("cargo", ".").args(["+nightly", "--version"])) {
        return Ok(());
    }
    let arguments = ["toolchain", "install", "nightly", "--profile", "minimal"];
    let install = Job::new("rustup", ".").args(arguments);
    attempt(&install, log).map_err(|why| {
        format!(
            "the sanitizers and fuzzing need a nightly toolchain, which is missing and could not be \
             installed ({why}).\nInstall it: {}",
            install.told()
        )
    })
}

/// Sees to programs that Debian packages.
fn programs(programs: &[Program], log: &mut String) -> Result<(), String> {
    let missing: Vec<&Program> = programs.iter().filter(|(name, _)| !on_path(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    packages.dedup();
    install_packages(&packages, log).map_err(|why| {
        let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
        format!(
            "{} missing ({why}).\nInstall: apt-get install {}, or your system's like of it",
            names.join(", "),
            packages.join(" ")
        )
    })
}

fn install_packages(packages: &[&str], log: &mut String) -> Result<(), String> {
    if !on_path("apt-get") {
        return Err("this system has no apt-get".to_owned());
    }
    if !is_root() {
        return Err("only root can install packages".to_owned());
    }
    let apt = Job::new("apt-get", "/").env("DEBIAN_FRONTEND", "noninteractive");
    attempt(&apt.clone().arg("update"), log)?;
    let install = ["install", "--yes", "--no-install-recommends"];
    attempt(&apt.args(install).args(packages.iter().copied()), log)
}

fn python(workspace: &Workspace, log: &mut String) -> Result<(), String> {
    let python = venv_python(workspace);
    let has = |(package, version)| {
        format!("import {package}; assert {package}.__version__ == '{version}'")
    };
    let has_all = PYTHON_PACKAGES.map(has).join("\n");
    let ready = Job::new(&python.to_string_lossy(), &workspace.root).args(["-c", &has_all]);
    if python.exists() && works(&ready) {
        return Ok(());
    }
    let venv = workspace.target.join("venv");
    let make = Job::new("python3", &workspace.root)
        .args(["-m", "venv", "--clear"])
        .arg(venv.to_string_lossy());
    let begun = if on_path("python3") {
        attempt(&make, log)
    } else {
        Err("no python3".to_owned())
    };
    if begun.is_err() {
        // Debian has the module venv in a package of its own.
        install_packages(&PYTHON.map(|(_, package)| package), log)
            .and_then(|()| attempt(&make, log))
            .map_err(|why| {
                format!(
                    "no virtual environment could be made ({why}).\n\
                     Install Python 3 with its module venv: apt-get install python3-venv"
                )
            })?;
    }
    let install = Job::new(&python.to_string_lossy(), &workspace.root)
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ])
        .args(PYTHON_PACKAGES.map(|(package, version)| format!("{package}=={version}")));
    attempt(&install, log).map_err(|why| {
        format!(
            "the Python packages could not be installed ({why}).\nInstall it: {}",
            install.told()
        )
    })
}

fn attempt(job: &Job, log: &mut String) -> Result<(), String> {
    println!("    {}", job.told());
    let ended = job.run()?;
    *log += &format!("$ {}\n{}", job.told(), ended.output);
    if ended.ending.success() {
        Ok(())
    } else {
        Err(format!("`{}`: {}", job.told(), ended.ending))
    }
}

fn works(job: &Job) -> bool {
    job.run().is_ok_and(|ended| ended.ending.success())
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    // The owner of our own entry is who we are.
    std::fs::metadata(Path::new("/proc/self")).is_ok_and(|entry| entry.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_on_the_path_only() {
        assert!(on_path("sh"));
        assert!(!on_path("no-such-program"));
    }

    #[test]
    fn what_is_there_is_not_installed() {
        let mut log = String::new();
        assert_eq!(programs(&[("sh", "no-such-package")], &mut log), Ok(()));
        assert!(log.is_empty());
    }
}
