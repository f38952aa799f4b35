//! The reply encoder, which writes straight into one output buffer.

use super::number::Digits;
use crate::apart::free;
use crate::limits::REPLY_BATCH;
use crate::outbox::Piece;
use std::collections::VecDeque;
use std::ops::Range;
use tremula_store::{Part, Sequence, Text, Version};

/// The version of the protocol that a client uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Resp2,
    Resp3,
}

impl Protocol {
    pub(crate) fn version(self) -> i64 {
        match self {
            Self::Resp2 => 2,
            Self::Resp3 => 3,
        }
    }
}

/// What `CLIENT REPLY` asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mute {
    /// Replies are written.
    Off,
    /// None is written.
    On,
    /// The next command gets none.
    SkipNext,
    /// This command gets none.
    Skip,
}

/// The replies of a pipeline, encoded, in the order of its commands.
///
/// A reply has a limit. Bytes beyond it are not written, and [`finish`](Self::finish) then replaces
/// the whole reply by one error.
pub(crate) struct Reply {
    bytes: Vec<u8>,
    pub(crate) protocol: Protocol,
    pub(crate) mute: Mute,
    limit: usize,
    /// The bytes that have been sent.
    sent: usize,
    /// Where the part begins that an error can still replace. What is before it may be sent.
    start: usize,
    overflowed: bool,
    /// Whether the reply is sent while it is written, so that the limit does not apply.
    is_stream: bool,
    /// Whether nothing is sent before several replies are written.
    is_held: bool,
    /// Long values that are not sent, in their order.
    long: VecDeque<Long>,
    /// The bytes of all of them, and of those that an error can still replace.
    long_bytes: usize,
    new_long_bytes: usize,
}

/// The bytes of a long value, which are shared, not copied. They are sent between the bytes before
/// this position and those behind it.
struct Long {
    at: usize,
    text: Text,
    range: Range<usize>,
}

/// What a line, a message and a bulk string end with.
const LINE_END: &[u8] = b"\r\n";

/// Bytes from which a value is shared. Copying a shorter one takes no longer than a system call.
const SHARED_FROM: usize = REPLY_BATCH;

/// The capacity that is kept for the next replies of a pipeline. One long reply does not keep its
/// memory.
const KEPT: usize = 2 * REPLY_BATCH;

