//! Heads that hold more of a key than its first eight bytes.
//!
//! An index compares the heads of keys, numbers of 64 bits, and looks at the keys themselves only
//! where heads are equal. The keys of most users begin alike (`user:0000123`), so eight bytes of
//! them are often equal for all. But text needs fewer than eight bits a byte: a digit follows a
//! digit, and a letter a letter. So the head here is an arithmetic code, which keeps the order: the
//! first byte chooses a part of the range of all numbers, as wide as the byte is frequent, the
//! second byte a part of that, and so on. Below the parts of all bytes lies that of a key's end. It
//! holds about 18 digits, or 14 letters, or 7 arbitrary bytes, and all but the last two digits of
//! `counter:000000012345`.
//!
//! Of a key that fits in with its end, the head is an odd number from the last part: no other key
//! has it, because the parts of different keys have no number in common. So an index that has found
//! the head need not look at the key, which lies elsewhere in memory. Of a longer key, the head is
//! the even number where its last part begins, or the one below that.
//!
//! The frequencies are fixed and depend only on what kind of byte came before. They decide how much
//! of a key a head holds, never the order.

/// What a byte is, for the one behind it.
#[derive(Clone, Copy)]
enum Kind {
    /// Numbers are often padded.
    Zero,
    Digit,
    Lower,
    Upper,
    /// Other printable characters of ASCII, and the beginning of a key.
    Mark,
    Binary,
}

const KINDS: [Kind; 6] = [
    Kind::Zero,
    Kind::Digit,
    Kind::Lower,
    Kind::Upper,
    Kind::Mark,
    Kind::Binary,
];

/// The parts of a range are multiples of 2^-16 of it.
const SHIFT: u32 = 16;

const fn kind(byte: u8) -> Kind {
    match byte {
        b'0' => Kind::Zero,
        b'1'..=b'9' => Kind::Digit,
        b'a'..=b'z' => Kind::Lower,
        b'A'..=b'Z' => Kind::Upper,
        b' '..=b'~' => Kind::Mark,
        _ => Kind::Binary,
    }
}

/// How often the letters come in English text, in thousandths; the rare ones more often, because
/// names are not all English.
const LETTERS: [u64; 26] = [
    82, 15, 28, 43, 127, 22, 20, 61, 70, 15, 15, 40, 24, 67, 75, 19, 15, 60, 63, 91, 28, 15, 24,
    15, 20, 15,
];

/// How frequent a byte is behind a byte of some kind. At least 1, and with all others less than
/// 2^16, so that every byte has a part of its own.
const fn weight(before: Kind, byte: u8) -> u64 {
    let separates = matches!(byte, b':' | b'-' | b'.' | b'/' | b'_' | b'|');
    let letter = match byte {
        b'a'..=b'z' => LETTERS[(byte - b'a') as usize],
        b'A'..=b'Z' => LETTERS[(byte - b'A') as usize],
        _ => 0,
    };
    match (before, kind(byte)) {
        (Kind::Zero, Kind::Zero) => 22_500,
        (Kind::Zero, Kind::Digit) => 2500,
        (Kind::Digit, Kind::Zero | Kind::Digit) => 2000,
        // Hexadecimal digits.
        (Kind::Zero | Kind::Digit, Kind::Lower) if byte <= b'f' => 60,
        (Kind::Zero | Kind::Digit, Kind::Lower | Kind::Upper) => 10,
        (Kind::Zero | Kind::Digit, _) if separates => 100,
        (Kind::Zero | Kind::Digit, _) => 2,
        (Kind::Lower, Kind::Lower) | (Kind::Upper, Kind::Upper) => 8 * letter,
        (Kind::Lower, Kind::Upper) => 10,
        (Kind::Upper, Kind::Lower) => 2 * letter,
        (Kind::Lower | Kind::Upper, Kind::Zero | Kind::Digit) => 60,
        (Kind::Lower | Kind::Upper, _) if byte == b':' => 1200,
        (Kind::Lower | Kind::Upper, _) if separates => 150,
        (Kind::Lower | Kind::Upper, _) => 1,
        (Kind::Mark, Kind::Lower) => 8 * letter,
        (Kind::Mark, Kind::Upper) => 80,
        (Kind::Mark, Kind::Zero) => 900,
        (Kind::Mark, Kind::Digit) => 300,
        // The first byte of a binary key comes here.
        (Kind::Mark, _) => 15,
        (Kind::Binary, _) => 1,
    }
}

/// How frequent the end of a key is behind a byte of some kind, beside those weights.
const fn weight_of_end(before: Kind) -> u64 {
    match before {
        Kind::Zero => 200,
        Kind::Digit => 600,
        Kind::Lower | Kind::Upper => 100,
        Kind::Mark | Kind::Binary => 15,
    }
}

/// A byte's part of a range.
#[derive(Clone, Copy)]
struct Part {
    start: u16,
    width: u16,
    /// The place of the parts of the next byte among [`PARTS`].
    next: u8,
}

/// The parts behind a byte of some kind.
struct Parts {
    /// How wide the part of a key's end is. It begins where the range does.
    end: u16,
    bytes: [Part; 256],
}

/// The parts, by the kind of the byte before.
static PARTS: [Parts; KINDS.len()] = [
    parts(KINDS[0]),
    parts(KINDS[1]),
    parts(KINDS[2]),
    parts(KINDS[3]),
    parts(KINDS[4]),
    parts(KINDS[5]),
];

