//! Which keyspace notifications are sent.

use std::fmt;
use std::str::FromStr;

/// A class of notifications, by the place of its letter in [`LETTERS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Commands on keys of any type.
    Generic = 0,
    /// Commands on strings.
    String = 1,
    /// Keys whose time has come.
    Expired = 6,
    /// Keys for which there was no room.
    Evicted = 7,
    /// Keys that were not there before.
    New = 10,
    /// Channels named after keys.
    Keyspace = 11,
    /// Channels named after what has happened.
    Keyevent = 12,
    /// Keys that were looked up and are not there.
    Missed = 13,
}

/// The letters, each at the place of its bit. Those without a class are of types that do not exist
/// here: they are taken, and nothing is ever sent of them.
const LETTERS: &str = "g$lshzxetdnKEm";

/// What `A` stands for: the first ten letters.
const ALL: u16 = (1 << 10) - 1;

/// Classes of notifications, written as in Redis's setting `notify-keyspace-events`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Classes(pub(crate) u16);

impl Classes {
    #[inline]
    pub(crate) fn has(self, class: Class) -> bool {
        self.0 >> class as u16 & 1 != 0
    }

    /// Whether anything is sent anywhere.
    fn has_channel(self) -> bool {
        self.has(Class::Keyspace) || self.has(Class::Keyevent)
    }

    /// Whether changes of keys are reported.
    pub(crate) fn has_changes(self) -> bool {
        let of_changes = [
            Class::Generic,
            Class::String,
            Class::Expired,
            Class::Evicted,
            Class::New,
        ];
        self.has_channel() && of_changes.into_iter().any(|class| self.has(class))
    }

    /// Whether lookups of keys that are not there are reported.
    pub(crate) fn has_misses(self) -> bool {
        self.has_channel() && self.has(Class::Missed)
    }
}

impl FromStr for Classes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut classes = 0;
        for letter in text.chars() {
            let at = LETTERS.chars().position(|known| known == letter);
            classes |= match (letter, at) {
                ('A', _) => ALL,
                (_, Some(at)) => 1 << at,
                (_, None) => {
                    return Err("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".to_owned());
                }
            };
        }
        Ok(Self(classes))
    }
}

impl fmt::Display for Classes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_all = self.0 & ALL == ALL;
        if has_all {
            out.write_str("A")?;
        }
        for (at, letter) in LETTERS.chars().enumerate() {
            let is_in_all = has_all && ALL >> at & 1 != 0;
            if self.0 >> at & 1 != 0 && !is_in_all {
                write!(out, "{letter}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_written_as_redis_writes_them() {
        for (given, shown) in [
            ("KEA", "AKE"),
            ("En", "nE"),
            ("Kn", "nK"),
            ("nKE", "nKE"),
            ("KEm", "KEm"),
            ("AmKE", "AKEm"),
            ("g$lshzxetdKE", "AKE"),
            ("K$g", "g$K"),
            ("KExe", "xeKE"),
            ("A", "A"),
            ("", ""),
            // Redis forgets the 'n' here.
            ("AKEnm", "AnKEm"),
        ] {
            let classes: Classes = given.parse().expect("known letters");
            assert_eq!(classes.to_string(), shown, "{given}");
            assert_eq!(shown.parse(), Ok(classes), "{shown}");
        }
        for wrong in ["q", "KEB", " ", "é"] {
            let error = wrong.parse::<Classes>().unwrap_err();
            assert!(error.contains("Ag$lshzxeKEtmdn"), "{error}");
        }
    }

    #[test]
    fn nothing_is_reported_without_a_channel_or_without_a_class() {
        let classes = |text: &str| text.parse::<Classes>().expect("known letters");
        for (text, changes, misses) in [
            ("", false, false),
            ("A", false, false),
            ("KE", false, false),
            ("Kl", false, false),
            ("K$", true, false),
            ("Ex", true, false),
            ("Em", false, true),
            ("nK", true, false),
            ("KEAm", true, true),
        ] {
            let classes = classes(text);
            assert_eq!(classes.has_changes(), changes, "{text}");
            assert_eq!(classes.has_misses(), misses, "{text}");
        }
    }
}
