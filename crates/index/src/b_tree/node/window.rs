//! Windows: the heads of keys that are their bytes, behind the bytes that all keys of a node have
//! in common.
//!
//! ```text
//!   prefix  skip │ heads: the next eight bytes          the keys
//!   ann.lee  7   │ .1987@ex                             ann.lee.1987@example.org
//!                │ .2001@ex                             ann.lee.2001@example.org
//!                │ @mail.ne                             ann.lee@mail.net
//! ```
//!
//! The first eight bytes of such keys are often all alike. Then a search would have to look at one
//! key after the other. So a node of such keys ([`KeyHead::PLAIN_BYTES`]) notes how many bytes its
//! keys have in common, the *skip*, and these bytes, the *prefix*; its heads are *windows*: the
//! eight bytes behind the prefix. A key that is looked for gets a window too. If the prefix is not
//! that of the key, its window is the least number where the key lies below all keys with the
//! prefix, and the greatest where it lies above them. So windows never contradict the order of
//! keys, and the search among them, and among keys whose windows are equal, is that of all heads.
//!
//! Outside of nodes there are no windows: [`NodeRef::key`] gives the first eight bytes, which
//! follow from prefix and window.
//!
//! A key without the prefix that is inserted makes the prefix shorter. The new windows follow from
//! the old ones and the prefix, so no key is read for them. A prefix becomes longer only when many
//! entries change places ([`NodeRef::seal`]), in a split for example: that reads all keys, so it
//! happens only if it gains enough.
//!
//! Keys may have *heads of their own*, which are not their first bytes ([`PlainBytes::own_head`]).
//! Then a window is the head that the bytes behind the prefix would have. Computing it takes
//! longer, so a node has a prefix only if heads without it were equal. And nothing follows from a
//! window: outside of the node the head is unknown ([`UNKNOWN_HEAD`]) until somebody needs it, and
//! a shorter prefix reads all keys. An entry that is copied from a node with another prefix has
//! such an unknown head until the node is sealed, which then computes all of them.
//!
//! # Invariants
//!
//! 1. All keys of a node begin with its prefix, and their heads are their windows. The lock guards
//!    skip and prefix like the heads; a reader that sees parts of two states finds a wrong place,
//!    and validates before it relies on it.
//! 2. The skip is at most [`MOST`], at any moment. The words of the prefix have zeros behind it.
//! 3. No code of the user runs while windows change: the bytes of such a key are found by this
//!    crate ([`PlainBytes`](crate::key::PlainBytes)).

use super::NodeRef;
use crate::b_tree::layout::Plan;
use crate::key::{self, KeyHead, PlainBytes};
use crate::kit::{SearchKey, Sought, Spec, StoredKey, UNKNOWN_HEAD};
use tremula_sync::atomic::{AtomicU64, Ordering};

/// The bytes of a word.
const WORD: usize = size_of::<u64>();

/// The words of the longest prefix: as many as find room behind the hints of a page.
const WORDS: usize = 4;

/// The longest prefix.
const MOST: usize = WORDS * WORD;

/// How many bytes longer a prefix has to become before all keys are read for new windows, unless
/// windows are equal.
const GAIN: usize = WORD / 2;

/// Whether windows are made by a function of the keys' own.
pub(super) const fn has_own_heads<S: Spec>() -> bool {
    key::has_own_heads::<S::Key, S::Head>() && has_windows::<S>()
}

/// Whether the heads of nodes are windows.
pub(super) const fn has_windows<S: Spec>() -> bool {
    S::Head::PLAIN_BYTES.is_some() && !S::HEAD_IS_KEY
}

/// The number of words that a node has for its prefix.
pub(in crate::b_tree) const fn prefix_words<S: Spec>() -> usize {
    if has_windows::<S>() { WORDS } else { 0 }
}

/// The eight bytes from `at` on as a number: a smaller one for smaller bytes. Zeros stand for bytes
/// that are missing. It is [`head_of`](crate::key::head_of) of the rest, without a copy of unknown
/// length: most searches come here.
#[inline]
pub(in crate::b_tree) fn word_at(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    if let Some(first) = rest.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    let mut word = 0;
    if let Some(last) = bytes.last_chunk() {
        // They end with the rest.
        word = u64::from_be_bytes(*last);
    } else {
        for byte in rest {
            word = word << 8 | u64::from(*byte);
        }
    }
    // Twice, because all bytes may be missing.
    let missing = (WORD - rest.len()) as u32;
    word << (4 * missing) << (4 * missing)
}

/// The head of what is behind the first `at` bytes: 0 if there are fewer, so that no longer key is
/// taken for this one.
#[inline]
fn head_at<K>(plain: PlainBytes<K>, bytes: &[u8], at: usize) -> u64 {
    match plain.own_head() {
        Some(head) => bytes.get(at..).map_or(0, head),
        None => word_at(bytes, at),
    }
}

