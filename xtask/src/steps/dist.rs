//! The step that checks what `cargo xtask dist` makes: of the program that the tests have built, in
//! a deep run of one that is built as it is shipped.

use super::report::Report;
use crate::dist::{self, Packed, SUMS};
use crate::flavour::Flavour;
use crate::job::Job;
use crate::workspace::Workspace;
use std::fs;
use std::path::{Path, PathBuf};

/// How exposed the service may be by `systemd-analyze security`, in tenths; without limits it is
/// 96.
const EXPOSED: &str = "15";

/// The release of Debian that the package is installed on.
const DEBIAN: &str = "stable";

/// Where packages come from if the machine's own list does not say it.
const MIRROR: &str = "http://deb.debian.org/debian";

/// The parts of the step, each of which can fail alone.
type Check = fn(&Checked<'_>, &mut Report);

/// What is checked.
struct Checked<'w> {
    workspace: &'w Workspace,
    /// The packages with the revisions 1 and 2.
    packed: [Packed; 2],
    /// A folder for what the checks make.
    place: PathBuf,
}

pub(super) fn dist(workspace: &Workspace, report: &mut Report) {
    let program = match program(workspace, report) {
        Ok(program) => program,
        Err(error) => return report.problem(error),
    };
    let place = workspace.target.join("dist-check");
    let pack =
        |revision: u32, name: &str| dist::pack(workspace, &program, revision, &place.join(name));
    let packed = match (pack(1, "one"), pack(1, "again"), pack(2, "two")) {
        (Ok(one), Ok(again), Ok(two)) => {
            same_bytes(&one, &again, report);
            [one, two]
        }
        (one, again, two) => {
            for error in [one.err(), again.err(), two.err()].into_iter().flatten() {
                report.problem(error);
            }
            return;
        }
    };
    let checked = Checked {
        workspace,
        packed,
        place,
    };
    let checks: [Check; 8] = [
        sums, archive, image, bill, unit, manual, monitoring, installed,
    ];
    for check in checks {
        let problems = report.problems().len();
        check(&checked, report);
        report.passed += u64::from(report.problems().len() == problems);
    }
}

/// The program to pack.
fn program(workspace: &Workspace, report: &mut Report) -> Result<PathBuf, String> {
    if workspace.deep {
        return dist::build(workspace, "measure");
    }
    // As the step of the end-to-end tests builds it.
    let job = Flavour::Plain
        .cargo("test", &workspace.root, &workspace.target, &workspace.host)
        .args(["--no-run", "--workspace", "--test", "e2e_service"]);
    if !succeeds(&job, report) {
        return Err("there is no program to pack".to_owned());
    }
    Ok(workspace.target.join("debug/tremula"))
}

fn same_bytes(one: &Packed, again: &Packed, report: &mut Report) {
    let read = |packed: &Packed| fs::read_to_string(packed.folder.join(SUMS)).ok();
    match (read(one), read(again)) {
        (Some(one), Some(again)) if one == again => report.passed += 1,
        (Some(one), Some(again)) => {
            let differ = one.lines().zip(again.lines()).filter(|(a, b)| a != b);
            let differ: Vec<&str> = differ.map(|(line, _)| line).collect();
            report.problem(format!(
                "two runs made different bytes of: {}",
                differ.join(", ")
            ));
        }
        _ => report.problem(format!("a package has no {SUMS}")),
    }
}

/// Runs a command; its failure is the step's.
fn succeeds(job: &Job, report: &mut Report) -> bool {
    report.run(job).is_some_and(|ended| ended.ending.success())
}

/// Runs a command that must succeed and print this.
fn prints(job: &Job, wanted: &str, report: &mut Report) {
    if let Some(ended) = report.run(job)
        && ended.ending.success()
        && !ended.output.contains(wanted)
    {
        report.problem(format!(
            "`{}` does not print {wanted:?} but: {}",
            job.told(),
            ended.output.trim_end()
        ));
    }
}

/// Runs a command that must succeed and print nothing: what it prints is a complaint.
fn is_silent(job: &Job, report: &mut Report) {
    if let Some(ended) = report.run(job)
        && !ended.output.trim().is_empty()
    {
        report.problem(format!("`{}`: {}", job.told(), ended.output.trim_end()));
    }
}

