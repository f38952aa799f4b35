//! An image for containers, as a layout of the Open Container Initiative: files whose names are the
//! SHA-256 of what is in them.
//!
//! The image has one layer: the program, the shared libraries that it is loaded with, as they are
//! on this machine, and an account. It has no shell.

use super::archive::{Entry, tar, with_folders};
use super::parts::{Parts, in_file};
use super::{Release, compressed, sum_of};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// The number of the user that the server runs as.
const USER: u32 = 10_001;

/// Writes the layout into a folder that is empty.
pub(super) fn write(
    parts: &Parts,
    release: &Release,
    created: &str,
    folder: &Path,
    scratch: &Path,
) -> Result<(), String> {
    let blobs = folder.join("blobs/sha256");
    fs::create_dir_all(&blobs).map_err(|error| in_file(&blobs, &error))?;
    let layer = tar("", &with_folders(root(parts)), release.time)?;
    let difference = format!("sha256:{}", sum_of(&layer, scratch)?);
    let layer = compressed("gz", "layer.tar", &layer, scratch)?;
    let layer = blob(
        &layer,
        "application/vnd.oci.image.layer.v1.tar+gzip",
        &blobs,
    )?;
    let labels = json!({
        "org.opencontainers.image.title": "tremula",
        "org.opencontainers.image.version": release.version,
        "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
        "org.opencontainers.image.source": "https://github.com/tremula/tremula",
    });
    let config = json!({
        "architecture": release.architecture,
        "os": "linux",
        "created": created,
        "config": {
            "User": format!("{USER}:{USER}"),
            "Entrypoint": ["/usr/bin/tremula"],
            "Cmd": ["serve", "--bind", "0.0.0.0", "--dir", "/var/lib/tremula"],
            "ExposedPorts": { "6380/tcp": {} },
            "Volumes": { "/var/lib/tremula": {} },
            "WorkingDir": "/var/lib/tremula",
            "StopSignal": "SIGTERM",
            "Labels": labels,
        },
        "rootfs": { "type": "layers", "diff_ids": [difference] },
        "history": [{ "created": created, "created_by": "cargo xtask dist" }],
    });
    let config = blob(
        config.to_string().as_bytes(),
        "application/vnd.oci.image.config.v1+json",
        &blobs,
    )?;
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": kind,
        "config": config,
        "layers": [layer],
        "annotations": labels,
    });
    let mut manifest = blob(manifest.to_string().as_bytes(), kind, &blobs)?;
    manifest["platform"] = json!({ "architecture": release.architecture, "os": "linux" });
    manifest["annotations"] = json!({ "org.opencontainers.image.ref.name": release.version });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [manifest],
    });
    put(&folder.join("index.json"), index.to_string().as_bytes())?;
    let layout = json!({ "imageLayoutVersion": "1.0.0" });
    put(&folder.join("oci-layout"), layout.to_string().as_bytes())
}

/// What the image has in it.
fn root(parts: &Parts) -> Vec<Entry> {
    let account = format!("tremula:x:{USER}:{USER}:Tremula:/var/lib/tremula:/usr/sbin/nologin\n");
    let mut entries = vec![
        Entry::file("usr/bin/tremula", 0o755, &*parts.program),
        Entry::file("etc/passwd", 0o644, account),
        Entry::file("etc/group", 0o644, format!("tremula:x:{USER}:\n")),
        Entry::file("etc/nsswitch.conf", 0o644, "hosts: files dns\n"),
        Entry::folder("tmp", 0o1777, 0),
        Entry::folder("var/lib/tremula", 0o700, USER),
        Entry::file(
            "usr/share/doc/tremula/THIRD-PARTY",
            0o644,
            &*parts.third_parties,
        ),
    ];
    for (name, text) in &parts.papers {
        if name.starts_with("LICENSE") {
            let path = format!("usr/share/doc/tremula/{name}");
            entries.push(Entry::file(path, 0o644, &**text));
        }
    }
    for (path, bytes) in &parts.libraries {
        let path = path.to_string_lossy();
        entries.push(Entry::file(path.trim_start_matches('/'), 0o755, &**bytes));
    }
    entries
}

/// Writes a blob; returns what refers to it.
fn blob(bytes: &[u8], kind: &str, blobs: &Path) -> Result<Value, String> {
    let sum = sum_of(bytes, blobs)?;
    put(&blobs.join(&sum), bytes)?;
    Ok(json!({
        "mediaType": kind,
        "digest": format!("sha256:{sum}"),
        "size": bytes.len(),
    }))
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(path, bytes).map_err(|error| in_file(path, &error))
}