/// The first `bytes` bytes of a word, which may be all.
#[inline]
pub(in crate::b_tree) fn first_of(word: u64, bytes: usize) -> u64 {
    let others = (WORD - bytes.min(WORD)) as u32;
    word & (u64::MAX << (4 * others) << (4 * others))
}

/// How many bytes are alike at the beginning of two words.
#[inline]
pub(in crate::b_tree) fn alike(one: u64, other: u64) -> usize {
    (one ^ other).leading_zeros() as usize / 8
}

impl<'g, S: Spec> NodeRef<'g, S> {
    #[inline]
    fn prefix(self) -> &'g [AtomicU64] {
        let plan = const { &Plan::of::<S>() };
        // SAFETY: `allocate` wrote this array.
        unsafe { self.array(plan.prefix, prefix_words::<S>()) }
    }

    #[inline]
    fn prefix_word(self, at: usize) -> u64 {
        self.prefix()[at].load(Ordering::Relaxed)
    }

    #[inline]
    fn skip(self) -> usize {
        self.header().skip.load(Ordering::Relaxed) as usize
    }

    /// Makes the first `skip` bytes of a key the prefix.
    fn set_prefix(self, skip: usize, word: impl Fn(usize) -> u64) {
        for (at, own) in self.prefix().iter().enumerate() {
            let word = first_of(word(at), skip.saturating_sub(at * WORD));
            own.store(word, Ordering::Relaxed);
        }
        self.header().skip.store(skip as u32, Ordering::Relaxed);
    }

    /// The head that a key has here, or would have.
    #[inline(always)]
    pub(in crate::b_tree) fn head_of_probe(self, probe: &SearchKey<'_, S>) -> u64 {
        let Some(plain) = (const { S::Head::PLAIN_BYTES }) else {
            return probe.head;
        };
        if !has_windows::<S>() {
            return probe.head;
        }
        let skip = self.skip();
        if skip == 0 {
            return probe.head;
        }
        match probe.key {
            Sought::Key(key) => self.window(plain, skip, probe.head, plain.of(key)),
            Sought::Form(form) => {
                let mut window = 0;
                form.read_bytes(&mut |bytes| window = self.window(plain, skip, probe.head, bytes));
                window
            }
        }
    }

    /// The window of the key with these bytes and this head.
    #[inline]
    fn window(self, plain: PlainBytes<S::Key>, skip: usize, head: u64, bytes: &[u8]) -> u64 {
        let first = if has_own_heads::<S>() {
            word_at(bytes, 0)
        } else {
            head
        };
        let (mut at, mut word) = (0, first);
        loop {
            let own = self.prefix_word(at / WORD);
            let seen = first_of(word, skip - at);
            if seen != own {
                return if seen < own { 0 } else { u64::MAX };
            }
            at += WORD;
            if at >= skip {
                break;
            }
            word = word_at(bytes, at);
        }
        // A key that ends within the prefix is below all that have it, and its window is 0.
        head_at(plain, bytes, skip)
    }

    /// The first eight bytes of the key with this head, or its own head, if that is known.
    #[inline]
    pub(super) fn head_of_key(self, head: u64) -> u64 {
        if !has_windows::<S>() {
            return head;
        }
        let skip = self.skip();
        if skip == 0 {
            return head;
        }
        if has_own_heads::<S>() {
            return UNKNOWN_HEAD;
        }
        self.prefix_word(0) | behind(head, skip)
    }

    /// The head of a key that is put into this node, which has this key's place among its first
    /// `places`. Makes the prefix shorter if the key has another.
    #[inline]
    pub(super) fn admit(self, key: StoredKey<S>, places: usize) -> u64 {
        let Some(plain) = (const { S::Head::PLAIN_BYTES }) else {
            return key.head;
        };
        if !has_windows::<S>() || (self.skip() == 0 && key.has_head()) {
            return key.head;
        }
        let admit = |key: &S::Key| {
            let bytes = plain.of(key);
            let common = self.common(bytes);
            if common < self.skip() {
                self.shorten(plain, common, places);
            }
            head_at(plain, bytes, common)
        };
        // SAFETY: the key is on its way into a node that this thread has locked, or has made.
        unsafe { key.with(admit) }
    }

    /// The head that a key gets in this node while many are put into it, where heads are their own.
    #[inline]
    pub(super) fn head_before_sealing(self, key: StoredKey<S>) -> u64 {
        if self.skip() == 0 {
            key.head
        } else {
            UNKNOWN_HEAD
        }
    }

    /// How many bytes of the prefix a key has.
    #[inline]
    fn common(self, bytes: &[u8]) -> usize {
        let most = self.skip().min(bytes.len());
        let mut common = 0;
        while common < most {
            let here = alike(word_at(bytes, common), self.prefix_word(common / WORD));
            common += here;
            if here < WORD {
                break;
            }
        }
        common.min(most)
    }

    /// Makes the prefix shorter, and the heads in the first `places` places windows behind it.
    #[cold]
    fn shorten(self, plain: PlainBytes<S::Key>, skip: usize, places: usize) {
        let heads = self.heads();
        if has_own_heads::<S>() {
            self.find_windows(plain, skip, places);
        } else {
            let cut = self.skip() - skip;
            // The bytes that the windows gain.
            let gained = self.prefix_bytes(skip);
            for at in 0..places {
                heads.store(at, gained | behind(heads.load(at), cut));
            }
        }
        heads.mend_hints(0, places);
        self.set_prefix(skip, |at| self.prefix_word(at));
    }

    /// Up to eight bytes of the prefix, from `at` on, and zeros behind them.
    fn prefix_bytes(self, at: usize) -> u64 {
        let mut bytes = [0; MOST];
        for (word, chunk) in self.prefix().iter().zip(bytes.chunks_mut(WORD)) {
            chunk.copy_from_slice(&word.load(Ordering::Relaxed).to_be_bytes());
        }
        word_at(&bytes, at)
    }

    /// Takes over the prefix of another node, if this one has no keys. Returns whether the two have
    /// the same prefix now, so that heads may be copied from one to the other.
    #[inline]
    pub(super) fn takes_window_of(self, other: NodeRef<'_, S>) -> bool {
        if !has_windows::<S>() || self.as_ptr() == other.as_ptr() {
            return true;
        }
        let skip = other.skip();
        if self.count() == 0 {
            self.set_prefix(skip, |at| other.prefix_word(at));
            return true;
        }
        let words = || self.prefix().iter().zip(other.prefix());
        self.skip() == skip
            && words()
                .all(|(own, other)| own.load(Ordering::Relaxed) == other.load(Ordering::Relaxed))
    }

    /// Computes the windows of the first `count` keys behind a prefix of `skip` bytes.
    fn find_windows(self, plain: PlainBytes<S::Key>, skip: usize, count: usize) {
        for at in 0..count {
            self.prefetch_key(at);
        }
        for at in 0..count {
            let window = |key: &S::Key| head_at(plain, plain.of(key), skip);
            // SAFETY: this thread has locked the node, or has made it.
            self.heads().store(at, unsafe { self.key(at).with(window) });
        }
    }

    /// Makes the prefix longer if the first `count` keys have more bytes in common, and windows
    /// behind them would differ more. Computes windows that are unknown.
    #[inline]
    pub(super) fn fit_window(self, count: usize) {
        let Some(plain) = (const { S::Head::PLAIN_BYTES }) else {
            return;
        };
        if has_windows::<S>() && count > 0 {
            self.lengthen(plain, count);
        }
    }

    fn lengthen(self, plain: PlainBytes<S::Key>, count: usize) {
        let (skip, heads) = (self.skip(), self.heads());
        let is_unknown = |at: usize| has_own_heads::<S>() && heads.load(at) == UNKNOWN_HEAD;
        let is_like_last = |at: usize| heads.load(at - 1) == heads.load(at);
        let some_unknown = (0..count).any(is_unknown);
        let some_alike = || (1..count).any(is_like_last);
        if has_own_heads::<S>() && !some_unknown && !some_alike() {
            return;
        }
        let common = |first: &S::Key, last: &S::Key| {
            let (first, last) = (plain.of(first), plain.of(last));
            let pairs = first.iter().zip(last).take(MOST);
            pairs.take_while(|(one, other)| one == other).count()
        };
        let (first, last) = (self.key(0), self.key(count - 1));
        // SAFETY: this thread has locked the node, or has made it.
        let common = unsafe { first.with(|first| last.with(|last| common(first, last))) };
        let gains = count > 1 && common > skip && (common - skip >= GAIN || some_alike());
        if !some_unknown && !gains {
            return;
        }
        self.find_windows(plain, common, count);
        // SAFETY: this thread has locked the node, or has made it.
        unsafe {
            first.with(|first| {
                let bytes = plain.of(first);
                self.set_prefix(common, |at| word_at(bytes, at * WORD));
            });
        }
    }

    /// Whether all keys begin with the prefix, and their heads are their windows: the invariant, of
    /// a node at rest.
    pub(in crate::b_tree) fn windows_show_keys(self) -> bool {
        let Some(plain) = (const { S::Head::PLAIN_BYTES }) else {
            return true;
        };
        let skip = if has_windows::<S>() { self.skip() } else { 0 };
        (0..self.count()).all(|at| {
            let fits = |key: &S::Key| {
                let bytes = plain.of(key);
                let is_prefix = (0..skip.div_ceil(WORD)).all(|at| {
                    let own = self.prefix_word(at);
                    first_of(word_at(bytes, at * WORD), skip - at * WORD) == own
                });
                let window = head_at(plain, bytes, skip);
                bytes.len() >= skip && is_prefix && window == self.heads().load(at)
            };
            // SAFETY: the keys of a tree at rest live as long as the tree.
            S::HEAD_IS_KEY || unsafe { self.key(at).with(fits) }
        })
    }
}

/// What a window shows of a key behind `bytes` more bytes.
#[inline]
fn behind(window: u64, bytes: usize) -> u64 {
    window.checked_shr(8 * bytes as u32).unwrap_or(0)
}
