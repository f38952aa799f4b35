//! The keys that a user may read and write: patterns and ranges.

use super::RuleError;
use crate::glob;
use std::fmt;
use std::ops::Bound;

/// What a command does with a key, or what a rule lets a user do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) read: bool,
    pub(crate) write: bool,
}

impl Access {
    pub(crate) const READ: Self = Self {
        read: true,
        write: false,
    };
    pub(crate) const WRITE: Self = Self {
        read: false,
        write: true,
    };
    pub(crate) const BOTH: Self = Self {
        read: true,
        write: true,
    };

    /// What one of them or the other allows.
    const fn or(self, other: Self) -> Self {
        Self {
            read: self.read || other.read,
            write: self.write || other.write,
        }
    }

    /// Whether this is enough for `needed`.
    const fn covers(self, needed: Self) -> bool {
        (self.read || !needed.read) && (self.write || !needed.write)
    }
}

/// Neighbouring keys: from `low` on, and below `high` if there is one.
///
/// Every bound has this form, because the key `k` followed by a zero byte is the next key behind
/// `k`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    low: Vec<u8>,
    high: Option<Vec<u8>>,
}

impl Interval {
    /// The keys between two bounds.
    pub(crate) fn between(low: Bound<&[u8]>, high: Bound<&[u8]>) -> Self {
        let behind = |key: &[u8]| [key, &[0]].concat();
        Self {
            low: match low {
                Bound::Unbounded => Vec::new(),
                Bound::Included(key) => key.to_vec(),
                Bound::Excluded(key) => behind(key),
            },
            high: match high {
                Bound::Unbounded => None,
                Bound::Included(key) => Some(behind(key)),
                Bound::Excluded(key) => Some(key.to_vec()),
            },
        }
    }

    pub(crate) const fn all() -> Self {
        Self {
            low: Vec::new(),
            high: None,
        }
    }

    /// The keys that begin with a prefix.
    fn of_prefix(prefix: &[u8]) -> Self {
        let mut high = prefix.to_vec();
        while high.pop_if(|last| *last == u8::MAX).is_some() {}
        if let Some(last) = high.last_mut() {
            *last += 1;
        }
        Self {
            low: prefix.to_vec(),
            high: (!high.is_empty()).then_some(high),
        }
    }

    fn is_empty(&self) -> bool {
        self.high.as_ref().is_some_and(|high| *high <= self.low)
    }

    fn contains(&self, key: &[u8]) -> bool {
        *self.low <= *key && self.high.as_ref().is_none_or(|high| *key < **high)
    }

    /// Reads two bounds as `RANGE` takes them, with a comma between them: `[a,(b`. Any byte may be
    /// written `\xHH`, so that a rule has no spaces.
    fn parse(text: &[u8]) -> Result<Self, RuleError> {
        let comma = text.iter().position(|byte| *byte == b',');
        let (low, high) = text.split_at(comma.ok_or(RuleError::Range)?);
        let low = match low {
            b"-" => Vec::new(),
            [b'[', key @ ..] => unescape(key)?,
            [b'(', key @ ..] => [&unescape(key)?[..], &[0]].concat(),
            _ => return Err(RuleError::Range),
        };
        let high = match &high[1..] {
            b"+" => None,
            [b'[', key @ ..] => Some([&unescape(key)?[..], &[0]].concat()),
            [b'(', key @ ..] => Some(unescape(key)?),
            _ => return Err(RuleError::Range),
        };
        let interval = Self { low, high };
        if interval.is_empty() {
            return Err(RuleError::EmptyRange);
        }
        Ok(interval)
    }
}

impl fmt::Display for Interval {
    /// In the form that [`parse`](Self::parse) reads.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.low[..] {
            [] => write!(out, "-")?,
            [key @ .., 0] => write!(out, "({}", escape(key))?,
            key => write!(out, "[{}", escape(key))?,
        }
        match self.high.as_deref() {
            None => write!(out, ",+"),
            Some([key @ .., 0]) => write!(out, ",[{}", escape(key)),
            Some(key) => write!(out, ",({}", escape(key)),
        }
    }
}

