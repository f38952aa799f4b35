//! The command line of `tremula serve`.

use crate::group::{self, Group, GroupArgs, GroupError, Running, start_again};
use crate::http::{HttpArgs, HttpError};
use crate::huge_pages;
use crate::limits::{Bytes, Limits};
use crate::listen::{Listen, ListenArgs};
use crate::load::{self, LoadArgs, LoadError};
use crate::logs::{self, LogArgs, LogError};
use crate::persist::{DirectoryError, PersistArgs, Persistence};
use crate::server::Shared;
use crate::service::Service;
use crate::settings::SettingsError;
use crate::startup::Startup;
use crate::{Config, Server, StartError};
use clap::ArgAction;
use clap::builder::{BoolishValueParser, RangedU64ValueParser};
use std::env;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use thiserror::Error;
use tremula_log::{Log, MemoryLog};
use tremula_store::{
    CACHED_FROM, CacheSettings, CannotLog, Engine, LEAST_CACHE, OpenError, Policy, SaveError,
    Store, StoreConfig, Strategy, check_logged, parse_engine,
};
use tremula_sync::counting_allocator;

/// The most threads that a server starts: more than any machine has cores.
const MOST_THREADS: u64 = 1024;

/// Flags of `tremula serve`.
#[derive(clap::Args, Clone, Debug)]
pub struct ServeArgs {
    /// File of settings in TOML, a key for each flag; flags and variables of the environment
    /// (TREMULA_PORT for --port) go before it [default: none]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Where to listen.
    #[command(flatten)]
    pub listen: ListenArgs,

    /// The page.
    #[command(flatten)]
    pub http: HttpArgs,

    /// Threads that serve clients, 1 to 1024 [default: one a core]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=MOST_THREADS))]
    pub threads: Option<usize>,

    /// Index that holds the keys: aspen, ca_tree, lfca_tree, b_tree, art, masstree or locked
    #[arg(long, value_name = "ENGINE", default_value_t = Engine::Aspen, value_parser = parse_engine)]
    pub engine: Engine,

    /// Refuse clients from other machines: yes or no
    #[arg(long, value_name = "YES|NO", default_value = "yes", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub protected_mode: bool,

    /// File of users, a line each as ACL LIST shows them [default: none, ACL SAVE is refused]
    #[arg(long, value_name = "FILE")]
    pub acl_file: Option<PathBuf>,

    /// File whose first line is the password of the default user [default: none, it needs none]
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,

    /// Directory in which clients may write and read files of tables [default: none, they may not]
    #[arg(long, value_name = "DIRECTORY")]
    pub table_directory: Option<PathBuf>,

    /// Bytes that large values which are appended to may hold, in a cache of their own that evicts
    /// the least recently used [default: none, all values are kept]
    #[arg(long, value_name = "BYTES", value_parser = parse_cache)]
    pub cache: Option<Bytes>,

    /// Strategy of the shards of the cache: threading, local_set or affinity [default: threading]
    #[arg(long, value_name = "STRATEGY", requires = "cache")]
    pub strategy: Option<Strategy>,

    /// Bytes from which a value that is appended to lies in the cache [default: 4096]
    #[arg(long, value_name = "BYTES", requires = "cache")]
    pub cache_from: Option<Bytes>,

    /// Where keys are kept.
    #[command(flatten)]
    pub persist: PersistArgs,

    /// The group of nodes that it belongs to.
    #[command(flatten)]
    pub group: GroupArgs,

    /// What the server says, and where.
    #[command(flatten)]
    pub log: LogArgs,

    /// What to load before serving.
    #[command(flatten)]
    pub load: LoadArgs,

    /// The limits of one client.
    #[command(flatten)]
    pub limits: Limits,
}

fn parse_cache(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse()?;
    if bytes.0 < LEAST_CACHE {
        return Err(format!("a cache has at least {LEAST_CACHE} bytes"));
    }
    Ok(bytes)
}

