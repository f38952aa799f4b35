//! The machine that is simulated: its shape, and what each kind of access costs on it.

/// A stretch of virtual time in picoseconds: fractions of nanoseconds add up without rounding.
///
/// ```
/// use tremula_sync::sim::Picoseconds;
///
/// let cycle: Picoseconds = 385; // of a core of 2.6 GHz
/// assert!(3 * cycle > 1000);
/// ```
pub type Picoseconds = u64;

/// How near two cores are to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Distance {
    Cluster,
    Socket,
    Other,
}

/// A price that depends on how far away the other core is.
///
/// ```
/// use tremula_sync::sim::ByDistance;
///
/// let clean = ByDistance { cluster: 40_000, socket: 40_000, other: 115_000 };
/// assert!(clean.other > clean.socket);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByDistance {
    /// The other core is in the same cluster.
    pub cluster: Picoseconds,
    /// The other core is in the same socket, but in another cluster.
    pub socket: Picoseconds,
    /// The other core is in another socket.
    pub other: Picoseconds,
}

impl ByDistance {
    pub(super) const fn at(&self, distance: Distance) -> Picoseconds {
        match distance {
            Distance::Cluster => self.cluster,
            Distance::Socket => self.socket,
            Distance::Other => self.other,
        }
    }
}

