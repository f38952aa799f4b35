//! What all threads of a server share.

use super::Config;
use crate::channels::Channels;
use crate::clients::{Clients, Handshakes};
use crate::commands::{Denied, Gathering, Patches};
use crate::feeds::Feeds;
use crate::figures::Figures;
use crate::gather::{Peer, Threads};
use crate::group::Group;
use crate::limits::Limits;
#[cfg(any(test, fuzzing))]
use crate::listen::Listen;
use crate::listen::Listening;
use crate::memory::Memory;
use crate::persist::Persistence;
use crate::settings::{self, Live};
use crate::transport::Certificates;
use crate::users::Users;
use crate::watch::{Latencies, Monitors, Slowlog};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;
use tokio::sync::Notify;
use tremula_store::Store;
#[cfg(any(test, fuzzing))]
use tremula_store::StoreConfig;

/// The data that all threads of a server share.
pub(crate) struct Shared {
    pub(crate) store: Arc<Store>,
    /// Where the keys are kept, if they are.
    pub(crate) persistence: Option<Arc<Persistence>>,
    /// Its part in a group of nodes, if it is in one.
    pub(crate) group: Option<Arc<Group>>,
    pub(crate) limits: Limits,
    /// The commands that are refused.
    pub(crate) denied: Denied,
    pub(crate) memory: Memory,
    pub(crate) clients: Arc<Clients>,
    pub(crate) users: Users,
    pub(crate) stats: Stats,
    pub(crate) gathering: Arc<Gathering>,
    pub(crate) patches: Arc<Patches>,
    pub(crate) started: Instant,
    pub(crate) listening: Listening,
    /// What TLS begins sessions with, if the server listens for any.
    pub(crate) certificates: Option<Certificates>,
    pub(crate) handshakes: Handshakes,
    pub(crate) threads: Threads,
    /// Whether clients from other machines are refused as long as nobody needs a password.
    pub(crate) protected_mode: AtomicBool,
    pub(crate) table_directory: Option<PathBuf>,
    pub(crate) config_file: Option<PathBuf>,
    /// The settings as they were at the start.
    pub(crate) settings: Vec<(String, String)>,
    /// Those that can change, as they are now.
    pub(crate) live: Live,
    /// Those as they are in the file, as far as is known.
    written: OnceLock<Mutex<BTreeMap<&'static str, String>>>,
    pub(crate) figures: Figures,
    pub(crate) slowlog: Slowlog,
    pub(crate) latencies: Latencies,
    pub(crate) monitors: Arc<Monitors>,
    /// Whether keys are removed when their time has come. They are not there anyway.
    pub(crate) expires: AtomicBool,
    pub(crate) channels: Arc<Channels>,
    pub(crate) feeds: Arc<Feeds>,
    /// Stops the server.
    pub(crate) stop: Notify,
}

impl Shared {
    /// The data of a server with this configuration, whose users and listeners are there.
    pub(super) fn new(
        config: Config,
        store: Arc<Store>,
        users: Users,
        (listening, certificates): (Listening, Option<Certificates>),
        peers: Vec<Peer>,
    ) -> Self {
        let limits = config.limits;
        let shared = Self {
            feeds: Arc::new(Feeds::new(&store, &limits.feeds)),
            store,
            persistence: config.persistence,
            group: config.group,
            denied: limits.clients.denied(),
            clients: Arc::new(Clients::new(&limits)),
            figures: Figures::new(peers.len()),
            threads: Threads::new(peers, limits.gather.gather),
            memory: Memory::new(&limits.memory),
            users,
            live: Live::new(&limits),
            written: OnceLock::new(),
            slowlog: Slowlog::new(limits.watch.slowlog_max_len),
            latencies: Latencies::default(),
            monitors: Arc::default(),
            expires: AtomicBool::new(true),
            channels: Arc::default(),
            stop: Notify::new(),
            limits,
            stats: Stats::default(),
            gathering: Arc::default(),
            patches: Arc::default(),
            started: Instant::now(),
            listening,
            certificates,
            handshakes: Handshakes::default(),
            protected_mode: config.protected_mode.into(),
            table_directory: config.table_directory,
            config_file: config.config_file,
            settings: config.settings,
        };
        drop(shared.written());
        shared
    }

    /// The settings that can change, as they were at the start or were last written to the file.
    pub(crate) fn written(&self) -> MutexGuard<'_, BTreeMap<&'static str, String>> {
        let all = || Mutex::new(settings::for_file(self).into_iter().collect());
        let written = self.written.get_or_init(all).lock();
        written.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counters of what does not happen often; the others are in [`Figures`].
#[derive(Default)]
pub(crate) struct Stats {
    pub(crate) connections: AtomicU64,
    pub(crate) rejected: AtomicU64,
    /// Turns that ended because their time was over.
    pub(crate) turns_spent: AtomicU64,
    /// Commands with an id that were there before.
    pub(crate) repeated: AtomicU64,
    /// Writes that were sent on to the leader.
    pub(crate) forwarded: AtomicU64,
    /// Ranges that were read as they had been.
    pub(crate) past_ranges: AtomicU64,
}

/// The data of a server that does not listen.
#[cfg(any(test, fuzzing))]
pub(crate) fn shared(limits: Limits, store: &StoreConfig, peers: Vec<Peer>) -> Arc<Shared> {
    let Ok(store) = Store::new(store) else {
        panic!("the server takes this engine");
    };
    let users = Users::new(limits.users.max_users, limits.users.max_acl_log);
    let address = ([127, 0, 0, 1], 0).into();
    let listening = Listening {
        plain: Some(address),
        tls: None,
        unix: None,
    };
    let config = Config {
        listen: Listen::plain(address),
        threads: peers.len(),
        protected_mode: true,
        limits,
        acl_file: None,
        password_file: None,
        table_directory: None,
        config_file: None,
        persistence: None,
        group: None,
        settings: Vec::new(),
    };
    let opened = (listening, None);
    Arc::new(Shared::new(config, Arc::new(store), users, opened, peers))
}