/// Why `tremula serve` fails.
#[derive(Debug, Error)]
enum Failure {
    #[error(transparent)]
    Store(#[from] OpenError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("--max-memory needs an allocator that counts, which this program does not have")]
    Uncounted,
    #[error("--max-memory-policy {0} needs a limit; set --max-memory")]
    NothingToEvictFor(Policy),
    #[error("cannot take signals: {0}")]
    Signals(#[source] io::Error),
    #[error(transparent)]
    Log(#[from] LogError),
    #[cfg(feature = "otel")]
    #[error(transparent)]
    Spans(#[from] crate::spans::SpansError),
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error("{0}; or keep nothing with --memory-only")]
    CannotLog(#[from] CannotLog),
    #[error("--watch-ring: {0}")]
    CannotWatch(#[source] CannotLog),
    #[error(
        "--cache excludes --log-previous: the log would not have what a value in the cache was"
    )]
    CachedPrevious,
    #[error("--log-previous needs a log; set --watch-ring BYTES, or leave --memory-only out")]
    NothingToLog,
    #[error(transparent)]
    Group(#[from] GroupError),
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("cannot start again: {0}")]
    StartAgain(#[source] io::Error),
    #[error("not everything is on the disk: {0}")]
    Save(#[from] SaveError),
    #[error("cannot print: {0}")]
    Print(#[source] io::Error),
}

/// Serves until the process is asked to stop. Returns success after an orderly end. A failure to
/// start is printed in one line on standard error.
///
/// `settings` are the [values](crate::settings::values) of all settings, for `CONFIG GET`.
///
/// On SIGHUP the settings are read again with `read_again`; of these, the level of the log is
/// taken.
#[must_use]
pub fn run(
    arguments: ServeArgs,
    settings: Vec<(String, String)>,
    read_again: impl Fn() -> Result<ServeArgs, SettingsError> + Send + 'static,
) -> ExitCode {
    match serve(arguments, settings, read_again) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn serve(
    arguments: ServeArgs,
    settings: Vec<(String, String)>,
    read_again: impl Fn() -> Result<ServeArgs, SettingsError> + Send + 'static,
) -> Result<(), Failure> {
    logs::begin(&arguments.log)?;
    #[cfg(feature = "otel")]
    let _spans = crate::spans::begin()?;
    let threads = arguments
        .threads
        .or_else(|| thread::available_parallelism().ok().map(NonZeroUsize::get))
        .unwrap_or(1);
    GroupArgs::check(&arguments)?;
    let engine = arguments.engine;
    let cache = arguments.cache.map(|bytes| CacheSettings {
        strategy: arguments.strategy.unwrap_or_default(),
        bytes: bytes.0,
        from: arguments.cache_from.map_or(CACHED_FROM, |from| from.0),
    });
    let counts = counting_allocator::count_in_batches();
    let (memory, quotas) = (&arguments.limits.memory, &arguments.limits.quotas);
    if memory.max_memory.is_some_and(|limit| limit.0 > 0) && !counts {
        return Err(Failure::Uncounted);
    }
    if counts {
        huge_pages::refuse();
    }
    let limit = memory.limit();
    if limit.is_none() && memory.max_memory_policy != Policy::NoEviction {
        return Err(Failure::NothingToEvictFor(memory.max_memory_policy));
    }
    if limit.is_none() {
        tracing::warn!(
            "without --max-memory, clients can fill the memory until the system ends the server"
        );
    }
    let stored = StoreConfig::new(engine)
        .cache(cache)
        .term_bounds(arguments.limits.terms.bounds())
        .eviction(Some(memory.eviction()))
        .quotas(quotas.mailboxes(), quotas.cursors())
        .log_previous(arguments.limits.feeds.log_previous);
    if stored.log_previous && cache.is_some() {
        return Err(Failure::CachedPrevious);
    }
    let service = Arc::new(Service::from_environment());
    // Before a long load, of which it says that it goes on.
    let mut http = arguments.http.open(&arguments.listen)?;
    let directory = arguments
        .persist
        .directory(arguments.listen.port, |name| env::var_os(name))?;
    let feeds = &arguments.limits.feeds;
    if feeds.log_previous && directory.is_none() && feeds.watch_ring.0 == 0 {
        return Err(Failure::NothingToLog);
    }
    let mut settings = settings;
    let persistence = match &directory {
        Some(directory) => {
            check_logged(engine)?;
            if let Some((_, value)) = settings.iter_mut().find(|(name, _)| name == "dir") {
                *value = directory.display().to_string();
            }
            if arguments.group.is_on() {
                group::arrive(directory)?;
            }
            service.status("reading the log");
            let opened = Persistence::open(directory, &arguments.persist)?;
            Some(Arc::new(opened))
        }
        None => None,
    };
    let (group, point) = match arguments
        .group
        .open(persistence.as_ref(), arguments.listen.port)?
    {
        Some((group, point)) => (Some(group), point),
        None => (None, None),
    };
    let store = Arc::new(match &persistence {
        Some(persistence) => recover(&stored, persistence, group.as_deref(), &service)?,
        None => new_store(&stored, arguments.limits.feeds.watch_ring)?,
    });
    let config = Config {
        listen: Listen::from(&arguments.listen),
        threads,
        protected_mode: arguments.protected_mode,
        limits: arguments.limits,
        acl_file: arguments.acl_file,
        password_file: arguments.password_file,
        table_directory: arguments.table_directory,
        config_file: arguments.config,
        persistence: persistence.clone(),
        group,
        settings,
    };
    // Listens first, so that a taken port is reported before a long load.
    let mut server = Server::bind(config, Arc::clone(&store))?;
    server.report_to(Arc::clone(&service));
    match &mut http {
        Some(http) => http.show(&server)?,
        None => arguments.http.warn_if_taken(&arguments.listen),
    }
    let on_hangup = move || match read_again() {
        Ok(arguments) => logs::set_level(arguments.log.log_level),
        Err(error) => tracing::warn!("the settings stay as they are: {error}"),
    };
    server
        .survive_signals(on_hangup)
        .map_err(Failure::Signals)?;
    load::load(&arguments.load, &store, limit)?;
    let running = Running::begin(&server, &arguments.group, engine, point)?;
    let shared = Arc::clone(server.shared());
    let stop = server.stop_signal().map_err(Failure::Signals)?;
    warn_if_exposed(&server, arguments.protected_mode);
    announce(&server, engine, threads, directory.as_deref()).map_err(Failure::Print)?;
    tracing::info!(address = %server.listening(), %engine, threads, "ready");
    if let Some(http) = &http {
        http.ready();
    }
    service.ready(&format!("serving on {}", server.listening()));
    server.run(stop);
    drop(http);
    if running.as_ref().is_some_and(Running::starts_again) {
        // The manager would end a server that stops.
        service.reloading("starting again");
    } else {
        service.stopping("making everything durable");
    }
    end(&shared, running)?;
    tracing::info!("stopped");
    Ok(())
}

/// Ends the node of a group, if there is one, and makes everything durable.
fn end(shared: &Shared, running: Option<Running>) -> Result<(), Failure> {
    let Some(persistence) = &shared.persistence else {
        return Ok(());
    };
    let Some(running) = running else {
        return Ok(persistence.close(&shared.store)?);
    };
    let starts_again = running.starts_again();
    if running.end(shared) {
        persistence.close(&shared.store)?;
    } else {
        // The store has effects that are not confirmed, which no snapshot may have.
        persistence.close_log()?;
    }
    if starts_again {
        return Err(Failure::StartAgain(start_again()));
    }
    Ok(())
}

/// A store in memory, with a log in memory if some of it is to be kept for those who watch.
fn new_store(config: &StoreConfig, ring: Bytes) -> Result<Store, Failure> {
    if ring.0 == 0 {
        return Ok(Store::new(config)?);
    }
    check_logged(config.engine).map_err(Failure::CannotWatch)?;
    let log = Arc::new(MemoryLog::bounded(ring.0));
    Ok(Store::logging(config, log)?)
}

/// The store as it was when the server ended.
fn recover(
    config: &StoreConfig,
    persistence: &Persistence,
    group: Option<&Group>,
    service: &Service,
) -> Result<Store, OpenError> {
    let (folder, log) = (persistence.folder(), persistence.log());
    let mut startup = Startup::new(service, folder, &*log);
    let progress = &mut |progress| startup.show(progress);
    let recovered = match group {
        None => Store::recover(config, log, folder, progress),
        Some(group) => {
            let log = Arc::clone(&group.host) as Arc<dyn Log>;
            Store::recover_to_follow(config, log, folder, progress)
        }
    };
    startup.end();
    let (store, recovered) = recovered?;
    for damaged in &recovered.damaged {
        tracing::warn!("a snapshot is not used: {damaged}");
    }
    let keys: usize = store.databases().map(|database| database.len()).sum();
    tracing::info!(
        keys,
        tables = store.tables().len(),
        mailboxes = store.mailboxes().count(),
        records = recovered.records,
        directory = %persistence.directory().display(),
        "recovered"
    );
    Ok(store)
}

fn warn_if_exposed(server: &Server, protected_mode: bool) {
    let listening = server.listening();
    // Both have the same address.
    let Some(address) = listening.plain.or(listening.tls).map(|at| at.ip()) else {
        return;
    };
    if address.is_loopback() {
        return;
    }
    if protected_mode {
        tracing::warn!(
            "listening on {address}, but protected mode refuses clients from other machines; \
             --protected-mode no serves them"
        );
    } else {
        tracing::warn!(
            "listening on {address} without protected mode or passwords: \
             whoever reaches this port can read and change everything"
        );
    }
}

/// Prints the one line that says where the server is, once it accepts connections.
fn announce(
    server: &Server,
    engine: Engine,
    threads: usize,
    directory: Option<&Path>,
) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let plural = if threads == 1 { "" } else { "s" };
    write!(
        out,
        "tremula {} ready on {} (engine {engine}, {threads} thread{plural}, ",
        env!("CARGO_PKG_VERSION"),
        server.listening(),
    )?;
    match directory {
        Some(directory) => writeln!(out, "data in {})", directory.display())?,
        None => writeln!(out, "memory only)")?,
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Args;

    #[test]
    fn the_help_names_the_engines_that_are_served() {
        let command = ServeArgs::augment_args(clap::Command::new("serve"));
        let engine = command
            .get_arguments()
            .find(|argument| argument.get_id() == "engine");
        let help = engine
            .and_then(clap::Arg::get_help)
            .expect("help")
            .to_string();
        let named: Vec<&str> = help
            .split([' ', ','])
            .filter(|word| word.parse::<Engine>().is_ok())
            .collect();
        let served: Vec<&str> = tremula_store::served_engines().map(Engine::name).collect();
        assert_eq!(named, served);
    }
}