impl Reply {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            protocol: Protocol::Resp2,
            mute: Mute::Off,
            limit,
            sent: 0,
            start: 0,
            overflowed: false,
            is_stream: false,
            is_held: false,
            long: VecDeque::new(),
            long_bytes: 0,
            new_long_bytes: 0,
        }
    }

    /// The bytes that are allocated, and those of long values, which may live on only for this
    /// reply.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity() + self.long_bytes
    }

    /// The bytes that are written and not sent.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.sent + self.long_bytes
    }

    /// Makes room for short replies.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }

    /// The next bytes that may be sent now.
    pub(crate) fn unsent(&self) -> &[u8] {
        match self.long.front() {
            Some(long) if long.at >= self.start => &self.bytes[self.sent..self.start],
            Some(long) if long.at > self.sent => &self.bytes[self.sent..long.at],
            Some(long) => &long.text[long.range.clone()],
            None => &self.bytes[self.sent..self.start],
        }
    }

    /// Notes that some of the [unsent](Self::unsent) bytes have been sent.
    pub(crate) fn sent(&mut self, bytes: usize) {
        if let Some(long) = self.long.front_mut()
            && long.at == self.sent
            && long.at < self.start
        {
            long.range.start += bytes;
            self.long_bytes -= bytes;
            if long.range.is_empty()
                && let Some(long) = self.long.pop_front()
            {
                free(long.text.len(), long.text);
            }
            return;
        }
        self.sent += bytes;
        if self.sent == self.start {
            self.bytes.drain(..self.sent);
            self.shrink();
            for long in &mut self.long {
                long.at -= self.sent;
            }
            self.sent = 0;
            self.start = 0;
        }
    }

    /// Frees room that a long reply has needed.
    fn shrink(&mut self) {
        if self.bytes.capacity() > KEPT && self.bytes.len() <= KEPT {
            let mut kept = Vec::with_capacity(KEPT);
            kept.extend_from_slice(&self.bytes);
            let bytes = std::mem::replace(&mut self.bytes, kept);
            free(bytes.capacity(), bytes);
        }
    }

    /// Frees the buffer when everything has been sent.
    pub(crate) fn release(&mut self) {
        debug_assert_eq!(self.len(), 0);
        self.bytes = Vec::new();
        self.long = VecDeque::new();
    }

    /// Begins the next command, which may be the one whose reply is left out.
    pub(crate) fn next_command(&mut self) {
        self.mute = match self.mute {
            Mute::SkipNext => Mute::Skip,
            Mute::Skip => Mute::Off,
            mute => mute,
        };
    }

    /// Begins the reply to a command. An error replaces only what comes from here.
    pub(crate) fn begin(&mut self) {
        self.commit();
        self.is_stream = false;
    }

    /// Lets what has been written be sent while the rest of the reply is written. From now on the
    /// command cannot fail, and the limit does not apply.
    ///
    /// In a transaction it does nothing.
    pub(crate) fn stream(&mut self) {
        if self.is_held {
            return;
        }
        self.commit();
        self.is_stream = true;
    }

    /// Holds what is written from now on until all of it is there, or no more.
    pub(crate) fn hold(&mut self, holds: bool) {
        self.is_held = holds;
    }

    /// Whether what is written and not sent has passed the limit of a reply.
    pub(crate) fn is_full(&self) -> bool {
        self.len() > self.limit
    }

    /// The limit of a reply.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Whether a part of the current command's reply may have been sent.
    pub(crate) fn is_stream(&self) -> bool {
        self.is_stream
    }

    fn commit(&mut self) {
        self.start = self.bytes.len();
        self.new_long_bytes = 0;
    }

    /// Ends a command's reply. If it did not keep to the limit, an error replaces it.
    pub(crate) fn finish(&mut self) {
        if self.overflowed {
            let limit = std::mem::replace(&mut self.limit, usize::MAX);
            self.fail(too_long(limit).as_bytes());
            self.shrink();
            self.limit = limit;
        }
        self.commit();
    }

    /// Whether `more` bytes are written: replies are, and they still fit. If they do not fit, the
    /// reply is too long from now on.
    fn fits(&mut self, more: usize) -> bool {
        if matches!(self.mute, Mute::On | Mute::Skip) {
            return false;
        }
        let written = self.bytes.len() - self.start + self.new_long_bytes;
        let fits = self.is_stream || more <= self.limit.saturating_sub(written);
        self.overflowed |= !fits;
        fits
    }

    fn put(&mut self, part: &[u8]) {
        if self.fits(part.len()) {
            self.bytes.extend_from_slice(part);
        }
    }

    fn header(&mut self, kind: u8, number: i64) {
        let mut line = [kind; 24];
        let digits = Digits::new(number);
        let digits = digits.as_bytes();
        let end = 1 + digits.len();
        line[1..end].copy_from_slice(digits);
        line[end] = b'\r';
        line[end + 1] = b'\n';
        self.put(&line[..end + 2]);
    }

    fn length(&mut self, kind: u8, length: usize) {
        // No reply comes near 2^63 elements or bytes.
        self.header(kind, i64::try_from(length).unwrap_or(i64::MAX));
    }

    pub(crate) fn ok(&mut self) {
        self.put(b"+OK\r\n");
    }

    /// `text` must not hold a line break.
    pub(crate) fn simple(&mut self, text: &str) {
        self.put(b"+");
        self.put(text.as_bytes());
        self.put(b"\r\n");
    }

    /// An error, which begins with its code. Line breaks become blanks, because the text may
    /// contain input of a client.
    pub(crate) fn error(&mut self, text: &[u8]) {
        self.put(b"-");
        let start = self.bytes.len();
        self.put(text);
        for byte in &mut self.bytes[start..] {
            if matches!(byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
        self.put(b"\r\n");
    }

    /// Replaces what the current command has written by an error.
    pub(crate) fn fail(&mut self, text: &[u8]) {
        debug_assert!(!self.is_stream, "a part may have been sent");
        self.bytes.truncate(self.start);
        let kept = self.long.partition_point(|long| long.at < self.start);
        for long in self.long.drain(kept..) {
            self.long_bytes -= long.range.len();
        }
        self.new_long_bytes = 0;
        self.overflowed = false;
        self.error(text);
    }

    pub(crate) fn integer(&mut self, number: i64) {
        self.header(b':', number);
    }

    /// The version of a value.
    pub(crate) fn version(&mut self, version: Version) {
        // It has 48 bits.
        self.integer(version.get() as i64);
    }

    /// A number that need not be whole; a text of its digits if the protocol has no such numbers.
    pub(crate) fn double(&mut self, number: f64) {
        let digits = number.to_string();
        match self.protocol {
            Protocol::Resp2 => self.bulk(digits.as_bytes()),
            Protocol::Resp3 => {
                self.put(b",");
                self.put(digits.as_bytes());
                self.put(b"\r\n");
            }
        }
    }

    /// What the client gets without its asking, between two replies or before one: a line, or a
    /// message without its first byte.
    pub(crate) fn unasked(&mut self, piece: Piece) {
        self.commit();
        let bytes = match piece {
            Piece::Line(line) => line,
            Piece::Message(message) => {
                self.bytes.push(self.push_sign());
                message
            }
            Piece::Messages(messages) => {
                messages.write(self.push_sign(), &mut self.bytes);
                self.commit();
                return;
            }
        };
        if bytes.len() < SHARED_FROM {
            self.bytes.extend_from_slice(&bytes);
        } else {
            // All but its last bytes, because something comes behind each long value.
            let (at, range) = (self.bytes.len(), 0..bytes.len() - LINE_END.len());
            self.long_bytes += range.len();
            let text = Text::Plain(bytes);
            self.long.push_back(Long { at, text, range });
            self.bytes.extend_from_slice(LINE_END);
        }
        self.commit();
    }

    fn push_sign(&self) -> u8 {
        match self.protocol {
            Protocol::Resp2 => b'*',
            Protocol::Resp3 => b'>',
        }
    }

    /// The beginning of a push, which is no reply; an array if the protocol has none.
    pub(crate) fn push(&mut self, length: usize) {
        self.length(self.push_sign(), length);
    }

    /// Parts of replies that only `DEBUG PROTOCOL` writes, with or without RESP3's types.
    pub(crate) fn typed(&mut self, resp3: &[u8], resp2: &[u8]) {
        self.put(match self.protocol {
            Protocol::Resp2 => resp2,
            Protocol::Resp3 => resp3,
        });
    }

    /// Lets replies have other limits from now on.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// A number of things.
    pub(crate) fn count(&mut self, number: usize) {
        self.length(b':', number);
    }

    pub(crate) fn sequence(&mut self, sequence: Sequence) {
        self.integer(i64::try_from(sequence.get()).unwrap_or(i64::MAX));
    }

    pub(crate) fn bulk(&mut self, bytes: &[u8]) {
        // Reserves room at once, so that a long value is not copied again as the buffer grows.
        if self.fits(bytes.len() + 32) {
            self.bytes.reserve(bytes.len() + 32);
            self.length(b'$', bytes.len());
            self.bytes.extend_from_slice(bytes);
            self.bytes.extend_from_slice(b"\r\n");
        }
    }

    /// A value as a bulk string. A long one is shared.
    pub(crate) fn value(&mut self, text: Text) {
        if text.len() < SHARED_FROM {
            self.bulk(&text);
        } else {
            let whole = 0..text.len();
            self.share(text, whole);
        }
    }

    /// A part of a value as a bulk string. A long one is shared.
    pub(crate) fn part(&mut self, part: &Part<'_>) {
        if part.bytes().len() < SHARED_FROM {
            self.bulk(part.bytes());
        } else {
            let (text, range) = part.share();
            self.share(text, range);
        }
    }

    fn share(&mut self, text: Text, range: Range<usize>) {
        let length = range.len();
        if self.fits(length + 32) {
            self.length(b'$', length);
            let at = self.bytes.len();
            self.long.push_back(Long { at, text, range });
            self.long_bytes += length;
            self.new_long_bytes += length;
            self.bytes.extend_from_slice(b"\r\n");
        }
    }

    /// Replies that are encoded already.
    pub(crate) fn encoded(&mut self, replies: &[u8]) {
        self.put(replies);
    }

    /// Everything that is written, without sending it.
    pub(crate) fn take_all(&mut self) -> Vec<u8> {
        self.finish();
        let mut all = Vec::with_capacity(self.len());
        while let unsent @ [_, ..] = self.unsent() {
            let length = unsent.len();
            all.extend_from_slice(unsent);
            self.sent(length);
        }
        all
    }

    /// Text for people: a verbatim string if the protocol has these.
    pub(crate) fn text(&mut self, text: &str) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => {
                self.length(b'=', text.len() + 4);
                self.put(b"txt:");
                self.put(text.as_bytes());
                self.put(b"\r\n");
            }
        }
    }

    pub(crate) fn null(&mut self) {
        match self.protocol {
            Protocol::Resp2 => self.put(b"$-1\r\n"),
            Protocol::Resp3 => self.put(b"_\r\n"),
        }
    }

    pub(crate) fn null_array(&mut self) {
        match self.protocol {
            Protocol::Resp2 => self.put(b"*-1\r\n"),
            Protocol::Resp3 => self.put(b"_\r\n"),
        }
    }

    pub(crate) fn array(&mut self, length: usize) {
        self.length(b'*', length);
    }

    /// A map of `pairs` pairs; a flat array if the protocol has no maps.
    pub(crate) fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp2 => self.length(b'*', 2 * pairs),
            Protocol::Resp3 => self.length(b'%', pairs),
        }
    }

    /// A set; an array if the protocol has no sets.
    pub(crate) fn set(&mut self, length: usize) {
        match self.protocol {
            Protocol::Resp2 => self.length(b'*', length),
            Protocol::Resp3 => self.length(b'~', length),
        }
    }
}

