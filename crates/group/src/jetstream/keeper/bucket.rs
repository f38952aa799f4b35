//! Packages and manifests in the object store of NATS.
//!
//! A snapshot is two objects: `NAME.package`, which NATS keeps in chunks, and `NAME.manifest`,
//! which is written last. What is older than those that are kept is removed, and so is what a node
//! has left that died while it wrote.

use super::super::{Settings, described};
use crate::shelf::{Manifest, Shelf};
use async_nats::jetstream::Context;
use async_nats::jetstream::object_store::{Config, ObjectInfo, ObjectStore};
use async_nats::jetstream::stream::StorageType;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use futures_util::StreamExt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

/// How long NATS may take for the next part of an object.
const PART: Duration = Duration::from_secs(10);

/// Bytes that are read at once.
const BUFFER: usize = 1 << 20;

/// The longest manifest that is read.
const MOST_MANIFEST: usize = 1 << 16;

const PACKAGE: &str = ".package";
const MANIFEST: &str = ".manifest";

pub(super) struct Bucket {
    context: Context,
    name: String,
    replicas: usize,
    /// Chunks that had no object when this was looked at last: of an upload that goes on, or that
    /// was never finished.
    unused: Vec<String>,
}

impl Bucket {
    pub(super) fn new(context: &Context, settings: &Settings) -> Self {
        Self {
            context: context.clone(),
            name: settings.snapshots(),
            replicas: settings.replicas,
            unused: Vec::new(),
        }
    }

    /// The bucket, which is made if it is missing.
    async fn open(&self) -> Result<ObjectStore, String> {
        if let Ok(store) = self.context.get_object_store(&self.name).await {
            return Ok(store);
        }
        let config = Config {
            bucket: self.name.clone(),
            storage: StorageType::File,
            num_replicas: self.replicas,
            ..Config::default()
        };
        let made = self.context.create_object_store(config).await;
        made.map_err(|error| described(&error))
    }

    async fn infos(&self, store: &ObjectStore) -> Result<Vec<ObjectInfo>, String> {
        let list = async {
            let mut list = store.list().await.map_err(|error| described(&error))?;
            let mut infos = Vec::new();
            while let Some(info) = list.next().await {
                infos.push(info.map_err(|error| described(&error))?);
            }
            Ok(infos)
        };
        let listed = timeout(PART, list).await;
        listed.unwrap_or_else(|_| Err("the object store does not answer".to_owned()))
    }

    /// The snapshots that have a manifest.
    pub(super) async fn list(&self) -> Result<Shelf, String> {
        let store = self.open().await?;
        let mut all = Vec::new();
        for info in self.infos(&store).await? {
            let Some(name) = info.name.strip_suffix(MANIFEST) else {
                continue;
            };
            match self.manifest(&store, &info.name).await {
                Ok(manifest) => all.push((name.to_owned(), manifest)),
                Err(why) => tracing::warn!("the manifest of {name} is not used: {why}"),
            }
        }
        Ok(Shelf::new(all))
    }

    async fn manifest(&self, store: &ObjectStore, name: &str) -> Result<Manifest, String> {
        let mut bytes = Vec::new();
        let mut take = |part: &[u8]| {
            bytes.extend_from_slice(part);
            bytes.len() <= MOST_MANIFEST
        };
        read(store, name, &mut take).await?;
        Manifest::decode(&bytes).ok_or_else(|| "it is damaged".to_owned())
    }

    pub(super) async fn put_manifest(&self, name: &str, manifest: &Manifest) -> Result<(), String> {
        let bytes = manifest.encode();
        let mut bytes = &bytes[..];
        let store = self.open().await?;
        let name = format!("{name}{MANIFEST}");
        let put = store.put(name.as_str(), &mut bytes).await;
        put.map_err(|error| described(&error))?;
        Ok(())
    }

    pub(super) async fn put_package(&self, name: &str, package: &Path) -> Result<(), String> {
        let store = self.open().await?;
        let file = tokio::fs::File::open(package).await;
        let mut file = file.map_err(|error| error.to_string())?;
        let name = format!("{name}{PACKAGE}");
        let put = store.put(name.as_str(), &mut file).await;
        put.map_err(|error| described(&error))?;
        Ok(())
    }

    /// Writes a package into a file, and compares it with its manifest.
    pub(super) async fn get_package(
        &self,
        name: &str,
        manifest: &Manifest,
        package: &Path,
    ) -> Result<(), String> {
        let store = self.open().await?;
        let failed = |error: io::Error| error.to_string();
        let mut file = tokio::fs::File::create(package).await.map_err(failed)?;
        let (mut bytes, mut checksum) = (0_u64, 0);
        let (sender, mut parts) = tokio::sync::mpsc::channel::<Vec<u8>>(8);
        let name = format!("{name}{PACKAGE}");
        // A task of its own: the client's reader panics if NATS goes away while it begins.
        let reading = tokio::spawn(async move { send(&store, &name, sender).await });
        while let Some(part) = parts.recv().await {
            bytes += part.len() as u64;
            checksum = crc32c::crc32c_append(checksum, &part);
            file.write_all(&part).await.map_err(failed)?;
        }
        let read = reading.await;
        read.unwrap_or_else(|error| Err(error.to_string()))?;
        file.flush().await.map_err(failed)?;
        if (bytes, checksum) != (manifest.bytes, manifest.checksum) {
            return Err(format!(
                "its package is damaged: it has {bytes} bytes and the checksum {checksum:08x}, not \
                 {} and {:08x}",
                manifest.bytes, manifest.checksum
            ));
        }
        Ok(())
    }

