//! The rivals of the mailboxes by name: channels that a user would otherwise choose.
//!
//! The names are always known; the crates are compiled only with the feature `rivals`.

/// A rival of the mailboxes that is a Rust crate, or a part of the standard library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChannelRival {
    /// `std::sync::mpsc::channel`.
    StdMpsc,
    /// `crossbeam_channel::unbounded`.
    CrossbeamChannel,
    /// `flume::unbounded`.
    Flume,
    /// `kanal::unbounded`.
    Kanal,
    /// `tokio::sync::mpsc::unbounded_channel`.
    TokioMpsc,
    /// `crossbeam_queue::SegQueue`.
    SegQueue,
    /// `crossfire::mpsc::unbounded_blocking`.
    Crossfire,
    /// `spillway::channel_with_concurrency`.
    Spillway,
    /// A `Vec` under `parking_lot`'s mutex.
    MutexVec,
}

/// What the lab says of a rival.
struct Description {
    name: &'static str,
    about: &'static str,
    version: &'static str,
}

impl ChannelRival {
    /// Every rival.
    pub const ALL: [Self; 9] = [
        Self::StdMpsc,
        Self::CrossbeamChannel,
        Self::Flume,
        Self::Kanal,
        Self::TokioMpsc,
        Self::SegQueue,
        Self::Crossfire,
        Self::Spillway,
        Self::MutexVec,
    ];

    const fn describe(self) -> Description {
        let (name, about, version) = match self {
            Self::StdMpsc => (
                "std_mpsc",
                "the standard library's channel",
                "std, of the compiler that built the lab",
            ),
            Self::CrossbeamChannel => (
                "crossbeam_channel",
                "a lock-free channel for many receivers",
                "crossbeam-channel 0.5.17",
            ),
            Self::Flume => ("flume", "a channel under one lock", "flume 0.12.0"),
            Self::Kanal => (
                "kanal",
                "a channel under one lock that hands over to waiting receivers",
                "kanal 0.1.1",
            ),
            Self::TokioMpsc => ("tokio_mpsc", "tokio's channel for tasks", "tokio 1.54.1"),
            Self::SegQueue => (
                "seg_queue",
                "crossbeam's lock-free queue, with a receiver that never sleeps",
                "crossbeam-queue 0.3.14",
            ),
            Self::Crossfire => (
                "crossfire",
                "a lock-free channel for one receiver",
                "crossfire 3.1.22",
            ),
            Self::Spillway => ("spillway", "a channel of a lane a sender", "spillway 2.0.2"),
            Self::MutexVec => (
                "mutex_vec",
                "a Vec under a parking_lot Mutex, with a receiver that never sleeps",
                "parking_lot 0.13.0",
            ),
        };
        Description {
            name,
            about,
            version,
        }
    }

    /// The contestant's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.describe().name
    }

    /// What it is, in a line.
    #[must_use]
    pub const fn about(self) -> &'static str {
        self.describe().about
    }

    /// The crate and its version.
    #[must_use]
    pub const fn version(self) -> &'static str {
        self.describe().version
    }
}
