//! Strings compressed by LZF: literal runs, and copies of what came up to 8 KiB before.

/// The bytes that were compressed; `None` if these are no compression of `length` bytes.
pub(super) fn decompress(mut from: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut out: Vec<u8> = Vec::new();
    while let Some((control, rest)) = from.split_first() {
        from = rest;
        let high = usize::from(control >> 5);
        if high == 0 {
            let (literal, rest) = from.split_at_checked(usize::from(*control) + 1)?;
            out.extend_from_slice(literal);
            from = rest;
        } else {
            let mut count = high + 2;
            if high == 7 {
                count += usize::from(take(&mut from)?);
            }
            let back = (usize::from(control & 0x1f) << 8 | usize::from(take(&mut from)?)) + 1;
            let begin = out.len().checked_sub(back)?;
            // What is copied may reach into what it makes.
            for at in begin..begin + count {
                out.push(out[at]);
            }
        }
        if out.len() > length {
            return None;
        }
    }
    (out.len() == length).then_some(out)
}

fn take(from: &mut &[u8]) -> Option<u8> {
    let (byte, rest) = from.split_first()?;
    *from = rest;
    Some(*byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_copies_are_made_again() {
        assert_eq!(decompress(b"\x02abc", 3).as_deref(), Some(&b"abc"[..]));
        // Three bytes, then six from three before.
        let six = b"\x02abc\x80\x02";
        assert_eq!(decompress(six, 9).as_deref(), Some(&b"abcabcabc"[..]));
        // A long copy of the byte before.
        let long = b"\x00a\xe0\x05\x00";
        assert_eq!(decompress(long, 15), Some(vec![b'a'; 15]));
        assert_eq!(decompress(b"", 0), Some(Vec::new()));
    }

    #[test]
    fn what_is_no_compression_is_refused() {
        for (bytes, length) in [
            (&b"\x02ab"[..], 3),
            (b"\x02abc", 2),
            (b"\x02abc", 4),
            (b"\x20\x00", 3),
            (b"\x00a\x20\x01", 4),
            (b"\x00a\x20", 4),
            (b"\x00a\xe0", 10),
        ] {
            assert_eq!(decompress(bytes, length), None, "{bytes:?}");
        }
    }
}
