//! The profiles of machines: their shape and their prices, each with its source.

use crate::LabError;
use serde::Deserialize;
use std::{collections::BTreeMap, fs, path::Path};

/// The profiles that the lab has, by name.
///
/// ```
/// use tremula_lab::simulate::profile::PROFILES;
///
/// assert!(PROFILES.iter().any(|(name, _)| *name == "two_sockets_of_16"));
/// ```
pub const PROFILES: [(&str, &str); 5] = [
    (
        "two_sockets_of_16",
        include_str!("../../machines/two_sockets_of_16.toml"),
    ),
    (
        "four_sockets_of_16",
        include_str!("../../machines/four_sockets_of_16.toml"),
    ),
    (
        "one_socket_of_96",
        include_str!("../../machines/one_socket_of_96.toml"),
    ),
    (
        "two_vcpus_of_genoa",
        include_str!("../../machines/two_vcpus_of_genoa.toml"),
    ),
    (
        "two_vcpus_of_sapphire_rapids",
        include_str!("../../machines/two_vcpus_of_sapphire_rapids.toml"),
    ),
];

/// A machine as its file describes it.
///
/// ```
/// use tremula_lab::simulate::Profile;
///
/// let machine = Profile::find("one_socket_of_96")?;
/// assert_eq!((machine.clusters, machine.cores), (12, 8));
/// # Ok::<(), tremula_lab::LabError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name: that of the file.
    #[serde(skip)]
    pub name: String,
    /// What machine it is, in a line.
    pub about: String,
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
    /// How many per cent of its price a line costs that is asked for right after one beside it.
    pub beside: u64,
    /// For how many per cent of a transfer's time the cores that had the line still have it.
    pub stays: u64,
    /// How many per cent of its price a transfer takes of a line that is on its way elsewhere.
    pub queued: u64,
    /// How many per cent of its price a changed line takes whose address was loaded right before.
    pub led: u64,
    /// By how many per cent at most a call of the system takes more or less than its price.
    pub jitter: u64,
    /// The lines of a core's nearest cache.
    pub near_lines: usize,
    /// The lines of a core's larger cache.
    pub far_lines: usize,
    /// The lines of a socket's cache.
    pub socket_lines: usize,
    /// What things cost, by name.
    pub prices: BTreeMap<String, Price>,
}

/// A price, and where it comes from.
///
/// ```
/// use tremula_lab::simulate::{Profile, profile::Price};
///
/// let machine = Profile::find("two_sockets_of_16")?;
/// let Price { ns, source } = &machine.prices["own_memory"];
/// assert!(*ns > 0.0 && !source.is_empty());
/// # Ok::<(), tremula_lab::LabError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// In nanoseconds.
    pub ns: f64,
    /// What says so.
    pub source: String,
}

/// How the name of a machine ends on which transfers are free.
pub(crate) const WITHOUT_TRANSFERS: &str = "_without_transfers";

impl Profile {
    /// The profile of this name, or the one in the file at this path.
    ///
    /// # Errors
    ///
    /// No profile has this name, or the file is not valid.
    ///
    /// ```
    /// use tremula_lab::simulate::Profile;
    ///
    /// assert!(Profile::find("no_such_machine").is_err());
    /// ```
    pub fn find(name: &str) -> Result<Self, LabError> {
        if let Some((_, text)) = PROFILES.iter().find(|(known, _)| *known == name) {
            return Self::parse(name, text);
        }
        let path = Path::new(name);
        if path.extension().is_none_or(|extension| extension != "toml") {
            let names = PROFILES.map(|(name, _)| name).join(" ");
            return Err(LabError::Profile {
                name: name.to_owned(),
                problem: format!("there is no such machine; there are: {names}, and TOML files"),
            });
        }
        let text = fs::read_to_string(path).map_err(|error| LabError::Read {
            path: path.to_owned(),
            error,
        })?;
        let stem = path.file_stem().unwrap_or_default();
        Self::parse(&stem.to_string_lossy(), &text)
    }

