//! What the byte forms of two keys promise. `tremula` tests derived forms by it, too.

use std::fmt::Debug;
use tremula_index::ByteKey;
use tremula_index::key::{ByteHead, KeyHead, head_of};

/// The byte form.
pub(crate) fn bytes<K: ByteKey>(key: &K) -> Vec<u8> {
    key.with_bytes(<[u8]>::to_vec)
}

/// The self-delimiting encoding.
fn delimited<K: ByteKey>(key: &K) -> Vec<u8> {
    let mut out = Vec::new();
    key.append_delimited(&mut out);
    out
}

/// Checks everything that the forms of two keys promise.
pub(crate) fn forms_agree<K: ByteKey + Debug>(a: &K, b: &K) {
    let order = a.cmp(b);
    assert_eq!(bytes(a).cmp(&bytes(b)), order, "{a:?}, {b:?}");
    assert_eq!(delimited(a).cmp(&delimited(b)), order, "{a:?}, {b:?}");
    if order.is_ne() {
        assert!(!delimited(a).starts_with(&delimited(b)), "{a:?}, {b:?}");
    }
    let mut appended = b"before".to_vec();
    a.append_bytes(&mut appended);
    assert_eq!(appended, [b"before", &*bytes(a)].concat(), "{a:?}");
    if let Some(length) = K::LENGTH {
        assert_eq!(
            (bytes(a).len(), delimited(a).len()),
            (length, length),
            "{a:?}"
        );
    }
    assert_eq!(a.head(), head_of(&bytes(a)), "{a:?}");
    match <ByteHead as KeyHead<K>>::key(a.head()) {
        Some(key) => assert_eq!(key, *a),
        None => assert!(!K::HEAD_IS_KEY, "{a:?}"),
    }
    if K::HEAD_IS_KEY {
        assert_eq!(a.head().cmp(&b.head()), order, "{a:?}, {b:?}");
    }
}
