//! What the page shows of the server.

use super::console;
use super::database::{OfDatabase, Samples, micros, millis, text};
use super::table::{TABLE, add_tables};
use crate::commands::{Command, all, lookup_full, numbered};
use crate::figures::{MemoryNow, Reading, Times, write_metrics};
use crate::lock::lock;
use crate::server::Shared;
use crate::users::{DEFAULT, Reason, User};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tremula_group::Standing;
use tremula_observe::{
    Access, Answer, ClientInfo, CommandInfo, CommandSecond, LogSecond, MailboxInfo, MemorySecond,
    Metrics, Observed, ObservedMap, Overview, Refusal, ReplicaSecond, Reply, Sampled, Second,
    Section, ShardInfo, SlowCommand, SnapshotSecond, Visitor,
};
use tremula_store::{DATABASES, Sequence};

/// For how long no thread may stand still if the server is healthy. Longer than any command should
/// take.
const UNHEALTHY: Duration = Duration::from_secs(5);

/// Entries of the slow log, clients and mailboxes that are shown.
const MOST_SHOWN: usize = 1000;

/// What the figures were a second ago.
#[derive(Default)]
struct Before {
    commands: BTreeMap<usize, (u64, Times)>,
    read: u64,
    sent: u64,
    evicted: u64,
    expired: u64,
}

/// The server as it is to the page.
pub(super) struct Program {
    server: Arc<Shared>,
    /// The user of visitors that do not log in, if one was named.
    user: Option<String>,
    is_ready: AtomicBool,
    before: Mutex<Before>,
    samples: Arc<Samples>,
}

impl Program {
    pub(super) fn new(server: Arc<Shared>, user: Option<String>) -> Self {
        let program = Self {
            server,
            user,
            is_ready: AtomicBool::new(false),
            before: Mutex::default(),
            samples: Arc::new(Mutex::new(vec![Vec::new(); DATABASES])),
        };
        // The first second begins now.
        drop(program.second());
        program
    }

    /// Notes that the server serves.
    pub(super) fn set_ready(&self) {
        self.is_ready.store(true, Relaxed);
    }

    /// The user whose rights a visitor has.
    fn user(&self, visitor: &Visitor) -> Result<Arc<User>, Refusal> {
        let name = match visitor {
            Visitor::Reader | Visitor::Owner => self.user.as_deref().map_or(DEFAULT, str::as_bytes),
            Visitor::User(name) => name.as_bytes(),
        };
        self.server
            .users
            .get(name)
            .ok_or_else(|| Refusal::Unproved(format!("there is no user '{}' any more", text(name))))
    }

    /// Puts the keys that the threads have sampled to their databases.
    fn sort_samples(&self) {
        let mut taken = Vec::new();
        self.server.figures.stripes.take_samples(&mut taken);
        let mut samples = lock(&self.samples);
        for sample in taken {
            if let Some(of) = samples.get_mut(sample.database) {
                of.push(Sampled {
                    key: sample.key,
                    is_write: sample.is_write,
                    stands_for: sample.stands_for,
                });
            }
        }
        // Of a database that is not walked nobody takes them.
        for of in samples.iter_mut() {
            let count = of.len();
            of.drain(..count.saturating_sub(MOST_SAMPLES));
        }
    }

    fn log(&self) -> Option<LogSecond> {
        let log = self.server.store.log()?;
        let stats = self.server.persistence.as_ref()?.stats();
        let last = self.server.store.last_effect().get();
        Some(LogSecond {
            lag_records: last.saturating_sub(log.durable().get()),
            lag_bytes: Some(stats.unsynced),
            sync_us: (stats.syncs > 0).then(|| micros(stats.last_sync)),
        })
    }

    fn snapshots(&self) -> Option<SnapshotSecond> {
        let persistence = self.server.persistence.as_ref()?;
        Some(SnapshotSecond {
            running: persistence.is_saving(),
            progress: (persistence.progress()).map(|(done, all)| done as f64 / all.max(1) as f64),
            last_at: persistence.last_save_time().saturating_mul(1000),
        })
    }

    fn replicas(&self) -> Vec<ReplicaSecond> {
        let Some(group) = &self.server.group else {
            return Vec::new();
        };
        let report = group.report();
        // What others have said is up to a second old, and so are their lags.
        let behind = |last: Sequence| report.confirmed.get().saturating_sub(last.get());
        let own = ReplicaSecond {
            name: group.node.clone(),
            role: report.standing.name().to_owned(),
            lag_records: Some(behind(report.last)),
        };
        let others = group.nodes().into_iter();
        let others = others.filter(|node| node.name != group.node);
        let others = others.map(|node| {
            let state = node.state.filter(|_| !node.is_away());
            ReplicaSecond {
                role: state
                    .map_or("away", |(standing, _)| standing.name())
                    .to_owned(),
                lag_records: state.map(|(_, last)| behind(last)),
                name: node.name,
            }
        });
        std::iter::once(own).chain(others).collect()
    }
}

