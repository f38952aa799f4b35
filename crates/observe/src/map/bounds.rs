//! Which keys a bucket has.

use super::MOST_BUCKETS;

/// Bytes of a key that the contention map keeps. A longer key is cut, and what is left of it is not
/// above it.
pub const LONGEST_KEY: usize = 128;

/// The lowest keys of buckets, ascending. The first is empty: it is below all keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Byte forms.
    pub(crate) raw: Vec<Box<[u8]>>,
    /// For people.
    pub(crate) text: Vec<String>,
    bytes: usize,
}

impl Bounds {
    /// Bounds at these keys, and one below all.
    pub(crate) fn at<'k>(
        lows: impl IntoIterator<Item = &'k [u8]>,
        text: impl Fn(&[u8]) -> String,
    ) -> Self {
        let mut raw: Vec<Box<[u8]>> = vec![Box::default()];
        let lows = lows
            .into_iter()
            .map(|low| &low[..low.len().min(LONGEST_KEY)]);
        raw.extend(lows.filter(|low| !low.is_empty()).map(Box::from));
        raw.sort_unstable();
        raw.dedup();
        raw.truncate(MOST_BUCKETS);
        // The first is no key.
        let shown = raw.iter().skip(1).map(|key| text(key));
        let text: Vec<String> = std::iter::once(String::new()).chain(shown).collect();
        let keys = raw.iter().map(|key| key.len() + size_of::<Box<[u8]>>());
        let texts = text
            .iter()
            .map(|text| text.capacity() + size_of::<String>());
        let bytes = keys.sum::<usize>() + texts.sum::<usize>() + size_of::<Self>();
        Self { raw, text, bytes }
    }

    /// The number of buckets, at least one.
    pub(crate) fn len(&self) -> usize {
        self.raw.len()
    }

    /// The bucket of a key.
    pub(crate) fn bucket_of(&self, key: &[u8]) -> usize {
        // The first bound is not above any key.
        self.raw.partition_point(|low| **low <= *key) - 1
    }

    /// The bytes that they hold.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Chooses where buckets begin: at leaves, so that each bucket has about the same weight. Leaves
/// come with their lowest keys, which ascend, and their weights.
pub(crate) fn choose<'k>(leaves: &[(&'k [u8], f64)]) -> Vec<&'k [u8]> {
    if leaves.len() <= MOST_BUCKETS {
        return leaves.iter().map(|(low, _)| *low).collect();
    }
    let mut left: f64 = leaves.iter().map(|(_, weight)| *weight).sum();
    let mut chosen = Vec::with_capacity(MOST_BUCKETS);
    let (mut weight, mut share) = (f64::INFINITY, 0.0);
    for (low, more) in leaves {
        // A leaf that is heavy alone has a bucket of its own, and the others share what is left.
        if weight + more / 2.0 >= share && chosen.len() < MOST_BUCKETS {
            if weight.is_finite() {
                left -= weight;
            }
            share = left / (MOST_BUCKETS - chosen.len()) as f64;
            chosen.push(*low);
            weight = 0.0;
        }
        weight += more;
    }
    chosen
}

/// Hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = |byte: &u8| {
        [
            DIGITS[usize::from(byte >> 4)],
            DIGITS[usize::from(byte & 15)],
        ]
    };
    bytes.iter().flat_map(digits).map(char::from).collect()
}

/// The bytes that hexadecimal digits stand for.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let byte = |[high, low]: &[u8; 2]| u8::try_from(digit(*high)? << 4 | digit(*low)?).ok();
    pairs.iter().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_come_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(unhex(&hex(&bytes)), Some(bytes));
        assert_eq!(
            (unhex("abc"), unhex("zz"), unhex("")),
            (None, None, Some(vec![]))
        );
    }

    #[test]
    fn every_key_has_a_bucket_and_long_ones_are_cut() {
        let long = [b'k'; 2 * LONGEST_KEY];
        let bounds = Bounds::at([&long[..], b"b"], |key| key.len().to_string());
        assert_eq!(bounds.len(), 3);
        assert_eq!(bounds.text, ["", "1", "128"]);
        let found = [&b""[..], b"a", b"b", b"c", &long].map(|key| bounds.bucket_of(key));
        assert_eq!(found, [0, 0, 1, 1, 2]);
    }

    #[test]
    fn a_hot_range_gets_many_buckets() {
        let keys: Vec<[u8; 2]> = (0..10_000_u16).map(u16::to_be_bytes).collect();
        let weight = |number: usize| {
            if (5000..5100).contains(&number) {
                100.0
            } else {
                1.0
            }
        };
        let leaves: Vec<_> = keys
            .iter()
            .enumerate()
            .map(|(number, key)| (&key[..], weight(number)))
            .collect();
        let chosen = choose(&leaves);
        assert!(
            (200..=MOST_BUCKETS).contains(&chosen.len()),
            "{}",
            chosen.len()
        );
        let hot = |key: &&[u8]| (&keys[5000][..]..&keys[5100][..]).contains(key);
        let buckets = chosen.iter().filter(|key| hot(key)).count();
        // The first of the hot leaves may share the bucket before it.
        assert!(buckets >= 99, "{buckets}: half of the weight");
    }
}
