//! `cargo xtask dist`: what is shipped. An archive, a package of Debian, an image for containers,
//! the list of components, and the checksums of all of these. Two runs on one commit write the same
//! bytes.
//!
//! | file | holds |
//! |---|---|
//! | `parts` | what goes into the packages |
//! | `components` | the crates that the program is made of |
//! | `archive` | tar and ar |
//! | `deb`, `image` | two forms of packages |

pub(crate) mod archive;
mod components;
mod deb;
mod image;
mod parts;

use crate::flavour::Flavour;
use crate::job::Job;
use crate::workspace::Workspace;
use archive::{Entry, tar, with_folders};
use parts::{Parts, in_file, output, read};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// What to pack.
#[derive(clap::Args)]
pub(crate) struct DistArgs {
    /// The profile that the program is built with
    #[arg(long, value_name = "PROFILE", default_value = "measure")]
    profile: String,
    /// Pack this program instead of building one
    #[arg(long, value_name = "FILE", conflicts_with = "profile")]
    binary: Option<PathBuf>,
    /// Where to put the packages [default: dist in the build directory]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// The revision of the Debian package
    #[arg(long, value_name = "N", default_value_t = 1)]
    revision: u32,
}

/// What is released.
pub(crate) struct Release {
    pub(crate) version: String,
    /// Of the Debian package.
    pub(crate) revision: u32,
    /// As Debian and containers call it.
    pub(crate) architecture: &'static str,
    /// Of all files: seconds since 1970.
    pub(crate) time: u64,
}

impl Release {
    fn of(workspace: &Workspace, revision: u32) -> Result<Self, String> {
        let program = workspace
            .packages
            .iter()
            .find(|package| package.name == "tremula-cli")
            .ok_or("the workspace has no tremula-cli")?;
        let architecture = match workspace.host.split('-').next() {
            Some("x86_64") => "amd64",
            Some("aarch64") => "arm64",
            _ => {
                return Err(format!(
                    "no package can be made for {}: only for x86_64 and aarch64",
                    workspace.host
                ));
            }
        };
        let time = match env::var("SOURCE_DATE_EPOCH") {
            Ok(given) => given,
            Err(_) => workspace.git(&["log", "-1", "--format=%ct"])?,
        };
        let seconds = time.trim().parse();
        Ok(Self {
            version: program.version.clone(),
            revision,
            architecture,
            time: seconds.map_err(|_| format!("SOURCE_DATE_EPOCH is no time: {time}"))?,
        })
    }

    /// The version as Debian writes it: what comes before a release sorts before it.
    fn debian(&self) -> String {
        format!("{}-{}", self.version.replacen('-', "~", 1), self.revision)
    }

    /// The time as text.
    fn created(&self) -> Result<String, String> {
        let seconds = format!("@{}", self.time);
        let date = Job::new("date", "/").args(["--utc", "--date", &seconds, "+%Y-%m-%dT%H:%M:%SZ"]);
        Ok(output(&date)?.trim().to_owned())
    }
}

/// What was packed, and where it is.
pub(crate) struct Packed {
    pub(crate) folder: PathBuf,
    pub(crate) archive: String,
    pub(crate) deb: String,
    pub(crate) image: String,
    pub(crate) bill: String,
}

/// The file with the checksums.
pub(crate) const SUMS: &str = "SHA256SUMS";

/// Builds and packs.
pub(crate) fn command(workspace: &Workspace, arguments: &DistArgs) -> Result<bool, String> {
    let program = match &arguments.binary {
        Some(binary) => fs::canonicalize(binary).map_err(|error| in_file(binary, &error))?,
        None => build(workspace, &arguments.profile)?,
    };
    let folder = match &arguments.out {
        Some(out) => env::current_dir()
            .map_err(|error| format!("no current directory: {error}"))?
            .join(out),
        None => workspace.target.join("dist"),
    };
    let packed = pack(workspace, &program, arguments.revision, &folder)?;
    let shown = |name: &str| println!("{}", packed.folder.join(name).display());
    [&packed.archive, &packed.deb, &packed.image, &packed.bill]
        .into_iter()
        .for_each(|name| shown(name));
    shown(SUMS);
    Ok(true)
}