/// Declares the prices once: their fields, and the names that profiles of machines use for them.
macro_rules! prices {
    ($($(#[$about:meta])* $name:ident: $type:ty = [$($key:literal)*];)*) => {
        /// What things cost. With the default, nothing costs anything.
        ///
        /// ```
        /// use tremula_sync::sim::Prices;
        ///
        /// let prices = Prices::named(|name| if name == "pause" { 40_000 } else { 0 });
        /// assert_eq!(prices.pause, 40_000);
        /// assert!(Prices::NAMES.contains(&"changed_socket"));
        /// ```
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Prices {
            $($(#[$about])* pub $name: $type,)*
        }

        impl Prices {
            /// The names of the prices; one that depends on the distance has three.
            pub const NAMES: &[&str] = &[$($($key,)*)*];

            /// The prices that `price` gives for the names.
            pub fn named(mut price: impl FnMut(&'static str) -> Picoseconds) -> Self {
                Self {
                    $($name: <$type as OfNames>::of_names([$($key,)*].map(&mut price)),)*
                }
            }
        }
    };
}

/// A price that is made of those with certain names.
trait OfNames {
    type Named;

    fn of_names(named: Self::Named) -> Self;
}

impl OfNames for Picoseconds {
    type Named = [Self; 1];

    fn of_names([price]: [Self; 1]) -> Self {
        price
    }
}

impl OfNames for ByDistance {
    type Named = [Picoseconds; 3];

    fn of_names([cluster, socket, other]: [Picoseconds; 3]) -> Self {
        Self {
            cluster,
            socket,
            other,
        }
    }
}

prices! {
    /// The instructions around one access.
    instructions: Picoseconds = ["instructions"];
    /// A line in the nearest cache of the core.
    near_cache: Picoseconds = ["near_cache"];
    /// A line in the larger cache of the core.
    far_cache: Picoseconds = ["far_cache"];
    /// A line in the cache that the socket's cores share.
    socket_cache: Picoseconds = ["socket_cache"];
    /// A line in the socket's own memory.
    own_memory: Picoseconds = ["own_memory"];
    /// A line in the memory of another socket.
    other_memory: Picoseconds = ["other_memory"];
    /// A line that another core has, unchanged.
    clean: ByDistance = ["clean_cluster" "clean_socket" "clean_other"];
    /// A line that another core has changed.
    changed: ByDistance = ["changed_cluster" "changed_socket" "changed_other"];
    /// An atomic read-modify-write, in addition to having the line.
    read_modify_write: Picoseconds = ["read_modify_write"];
    /// A full fence, in addition to the stores that it waits for.
    fence: Picoseconds = ["fence"];
    /// The processor's pause in a loop that spins.
    pause: Picoseconds = ["pause"];
    /// Offering the core to other threads.
    yield_now: Picoseconds = ["yield_now"];
    /// Going to sleep, for the thread that does.
    sleep: Picoseconds = ["sleep"];
    /// Waking another thread, for the thread that does.
    wake: Picoseconds = ["wake"];
    /// From the wake-up until the woken thread runs.
    wake_delay: Picoseconds = ["wake_delay"];
    /// Changing from one thread to another on a core.
    switch: Picoseconds = ["switch"];
    /// Allocating memory, or freeing it.
    allocation: Picoseconds = ["allocation"];
    /// How far a thread may run ahead of its own stores.
    store_lag: Picoseconds = ["store_lag"];
}

/// A machine.
///
/// ```
/// use tremula_sync::sim::Machine;
///
/// let machine = Machine { sockets: 2, threads: 2, ..Machine::free_of_charge(16) };
/// assert_eq!((machine.all_cores(), machine.all_threads()), (32, 64));
/// assert!(machine.check().is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// How many sockets.
    pub sockets: usize,
    /// How many clusters in a socket.
    pub clusters: usize,
    /// How many cores in a cluster.
    pub cores: usize,
    /// How many threads a core runs at once.
    pub threads: usize,
    /// How many per cent of its speed a thread has while the other threads of its core run.
    pub shared_speed: u64,
    /// How many per cent of its price a line costs that is asked for right after one beside it: the
    /// core does not wait for the first before it asks for the second.
    pub beside: u64,
    /// For how many per cent of a transfer's time the cores that had the line still have it.
    pub stays: u64,
    /// How many per cent of its price a transfer takes that was asked for while the line was on its
    /// way to another core: the next one begins when the directory knows that the last has ended.
    pub queued: u64,
    /// How many per cent of its price a line takes that another core has changed, if its address is
    /// what the thread has just loaded: the core does not know it before.
    pub led: u64,
    /// By how many per cent at most a call of the system takes more or less than its price: a
    /// yield, a sleep, a wake-up, a change of threads.
    pub jitter: u64,
    /// The lines of a core's nearest cache.
    pub near_lines: usize,
    /// The lines of a core's larger cache.
    pub far_lines: usize,
    /// The lines of a socket's cache.
    pub socket_lines: usize,
    /// How long a thread keeps a core that others wait for.
    pub slice: Picoseconds,
    /// What things cost.
    pub prices: Prices,
}

/// The most cores that a machine may have: the directory has a bit for each.
///
/// ```
/// use tremula_sync::sim::{MOST_CORES, Machine};
///
/// assert!(Machine::free_of_charge(MOST_CORES).check().is_ok());
/// ```
pub const MOST_CORES: usize = 128;

/// The most sockets, for the same reason.
const MOST_SOCKETS: usize = 64;

impl Machine {
    /// A machine with one socket of these cores, on which nothing costs anything.
    ///
    /// ```
    /// use tremula_sync::sim::{Machine, Simulation, scoped, work};
    ///
    /// let run = Simulation::on(Machine::free_of_charge(4)).run(|| {
    ///     scoped(4, |_| work(100), || {}); // nanoseconds
    /// });
    /// assert_eq!(run.elapsed, 100_000); // picoseconds
    /// ```
    #[must_use]
    pub fn free_of_charge(cores: usize) -> Self {
        Self {
            sockets: 1,
            clusters: 1,
            cores,
            threads: 1,
            shared_speed: 100,
            beside: 100,
            stays: 67,
            queued: 100,
            led: 100,
            jitter: 0,
            near_lines: 512,
            far_lines: 16_384,
            socket_lines: 262_144,
            slice: 1_000_000_000,
            prices: Prices::default(),
        }
    }

    /// How many cores it has in all.
    ///
    /// ```
    /// assert_eq!(tremula_sync::sim::Machine::free_of_charge(3).all_cores(), 3);
    /// ```
    #[must_use]
    pub const fn all_cores(&self) -> usize {
        self.sockets * self.clusters * self.cores
    }

    /// How many threads it runs at once.
    ///
    /// ```
    /// use tremula_sync::sim::Machine;
    ///
    /// let machine = Machine { threads: 2, ..Machine::free_of_charge(3) };
    /// assert_eq!(machine.all_threads(), 6);
    /// ```
    #[must_use]
    pub const fn all_threads(&self) -> usize {
        self.all_cores() * self.threads
    }

    pub(super) const fn socket_of(&self, core: usize) -> usize {
        core / (self.clusters * self.cores)
    }

    pub(super) const fn distance(&self, one: usize, other: usize) -> Distance {
        if one / self.cores == other / self.cores {
            Distance::Cluster
        } else if self.socket_of(one) == self.socket_of(other) {
            Distance::Socket
        } else {
            Distance::Other
        }
    }

    /// What is wrong with the shape, if anything is.
    ///
    /// # Errors
    ///
    /// Returns a sentence that names the value.
    ///
    /// ```
    /// use tremula_sync::sim::Machine;
    ///
    /// let machine = Machine { sockets: 0, ..Machine::free_of_charge(3) };
    /// assert!(machine.check().unwrap_err().contains("sockets"));
    /// ```
    pub fn check(&self) -> Result<(), String> {
        let shape = [
            ("sockets", self.sockets),
            ("clusters", self.clusters),
            ("cores", self.cores),
            ("threads", self.threads),
            ("near_lines", self.near_lines),
            ("far_lines", self.far_lines),
            ("socket_lines", self.socket_lines),
        ];
        for (name, value) in shape {
            if value == 0 {
                return Err(format!("{name} is 0; it must be at least 1"));
            }
        }
        let product = self.sockets.saturating_mul(self.clusters);
        let cores = product.saturating_mul(self.cores);
        if cores > MOST_CORES {
            return Err(format!("{cores} cores are more than {MOST_CORES}"));
        }
        if self.sockets > MOST_SOCKETS {
            return Err(format!(
                "{} sockets are more than {MOST_SOCKETS}",
                self.sockets
            ));
        }
        for (name, value, least) in [
            ("shared_speed", self.shared_speed, 1),
            ("beside", self.beside, 1),
            ("stays", self.stays, 0),
            ("jitter", self.jitter, 0),
        ] {
            if !(least..=100).contains(&value) {
                return Err(format!(
                    "{name} is {value}; it must be from {least} to 100 per cent"
                ));
            }
        }
        for (name, value) in [("queued", self.queued), ("led", self.led)] {
            if !(10..=1000).contains(&value) {
                return Err(format!(
                    "{name} is {value}; it must be from 10 to 1000 per cent"
                ));
            }
        }
        if self.slice == 0 {
            return Err("slice is 0; it must be longer".to_owned());
        }
        Ok(())
    }
}
