//! File descriptors: how many the process may have, and what happens when it has no more.

use crate::limits::Limits;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::io;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Descriptors for what is no client: standard streams, listeners, signals, files of tables and
/// files to load. As many as Redis keeps.
const OWN: u64 = 32;

/// Descriptors of a worker's event loop.
const OF_WORKER: u64 = 4;

/// How often a lasting lack of descriptors is logged.
const LOG_PERIOD: Duration = Duration::from_secs(60);

/// There are not enough descriptors for a single client.
#[derive(Debug, Error)]
#[error(
    "the system lets this process open {allowed} files, but {threads} threads, one client and \
     {reserved} reserved clients need {needed}; raise it with `ulimit -n`, or lower --threads or \
     --reserved-clients"
)]
pub struct TooFew {
    allowed: u64,
    threads: usize,
    reserved: usize,
    needed: u64,
}

/// What the limits of the system make of the wish for descriptors.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    /// The soft limit to ask for, if the present one is too low.
    raise_to: Option<u64>,
    /// The clients that fit.
    clients: usize,
}

impl Plan {
    /// `None` if not even one client fits. A limit of `None` is none.
    fn new(limits: &Limits, own: u64, soft: Option<u64>, hard: Option<u64>) -> Option<Self> {
        let reserved = limits.clients.reserved_clients as u64;
        let wanted = own + reserved + limits.max_clients as u64;
        let allowed = hard.unwrap_or(u64::MAX);
        let clients = allowed.min(wanted).checked_sub(own + reserved)?;
        let is_low = soft.is_some_and(|soft| soft < wanted);
        (clients > 0).then(|| Self {
            raise_to: is_low.then(|| wanted.min(allowed)),
            clients: usize::try_from(clients).unwrap_or(usize::MAX),
        })
    }
}

/// Makes the limit of descriptors fit to the limit of clients: raises the first as far as the
/// system allows, then lowers the second, with a warning.
pub(crate) fn fit(limits: &mut Limits, threads: usize) -> Result<(), TooFew> {
    let own = OWN + OF_WORKER * threads as u64;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let too_few = |allowed: Option<u64>| TooFew {
        allowed: allowed.unwrap_or(u64::MAX),
        threads,
        reserved: limits.clients.reserved_clients,
        needed: own + 1 + limits.clients.reserved_clients as u64,
    };
    let mut plan = Plan::new(limits, own, current, maximum).ok_or_else(|| too_few(maximum))?;
    if let Some(raised) = plan.raise_to {
        let raised = Rlimit {
            current: Some(raised),
            maximum,
        };
        if setrlimit(Resource::Nofile, raised).is_err() {
            // A system may keep a process from what its hard limit allows.
            plan = Plan::new(limits, own, current, current).ok_or_else(|| too_few(current))?;
        }
    }
    if plan.clients < limits.max_clients {
        tracing::warn!(
            "--max-clients is {} instead of {}, because the system lets this process open no more \
             files; raise it with `ulimit -n {}`",
            plan.clients,
            limits.max_clients,
            own + limits.clients.reserved_clients as u64 + limits.max_clients as u64,
        );
        limits.max_clients = plan.clients;
    }
    Ok(())
}

/// Makes room for another limit of clients while the server runs.
///
/// # Errors
///
/// The most clients for which the system has descriptors.
pub(crate) fn allow(limits: &Limits, threads: usize, clients: usize) -> Result<(), usize> {
    let own = OWN + OF_WORKER * threads as u64;
    let wanted = Limits {
        max_clients: clients,
        ..limits.clone()
    };
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let plan = Plan::new(&wanted, own, current, maximum).ok_or(0_usize)?;
    if plan.clients < clients {
        return Err(plan.clients);
    }
    if let Some(raised) = plan.raise_to {
        let raised = Rlimit {
            current: Some(raised),
            maximum,
        };
        let now = Plan::new(&wanted, own, current, current).map_or(0, |plan| plan.clients);
        setrlimit(Resource::Nofile, raised).map_err(|_| now)?;
    }
    Ok(())
}

/// A descriptor in reserve. When there is no other, giving it up makes room to accept a client and
/// to tell it why it is not served.
pub(crate) struct Spare(Option<File>);

impl Spare {
    pub(crate) fn new() -> Self {
        Self(File::open("/dev/null").ok())
    }

    pub(crate) fn give_up(&mut self) {
        self.0 = None;
    }

    pub(crate) fn take_back(&mut self) {
        self.0 = File::open("/dev/null").ok();
    }
}

/// Whether an error says that the process or the system has no descriptor left.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    let exhausted = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE];
    exhausted
        .iter()
        .any(|known| error.raw_os_error() == Some(known.raw_os_error()))
}

/// Counts events that would flood the log.
#[derive(Default)]
pub(crate) struct Throttle {
    logged: Option<Instant>,
    unlogged: u64,
}

impl Throttle {
    /// Counts an event. Returns the number of events since the last line of the log, if it is time
    /// for another line.
    pub(crate) fn count(&mut self, now: Instant) -> Option<u64> {
        self.unlogged += 1;
        let is_due = self
            .logged
            .is_none_or(|logged| now.saturating_duration_since(logged) >= LOG_PERIOD);
        is_due.then(|| {
            self.logged = Some(now);
            std::mem::take(&mut self.unlogged)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::ClientLimits;

    #[test]
    fn the_soft_limit_is_raised_and_then_the_clients_are_fewer() {
        let limits = Limits {
            max_clients: 1000,
            clients: ClientLimits {
                reserved_clients: 4,
                ..ClientLimits::default()
            },
            ..Limits::default()
        };
        let plan = |soft, hard| Plan::new(&limits, 40, soft, hard);
        let raised = |to: u64, clients| {
            Some(Plan {
                raise_to: Some(to),
                clients,
            })
        };
        let enough = Some(Plan {
            raise_to: None,
            clients: 1000,
        });
        assert_eq!(plan(None, None), enough);
        assert_eq!(plan(Some(1044), Some(1044)), enough);
        assert_eq!(plan(Some(1043), Some(5000)), raised(1044, 1000));
        assert_eq!(plan(Some(100), None), raised(1044, 1000));
        assert_eq!(plan(Some(100), Some(500)), raised(500, 456));
        assert_eq!(plan(Some(45), Some(45)), raised(45, 1));
        assert_eq!(plan(Some(44), Some(44)), None);
        assert_eq!(plan(Some(10), Some(10)), None);
    }

    #[test]
    fn a_lasting_lack_is_logged_once_a_minute_with_its_count() {
        let mut throttle = Throttle::default();
        let start = Instant::now();
        let counted: Vec<_> = [0, 1, 59, 60, 61, 130]
            .into_iter()
            .map(|second| throttle.count(start + Duration::from_secs(second)))
            .collect();
        assert_eq!(counted, [Some(1), None, None, Some(3), None, Some(2)]);
    }
}
