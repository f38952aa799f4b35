//! Decimal integers as the protocol and the commands write them.

/// The digits of the longest `i64`, with its sign.
const MAX_DIGITS: usize = 20;

/// Reads a decimal `i64` as strictly as Redis does: no blanks, no plus sign, no leading zeros,
/// no negative zero, nothing before or after.
pub(crate) fn parse(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] if text.len() <= MAX_DIGITS => (),
        _ => return None,
    }
    // Sums negative numbers, of which there is one more than of positive ones.
    let sum = digits.iter().try_fold(0_i64, |sum, digit| {
        if !digit.is_ascii_digit() {
            return None;
        }
        sum.checked_mul(10)?.checked_sub(i64::from(digit - b'0'))
    })?;
    if negative {
        Some(sum)
    } else {
        sum.checked_neg()
    }
}

/// A number's digits, written without an allocation.
pub(crate) struct Digits {
    bytes: [u8; MAX_DIGITS],
    start: usize,
}

impl Digits {
    pub(crate) fn new(number: i64) -> Self {
        let mut this = Self {
            bytes: [0; MAX_DIGITS],
            start: MAX_DIGITS,
        };
        let mut rest = number.unsigned_abs();
        loop {
            this.push_front(b'0' + (rest % 10) as u8);
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if number < 0 {
            this.push_front(b'-');
        }
        this
    }

    fn push_front(&mut self, byte: u8) {
        self.start -= 1;
        self.bytes[self.start] = byte;
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_bounds_are_read_and_what_lies_beyond_is_not() {
        assert_eq!(parse(b"9223372036854775807"), Some(i64::MAX));
        assert_eq!(parse(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(parse(b"9223372036854775808"), None);
        assert_eq!(parse(b"-9223372036854775809"), None);
        assert_eq!(parse(b"99999999999999999999"), None);
        assert_eq!(parse(b"111111111111111111111"), None);
    }

    #[test]
    fn what_redis_refuses_is_refused() {
        for text in [
            "", "-", "+1", " 1", "1 ", "01", "-0", "00", "1a", "0x1", "--1",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn digits_read_back(number: i64) {
            let digits = Digits::new(number);
            prop_assert_eq!(digits.as_bytes(), number.to_string().into_bytes());
            prop_assert_eq!(parse(digits.as_bytes()), Some(number));
        }
    }
}