/// Samples of a database that wait.
const MOST_SAMPLES: usize = 1 << 14;

impl Observed for Program {
    fn overview(&self) -> Overview {
        let server = &self.server;
        let users = &server.users;
        let is_open = self.user.is_some() || users.lets_anybody_in();
        let (role, node) = match &server.group {
            Some(group) => (group.host.standing().name().to_owned(), group.node.clone()),
            None => ("alone".to_owned(), String::new()),
        };
        let mut sections = vec![
            "commands",
            "clients",
            "memory",
            "slowlog",
            "mailboxes",
            "shards",
            "console",
        ];
        if server.persistence.is_some() {
            sections.extend(["log", "snapshots"]);
        }
        if server.group.is_some() {
            sections.push("replicas");
        }
        Overview {
            name: "tremula".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine: server.store.database(0).engine().to_owned(),
            uptime_s: server.started.elapsed().as_secs(),
            role,
            node,
            embedded: false,
            writes: if is_open {
                Access::Token
            } else {
                Access::Login
            },
            sections,
        }
    }

    fn second(&self) -> Second {
        self.sort_samples();
        let server = &self.server;
        let stripes = &server.figures.stripes;
        let mut before = lock(&self.before);
        let mut commands = Vec::new();
        for (number, sum) in stripes.all_commands() {
            let known = before.commands.remove(&number).unwrap_or_default();
            let calls = sum.calls.saturating_sub(known.0);
            if calls > 0
                && let Some(command) = numbered(number)
            {
                let mut times = sum.times.clone();
                times.subtract(&known.1);
                let at = |percent| times.percentile(percent).as_secs_f64() * 1e6;
                commands.push(CommandSecond {
                    name: Cow::Borrowed(command.full_name),
                    calls,
                    p50_us: at(50.0),
                    p99_us: at(99.0),
                    p999_us: at(99.9),
                });
            }
            before.commands.insert(number, (sum.calls, sum.times));
        }
        let since = |now: u64, before: &mut u64| {
            let passed = now.saturating_sub(*before);
            *before = now;
            passed
        };
        let memory = MemoryNow::new(server);
        let kinds = [
            ("mailboxes", memory.mailboxes),
            ("clients", memory.buffers),
            ("monitors", memory.monitors),
            ("cursors", memory.cursors),
            ("slowlog", memory.slowlog),
        ];
        let others = kinds.iter().map(|(_, bytes)| *bytes).sum();
        let keys = ("keys", memory.used.saturating_sub(others));
        Second {
            seq: 0,
            at: 0,
            commands,
            clients: server.clients.count() as u64,
            net_in: since(stripes.sum(|stripe| &stripe.read), &mut before.read),
            net_out: since(stripes.sum(|stripe| &stripe.sent), &mut before.sent),
            keys: server
                .store
                .databases()
                .map(|database| database.len() as u64)
                .sum(),
            memory: MemorySecond {
                used: memory.used,
                limit: memory.limit,
                kinds: std::iter::once(keys).chain(kinds).collect(),
            },
            log: self.log(),
            snapshots: self.snapshots(),
            replicas: self.replicas(),
            evicted: since(server.store.eviction().evicted(), &mut before.evicted),
            expired: since(server.store.expired(), &mut before.expired),
        }
    }

    fn maps(&self) -> Vec<Arc<dyn ObservedMap>> {
        let databases = self.server.store.databases().enumerate();
        let shown = databases.filter(|(number, database)| *number == 0 || !database.is_empty());
        let mut maps: Vec<Arc<dyn ObservedMap>> = Vec::new();
        for (number, _) in shown {
            maps.push(Arc::new(OfDatabase {
                server: Arc::clone(&self.server),
                number,
                samples: Arc::clone(&self.samples),
            }));
        }
        add_tables(&self.server, &mut maps);
        maps
    }

    fn section_of(&self, map: &str) -> Section {
        match map.starts_with(TABLE) {
            true => Section::Tables,
            false => Section::Keys,
        }
    }

