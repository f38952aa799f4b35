//! Values as bytes, and back.

use std::error::Error;
use std::fmt;

/// Bytes that are no value of the type that a map has.
#[derive(Debug)]
pub struct BadValue(Box<dyn Error + Send + Sync>);

impl BadValue {
    /// For those who implement [`DurableValue`]: a reason, as an error or as a text.
    pub fn new(why: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for BadValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "what is kept is no such value: {}", self.0)
    }
}

impl Error for BadValue {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}

/// A value that can be kept, as bytes.
///
/// `Vec<u8>`, `String`, integers (little-endian, of their own length), floats, `bool` and `()` have
/// it. With the feature `serde`, `Json` has it for every type with serde's traits. For another
/// format, implement it for a type of your own:
///
/// ```
/// use tremula_store::local::{BadValue, DurableValue};
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// struct Point { x: i32, y: i32 }
///
/// impl DurableValue for Point {
///     fn write(&self, out: &mut Vec<u8>) {
///         out.extend_from_slice(&self.x.to_le_bytes());
///         out.extend_from_slice(&self.y.to_le_bytes());
///     }
///
///     fn read(bytes: &[u8]) -> Result<Self, BadValue> {
///         let (x, y) = bytes.split_at_checked(4).ok_or_else(|| BadValue::new("too short"))?;
///         Ok(Self { x: i32::read(x)?, y: i32::read(y)? })
///     }
/// }
///
/// let mut bytes = Vec::new();
/// Point { x: 1, y: -1 }.write(&mut bytes);
/// assert_eq!(Point::read(&bytes).unwrap(), Point { x: 1, y: -1 });
/// assert!(Point::read(&bytes[1..]).is_err());
/// ```
pub trait DurableValue: Sized {
    /// Appends the bytes of the value.
    fn write(&self, out: &mut Vec<u8>);

    /// The value of these bytes.
    ///
    /// # Errors
    ///
    /// They are none.
    fn read(bytes: &[u8]) -> Result<Self, BadValue>;
}

impl DurableValue for Vec<u8> {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn read(bytes: &[u8]) -> Result<Self, BadValue> {
        Ok(bytes.to_vec())
    }
}

impl DurableValue for String {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }

    fn read(bytes: &[u8]) -> Result<Self, BadValue> {
        let text = std::str::from_utf8(bytes).map_err(BadValue::new)?;
        Ok(text.to_owned())
    }
}

impl DurableValue for () {
    fn write(&self, _: &mut Vec<u8>) {}

    fn read(bytes: &[u8]) -> Result<Self, BadValue> {
        let [] = fixed(bytes)?;
        Ok(())
    }
}

impl DurableValue for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn read(bytes: &[u8]) -> Result<Self, BadValue> {
        match fixed(bytes)? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => Err(BadValue::new(format!("the byte {other} is no bool"))),
        }
    }
}

macro_rules! numbers {
    ($($type:ty),*) => { $(
        impl DurableValue for $type {
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn read(bytes: &[u8]) -> Result<Self, BadValue> {
                Ok(Self::from_le_bytes(fixed(bytes)?))
            }
        }
    )* };
}

numbers!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, f32, f64);

fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], BadValue> {
    let length = bytes.len();
    bytes
        .try_into()
        .map_err(|_| BadValue::new(format!("{length} bytes instead of {N}")))
}

/// A value with serde's traits, kept as JSON: it can be read by any client of a server on the same
/// directory, and by later versions of its type as far as serde's attributes allow. NaN and
/// infinite floats become `null`, which is no float.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use tremula_store::local::{DurableValue, Json};
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize)]
/// struct Tree { name: String, metres: u32 }
///
/// let aspen = Json(Tree { name: "aspen".to_owned(), metres: 25 });
/// let mut bytes = Vec::new();
/// aspen.write(&mut bytes);
/// assert_eq!(bytes, br#"{"name":"aspen","metres":25}"#);
/// assert_eq!(Json::read(&bytes).unwrap(), aspen);
/// ```
///
/// # Panics
///
/// [`write`](DurableValue::write) panics if the type's own `Serialize` fails, or a map has keys
/// that are no strings, numbers or units: then there is no JSON for it.
#[cfg(feature = "serde")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Json<T>(pub T);

#[cfg(feature = "serde")]
impl<T: serde_core::Serialize + serde_core::de::DeserializeOwned> DurableValue for Json<T> {
    fn write(&self, out: &mut Vec<u8>) {
        let written = serde_json::to_writer(out, &self.0);
        written.unwrap_or_else(|error| panic!("the value has no form in JSON: {error}"));
    }

    fn read(bytes: &[u8]) -> Result<Self, BadValue> {
        serde_json::from_slice(bytes)
            .map(Self)
            .map_err(BadValue::new)
    }
}