/// Builds the program in a build directory of its own, and without the paths of this machine in it.
pub(crate) fn build(workspace: &Workspace, profile: &str) -> Result<PathBuf, String> {
    let target = workspace.target.join("dist-build");
    let home = env::var("CARGO_HOME")
        .or_else(|_| env::var("HOME").map(|home| format!("{home}/.cargo")))
        .map_err(|_| "neither CARGO_HOME nor HOME is set".to_owned())?;
    let flags = format!(
        "--remap-path-prefix={}=/usr/src/tremula --remap-path-prefix={home}=/cargo",
        workspace.root.display()
    );
    let job = Flavour::Plain
        .cargo("build", &workspace.root, &target, &workspace.host)
        .env("RUSTFLAGS", flags)
        .args(["--locked", "--package", "tremula-cli", "--profile", profile]);
    println!("{}", job.told());
    output(&job)?;
    let folder = match profile {
        "dev" | "test" => "debug",
        "bench" => "release",
        other => other,
    };
    Ok(target.join(folder).join("tremula"))
}

/// Packs a program into a folder, which has nothing else in it afterwards.
pub(crate) fn pack(
    workspace: &Workspace,
    program: &Path,
    revision: u32,
    folder: &Path,
) -> Result<Packed, String> {
    let release = Release::of(workspace, revision)?;
    let created = release.created()?;
    for name in [folder.to_owned(), scratch_of(folder)] {
        if name.exists() {
            fs::remove_dir_all(&name).map_err(|error| in_file(&name, &error))?;
        }
        fs::create_dir_all(&name).map_err(|error| in_file(&name, &error))?;
    }
    let scratch = scratch_of(folder);
    let components = components::components(workspace)?;
    let parts = Parts::gather(workspace, program, &components, &scratch)?;
    let name = format!("tremula-{}-linux-{}", release.version, release.architecture);
    let packed = Packed {
        folder: folder.to_owned(),
        archive: format!("{name}.tar.xz"),
        deb: format!("tremula_{}_{}.deb", release.debian(), release.architecture),
        image: format!("{name}.oci"),
        bill: format!("{name}.cdx.json"),
    };
    let put = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, bytes).map_err(|error| in_file(&path, &error))
    };
    let inside: Vec<Entry> = parts.archive(workspace)?;
    let archive = tar(&format!("{name}/"), &with_folders(inside), release.time)?;
    put(
        &packed.archive,
        &compressed("xz", "archive.tar", &archive, &scratch)?,
    )?;
    put(
        &packed.deb,
        &deb::package(workspace, &parts, &release, &scratch)?,
    )?;
    let image = folder.join(&packed.image);
    image::write(&parts, &release, &created, &image, &scratch)?;
    put(
        &packed.bill,
        components::bill(&components, &release.version, &created).as_bytes(),
    )?;
    put(SUMS, sums(folder)?.as_bytes())?;
    fs::remove_dir_all(&scratch).map_err(|error| in_file(&scratch, &error))?;
    Ok(packed)
}

fn scratch_of(folder: &Path) -> PathBuf {
    folder.with_extension("scratch")
}

/// The checksums of all files below a folder, as `sha256sum --check` reads them.
fn sums(folder: &Path) -> Result<String, String> {
    let find = Job::new("find", folder).args([".", "-type", "f", "-printf", "%P\\n"]);
    let found = output(&find)?;
    let mut files: Vec<&str> = found.lines().collect();
    files.sort_unstable();
    output(&Job::new("sha256sum", folder).args(files))
}

/// The SHA-256 of bytes, in hexadecimal digits.
fn sum_of(bytes: &[u8], scratch: &Path) -> Result<String, String> {
    let path = scratch.join(".sum");
    fs::write(&path, bytes).map_err(|error| in_file(&path, &error))?;
    let line = output(&Job::new("sha256sum", scratch).arg(".sum"))?;
    fs::remove_file(&path).map_err(|error| in_file(&path, &error))?;
    let sum = line.split(' ').next().unwrap_or_default();
    Ok(sum.to_owned())
}

/// The bytes, compressed by `xz` or by `gzip`.
fn compressed(how: &str, name: &str, bytes: &[u8], scratch: &Path) -> Result<Vec<u8>, String> {
    let path = scratch.join(name);
    fs::write(&path, bytes).map_err(|error| in_file(&path, &error))?;
    // One thread: how xz cuts into blocks would depend on their number.
    let (program, arguments): (&str, &[&str]) = match how {
        "xz" => ("xz", &["--threads=1", "-6", "--force"]),
        _ => ("gzip", &["--no-name", "-9", "--force"]),
    };
    let job = Job::new(program, scratch)
        .args(arguments.iter().copied())
        .arg(name);
    output(&job)?;
    read(&scratch.join(format!("{name}.{how}")))
}
