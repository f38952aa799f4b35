//! A stream that begins behind a snapshot: how a group goes on whose stream has lost what its nodes
//! have.

use super::super::connection::{options, try_connect};
use super::super::{Settings, described, stream_config};
use super::bucket::{self, Bucket};
use super::random;
use crate::shelf::Manifest;
use async_nats::jetstream::context::DeleteStreamErrorKind;
use async_nats::jetstream::{Context, ErrorCode};
use std::path::Path;

/// Makes the stream of a group, whose first message will be the one behind the snapshot in this
/// package; and that snapshot. `check` loads what NATS has of it. Returns the manifest with the
/// bytes and the checksum of the package.
///
/// # Errors
///
/// The stream is there already, and is not to be replaced; NATS or `check` refuse. A stream or a
/// snapshot may be there then; another try replaces them.
pub fn publish_snapshot(
    settings: &Settings,
    replace: bool,
    package: &Path,
    manifest: Manifest,
    check: &dyn Fn(&Path, &Manifest) -> Result<(), String>,
) -> Result<Manifest, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let options = options(settings).await.map_err(|error| error.to_string())?;
        let context = try_connect(settings, options).await?;
        publish(&context, settings, replace, package, manifest, check).await
    })
}

async fn publish(
    context: &Context,
    settings: &Settings,
    replace: bool,
    package: &Path,
    mut manifest: Manifest,
    check: &dyn Fn(&Path, &Manifest) -> Result<(), String>,
) -> Result<Manifest, String> {
    let log = settings.stream();
    if replace {
        let snapshots = format!("OBJ_{}", settings.snapshots());
        for stream in [&log, &snapshots] {
            remove(context, stream).await?;
        }
    } else if context.get_stream(&log).await.is_ok() {
        return Err(format!(
            "NATS has a stream {log}; --replace removes it, with what it has"
        ));
    }
    (manifest.bytes, manifest.checksum) = bucket::measure(package)?;
    let bucket = Bucket::new(context, settings);
    let name = format!("{:020}.{:016x}", manifest.position().get(), random());
    bucket.put_package(&name, package).await?;
    bucket.get_package(&name, &manifest, package).await?;
    check(package, &manifest)?;
    bucket.put_manifest(&name, &manifest).await?;
    let mut config = stream_config(settings);
    config.first_sequence = Some(manifest.position().next().get());
    let made = context.create_stream(config).await;
    made.map_err(|error| described(&error))?;
    Ok(manifest)
}

async fn remove(context: &Context, stream: &str) -> Result<(), String> {
    match context.delete_stream(stream).await {
        Ok(_) => Ok(()),
        Err(error) => match error.kind() {
            DeleteStreamErrorKind::JetStream(error)
                if error.error_code() == ErrorCode::STREAM_NOT_FOUND =>
            {
                Ok(())
            }
            _ => Err(described(&error)),
        },
    }
}