/// The error in the place of a reply that does not keep to the limit.
pub(crate) fn too_long(limit: usize) -> String {
    format!("ERR reply exceeds the output buffer limit of {limit} bytes (--max-output-buffer)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tremula_store::Value;

    fn encoded(protocol: Protocol, write: impl FnOnce(&mut Reply)) -> String {
        let mut reply = Reply::new(1000);
        reply.protocol = protocol;
        reply.begin();
        write(&mut reply);
        reply.finish();
        String::from_utf8(reply.bytes).unwrap()
    }

    #[test]
    fn each_kind_is_spelt_as_its_protocol_has_it() {
        let all = |reply: &mut Reply| {
            reply.null();
            reply.null_array();
            reply.map(2);
            reply.set(3);
            reply.text("hi");
        };
        assert_eq!(
            encoded(Protocol::Resp2, all),
            "$-1\r\n*-1\r\n*4\r\n*3\r\n$2\r\nhi\r\n"
        );
        assert_eq!(
            encoded(Protocol::Resp3, all),
            "_\r\n_\r\n%2\r\n~3\r\n=6\r\ntxt:hi\r\n"
        );
        let common = |reply: &mut Reply| {
            reply.ok();
            reply.simple("PONG");
            reply.error(b"ERR a\r\nb");
            reply.integer(-7);
            reply.bulk(b"a\r\n");
        };
        assert_eq!(
            encoded(Protocol::Resp3, common),
            "+OK\r\n+PONG\r\n-ERR a  b\r\n:-7\r\n$3\r\na\r\n\r\n"
        );
    }

    #[test]
    fn only_what_no_error_can_replace_is_sent() {
        let mut reply = Reply::new(1000);
        reply.begin();
        reply.ok();
        reply.finish();
        reply.begin();
        reply.array(2);
        assert_eq!(reply.unsent(), b"+OK\r\n");
        reply.sent(5);
        assert!(reply.unsent().is_empty());
        reply.integer(1);
        reply.stream();
        assert_eq!(reply.unsent(), b"*2\r\n:1\r\n");
        reply.sent(3);
        reply.integer(2);
        assert_eq!(reply.unsent(), b"\n:1\r\n");
        assert_eq!(reply.len(), 9);
        reply.sent(5);
        reply.finish();
        assert_eq!(reply.unsent(), b":2\r\n");
        reply.sent(4);
        reply.release();
    }

    /// Everything that may be sent, sent in pieces.
    fn sent(reply: &mut Reply) -> Vec<u8> {
        let mut all = Vec::new();
        while !reply.unsent().is_empty() {
            let piece = reply.unsent().len().min(50_000);
            all.extend_from_slice(&reply.unsent()[..piece]);
            reply.sent(piece);
        }
        all
    }

    #[test]
    fn long_values_are_sent_in_their_places_without_a_copy() {
        let long = vec![b'x'; SHARED_FROM];
        let bulk = [b"$65536\r\n", &long[..], b"\r\n"].concat();
        let value = || Text::Plain(Value::from(&long[..]));
        let mut reply = Reply::new(2 * SHARED_FROM);
        reply.begin();
        reply.ok();
        reply.value(value());
        reply.finish();
        reply.begin();
        reply.value(value());
        assert!(reply.bytes.capacity() < SHARED_FROM);
        assert_eq!(sent(&mut reply), [b"+OK\r\n", &bulk[..]].concat());
        reply.value(value());
        assert!(reply.overflowed, "shared bytes count");
        reply.finish();
        reply.begin();
        reply.value(value());
        reply.finish();
        let error = [b"-", too_long(2 * SHARED_FROM).as_bytes(), b"\r\n"].concat();
        assert_eq!(sent(&mut reply), [&error[..], &bulk].concat());
        assert_eq!(reply.len(), 0);
        reply.begin();
        reply.stream();
        for _ in 0..5 {
            reply.value(value());
        }
        reply.finish();
        assert_eq!(sent(&mut reply), bulk.repeat(5), "a stream has no limit");
    }

    #[test]
    fn what_is_unasked_has_no_limit_and_is_not_muted() {
        for (protocol, sign) in [(Protocol::Resp2, b'*'), (Protocol::Resp3, b'>')] {
            let long = [&vec![b'x'; SHARED_FROM][..], LINE_END].concat();
            let mut reply = Reply::new(2);
            (reply.protocol, reply.mute) = (protocol, Mute::On);
            reply.begin();
            reply.ok();
            let short = Value::from(&b"1\r\n$0\r\n\r\n"[..]);
            reply.unasked(Piece::Message(short));
            reply.unasked(Piece::Message(Value::from(&long[..])));
            reply.unasked(Piece::Line(Value::from(&b"+a\r\n"[..])));
            reply.finish();
            let sign = [sign];
            let parts = [&sign[..], b"1\r\n$0\r\n\r\n", &sign, &long, b"+a\r\n"];
            assert_eq!(sent(&mut reply), parts.concat());
            assert_eq!(reply.len(), 0);
        }
    }

    #[test]
    fn a_reply_beyond_the_limit_becomes_one_error() {
        let mut reply = Reply::new(50);
        for _ in 0..2 {
            reply.begin();
            reply.bulk(&[b'x'; 10]);
            reply.finish();
            assert!(!reply.overflowed, "the limit is for one reply");
        }
        reply.begin();
        for _ in 0..20 {
            reply.bulk(&[b'x'; 10]);
        }
        assert!(reply.overflowed);
        reply.finish();
        reply.begin();
        reply.ok();
        reply.finish();
        let text = String::from_utf8(reply.bytes).unwrap();
        let end = "xx\r\n-ERR reply exceeds the output buffer limit of 50 bytes (--max-output-buffer)\r\n+OK\r\n";
        assert!(text.ends_with(end), "{text}");
    }
}
