//! Connecting to NATS, and saying why that fails.

use super::{ACKNOWLEDGEMENT, AGAIN, ANSWER, Settings, described};
use async_nats::jetstream::{Context, context};
use async_nats::{ConnectOptions, Event, ServerAddr};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tremula_sync::Mutex;

/// How often a connection is tested.
const PING: Duration = Duration::from_secs(2);

/// The longest pause between two tries to connect again.
const RECONNECT: Duration = Duration::from_millis(500);

/// A failure that goes on is said again after this number of tries: every ten seconds.
const SAID_EVERY: u32 = 20;

/// A failure that may go on for long: it is said at once, and then seldom.
#[derive(Default)]
pub(super) struct Failing(u32);

impl Failing {
    /// Whether to say this one.
    pub(super) fn is_said(&mut self) -> bool {
        let is_said = self.0.is_multiple_of(SAID_EVERY);
        self.0 = self.0.wrapping_add(1);
        is_said
    }
}

/// How to connect, with what the files of the settings have.
pub(super) async fn options(settings: &Settings) -> io::Result<ConnectOptions> {
    let of_file = |path: &std::path::Path, error: io::Error| {
        io::Error::new(error.kind(), format!("{}: {error}", path.display()))
    };
    let mut options = match &settings.credentials {
        Some(path) => ConnectOptions::with_credentials_file(path)
            .await
            .map_err(|error| of_file(path, error))?,
        None => ConnectOptions::new(),
    };
    if let Some(path) = &settings.authority {
        options = options.add_root_certificates(path.clone());
    }
    Ok(options
        .name(format!("tremula {} {}", settings.group, settings.node))
        .connection_timeout(ANSWER)
        .request_timeout(Some(ANSWER))
        .ping_interval(PING)
        .reconnect_delay_callback(|attempt| {
            let attempt = u32::try_from(attempt).unwrap_or(u32::MAX);
            Duration::from_millis(20)
                .saturating_mul(attempt)
                .min(RECONNECT)
        }))
}

/// Tries each of the servers once.
pub(super) async fn try_connect(
    settings: &Settings,
    options: ConnectOptions,
) -> Result<Context, String> {
    let servers = settings.servers.iter().map(|server| server.parse());
    let servers: io::Result<Vec<ServerAddr>> = servers.collect();
    let servers = servers.map_err(|error| error.to_string())?;
    let connected = options.connect(servers).await;
    let client = connected.map_err(|error| described(&error))?;
    let context = context::ContextBuilder::new().timeout(ACKNOWLEDGEMENT);
    Ok(context.build(client))
}

/// Connects, however long that takes, and says what becomes of the connection.
pub(super) async fn connect(settings: &Settings, options: ConnectOptions) -> Context {
    // Tries to connect again that have failed since there was a connection.
    let failed = Arc::new(Mutex::new(Failing::default()));
    let options = options.event_callback(move |event| {
        let failed = Arc::clone(&failed);
        async move {
            match event {
                Event::Connected => {
                    *failed.lock() = Failing::default();
                    tracing::info!("connected to NATS");
                }
                Event::Disconnected => tracing::warn!("the connection to NATS is lost"),
                Event::ServerError(error) => tracing::warn!("NATS says: {error}"),
                Event::ClientError(error) if failed.lock().is_said() => {
                    tracing::warn!("the connection to NATS: {error}");
                }
                _ => (),
            }
        }
    });
    let mut failing = Failing::default();
    loop {
        match try_connect(settings, options.clone()).await {
            Ok(context) => return context,
            Err(why) if failing.is_said() => {
                let servers = settings.servers.join(",");
                tracing::warn!(servers, "no server of NATS lets this node in: {why}");
            }
            Err(_) => (),
        }
        tokio::time::sleep(AGAIN).await;
    }
}