/// A key as a rule has it: printable bytes that separate nothing stand for themselves.
fn escape(key: &[u8]) -> String {
    let mut text = String::new();
    for byte in key {
        if byte.is_ascii_graphic() && !b"\\,()".contains(byte) {
            text.push(char::from(*byte));
        } else {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

fn unescape(text: &[u8]) -> Result<Vec<u8>, RuleError> {
    let (mut key, mut rest) = (Vec::new(), text);
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        if *byte != b'\\' {
            if *byte == b',' || byte.is_ascii_whitespace() || *byte == 0 {
                return Err(RuleError::Range);
            }
            key.push(*byte);
            continue;
        }
        let [b'x' | b'X', high, low, behind @ ..] = rest else {
            return Err(RuleError::Range);
        };
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let (Some(high), Some(low)) = (digit(*high), digit(*low)) else {
            return Err(RuleError::Range);
        };
        key.push(u8::try_from(16 * high + low).map_err(|_| RuleError::Range)?);
        rest = behind;
    }
    Ok(key)
}

/// Some keys, and what a user may do with them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KeyRule {
    access: Access,
    which: Which,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Which {
    Pattern(Vec<u8>),
    Range(Interval),
}

impl KeyRule {
    fn parse(text: &[u8]) -> Result<Self, RuleError> {
        let (access, rest) = match text {
            [b'~', pattern @ ..] => return Self::of_pattern(Access::BOTH, pattern),
            [b'%', rest @ ..] => {
                let letters = rest
                    .iter()
                    .position(|byte| !matches!(byte.to_ascii_uppercase(), b'R' | b'W'));
                let (letters, rest) = rest.split_at(letters.ok_or(RuleError::Syntax)?);
                let has = |letter| letters.to_ascii_uppercase().contains(&letter);
                let access = Access {
                    read: has(b'R'),
                    write: has(b'W'),
                };
                (access, rest)
            }
            _ => return Err(RuleError::Syntax),
        };
        if !access.read && !access.write {
            return Err(RuleError::Syntax);
        }
        match rest {
            [b'~', pattern @ ..] => Self::of_pattern(access, pattern),
            [b':', range @ ..] => Ok(Self {
                access,
                which: Which::Range(Interval::parse(range)?),
            }),
            _ => Err(RuleError::Syntax),
        }
    }

    fn of_pattern(access: Access, pattern: &[u8]) -> Result<Self, RuleError> {
        if super::has_blanks(pattern) {
            return Err(RuleError::Syntax);
        }
        Ok(Self {
            access,
            which: Which::Pattern(pattern.to_vec()),
        })
    }

    fn contains(&self, key: &[u8]) -> bool {
        match &self.which {
            // A pattern that takes too long to match lets nobody in.
            Which::Pattern(pattern) => glob::matches(pattern, key).unwrap_or(false),
            Which::Range(interval) => interval.contains(key),
        }
    }

    /// Neighbouring keys that the rule has all of; `None` if it is a pattern with gaps.
    fn interval(&self) -> Option<Interval> {
        match &self.which {
            Which::Range(interval) => Some(interval.clone()),
            Which::Pattern(pattern) => {
                let prefix = glob::literal_prefix(pattern);
                (pattern.strip_suffix(b"*") == Some(&prefix)).then(|| Interval::of_prefix(&prefix))
            }
        }
    }

    fn describe(&self, out: &mut Vec<u8>) {
        if self.access == Access::BOTH && matches!(self.which, Which::Pattern(_)) {
            out.push(b'~');
        } else {
            out.push(b'%');
            out.extend(self.access.read.then_some(b'R'));
            out.extend(self.access.write.then_some(b'W'));
            out.push(match self.which {
                Which::Pattern(_) => b'~',
                Which::Range(_) => b':',
            });
        }
        match &self.which {
            Which::Pattern(pattern) => out.extend_from_slice(pattern),
            Which::Range(interval) => out.extend_from_slice(interval.to_string().as_bytes()),
        }
    }
}

/// The keys that a selector opens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KeyRules {
    all: bool,
    rules: Vec<KeyRule>,
}

impl KeyRules {
    pub(super) fn set(&mut self, all: bool) {
        self.all = all;
        self.rules.clear();
    }

    pub(super) fn are_all(&self) -> bool {
        self.all
    }

    /// Adds the rule that a word like `~pattern` or `%R:[a,(b` names.
    pub(super) fn add(&mut self, word: &[u8]) -> Result<(), RuleError> {
        if self.all {
            return Err(RuleError::KeysAfterAll);
        }
        let rule = KeyRule::parse(word)?;
        // As in Redis, a second word about the same keys adds to what the first one lets do.
        let known = self
            .rules
            .iter_mut()
            .find(|known| known.which == rule.which);
        let access = known
            .as_ref()
            .map_or(rule.access, |known| known.access.or(rule.access));
        if access == Access::BOTH && rule.which == Which::Pattern(b"*".to_vec()) {
            self.set(true);
        } else if let Some(known) = known {
            known.access = access;
        } else {
            self.rules.push(rule);
        }
        Ok(())
    }

    pub(super) fn allow(&self, needed: Access, key: &[u8]) -> bool {
        self.all
            || self
                .rules
                .iter()
                .any(|rule| rule.access.covers(needed) && rule.contains(key))
    }

    /// Whether a user may do this with whatever key there is in an interval.
    pub(super) fn allow_all_in(&self, needed: Access, interval: &Interval) -> bool {
        if self.all || interval.is_empty() {
            return true;
        }
        let allowed = self.rules.iter().filter(|rule| rule.access.covers(needed));
        let mut allowed: Vec<_> = allowed.filter_map(KeyRule::interval).collect();
        allowed.sort_by(|one, other| one.low.cmp(&other.low));
        // All keys of the interval below this one are allowed.
        let mut reached = interval.low.clone();
        for part in allowed {
            if part.low > reached {
                return false;
            }
            match part.high {
                None => return true,
                Some(high) => reached = reached.max(high),
            }
            if interval.high.as_ref().is_some_and(|high| *high <= reached) {
                return true;
            }
        }
        false
    }

    /// The rules as words, each with a space before it.
    pub(super) fn describe(&self, out: &mut Vec<u8>) {
        if self.all {
            out.extend_from_slice(b" ~*");
        }
        for rule in &self.rules {
            out.push(b' ');
            rule.describe(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rules(words: &[&str]) -> KeyRules {
        let mut rules = KeyRules::default();
        for word in words {
            rules.add(word.as_bytes()).expect(word);
        }
        rules
    }

    fn described(rules: &KeyRules) -> String {
        let mut out = Vec::new();
        rules.describe(&mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn a_range_has_its_bounds_and_nothing_beside_them() {
        let some = rules(&["%R:[b,(d", "%W:(x,[y", "%RW:[\\x00,[\\x00"]);
        for (key, read, write) in [
            (&b"a"[..], false, false),
            (b"b", true, false),
            (b"c\xff", true, false),
            (b"d", false, false),
            (b"x", false, false),
            (b"x\0", false, true),
            (b"y", false, true),
            (b"y\0", false, false),
            (b"\0", true, true),
            (b"", false, false),
        ] {
            assert_eq!(some.allow(Access::READ, key), read, "{key:?}");
            assert_eq!(some.allow(Access::WRITE, key), write, "{key:?}");
            assert_eq!(some.allow(Access::BOTH, key), read && write, "{key:?}");
        }
        assert!(rules(&["%R:-,+"]).allow(Access::READ, b""));
    }

    #[test]
    fn words_print_as_they_read() {
        let words = [
            "~a*",
            "%R~b",
            "%W~c",
            "%R:[a,(b",
            "%RW:(a,[b",
            "%W:-,+",
            "%R:[a\\x2c\\x20\\x5c,+",
        ];
        assert_eq!(described(&rules(&words)), format!(" {}", words.join(" ")));
        assert_eq!(described(&rules(&["%rw~x", "%RW~*"])), " ~*");
        assert_eq!(
            described(&rules(&[
                "%R~a", "~b", "%W~a", "%R~b", "%W:[c,+", "%R:[c,+"
            ])),
            " ~a ~b %RW:[c,+",
            "words about the same keys are one"
        );
        assert_eq!(described(&rules(&["~a", "%R~*", "%W~*"])), " ~*");
        for wrong in [
            "%~x",
            "%R",
            "%",
            "%X~a",
            "%R:",
            "%R:a,b",
            "%R:[a",
            "%R:[a,b",
            "%R:[a,[b,[c",
            "~a b",
            "%R:[\\x4,+",
            "%R:[\\n,+",
            "%R:[a b,+",
            "%R:+,-",
            "a",
            "",
        ] {
            let error = KeyRules::default().add(wrong.as_bytes());
            assert!(
                matches!(error, Err(RuleError::Syntax | RuleError::Range)),
                "{wrong}: {error:?}"
            );
        }
        for empty in ["%R:[b,(b", "%R:(b,(b", "%R:[b,[a", "%R:[a,(\\x00"] {
            let error = KeyRules::default().add(empty.as_bytes());
            assert_eq!(error, Err(RuleError::EmptyRange), "{empty}");
        }
        assert_eq!(
            rules(&["~*"]).add(b"~a"),
            Err(RuleError::KeysAfterAll),
            "a rule that would have no effect"
        );
    }

    #[test]
    fn ranges_and_prefixes_join_and_leave_no_gap_unseen() {
        let interval = |low: &'static str, high: &'static str| {
            Interval::between(
                Bound::Included(low.as_bytes()),
                Bound::Excluded(high.as_bytes()),
            )
        };
        let some = rules(&["%W:[m,(p", "~a*", "%W:[b,[m", "%R:[p,(q", "~x*z"]);
        assert!(some.allow_all_in(Access::WRITE, &interval("a", "p")));
        assert!(some.allow_all_in(Access::WRITE, &interval("a\x01", "n")));
        for (low, high) in [("a", "p\0"), ("A", "b"), ("p", "q"), ("xz", "xzz")] {
            assert!(
                !some.allow_all_in(Access::WRITE, &interval(low, high)),
                "{low}"
            );
        }
        assert!(
            some.allow_all_in(Access::WRITE, &interval("z", "z")),
            "no key"
        );
        assert!(rules(&["~*"]).allow_all_in(Access::BOTH, &interval("a", "z")));
        assert!(rules(&["%W:[a,+"]).allow_all_in(
            Access::WRITE,
            &Interval::between(Bound::Excluded(b"a"), Bound::Unbounded)
        ));
        assert!(!rules(&["%W:[a,(z"]).allow_all_in(
            Access::WRITE,
            &Interval::between(Bound::Excluded(b"a"), Bound::Unbounded)
        ));
        assert!(rules(&["~\u{ff}*"]).rules[0].interval().is_some());
    }

    fn short_key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(&[0, b'a', b'b', u8::MAX][..]), 0..3)
    }

    fn bound(key: Vec<u8>, kind: u8) -> Bound<Vec<u8>> {
        match kind {
            0 => Bound::Unbounded,
            1 => Bound::Included(key),
            _ => Bound::Excluded(key),
        }
    }

    proptest! {
        #[test]
        fn an_interval_has_the_keys_between_its_bounds(
            low in short_key(), high in short_key(), kinds in (0_u8..3, 0_u8..3), key in short_key(),
        ) {
            let (low, high) = (bound(low, kinds.0), bound(high, kinds.1));
            let interval = Interval::between(
                low.as_ref().map(Vec::as_slice),
                high.as_ref().map(Vec::as_slice),
            );
            let above = match &low {
                Bound::Unbounded => true,
                Bound::Included(low) => *low <= key,
                Bound::Excluded(low) => *low < key,
            };
            let below = match &high {
                Bound::Unbounded => true,
                Bound::Included(high) => key <= *high,
                Bound::Excluded(high) => key < *high,
            };
            prop_assert_eq!(interval.contains(&key), above && below);
            if !interval.is_empty() {
                let again = Interval::parse(interval.to_string().as_bytes());
                prop_assert_eq!(again, Ok(interval));
            }
        }

        #[test]
        fn a_covered_interval_has_no_key_that_is_not_allowed(
            parts in prop::collection::vec((short_key(), short_key()), 0..4),
            prefix in short_key(), low in short_key(), high in short_key(), key in short_key(),
        ) {
            let mut rules = KeyRules::default();
            for (low, high) in parts {
                rules.rules.push(KeyRule {
                    access: Access::WRITE,
                    which: Which::Range(Interval { low, high: Some(high) }),
                });
            }
            if !prefix.is_empty() {
                rules.rules.push(KeyRule {
                    access: Access::BOTH,
                    which: Which::Pattern([&prefix[..], b"*"].concat()),
                });
            }
            let interval = Interval { low, high: Some(high) };
            if rules.allow_all_in(Access::WRITE, &interval) && interval.contains(&key) {
                prop_assert!(rules.allow(Access::WRITE, &key));
            }
        }
    }
}