    /// The profile that the text describes.
    ///
    /// # Errors
    ///
    /// It is no profile, or a price is no length of time. The lab that simulates, which knows the
    /// prices, also refuses one that is missing or not known.
    ///
    /// ```
    /// use tremula_lab::simulate::Profile;
    ///
    /// assert!(Profile::parse("half_a_machine", "sockets = 2").is_err());
    /// ```
    pub fn parse(name: &str, text: &str) -> Result<Self, LabError> {
        let refused = |problem: String| LabError::Profile {
            name: name.to_owned(),
            problem,
        };
        let mut profile: Self = toml::from_str(text).map_err(|error| refused(error.to_string()))?;
        name.clone_into(&mut profile.name);
        check_names(&profile).map_err(refused)?;
        for (price, Price { ns, source }) in &profile.prices {
            if !ns.is_finite() || !(0.0..=1e9).contains(ns) {
                return Err(refused(format!(
                    "the price '{price}' is {ns}; it must be 0 to 1e9 nanoseconds"
                )));
            }
            if source.trim().is_empty() {
                return Err(refused(format!("the price '{price}' has no source")));
            }
        }
        Ok(profile)
    }

    /// How many threads the machine runs at once.
    ///
    /// ```
    /// use tremula_lab::simulate::Profile;
    ///
    /// assert_eq!(Profile::find("two_sockets_of_16")?.all_threads(), 64);
    /// # Ok::<(), tremula_lab::LabError>(())
    /// ```
    #[must_use]
    pub const fn all_threads(&self) -> usize {
        self.sockets * self.clusters * self.cores * self.threads
    }

    /// The same machine, on which lines come from other cores for nothing.
    ///
    /// ```
    /// use tremula_lab::simulate::Profile;
    ///
    /// let machine = Profile::find("two_sockets_of_16")?.without_transfers();
    /// assert_eq!(machine.prices["changed_other"].ns, 0.0);
    /// # Ok::<(), tremula_lab::LabError>(())
    /// ```
    #[must_use]
    pub fn without_transfers(mut self) -> Self {
        for (name, price) in &mut self.prices {
            if name.starts_with("clean_") || name.starts_with("changed_") {
                price.ns = 0.0;
            }
        }
        self.name.push_str(WITHOUT_TRANSFERS);
        self
    }
}

/// The price of each access, and the time slice.
#[cfg(sim)]
fn check_names(profile: &Profile) -> Result<(), String> {
    use super::prices::names;

    let missing = names().find(|name| !profile.prices.contains_key(*name));
    if let Some(name) = missing {
        return Err(format!("it has no price '{name}'"));
    }
    let unknown = |price: &&String| names().all(|name| name != *price);
    match profile.prices.keys().find(unknown) {
        Some(price) => Err(format!("there is no price '{price}'")),
        None => Ok(()),
    }
}

#[cfg(not(sim))]
#[allow(
    clippy::unnecessary_wraps,
    reason = "the simulator, which knows the names, is not here"
)]
fn check_names(_profile: &Profile) -> Result<(), String> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_is_valid() {
        for (name, text) in PROFILES {
            let profile = Profile::parse(name, text).unwrap();
            assert!(profile.all_threads() > 1, "{name}");
            assert_eq!(Profile::find(name).unwrap(), profile);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let (_, text) = PROFILES[0];
        let problem = |text: &str| Profile::parse("wrong", text).unwrap_err().to_string();
        #[cfg(sim)]
        assert!(problem(&text.replace("[prices.pause]", "[prices.paws]")).contains("'pause'"));
        assert!(problem(&text.replace("ns = 90", "ns = -90")).contains("-90"));
        assert!(problem(&text.replace("sockets = 2", "sockets = 'two'")).contains("sockets"));
        let unknown = Profile::find("no_such_machine").unwrap_err().to_string();
        assert!(unknown.contains("no_such_machine") && unknown.contains(PROFILES[0].0));
    }

    #[test]
    fn without_transfers_only_transfers_are_free() {
        let profile = Profile::find(PROFILES[0].0).unwrap().without_transfers();
        assert_eq!(profile.prices["changed_other"].ns, 0.0);
        assert!(profile.prices["own_memory"].ns > 0.0);
    }
}