    /// Removes all snapshots before those that are kept, and what no object has.
    ///
    /// This process may have been stopped for a while, anywhere in here, and other nodes may have
    /// made newer snapshots meanwhile. So only what has a name of its own is removed: objects whose
    /// names say that they are older, and chunks that had no object the last time either.
    pub(super) async fn remove_before(&mut self, shelf: &Shelf) -> Result<(), String> {
        let Some(oldest) = shelf.kept().last() else {
            return Ok(());
        };
        let store = self.open().await?;
        let subjects = self.subjects(&format!("$O.{}.C.>", self.name)).await?;
        let mut used = Vec::new();
        for info in self.infos(&store).await? {
            let chunks = format!("$O.{}.C.{}", self.name, info.nuid);
            // A name begins with the number of a message.
            if info.name.as_str() < oldest {
                tracing::info!(
                    object = info.name,
                    "an old snapshot of the group is removed"
                );
                // As the client spells it.
                let name = URL_SAFE.encode(&info.name);
                self.purge(&format!("$O.{}.M.{name}", self.name)).await?;
                self.purge(&chunks).await?;
            }
            used.push(chunks);
        }
        let mut unused = Vec::new();
        for subject in subjects {
            if used.contains(&subject) {
                continue;
            }
            if self.unused.contains(&subject) {
                self.purge(&subject).await?;
            } else {
                unused.push(subject);
            }
        }
        self.unused = unused;
        Ok(())
    }

    async fn subjects(&self, filter: &str) -> Result<Vec<String>, String> {
        let stream = self.context.get_stream(format!("OBJ_{}", self.name)).await;
        let stream = stream.map_err(|error| described(&error))?;
        let infos = stream.info_with_subjects(filter).await;
        let mut infos = infos.map_err(|error| described(&error))?;
        let mut subjects = Vec::new();
        while let Some(info) = infos.next().await {
            subjects.push(info.map_err(|error| described(&error))?.0);
        }
        Ok(subjects)
    }

    async fn purge(&self, subject: &str) -> Result<(), String> {
        let stream = self.context.get_stream(format!("OBJ_{}", self.name)).await;
        let stream = stream.map_err(|error| described(&error))?;
        let purged = stream.purge().filter(subject).await;
        purged.map_err(|error| described(&error))?;
        Ok(())
    }
}

/// Passes an object on, part by part.
async fn send(
    store: &ObjectStore,
    name: &str,
    parts: tokio::sync::mpsc::Sender<Vec<u8>>,
) -> Result<(), String> {
    let object = store.get(name).await;
    let mut object = object.map_err(|error| described(&error))?;
    if object.info().chunks == 0 {
        return Ok(());
    }
    loop {
        let mut part = vec![0; BUFFER];
        let length = next(&mut object, &mut part).await?;
        part.truncate(length);
        if length == 0 || parts.send(part).await.is_err() {
            return Ok(());
        }
    }
}

/// Shows an object, part by part, until `take` returns `false`.
async fn read(
    store: &ObjectStore,
    name: &str,
    take: &mut impl FnMut(&[u8]) -> bool,
) -> Result<(), String> {
    let (sender, mut parts) = tokio::sync::mpsc::channel(1);
    let (store, name) = (store.clone(), name.to_owned());
    let reading = tokio::spawn(async move { send(&store, &name, sender).await });
    while let Some(part) = parts.recv().await {
        if !take(&part) {
            return Ok(());
        }
    }
    let read = reading.await;
    read.unwrap_or_else(|error| Err(error.to_string()))
}

async fn next(object: &mut (impl AsyncReadExt + Unpin), part: &mut [u8]) -> Result<usize, String> {
    match timeout(PART, object.read(part)).await {
        Ok(read) => read.map_err(|error| error.to_string()),
        Err(_) => Err("a part of it is missing".to_owned()),
    }
}

/// The bytes and the checksum of a file.
pub(super) fn measure(path: &Path) -> Result<(u64, u32), String> {
    let failed = |error: io::Error| error.to_string();
    let mut file = File::open(path).map_err(failed)?;
    let mut buffer = vec![0; BUFFER];
    let (mut bytes, mut checksum) = (0, 0);
    loop {
        let length = file.read(&mut buffer).map_err(failed)?;
        if length == 0 {
            return Ok((bytes, checksum));
        }
        bytes += length as u64;
        checksum = crc32c::crc32c_append(checksum, &buffer[..length]);
    }
}
