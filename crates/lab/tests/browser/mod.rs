//! A real headless Chromium: how it renders a page, and what it logs.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The names of Chromium in the distributions, in the order in which they are tried.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// How long one start may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(240);

/// A Chromium on this machine.
pub(crate) struct Chromium {
    program: PathBuf,
}

/// The output of one start.
pub(crate) struct Output {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Output {
    /// What pages wrote to the console.
    pub(crate) fn console(&self) -> Vec<&str> {
        let lines = self.stderr.lines();
        lines.filter(|line| line.contains(":CONSOLE")).collect()
    }
}

impl Chromium {
    /// Finds it, or fails: a page that no browser opened is not tested.
    pub(crate) fn find() -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program = NAMES
            .iter()
            .flat_map(|name| std::env::split_paths(&path).map(move |folder| folder.join(name)))
            .find(|program| program.is_file());
        Self {
            program: program.unwrap_or_else(|| {
                panic!(
                    "the report is tested in a real Chromium, and none of {NAMES:?} is on the PATH; \
                     install it: apt-get install chromium, or your system's like of it"
                )
            }),
        }
    }

    /// Opens a page with these flags, and waits until Chromium ends.
    pub(crate) fn open(&self, page: &Path, flags: &[String]) -> Output {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| fs::File::create(folder.path().join(name)).unwrap();
        let mut child = Command::new(&self.program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
            ])
            .args(["--no-first-run", "--disable-background-networking"])
            .args([
                "--disable-component-update",
                "--disable-sync",
                "--hide-scrollbars",
            ])
            .args(["--enable-logging=stderr", "--v=0"])
            .arg(format!(
                "--user-data-dir={}",
                folder.path().join("user").display()
            ))
            .args(flags)
            .arg(format!("file://{}", page.display()))
            .stdin(Stdio::null())
            // Files, because a full pipe would block it.
            .stdout(file("out"))
            .stderr(file("err"))
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", self.program.display()));
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!(
                    "Chromium took more than {PATIENCE:?} for {}",
                    page.display()
                );
            }
            thread::sleep(Duration::from_millis(20));
        };
        let read = |name: &str| {
            let bytes = fs::read(folder.path().join(name)).unwrap();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let output = Output {
            stdout: read("out"),
            stderr: read("err"),
        };
        assert!(status.success(), "{status}: {}", output.stderr);
        output
    }
}
