//! Whole replies as bytes: where one ends, and how the other version of the protocol spells it.

use super::Protocol;

/// What is no reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoReply;

/// The length of the first line, or of the string that begins with it, and how many elements come
/// behind it; `None` if the bytes end before.
fn part(bytes: &[u8]) -> Result<Option<(usize, u64)>, NoReply> {
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else {
        return Ok(None);
    };
    let (line, length) = (&bytes[..end], end + 2);
    let (kind, rest) = line.split_first().ok_or(NoReply)?;
    let number = || -> Result<Option<u64>, NoReply> {
        let text = std::str::from_utf8(rest).map_err(|_| NoReply)?;
        let number: i64 = text.parse().map_err(|_| NoReply)?;
        // Below 0 is what is not there.
        Ok(u64::try_from(number).ok())
    };
    match kind {
        b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' => Ok(Some((length, 0))),
        b'$' | b'=' | b'!' => {
            let Some(text) = number()? else {
                return Ok(Some((length, 0)));
            };
            let text = usize::try_from(text).map_err(|_| NoReply)?;
            let whole = length.checked_add(text).and_then(|end| end.checked_add(2));
            let whole = whole.ok_or(NoReply)?;
            Ok((bytes.len() >= whole).then_some((whole, 0)))
        }
        b'*' | b'~' | b'>' => Ok(Some((length, number()?.unwrap_or(0)))),
        b'%' => {
            let pairs = number()?.unwrap_or(0);
            Ok(Some((length, pairs.checked_mul(2).ok_or(NoReply)?)))
        }
        _ => Err(NoReply),
    }
}

/// Where the reply ends with which these bytes begin; `None` if that has not come. O(bytes).
pub(crate) fn end_of(bytes: &[u8]) -> Result<Option<usize>, NoReply> {
    let (mut at, mut left) = (0, 1_u64);
    while left > 0 {
        let Some((length, elements)) = part(&bytes[at..])? else {
            return Ok(None);
        };
        at += length;
        left = (left - 1).checked_add(elements).ok_or(NoReply)?;
    }
    Ok(Some(at))
}

/// Replies of RESP2, as this version spells what is not there. O(bytes).
pub(crate) fn spelt(replies: &[u8], protocol: Protocol) -> Vec<u8> {
    let mut spelt = Vec::with_capacity(replies.len());
    let mut rest = replies;
    while protocol == Protocol::Resp3
        && let Ok(Some((length, _))) = part(rest)
    {
        let (first, behind) = rest.split_at(length);
        spelt.extend_from_slice(match first {
            b"$-1\r\n" | b"*-1\r\n" => b"_\r\n",
            first => first,
        });
        rest = behind;
    }
    spelt.extend_from_slice(rest);
    spelt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_reply_is_found_and_not_before_it_has_come() {
        for reply in [
            "+OK\r\n",
            ":-1\r\n",
            "$-1\r\n",
            "_\r\n",
            "$4\r\na\r\nb\r\n",
            "*2\r\n*0\r\n$0\r\n\r\n",
            "%1\r\n+a\r\n~2\r\n:1\r\n#t\r\n",
        ] {
            let bytes = format!("{reply}+NEXT");
            for end in 0..reply.len() {
                assert_eq!(
                    end_of(&bytes.as_bytes()[..end]),
                    Ok(None),
                    "{reply:?} {end}"
                );
            }
            assert_eq!(end_of(bytes.as_bytes()), Ok(Some(reply.len())), "{reply:?}");
        }
        for bytes in ["?\r\n", "\r\n", "$x\r\n", "*9223372036854775808\r\n"] {
            assert_eq!(end_of(bytes.as_bytes()), Err(NoReply), "{bytes:?}");
        }
        let many = "*9223372036854775807\r\n".repeat(3);
        assert_eq!(end_of(many.as_bytes()), Err(NoReply));
    }

    #[test]
    fn what_is_not_there_is_spelt_as_the_version_does() {
        let reply = b"*3\r\n$-1\r\n$5\r\n$-1\r\n\r\n*-1\r\n";
        assert_eq!(spelt(reply, Protocol::Resp2), reply);
        let other = b"*3\r\n_\r\n$5\r\n$-1\r\n\r\n_\r\n";
        assert_eq!(spelt(reply, Protocol::Resp3), other);
    }
}
