//! What users may be in number, and what is kept of what was refused to them.

use clap::builder::RangedU64ValueParser;
use std::fmt;

/// Users, as many as anybody writes rules for; each takes about a kilobyte.
pub const MAX_USERS: usize = 10_000;

/// Entries of `ACL LOG`. Redis's `acllog-max-len`.
pub const MAX_ACL_LOG: usize = 128;

/// Which channels a new user may use, in Redis's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "lower")]
pub enum ChannelsOfUsers {
    /// All.
    AllChannels,
    /// None, as in Redis.
    ResetChannels,
}

impl ChannelsOfUsers {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::AllChannels => "allchannels",
            Self::ResetChannels => "resetchannels",
        }
    }
}

impl fmt::Display for ChannelsOfUsers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// The flags of users.
#[derive(clap::Args, Clone, Debug, PartialEq, Eq)]
pub struct UserLimits {
    /// Users, 1 to 1000000
    #[arg(long, value_name = "N", default_value_t = MAX_USERS, value_parser = RangedU64ValueParser::<usize>::new().range(1..=1_000_000))]
    pub max_users: usize,

    /// Entries of ACL LOG, 0 to 100000
    #[arg(long, value_name = "N", default_value_t = MAX_ACL_LOG, value_parser = RangedU64ValueParser::<usize>::new().range(0..=100_000))]
    pub max_acl_log: usize,

    /// Whether a new user may use all channels, or none: allchannels or resetchannels
    #[arg(long, value_name = "CHANNELS", default_value_t = ChannelsOfUsers::ResetChannels)]
    pub acl_pubsub_default: ChannelsOfUsers,
}

impl Default for UserLimits {
    fn default() -> Self {
        Self {
            max_users: MAX_USERS,
            max_acl_log: MAX_ACL_LOG,
            acl_pubsub_default: ChannelsOfUsers::ResetChannels,
        }
    }
}
