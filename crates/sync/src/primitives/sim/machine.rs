//! The machine that is simulated: its shape, and what each kind of access costs on it.

/// A stretch of virtual time in picoseconds: fractions of nanoseconds add up without rounding.
pub type Picoseconds = u64;

/// How near two cores are to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Distance {
    Cluster,
    Socket,
    Other,
}

/// A price that depends on how far away the other core is.
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

/// What things cost. With the default, nothing costs anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prices {
    /// The instructions around one access.
    pub instructions: Picoseconds,
    /// A line in the nearest cache of the core.
    pub near_cache: Picoseconds,
    /// A line in the larger cache of the core.
    pub far_cache: Picoseconds,
    /// A line in the cache that the socket's cores share.
    pub socket_cache: Picoseconds,
    /// A line in the socket's own memory.
    pub own_memory: Picoseconds,
    /// A line in the memory of another socket.
    pub other_memory: Picoseconds,
    /// A line that another core has, unchanged.
    pub clean: ByDistance,
    /// A line that another core has changed.
    pub changed: ByDistance,
    /// An atomic read-modify-write, in addition to having the line.
    pub read_modify_write: Picoseconds,
    /// A full fence, in addition to the stores that it waits for.
    pub fence: Picoseconds,
    /// The processor's pause in a loop that spins.
    pub pause: Picoseconds,
    /// Offering the core to other threads.
    pub yield_now: Picoseconds,
    /// Going to sleep, for the thread that does.
    pub sleep: Picoseconds,
    /// Waking another thread, for the thread that does.
    pub wake: Picoseconds,
    /// From the wake-up until the woken thread runs.
    pub wake_delay: Picoseconds,
    /// Changing from one thread to another on a core.
    pub switch: Picoseconds,
    /// Allocating memory, or freeing it.
    pub allocation: Picoseconds,
    /// How far a thread may run ahead of its own stores.
    pub store_lag: Picoseconds,
}

/// A machine.
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
pub const MOST_CORES: usize = 256;

impl Machine {
    /// A machine with one socket of these cores, on which nothing costs anything.
    #[must_use]
    pub fn free_of_charge(cores: usize) -> Self {
        Self {
            sockets: 1,
            clusters: 1,
            cores,
            threads: 1,
            shared_speed: 100,
            near_lines: 512,
            far_lines: 16_384,
            socket_lines: 262_144,
            slice: 1_000_000_000,
            prices: Prices::default(),
        }
    }

    /// How many cores it has in all.
    #[must_use]
    pub const fn all_cores(&self) -> usize {
        self.sockets * self.clusters * self.cores
    }

    /// How many threads it runs at once.
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
        if self.shared_speed == 0 || self.shared_speed > 100 {
            return Err(format!(
                "shared_speed is {}; it must be from 1 to 100 per cent",
                self.shared_speed
            ));
        }
        if self.slice == 0 {
            return Err("slice is 0; it must be longer".to_owned());
        }
        Ok(())
    }
}
