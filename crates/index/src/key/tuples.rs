//! The byte forms of tuples: the forms of the parts one after the other, all but the last
//! self-delimiting.

use super::ByteKey;

/// The initial capacity: enough for the byte forms of most tuples, so that making one allocates
/// once.
const TYPICAL: usize = 64;

macro_rules! tuple {
    ($($part:ident . $index:tt),+ ; $last:ident . $last_index:tt) => {
        impl<$($part: ByteKey,)+ $last: ByteKey> ByteKey for ($($part,)+ $last) {
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                let mut bytes = Vec::with_capacity(TYPICAL);
                $(self.$index.append_delimited(&mut bytes);)+
                self.$last_index.with_bytes(|last| bytes.extend_from_slice(last));
                read(&bytes)
            }

            fn append_delimited(&self, out: &mut Vec<u8>) {
                $(self.$index.append_delimited(out);)+
                self.$last_index.append_delimited(out);
            }
        }
    };
}

tuple!(A.0; B.1);
tuple!(A.0, B.1; C.2);
tuple!(A.0, B.1, C.2; D.3);