const fn parts(before: Kind) -> Parts {
    let none = Part {
        start: 0,
        width: 0,
        next: 0,
    };
    let mut total = weight_of_end(before);
    let mut byte = 0;
    while byte < 256 {
        total += weight(before, byte as u8);
        byte += 1;
    }
    assert!(total < 1 << SHIFT);
    let mut below = weight_of_end(before);
    let end_of_key = (below << SHIFT) / total;
    let (mut start, mut byte) = (end_of_key, 0);
    let mut bytes = [none; 256];
    while byte < 256 {
        below += weight(before, byte as u8);
        let end = (below << SHIFT) / total;
        bytes[byte] = Part {
            start: start as u16,
            width: (end - start) as u16,
            next: kind(byte as u8) as u8,
        };
        start = end;
        byte += 1;
    }
    Parts {
        end: end_of_key as u16,
        bytes,
    }
}

/// A number that is never greater for smaller bytes.
pub(super) fn head_of_text(bytes: &[u8]) -> u64 {
    // The range begins at `start`; `unit` is a 2^-16th of its width. Both are scaled by 2^16, so
    // that the parts of a narrow range still differ: `unit` also is the width of the range in
    // heads.
    let mut start = 0_u128;
    let mut unit = u64::MAX;
    let mut parts = &PARTS[Kind::Mark as usize];
    for byte in bytes {
        let part = parts.bytes[usize::from(*byte)];
        start += u128::from(unit) * u128::from(part.start);
        unit = narrow(unit, part.width);
        if unit == 0 {
            break;
        }
        parts = &PARTS[usize::from(part.next) % KINDS.len()];
    }
    let first = (start >> SHIFT) as u64;
    // Then the two numbers above the first lie in the part, and one of them is odd.
    if narrow(unit, parts.end) >= 4 {
        return (first + 1) | 1;
    }
    first & !1
}

/// Whether only one key can have this head.
pub(super) const fn is_only_of_one(head: u64) -> bool {
    head & 1 == 1
}

fn narrow(unit: u64, width: u16) -> u64 {
    ((u128::from(unit) * u128::from(width)) >> SHIFT) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bytes that often begin alike, of all kinds.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..12),
            prop::collection::vec(
                prop::sample::select(vec![0, 1, b'0', b'9', b'a', 255]),
                0..24
            ),
            "[a-z]{0,6}:[0-9]{0,20}".prop_map(String::into_bytes),
        ]
    }

    proptest! {
        #[test]
        fn a_smaller_key_never_has_a_greater_head(mut keys in prop::collection::vec(key(), 2..20)) {
            keys.sort();
            for pair in keys.windows(2) {
                prop_assert!(head_of_text(&pair[0]) <= head_of_text(&pair[1]), "{pair:?}");
            }
        }

        #[test]
        fn different_keys_have_different_heads_or_even_ones(
            mut keys in prop::collection::vec(key(), 2..20),
            more in key(),
        ) {
            let longer: Vec<_> = keys.iter().map(|key| [&key[..], &more].concat()).collect();
            keys.extend(longer);
            keys.sort();
            keys.dedup();
            for pair in keys.windows(2) {
                let heads = [head_of_text(&pair[0]), head_of_text(&pair[1])];
                let differ = heads[0] != heads[1];
                prop_assert!(differ || !is_only_of_one(heads[0]), "{pair:?} {heads:?}");
            }
        }

        #[test]
        fn a_key_behind_its_prefix_has_no_smaller_head(key in key(), more in key()) {
            let longer = [&key[..], &more].concat();
            prop_assert!(head_of_text(&key) <= head_of_text(&longer));
        }
    }

    /// The most of these keys, in their order, that have one head.
    fn alike(keys: impl Iterator<Item = Vec<u8>>) -> usize {
        let heads: Vec<u64> = keys.map(|key| head_of_text(&key)).collect();
        assert!(heads.is_sorted());
        heads
            .chunk_by(|a, b| a == b)
            .map(<[u64]>::len)
            .max()
            .unwrap_or(0)
    }

    #[test]
    fn usual_keys_alone_have_their_heads() {
        for key in [
            "",
            "a",
            "key:000000012345",
            "user:1234567",
            "visits",
            "order:981273",
        ] {
            assert!(is_only_of_one(head_of_text(key.as_bytes())), "{key}");
        }
        let long = "session:0f8fad5b-d9cb-469f-a165-70867728950e";
        assert!(!is_only_of_one(head_of_text(long.as_bytes())));
        assert!(!is_only_of_one(head_of_text(&[255; 100])));
    }

    #[test]
    fn heads_tell_usual_keys_apart() {
        let numbers = 123_000_u64..124_000;
        for (name, most) in [("key", 1), ("counter", 30)] {
            let text = |number: u64| format!("{name}:{number:012}").into_bytes();
            assert!(alike(numbers.clone().map(text)) <= most, "{name}");
        }
        let user = |number: u64| format!("user:{number}").into_bytes();
        assert_eq!(alike(numbers.clone().map(user)), 1);
        let binary = |number: u64| number.to_be_bytes().to_vec();
        assert!(alike(numbers.map(binary)) <= 16);
    }
}