/// A new, empty folder.
fn fresh(place: &Path, name: &str) -> Result<PathBuf, String> {
    let folder = place.join(name);
    let made = if folder.exists() {
        fs::remove_dir_all(&folder)
    } else {
        Ok(())
    };
    made.and_then(|()| fs::create_dir_all(&folder))
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

fn sums(checked: &Checked<'_>, report: &mut Report) {
    let [one, _] = &checked.packed;
    let job = Job::new("sha256sum", &one.folder).args(["--check", "--strict", SUMS]);
    for name in [&one.archive, &one.deb, &one.bill] {
        prints(&job, &format!("{name}: OK"), report);
    }
    prints(&job, &format!("{}/index.json: OK", one.image), report);
}

/// The archive has what a user needs, and its completions are scripts.
fn archive(checked: &Checked<'_>, report: &mut Report) {
    let [one, _] = &checked.packed;
    let folder = match fresh(&checked.place, "unpacked") {
        Ok(folder) => folder,
        Err(error) => return report.problem(error),
    };
    let archive = one.folder.join(&one.archive);
    let unpack = Job::new("tar", &folder).args([
        "--strip-components=1",
        "-xJf",
        &*archive.to_string_lossy(),
    ]);
    if !succeeds(&unpack, report) {
        return;
    }
    for file in [
        "README.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "THIRD-PARTY",
        "share/man/man1/tremula.1",
        "completions/zsh/_tremula",
        "completions/fish/tremula.fish",
        "packaging/tremula.service",
    ] {
        if fs::metadata(folder.join(file)).map_or(0, |file| file.len()) == 0 {
            report.problem(format!("the archive has no {file}, or it is empty"));
        }
    }
    let tremula = Job::new(&folder.join("bin/tremula").to_string_lossy(), &folder);
    prints(&tremula.clone().arg("--version"), "tremula ", report);
    let settings = ["config", "check", "packaging/tremula.toml"];
    prints(&tremula.args(settings), "all right", report);
    // What bash offers behind `tremula ser`, and behind `tremula serve --max-mem`.
    let complete = "source completions/bash/tremula\n\
                    offer() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMPREPLY=()\n\
                    _tremula tremula \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD-1]}\"\n\
                    echo \"<${COMPREPLY[*]}>\"; }\n\
                    complete -p tremula; offer tremula ser; offer tremula serve --max-memory-p";
    let bash = Job::new("bash", &folder).args(["--norc", "-c", complete]);
    prints(&bash, "<serve>", report);
    prints(&bash, "<--max-memory-policy>", report);
}

/// skopeo reads the image, and its program runs with nothing but what the image has.
fn image(checked: &Checked<'_>, report: &mut Report) {
    let [one, _] = &checked.packed;
    let image = format!("oci:{}", one.folder.join(&one.image).display());
    let inspect = Job::new("skopeo", &checked.place).args(["inspect", &image]);
    prints(&inspect, "\"Os\": \"linux\"", report);
    let inspect = Job::new("skopeo", &checked.place).args(["inspect", "--config", &image]);
    prints(&inspect, "/usr/bin/tremula", report);
    let (copy, root) = match (
        fresh(&checked.place, "copied"),
        fresh(&checked.place, "root"),
    ) {
        (Ok(copy), Ok(root)) => (copy, root),
        (Err(error), _) | (_, Err(error)) => return report.problem(error),
    };
    // A copy reads every blob, and checks its sum.
    let to = format!("dir:{}", copy.display());
    let copied =
        Job::new("skopeo", &checked.place).args(["--insecure-policy", "copy", &image, &to]);
    if !succeeds(&copied, report) {
        return;
    }
    let layer = "for blob in *; do case $(head -c 2 \"$blob\" | od -An -tx1) in \
                 *1f*8b*) tar -xzf \"$blob\" -C \"$1\";; esac; done";
    let root = root.to_string_lossy();
    let unpack = Job::new("sh", &copy).args(["-eu", "-c", layer, "sh", &*root]);
    if !succeeds(&unpack, report) {
        return;
    }
    let run = Job::new("chroot", &checked.place).args(["--userspec=10001:10001", &*root]);
    let tremula = run.arg("/usr/bin/tremula");
    prints(&tremula.clone().arg("--version"), "tremula ", report);
    // It loads the libraries that only serving needs, listens, and says so.
    let serve = ["serve", "--port", "0", "--dir", "/var/lib/tremula"];
    let script = "coproc server { exec \"$@\"; }; pid=$server_PID\n\
                  read -r -t 60 line <&\"${server[0]}\"; echo \"$line\"\n\
                  kill -TERM $pid; wait $pid; echo ended $?";
    let serve = Job::new("bash", &checked.place)
        .args(["-c", script, "bash", "chroot", "--userspec=10001:10001"])
        .args([&*root, "/usr/bin/tremula"])
        .args(serve);
    prints(&serve, " ready on ", report);
    prints(&serve, "ended 0", report);
}

/// The list of components is the one of the lock file, and each has a licence.
fn bill(checked: &Checked<'_>, report: &mut Report) {
    let [one, _] = &checked.packed;
    let text = fs::read_to_string(one.folder.join(&one.bill)).unwrap_or_default();
    let bill: serde_json::Value = match serde_json::from_str(&text) {
        Ok(bill) => bill,
        Err(error) => return report.problem(format!("{}: {error}", one.bill)),
    };
    let components: Vec<_> = bill["components"]
        .as_array()
        .into_iter()
        .flatten()
        .collect();
    for name in ["tremula-server", "tokio", "clap", "rustls"] {
        if !components.iter().any(|component| component["name"] == name) {
            report.problem(format!("{} lacks {name}", one.bill));
        }
    }
    for component in components {
        let licence = &component["licenses"][0]["expression"];
        let is_own = component["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("tremula"));
        let has_sum = component["hashes"][0]["content"].is_string();
        if !licence.is_string() || licence == "NOASSERTION" || has_sum == is_own {
            report.problem(format!("{}: no licence or no sum: {component}", one.bill));
        }
    }
}

/// systemd takes the unit, and counts it as closed.
fn unit(checked: &Checked<'_>, report: &mut Report) {
    let unit = checked.workspace.root.join("packaging/tremula.service");
    let text = fs::read_to_string(unit).unwrap_or_default();
    let program = checked.place.join("unpacked/bin/tremula");
    // The program is looked for where the unit says.
    let text = text.replace("=/usr/bin/tremula", &format!("={}", program.display()));
    let path = checked.place.join("tremula.service");
    if let Err(error) = fs::write(&path, text) {
        return report.problem(format!("{}: {error}", path.display()));
    }
    let analyze = Job::new("systemd-analyze", &checked.place).env("SYSTEMD_LOG_LEVEL", "warning");
    let path = path.to_string_lossy();
    is_silent(
        &analyze.clone().args(["verify", "--man=no", &*path]),
        report,
    );
    let threshold = format!("--threshold={EXPOSED}");
    let security = [
        "security",
        "--offline=true",
        "--no-pager",
        &threshold,
        &*path,
    ];
    prints(&analyze.args(security), "Overall exposure level", report);
}

/// The manual pages are right, and can be shown.
fn manual(checked: &Checked<'_>, report: &mut Report) {
    let pages = checked.place.join("unpacked/share/man/man1");
    let names: Vec<String> = fs::read_dir(&pages)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    for name in ["tremula.1", "tremula-serve.1", "tremula-top.1"] {
        if !names.iter().any(|known| known == name) {
            report.problem(format!("there is no manual page {name}"));
        }
    }
    let lint = Job::new("mandoc", &pages).args(["-T", "lint", "-W", "error"]);
    is_silent(&lint.args(names.iter().map(String::as_str)), report);
    let shown = Job::new("mandoc", &pages).args(["-T", "html", "tremula-serve.1"]);
    prints(&shown, "max-memory", report);
}

/// promtool takes the alert rules, and their tests pass.
fn monitoring(checked: &Checked<'_>, report: &mut Report) {
    let folder = checked.workspace.root.join("packaging/monitoring");
    let promtool = Job::new("promtool", folder);
    let check = ["check", "rules", "tremula-alerts.yml"];
    prints(&promtool.clone().args(check), "SUCCESS", report);
    let test = ["test", "rules", "tremula-alerts.test.yml"];
    prints(&promtool.args(test), "SUCCESS", report);
}

/// The package is installed, upgraded, removed and purged in a Debian of its own.
fn installed(checked: &Checked<'_>, report: &mut Report) {
    let Some(debian) = debian(checked.workspace, report) else {
        return;
    };
    let root = match fresh(&checked.place, "debian") {
        Ok(root) => root,
        Err(error) => return report.problem(error),
    };
    let from = format!("{}/.", debian.display());
    let copy = Job::new("cp", &checked.place).args(["-a", &from, &*root.to_string_lossy()]);
    if !succeeds(&copy, report) {
        return;
    }
    let packages = root.join("packages");
    let script = checked.workspace.root.join("packaging/deb/check.sh");
    let copied = fs::create_dir_all(&packages)
        .and_then(|()| fs::copy(script, packages.join("check.sh")))
        .and_then(|_| {
            checked.packed.iter().try_for_each(|packed| {
                let deb = packed.folder.join(&packed.deb);
                fs::copy(deb, packages.join(&packed.deb)).map(drop)
            })
        });
    if let Err(error) = copied {
        return report.problem(format!("{}: {error}", packages.display()));
    }
    let check = Job::new("chroot", &checked.place)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .env("LC_ALL", "C.UTF-8")
        .args([&*root.to_string_lossy(), "bash", "/packages/check.sh"]);
    prints(&check, "ALL PASSED", report);
}

/// A Debian without anything in it that a package could lean on. It is made once, and kept.
fn debian(workspace: &Workspace, report: &mut Report) -> Option<PathBuf> {
    let root = workspace.target.join(format!("debian-{DEBIAN}"));
    if root.join("usr/bin/dpkg").is_file() {
        return Some(root);
    }
    let half = workspace.target.join("debian-unfinished");
    if half.exists()
        && let Err(error) = fs::remove_dir_all(&half)
    {
        report.problem(format!("{}: {error}", half.display()));
        return None;
    }
    let mirror = mirror();
    let job = Job::new("debootstrap", &workspace.target)
        .args(["--variant=minbase", DEBIAN])
        .args([&*half.to_string_lossy(), &mirror]);
    if !succeeds(&job, report) {
        report.problem(
            "debootstrap, which only root may run, makes the Debian in which the package is \
             installed. Run the step as root, with a mirror of Debian in reach",
        );
        return None;
    }
    if let Err(error) = fs::rename(&half, &root) {
        report.problem(format!("{}: {error}", root.display()));
        return None;
    }
    Some(root)
}

/// The mirror of Debian that this machine uses.
fn mirror() -> String {
    let folder = Path::new("/etc/apt");
    let lists = fs::read_dir(folder.join("sources.list.d"));
    let mut files: Vec<PathBuf> = lists
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    files.push(folder.join("sources.list"));
    files.sort();
    let texts = files
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok());
    let mut found = texts.filter_map(|text| mirror_in(&text));
    found.next().unwrap_or_else(|| MIRROR.to_owned())
}

/// The mirror in a list of sources, in either form.
fn mirror_in(text: &str) -> Option<String> {
    let is_mirror = |word: &&str| {
        let path = word.trim_end_matches('/');
        path.contains("://") && path.ends_with("/debian")
    };
    let lines = text
        .lines()
        .filter(|line| line.starts_with("URIs:") || line.starts_with("deb "));
    let mut words = lines.flat_map(str::split_whitespace);
    words.find(is_mirror).map(str::to_owned)
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn the_mirror_is_the_one_of_the_machine() {
        let new = "Types: deb\nURIs: http://a.example/debian-security\n\nTypes: deb\n\
                   URIs: http://b.example/debian\n";
        assert_eq!(mirror_in(new).as_deref(), Some("http://b.example/debian"));
        let old =
            "# deb http://x/debian\ndeb [trusted=yes] https://c.example/debian/ stable main\n";
        assert_eq!(mirror_in(old).as_deref(), Some("https://c.example/debian/"));
        assert_eq!(mirror_in("deb http://d.example/node nodistro main\n"), None);
    }

    #[test]
    fn a_command_that_does_not_print_what_it_should_is_a_problem() {
        let mut report = Report::default();
        prints(&Job::new("echo", "/").arg("three"), "three", &mut report);
        is_silent(&Job::new("true", "/"), &mut report);
        assert!(report.problems().is_empty());
        prints(&Job::new("echo", "/").arg("two"), "three", &mut report);
        is_silent(&Job::new("echo", "/").arg("Unknown key"), &mut report);
        assert_eq!(report.problems().len(), 2);
    }
}
