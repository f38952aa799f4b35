//! Files of Redis.

use crate::rdb::RdbError;
use crate::transfer::each_of;

/// A file, or what was one.
///
/// It means the same however often it is read; keys and values are no longer than what compression
/// can make of the file; an error names a place in it.
///
/// # Panics
///
/// One of these does not hold.
pub fn rdb(data: &[u8]) {
    /// A copy of 264 bytes takes three.
    const EXPANSION: usize = 88;
    let show = |result: Result<_, RdbError>| result.map_err(|error| error.to_string());
    let read = show(each_of(data));
    assert_eq!(show(each_of(data)), read);
    match each_of(data) {
        Ok(entries) => {
            let bytes: usize = entries
                .iter()
                .map(|(_, key, value, _)| key.len() + value.len())
                .sum();
            // A number of one byte has up to four digits.
            assert!(
                bytes <= (EXPANSION + 4) * data.len(),
                "{bytes} bytes of {}",
                data.len()
            );
        }
        Err(RdbError::Damaged { offset, what }) => {
            assert!(offset <= data.len() as u64, "offset {offset}");
            assert!(!what.is_empty());
        }
        Err(RdbError::Newer { found }) => assert!(data.starts_with(b"REDIS") && found > 0),
        Err(RdbError::Read(error)) => panic!("bytes can be read: {error}"),
    }
}