    fn allows(&self, visitor: &Visitor, section: Section) -> Result<(), Refusal> {
        let user = self.user(visitor)?;
        if user.may_do_everything() {
            return Ok(());
        }
        let name = match section {
            Section::Figures => "info",
            Section::Keys => "range",
            Section::Tables => "ets.select",
            Section::SlowLog => "slowlog|get",
            Section::Clients => "client|list",
            Section::Mailboxes => "mailbox.list",
        };
        let may = |command: &'static Command| match section {
            Section::Keys => user.sees_all_keys(command),
            Section::Tables => user.may_use_all_tables(command),
            _ => user.has(command),
        };
        if lookup_full(name.as_bytes()).is_some_and(may) {
            return Ok(());
        }
        let what = match section {
            Section::Keys => " on all keys",
            Section::Tables => " on all tables",
            _ => "",
        };
        Err(Refusal::Forbidden(format!(
            "user '{}' has no right to run {}{what}",
            text(&user.name),
            name.replace('|', " ")
        )))
    }

    fn slow_log(&self) -> Vec<SlowCommand> {
        let entries = self.server.slowlog.newest(MOST_SHOWN).into_iter();
        let shown = entries.map(|entry| SlowCommand {
            id: entry.id,
            at: millis(entry.time),
            us: micros(entry.took),
            command: entry.arguments.iter().map(|word| text(word)).collect(),
            client: entry.address,
        });
        shown.collect()
    }

    fn clients(&self) -> Vec<ClientInfo> {
        let clients = self.server.clients.list();
        let shown = clients.iter().take(MOST_SHOWN).map(|client| {
            let mut line = String::new();
            client.describe(None, &mut line);
            let field = |name: &str| {
                let mut words = line.split_ascii_whitespace();
                let value = words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
                value.unwrap_or_default()
            };
            let number = |name| field(name).parse().unwrap_or(0);
            ClientInfo {
                id: client.id,
                address: client.address_text(),
                name: text(&client.name()),
                age_s: client.age().as_secs(),
                idle_s: number("idle"),
                command: field("cmd").to_owned(),
                memory: number("tot-mem"),
                user: text(&client.user()),
            }
        });
        shown.collect()
    }

    fn mailboxes(&self) -> Vec<MailboxInfo> {
        let mailboxes = self.server.store.mailboxes();
        let names = mailboxes.names_behind(None, MOST_SHOWN);
        let shown = names.iter().filter_map(|name| {
            let post = mailboxes.get(name)?;
            let (stats, _) = post.stats();
            let slots = stats.installs.saturating_sub(stats.removals);
            Some(MailboxInfo {
                name: text(name),
                length: post.len() as u64,
                capacity: post.config.capacity().unwrap_or(0) as u64,
                buffers: 1 + u64::from(slots),
                grown: u64::from(stats.installs) + u64::from(stats.growths),
                folded: u64::from(stats.removals) + u64::from(stats.shrinks),
                senders: Some(post.senders() as u64),
                waiting: post.is_lent().into(),
            })
        });
        shown.collect()
    }

    fn shards(&self) -> Vec<ShardInfo> {
        let pulses = self.server.threads.pulses().iter().enumerate();
        let shown = pulses.map(|(number, pulse)| ShardInfo {
            core: number as u64,
            load: pulse.busy() as f64 / 1000.0,
            states: pulse.clients.load(Relaxed) as u64,
            moved_in: pulse.moved_in.load(Relaxed),
            moved_out: pulse.moved_out.load(Relaxed),
        });
        shown.collect()
    }

    fn commands(&self) -> Vec<CommandInfo> {
        let shown = all().filter(|command| console::why_not(command).is_none());
        let shown = shown.map(|command| CommandInfo {
            name: command.full_name.replace('|', " "),
            arity: command.arity,
            group: command.group.to_owned(),
            summary: command.summary.to_owned(),
            syntax: command.syntax.to_owned(),
            writes: !console::only_reads(command),
        });
        shown.collect()
    }

    fn metrics(&self, metrics: &mut Metrics) {
        write_metrics(&Reading::new(&self.server, None), metrics);
    }

    fn health(&self) -> Result<(), String> {
        let server = &self.server;
        let stuck = server
            .threads
            .pulses()
            .iter()
            .enumerate()
            .find_map(|(number, pulse)| {
                let still = pulse.still(server.started);
                (still >= UNHEALTHY).then_some((number, still))
            });
        match stuck {
            None => Ok(()),
            Some((number, still)) => Err(format!(
                "thread tremula-{number} has not turned for {} s",
                still.as_secs()
            )),
        }
    }

    fn ready(&self) -> Result<String, String> {
        if !self.is_ready.load(Relaxed) {
            return Err("the server is loading".to_owned());
        }
        let Some(group) = &self.server.group else {
            return Ok("serving".to_owned());
        };
        match group.host.standing() {
            Standing::Leader => Ok("leader".to_owned()),
            Standing::Follower => Ok("follower".to_owned()),
            other => Err(format!("this node of the group is {}", other.name())),
        }
    }

    fn log_in<'a>(&'a self, name: &'a str, password: &'a str) -> Answer<'a, String> {
        Box::pin(async move {
            let users = &self.server.users;
            let known = match users.has_passwords() {
                true => users.authenticate(name.as_bytes(), password.as_bytes()),
                false => None,
            };
            // A user that takes any password has proved nothing.
            if let Some(user) = known.filter(|user| !user.takes_any_password()) {
                return Ok(text(&user.name));
            }
            let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
            tokio::time::sleep(users.failed(here)).await;
            let client = "addr=page cmd=auth\n".to_owned();
            users.refused(Reason::Auth, b"AUTH", name.as_bytes(), client);
            tracing::warn!(
                "the page: user {} or the password is wrong",
                name.escape_debug()
            );
            Err(Refusal::Unproved(format!(
                "the user '{}' or the password is wrong, or the user has none",
                name.escape_debug()
            )))
        })
    }

    fn run<'a>(&'a self, visitor: &'a Visitor, words: Vec<String>) -> Answer<'a, Reply> {
        Box::pin(async move {
            let user = self.user(visitor)?;
            if let Some(command) = console::named(&words) {
                let name = command.full_name.replace('|', " ");
                if let Some(why) = console::why_not(command) {
                    return Err(Refusal::Wrong(format!(
                        "the console does not run {name}: {why}"
                    )));
                }
                if *visitor == Visitor::Reader && !console::only_reads(command) {
                    return Err(Refusal::Unproved(format!(
                        "{name} may change something: it needs the token that is printed at the start, or a login"
                    )));
                }
            }
            console::run(&self.server, user, &words).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gather::Peer;
    use crate::limits::Limits;
    use crate::server;
    use std::time::Instant;
    use tokio::runtime::Builder;
    use tokio::sync::mpsc;
    use tremula_store::{Engine, StoreConfig};

    fn program(since: Duration) -> (Program, tokio::runtime::Runtime) {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        let (arrivals, _) = mpsc::unbounded_channel();
        let peer = Peer {
            arrivals: arrivals.downgrade(),
            handle: runtime.handle().clone(),
        };
        let store = StoreConfig::new(Engine::Aspen);
        let mut server = server::shared(Limits::default(), &store, vec![peer]);
        let shared = Arc::get_mut(&mut server).expect("nobody else has it");
        shared.started = Instant::now().checked_sub(since).expect("a moment");
        (Program::new(server, None), runtime)
    }

    #[test]
    fn a_thread_that_stands_still_is_not_healthy_until_it_turns() {
        let (program, _runtime) = program(2 * UNHEALTHY);
        let error = program.health().expect_err("it has never turned");
        assert!(
            error.starts_with("thread tremula-0 has not turned for"),
            "{error}"
        );
        let server = &program.server;
        server.threads.pulse(0).beat(server.started);
        assert_eq!(program.health(), Ok(()));
    }

    #[test]
    fn a_server_is_ready_when_it_says_so() {
        let (program, _runtime) = program(Duration::ZERO);
        assert!(program.ready().is_err());
        program.set_ready();
        assert_eq!(program.ready(), Ok("serving".to_owned()));
    }

    #[test]
    fn a_second_has_what_ran_in_it() {
        let (program, _runtime) = program(Duration::ZERO);
        let get = lookup_full(b"get").expect("a command");
        let stripe = program.server.figures.stripes.of(0, false);
        let ran = |micros, count| stripe.ran(get, Duration::from_micros(micros), count, 0, true);
        ran(10, 1);
        assert_eq!(program.second().commands.len(), 1);
        assert_eq!(program.second().commands, []);
        (0..99).for_each(|_| ran(1, 1));
        ran(1000, 1);
        stripe.read.add(7);
        // What `INFO` shows is another matter.
        program.server.figures.stripes.reset();
        let second = program.second();
        let command = &second.commands[0];
        assert_eq!(
            (&*command.name, command.calls, second.net_in),
            ("get", 100, 7)
        );
        assert!(command.p50_us < 2.0 && command.p99_us < 2.0, "{command:?}");
        assert!((1000.0..1100.0).contains(&command.p999_us), "{command:?}");
    }

    #[test]
    fn sampled_keys_go_to_their_databases_within_a_bound() {
        let (program, _runtime) = program(Duration::ZERO);
        let sampler = &program.server.figures.stripes.of(0, false).sampler;
        for round in 0..100_u8 {
            for _ in 0..1000 {
                sampler.keep(3, &[round], false);
            }
            drop(program.second());
        }
        assert_eq!(lock(&program.samples)[3].len(), MOST_SAMPLES);
        assert_eq!(
            lock(&program.samples)[3].last().map(|one| one.key[0]),
            Some(99)
        );
    }
}
